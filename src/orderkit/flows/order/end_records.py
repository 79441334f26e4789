"""Read what the ledger records of an end that has begun (``core.order.end_record``)."""

from __future__ import annotations

from ground.names import MAIN
from orderkit.core.order.end_record import EndRecord, parse
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.platform import Platform, read_text


def begun_end(platform: Platform, entry: OrderEntry, ref: str = MAIN) -> EndRecord | None:
    """
    Return the record of an order's end; None if it has not begun, or is over.

    Args:
        ref: The commit or branch of the ledger to read.

    Raises:
        InvalidInputError: The record is broken.
    """
    text = read_text(platform, platform.ledger, entry.end_path, ref)
    return None if text is None else parse(text, name=str(entry.end_path))
