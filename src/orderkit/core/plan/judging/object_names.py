"""
Names, labels and annotations of composed objects, and names that are in use already.

The limits differ by kind: the name of a Namespace or Service is one label of 63 characters, most
names are subdomains of 253, a CronJob leaves room for the suffix of its Jobs. Crossplane's own
checks of names happen in the pipeline.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from compositions.composed import COMPOSITE_LABEL, preview_uid
from ground.objects.kube_objects import (
    TRACKING_ID,
    Manifest,
    ObjectKey,
    annotations_of,
    controller,
    labels_of,
    metadata,
    only_observes,
)
from kubeschema import structural
from kubeschema.known.builtin_kinds import METADATA
from kubeschema.pruning import default, prune
from kubeschema.validate.object_check import nearest, shown
from orderkit.core.plan.assembly import (
    Assembly,
    Fault,
    Note,
    OutcomeObject,
    key_text,
    objects_of,
    parent_of,
)
from orderkit.core.plan.judging.fault_codes import JudgingFacts, OutcomeRule

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_SEGMENT = re.compile(r"(?!\.{1,2}\Z)[^/%]+\Z")
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?\Z")
# annotations together: Kubernetes' TotalAnnotationSizeLimitB
_LABEL_MAX, _NAME_MAX, _ANNOTATIONS_MAX_BYTES = 63, 253, 256 * 1024
_PLAIN = {"name", "generateName", "namespace", "labels", "annotations", "uid", "ownerReferences"}
_RBAC = "rbac.authorization.k8s.io"
_WAYS_OUT = {
    _LABEL: "lower-case letters, digits and '-'; no dot",
    _SUBDOMAIN: "lower-case letters, digits, '-' and '.'",
    _SEGMENT: "no '/' and no '%'",
}
_RULES: Mapping[tuple[str, str], tuple[re.Pattern[str], int, str]] = {
    ("", "Namespace"): (_LABEL, _LABEL_MAX, "RFC 1123 label"),
    ("", "Service"): (_LABEL, _LABEL_MAX, "RFC 1123 label"),
    ("batch", "CronJob"): (_SUBDOMAIN, 52, "its Jobs add 11 characters"),
    ("batch", "Job"): (_SUBDOMAIN, _LABEL_MAX, "its Pods carry the name in a label"),
    ("apps", "StatefulSet"): (_LABEL, 52, "its Pods have a label that adds 11 characters"),
    **{
        (_RBAC, kind): (_SEGMENT, _NAME_MAX, "a path segment")
        for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
    },
}


def judge_names(after: Assembly) -> Iterator[Fault]:
    """Yield faults of names and metadata."""
    for obj in objects_of(after):
        yield from _name(obj)
        if not (obj.prefix and only_observes(after.resources[obj.path])):
            yield from _metadata(obj)
            yield from _labels(obj)


def _name(obj: OutcomeObject) -> Iterator[Fault]:
    name = metadata(obj.manifest).get("name")
    if not isinstance(name, str) or not name:
        return  # the pipeline checks generated names
    default = (_SUBDOMAIN, _NAME_MAX, "RFC 1123 subdomain")
    pattern, length_max, why = _RULES.get((obj.kind.group, obj.kind.kind), default)
    field = obj.field("metadata.name")
    if len(name) > length_max:
        message = f"{obj.kind.kind} {name}: {len(name)} characters, at most {length_max} ({why})"
        yield _name_fault(
            obj, field, message, "shorten the order's name, or truncate this one", name
        )
    elif not pattern.match(name):
        message = f"{obj.kind.kind} {name}: must be {'an' if why[0] == 'R' else ''} {why}"
        yield _name_fault(obj, field, " ".join(message.split()), _WAYS_OUT[pattern], name)


def _name_fault(obj: OutcomeObject, field: str, message: str, hint: str, value: Any) -> Fault:
    return Fault(obj.path, message, field, hint, code=OutcomeRule.NAME, value=shown(value))


def _metadata(obj: OutcomeObject) -> Iterator[Fault]:
    """Yield fields of metadata that do not exist or have another type."""
    meta = metadata(obj.manifest)
    if _is_plain(meta):
        return
    schema = {"type": "object", "properties": {"meta": METADATA}}
    for path in prune(schema, {"meta": meta})[1]:
        name = path.removeprefix("meta.")
        message = f'unknown field "metadata.{name}"'
        hint = nearest(name, METADATA["properties"])
        yield _name_fault(obj, obj.field(f"metadata.{name}"), message, hint, meta.get(name))
    for problem in structural.problems(METADATA, default(METADATA, meta)):
        field = obj.field(f"metadata.{problem.path}")
        hint = "quote it: labels and annotations are strings" if "string" in problem.message else ""
        yield _name_fault(obj, field, problem.message, hint, None)


def _is_plain(meta: Mapping[str, Any]) -> bool:
    """Return whether metadata has only usual fields of the right types."""
    maps = [meta.get(name) or {} for name in ("labels", "annotations")]
    return (
        meta.keys() <= _PLAIN
        and len(meta.get("ownerReferences") or ()) == 1
        and all(
            isinstance(mapping, dict) and all(isinstance(value, str) for value in mapping.values())
            for mapping in maps
        )
    )


def _labels(obj: OutcomeObject) -> Iterator[Fault]:
    meta = metadata(obj.manifest)
    for map_name in ("labels", "annotations"):
        entries = meta.get(map_name)
        for key, value in entries.items() if isinstance(entries, dict) else ():
            field = obj.field(f"metadata.{map_name}.{key}")
            if not _is_key(key):
                message = f"{key!r} is not a valid key of {map_name}"
                yield _name_fault(
                    obj, field, message, "[domain/]name, the name at most 63 characters", key
                )
            elif map_name == "labels" and isinstance(value, str) and not _is_value(value):
                message = (
                    f"{value!r} is not a valid label value: letters, digits, '-', '_', '.', at "
                    "most 63"
                )
                yield _name_fault(obj, field, message, "use an annotation", value)
    notes = meta.get("annotations")
    pairs = notes.items() if isinstance(notes, dict) else ()
    size_bytes = sum(len(str(key)) + len(str(value).encode()) for key, value in pairs)
    if size_bytes > _ANNOTATIONS_MAX_BYTES:
        message = f"annotations of {size_bytes} bytes, at most {_ANNOTATIONS_MAX_BYTES}"
        yield _name_fault(obj, obj.field("metadata.annotations"), message, "use a ConfigMap", None)


def _is_key(key: object) -> bool:
    domain, slash, name = str(key).rpartition("/")
    fits = bool(name) and _is_value(name)
    return fits and (not slash or (len(domain) <= _NAME_MAX and bool(_SUBDOMAIN.match(domain))))


def _is_value(value: str) -> bool:
    return len(value) <= _LABEL_MAX and bool(_VALUE.match(value))


def judge_collisions(before: Assembly, after: Assembly, facts: JudgingFacts) -> Iterator[Fault]:
    """Yield objects that are composed twice, and names that are in use already."""
    makers: dict[tuple[object, ...], str] = {}
    for obj in objects_of(after):
        identity = _identity(obj, after)
        if identity is None:
            continue
        other = makers.setdefault(identity, obj.path)
        if other != obj.path:
            message = (
                f"{key_text(obj.manifest)} is also composed by '{other}': both would overwrite it"
            )
            yield _clash(obj, OutcomeRule.COLLISION, message)
        elif not obj.prefix:
            yield from _key_clashes(obj, before, after, facts)


def _identity(obj: OutcomeObject, after: Assembly) -> tuple[object, ...] | None:
    """Return the identity of an object, including the cluster it is created in."""
    name = metadata(obj.manifest).get("name")
    if not name:
        return None
    home = metadata(obj.manifest).get("namespace") or ""
    provider_config: object = ""
    if obj.prefix:
        wrapper = after.resources[obj.path]
        if only_observes(wrapper):
            return None
        provider_config = str((wrapper.get("spec") or {}).get("providerConfigRef"))
    return (provider_config, obj.kind.group, obj.kind.kind, home, name)


def _key_clashes(
    obj: OutcomeObject, before: Assembly, after: Assembly, facts: JudgingFacts
) -> Iterator[Fault]:
    key = ObjectKey.of(obj.manifest)
    if key in facts.other_orders:
        message = f"{key_text(obj.manifest)} is also composed by order {facts.other_orders[key]}"
        yield _clash(obj, OutcomeRule.COLLISION, message)
    live = _foreign_object(obj, before, facts)
    if live is None:
        return
    owner = controller(live)
    if owner is not None and not _is_composer(owner, obj, after):
        root = labels_of(live).get(COMPOSITE_LABEL)
        message = (
            f"{key_text(obj.manifest)} exists and is controlled by {owner.get('kind')} "
            f"{owner.get('name')}{f' of {root}' if root and root != owner.get('name') else ''}: "
            "Crossplane cannot take it over"
        )
        yield _clash(obj, OutcomeRule.TAKEN, message)
    elif owner is None and TRACKING_ID in annotations_of(live):
        application = annotations_of(live)[TRACKING_ID].partition(":")[0]
        message = (
            f"{key_text(obj.manifest)} exists and is delivered by Application {application}: "
            "Argo CD and Crossplane would overwrite each other"
        )
        yield _clash(obj, OutcomeRule.TAKEN, message)


def _is_composer(owner: Mapping[str, Any], obj: OutcomeObject, after: Assembly) -> bool:
    """Return whether an owner in the cluster is the XR that composes the object in the plan."""
    ours = controller(obj.manifest) or {}
    if owner.get("uid") == ours.get("uid"):
        return True
    # an XR that the plan did not see yet may have been delivered, and have composed its first
    # objects, while the plan was made
    is_preview = ours.get("uid") == preview_uid(parent_of(obj.path, after))
    return is_preview and all(
        owner.get(name) == ours.get(name) for name in ("apiVersion", "kind", "name")
    )


def adopted(before: Assembly, after: Assembly, facts: JudgingFacts) -> Iterator[Note]:
    """Yield objects that exist without an owner: Crossplane takes them over."""
    for obj in objects_of(after):
        live = None if obj.prefix else _foreign_object(obj, before, facts)
        delivered = TRACKING_ID in annotations_of(live or {})
        if live is not None and controller(live) is None and not delivered:
            message = (
                f"{key_text(obj.manifest)} exists and has no owner: Crossplane silently takes it "
                "over "
                "and deletes it with the order"
            )
            yield Note(obj.path, "adopts", message)


def _foreign_object(obj: OutcomeObject, before: Assembly, facts: JudgingFacts) -> Manifest | None:
    """Return the object of that name in the cluster, if the order did not create it."""
    existing_paths = before.observed if facts.existing_paths is None else facts.existing_paths
    if not metadata(obj.manifest).get("name") or obj.path in existing_paths:
        return None
    return facts.living.get(ObjectKey.of(obj.manifest))


def _clash(obj: OutcomeObject, rule: OutcomeRule, message: str) -> Fault:
    name = metadata(obj.manifest).get("name")
    return Fault(
        obj.path,
        message,
        obj.field("metadata.name"),
        "make the order's name part of its name",
        code=rule,
        value=shown(name),
    )


def taken_names(assembly: Assembly) -> frozenset[ObjectKey]:
    """Return the names that an order uses in the cluster, to compare with other orders."""
    return frozenset(
        ObjectKey.of(obj.manifest)
        for obj in objects_of(assembly)
        if not obj.prefix and metadata(obj.manifest).get("name")
    )
