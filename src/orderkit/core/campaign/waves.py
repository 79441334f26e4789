"""
Which orders are in which wave.

Orders are taken in the order of a hash of campaign and order, so that a share has orders of every
team, and that the same campaign has the same waves wherever they are worked out. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence

from ground.errors import InvalidInputError
from orderkit.core.campaign.definition import Campaign, Wave
from orderkit.core.campaign.record import WaveRecord

LATE = "late"
"""The wave of orders that were placed, or came to match, while the campaign ran."""
_REST = "rest"


def sampled(campaign: Campaign, orders: Collection[str]) -> list[str]:
    """Return the campaign's share of the orders, in the order in which waves take them."""
    mixed = sorted(orders, key=lambda order: (_hash(campaign.name, order), order))
    share = campaign.which.share
    return mixed if share is None else mixed[: _part(share, len(mixed))]


def assigned(campaign: Campaign, orders: Collection[str]) -> tuple[WaveRecord, ...]:
    """
    Distribute all orders over the waves; each is in exactly one.

    Raises:
        InvalidInputError: A wave names an order that the campaign does not have.
    """
    mixed = sampled(campaign, orders)
    named = {order for wave in campaign.waves for order in wave.orders}
    unknown = sorted(named - set(mixed))
    if unknown:
        raise InvalidInputError(
            "spec.waves", unknown[0], "is named by a wave, and is no order of this campaign",
            hint="compare with spec.which: 'orderkit campaign plan' lists the orders",
        )  # fmt: skip
    left = [order for order in mixed if order not in named]
    waves = []
    for number, wave in enumerate(campaign.waves):
        orders_of, left = _taken(wave, left, len(mixed))
        waves.append(WaveRecord(wave.name or f"wave {number + 1}", orders_of))
    if left:
        waves.append(WaveRecord(_REST if campaign.waves else "all", tuple(left)))
    return tuple(waves)


def _taken(wave: Wave, left: list[str], total: int) -> tuple[tuple[str, ...], list[str]]:
    if wave.orders:
        return wave.orders, left
    count = len(left)
    if wave.count is not None:
        count = wave.count
    elif wave.share is not None:
        count = _part(wave.share, total)
    return tuple(left[:count]), left[count:]


def late(campaign: Campaign, matching: Collection[str], waves: Sequence[WaveRecord]) -> list[str]:
    """Return the orders that match now and are in no wave, if the campaign is open for them."""
    if not campaign.which.is_open:
        return []
    known = set(_all(waves))
    return [order for order in sampled(campaign, matching) if order not in known]


def _all(waves: Sequence[WaveRecord]) -> Iterator[str]:
    return (order for wave in waves for order in wave.orders)


def _part(percent: int, total: int) -> int:
    """Return a share of a number, rounded up: a share of one order is one."""
    return -(-percent * total // 100)


def _hash(campaign: str, order: str) -> bytes:
    return hashlib.sha256(f"{campaign}\0{order}".encode()).digest()
