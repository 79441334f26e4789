"""
The live state of an order as the starting point of its plan: drift, pauses, stored defaults.

A plan simulates an order as it should be. What the cluster has may differ: somebody edited a
composed resource, deleted one, or the order is paused. Crossplane undoes that whenever it
reconciles, so the difference belongs to what will happen. Live and composed resources are matched
by the annotation ``crossplane.io/composition-resource-name``. Only fields that the order composes
count: Crossplane leaves all others alone (server-side apply, observed on 2.3.4).

A default is written into an object when the object is created and stays there, whatever becomes of
the default: an order that leaves a field to its XRD keeps the value of the first day, even when the
same manifest is applied again (observed on Kubernetes 1.36). Only new orders and new fields get the
XRD's current default.

Pure.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compositions.paused import PAUSED, how_to_resume, is_paused
from ground.objects.kube_objects import Kind, Manifest, dig, metadata
from ground.objects.values import ABSENT, Steps, path_text, same, value_at, with_value
from kubeschema.xrd import xr_kind
from orderkit.core.order.change import FieldDifference
from orderkit.core.plan.assembly import Assembly, SecretField, key_text
from orderkit.core.plan.comparison import Drift, authored, is_other
from orderkit.core.secret_values import SECRET, is_secret, secrets_in, values_of

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


_LIST_KEYS = ("name", "key", "mountPath", "containerPort", "port", "id", "type", "topologyKey")
"""Fields that tell the entries of a list apart, as server-side apply does."""


@dataclass(frozen=True, slots=True)
class ObservedOrder:
    """What the cluster has of an order."""

    xr: Manifest
    resources: Mapping[str, Manifest]
    """By path."""
    emptied: bool = False
    """Recorded: fields that follow from Secrets are left out, so fields are not compared then."""


def from_live_state(
    before: Assembly, after: Assembly, live: ObservedOrder, git: Manifest
) -> tuple[Assembly, tuple[Drift, ...]]:
    """
    Return an order as it lives, to be compared with `after`, and its drift.

    If the XR has other values than Git, its parts follow those and are not compared: either Argo CD
    has yet to deliver what was just merged, or it undoes an edit within seconds.

    Args:
        before: The order as it should be now, composed with its live resources.
        git: Its XR as Git has it.
    """
    if xr_drifts := tuple(_xr_drift(live.xr, git)):
        return before, xr_drifts
    guarded = _touches_secrets(before, live)
    fields_count = not (live.emptied and guarded)
    resources: dict[str, Manifest] = dict(before.resources)
    drifts: list[Drift] = []
    hidden: set[SecretField] = set()
    for path, manifest in before.resources.items():
        if path not in live.resources:
            del resources[path]
            drifts.append(_missing(before, path))
        elif fields_count and not is_other(manifest, live.resources[path]):
            wanted = before.at_once.get(path, manifest)
            fields = tuple(drifted(wanted, live.resources[path]))
            resources[path] = _with_live(manifest, fields)
            hidden |= {(path, field.steps) for field in fields}
            drifts += [_edited(manifest, path, fields)] if fields else []
    for path, manifest in live.resources.items():
        if path in before.resources or path in before.kept:
            continue
        stuck = before.keeps(path)
        if stuck and after.keeps(path):
            continue
        drifts += [] if stuck else [_extra(manifest, path)]
        resources[path] = _start(manifest, after.resources.get(path))
        hidden |= {(path, (part,)) for part in manifest if part not in _IDENTITY}
        hidden |= {(path, ("metadata", part)) for part in ("labels", "annotations")}
    start = replace(before, resources=resources)
    return _guarded(start, live, hidden if guarded else set()), tuple(drifts)


_IDENTITY = ("apiVersion", "kind", "metadata")


def _touches_secrets(before: Assembly, live: ObservedOrder) -> bool:
    """Return whether a live field may hold what a Secret had, even if that is gone now."""
    traces = before.secret_traces
    return bool(
        traces.outcomes
        or any(Kind.parse(s.api_version, s.kind) == SECRET for s in before.requirements)
        or any(next(secrets_in(manifest), None) for manifest in live.resources.values())
    )


def _guarded(start: Assembly, live: ObservedOrder, hidden: set[SecretField]) -> Assembly:
    """Return the order as it lives, with what masks need to know about its live fields."""
    traces = start.secret_traces
    public = traces.public_keys
    values = {*traces.values, *values_of(live.resources.values(), public=public)}
    traces = replace(traces, values=frozenset(values), fields=traces.fields | frozenset(hidden))
    return replace(start, secret_traces=traces)


def _xr_drift(live: Manifest, git: Manifest) -> Iterator[Drift]:
    pairs = _drifted(git.get("spec") or {}, live.get("spec") or {}, ("spec",))
    fields = tuple(FieldDifference(steps, old, new) for steps, old, new in pairs)
    if fields:
        names = ", ".join(field.path for field in fields)
        message = f"{key_text(live)} has other values than Git in {names}: Argo CD applies Git's"
        yield Drift("", message, fields)


def _missing(before: Assembly, path: str) -> Drift:
    text = key_text(before.resources[path])
    if path in before.at_once:
        return Drift(path, f"{text} ({path}) is not in the cluster: Crossplane makes it again")
    return Drift(path, f"{text} ({path}) is yet to come: the order is not complete")


def _edited(manifest: Manifest, path: str, fields: Sequence[FieldDifference]) -> Drift:
    names = ", ".join(field.path for field in fields)
    message = f"{key_text(manifest)} ({path}) was changed in {names}: Crossplane changes it back"
    return Drift(path, message, tuple(fields))


def _extra(manifest: Manifest, path: str) -> Drift:
    """
    Return the drift of a live resource that is no longer composed.

    What another XR controls is not part of the order and not among its live resources.
    """
    text = f"{key_text(manifest)} ({path}) is no longer composed: Crossplane deletes it"
    return Drift(path, text)


def _start(live: Manifest, desired: Manifest | None) -> Manifest:
    """Return a live resource as it compares with what it becomes; as it is if it goes."""
    if desired is None or is_other(live, desired):
        return {key: value for key, value in live.items() if key != "status"}
    return _with_live(desired, tuple(drifted(desired, live)))


def _with_live(manifest: Manifest, fields: Sequence[FieldDifference]) -> Manifest:
    """Return a desired resource with the live values of some fields."""
    for field in fields:
        if value_at(manifest, field.steps) is not ABSENT:
            manifest = with_value(manifest, field.steps, field.old)
    return manifest


def drifted(desired: Manifest, live: Manifest) -> Iterator[FieldDifference]:
    """Yield the desired fields that a live resource has with another value, or lacks."""
    wanted, present = authored(desired), authored(live)
    if is_secret(wanted) and wanted.get("stringData"):
        texts = {key: _decoded(text) for key, text in (present.get("data") or {}).items()}
        present = {**present, "stringData": texts}
    for part in wanted:
        if part == "metadata":
            names = [name for name in ("labels", "annotations") if name in wanted[part]]
            compared: list[Steps] = [(part, name) for name in names]
        else:
            compared = [] if part in _IDENTITY else [(part,)]
        for steps in compared:
            pairs = _drifted(value_at(wanted, steps), value_at(present, steps), steps)
            yield from (FieldDifference(place, old, new) for place, old, new in pairs)


def _drifted(desired: Any, live: Any, steps: Steps) -> Iterator[tuple[Steps, Any, Any]]:
    """Yield a place, its live and its desired value, where they differ."""
    if isinstance(desired, dict) and isinstance(live, dict):
        for key, value in desired.items():
            yield from _drifted(value, live.get(key, ABSENT), (*steps, key))
        return
    pairs = _paired(desired, live)
    if pairs is not None:
        for index, (entry, other) in enumerate(pairs):
            yield from _drifted(entry, other, (*steps, index))
    elif not _is_equal(desired, live):
        yield steps, live, desired


def _paired(desired: Any, live: Any) -> list[tuple[Any, Any]] | None:
    """Pair the entries of two lists of maps; None if they are none, or cannot be paired."""
    if not (isinstance(desired, list) and isinstance(live, list) and desired):
        return None
    if not all(isinstance(entry, dict) for entry in (*desired, *live)):
        return None
    for key in _LIST_KEYS:
        by_key = {str(entry.get(key)): entry for entry in live}
        names = [str(entry[key]) for entry in desired if key in entry]
        if len(set(names)) == len(desired) and set(names) <= by_key.keys():
            return [(entry, by_key[str(entry[key])]) for entry in desired]
    return list(zip(desired, live, strict=True)) if len(desired) == len(live) else None


def _is_equal(desired: Any, live: Any) -> bool:
    if live is ABSENT:
        return _is_empty(desired)
    return same(desired, live) or _is_same_amount(desired, live)


def _is_empty(value: Any) -> bool:
    """Return whether the API server may leave a value out."""
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    return value is None or value in ([], "")


def _is_same_amount(desired: Any, live: Any) -> bool:
    """Return whether two values are one quantity, which the API server writes in its own way."""
    from ground.objects.quantities import NoQuantity, Unsure, parse

    if isinstance(desired, bool) or isinstance(live, bool):
        return False
    if not (isinstance(desired, int | float | str) and isinstance(live, str)):
        return False
    try:
        return bool(parse(str(desired)) == parse(live))
    except (NoQuantity, Unsure):
        return False


def _decoded(text: object) -> str:
    try:
        return base64.b64decode(str(text)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return str(text)


def paused_parts(
    before: Assembly, after: Assembly, live: ObservedOrder | None, git: Manifest
) -> dict[str, str]:
    """
    Return what is paused after a change, by path, with what that means.

    An annotation that Git or a station never set was set by hand, and stays.
    """
    paused = {}
    resources = {**after.kept, **after.resources}
    for path in ("", *resources):
        new = after.input_xr if not path else resources[path]
        old = git if not path else before.resources.get(path, {})
        live_object = (live.resources.get(path) if path else live.xr) if live else None
        by_hand = is_paused(live_object) and not is_paused(old)
        if is_paused(new) or by_hand:
            paused[path] = _paused_text(path, new, in_git=is_paused(new))
    return paused


def _paused_text(path: str, manifest: Manifest, *, in_git: bool) -> str:
    name = f"{Kind.of(manifest).kind} {metadata(manifest).get('name', '')}"
    if not path:
        where = "in Git" if in_git else "in the cluster"
        return (
            f'{name} is paused ({PAUSED}: "true" {where}): nothing of this happens until it is '
            f"resumed; {how_to_resume(manifest, in_git=in_git)}"
        )
    resume = "" if in_git else f"; {how_to_resume(manifest, in_git=False)}"
    return f"{key_text(manifest)} ({path}) is paused: nobody acts on its fields{resume}"
