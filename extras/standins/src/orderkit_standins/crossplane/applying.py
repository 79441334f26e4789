"""
Observe and apply the composed resources of one XR.

The order is Crossplane's, so that a crash loses no resource: delete undesired resources, record
references to the desired ones, apply them in random order, apply the status. An object that the API
server finds invalid is skipped and reported; every other failure ends the round.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from compositions.composed import (
    CLAIM_LABELS,
    COMPOSE_REASON,
    COMPOSITE_LABEL,
    COMPOSITE_OWNER,
    RESOURCE_NAME_ANNOTATION,
    Composed,
    XrEvent,
    composed_owner,
)
from compositions.station import Selector
from ground.errors import ConflictError, NotFoundError, OrderkitError
from ground.objects.kube_objects import (
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    controller,
    dig,
    labels_of,
    metadata,
)
from orderkit.ports.cluster import InvalidObjectError, WrongTypeError
from orderkit_standins.crossplane.reconciler_context import ReconcilerContext

SECRET = Kind("", "v1", "Secret")


class ApplyError(OrderkitError):
    """The round ended here; the message is Crossplane's, without its first words."""

    def __init__(self, message: str, *, invalid: bool = False) -> None:
        super().__init__(message)
        self.invalid = invalid
        """The API server judged the XR itself invalid (422)."""


@dataclass(slots=True)
class Observed:
    """The composed resources that exist, by logical name."""

    resources: dict[str, Manifest] = field(default_factory=dict)
    connection_details: dict[str, dict[str, bytes]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Applied:
    """The XR after a complete round, and the objects that were refused as invalid."""

    xr: Manifest
    unsynced: tuple[str, ...]
    events: tuple[XrEvent, ...]


def key_of_reference(reference: Manifest, xr: Manifest) -> ObjectKey:
    """Return the object a resourceRef means; a namespaced XR lends its namespace."""
    kind = Kind.parse(reference.get("apiVersion", ""), reference.get("kind", ""))
    home = metadata(xr).get("namespace") or reference.get("namespace") or ""
    return ObjectKey(kind, reference.get("name", ""), home)


def observe(site: ReconcilerContext, xr: Manifest, references: Sequence[Manifest]) -> Observed:
    """
    Read the objects of the XR's resourceRefs; skip those that another owner controls.

    Raises:
        ApplyError: An object lost the annotation that says which one it is, or cannot be read.
    """
    observed = Observed()
    for reference in references:
        if not reference.get("name"):
            continue
        manifest = _read(site, key_of_reference(reference, xr))
        owner = controller(manifest) if manifest else None
        if manifest is None or (owner and owner.get("uid") != metadata(xr).get("uid")):
            continue
        name = annotations_of(manifest).get(RESOURCE_NAME_ANNOTATION)
        if not name:
            raise ApplyError(
                "cannot get existing composed resources: encountered composed resource without "
                f'required "{RESOURCE_NAME_ANNOTATION}" annotation'
            )
        observed.resources[name] = manifest
        details = _connection_details(site, manifest)
        if details:
            observed.connection_details[name] = details
    return observed


def _read(site: ReconcilerContext, key: ObjectKey) -> Manifest | None:
    try:
        return site.cluster.get(key)
    except OrderkitError as error:
        text = f"cannot get existing composed resources: cannot get composed resource: {error}"
        raise ApplyError(text) from error


def _connection_details(site: ReconcilerContext, manifest: Manifest) -> dict[str, bytes]:
    """Read the Secret a resource writes its connection details to, if it has one."""
    reference = dig(manifest, "spec", "writeConnectionSecretToRef", default={})
    if not isinstance(reference, dict) or not reference.get("name"):
        return {}
    home = reference.get("namespace") or metadata(manifest).get("namespace") or ""
    secret = _read(site, ObjectKey(SECRET, reference["name"], home))
    data = (secret or {}).get("data") or {}
    return {key: base64.b64decode(value) for key, value in data.items()}


def fetch(site: ReconcilerContext, selector: Selector) -> list[Manifest]:
    """
    Look up required resources: one by name, or a list sorted by namespace and name.

    Raises:
        NoSuchKindError: The kind is not served.
    """
    kind = Kind.parse(selector.api_version, selector.kind)
    if selector.name:
        manifest = site.cluster.get(ObjectKey(kind, selector.name, selector.namespace or ""))
        return [manifest] if manifest else []
    objects = site.cluster.list(kind, namespace=selector.namespace, labels=selector.labels or None)
    return sorted(
        objects.items, key=lambda m: f"{metadata(m).get('namespace', '')}/{metadata(m)['name']}"
    )


def apply(
    site: ReconcilerContext, xr: Manifest, composed: Composed, path: tuple[str, ...]
) -> Applied:
    """
    Apply the result of the pipeline. Safe to repeat after any interruption.

    Args:
        path: Where the XR keeps its machinery fields, ``spec.crossplane`` or ``spec``.

    Raises:
        ApplyError: Something other than an invalid composed resource failed; what was applied
            before stays, the XR's status is not written.
        ConflictError: An object changed since it was read; repeat the round.
    """
    for name, manifest in composed.deletions.items():
        _collect(site, name, manifest)
    # before the objects are made: a crash loses none
    _write_references(site, xr, composed, path)
    events: list[XrEvent] = []
    unsynced: list[str] = []
    for name in _shuffled(site, composed):
        try:
            site.cluster.apply(composed.resources[name].manifest, owner=composed_owner(xr))
        except ConflictError:
            raise
        except WrongTypeError as error:
            raise _not_applied(name, error) from error
        except InvalidObjectError as error:
            events.append(XrEvent("Warning", COMPOSE_REASON, str(_not_applied(name, error))))
            unsynced.append(name)
        except OrderkitError as error:
            raise _not_applied(name, error) from error
    return Applied(_write_status(site, xr, composed), tuple(unsynced), tuple(events))


def _not_applied(name: str, error: OrderkitError) -> ApplyError:
    return ApplyError(f'cannot apply composed resource "{name}": {error}')


def _shuffled(site: ReconcilerContext, composed: Composed) -> list[str]:
    """Return the names in random order, as Crossplane applies."""
    # a pipeline that needs an order fails here too
    names = list(composed.resources)
    site.chance.shuffle(names)
    return names


def _collect(site: ReconcilerContext, name: str, manifest: Manifest) -> None:
    """Remove our labels from an object that is no longer desired, and delete it, children first."""
    key, meta = ObjectKey.of(manifest), metadata(manifest)
    ours = {COMPOSITE_LABEL, *CLAIM_LABELS} & set(labels_of(manifest))
    description = f'"{name}" (a {key.kind.kind} named {key.name})'
    prefix = "cannot garbage collect composed resources that are no longer desired: "
    try:
        if ours:
            site.patch_metadata(manifest, {"labels": dict.fromkeys(sorted(ours))})
        site.cluster.delete(key, propagation="Foreground", uid=meta.get("uid", ""))
    except NotFoundError:
        return
    except ConflictError:
        raise
    except OrderkitError as error:
        text = f"{prefix}cannot delete composed resource {description}: {error}"
        raise ApplyError(text) from error


def _bare(xr: Manifest) -> Manifest:
    meta = metadata(xr)
    identity = {key: meta[key] for key in ("name", "namespace") if meta.get(key)}
    return {"apiVersion": xr["apiVersion"], "kind": xr["kind"], "metadata": identity}


def _write_references(
    site: ReconcilerContext, xr: Manifest, composed: Composed, path: tuple[str, ...]
) -> None:
    """Record the references of the objects."""
    fields: dict[str, Any] = {"resourceRefs": list(composed.references)}
    for step in reversed(path):
        fields = {step: fields}
    try:
        site.cluster.apply({**_bare(xr), **fields}, owner=COMPOSITE_OWNER)
    except OrderkitError as error:
        raise ApplyError(
            f"cannot update composed resource references: {error}",
            invalid=_is_invalid(error),
        ) from error


def _write_status(site: ReconcilerContext, xr: Manifest, composed: Composed) -> Manifest:
    """Apply the whole desired status: fields that are no longer returned are removed."""
    status_patch = {**_bare(xr), "status": dict(composed.status)}
    try:
        return site.cluster.apply(status_patch, owner=COMPOSITE_OWNER, status=True)
    except OrderkitError as error:
        raise ApplyError(
            f"cannot apply composite resource status: {error}", invalid=_is_invalid(error)
        ) from error


def _is_invalid(error: OrderkitError) -> bool:
    return isinstance(error, InvalidObjectError) and not isinstance(error, WrongTypeError)
