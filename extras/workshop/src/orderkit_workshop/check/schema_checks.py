"""Rules about ``schemas/``: composed kinds have a schema, copied files are as they were copied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from ground.errors import InvalidInputError, OrderkitError
from ground.objects.conditions import first_and_more
from ground.objects.kube_objects import WRAPPED, Kind, Manifest, makes_nothing, wrapped_object
from kubeschema.known.crd_files import FOLDER, SOURCES, SchemaSource, file_digest, read_sources
from kubeschema.known.known_kinds import GroupKind, SchemaSet, is_servers_own
from kubeschema.validate.findings import Located, Reason
from orderkit.core.kit.checked_kits import checked_kit
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import read_pack
from orderkit.core.platform.baking import VERSION
from orderkit_workshop.check.kit_under_check import KitUnderCheck, PackFacts
from orderkit_workshop.check.rule_codes import KitRule


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
