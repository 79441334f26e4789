"""A GitLab face with settings of its own, and clients of people on it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from ground.names import CommitSha, RepoId
from orderkit.adapters.gitlab import GitLabForge
from orderkit.ports.forge import FileChange, Operation, PullDraft, PullRequest, TeamRight
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge
from orderkit_standins.forge.gitlab.face import FaceSettings

ADMIN_TOKEN, GROUP, ORG = "a" * 40, "acme/platform", "ae86"
A = PurePosixPath("a.txt")


@dataclass
class GitLab:
    """A running face and its administrator's client."""

    url: str
    embedded: EmbeddedForge
    forge: GitLabForge

    def person(self, login: str) -> GitLabForge:
        """Return the client of somebody of the team."""
        token = secrets.token_hex(20)
        self.embedded.ensure_user(login, "pw-of-a-test1")
        self.embedded.ensure_token(login, "t", token, ["all"])
        return GitLabForge(self.url, token=token, group=GROUP)

    def repo(self, name: str = "") -> RepoId:
        """Return a new project with one file."""
        repo = RepoId(ORG, name or f"order-{secrets.token_hex(3)}")
        self.forge.ensure_org(ORG)
        self.forge.ensure_repo(repo, description="")
        self.forge.write(repo, [FileChange(A, b"a\n", None)], op())
        return repo

    def join(self, *logins: str) -> None:
        """Make people developers of the team."""
        self.forge.ensure_access(ORG, "devs", right=TeamRight.WRITE, members=logins)

    def head(self, repo: RepoId, branch: str = "main") -> CommitSha:
        head = self.forge.head(repo, branch)
        assert head is not None
        return head

    def pull(self, repo: RepoId, by: GitLabForge | None = None) -> PullRequest:
        """Open a merge request with one commit."""
        forge = by or self.forge
        forge.ensure_branch(repo, "change", self.head(repo))
        forge.write(repo, [FileChange(PurePosixPath("n"), b"1\n", None)], op(), branch="change")
        return forge.open_pull(repo, PullDraft("Change", "", "change"), op())


def op() -> Operation:
    return Operation(secrets.token_hex(8), "user:default/eve", "Change files")


Served = Callable[[FaceSettings], AbstractContextManager[GitLab]]


@contextmanager
def served_in(folder: Path, settings: FaceSettings) -> Iterator[GitLab]:
    embedded = EmbeddedForge(folder, gitlab=settings)
    server = HttpServer(embedded.app, bind("forge", 0))
    server.start()
    embedded.set_base_url(server.url)
    embedded.ensure_user("warden", "warden-pw1", admin=True)
    embedded.ensure_token("warden", "t", ADMIN_TOKEN, ["all"])
    try:
        with GitLabForge(server.url, token=ADMIN_TOKEN, group=GROUP) as forge:
            yield GitLab(server.url, embedded, forge)
    finally:
        server.stop()
        embedded.close()


@pytest.fixture(scope="package")
def gitlab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitLab]:
    with served_in(tmp_path_factory.mktemp("gitlab"), FaceSettings(GROUP)) as found:
        yield found


@pytest.fixture
def served(tmp_path: Path) -> Served:
    """Return what serves a face with other settings."""
    return lambda settings: served_in(tmp_path / "forge", settings)
