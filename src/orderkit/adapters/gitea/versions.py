"""
What we know of the servers we may meet: which rules the client relies on, and how we know them.

The client never looks at the version text to decide what to do; it tells behaviours apart by
what the server answers. This table is for people: ``orderkit doctor`` says whether the contract
suite ran against a server's release (*observed*), whether the server is too old, or that nobody
tried it, and docs/forge.md prints it.

Called by ``client``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from orderkit.ports.forge import Evidence

OLDEST = (1, 26)
"""The release that the rules were observed on, and the oldest that is supported."""


@dataclass(frozen=True, slots=True)
class ServerBehaviour:
    """One behaviour that writing safely depends on, and what Gitea 1.26.0 answers."""

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


def evidence(version: str) -> Evidence:
    """Return how well we know a server of this version text."""
    oldest = ".".join(map(str, OLDEST))
    if "gitea-" in version or "forgejo" in version.lower():
        return Evidence(version, "unknown", "Forgejo: nobody has tried Orderkit with it")
    release = re.match(r"(\d+)\.(\d+)\b", version)
    if release is None:
        return Evidence(version, "unknown", "no version that we can read")
    number = (int(release[1]), int(release[2]))
    if number < OLDEST:
        return Evidence(version, "too old", f"Gitea {release[0]} is older than {oldest}")
    if number == OLDEST:
        return Evidence(version, "observed", f"Gitea {oldest}.0: {len(RULES)} rules observed")
    return Evidence(version, "unknown", f"newer than {oldest}, the release that was tried")
