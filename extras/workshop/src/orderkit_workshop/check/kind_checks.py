"""
Rules about the kinds that a kit composes and requires: with schema, declared, and granted.

Composed kinds have a schema in ``schemas/``, and copied files are as they were copied. Kinds are
declared in kit.yaml and granted to Crossplane: every ClusterRole of the pack that is aggregated to
Crossplane's role counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from compositions.granted_rights import (
    READ,
    WRITE,
    is_aggregated,
    is_granted,
    right_to_hand_on,
    verbs_granted,
)
from compositions.resource_builders import SEED_SELECTOR
from ground.errors import InvalidInputError, OrderkitError
from ground.objects.kube_objects import (
    WRAPPED,
    Kind,
    Manifest,
    first_and_more,
    makes_nothing,
    wrapped_object,
)
from kubeschema.known.crd_files import FOLDER, SOURCES, SchemaSource, file_digest, read_sources
from kubeschema.known.known_kinds import GroupKind, SchemaSet, is_servers_own
from kubeschema.validate.findings import Located, Reason
from orderkit.core.kit.checked_kits import checked_kit
from orderkit.core.kit.kit_file import KindRef
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_kinds import plural
from orderkit.core.kit.pack import read_pack
from orderkit.core.platform.baking import VERSION
from orderkit_workshop.check.behaviour_rule_codes import PipelineRule
from orderkit_workshop.check.kit_under_check import Doc, KitUnderCheck, PackFacts, finding_at
from orderkit_workshop.check.rule_codes import KitRule
from orderkit_workshop.check.trial_runs import Run


@dataclass(frozen=True, slots=True)
class ComposedKind:
    """A kind that kits of a pack name in ``composes``."""

    kind: Kind
    kits: tuple[str, ...]
    is_own: bool
    """Kubernetes, Crossplane or the pack itself defines it."""

    @property
    def needs_schema(self) -> bool:
        return not self.is_own

    @property
    def group_kind(self) -> GroupKind:
        return self.kind.group, self.kind.kind

    @property
    def where(self) -> str:
        return f"kit {first_and_more(self.kits)}"


def composed_kinds(facts: PackFacts) -> list[ComposedKind]:
    """Return the kinds that readable kits compose, sorted."""
    kits_by_kind: dict[Kind, list[str]] = {}
    for name in read_pack(facts.files).kit_names:
        try:
            kit = checked_kit(name, facts.files)
        except OrderkitError:
            continue  # `kit check` reports it
        for ref in kit.composes:
            kits_by_kind.setdefault(Kind.parse(ref.api_version, ref.kind), []).append(name)
    delivered = facts.schemas.layers[0]
    return [
        ComposedKind(
            kind, tuple(kits), is_servers_own(kind) or (kind.group, kind.kind) in delivered
        )
        for kind, kits in sorted(kits_by_kind.items())
    ]


def without_schema(facts: PackFacts) -> Iterator[str]:
    """Describe each composed kind whose fields nothing checks."""
    for composed in composed_kinds(facts):
        if composed.needs_schema and all(
            known_kind.is_open(composed.kind.version)
            for known_kind in facts.schemas.every(composed.kind)
        ):
            yield f"{composed.kind} ({composed.kind.version}), composed by {composed.where}"


@dataclass(frozen=True, slots=True)
class UnfitField:
    """A field of a composed object that the schema of its kind refuses."""

    at: str
    """Which object, in words."""
    fault: str
    """Kind, field, and what is wrong; the same for every object with that fault."""
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.at} is a {self.fault}{f' ({self.hint})' * bool(self.hint)}"


def unfit_fields(schemas: SchemaSet, name: str, composed: Manifest) -> Iterator[UnfitField]:
    """
    Check a composed object, and what it wraps, against every known schema of their kinds.

    Args:
        name: The composed object's logical name.
    """
    yield from _unfit(schemas, f"'{name}'", composed)
    inner = wrapped_object(composed)
    if inner is not None:
        at = f"'{name}', {'.'.join(WRAPPED)}"
        yield from _unfit(schemas, at, inner, is_partial=makes_nothing(composed))


def _unfit(
    schemas: SchemaSet, at: str, composed: Manifest, *, is_partial: bool = False
) -> Iterator[UnfitField]:
    manifest = {key: value for key, value in composed.items() if key != "status"}
    reported = {"metadata.name"}  # Crossplane names what has no name
    for known_kind in schemas.every(Kind.of(manifest)):
        findings = known_kind.validator.check(manifest).findings
        for finding in findings:
            if finding.path in reported or (is_partial and finding.reason is Reason.REQUIRED):
                continue
            fault = f"{manifest['kind']}: {finding.path}: {finding.message}"
            yield UnfitField(at, fault, finding.hint)
        reported |= {finding.path for finding in findings}


def check_schema_files(subject: KitUnderCheck, kit: Kit) -> Iterator[Located]:
    """Compare the schemas of the kinds that a kit composes with the record of their sources."""
    files = subject.pack.files
    try:
        sources = read_sources(files)
    except InvalidInputError as error:
        yield subject.in_file(KitRule.SCHEMA_SOURCES, SOURCES, str(error), hint=error.hint)
        return
    groups = {Kind.parse(ref.api_version, ref.kind).group for ref in kit.composes}
    for source in sources:
        names = [name for name in sorted(source.files) if name.rpartition("_")[0] in groups]
        for name in names:
            problem = file_problem(source, name, files.get(FOLDER / name))
            if problem:
                yield subject.in_file(KitRule.SCHEMA_CHANGED, FOLDER / name, problem)
        pin = _pin(source, subject.pack)
        if names and pin and source.version and pin != source.version:
            message = f"{source.package} is pinned at {pin}, its schemas are of {source.version}"
            hint = f"orderkit kit schemas add {source.package}@{pin}"
            yield subject.in_file(KitRule.SCHEMA_VERSION, SOURCES, message, hint=hint)


def file_problem(source: SchemaSource, name: str, data: bytes | None) -> str:
    """Say how a file differs from what was copied; empty: it does not."""
    if data is None:
        return f"is missing; it was copied from {source.name}"
    digest = file_digest(data)
    if digest == source.files[name]:
        return ""
    return (
        f"has the digest {digest}, and {source.files[name]} when it was copied from {source.name}"
    )


def _pin(source: SchemaSource, facts: PackFacts) -> str:
    """Return the version of a package that pack.yaml pins, without its digest; empty: none."""
    name = PurePosixPath(source.package).name.upper().replace("-", "_").replace(".", "_")
    return facts.versions.get(f"__ORDERKIT_{VERSION}{name}__", "").partition("@")[0]


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
