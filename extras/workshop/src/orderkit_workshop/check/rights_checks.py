"""
Rules about the kinds that a kit composes and requires: declared in kit.yaml, granted to Crossplane.

Every ClusterRole of the pack that is aggregated to Crossplane's role counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compositions.generated_passwords import SEED_SELECTOR
from compositions.granted_rights import (
    READ,
    WRITE,
    is_aggregated,
    is_granted,
    right_to_hand_on,
    verbs_granted,
)
from ground.objects.kube_objects import Kind
from kubeschema.validate.findings import Located
from orderkit.core.kit.kit_file import KindRef
from orderkit.core.kit.kit_resources import plural
from orderkit.core.kit.model import Kit
from orderkit_workshop.check.kit_under_check import Doc, KitUnderCheck, finding_at
from orderkit_workshop.check.pipeline_rule_codes import PipelineRule
from orderkit_workshop.check.trial_runs import Run

CLUSTER_ROLE = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole")
_ENVIRONMENT = ("apiextensions.crossplane.io", "EnvironmentConfig")


def check_rights(subject: KitUnderCheck, kit: Kit, runs: Sequence[Run]) -> Iterator[Located]:
    """Compare the kinds in the runs with kit.yaml and with the rights that the pack grants."""
    composed = sorted({kind for run in runs for kind in run.simulation.kinds})
    required = sorted({kind for run in runs for kind in run.simulation.requirements})
    yield from _bindings(subject, kit)
    yield from _declared(subject, kit, composed, required)
    if runs and not any(run.simulation.error for run in runs):
        yield from _unused(subject, kit, composed, required)
    for kind in composed:
        yield from _granted(
            subject, kind, _Right("compose", frozenset(WRITE), plural_in(kit, kind))
        )
        yield from _escalation(subject, kind)
    for kind in required:
        yield from _granted(subject, kind, _Right("read", frozenset(READ), plural_in(kit, kind)))
    for kind in sorted(_sources(runs)):
        yield from _source(subject, kind)


def _sources(runs: Sequence[Run]) -> set[Kind]:
    """Return the kinds that stations read, besides the platform's own seed of passwords."""
    return {
        Kind.parse(selector.api_version, selector.kind)
        for run in runs
        for composed in run.simulation.rounds
        for selector in composed.requirements
        if selector != SEED_SELECTOR
    }


@dataclass(frozen=True, slots=True)
class _Right:
    action: str
    verbs: frozenset[str]
    resource: str


def _declared(
    subject: KitUnderCheck, kit: Kit, composed: Sequence[Kind], required: Sequence[Kind]
) -> Iterator[Located]:
    declared = {Kind.parse(ref.api_version, ref.kind) for ref in kit.composes}
    for kind in composed:
        if kind not in declared:
            message = f"{kind.kind} of {kind.api_version} is composed but not declared"
            hint = f"add {{apiVersion: {kind.api_version}, kind: {kind.kind}}} to spec.composes"
            yield subject.in_kit(
                PipelineRule.COMPOSES_UNDECLARED, "spec.composes", message, hint=hint
            )
    declared = {Kind.parse(ref.api_version, ref.kind) for ref in kit.requires}
    for kind in required:
        if kind not in declared:
            message = f"{kind.kind} of {kind.api_version} is required but not declared"
            hint = f"add {{apiVersion: {kind.api_version}, kind: {kind.kind}}} to spec.requires"
            yield subject.in_kit(
                PipelineRule.REQUIRES_UNDECLARED, "spec.requires", message, hint=hint
            )


def _unused(
    subject: KitUnderCheck, kit: Kit, composed: Sequence[Kind], required: Sequence[Kind]
) -> Iterator[Located]:
    tables = (
        (PipelineRule.COMPOSES_UNUSED, "composes", kit.composes, composed),
        (PipelineRule.REQUIRES_UNUSED, "requires", kit.requires, required),
    )
    for rule, key, refs, kinds in tables:
        for index, ref in enumerate(refs):
            if Kind.parse(ref.api_version, ref.kind) not in kinds:
                message = f"no example uses {ref.kind} of {ref.api_version}"
                yield subject.in_kit(rule, f"spec.{key}[{index}]", message)


def _bindings(subject: KitUnderCheck, kit: Kit) -> Iterator[Located]:
    for index, ref in enumerate(kit.composes):
        if ref.kind in {"RoleBinding", "ClusterRoleBinding"} and not ref.binds:
            message = f"{ref.kind}: no roles are named, so Crossplane may bind any"
            yield subject.in_kit(PipelineRule.RIGHTS_ANY_ROLE, f"spec.composes[{index}]", message)


def _granted(subject: KitUnderCheck, kind: Kind, right: _Right) -> Iterator[Located]:
    if _is_granted(subject, kind):
        return
    missing = right.verbs - _verbs(subject, kind.group, right.resource)
    if missing:
        resources = f"{right.resource} of group '{kind.group}'"
        message = f"Crossplane may not {right.action} {resources}: {_list(missing)}"
        yield finding_at(PipelineRule.RIGHTS, subject.compositions[0], "spec.pipeline", message)


def _list(verbs: frozenset[str] | set[str]) -> str:
    return f"no right to {', '.join(sorted(verbs))}"


def _is_granted(subject: KitUnderCheck, kind: Kind) -> bool:
    """Crossplane's RBAC manager grants its own groups, those of providers, and the pack's XRs."""
    return is_granted(kind) or kind in subject.pack.xr_scopes


def _verbs(subject: KitUnderCheck, group: str, resource: str) -> set[str]:
    """Return the verbs that aggregated ClusterRoles of the pack grant."""
    return verbs_granted((doc.manifest for doc in _roles(subject)), group, resource)


def _roles(subject: KitUnderCheck) -> list[Doc]:
    return [doc for doc in subject.pack.of_kind(CLUSTER_ROLE) if is_aggregated(doc.manifest)]


def _escalation(subject: KitUnderCheck, kind: Kind) -> Iterator[Located]:
    handed = right_to_hand_on(kind)
    if handed is None:
        return
    verb, role = handed
    missing = {verb} - _verbs(subject, kind.group, role)
    if missing:
        message = f"{kind.kind} is composed: {_list(missing)}"
        yield finding_at(
            PipelineRule.RIGHTS_ESCALATION, subject.compositions[0], "spec.pipeline", message
        )


def _source(subject: KitUnderCheck, kind: Kind) -> Iterator[Located]:
    doc = subject.compositions[0]
    if (kind.group, kind.kind) == _ENVIRONMENT:
        if kind.version != "v1beta1":
            message = f"EnvironmentConfig is required as {kind.version}"
            yield finding_at(PipelineRule.ENVIRONMENT_VERSION, doc, "spec.pipeline", message)
    elif kind not in subject.pack.xr_scopes:
        message = f"{kind.kind} of {kind.api_version} is required"
        yield finding_at(PipelineRule.FACT_SOURCE, doc, "spec.pipeline", message)


def plural_in(kit: Kit, kind: Kind) -> str:
    """Return the plural of a kind: from kit.yaml, else formed by Kubernetes' rules."""
    matching = (ref for ref in (*kit.composes, *kit.requires) if _is(ref, kind))
    return plural(next(matching, KindRef(kind.api_version, kind.kind)))


def _is(ref: KindRef, kind: Kind) -> bool:
    return Kind.parse(ref.api_version, ref.kind) == kind
