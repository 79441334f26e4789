"""
The input of a plan as a file: orders, and every object that was looked up.

A plan made from a snapshot needs no cluster: in a pack's CI, in a review, years later. The file is
JSON, and equal states give equal bytes; maps keep their order. Left out: fields that the API server
maintains (versions, field managers), and secrets. Of a Secret, including one wrapped in a
provider's Object, only the names of its keys are kept; what contains one of their values elsewhere
is left out too.

Pure; ``flows.composing.recording`` makes and uses snapshots, ``adapters.folders`` keeps them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from compositions.composed import RESOURCE_NAME_ANNOTATION
from ground.errors import InvalidInputError
from ground.objects.kube_objects import Kind, Manifest, ObjectKey, annotations_of, metadata
from ground.objects.values import ABSENT, Steps, value_at, with_value
from ground.secrets import redact
from orderkit.core.secret_values import (
    APPLIED,
    NO_SECRETS,
    OPEN_FIELDS,
    SecretTexts,
    is_secret,
    values_of,
)
from yamlfiles.format_versions import API_VERSION, refuse_newer

KIND = "PlanSnapshot"
VERSION = 1
"""Version of the format; other versions are refused."""
LEFT_OUT = ""
"""Placeholder for a Secret's values."""
_COUNTED = {"managedFields", "resourceVersion", "selfLink"}


@dataclass(frozen=True, slots=True)
class RecordedOrder:
    """An order as it was read."""

    order: str
    kit: str
    xr: Manifest
    """As read from Git or the cluster."""
    team: str = ""


@dataclass(frozen=True, slots=True)
class PlanSnapshot:
    """Orders and the objects around them, at one moment."""

    orders: tuple[RecordedOrder, ...]
    pack: str
    """The published pack: a commit, or a digest of its files."""
    schemas: Mapping[str, str]
    """Digest of the XRD of each kind of XR, by ``Kind.group``."""
    requested: tuple[ObjectKey, ...] = ()
    """Every object that was looked up, including those that did not exist."""
    listings: tuple[tuple[Kind, str], ...] = ()
    """Kinds that were listed, each with a namespace; empty: all namespaces."""
    objects: tuple[Manifest, ...] = ()
    plurals: Mapping[Kind, str | None] = field(default_factory=dict)
    """The resource name of each kind that was looked up; None: it was not served."""
    secret_fields: Mapping[ObjectKey, frozenset[Steps]] = field(default_factory=dict)
    """What of an object follows from a Secret; no steps: all of it. It is not written."""
    clustered: bool = field(default=True)
    """Whether a cluster was available."""

    def order(self, name: str) -> RecordedOrder:
        """
        Return one order.

        Raises:
            InvalidInputError: The snapshot has no such order; its orders are named.
        """
        for recorded in self.orders:
            if recorded.order == name:
                return recorded
        names = ", ".join(recorded.order for recorded in self.orders[:_NAMED])
        more_text = f" and {len(self.orders) - _NAMED} more" if len(self.orders) > _NAMED else ""
        raise InvalidInputError("--snapshot", name, f"is not in it: it is of {names}{more_text}")


_NAMED = 5


def to_text(snapshot: PlanSnapshot) -> str:
    """Return the file's text. Deterministic: equal states give equal bytes."""
    texts = _secret_texts(snapshot)
    known = (_without_fields(manifest, snapshot.secret_fields) for manifest in snapshot.objects)
    objects = sorted((cleaned(manifest, texts) for manifest in known), key=_sort_key)
    data = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "format": VERSION,
        "pack": snapshot.pack,
        "clustered": snapshot.clustered,
        "schemas": dict(sorted(snapshot.schemas.items())),
        "orders": [
            {
                "order": o.order,
                "team": o.team,
                "kit": o.kit,
                "xr": cleaned(_without_fields(o.xr, snapshot.secret_fields), texts),
            }
            for o in sorted(snapshot.orders, key=lambda o: o.order)
        ],
        "asked": [
            {name: texts.redact(text) for name, text in key.to_json().items()}
            for key in sorted(set(snapshot.requested))
        ],
        "listed": [
            {"apiVersion": kind.api_version, "kind": kind.kind, "namespace": namespace}
            for kind, namespace in sorted(set(snapshot.listings))
        ],
        "served": [
            {"apiVersion": kind.api_version, "kind": kind.kind, "plural": snapshot.plurals[kind]}
            for kind in sorted(snapshot.plurals)
        ],
        "objects": objects,
    }
    text = json.dumps(data, indent=1, ensure_ascii=False)
    return redact(text) + "\n"


def from_text(text: str, *, name: str) -> PlanSnapshot:
    """
    Read a snapshot.

    Args:
        name: The file's name in messages.

    Raises:
        InvalidInputError: It is not a snapshot, or has another version of the format.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise InvalidInputError(
            "--snapshot",
            name,
            f"is not JSON: {error}",
            hint="make it again: orderkit plan --kit KIT --record FILE",
        ) from error
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise InvalidInputError(
            "--snapshot",
            name,
            f"is not a {KIND}",
            hint="write one with 'orderkit plan … --record FILE'",
        )
    refuse_newer(data.get("apiVersion"), name)
    if (data.get("apiVersion"), data.get("format")) != (API_VERSION, VERSION):
        raise InvalidInputError(
            "--snapshot",
            name,
            f"has format {data.get('format')!r} of {data.get('apiVersion')!r}; "
            f"this Orderkit reads {VERSION} of {API_VERSION}",
            hint="record it again",
        )
    try:
        return _read(data)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InvalidInputError(
            "--snapshot",
            name,
            f"is damaged: {type(error).__name__}: {error}",
            hint="record it again",
        ) from error


def _read(data: dict[str, Any]) -> PlanSnapshot:
    orders = (
        RecordedOrder(str(o["order"]), str(o["kit"]), _object(o["xr"]), str(o["team"]))
        for o in data["orders"]
    )
    return PlanSnapshot(
        tuple(orders),
        str(data["pack"]),
        {str(key): str(digest) for key, digest in data["schemas"].items()},
        tuple(map(ObjectKey.from_json, data["asked"])),
        tuple(
            (Kind.parse(e["apiVersion"], e["kind"]), str(e["namespace"])) for e in data["listed"]
        ),
        tuple(map(_object, data["objects"])),
        {Kind.parse(e["apiVersion"], e["kind"]): e["plural"] for e in data["served"]},
        clustered=bool(data["clustered"]),
    )


def _object(data: Any) -> Manifest:
    ObjectKey.of(data)
    return cast("Manifest", data)


def _secret_texts(snapshot: PlanSnapshot) -> SecretTexts:
    """Return the values of all Secrets of a snapshot; names of objects are none."""
    manifests = [*snapshot.objects, *(order.xr for order in snapshot.orders)]
    names = {str(metadata(manifest).get("name")) for manifest in manifests}
    return SecretTexts(values_of(manifests), public=names)


def _without_fields(
    manifest: Manifest, secret_fields: Mapping[ObjectKey, frozenset[Steps]]
) -> Manifest:
    """Return an object without the fields that follow from a Secret; what names it stays."""
    places = secret_fields.get(ObjectKey.of(manifest), frozenset())
    if () in places:
        return _named(manifest)
    for steps in places:
        if value_at(manifest, steps) is not ABSENT and steps not in _NAMES:
            manifest = with_value(
                manifest, steps, LEFT_OUT if isinstance(steps[-1], int) else ABSENT
            )
    return manifest


_NAMES = {("metadata", name) for name in ("name", "namespace", "uid")}


def _named(manifest: Manifest) -> Manifest:
    """Return what names an object, and what it is composed as."""
    meta = {
        name: value for name, value in metadata(manifest).items() if ("metadata", name) in _NAMES
    }
    name = annotations_of(manifest).get(RESOURCE_NAME_ANNOTATION)
    notes = {"annotations": {RESOURCE_NAME_ANNOTATION: name}} if name else {}
    kind = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"]}
    return {**kind, "metadata": {**meta, **notes}}


def cleaned(manifest: Manifest, texts: SecretTexts = NO_SECRETS) -> Manifest:
    """Return an object as it is recorded: without server fields, and without Secrets' values."""
    meta = {key: value for key, value in metadata(manifest).items() if key not in _COUNTED}
    notes = meta.get("annotations")
    if isinstance(notes, dict) and APPLIED in notes:
        meta["annotations"] = {key: text for key, text in notes.items() if key != APPLIED}
    cleaned_manifest = {**manifest, "metadata": meta} if meta else dict(manifest)
    return cast("Manifest", _without_secrets(cleaned_manifest, texts))


def _without_secrets(value: Any, texts: SecretTexts) -> Any:
    """Empty what Secrets hold at any depth in an object, and what contains such a value."""
    if isinstance(value, list):
        return [_without_secrets(entry, texts) for entry in value]
    if isinstance(value, str):
        return LEFT_OUT if texts.in_text(value) else value
    if not isinstance(value, dict):
        return value
    if not is_secret(value):
        return {key: _without_secrets(entry, texts) for key, entry in value.items()}
    return {
        key: _without_secrets(entry, texts) if key in OPEN_FIELDS else _emptied(entry)
        for key, entry in value.items()
    }


def _emptied(value: Any) -> Any:
    return dict.fromkeys(value, LEFT_OUT) if isinstance(value, dict) else LEFT_OUT


def hidden_secrets(objects: Iterable[Manifest]) -> tuple[str, ...]:
    """Return the names of Secrets among objects whose values a snapshot lacks."""
    return tuple(
        f"Secret {metadata(manifest).get('namespace', '')}/{metadata(manifest).get('name')}"
        for manifest in objects
        if Kind.of(manifest) == Kind("", "v1", "Secret")
    )


def _sort_key(manifest: Manifest) -> ObjectKey:
    return ObjectKey.of(manifest)
