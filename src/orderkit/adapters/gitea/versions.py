"""
Server behaviours that the client relies on, and the releases on which they were observed.

The client never decides by the version text; it reads the behaviour from the server's answers.
This table is for people: ``orderkit doctor`` says whether the contract suite ran against a server's
release (*observed*), whether the release is too old, or that it is untested, and docs/forge.md
prints the table.

Called by ``reading``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from orderkit.ports.forge import Evidence

OLDEST = (1, 26)
"""The oldest supported release, on which the rules were observed."""


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


def evidence(version: str) -> Evidence:
    """Return how well the behaviour of a server with this version text is known."""
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
