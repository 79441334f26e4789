"""
Undo what one commit did to an order, by a normal change.

Each field that the commit changed gets its previous value back; if somebody changed it again since,
that is a conflict. The same checks apply as for every change, so a revert may become a pull request
or be refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from ground.errors import RefusedError, UsageError
from orderkit.core.kit.kit_file import How
from orderkit.core.order.change import ABSENT, FieldConflictError, FieldDifference, FieldEdit
from orderkit.core.order.order_state import short
from orderkit.flows.change import Changed, ChangeRequest, change
from orderkit.flows.order.live_order import LiveOrder, find_commit, find_living
from orderkit.flows.order.order_history import changes_of
from orderkit.flows.platform import Platform
from orderkit.ports.forge import Commit
from orderkit.ports.requesters import Requester


@dataclass(frozen=True, slots=True, kw_only=True)
class RevertRequest:
    """Which commit of which order to undo, for whom. See `ChangeRequest`."""

    order: str
    commit: str
    """Full or abbreviated."""
    requester: Requester
    reason: str = ""
    how: How | None = None
    operation: str | None = None
    dry_run: bool = False
    accept_loss: bool = False
    trailers: tuple[tuple[str, str], ...] = ()


def revert(platform: Platform, revert_request: RevertRequest) -> Changed:
    """
    Undo a commit. Idempotent: undoing it again changes nothing.

    Raises:
        InvalidInputError: No such commit.
        RefusedError: It placed the order, or it cannot be read; or what `change` says.
        UsageError: It changed no field.
        FieldConflictError: A field was changed again since.
    """
    live = find_living(platform, revert_request.order)
    commit = find_commit(platform.forge, live, revert_request.commit, field="commit")
    edits = tuple(map(_reversed, _fields_of(platform, live, commit)))
    request = ChangeRequest(
        order=revert_request.order,
        edits=edits,
        requester=revert_request.requester,
        base=commit.id,  # a field that was changed again since is a conflict
        reason=revert_request.reason or f"reverts {short(commit.id)}: {commit.summary}",
        how=revert_request.how,
        operation=revert_request.operation,
        dry_run=revert_request.dry_run,
        accept_loss=revert_request.accept_loss,
        trailers=revert_request.trailers,
    )
    try:
        return change(platform, request)
    except FieldConflictError as error:
        error.hint = (
            "the field was changed again since; set the value you want with 'orderkit change'"
        )
        raise


def _fields_of(platform: Platform, live: LiveOrder, commit: Commit) -> tuple[FieldDifference, ...]:
    deed = changes_of(platform, live, commit)
    name = f"{live.entry.order} at {short(commit.id)}"
    if deed.unreadable:
        raise RefusedError(f"{name} cannot be reverted: {deed.unreadable}")
    if deed.first:
        raise RefusedError(
            f"{name} placed the order, so it cannot be reverted",
            hint=f"to end the order: orderkit destroy {live.entry.order}",
        )
    if not deed.fields:
        raise UsageError(
            f"{name} changed no field of the order: {commit.summary}",
            hint=f"see 'orderkit history {live.entry.order}'",
        )
    return deed.fields


def _reversed(difference: FieldDifference) -> FieldEdit:
    if difference.old is ABSENT:
        return FieldEdit(difference.path, "unset")
    return FieldEdit(difference.path, "set", difference.old)
