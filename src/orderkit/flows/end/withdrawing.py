"""The end of an order that waits for approval: it has no parts, and nothing of it was delivered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from ground.errors import NotFoundError, RefusedError
from orderkit.core.kit.kit_file import End
from orderkit.core.order.end_record import EndRecord, Survivor
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.order.approval_records import waiting_order
from orderkit.flows.platform import Platform, ledger_snapshot, published_kit, write_ledger
from orderkit.ports.forge import Operation


def begin_withdrawal(
    platform: Platform,
    entry: OrderEntry,
    *,
    requester: str,
    proof: str,
    notes: Sequence[tuple[str, str]],
    repository: Survivor | None,
) -> EndRecord:
    """
    Replace the record of a waiting order by that of its end; return the latter.

    Args:
        repository: What becomes of the repository. None: as the kit says.

    Raises:
        NotFoundError: It does not wait any more.
        ConflictError: Somebody else withdraws it at the same time.
    """
    base = ledger_snapshot(platform)
    waiting = waiting_order(platform, entry, base.commit)
    if waiting is None:
        raise NotFoundError(f"{entry.order} does not wait any more", hint="repeat the command")
    end = End()
    with suppress(NotFoundError):  # the pack lost the kit: its orders must still be able to end
        end = published_kit(platform, waiting.kit).end
    record = EndRecord(
        order=entry.order,
        kit=waiting.kit,
        requester=requester,
        repository=repository or end.repository,
        step="unregistering",
        started_at=platform.clock.now().isoformat(timespec="seconds"),
        must_be_gone=(),
    )
    contents = {
        entry.end_path: record.to_yaml(),
        entry.waiting_path: None,
        entry.application_path: None,
    }
    operation = Operation(
        f"end-{entry.order}-withdrawn-{record.started_at}",
        requester,
        f"{entry.order}: withdrawn before it was delivered",
        proof,
        tuple(notes),
    )
    write_ledger(platform, contents, operation, base=base)
    return record


def close_proposals(platform: Platform, entry: OrderEntry) -> None:
    """Close what proposes an order that was withdrawn. Idempotent."""
    branch = re.compile(rf"orderkit/{entry.order}-[0-9a-f]{{10}}")
    for pull in tuple(platform.forge.pulls(platform.ledger)):
        if branch.fullmatch(pull.head):
            platform.forge.close_pull(platform.ledger, pull.number)
            with suppress(RefusedError):  # protected: whoever did that may remove it
                platform.forge.delete_branch(platform.ledger, pull.head)
