"""
The forges that the suite of the port runs on: each is a server and how a client enters it.

The embedded forge speaks several dialects over the same repositories. A case acts through the
client of its face; what people do meanwhile (`Workshop.api`, git) always goes by Gitea's dialect,
so that no case has to know its face.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from orderkit.adapters.gitea import GiteaForge
from orderkit.adapters.github import GitHubForge
from orderkit.adapters.gitlab import GitLabForge
from orderkit.ports.forge import Forge

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Target, Workshop


class Client(Forge, Protocol):
    """A client of the port that is closed at the end."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Account:
    """Whose client: a login with a password, or a token."""

    login: str = ""
    password: str = ""
    token: str = ""


@dataclass(frozen=True)
class Face:
    """One dialect of a forge."""

    client: Callable[[Target, Account, Workshop], Client]
    """Makes the client of an account; the workshop makes tokens where passwords do not count."""
    draft: str = "WIP:"
    """How the title of a draft begins."""
    group: str = ""
    """The path of the group that all organisations are in."""


def _gitea(target: Target, account: Account, _: Workshop) -> Client:
    return GiteaForge(
        target.url,
        token=account.token,
        user=account.login,
        password=account.password,
        allow_http=target.real,
    )


def _github(target: Target, account: Account, shop: Workshop) -> Client:
    """Return a client of GitHub's dialect, which knows no passwords."""
    token = account.token
    if not token:
        auth = (account.login, account.password)
        token = shop.token("all", of=auth).removeprefix("token ")
    return GitHubForge(target.url, token=token)


def _gitlab(target: Target, account: Account, shop: Workshop) -> Client:
    """Return the client of a group below another one; GitLab takes tokens only."""
    token = account.token or shop.token("all", of=(account.login, account.password))[6:]
    url = target.url.removesuffix(f"/{GITLAB_GROUP}")
    return GitLabForge(url, token=token, group=GITLAB_GROUP, allow_http=target.real)


GITLAB_GROUP = "acme/platform"
"""Where the organisations of the GitLab face are: subgroups of a subgroup."""
GITEA, GITHUB = Face(_gitea), Face(_github)
GITLAB = Face(_gitlab, "Draft:", GITLAB_GROUP)
FACES: Mapping[str, Face] = {
    "embedded": GITEA,
    "github": GITHUB,
    "gitlab": GITLAB,
    "real": GITEA,
}
"""By the parameter `target`. ``test_forge_port*`` runs on all, the other modules on Gitea only."""
