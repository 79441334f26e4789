"""
Rules of the server for writes of particular built-in kinds.

`prepare` fills in and protects fields, `faults` are the rules no schema can say. Both see the
object as it will be and as it was (None for a create). Pure; called by ``writes``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator

from ground.objects.kube_objects import CONFIG_MAP, CRD, NAMESPACE, Kind, Manifest, dig, metadata
from kubeschema.admission import POLICY
from kubeschema.known import refused_updates
from kubeschema.policy_errors import policy_faults
from orderkit_standins.cluster import definitions
from orderkit_standins.cluster.refusals import Cause
from orderkit_standins.cluster.served_builtin_kinds import SECRET, SERVICE

NAMESPACE_FINALIZER = "kubernetes"
"""Keeps a namespace until its content is gone; lives in ``spec.finalizers``."""
NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def prepare(kind: Kind, new: Manifest, old: Manifest | None, *, finalize: bool = False) -> Manifest:
    """
    Return the object with the fields that the server itself decides.

    Args:
        finalize: The write comes from the namespace's own clean-up.
    """
    if kind == NAMESPACE:
        return _namespace(new, old, finalize=finalize)
    if kind == SECRET:
        return _secret(new)
    if kind == SERVICE:
        return _service(new, old)
    if kind == CRD and not _shape_faults(new):
        return definitions.with_defaults(new)
    return new


def _namespace(new: Manifest, old: Manifest | None, *, finalize: bool) -> Manifest:
    stored = dict(new)
    if old is None:
        stored["spec"] = {"finalizers": [NAMESPACE_FINALIZER]}
        stored["status"] = {"phase": "Active"}
    elif not finalize:
        stored["spec"] = old["spec"]
    meta = metadata(new)
    labels = {**(meta.get("labels") or {}), NAMESPACE_LABEL: meta["name"]}
    stored["metadata"] = {**meta, "labels": labels}
    return stored


def _service(new: Manifest, old: Manifest | None) -> Manifest:
    """Give a Service its type and address; one that lacks them in an update keeps the old ones."""
    spec = {"type": "ClusterIP", **(new.get("spec") or {})}
    if spec["type"] == "ExternalName":
        return {**new, "spec": spec}
    address = spec.get("clusterIP") or dig(old or {}, "spec", "clusterIP", default="")
    if not address:
        meta = metadata(new)
        digest = hashlib.sha256(f"{meta.get('namespace')}/{meta.get('name')}".encode()).digest()
        address = f"10.96.{digest[0]}.{digest[1] % 254 + 1}"
    return {**new, "spec": {**spec, "clusterIP": address, "clusterIPs": [address]}}


def _secret(new: Manifest) -> Manifest:
    stored: Manifest = {"type": "Opaque", **new}
    texts = stored.pop("stringData", None)
    if isinstance(texts, dict) and all(isinstance(text, str) for text in texts.values()):
        encoded = {k: base64.b64encode(v.encode()).decode() for k, v in texts.items()}
        stored["data"] = {**(stored.get("data") or {}), **encoded}
    return stored


def faults(kind: Kind, new: Manifest, old: Manifest | None) -> list[Cause]:
    """Return errors that the schema cannot express; the object must be valid by the schema."""
    if kind == CRD:
        return [*definitions.faults(new), *_definition_changes(new, old)]
    if kind == POLICY:
        return [Cause(field, problem) for field, problem in policy_faults(new)]
    encoded = _base64_faults(kind, new) if kind in {CONFIG_MAP, SECRET} else ()
    return [*encoded, *(_set_once(old, new) if old is not None else ())]


def _set_once(old: Manifest, new: Manifest) -> Iterator[Cause]:
    for refused in refused_updates(old, new):
        is_forbidden = refused.message.startswith("Forbidden")
        reason = "FieldValueForbidden" if is_forbidden else "FieldValueInvalid"
        yield Cause(refused.path, refused.message, reason)


def _shape_faults(definition: Manifest) -> bool:
    return not isinstance(dig(definition, "spec", "names"), dict)


def _definition_changes(new: Manifest, old: Manifest | None) -> Iterator[Cause]:
    if old is None:
        return
    for path in (("group",), ("scope",), ("names", "kind"), ("names", "plural")):
        value = dig(new, "spec", *path)
        if value != dig(old, "spec", *path):
            yield Cause(".".join(("spec", *path)), f'Invalid value: "{value}": field is immutable')


def _base64_faults(kind: Kind, new: Manifest) -> Iterator[Cause]:
    field = "data" if kind == SECRET else "binaryData"
    for key, text in (new.get(field) or {}).items():
        try:
            base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            yield Cause(f"{field}.{key}", "Invalid value: illegal base64 data")
