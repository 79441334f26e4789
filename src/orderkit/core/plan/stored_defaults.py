"""
Defaults that the API server stored in an XR and that Git does not show.

A default is written into an object when the object is created and stays there, whatever becomes of
the default: an order that leaves a field to its XRD keeps the value of the first day, even when the
same manifest is applied again (observed on Kubernetes 1.36). Only new orders and new fields get the
XRD's current default.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ground.objects.kube_objects import Manifest, dig
from ground.objects.values import ABSENT, Steps, path_text, same, value_at, with_value
from kubeschema.xrd import xr_kind

Defaults = Mapping[Steps, Any]
"""By the path below ``spec``. Defaults inside lists are not included."""


@dataclass(frozen=True, slots=True)
class DefaultChange:
    """A default that differs between two versions of an XRD; `ABSENT` if there is none."""

    path: str
    old: Any
    new: Any
    orders: int = 0
    """Number of existing orders that have the old default."""


def defaults_of(xrd: Manifest) -> Defaults:
    """Return the defaults of the referenceable version's ``spec``, as its author wrote them."""
    version = xr_kind(xrd).version
    entry = next(v for v in xrd["spec"]["versions"] if v["name"] == version)
    spec = dig(entry, "schema", "openAPIV3Schema", "properties", "spec", default={})
    return dict(_defaults(spec, ()))


def _defaults(schema: Any, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    for name, inner in (dig(schema, "properties", default=None) or {}).items():
        if dig(inner, "default", default=ABSENT) is not ABSENT:
            yield (*steps, name), inner["default"]
        yield from _defaults(inner, (*steps, name))


def with_stored(xr: Manifest, stored: Manifest | None, defaults: Defaults) -> Manifest:
    """Return an XR from Git with the stored values of fields that it leaves to its XRD."""
    spec = xr.get("spec") or {}
    for steps in sorted(defaults, key=len):
        kept = value_at((stored or {}).get("spec") or {}, steps)
        above = value_at(spec, steps[:-1])
        if kept is ABSENT or value_at(spec, steps) is not ABSENT or not isinstance(above, dict):
            continue
        spec = with_value(spec, steps, kept)
    return {**xr, "spec": spec}


def default_changes(old: Defaults, new: Defaults) -> tuple[DefaultChange, ...]:
    """
    Return the defaults that are removed or changed.

    A default for a new field is not a change.
    """
    pairs = ((steps, was, new.get(steps, ABSENT)) for steps, was in old.items())
    return tuple(
        DefaultChange(path_text(s), was, now) for s, was, now in pairs if not same(was, now)
    )


def keeps(xr: Manifest, change: DefaultChange, old: Defaults) -> bool:
    """Return whether a stored XR has the old default."""
    steps = next(steps for steps in old if path_text(steps) == change.path)
    return same(value_at(xr.get("spec") or {}, steps), change.old)
