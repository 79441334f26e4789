"""
The kinds of forges: what each can do, and where its pages are.

A flow never asks for the kind. Where a decision depends on the forge, it asks for a capability.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

ForgeKind = Literal["gitea", "github", "gitlab"]
FILE_PAGE = r"(?:src/(?:branch|commit|tag)|(?:-/)?(?:blob|tree))"
"""A pattern of what stands between a repository's address and a branch, on every forge."""


@dataclass(frozen=True, slots=True)
class ForgePages:
    """Where a forge shows files, commits and pull requests, below the address of a repository."""

    branch: str = "src/branch/"
    commit_files: str = "src/commit/"
    commit: str = "commit/"
    pull: str = "pulls/"
    has_root: bool = True
    """Whether the portal's catalog takes ``/x`` for a path from the root of the branch."""

    def folder(self, repository_url: str, branch: str) -> str:
        """Return the address of a branch's files, with a final slash."""
        return f"{repository_url}/{self.branch}{quote(branch)}/"

    def file_at(self, repository_url: str, commit: str, path: str) -> str:
        """Return the address of a file at a commit."""
        return f"{repository_url}/{self.commit_files}{commit}/{quote(path)}"

    def commit_page(self, repository_url: str, commit: str) -> str:
        """Return the address of a commit."""
        return f"{repository_url}/{self.commit}{commit}"


@dataclass(frozen=True, slots=True)
class ForgeCapabilities:
    """What a forge can do, as far as a flow decides by it or doctor reports it."""

    kind: ForgeKind
    title: str
    """Its name, for people."""
    pages: ForgePages
    can_make_organisations: bool = True
    """Whether our credentials may; else a forge admin makes the organisation of each team."""
    deletes_at_once: bool = True
    """Whether a deleted repository is gone when the call returns; else at a later date."""
    makes_readers: bool = True
    """Whether Orderkit makes the credential with which Argo CD reads one organisation."""
    requires_approvals: bool = True
    """Whether the forge itself can refuse a merge without an approval."""
    signs_commits: bool = False
    """Whether the forge signs the commits that we write, besides our own trailers."""
    organisations_have_webhooks: bool = True
    """Whether one webhook hears of all repositories of an organisation, in every licence."""
    makes_executables: bool = True
    """Whether a commit through the API can make a file executable."""

    @property
    def report(self) -> str:
        """What holds on this forge, in one line for people."""
        facts = {
            "organisations are made by Orderkit": self.can_make_organisations,
            "organisations are made by a forge admin": not self.can_make_organisations,
            "deleted repositories are gone at once": self.deletes_at_once,
            "deleted repositories are gone later": not self.deletes_at_once,
            "Orderkit makes Argo CD's credentials": self.makes_readers,
            "platform.yaml names Argo CD's credentials": not self.makes_readers,
            "the forge requires approvals": self.requires_approvals,
            "only Orderkit's status requires approvals": not self.requires_approvals,
            "the forge signs our commits": self.signs_commits,
            "each repository has a webhook": not self.organisations_have_webhooks,
        }
        return f"{self.title}: {'; '.join(text for text, holds in facts.items() if holds)}"


GITEA = ForgeCapabilities("gitea", "Gitea", ForgePages(has_root=False), makes_executables=False)
GITHUB = ForgeCapabilities(
    "github",
    "GitHub",
    ForgePages(branch="blob/", commit_files="blob/", pull="pull/"),
    can_make_organisations=False,
    makes_readers=False,
    signs_commits=True,
)
GITLAB = ForgeCapabilities(
    "gitlab",
    "GitLab",
    ForgePages("-/blob/", "-/blob/", "-/commit/", "-/merge_requests/"),
    deletes_at_once=False,
    requires_approvals=False,
    organisations_have_webhooks=False,
)
"""Without what a licence or a setting of the one forge in use adds."""
KINDS: Mapping[ForgeKind, ForgeCapabilities] = {
    "gitea": GITEA,
    "github": GITHUB,
    "gitlab": GITLAB,
}
