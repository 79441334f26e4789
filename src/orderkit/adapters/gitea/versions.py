"""
What we know of the servers we may meet: which rules the client relies on, and how we know them.

The client never looks at the version text to decide what to do; it tells behaviours apart by
what the server answers. This table is for people: ``orderkit doctor`` says whether a server's
behaviour was *observed* (the contract suite ran against that release) or *read* (from its
source), and docs/forge.md prints it.

Called by ``reading``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from orderkit.ports.forge import Evidence

OBSERVED, READ = "1.26", ("1.24", "forgejo")


@dataclass(frozen=True, slots=True)
class ServerBehaviour:
    """One behaviour that writing safely depends on; a cell is what each server answers."""

    what: str
    observed: str
    """Gitea 1.26.0."""
    old: str
    """Gitea 1.24, read."""
    forgejo: str
    """Forgejo of early 2026, read."""


RULES = (
    ServerBehaviour("an entry's sha is not the file's", "422", "422", "409"),
    ServerBehaviour(
        "an update without sha in a commit of many files", "accepted", "accepted", "422"
    ),
    ServerBehaviour("a create on an existing path", "422", "422", "422"),
    ServerBehaviour("an update or delete of a missing path", "404", "500", "500"),
    ServerBehaviour("another writer moved the branch", "403 with git's text", "500", "500"),
    ServerBehaviour(
        "the same bytes again", "an empty commit", "an empty commit", "an empty commit"
    ),
    ServerBehaviour("an archived repository", "423", "423", "423"),
    ServerBehaviour("a branch from an unknown commit", "500", "500", "not known"),
    ServerBehaviour(
        "a merge that is still checked, or conflicts, or is empty", "405", "405", "405"
    ),
    ServerBehaviour("a merge at another head", "409", "409", "409"),
    ServerBehaviour(
        "two open pull requests of one pair at once", "both accepted", "not known", "not known"
    ),
    ServerBehaviour("a new secret for a webhook", "ignored", "not known", "not known"),
    ServerBehaviour("a comment on a missing issue", "500", "500", "not known"),
    ServerBehaviour("a status for an unknown commit", "500", "500", "not known"),
)


def evidence(version: str) -> Evidence:
    """Return how well we know a server of this version text."""
    if "gitea-" in version or "forgejo" in version.lower():
        return Evidence(version, "read", f"Forgejo: {len(RULES)} rules read from its source")
    line = re.match(r"(\d+\.\d+)\b", version)
    if line and line[1] == OBSERVED:
        return Evidence(version, "observed", f"Gitea 1.26.0: {len(RULES)} rules observed")
    if line and line[1] in READ:
        return Evidence(
            version, "read", f"Gitea {line[1]}: {len(RULES)} rules read from its source"
        )
    return Evidence(version, "unknown", "neither observed nor read by us")
