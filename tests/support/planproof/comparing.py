"""
What a plan foretold and what the cluster then holds, side by side: everything that differs.

Two things are not compared, because a cluster alone decides them: times and uids, and how it
writes an amount of memory (``1024Mi`` is read back as ``1Gi``). Everything else counts, and what
a plan says it cannot know must differ indeed: one that calls too much unknown is wrong too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from compositions.pipeline import UNMATCHED
from orderkit.core.plan import Assembly
from planproof.owned import applied_fields
from planproof.reading import Outcome

Manifest = dict[str, Any]
Path = tuple[str | int, ...]
_NOTHING = "(nothing)"
_ROUND = ("Synced", "Responsive")
"""Conditions that say how a round went."""


class Sort(StrEnum):
    """What kind of thing a plan got wrong."""

    MISSING = "foretold and not there"
    EXTRA = "there and not foretold"
    IDENTITY = "another kind, namespace or name"
    FIELD = "a field has another value"
    SPEC = "the XR's spec has another value"
    STATUS = "the XR's status has another value"
    CONDITION = "the XR has another condition"
    REFUSAL = "refused, or not"
    UNKNOWN = "called unknown, and as foretold"
    ACTION = "another thing happens to it"


@dataclass(frozen=True)
class Difference:
    """One thing that is not as foretold."""

    sort: Sort
    path: str
    foretold: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.path}: {self.sort}: {self.foretold!r:.200} / {self.found!r:.200}"


def compare(foretold: Assembly, found: Outcome) -> list[Difference]:
    """Return everything in which an assembly and what became of it differ."""
    return [
        *_sets(foretold, found),
        *_resources(foretold, found),
        *_xrs(foretold, found),
        *_refusal(foretold, found),
    ]


def _sets(foretold: Assembly, found: Outcome) -> Iterator[Difference]:
    for path in sorted(foretold.resources.keys() - found.parts.keys()):
        yield Difference(Sort.MISSING, path, _name(foretold.resources[path]), _NOTHING)
    for path in sorted(found.parts.keys() - foretold.resources.keys()):
        yield Difference(Sort.EXTRA, path, _NOTHING, _name(found.parts[path]))


def _resources(foretold: Assembly, found: Outcome) -> Iterator[Difference]:
    for path in sorted(foretold.resources.keys() & found.parts.keys()):
        one, other = foretold.resources[path], found.parts[path]
        guessed = {each for each in foretold.guesses if each.path == path}
        named = {each.field for each in guessed}
        here, there = _name(one), _name(other)
        if "metadata.name" in named:
            here, there = here[:3], there[:3]
        if here != there:
            yield Difference(Sort.IDENTITY, path, here, there)
        wanted, real = bare(one), bare(applied_fields(other))
        for field, was, became in walk(wanted, real):
            if field not in named:
                yield Difference(Sort.FIELD, f"{path} {field}", was, became)
        yield from _needless(path, one, other, named)


def _needless(path: str, one: Manifest, other: Manifest, named: set[str]) -> Iterator[Difference]:
    """Yield what a plan calls a guess although it is right."""
    differing = {field for field, _, _ in walk(one, other)}
    for field in sorted(named - differing):
        yield Difference(Sort.UNKNOWN, f"{path} {field}", "a guess", "as foretold")


def _xrs(foretold: Assembly, found: Outcome) -> Iterator[Difference]:
    """Compare the XR itself, and what nested ones show."""
    for field, was, became in walk(_spec(foretold.xr), _spec(found.xr)):
        yield Difference(Sort.SPEC, field, was, became)
    told = _ROUND if foretold.faults else ()  # a refusal is compared for itself, with its reason
    guessed = {each.field.removeprefix("status.") for each in foretold.guesses if not each.path}
    yield from (d for d in _status("", foretold.xr, found.xr) if d.path not in {*told, *guessed})
    nested = {path.rpartition("/")[0] for path in found.parts if "/" in path}
    nested |= {path.rpartition("/")[0] for path in foretold.resources if "/" in path}
    for path in sorted(nested & found.parts.keys() & foretold.observed.keys()):
        yield from _status(path, foretold.observed[path], found.parts[path])


def _status(path: str, foretold: Manifest, found: Manifest) -> Iterator[Difference]:
    one, other = foretold.get("status") or {}, found.get("status") or {}
    said, shown = ({k: v for k, v in s.items() if k != "conditions"} for s in (one, other))
    for field, was, became in walk(said, shown):
        yield Difference(Sort.STATUS, f"{path} {field}".strip(), was, became)
    was_said, is_said = _conditions(one), _conditions(other)
    for type_ in sorted(was_said.keys() | is_said.keys()):
        was, became = was_said.get(type_, _NOTHING), is_said.get(type_, _NOTHING)
        if was != became:
            yield Difference(Sort.CONDITION, f"{path} {type_}".strip(), was, became)


def _conditions(status: Manifest) -> dict[str, Any]:
    return {
        each["type"]: (each["status"], each.get("reason"), each.get("message") or "")
        for each in status.get("conditions") or ()
    }


def _refusal(foretold: Assembly, found: Outcome) -> Iterator[Difference]:
    """A plan with faults is one whose XR is not synced, for the reason that was foretold."""
    status, _, message = _conditions(found.xr.get("status") or {}).get("Synced", ("", "", ""))
    refused = status != "True"
    if refused != bool(foretold.faults):
        yield Difference(Sort.REFUSAL, "", [str(each) for each in foretold.faults], message)
        return
    for fault in foretold.faults:
        words = fault.message.partition(UNMATCHED)[0]  # the rest is ours
        if not fault.path and words not in message:
            yield Difference(Sort.REFUSAL, fault.where, fault.message, message)


def changes(before: Outcome | None, after: Outcome) -> dict[str, tuple[str, frozenset[str]]]:
    """
    Return what happened to each resource between two looks, and to which of its fields.

    By path: ``added``, ``removed``, ``changed``, or ``replaced``: another object of that path.
    """
    old = before.parts if before is not None else {}
    happened = {path: ("added", frozenset[str]()) for path in after.parts.keys() - old.keys()}
    happened |= {path: ("removed", frozenset[str]()) for path in old.keys() - after.parts.keys()}
    for path in old.keys() & after.parts.keys():
        one, other = (applied_fields(each.parts[path]) for each in (before, after) if each)
        fields = frozenset(field for field, _, _ in walk(bare(one), bare(other)))
        if _name(old[path]) != _name(after.parts[path]):
            happened[path] = ("replaced", fields)
        elif fields:
            happened[path] = ("changed", fields)
    return happened


def bare(manifest: Manifest) -> Manifest:
    """Return an object without what only the cluster knows: name and namespace are `_name`'s."""
    meta = dict(manifest.get("metadata") or {})
    for key in ("name", "namespace", "uid", "creationTimestamp", "generateName"):
        meta.pop(key, None)
    if "ownerReferences" in meta:
        owners = [{k: v for k, v in o.items() if k != "uid"} for o in meta["ownerReferences"]]
        meta["ownerReferences"] = owners
    return {**{k: v for k, v in manifest.items() if k != "status"}, "metadata": meta}


def walk(one: Any, other: Any, path: Path = ()) -> Iterator[tuple[str, Any, Any]]:
    """Yield each field that differs: its path, and both values."""
    if isinstance(one, dict) and isinstance(other, dict) and ((one and other) or one == other):
        for key in sorted(one.keys() | other.keys()):
            yield from walk(one.get(key, _NOTHING), other.get(key, _NOTHING), (*path, key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from walk(a, b, (*path, index))
    elif one != other and not _same_amount(path, one, other):
        yield "".join(_step(each) for each in path).removeprefix("."), one, other


def _step(step: str | int) -> str:
    """Write one step of a path as plans write it."""
    plain = isinstance(step, str) and re.fullmatch(r"[A-Za-z0-9_-]+", step)
    return f".{step}" if plain else f"[{step}]"


_AMOUNT = re.compile(r"([0-9.]+)(m|[KMGT]i?)?\Z")
_FACTORS: Mapping[str, Decimal] = {
    "": Decimal(1), "m": Decimal("0.001"),
    **{unit: Decimal(1000) ** n for n, unit in enumerate("KMGT", 1)},
    **{f"{unit}i": Decimal(1024) ** n for n, unit in enumerate("KMGT", 1)},
}  # fmt: skip


def _same_amount(path: Path, one: Any, other: Any) -> bool:
    if len(path) < 2 or path[-2] not in ("requests", "limits"):
        return False
    found = [_AMOUNT.match(str(each)) for each in (one, other)]
    amounts = [Decimal(each[1]) * _FACTORS[each[2] or ""] for each in found if each]
    return len(amounts) == 2 and amounts[0] == amounts[1]


def _spec(xr: Manifest) -> Manifest:
    return {key: value for key, value in (xr.get("spec") or {}).items() if key != "crossplane"}


def _name(manifest: Manifest) -> tuple[str, ...]:
    meta = manifest["metadata"]
    return (manifest["apiVersion"], manifest["kind"], meta.get("namespace") or "", meta["name"])
