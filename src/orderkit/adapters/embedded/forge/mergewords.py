"""
The words of a merge commit where nobody chose others, as Gitea writes them.

Called by ``api.merges``.
"""

from __future__ import annotations

import re

from orderkit.adapters.embedded.forge.pullgit import Pull

_TRAILER = re.compile(r"[A-Z][A-Za-z0-9-]*:")


def default_message(pull: Pull, style: str) -> str:
    """Return title (and only that) of the merge commit; a rebase has none."""
    if style == "rebase":
        return ""
    if style == "squash":
        return f"{pull.title} (#{pull.number})"
    return f"Merge pull request '{pull.title}' (#{pull.number}) from {pull.head} into {pull.base}"


def with_coauthor(message: str, name: str, email: str) -> str:
    """Return the message with the trailers that name the author of squashed work."""
    person = f"{name} <{email}>"
    trailers = f"Co-authored-by: {person}\nCo-committed-by: {person}"
    last = message.rstrip().rpartition("\n")[2]
    joined = "\n" if "\n" in message and "-" in message and _TRAILER.match(last) else "\n\n"
    return f"{message.rstrip()}{joined}{trailers}"
