"""
Check every composed object against its schema, also objects wrapped by provider-kubernetes.

The pack's XRs are checked where they are assembled; this module checks all other objects, and the
change from the existing object to the desired one (transition rules). An unknown field is a fault:
Crossplane's server-side apply fails on it, and the API server silently drops it for other
writers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ground.objects.kube_objects import Kind, Manifest, makes_nothing, metadata, wrapped_object
from kubeschema.field_paths import value_at
from kubeschema.known.builtin_kinds import built_in
from kubeschema.known.known_kinds import KnownKind
from kubeschema.validate import Finding
from kubeschema.validate.findings import Reason
from orderkit.core.order.change import same
from orderkit.core.plan.assembly import Assembly, Fault
from orderkit.core.plan.judging.fault_codes import JudgingFacts, OutcomeRule
from orderkit.core.plan.outcome_objects import OutcomeObject, objects_of

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
