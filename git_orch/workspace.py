"""A repository as git-orch works in it: its places, settings, registry, store and this user's key, opened together."""

from __future__ import annotations

from git_orch import config, key, layout, registry, store
from git_orch.git import Git, attempt_both
from git_orch.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from git_orch.config import Settings
    from git_orch.layout import Layout
    from git_orch.registry import Registry
    from git_orch.store import Store


class Workspace(Record):
    """An opened repository. `env` is the caller's, without what would point git elsewhere."""

    layout: Layout
    settings: Settings
    book: Registry
    store: Store
    key: bytes
    env: dict[str, str]

    @property
    def git(self) -> Git:
        """git, looking at the user's repository."""
        return self.layout.git(self.env)


def settings_at(cwd: str, env: Mapping[str, str]) -> Settings:
    """The settings that hold in a folder.

    Raises:
        UsageError: one of them is wrong.
    """
    git = Git(env=dict(env), cwd=cwd, git_dir=env.get("GIT_DIR", ""), work_tree=env.get("GIT_WORK_TREE", ""))
    return config.read(git, env)


def asked_at(cwd: str, env: Mapping[str, str]) -> tuple[Settings, Callable[[], Layout]]:
    """The settings that hold in a folder, and the layout of its repository, by one wait for git.

    `env` names no repository. The layout is a function, for settings may say that nothing is to be done there.

    Raises:
        UsageError: a setting is wrong.
        EnvironmentProblem: there is no git; from the function: there is no repository, or git refuses it.
    """
    git = Git(env=dict(env), cwd=cwd)
    said, found = attempt_both((git, config.QUESTION), (git, layout.QUESTION))
    settings = config.heard(git, said, env)
    return settings, lambda: layout.heard(git, found, settings.directory)


def open_at(
    cwd: str, env: Mapping[str, str], settings: Settings | None = None, place: Layout | None = None
) -> Workspace:
    """The repository that `cwd` lies in, with `.orch` and the store made where they were not there yet.

    Raises:
        EnvironmentProblem: there is no repository, or it cannot be written.
        ForeignDirectory: `.orch` is something else.
        UsageError: a setting is wrong.
    """
    settings = settings or settings_at(cwd, env)
    place = place or layout.locate(cwd, env, orch_dir=settings.directory)
    # From here on the repository is known: a GIT_DIR or GIT_INDEX_FILE of the caller's would only lead astray.
    own = {name: value for name, value in env.items() if name not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")}
    secret = key.load(own)
    return Workspace(
        layout=place,
        settings=settings,
        book=registry.ensure(place, secret, own),
        store=store.ensure(place, own),
        key=secret,
        env=own,
    )
