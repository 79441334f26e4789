"""
What an order only observes: parts of an import, and what managing them would change.

A managed resource with the policy Observe has both sides: ``forProvider`` is what the order would
set, ``status.atProvider`` is what the provider sees in the cloud. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import field

from ground.errors import shorten
from ground.objects.kube_objects import (
    EXTERNAL_NAME,
    Manifest,
    ObjectKey,
    annotations_of,
    condition,
    dig,
    only_observes,
)
from ground.objects.values import ABSENT, Steps, same, shown_pair
from ground.shapes import Answer, Known, LocatedAnswer, changed, located

if TYPE_CHECKING:
    from orderkit.core.order.change import FieldDifference

DIFFERENCES_MAX = 50
_REFERENCES = ("Ref", "Refs", "Selector")
"""Endings of fields that no cloud has: providers put the value that they lead to beside them."""
_MAPS = {"tags", "labels"}
"""Maps of which a provider removes the keys that it is not given."""
_PROVIDERS_KEY = "crossplane-"


class TakeoverDifference(Answer, frozen=True):
    """A field below ``forProvider`` that managing a resource would change, in words, cut."""

    path: str = field(name="field")
    actual: str | None = field(name="there")
    """None: the provider reports none."""
    order: str | None
    """What the order would set; None: it removes the value."""

    def __str__(self) -> str:
        actual = "(not set)" if self.actual is None else self.actual
        return f"{self.path}: {actual} → {'(removed)' if self.order is None else self.order}"


class ObservedPart(LocatedAnswer, frozen=True, kw_only=True):
    """One part that an order observes and does not manage."""

    external_name: Known = ""
    is_found: bool = field(name="found")
    """The provider reported what there is."""
    reason: Known = ""
    """Why it reported nothing."""
    differences: tuple[TakeoverDifference, ...] = ()

    def masked(self, redact: Callable[[str], str]) -> ObservedPart:
        """Return it with every text that somebody else wrote passed through `redact`."""
        differences = tuple(
            TakeoverDifference(
                difference.path,
                *(text and redact(text) for text in (difference.actual, difference.order)),
            )
            for difference in self.differences
        )
        return changed(self, reason=redact(self.reason), differences=differences)


def observed_part(manifest: Manifest) -> ObservedPart | None:
    """Return what a managed resource only observes; None if it manages, or is something else."""
    if not isinstance(dig(manifest, "spec", "forProvider"), dict) or not only_observes(manifest):
        return None
    name = str(annotations_of(manifest).get(EXTERNAL_NAME) or "")
    is_found = bool(dig(manifest, "status", "atProvider"))
    failed = [
        str(entry.get("message") or entry.get("reason") or "")
        for entry in (condition(manifest, "Synced"), condition(manifest, "Ready"))
        if entry and entry.get("status") == "False"
    ]
    reason = "" if is_found else next(iter(failed), "the provider has not looked yet")
    key = ObjectKey.of(manifest)
    return ObservedPart(
        **located(key),
        external_name=name,
        is_found=is_found,
        reason=reason,
        differences=takeover_differences(manifest),
    )


def takeover_differences(
    live: Manifest, desired: Manifest | None = None
) -> tuple[TakeoverDifference, ...]:
    """
    Return what managing a resource would change in the cloud; () if nothing was observed.

    Fields that the order does not set are left out, except in ``tags`` and ``labels``. A field that
    the provider does not report counts as not set.

    Args:
        live: The managed resource with its status.
        desired: Its desired state; None: as `live`.
    """
    at_provider = dig(live, "status", "atProvider", default=None)
    for_provider = dig(live if desired is None else desired, "spec", "forProvider", default=None)
    if not isinstance(at_provider, dict) or not at_provider or not isinstance(for_provider, dict):
        return ()
    differences = sorted(
        _differing(at_provider, for_provider, ()), key=lambda difference: difference.path
    )
    return tuple(map(_in_words, differences[:DIFFERENCES_MAX]))


def _in_words(difference: FieldDifference) -> TakeoverDifference:
    old, new = shown_pair(difference.old, difference.new)
    return TakeoverDifference(
        shorten(difference.path),
        None if difference.old is ABSENT else old,
        None if difference.new is ABSENT else new,
    )


def _differing(actual: Any, desired: Any, steps: Steps) -> Iterator[FieldDifference]:
    from orderkit.core.order.change import FieldDifference  # lazy: rows of orders need no schemas

    if isinstance(desired, dict) and (actual is ABSENT or isinstance(actual, dict)):
        present = {} if actual is ABSENT else actual
        for key, value in desired.items():
            if not str(key).endswith(_REFERENCES):
                yield from _differing(present.get(key, ABSENT), value, (*steps, str(key)))
        if steps and steps[-1] in _MAPS:
            for key in present.keys() - desired.keys():
                if not str(key).startswith(_PROVIDERS_KEY):
                    yield FieldDifference((*steps, str(key)), present[key], ABSENT)
    elif _are_lists_of_objects(actual, desired):
        for index, (old, new) in enumerate(zip(_paired(actual, desired), desired, strict=True)):
            yield from _differing(old, new, (*steps, index))
    elif not same(_sorted(actual), _sorted(desired)):
        yield FieldDifference(steps, actual, desired)


def _are_lists_of_objects(actual: Any, desired: Any) -> bool:
    return (
        isinstance(actual, list)
        and isinstance(desired, list)
        and len(actual) == len(desired)
        and all(isinstance(entry, dict) for entry in (*actual, *desired))
    )


def _paired(actual: list[dict[str, Any]], desired: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what there is in the order of what is desired: providers report sets in any."""
    if len(desired) > DIFFERENCES_MAX:  # more are not shown, and each is compared with each
        return actual
    remaining, paired = list(actual), []
    for wanted in desired:
        closest = min(remaining, key=lambda entry: sum(1 for _ in _differing(entry, wanted, ())))
        remaining.remove(closest)
        paired.append(closest)
    return paired


def _sorted(value: Any) -> Any:
    """Return a list in one order: providers report sets in any."""
    if not isinstance(value, list):
        return value
    return sorted(value, key=lambda entry: json.dumps(entry, sort_keys=True, default=str))
