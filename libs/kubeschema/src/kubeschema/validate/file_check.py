"""
Validate files against the XRDs of a pack: for repositories and for CI, without any platform.

Finds each object's XRD by group and kind, and gives every finding its position in the file. XRDs
among the files are checked too. Objects of other kinds are only counted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePath

from ground.errors import InvalidInputError, shorten
from ground.names import Files
from ground.objects.kube_objects import CRD, XRD, Kind, Manifest, metadata
from ground.suggestions import did_you_mean
from kubeschema.validate.findings import (
    Finding,
    FindingSeverity,
    Located,
    Reason,
    ValidationReport,
    located,
)
from kubeschema.validate.object_check import Validator
from kubeschema.validate.xrd_check import definition_findings
from kubeschema.xrd import BrokenXrdError, claim_crd_for
from yamlfiles.manifests import DEFAULT_LIMITS, ManifestError, looks_like_manifest
from yamlfiles.positions import LocatedManifest, located_manifests

__all__ = [
    "Definitions",
    "OldObject",
    "SourceFile",
    "ValidatedObject",
    "ValidationOutcome",
    "definition_sources",
    "old_objects",
    "validate",
]

Key = tuple[str, str, str, str]
OldObject = Callable[[Manifest], Manifest | None]
"""Returns what an object was before a change; None if that is not known."""
_LEFTOVERS = ("undefined", "[object Object]", "NaN")
"""What templates write for values that they do not have."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file's bytes under the name that messages give it."""

    path: PurePath
    data: bytes | None
    """None if it is larger than a file of manifests may be, or a symbolic link."""
    is_named: bool
    """The caller named the file, or Argo CD reads it; it was not just found in a folder."""
    is_link: bool = False


@dataclass(frozen=True, slots=True)
class ValidatedObject:
    """One object that was validated."""

    file: PurePath
    document: LocatedManifest
    old: Manifest | None
    """The object before the change, if it is known."""
    report: ValidationReport

    @property
    def line(self) -> int:
        return self.document.line


@dataclass(slots=True)
class ValidationOutcome:
    """All that was found, by file and line. `skipped` counts objects of other kinds."""

    @property
    def errors(self) -> int:
        """How many findings are errors; the rest are warnings and notes about XRDs."""
        return sum(
            isinstance(entry.about, Finding) and entry.about.severity is FindingSeverity.ERROR
            for entry in self.findings
        )

    @property
    def warnings(self) -> int:
        """How many findings are warnings."""
        return sum(
            isinstance(entry.about, Finding) and entry.about.severity is FindingSeverity.WARNING
            for entry in self.findings
        )

    files: int = 0
    definitions: int = 0
    """XRDs that were judged themselves."""
    skipped: int = 0
    objects: list[ValidatedObject] = field(default_factory=list)
    findings: list[Located] = field(default_factory=list)
    not_evaluated: list[Located] = field(default_factory=list)
    documents: list[tuple[PurePath, LocatedManifest]] = field(default_factory=list)
    """Every object that was read, also of other kinds."""
    empty: list[PurePath] = field(default_factory=list)
    """Files without an object."""

    def add(self, findings: Iterable[Located]) -> None:
        """Add findings, and sort all by file and position."""
        self.findings += findings
        self.sort()

    def merge(self, other: ValidationOutcome) -> None:
        """Take over what was found in other files."""
        self.files += other.files
        self.definitions += other.definitions
        self.skipped += other.skipped
        self.objects += other.objects
        self.not_evaluated += other.not_evaluated
        self.add(other.findings)

    def sort(self) -> None:
        """Sort everything by file and position."""
        for entries in (self.findings, self.not_evaluated):
            entries.sort(key=_position)


def _position(entry: Located) -> tuple[str, int, int, bool]:
    """Return the sort key of a finding; of several about a field the wrong type explains most."""
    is_minor = not isinstance(entry.about, Finding) or entry.about.reason is not Reason.WRONG_TYPE
    return str(entry.file), entry.line or 0, entry.column or 0, is_minor


class Definitions:
    """The XRDs (and CRDs) to validate against, by group and kind."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[PurePath, LocatedManifest]] = {}
        self._made: dict[tuple[str, str], Validator] = {}

    @classmethod
    def of(cls, sources: Iterable[SourceFile], own: PurePath | None = None) -> Definitions:
        """
        Read definition files; what else is in them is ignored.

        Args:
            own: The one that counts: it wins over others of its kind, and faults of others only
                leave them out. None: all count.

        Raises:
            InvalidInputError: One that counts cannot be read, or two define the same kind.
        """
        definitions = cls()
        for source in sorted(sources, key=lambda source: source.path != own):
            # of what counts, nothing is suppressed
            with suppress(*(() if own in (None, source.path) else (InvalidInputError,))):
                for definition in _read_definition(source):
                    if definition.manifest.get("kind") in {XRD.kind, CRD.kind}:
                        definitions.add(source.path, definition)
        return definitions

    def add(self, file: PurePath, definition: LocatedManifest) -> None:
        """
        Take one definition.

        Raises:
            InvalidInputError: It lacks group, kind or versions, or its kind is defined already.
        """
        spec = definition.manifest.get("spec")
        try:
            key = (spec["group"], spec["names"]["kind"])  # type: ignore[index]  # judged below
            sound = all(isinstance(v, dict) for v in spec["versions"])  # type: ignore[index]
        except (KeyError, TypeError):
            sound, key = False, ("", "")
        if not sound:
            raise InvalidInputError(
                str(file), metadata(definition.manifest).get("name"), _INCOMPLETE
            )
        if key in self._found:
            problem = f"is defined in {self._found[key][0]} too"
            raise InvalidInputError(str(file), f"{key[1]}.{key[0]}", problem)
        self._found[key] = (file, definition)
        claim = self._claim(definition.manifest)
        if claim is not None:
            self._found[key[0], claim["spec"]["names"]["kind"]] = (file, definition)
            self._made[key[0], claim["spec"]["names"]["kind"]] = Validator(claim)

    @staticmethod
    def _claim(definition: Manifest) -> Manifest | None:
        """Return the CRD of the claims a legacy XRD offers; a broken one offers none."""
        if definition.get("kind") != XRD.kind:
            return None
        try:
            return claim_crd_for(definition)
        except BrokenXrdError:
            return None

    def validator(self, kind: Kind) -> Validator | None:
        """Return the validator of a kind; None if nothing defines it."""
        key = (kind.group, kind.kind)
        if key in self._found and key not in self._made:
            self._made[key] = Validator(self._found[key][1].manifest)
        return self._made.get(key)

    def place(self, kind: Kind) -> tuple[PurePath, LocatedManifest]:
        """Return the file of a kind's definition, and its places."""
        return self._found[kind.group, kind.kind]

    def groups_of(self, kind: str) -> list[str]:
        """Return the groups in which a kind is defined."""
        return sorted(group for group, name in self._found if name == kind)

    def versions(self, group: str, kind: str) -> str:
        """Return the first served version of a defined kind."""
        validator = self.validator(Kind(group, "", kind))
        return next(iter(validator.versions if validator else ()), "")

    def kinds_of(self, group: str) -> list[str]:
        """Return the kinds that are defined in a group."""
        return sorted(kind for owner, kind in self._found if owner == group)


_INCOMPLETE = "is an incomplete definition: it needs spec.group, spec.names.kind and spec.versions"


def definition_sources(folder: PurePath, files: Files) -> list[SourceFile]:
    """Return the XRDs of the pack in a folder: ``gitops/apis/<kit>/definition.yaml``."""
    return [
        SourceFile(folder / path, data, is_named=True)
        for path, data in sorted(files.items())
        if path.parts[-4:-2] == ("gitops", "apis") and path.name == "definition.yaml"
    ]


def validate(
    sources: Iterable[SourceFile],
    definitions: Definitions,
    old: Iterable[SourceFile] = (),
    *,
    old_of: OldObject | None = None,
) -> ValidationOutcome:
    """
    Judge every object of the files.

    Args:
        old: Files as they were; an object of the same kind and name there is what the change
            starts from.
        old_of: The same as a function, if the old objects are not files.

    Raises:
        InvalidInputError: A file of `old` cannot be read.
    """
    old_of = old_of or old_objects(old)
    outcome = ValidationOutcome()
    judged_kinds: set[Kind] = set()
    for source in sources:
        outcome.files += 1
        for document in _read(source, outcome):
            outcome.documents.append((source.path, document))
            kind = Kind.of(document.manifest)
            if kind.kind == XRD.kind and kind.group == XRD.group:
                outcome.definitions += 1
                _judge_xrd(source.path, document, outcome)
                continue
            validator = definitions.validator(kind)
            if validator is None:
                _judge_unknown(source.path, document, definitions, outcome)
                continue
            before = old_of(document.manifest)
            report = validator.check(document.manifest, before)
            outcome.objects.append(ValidatedObject(source.path, document, before, report))
            _locate(source.path, document, report, outcome)
            for finding in _unmeant(document.manifest, is_namespaced=validator.is_namespaced):
                outcome.findings.append(located(source.path, document, finding.path, finding))
            judged_kinds.add(Kind(kind.group, "", kind.kind))
    for kind in sorted(judged_kinds):
        _judge_definition(kind, definitions, outcome)
    outcome.sort()
    return outcome


def old_objects(sources: Iterable[SourceFile]) -> OldObject:
    """
    Return the objects of files as they were before a change.

    Raises:
        InvalidInputError: A file cannot be read.
    """
    before = {_key(doc.manifest): doc.manifest for s in sources for doc in _read_old(s)}
    return lambda manifest: before.get(_key(manifest))


def _unmeant(manifest: Manifest, *, is_namespaced: bool) -> Iterator[Finding]:
    """Yield what the server accepts in ``metadata``, and hardly anybody intends."""
    meta = metadata(manifest)
    namespace = meta.get("namespace")
    if namespace and not is_namespaced:
        kind = Kind.of(manifest).kind
        yield Finding(
            "metadata.namespace",
            Reason.UNMEANT,
            f"{kind} is cluster-scoped: it is in no namespace",
            rule="scope Cluster",
            value=shorten(str(namespace)),
            hint="remove the namespace",
            severity=FindingSeverity.WARNING,
        )
    for field_name in ("annotations", "labels"):
        entries = meta.get(field_name)
        for name, value in entries.items() if isinstance(entries, dict) else ():
            if value in _LEFTOVERS:
                yield Finding(
                    f"metadata.{field_name}[{name}]",
                    Reason.UNMEANT,
                    f'"{value}" is what a template writes for a value that it does not have',
                    rule="a value",
                    value=str(value),
                    hint="write the value, or remove the line",
                    severity=FindingSeverity.WARNING,
                )


def _read(source: SourceFile, outcome: ValidationOutcome) -> tuple[LocatedManifest, ...]:
    """Read a file; a broken one is a finding if it was meant as manifests."""
    try:
        documents = _located(source)
    except ManifestError as error:
        if source.is_named or source.data is None or looks_like_manifest(source.data):
            finding = Finding("", Reason.UNREADABLE, error.reason, hint=error.hint)
            outcome.findings.append(Located(source.path, error.line, None, "", finding))
        return ()
    if not documents:
        outcome.empty.append(source.path)
    return documents


def _located(source: SourceFile) -> tuple[LocatedManifest, ...]:
    if source.data is None:
        if source.is_link:
            hint = "commit the file itself: what a link points to is not checked"
            raise ManifestError(str(source.path), "is a symbolic link", hint=hint)
        raise ManifestError(str(source.path), f"larger than {DEFAULT_LIMITS.size_bytes} bytes")
    if source.data.startswith(_LFS_POINTER):
        hint = "commit the file itself: take it out of .gitattributes; git add --renormalize ."
        raise ManifestError(str(source.path), "is a pointer of Git LFS, not the file", hint=hint)
    return located_manifests(str(source.path), source.data)


_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


@functools.lru_cache(maxsize=20)  # each look at an order reads its pack's
def _read_definition(source: SourceFile) -> tuple[LocatedManifest, ...]:
    try:
        return _located(source)
    except ManifestError as error:
        raise InvalidInputError(str(source.path), error.line, error.reason) from error


def _read_old(source: SourceFile) -> tuple[LocatedManifest, ...]:
    return _read_definition(source) if source.is_named else _read(source, ValidationOutcome())


def _key(manifest: Manifest) -> Key:
    kind, meta = Kind.of(manifest), metadata(manifest)
    return kind.group, kind.kind, str(meta.get("namespace") or ""), str(meta.get("name"))


def _locate(
    file: PurePath, document: LocatedManifest, report: ValidationReport, outcome: ValidationOutcome
) -> None:
    for finding in report.findings:
        outcome.findings.append(located(file, document, finding.path, finding))
    for gap in report.not_evaluated:
        outcome.not_evaluated.append(located(file, document, gap.path, gap))


def _judge_xrd(file: PurePath, document: LocatedManifest, outcome: ValidationOutcome) -> None:
    for finding in definition_findings(document.manifest):
        outcome.findings.append(located(file, document, finding.path, finding))


def _judge_definition(kind: Kind, definitions: Definitions, outcome: ValidationOutcome) -> None:
    """Report rules that the API server would refuse: they are never evaluated."""
    validator = definitions.validator(kind)
    file, definition = definitions.place(kind)
    for path, message in validator.faults() if validator else ():
        version, _, field_path = path.partition(": ")
        finding = Finding(field_path, Reason.BROKEN_SCHEMA, f"version {version}: {message}")
        index = next(
            (
                i
                for i, v in enumerate(definition.manifest["spec"]["versions"])
                if v["name"] == version
            ),
            0,
        )
        at = f"spec.versions[{index}].schema.openAPIV3Schema.{field_path}"
        outcome.findings.append(located(file, definition, at, finding))


def _judge_unknown(
    file: PurePath, document: LocatedManifest, definitions: Definitions, outcome: ValidationOutcome
) -> None:
    """Report an unknown kind of a known group, and a known kind of another; skip the others."""
    kind = Kind.of(document.manifest)
    kinds, groups = definitions.kinds_of(kind.group), definitions.groups_of(kind.kind)
    message, rule = f"no XRD defines {kind}", "a kind of the pack"
    if kinds:
        finding = Finding(
            "kind",
            Reason.UNKNOWN_KIND,
            message,
            rule,
            shorten(kind.kind),
            did_you_mean(kind.kind, kinds, f"kinds of {kind.group}: {', '.join(kinds)}"),
        )
    elif groups:
        version = definitions.versions(groups[0], kind.kind)
        hint = f"{kind.kind} is of apiVersion {groups[0]}/{version}"
        value = shorten(kind.api_version)
        finding = Finding("apiVersion", Reason.UNKNOWN_KIND, message, rule, value, hint)
    else:
        outcome.skipped += 1
        return
    outcome.findings.append(located(file, document, finding.path, finding))
