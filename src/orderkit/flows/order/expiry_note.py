"""
Show the expiry in the order's own XR file, as an annotation, for people.

The ledger counts: whoever edits the annotation changes nothing, and ``orderkit repair`` puts it
back. Called wherever a lease is granted, extended or moved.
"""

from __future__ import annotations

import re
from typing import Any

from ground.errors import OrderkitError
from ground.names import MAIN
from ground.objects.kube_objects import annotations_of
from orderkit.core.order.lease import EXPIRES_AT
from orderkit.flows.argocd.commit_pinning import deliver
from orderkit.flows.lost_races import in_rounds
from orderkit.flows.order.live_order import LiveOrder, find_living, read_xr
from orderkit.flows.platform import Platform
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.requesters import Requester
from yamlfiles import edit as yamledit

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)


def note_expiry(
    platform: Platform, order: str | LiveOrder, expires: str, requester: Requester
) -> bool:
    """
    Make sure that the XR's file says when the order expires. Idempotent.

    Returns whether it was written now.

    Raises:
        OrderkitError: It cannot be written: its repository is archived or damaged, its text cannot
            be edited, or the forge failed. The lease is not affected.
    """
    live = order if isinstance(order, LiveOrder) else find_living(platform, order)

    def attempt() -> bool:
        head = platform.forge.head(live.repository)
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
        deliver(platform, live.entry, write_result.commit, requester.ref, requester.proof)
        return True

    return in_rounds(attempt)


def noted_expiry(platform: Platform, order: str) -> str:
    """
    Return the expiry that the XR's file says; empty if it says none.

    Whoever can push wrote it: what is not a time is called so, and never shown.

    Raises:
        OrderkitError: The order or its XR cannot be read.
    """
    live = find_living(platform, order)
    head = platform.forge.head(live.repository)
    notes: dict[str, Any] = dict(annotations_of(read_xr(platform, live, head).xr)) if head else {}
    text = notes.get(EXPIRES_AT) or ""
    is_time = isinstance(text, str) and (not text or _TIME.fullmatch(text))
    return str(text) if is_time else "something else"


def try_note_expiry(
    platform: Platform, order: str | LiveOrder, expires: str, requester: Requester
) -> str:
    """Do the same as `note_expiry`; return why it could not be done, empty if it was."""
    try:
        note_expiry(platform, order, expires, requester)
    except OrderkitError as error:
        return f"its file on {MAIN} does not say so yet: {error}"
    return ""
