"""What no port can do on each forge: open main, allow squashes; and a client at an address."""

from __future__ import annotations

from typing import Any

from ground.names import MAIN, RepoId
from orderkit.adapters.gitea import GiteaForge
from orderkit.adapters.github import GitHubForge
from orderkit.adapters.gitlab import GitLabForge
from orderkit.cli.connecting import token
from orderkit.core.platform.settings import ForgeSettings
from orderkit.ports.forge import Forge
from orderkit.ports.signatures import Signatures

AnyForge = GiteaForge | GitHubForge | GitLabForge


def client_at(
    url: str, settings: ForgeSettings, signatures: Signatures | None, *, read_timeout_s: float
) -> AnyForge:
    """Return a client of the platform's forge that finds it at another address."""
    how: Any = {
        "token": token(settings), "signatures": signatures, "read_timeout_s": read_timeout_s,
    }  # fmt: skip
    if settings.kind == "github":
        return GitHubForge(url, **how)
    if settings.kind == "gitlab":
        return GitLabForge(url, group=settings.group, **how)
    return GiteaForge(url, **how)


def unprotect_main(forge: Forge, repo: RepoId) -> None:
    """Remove what protects ``main``, as an admin of the repository can; nothing may be there."""
    if isinstance(forge, GitHubForge):
        path = f"/repos/{repo}/rulesets"
        for rule in forge.http.get(path).json():
            forge.http.send("DELETE", f"{path}/{rule['id']}")
    elif isinstance(forge, GitLabForge):
        forge.http.send("DELETE", f"{_project(forge, repo)}/protected_branches/{MAIN}")
    else:
        assert isinstance(forge, GiteaForge)
        forge._http.send("DELETE", f"/repos/{repo}/branch_protections/{MAIN}")  # noqa: SLF001


def allow_squash_merges(forge: Forge, repo: RepoId) -> None:
    """Let the forge squash pull requests, as in orders of earlier releases."""
    assert isinstance(forge, AnyForge)
    if isinstance(forge, GitLabForge):
        body: dict[str, object] = {"squash_option": "default_off"}
        answer = forge.http.send("PUT", _project(forge, repo), body=body)
    else:
        allowed = {"allow_squash_merge": True}
        answer = forge._http.send("PATCH", f"/repos/{repo}", body=allowed)  # noqa: SLF001
    assert answer.ok, answer.text


def _project(forge: GitLabForge, repo: RepoId) -> str:
    found = forge.repo(repo)
    assert found is not None
    return f"/projects/{found.number}"
