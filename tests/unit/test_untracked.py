from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from git_orch import untracked
from git_orch.untracked import EMBEDDED, Selection, secret_head, secret_name, select, size_text

MIB = 1 << 20
SECRET = "looks like a secret, never copied"


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    """The descriptor of a work tree with a few files."""
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    for name in ("a.txt", "src/b.txt", "src/c.txt", ".env"):
        (folder / name).write_text(f"{name}\n")
    (folder / "key").write_text("-----BEGIN RSA PRIVATE KEY-----\n")
    (folder / "link").symlink_to("nowhere")
    (folder / "big").write_bytes(b"")
    os.truncate(folder / "big", 20 * MIB)
    os.mkfifo(folder / "fifo")
    fd = os.open(folder, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.mark.parametrize(
    "name",
    [
        ".env", "a/.env", ".ENV", ".env.local", ".env.production", "prod.env", ".envrc", ".netrc", "server.pem",
        "x/KEY.PEM",
        "id_rsa", "ssh/id_ed25519", "keys.p12", "a.pfx", "b.jks", "c.keystore", "putty.ppk", "vault.kdbx", ".pypirc",
        ".git-credentials", ".pgpass", ".htpasswd",
    ],
)  # fmt: skip
def test_names_of_secrets(name: str) -> None:
    assert secret_name(name.encode())


@pytest.mark.parametrize(
    "name",
    [
        ".env.example", ".env.sample", ".env.template", ".env.dist", "id_rsa.pub", "server.pem.example", "env",
        "env.py", "environment", "id_rsa_test.py", "pem", "a.pem/b.txt", ".environment", "monkey.py", "",
    ],
)  # fmt: skip
def test_names_of_what_is_shared(name: str) -> None:
    assert not secret_name(name.encode())


@pytest.mark.parametrize(
    ("head", "is_key"),
    [
        (b"-----BEGIN RSA PRIVATE KEY-----\nMII", True),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\n", True),
        (b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n", True),
        (b"-----BEGIN PGP PRIVATE KEY BLOCK-----\n", True),
        (b"\xef\xbb\xbf-----BEGIN EC PRIVATE KEY-----\n", True),
        (b"\n  -----BEGIN PRIVATE KEY-----\n", True),
        (b"PuTTY-User-Key-File-3: ssh-ed25519\n", True),
        (b"-----BEGIN CERTIFICATE-----\n", False),
        (b"-----BEGIN PUBLIC KEY-----\n", False),
        (b"# how to make a PRIVATE KEY\n", False),
        (b"", False),
    ],
)
def test_the_first_line_of_a_private_key(head: bytes, is_key: bool) -> None:
    assert secret_head(head) == is_key


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (18_035_507, "17.2 MiB"),
        (5 << 30, "5.0 GiB"),
        (9 << 41, "18432.0 GiB"),
    ],
)
def test_sizes(size_bytes: int, text: str) -> None:
    assert size_text(size_bytes) == text


def test_what_enters_and_what_does_not(root: int) -> None:
    listed = [b".env", b"a.txt", b"big", b"fifo", b"gone", b"gone/x", b"inner/", b"key", b"link", b"src/b.txt"]
    assert select(root, listed, max_bytes=10 * MIB) == Selection(
        entering={b"a.txt": 6, b"link": 0, b"src/b.txt": 10},
        left_out={
            b".env": SECRET,
            b"big": "20.0 MiB, over the 10.0 MiB of orch.maxUntrackedBytes",
            b"fifo": "not a file (FIFO, socket or device)",
            b"inner/": EMBEDDED,
            b"key": SECRET,
        },
    )


def test_a_path_through_a_file_is_gone(root: int) -> None:
    assert select(root, [b"a.txt/x"], max_bytes=MIB) == Selection(entering={}, left_out={})


def test_a_name_that_no_file_can_have(root: int) -> None:
    (reason,) = select(root, [b"x" * 300], max_bytes=MIB).left_out.values()
    assert reason == "unreadable: File name too long"


def test_no_more_bytes_than_may_enter(root: int) -> None:
    chosen = select(root, [b"a.txt", b"big", b"src/b.txt"], max_bytes=100 * MIB, size_bytes=100)
    assert chosen.entering == {b"a.txt": 6, b"src/b.txt": 10}  # what fits after what does not is in
    assert chosen.left_out == {b"big": "over the 100 bytes of new files that a hook takes in"}


def flood(**folders: int) -> list[bytes]:
    return sorted(b"%s/%05d" % (name.encode(), number) for name, count in folders.items() for number in range(count))


def test_of_a_flood_the_smallest_folders_come_first() -> None:
    listed = [*flood(a_big=5000, middle=300, small=3), b"top.txt", b"zz.txt"]
    inside, over = untracked._within(listed, 2000)
    assert inside[:2] == [b"top.txt", b"zz.txt"]
    assert inside[2:5] == flood(small=3)
    assert inside[5:305] == flood(middle=300)
    assert inside[305:] == flood(a_big=5000)[:1600]  # of 1,695 that would fit, in steps of 100
    assert sorted([*inside, *over]) == sorted(listed)


def test_without_a_flood_all_are_in() -> None:
    listed = flood(a=2000)
    assert untracked._within(listed, 2000) == (listed, ())
    assert untracked._within(listed, 0) == (listed, ())


@pytest.mark.parametrize("number", [1, 2, 7, 19, 20, 21, 39])
def test_never_more_than_the_limit(number: int) -> None:
    inside, _ = untracked._within(flood(a=50, b=50), number)
    assert len(inside) <= number


def test_a_flood_at_the_top_is_cut_too() -> None:
    listed = sorted(b"%05d.txt" % number for number in range(3000))
    inside, over = untracked._within(listed, 2000)
    assert list(inside) == listed[:2000]
    assert untracked._folded(over, 2000) == {b"./": "1,000 new files, over the 2,000 that a hook takes in"}


def test_what_is_over_is_named_by_folder() -> None:
    assert untracked._folded([*flood(a=2, b=1), b"one.txt"], 2000) == {
        b"a/": "2 new files, over the 2,000 that a hook takes in",
        b"b/00000": "over the 2,000 new files that a hook takes in",
        b"one.txt": "over the 2,000 new files that a hook takes in",
    }
