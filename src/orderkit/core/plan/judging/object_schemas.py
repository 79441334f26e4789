"""
The schema of every composed object, also of what provider-kubernetes Objects wrap.

XRs of the pack are judged where they are assembled; here it is everything else, and the step from
what exists to what is wanted (transition rules). A field that the schema does not know is a fault:
Crossplane's server-side apply fails on it, and other writers have it dropped in silence.
"""

from __future__ import annotations

from collections.abc import Mapping

from orderkit.core.objects.kube_objects import Kind, Manifest, metadata
from orderkit.core.order.change import same
from orderkit.core.plan.assembly import Assembly, Fault
from orderkit.core.plan.judging.verdicts import JudgingFacts, OutcomeRule
from orderkit.core.plan.outcome_objects import Part, makes_nothing, parts_of, wrapped
from orderkit.core.schema.known.builtin_kinds import built_in
from orderkit.core.schema.known.known_kinds import KnownKind
from orderkit.core.schema.validate import Finding
from orderkit.core.schema.validate.findings import Reason
from orderkit.core.schema.validate.hints import value_at

_WAY_OUT = "put its CRD into schemas/ of the pack, or give --schemas FOLDER"


def judge_shapes(
    before: Assembly, after: Assembly, facts: JudgingFacts
) -> tuple[list[Fault], list[str]]:
    """Return what is wrong, and what could not be judged."""
    faults: list[Fault] = []
    unjudged: set[str] = set()
    gaps: set[str] = set()
    for part in (Part("", after.xr), *parts_of(after)):
        known = _known(part.kind, facts)
        if not known:
            unjudged.add(str(part.kind))
        is_xr = (part.kind.group, part.kind.kind) in facts.assembled
        if is_xr and _is_as_before(part, before):
            continue
        for each in known:
            found, open_rules = _judged(part, each, before, after)
            faults += [each for each in found if not is_xr or each.code == OutcomeRule.TRANSITION]
            gaps |= open_rules
    told = [f"not judged, no schema: {', '.join(sorted(unjudged))}; {_WAY_OUT}"] if unjudged else []
    return list(dict.fromkeys(faults)), [*told, *sorted(gaps)]


def _known(kind: Kind, facts: JudgingFacts) -> list[KnownKind]:
    """Return everybody who can judge a kind: who serves or delivers it, and our own table."""
    own = built_in().get((kind.group, kind.kind))
    if own is not None and kind.version not in own.validator.versions:
        own = None
    found = facts.schemas.find(kind)
    both = [found] if found is own else [found, own]
    return [each for each in both if each is not None]


def _judged(
    part: Part, known: KnownKind, before: Assembly, after: Assembly
) -> tuple[list[Fault], set[str]]:
    """Judge one object by one schema; return faults and rules without a verdict."""
    manifest = {key: value for key, value in part.manifest.items() if key != "status"}
    old = _old(part, before)
    report = known.validator.check(manifest, old)
    gaps = {
        f"{part.path or 'the order'}: not evaluated here, a rule of {part.kind} "
        f"at {gap.path or 'the object'}"
        for gap in report.not_evaluated
    }
    there: Mapping[str, Manifest] = before.observed
    live = _living(part, there)
    watched = part.prefix and makes_nothing(after.resources[part.path])
    found = [
        finding
        for finding in report.findings
        if finding.path != "metadata.name"
        and not (finding.reason is Reason.REQUIRED and (watched or _is_there(finding, live)))
    ]
    return [_fault(part, finding) for finding in found], gaps


def _old(part: Part, before: Assembly) -> Manifest | None:
    """Return the object that the part replaces, if it is the same one."""
    root = {"": before.xr} if before.xr.get("spec") else {}  # an order that is new has none
    found = _living(part, {**root, **before.resources})
    if found is None or Kind.of(found) != part.kind:
        return None
    same = metadata(found).get("name") == metadata(part.manifest).get("name")
    return found if same else None


def _is_as_before(part: Part, before: Assembly) -> bool:
    old = _old(part, before)
    return old is None or same(old.get("spec"), part.manifest.get("spec"))


def _living(part: Part, resources: Mapping[str, Manifest]) -> Manifest | None:
    found = resources.get(part.path)
    return wrapped(found) if found is not None and part.prefix else found


def _is_there(finding: Finding, live: Manifest | None) -> bool:
    """Say whether somebody else has set what is missing here: an apply keeps it."""
    return live is not None and value_at(live, finding.path) is not None


def _fault(part: Part, finding: Finding) -> Fault:
    rule = OutcomeRule.TRANSITION if finding.reason is Reason.TRANSITION else OutcomeRule.SCHEMA
    return Fault(
        part.path,
        f"{part.kind.kind}: {finding.message}",
        part.field(finding.path),
        finding.hint,
        code=rule,
        value=finding.value,
        rule=finding.rule or str(finding.reason),
    )
