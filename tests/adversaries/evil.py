"""A program that does not want to end: seven ways to outlive whoever started it, each bounded by its life.

    python -I -S evil.py MODE NAME LIFE_S {stay,leave}

Every process of it that is up goes by NAME (/proc/PID/comm), so that a test can count its own. With `leave` the first
process exits 0 as soon as it has started the rest, as agent clients do that leave servers behind. Written in the
working directory: a link NAME to `sleep`, in mode scrubbed.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

MODE, NAME, LIFE_S, THEN = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
END = time.monotonic() + LIFE_S
BOMBS = 40
LOOK_S = 0.2


def show_name() -> None:
    ctypes.CDLL(None).prctl(15, NAME.encode(), 0, 0, 0)


def ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def idle() -> NoReturn:
    """This process is counted, ignores what can be ignored, and lives out its life."""
    show_name()
    ignore_signals()
    signal.alarm(max(1, round(END - time.monotonic())))
    while True:
        signal.pause()


def finish() -> NoReturn:
    """The first process has done its part."""
    if THEN == "leave":
        os._exit(0)
    idle()


def ignorer() -> None:
    """Ignores SIGTERM."""
    if THEN == "leave" and os.fork():
        os._exit(0)
    idle()


def session() -> None:
    """Leaves the process group by setsid."""
    if os.fork():
        finish()
    os.setsid()
    idle()


def daemon() -> None:
    """Forks twice, so that it becomes an orphan in a session of its own."""
    become_orphan(idle)


def scrubbed() -> None:
    """A daemon without environment, descriptors or working directory."""

    def scrub() -> NoReturn:
        sleep = next(path for path in (f"{folder}/sleep" for folder in os.get_exec_path()) if os.path.exists(path))
        link = os.path.abspath(NAME)
        os.symlink(sleep, link)
        os.chdir("/")
        os.closerange(0, 64)
        os.execve(link, ["x", str(LIFE_S)], {})

    become_orphan(scrub)


def become_orphan(act: Callable[[], NoReturn]) -> None:
    middle = os.fork()
    if middle:
        os.waitpid(middle, 0)
        finish()
    os.setsid()
    if os.fork():
        os._exit(0)
    act()


def hydra() -> None:
    """Two that guard each other: whichever dies is forked anew by the other, in a session of its own."""
    show_name()
    first = os.getpid()
    second = os.fork()
    if not second:
        os.setsid()
        guard(first)
    if THEN == "leave":
        os._exit(0)
    guard(second)


def guard(peer: int) -> NoReturn:
    ignore_signals()
    while time.monotonic() < END:
        await_end(peer)
        me = os.getpid()
        child = os.fork()
        if child:
            peer = child
        else:
            os.setsid()
            peer = me
    os._exit(0)


def await_end(peer: int) -> None:
    try:
        pidfd = os.pidfd_open(peer)
    except ProcessLookupError:
        return
    while not select.select([pidfd], [], [], LOOK_S)[0]:
        if time.monotonic() > END:
            os._exit(0)
    os.close(pidfd)
    try:
        os.waitpid(peer, os.WNOHANG)
    except ChildProcessError:
        pass


def walker() -> None:
    """Forks and exits as fast as it can: by the time its number has been read it is gone."""
    show_name()
    ignore_signals()
    if os.fork():
        finish()
    os.setsid()
    while time.monotonic() < END:
        if os.fork():
            os._exit(0)
    os._exit(0)


def bomb() -> None:
    """Keeps forty pairs alive, each in a session of its own, and replaces those that die."""
    if THEN == "leave" and os.fork():
        os._exit(0)
    show_name()
    ignore_signals()
    alive = 0
    while time.monotonic() < END:
        while alive < BOMBS:
            if not os.fork():
                be_pair()
            alive += 1
        os.waitpid(-1, 0)
        alive -= 1
    os._exit(0)


def be_pair() -> NoReturn:
    os.setsid()
    if os.fork():
        os.waitpid(-1, 0)
        os._exit(0)
    idle()


MODES = {mode.__name__: mode for mode in (ignorer, session, daemon, scrubbed, hydra, walker, bomb)}

if __name__ == "__main__":
    MODES[MODE]()
