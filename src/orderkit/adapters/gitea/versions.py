"""
Server behaviours that the client relies on, and what a version text of a server tells.

The client never decides by the version text; it reads the behaviour from the server's answers.
Releases and their support are in ``core.platform.neighbours``; docs/forge.md prints the rules.
"""

from __future__ import annotations

from dataclasses import dataclass

from orderkit.core.platform.neighbours import GITEA, ReleaseVerdict, judge_release


@dataclass(frozen=True, slots=True)
class ServerBehaviour:
    """A situation that safe writes depend on, and the answer of Gitea 1.26.0."""

    situation: str
    answer: str


RULES = (
    ServerBehaviour("an entry's sha is not the file's", "422"),
    ServerBehaviour("an update without sha in a commit of many files", "accepted"),
    ServerBehaviour("a create on an existing path", "422"),
    ServerBehaviour("an update or delete of a missing path", "404"),
    ServerBehaviour("another writer moved the branch", "403 with git's text"),
    ServerBehaviour("the same bytes again", "an empty commit"),
    ServerBehaviour("an archived repository", "423"),
    ServerBehaviour("a branch from an unknown commit", "500"),
    ServerBehaviour("a merge that is still checked, or conflicts, or is empty", "405"),
    ServerBehaviour("a merge at another head", "409"),
    ServerBehaviour("two open pull requests of one pair at once", "both accepted"),
    ServerBehaviour("a new secret for a webhook", "ignored"),
    ServerBehaviour("a comment on a missing issue", "500"),
    ServerBehaviour("a status for an unknown commit", "500"),
)


def judge_gitea(version: str) -> ReleaseVerdict:
    """Return how well a server with this version text is known, and its known holes."""
    if "gitea-" in version or "forgejo" in version.lower():
        detail = (
            f"Forgejo {version[:40]}: its description of December 2024 has all requests of Orderkit"
            " for Gitea; no suite ran against it"
        )
        hint = "try it in an organisation of its own: orderkit forge check --live --organisation X"
        return ReleaseVerdict(version, "unknown", detail, hint)
    return judge_release(GITEA, version)
