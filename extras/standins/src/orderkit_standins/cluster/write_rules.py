"""
Rules of the server for writes: of ``metadata``, and of particular built-in kinds. Pure.

Names, labels, annotations, finalizers and owner references of every kind, and the fields that an
update may not change, in kube-apiserver's words (`metadata_faults`).

For built-in kinds `prepare` fills in and protects fields, `faults` are the rules no schema can say.
Both see the object as it will be and as it was (None for a create).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from typing import Any

from ground.objects.kube_objects import (
    CONFIG_MAP,
    CRD,
    NAMESPACE,
    Kind,
    Manifest,
    dig,
    labels_of,
    metadata,
)
from kubeschema.admission import POLICY, policy_faults
from kubeschema.known import refused_updates
from kubeschema.structural import problems
from orderkit_standins.cluster import definitions
from orderkit_standins.cluster.kinds import (
    LABEL_MAX,
    NAME_MAX,
    NAME_RULES,
    OBJECT_META,
    SECRET,
    SERVICE,
    NameRule,
    ServedKind,
)
from orderkit_standins.cluster.refusals import Cause

_ANNOTATIONS_MAX_BYTES = 256 * 1024
"""Kubernetes' limit of an object's annotations, keys and values together."""
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = rf"({_QUALIFIED})?"
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "
    f"used for validation is '{_LABEL}')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{_SUBDOMAIN}')"
)
_QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_QUALIFIED}')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
    f"'my_value',  or '12345', regex used for validation is '{_LABEL_VALUE}')"
)


def metadata_faults(served: ServedKind, new: Manifest, old: Manifest | None) -> list[Cause]:
    """Return what is wrong with the metadata; `old` is None for a create."""
    wrong_types = [
        Cause(f"metadata.{problem.path}", problem.message, problem.reason)
        for problem in problems(OBJECT_META, metadata(new))
    ]
    if wrong_types:
        return wrong_types
    causes = [*_label_faults(new), *_annotation_faults(new), *_owner_faults(new)]
    causes += _finalizer_faults(new, old)
    return causes if old is not None else [*_name_faults(served, new), *causes]


def _name_faults(served: ServedKind, new: Manifest) -> Iterator[Cause]:
    name = metadata(new)["name"]
    rule, longest = NAME_RULES.get(served.kind, (NameRule.SUBDOMAIN, NAME_MAX))
    if rule is NameRule.PATH_SEGMENT:
        if name in {".", ".."} or "/" in name or "%" in name:
            yield Cause("metadata.name", f'Invalid value: "{name}": may not contain "/" or "%"')
        return
    is_label = rule is NameRule.LABEL
    if len(name) > longest:
        yield Cause(
            "metadata.name",
            f'Invalid value: "{name}": must be no more than {longest} bytes',
        )
    if not re.fullmatch(_LABEL if is_label else _SUBDOMAIN, name):
        text = _LABEL_TEXT if is_label else _SUBDOMAIN_TEXT
        yield Cause("metadata.name", f'Invalid value: "{name}": {text}')


def _label_faults(new: Manifest) -> Iterator[Cause]:
    for key, value in labels_of(new).items():
        yield from _key_faults("metadata.labels", key)
        if len(value) > LABEL_MAX:
            yield Cause(
                "metadata.labels",
                f'Invalid value: "{value}": must be no more than {LABEL_MAX} bytes',
            )
        elif not re.fullmatch(_LABEL_VALUE, value):
            yield Cause("metadata.labels", f'Invalid value: "{value}": {_VALUE_TEXT}')


def _annotation_faults(new: Manifest) -> Iterator[Cause]:
    annotations: dict[str, str] = metadata(new).get("annotations") or {}
    for key in annotations:
        yield from _key_faults("metadata.annotations", key.lower())
    size = sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items())
    if size > _ANNOTATIONS_MAX_BYTES:
        yield Cause(
            "metadata.annotations",
            f"Too long: may not be more than {_ANNOTATIONS_MAX_BYTES} bytes",
            "FieldValueTooLong",
        )


def _key_faults(field: str, key: str) -> Iterator[Cause]:
    prefix, slash, name = key.rpartition("/")
    if slash and not re.fullmatch(_SUBDOMAIN, prefix):
        yield Cause(field, f'Invalid value: "{key}": prefix part {_SUBDOMAIN_TEXT}')
    if len(name) > LABEL_MAX:
        yield Cause(
            field, f'Invalid value: "{key}": name part must be no more than {LABEL_MAX} bytes'
        )
    elif not re.fullmatch(_QUALIFIED, name):
        yield Cause(field, f'Invalid value: "{key}": {_QUALIFIED_TEXT}')


def _owner_faults(new: Manifest) -> Iterator[Cause]:
    controllers = []
    for index, reference in enumerate(metadata(new).get("ownerReferences") or ()):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not reference.get(field):
                yield Cause(
                    f"metadata.ownerReferences[{index}].{field}",
                    'Invalid value: "": must not be empty',
                )
        if reference.get("controller"):
            controllers.append(f"{reference.get('kind')}/{reference.get('name')}")
    if len(controllers) > 1:
        yield Cause(
            "metadata.ownerReferences",
            f"Invalid value: {_go(metadata(new)['ownerReferences'])}: Only one reference can have "
            'Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}",
        )


def _go(references: list[dict[str, Any]]) -> str:
    texts = (f"{r.get('kind')}/{r.get('name')}({r.get('uid')})" for r in references)
    return "[" + " ".join(texts) + "]"


def _finalizer_faults(new: Manifest, old: Manifest | None) -> Iterator[Cause]:
    finalizers: list[str] = metadata(new).get("finalizers") or []
    for finalizer in finalizers:
        yield from _key_faults("metadata.finalizers", finalizer)
    if old is None or not metadata(old).get("deletionTimestamp"):
        return
    before = metadata(old).get("finalizers") or ()
    added = [f for f in finalizers if f not in before]
    if added:
        quoted = ", ".join(f'"{finalizer}"' for finalizer in added)
        yield Cause(
            "metadata.finalizers",
            "Forbidden: no new finalizers can be added if the object is being deleted, found new "
            f"finalizers []string{{{quoted}}}",
            "FieldValueForbidden",
        )


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
