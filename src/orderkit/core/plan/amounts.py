"""
Read the amounts that are paid for from a resource: exactly, or not at all.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from ground.objects.kube_objects import Manifest
from orderkit.core.plan.price_table import steps_of


class UnreadableAmountError(Exception):
    """An amount cannot be read; the message says why."""


def number_of(value: Any, path: str) -> Decimal:
    """
    Read a number or a Kubernetes quantity exactly.

    Raises:
        UnreadableAmountError: It is not a number or quantity, or negative.
    """
    from ground.objects.quantities import NoQuantity, Unsure, parse

    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnreadableAmountError(f"{path} is not an amount")
    try:
        number = parse(repr(value) if isinstance(value, float) else str(value))
    except (NoQuantity, Unsure) as error:
        raise UnreadableAmountError(f"{path}: {error}") from error
    if number < 0:
        raise UnreadableAmountError(f"{path} is negative: {number}")
    return number


def values_at(manifest: Manifest, path: str) -> list[Any]:
    """Return the values at a path; several if it goes through the items of a list."""
    nodes: list[Any] = [manifest]
    for step in steps_of(path):
        nodes = [child for value in nodes for child in _stepped(value, step)]
    return [node for node in nodes if node is not None]


def _stepped(value: Any, step: str | int | None) -> Sequence[Any]:
    if step is None:
        return value if isinstance(value, list) else ()
    if isinstance(step, int):
        return value[step : step + 1] if isinstance(value, list) else ()
    return (value[step],) if isinstance(value, Mapping) and step in value else ()
