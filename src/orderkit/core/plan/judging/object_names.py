"""
Names, labels and annotations of composed objects, and who has a name already.

What Kubernetes takes differs by kind: a Namespace or Service is one label of 63, most are
subdomains of 253, a CronJob leaves room for what it makes. Crossplane's own checks of names are
the pipeline's part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from orderkit.core.crossplane.composed_metadata import COMPOSITE_LABEL
from orderkit.core.objects.kube_objects import (
    TRACKING_ID,
    Manifest,
    ObjectKey,
    annotations_of,
    controller,
    labels_of,
    metadata,
)
from orderkit.core.plan.assembly import Assembly, Fault, Note, key_text
from orderkit.core.plan.judging.verdicts import JudgingFacts, OutcomeRule
from orderkit.core.plan.outcome_objects import Part, only_observes, parts_of
from orderkit.core.schema import structural
from orderkit.core.schema.known.builtin_kinds import METADATA
from orderkit.core.schema.validate.hints import nearest, shown

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_SEGMENT = re.compile(r"(?!\.{1,2}\Z)[^/%]+\Z")
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?\Z")
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
    ("batch", "CronJob"): (_SUBDOMAIN, 52, "room for the 11 characters of its Jobs"),
    ("batch", "Job"): (_SUBDOMAIN, _LABEL_MAX, "its Pods carry the name in a label"),
    ("apps", "StatefulSet"): (_LABEL, 52, "its Pods would be refused: a label of theirs adds 11"),
    **{
        (_RBAC, kind): (_SEGMENT, _NAME_MAX, "a path segment")
        for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
    },
}


def judge_names(after: Assembly) -> Iterator[Fault]:
    """Yield what is wrong with names and metadata."""
    for part in parts_of(after):
        yield from _name(part)
        if not (part.prefix and only_observes(after.resources[part.path])):
            yield from _metadata(part)
            yield from _labels(part)


def _name(part: Part) -> Iterator[Fault]:
    name = metadata(part.manifest).get("name")
    if not isinstance(name, str) or not name:
        return  # one that is generated is checked where it is made
    default = (_SUBDOMAIN, _NAME_MAX, "RFC 1123 subdomain")
    pattern, most, why = _RULES.get((part.kind.group, part.kind.kind), default)
    where = part.field("metadata.name")
    if len(name) > most:
        told = f"{part.kind.kind} {name}: {len(name)} characters, at most {most} ({why})"
        yield _named(part, where, told, "give the order a shorter name, or cut it", name)
    elif not pattern.match(name):
        told = f"{part.kind.kind} {name}: must be {'an' if why[0] == 'R' else ''} {why}"
        yield _named(part, where, " ".join(told.split()), _WAYS_OUT[pattern], name)


def _named(part: Part, where: str, told: str, hint: str, value: Any) -> Fault:
    return Fault(part.path, told, where, hint, code=OutcomeRule.NAME, value=shown(value))


def _metadata(part: Part) -> Iterator[Fault]:
    """Yield fields of metadata that do not exist or have another type."""
    meta = metadata(part.manifest)
    if _is_plain(meta):
        return
    whole = {"type": "object", "properties": {"meta": METADATA}}
    for path in structural.prune(whole, {"meta": meta})[1]:
        name = path.removeprefix("meta.")
        told = f'unknown field "metadata.{name}"'
        hint = nearest(name, METADATA["properties"])
        yield _named(part, part.field(f"metadata.{name}"), told, hint, meta.get(name))
    for problem in structural.problems(METADATA, structural.default(METADATA, meta)):
        where = part.field(f"metadata.{problem.path}")
        hint = "quote it: labels and annotations are texts" if "string" in problem.message else ""
        yield _named(part, where, problem.message, hint, None)


def _is_plain(meta: Mapping[str, Any]) -> bool:
    """Say whether metadata is as nearly always: known fields, and texts where they belong."""
    maps = [meta.get(name) or {} for name in ("labels", "annotations")]
    return (
        meta.keys() <= _PLAIN
        and len(meta.get("ownerReferences") or ()) == 1
        and all(
            isinstance(each, dict) and all(isinstance(value, str) for value in each.values())
            for each in maps
        )
    )


def _labels(part: Part) -> Iterator[Fault]:
    meta = metadata(part.manifest)
    for what in ("labels", "annotations"):
        entries = meta.get(what)
        for key, value in entries.items() if isinstance(entries, dict) else ():
            where = part.field(f"metadata.{what}.{key}")
            if not _is_key(key):
                told = f"{key!r} is no key of {what}"
                yield _named(part, where, told, "[domain/]name, the name at most 63 long", key)
            elif what == "labels" and isinstance(value, str) and not _is_value(value):
                told = f"{value!r} is no value of a label: letters, digits, '-', '_', '.', up to 63"
                yield _named(part, where, told, "write it into an annotation", value)
    notes = meta.get("annotations")
    pairs = notes.items() if isinstance(notes, dict) else ()
    size_bytes = sum(len(str(key)) + len(str(value).encode()) for key, value in pairs)
    if size_bytes > _ANNOTATIONS_MAX_BYTES:
        told = f"annotations of {size_bytes} bytes, at most {_ANNOTATIONS_MAX_BYTES}"
        yield _named(part, part.field("metadata.annotations"), told, "use a ConfigMap", None)


def _is_key(key: object) -> bool:
    domain, slash, name = str(key).rpartition("/")
    fits = bool(name) and _is_value(name)
    return fits and (not slash or (len(domain) <= _NAME_MAX and bool(_SUBDOMAIN.match(domain))))


def _is_value(value: str) -> bool:
    return len(value) <= _LABEL_MAX and bool(_VALUE.match(value))


def judge_neighbours(before: Assembly, after: Assembly, facts: JudgingFacts) -> Iterator[Fault]:
    """Yield objects that two parts make, and names that something else has."""
    makers: dict[tuple[object, ...], str] = {}
    for part in parts_of(after):
        identity = _identity(part, after)
        if identity is None:
            continue
        other = makers.setdefault(identity, part.path)
        if other != part.path:
            told = f"{key_text(part.manifest)} is what '{other}' makes too: they fight over it"
            yield _clash(part, OutcomeRule.COLLISION, told)
        elif not part.prefix:
            yield from _taken(part, before, facts)


def _identity(part: Part, after: Assembly) -> tuple[object, ...] | None:
    """Return what makes an object one and the same, in the cluster that it is made in."""
    name = metadata(part.manifest).get("name")
    if not name:
        return None
    home = metadata(part.manifest).get("namespace") or ""
    where: object = ""
    if part.prefix:
        wrapper = after.resources[part.path]
        if only_observes(wrapper):
            return None
        where = str((wrapper.get("spec") or {}).get("providerConfigRef"))
    return (where, part.kind.group, part.kind.kind, home, name)


def _taken(part: Part, before: Assembly, facts: JudgingFacts) -> Iterator[Fault]:
    key = ObjectKey.of(part.manifest)
    if key in facts.others:
        told = f"{key_text(part.manifest)} is what order {facts.others[key]} makes too"
        yield _clash(part, OutcomeRule.COLLISION, told)
    live = _unknown_to(part, before, facts)
    if live is None:
        return
    owner, ours = controller(live), controller(part.manifest) or {}
    if owner is not None and owner.get("uid") != ours.get("uid"):
        root = labels_of(live).get(COMPOSITE_LABEL)
        told = (
            f"{key_text(part.manifest)} exists and is controlled by {owner.get('kind')} "
            f"{owner.get('name')}{f' of {root}' if root and root != owner.get('name') else ''}: "
            "Crossplane cannot take it"
        )
        yield _clash(part, OutcomeRule.TAKEN, told)
    elif owner is None and TRACKING_ID in annotations_of(live):
        application = annotations_of(live)[TRACKING_ID].partition(":")[0]
        told = (
            f"{key_text(part.manifest)} exists and is delivered by Application {application}: "
            "Argo CD and Crossplane would fight over it"
        )
        yield _clash(part, OutcomeRule.TAKEN, told)


def adopted(before: Assembly, after: Assembly, facts: JudgingFacts) -> Iterator[Note]:
    """Yield objects that exist and belong to nobody: Crossplane takes them over."""
    for part in parts_of(after):
        live = None if part.prefix else _unknown_to(part, before, facts)
        delivered = TRACKING_ID in annotations_of(live or {})
        if live is not None and controller(live) is None and not delivered:
            told = (
                f"{key_text(part.manifest)} exists and belongs to nobody: Crossplane takes it over "
                "without a word, and deletes it with the order"
            )
            yield Note(part.path, "adopts", told)


def _unknown_to(part: Part, before: Assembly, facts: JudgingFacts) -> Manifest | None:
    """Return an object of the cluster under the part's name that the order has not made."""
    made = before.observed if facts.made is None else facts.made
    if not metadata(part.manifest).get("name") or part.path in made:
        return None
    return facts.living.get(ObjectKey.of(part.manifest))


def _clash(part: Part, rule: OutcomeRule, told: str) -> Fault:
    name = metadata(part.manifest).get("name")
    return Fault(
        part.path,
        told,
        part.field("metadata.name"),
        "give it a name that has the order's own name in it",
        code=rule,
        value=shown(name),
    )


def takers(assembly: Assembly) -> frozenset[ObjectKey]:
    """Return the names that an order takes in the cluster, to hold against other orders."""
    return frozenset(
        ObjectKey.of(part.manifest)
        for part in parts_of(assembly)
        if not part.prefix and metadata(part.manifest).get("name")
    )
