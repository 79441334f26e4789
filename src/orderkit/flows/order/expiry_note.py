"""
The lease of a new order, and its expiry shown in the order's own XR file.

`note_expiry` writes the expiry as an annotation, for people. The ledger counts: whoever edits the
annotation changes nothing, and ``orderkit repair`` puts it back.

`new_lease` is the lease of an order that enters the ledger.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ground.errors import InvalidInputError, OrderkitError
from ground.names import MAIN, CommitSha
from ground.objects.kube_objects import annotations_of, dig
from orderkit.core.order.lease import EXPIRES_AT, grant, policy_of
from orderkit.flows.argocd.commit_pinning import deliver
from orderkit.flows.order.live_order import LiveOrder, find_living, read_xr
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import in_rounds
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.requesters import Requester
from yamlfiles import edit as yamledit

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


def note_expiry(
    platform: Platform,
    order: str | LiveOrder,
    expires: str,
    requester: Requester,
    head: CommitSha | None = None,
) -> bool:
    """
    Make sure that the XR's file says when the order expires. Idempotent.

    Returns whether it was written now.

    Args:
        head: Of ``main``, if it was read before; the write compares the file with it.

    Raises:
        OrderkitError: It cannot be written: its repository is archived or damaged, its text cannot
            be edited, or the forge failed. The lease is not affected.
    """
    live = order if isinstance(order, LiveOrder) else find_living(platform, order)
    known = [head] if head else []

    def attempt() -> bool:
        head = known.pop() if known else platform.forge.head(live.repository)
        if head is None:
            return False
        xr_file = read_xr(platform, live, head)
        if annotations_of(xr_file.xr).get(EXPIRES_AT) == expires:
            deliver(platform, live.entry, head, requester.ref, requester.proof)
            return False
        path = (*xr_file.steps, "metadata", "annotations", EXPIRES_AT)
        edit = yamledit.Edit(path, value=expires, document=xr_file.document)
        data = yamledit.edit(xr_file.data, [edit], name=str(xr_file.path))
        operation = Operation(
            f"lease-{live.entry.order}-{expires}-after-{xr_file.sha[:8]}",
            requester.ref,
            f"{live.entry.order}: expires at {expires}",
            requester.proof,
        )
        change = FileChange(xr_file.path, data, xr_file.sha)
        write_result = platform.forge.write(live.repository, [change], operation)
        deliver(platform, live.entry, write_result, requester.ref, requester.proof)
        return True

    return in_rounds(attempt)


def noted_expiry(platform: Platform, order: str) -> str:
    """
    Return the expiry that the XR's file says; empty if it says none.

    Raises:
        OrderkitError: The order or its XR cannot be read.
    """
    live = find_living(platform, order)
    head = platform.forge.head(live.repository)
    notes: dict[str, Any] = dict(annotations_of(read_xr(platform, live, head).xr)) if head else {}
    text = notes.get(EXPIRES_AT) or ""
    # whoever can push wrote it: what is not a time is never shown
    is_time = isinstance(text, str) and (not text or _TIME.fullmatch(text))
    return str(text) if is_time else "something else"


def try_note_expiry(
    platform: Platform,
    order: str | LiveOrder,
    expires: str,
    requester: Requester,
    head: CommitSha | None = None,
) -> str:
    """Do the same as `note_expiry`; return why it could not be done, empty if it was."""
    try:
        note_expiry(platform, order, expires, requester, head)
    except OrderkitError as error:
        return f"its file on {MAIN} does not say so yet: {error}"
    return ""


def new_lease(platform: Platform, live: LiveOrder, requester: str) -> dict[str, str]:
    """
    Return the lease of a new order, as annotations; none if it lives without an expiry.

    Raises:
        InvalidInputError: It asks for a longer one than its kit grants.
    """
    kit, path = live.kit, live.kit.lease.term_field
    policy = policy_of(kit.lease, live.entry.team)
    if policy is None:
        return {}
    head = platform.forge.head(live.repository) if path else None
    xr = read_xr(platform, live, head).xr if head else {}
    asked = dig(xr, "spec", *path.split(".")) if path else None
    try:
        granted = grant(policy, platform.clock.now(), asked, by=requester)
    except InvalidInputError as error:
        name = kit.parameter(path) if path else "lease"
        raise InvalidInputError(name, error.value, error.rule, hint=error.hint) from error
    return granted.annotations() if granted else {}


def note_new_expiry(
    platform: Platform,
    live: LiveOrder,
    by: Requester,
    lease: Mapping[str, str],
    head: Callable[[], CommitSha | None] = lambda: None,
) -> None:
    """Write the expiry into the order's own file, for people, if that is possible now."""
    if expires := lease.get(EXPIRES_AT):
        try_note_expiry(platform, live, expires, by, head())
