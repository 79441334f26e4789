"""
What the API server refuses of composed objects: by schema, by update, or for want of rights.

Every composed object is checked against its schema, also objects wrapped by provider-kubernetes.
The pack's XRs are checked where they are assembled; here all other objects are, and the change from
the existing object to the desired one (transition rules). An unknown field is a fault: Crossplane's
server-side apply fails on it, and the API server silently drops it for other writers.

Some updates are refused although the new object is valid. An API server refuses other values of
some fields of Kubernetes' own kinds (``kubeschema.known.builtin_kinds``). A provider never replaces
a resource, so it refuses a value that only another resource could have (``replaces`` of
behaviour.yaml).

Crossplane has rights to the kinds of its own role, to XRs and to managed resources. Every other
kind needs a ClusterRole that is aggregated to Crossplane's; ``kit generate`` writes one.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import replace

from compositions.granted_rights import (
    AGGREGATE,
    WRITE,
    is_granted,
    right_to_hand_on,
    verbs_granted,
)
from compositions.managed_state import reference_forms, replacements
from ground.objects.kube_objects import (
    Kind,
    Manifest,
    dig,
    makes_nothing,
    metadata,
    only_observes,
    plural_of,
    wrapped_object,
)
from ground.objects.values import ABSENT
from kubeschema.field_paths import value_at
from kubeschema.known import refused_updates
from kubeschema.known.builtin_kinds import built_in
from kubeschema.known.known_kinds import KnownKind
from kubeschema.known.managed_behaviour import Behaviours, behaviour_of
from kubeschema.validate import Finding
from kubeschema.validate.findings import Reason
from orderkit.core.order.change import same
from orderkit.core.plan.assembly import (
    Assembly,
    Fault,
    OutcomeObject,
    Pair,
    key_text,
    objects_of,
    pairs_of,
)
from orderkit.core.plan.judging.fault_codes import JudgingFacts, OutcomeRule
from orderkit.core.secret_values import is_secret


def judge_rights(after: Assembly, facts: JudgingFacts) -> Iterator[Fault]:
    """Yield one fault per kind that Crossplane may not compose, at the first resource of it."""
    judged_kinds: set[Kind] = set()
    for obj in objects_of(after):
        if obj.prefix or obj.kind in judged_kinds:
            continue
        judged_kinds.add(obj.kind)
        missing = sorted(missing_rights(obj.kind, facts))
        if missing:
            yield Fault(
                obj.path,
                f"Crossplane may not compose {obj.kind}: no right to {', '.join(missing)}",
                "kind",
                "add the kind to spec.composes in kit.yaml and run 'orderkit kit generate', "
                f"or label a ClusterRole that grants it {AGGREGATE}: 'true'",
                code=OutcomeRule.RIGHTS,
            )


def missing_rights(kind: Kind, facts: JudgingFacts) -> set[str]:
    """Return the verbs that no role grants, each with its resource."""
    known_kind = facts.schemas.find(kind)
    plural = (known_kind.plural if known_kind else "") or plural_of(kind.kind)
    missing: set[str] = set()
    if not (is_granted(kind) or (known_kind is not None and known_kind.granted)):
        lacking = set(WRITE) - verbs_granted(facts.roles, kind.group, plural)
        missing |= {f"{verb} {plural}" for verb in lacking}
    handed = right_to_hand_on(kind)
    if handed is not None:
        verb, resource = handed
        if verb not in verbs_granted(facts.roles, kind.group, resource):
            missing.add(f"{verb} {resource}")
    return missing


_OTHER_SCHEMA = "another schema of this kind accepts it: is schemas/ of the pack up to date?"
_WAY_OUT = "put its CRD into schemas/ of the pack, or pass --schemas FOLDER"


def judge_schemas(
    before: Assembly, after: Assembly, facts: JudgingFacts
) -> tuple[list[Fault], list[str]]:
    """Return the faults, and what could not be checked."""
    faults: list[Fault] = []
    unjudged: set[str] = set()
    gaps: set[str] = set()
    for obj in (OutcomeObject("", after.xr), *objects_of(after)):
        known_kinds = _known_kinds(obj.kind, facts)
        if all(known_kind.is_open(obj.kind.version) for known_kind in known_kinds):
            unjudged.add(str(obj.kind))
        is_xr = (obj.kind.group, obj.kind.kind) in facts.assembled
        if is_xr and _is_as_before(obj, before):
            continue
        fields: set[str] = set()
        for known_kind in known_kinds:
            new_faults, open_rules = _judged(obj, known_kind, before, after)
            faults += [
                fault if known_kind is known_kinds[0] else _stricter(fault)
                for fault in new_faults
                if fault.field not in fields and (not is_xr or fault.code == OutcomeRule.TRANSITION)
            ]
            fields |= {fault.field for fault in new_faults}
            gaps |= open_rules
    unjudged_notes = (
        [f"not checked, no schema: {', '.join(sorted(unjudged))}; {_WAY_OUT}"] if unjudged else []
    )
    return list(dict.fromkeys(faults)), [*unjudged_notes, *sorted(gaps)]


def _stricter(fault: Fault) -> Fault:
    """Say that another schema of the kind accepts what this one refuses."""
    return replace(fault, hint="; ".join(filter(None, (fault.hint, _OTHER_SCHEMA))))


def _known_kinds(kind: Kind, facts: JudgingFacts) -> list[KnownKind]:
    """Return all schemas of a kind: what is served or delivered, and the built-in one."""
    built_in_kind = built_in().get((kind.group, kind.kind))
    if built_in_kind is not None and kind.version not in built_in_kind.validator.versions:
        built_in_kind = None
    candidates = (*facts.schemas.every(kind), built_in_kind)
    return [known_kind for known_kind in dict.fromkeys(candidates) if known_kind is not None]


def _judged(
    obj: OutcomeObject, known_kind: KnownKind, before: Assembly, after: Assembly
) -> tuple[list[Fault], set[str]]:
    """Check one object against one schema; return faults, and rules that were not evaluated."""
    # A status in a desired object has no effect: only its subresource can be written.
    manifest = {key: value for key, value in obj.manifest.items() if key != "status"}
    old = _old(obj, before)
    report = known_kind.validator.check(manifest, old)
    gaps = {
        f"{obj.path or 'the order'}: not evaluated here, a rule of {obj.kind} "
        f"at {gap.path or 'the object'}"
        for gap in report.not_evaluated
    }
    observed: Mapping[str, Manifest] = before.observed
    live = _object_in(obj, observed)
    watched = obj.prefix and makes_nothing(after.resources[obj.path])
    findings = [
        finding
        for finding in report.findings
        # `object_names` judges names by the rules of their kind.
        if finding.path != "metadata.name"
        and not (finding.reason is Reason.REQUIRED and (watched or _is_there(finding, live)))
    ]
    return [_fault(obj, finding) for finding in findings], gaps


def _old(obj: OutcomeObject, before: Assembly) -> Manifest | None:
    """Return the earlier version of the same object."""
    root = {"": before.xr} if before.xr.get("spec") else {}  # a new order has none
    old = _object_in(obj, {**root, **before.resources})
    if old is None or Kind.of(old) != obj.kind:
        return None
    is_same_name = metadata(old).get("name") == metadata(obj.manifest).get("name")
    return old if is_same_name else None


def _is_as_before(obj: OutcomeObject, before: Assembly) -> bool:
    old = _old(obj, before)
    return old is None or same(old.get("spec"), obj.manifest.get("spec"))


def _object_in(obj: OutcomeObject, resources: Mapping[str, Manifest]) -> Manifest | None:
    manifest = resources.get(obj.path)
    return wrapped_object(manifest) if manifest is not None and obj.prefix else manifest


def _is_there(finding: Finding, live: Manifest | None) -> bool:
    """Return whether another writer has set the missing field: an apply keeps it."""
    return live is not None and value_at(live, finding.path) is not None


def _fault(obj: OutcomeObject, finding: Finding) -> Fault:
    rule = OutcomeRule.TRANSITION if finding.reason is Reason.TRANSITION else OutcomeRule.SCHEMA
    return Fault(
        obj.path,
        f"{obj.kind.kind}: {finding.message}",
        obj.field(finding.path),
        finding.hint,
        code=rule,
        value=finding.value,
        rule=finding.rule or str(finding.reason),
    )


_HINT = "put the old value back: only a new object can have another, under another name"


def judge_updates(before: Assembly, after: Assembly, facts: JudgingFacts) -> Iterator[Fault]:
    """Yield the updates of existing objects that the API server or the provider refuses."""
    for pair in pairs_of(before, after):
        exists = facts.existing_paths is None or pair.path in facts.existing_paths
        if exists and not only_observes(after.resources[pair.path]):
            yield from _set_once(pair, before, after)
            yield from _replaced(pair, facts.behaviours)


def _set_once(pair: Pair, before: Assembly, after: Assembly) -> Iterator[Fault]:
    is_wrapped = pair.new is not after.resources[pair.path]
    prefix = "spec.forProvider.manifest" if is_wrapped else ""
    place = OutcomeObject(pair.path, pair.new, prefix)
    live = {} if is_wrapped else before.observed.get(pair.path, {})
    old = {**_stored(pair.old), "status": live.get("status") or {}}
    for refused in refused_updates(old, _stored(pair.new)):
        field = refused.field or refused.path
        yield Fault(
            pair.path,
            f"{key_text(pair.new)}: {field} cannot change once it is set: {refused.rule}",
            place.field(field),
            _HINT,
            code=OutcomeRule.IMMUTABLE,
            rule=refused.rule,
        )


def _stored(manifest: Manifest) -> Manifest:
    """Return an object as the server stores it: texts of a Secret are encoded."""
    if not is_secret(manifest) or not isinstance(manifest.get("stringData"), dict):
        return manifest
    texts = {
        k: base64.b64encode(str(v).encode()).decode() for k, v in manifest["stringData"].items()
    }
    return {**manifest, "data": {**(manifest.get("data") or {}), **texts}}


def _replaced(pair: Pair, behaviours: Behaviours) -> Iterator[Fault]:
    declared = behaviour_of(behaviours, pair.kind.group, pair.kind.kind).replaces
    if not declared:
        return
    old, new = (dig(m, "spec", "forProvider", default=None) or {} for m in (pair.old, pair.new))
    forms = [form for path in declared for form in reference_forms(path)]
    changed = [path for path, *_ in replacements(declared, old, new)]
    changed += [path for path, was, _ in replacements(forms, old, new) if was is not ABSENT]
    for path in changed:
        yield Fault(
            pair.path,
            f"{key_text(pair.new)}: another value of spec.forProvider.{path} needs another "
            "resource, and a provider never replaces one: this one would stay as it is, unsynced, "
            "until somebody deletes it or puts the old value back",
            f"spec.forProvider.{path}",
            _HINT,
            code=OutcomeRule.REPLACES,
            rule="replaces",
        )
