"""
How releases of Gitea, and Forgejo, answer differently: one table, one column each.

`BEHAVIOURS` is the whole list of differences that the embedded forge can show. The column
"1.26" is observed on Gitea 1.26.0; "1.24" (the release idpbuilder installs) and "forgejo" are
read from their sources. What is in no column is the same everywhere, or not told apart here.

Called by ``EmbeddedForge``, which is given a name, and by the endpoints, which ask the table
and never the version text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orderkit.adapters.embedded.forge.gitwrite import OPERATIONS, Problem
from orderkit.core.errors import InvalidInputError

DEFAULT = "1.26"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One column of the table."""

    name: str
    version: str
    """What ``GET /version`` says: the release imitated, and that it is not that release."""
    edit_refusals: Mapping[Problem, int]
    """Status of a refused POST or PUT of contents, one file or many."""
    delete_refusals: Mapping[Problem, int]
    """Status of a refused DELETE of one file."""
    operations: frozenset[str]
    """What an entry of a many-files POST may ask for; anything else is a 500."""
    put_without_sha_creates: bool
    """False: a PUT without ``sha`` is refused (422) before anything is looked at."""
    put_fills_empty_repository: bool
    """False: a PUT on an empty repository is refused (422)."""
    many_need_sha: bool
    """True: an update or delete in a many-files POST needs ``sha``, unless for a new branch."""

    scheduled_merge_starts_check: bool
    """False: a merge kept until checks pass is first tried at the next status."""
    merged_again_says: str
    """What a merge of a merged pull request is refused with (405)."""
    unreported_state: str
    """The combined state of a commit nobody has said anything about."""
    branches_are_updated: bool
    """Whether there is ``PUT /branches/{branch}``; else it is a 405."""


_EDIT: dict[Problem, int] = {
    "invalid": 422,
    "exists": 422,
    "stale": 422,
    "no_sha": 422,
    "missing": 404,
    "no_branch": 404,
    "prefix": 409,
    "race": 403,
    "outside": 500,
}
_OLD_EDIT: dict[Problem, int] = _EDIT | {"missing": 500, "race": 500}
_OLD_DELETE: dict[Problem, int] = _EDIT | {
    "invalid": 400,
    "exists": 400,
    "stale": 400,
    "no_sha": 400,
    "race": 500,
}
_OLD_OPERATIONS = frozenset({"create", "update", "delete"})

BEHAVIOURS: Mapping[str, Behaviour] = {
    "1.26": Behaviour(
        name="1.26",
        version="1.26.0+orderkit",
        edit_refusals=_EDIT,
        delete_refusals=_EDIT,
        operations=OPERATIONS,
        put_without_sha_creates=True,
        put_fills_empty_repository=True,
        many_need_sha=False,
        scheduled_merge_starts_check=True,
        merged_again_says="The PR is already merged",
        unreported_state="pending",
        branches_are_updated=True,
    ),
    "1.24": Behaviour(
        name="1.24",
        version="1.24.3+orderkit",
        edit_refusals=_OLD_EDIT,
        delete_refusals=_OLD_DELETE | {"no_branch": 500},
        operations=_OLD_OPERATIONS,
        put_without_sha_creates=False,
        put_fills_empty_repository=False,
        many_need_sha=False,
        scheduled_merge_starts_check=False,
        merged_again_says="",
        unreported_state="",
        branches_are_updated=False,
    ),
    "forgejo": Behaviour(
        name="forgejo",
        version="15.0.0-orderkit+gitea-1.22.0",
        edit_refusals=_OLD_EDIT | {"stale": 409},
        delete_refusals=_OLD_DELETE,
        operations=_OLD_OPERATIONS,
        put_without_sha_creates=False,
        put_fills_empty_repository=False,
        many_need_sha=True,
        scheduled_merge_starts_check=False,
        merged_again_says="",
        unreported_state="",
        branches_are_updated=False,
    ),
}


def behaviour_named(name: str) -> Behaviour:
    """
    Return a column of the table.

    Raises:
        InvalidInputError: There is none of that name.
    """
    found = BEHAVIOURS.get(name)
    if found is None:
        known = ", ".join(BEHAVIOURS)
        raise InvalidInputError("behaviour", name, f"is not known (there are {known})")
    return found
