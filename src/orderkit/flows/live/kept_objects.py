"""
What the live model keeps of an object of the cluster: as little as rows need.

Ten thousand orders of twenty objects each have to fit into memory, and no single object may fill
it, whatever somebody pushed. Applications and XRs become JSON texts without what no row shows; of
composed objects only their state stays. No value of a Secret is kept. Pure.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from compositions.composed_metadata import COMPOSITE_LABEL, composed_keys
from ground.argocd.delivery_hindrances import tracker
from ground.errors import shorten
from ground.objects.kube_objects import (
    Manifest,
    ObjectKey,
    annotations_of,
    controller,
    dig,
    labels_of,
    metadata,
)
from orderkit.core.order.order_view import PartState
from orderkit.core.order.part_states import part_state
from orderkit.core.secret_values import APPLIED

KEPT_BYTES_MAX = 64_000
"""Of one Application or XR; of a larger one only metadata and conditions stay."""
_METADATA = (
    "name", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp",
    "labels", "annotations", "finalizers",
)  # fmt: skip
_RESOURCES_MAX = 50
_COMPOSED_MAX = 1_000
_CONDITIONS_MAX = 10
_TEXT_MAX, _SHORT_TEXT_MAX = 1_000, 500


@dataclass(frozen=True, slots=True)
class KeptObject:
    """An XR or a composed object."""

    state: PartState
    composed: tuple[ObjectKey, ...] = ()
    """What it refers to, if it is an XR."""
    uid: str = ""
    """Of an XR; empty otherwise."""
    owner_uid: str = ""
    """The uid of its controller; empty if there is none."""
    order: str = ""
    """The order whose Application delivers it; empty for composed objects."""
    data: bytes = b""
    """The XR itself as JSON, if it is of a kit's kind."""


def kept_object(manifest: Manifest, *, is_kits: bool) -> KeptObject:
    """
    Return what stays of an object.

    Raises:
        ValueError: It has no kind or no name.
    """
    composed = _composed(manifest)
    owner = controller(manifest) or {}
    state = part_state(manifest)
    key = _shared(state.key)
    return KeptObject(
        replace(
            state,
            key=key,
            synced=_word(state.synced),
            ready=_word(state.ready),
            reason=_short(state.reason),
        ),
        composed,
        uid=_shared_text(metadata(manifest).get("uid")) if composed or is_kits else "",
        owner_uid=_shared_text(owner.get("uid")),
        order=tracker(manifest),
        data=_xr_text(manifest) if is_kits else b"",
    )


def is_composed(manifest: Manifest) -> bool:
    """Say whether Crossplane composed an object: everything else of its kind is left out."""
    return COMPOSITE_LABEL in labels_of(manifest)


def application_text(application: Manifest) -> bytes:
    """Return what stays of an Application: what judging its delivery needs."""
    status = _map(application.get("status"))
    operation = _map(status.get("operationState"))
    result = _map(operation.get("syncResult"))
    kept_status: dict[str, Any] = {
        **{name: status[name] for name in ("health", "conditions") if name in status},
        "sync": {k: v for k, v in _map(status.get("sync")).items() if k in ("status", "revision")},
        "resources": _listed(status.get("resources"))[:_RESOURCES_MAX],
        "history": [
            {k: entry.get(k) for k in ("revision", "deployedAt")}
            for entry in _listed(status.get("history"))[-1:]
        ],
    }
    if operation:
        kept_status["operationState"] = {
            **operation,
            "syncResult": {**result, "resources": _worst(_listed(result.get("resources")))},
        }
    kept = {**_identity(application), "spec": application.get("spec"), "status": kept_status}
    if "operation" in application:
        kept["operation"] = application["operation"]
    return _text(kept, application)


def _xr_text(xr: Manifest) -> bytes:
    """Return what stays of an XR: all but its references, which are kept as keys."""
    spec = {name: value for name, value in _map(xr.get("spec")).items() if name != "resourceRefs"}
    if isinstance(spec.get("crossplane"), dict):
        crossplane = spec["crossplane"]
        spec["crossplane"] = {k: v for k, v in crossplane.items() if k != "resourceRefs"}
    return _text({**_identity(xr), "spec": spec, "status": xr.get("status")}, xr)


def _identity(manifest: Manifest) -> dict[str, Any]:
    meta = {name: value for name in _METADATA if (value := metadata(manifest).get(name))}
    annotations = annotations_of(manifest)
    if APPLIED in annotations:
        meta["annotations"] = {k: v for k, v in annotations.items() if k != APPLIED}
    return {
        "apiVersion": manifest.get("apiVersion"),
        "kind": manifest.get("kind"),
        "metadata": meta,
    }


def _text(kept: Mapping[str, Any], manifest: Manifest) -> bytes:
    data = _json(kept)
    if len(data) <= KEPT_BYTES_MAX:
        return data
    status = _map(manifest.get("status"))
    judging = lambda entry: entry.get("type") not in ("Synced", "Ready", "Responsive")  # noqa: E731
    conditions = sorted(_listed(status.get("conditions")), key=judging)[:_CONDITIONS_MAX]
    return _json(
        {
            **_identity(manifest),
            "metadata": {name: _brief(value) for name, value in kept["metadata"].items()},
            "spec": {},
            "status": {
                "conditions": [_brief(entry) for entry in conditions],
                "sync": {name: dig(status, "sync", name) for name in ("status", "revision")},
            },
        }
    )


def _brief(value: Any) -> Any:
    """Return a text shortened, or a map of short values; long annotations are left out."""
    if isinstance(value, dict):
        short = {k: v for k, v in value.items() if len(str(v)) <= _TEXT_MAX or k == "message"}
        return {k: _brief(v) for k, v in islice(short.items(), _RESOURCES_MAX)}
    if isinstance(value, list):
        return [_brief(entry) for entry in value[:_RESOURCES_MAX]]
    return shorten(value, limit=_TEXT_MAX) if isinstance(value, str) else value


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def _composed(manifest: Manifest) -> tuple[ObjectKey, ...]:
    try:
        keys = [_shared(key) for key in islice(composed_keys(manifest), _COMPOSED_MAX)]
    except (AttributeError, KeyError, TypeError):
        return ()  # not the references of an XR
    return tuple(dict.fromkeys(keys))


def _shared(key: ObjectKey) -> ObjectKey:
    """Return a key whose texts share memory with the same texts elsewhere."""
    return ObjectKey(key.kind, _shared_text(key.name), _shared_text(key.namespace))


def _shared_text(value: object) -> str:
    return sys.intern(str(value)) if value else ""


def _word(status: str) -> str:
    return sys.intern(status[:20])


def _short(reason: str) -> str:
    return shorten(reason, limit=_SHORT_TEXT_MAX) if reason else ""


def _worst(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return results of a sync, those first that failed or are waited for."""
    is_done = lambda entry: entry.get("status") == "Synced" and not entry.get("hookPhase")  # noqa: E731
    return sorted(results, key=is_done)[:_RESOURCES_MAX]


def _map(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _listed(value: object) -> list[dict[str, Any]]:
    entries: Iterable[object] = value if isinstance(value, list) else ()
    return [entry for entry in entries if isinstance(entry, dict)]
