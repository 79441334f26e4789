"""
The kit under check: its parsed files, its stations, and what the pack delivers.

`PackFacts` parses a pack's ``gitops`` folder once for all its kits; `KitUnderCheck` is one kit of
it. Every rule creates its findings through `finding_at`, `KitUnderCheck.in_kit` or
`KitUnderCheck.in_file`, so that file, line and advice come from one place.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from compositions.composed import PipelineStep, steps_of
from compositions.managed_state import ManagedKinds
from compositions.station import Station
from ground.errors import OrderkitError
from ground.names import Files
from ground.objects.kube_objects import COMPOSITION, FUNCTION, XRD, Kind, Manifest, dig, metadata
from kubeschema.known import SchemaSet, built_in, layer_of
from kubeschema.validate import Finding
from kubeschema.validate.findings import Located, located
from orderkit.core.kit.checked_kits import checked_kit
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import definition_path, kit_path
from orderkit.core.platform.baking import VERSION
from orderkit.core.unserved_kinds import is_kubernetes_own
from orderkit_workshop.check.rule_codes import Coded, KitRule
from yamlfiles import yaml11
from yamlfiles.manifests import ManifestError
from yamlfiles.positions import LocatedManifest, located_manifests

_GITOPS = PurePosixPath("gitops")
_YAML = {".yaml", ".yml"}


@dataclass(frozen=True, slots=True)
class Doc:
    """One object of a file."""

    path: PurePosixPath
    located: LocatedManifest

    @property
    def manifest(self) -> Manifest:
        return self.located.manifest

    @property
    def name(self) -> str:
        return str(metadata(self.manifest).get("name") or "")


@dataclass(frozen=True)
class PackFacts:
    """A pack's files and stations, and every object its ``gitops`` folder delivers."""

    files: Files
    stations: Mapping[str, Station] = field(default_factory=dict)
    programs: Mapping[str, Station] = field(default_factory=dict)
    """Functions whose own programs are on this machine."""
    embedded: Callable[[Kind], bool] | None = None
    """Whether the embedded cluster serves a kind of Kubernetes' own; None: it is not installed."""

    def is_not_embedded(self, kind: Kind) -> bool:
        """Return whether the embedded cluster lacks a kind of Kubernetes' own."""
        return (
            self.embedded is not None
            and is_kubernetes_own(kind)
            and (kind.group, kind.kind) not in layer_of(doc.manifest for doc in self.docs)
            and not self.embedded(kind)
        )

    @functools.cached_property
    def _read(self) -> tuple[list[Doc], list[Located]]:
        docs: list[Doc] = []
        broken: list[Located] = []
        for path in sorted(self.files):
            if path.is_relative_to(_GITOPS) and path.suffix in _YAML:
                docs_of_file, fault = read_docs(path, self.files[path])
                docs += docs_of_file
                broken += fault
        return docs, broken

    @property
    def docs(self) -> list[Doc]:
        """All objects below ``gitops``."""
        return self._read[0]

    @property
    def unreadable(self) -> list[Located]:
        """One finding for each unreadable file below ``gitops``."""
        return self._read[1]

    @functools.cached_property
    def by_folder(self) -> dict[PurePosixPath, list[Doc]]:
        """All objects below ``gitops``, by the folder of their file."""
        found_docs: dict[PurePosixPath, list[Doc]] = {}
        for doc in self.docs:
            found_docs.setdefault(doc.path.parent, []).append(doc)
        return found_docs

    @functools.cached_property
    def compositions(self) -> list[Doc]:
        """All delivered Compositions."""
        return self.of_kind(COMPOSITION)

    def of_kind(self, kind: Kind) -> list[Doc]:
        """Return the objects of a group and kind, in any version."""
        group_kind = (kind.group, kind.kind)
        return [
            doc
            for doc in self.docs
            if (Kind.of(doc.manifest).group, doc.manifest["kind"]) == group_kind
        ]

    @functools.cached_property
    def functions(self) -> dict[str, Doc]:
        """All delivered Functions, by name."""
        return {doc.name: doc for doc in self.of_kind(FUNCTION)}

    @functools.cached_property
    def packages(self) -> dict[str, str]:
        """The packages of these functions, by name."""
        return {
            name: str(dig(doc.manifest, "spec", "package", default=""))
            for name, doc in self.functions.items()
        }

    @functools.cached_property
    def versions(self) -> dict[str, str]:
        """The releases that pack.yaml pins, by their sentinels."""
        data = self.files.get(PurePosixPath("pack.yaml"), b"{}")
        pins = dig(yaml11.load(data, name="pack.yaml", schema={}), "spec", "versions", default={})
        return {
            f"__ORDERKIT_{VERSION}{name.upper().replace('-', '_')}__": str(pin)
            for name, pin in pins.items()
        }

    @functools.cached_property
    def schemas(self) -> SchemaSet:
        """
        What is known of kinds: ``schemas/``, the pack's own CRDs and XRDs, Kubernetes' own kinds.

        Raises:
            InvalidInputError: A file of ``schemas/`` cannot be read.
        """
        delivered = layer_of(doc.manifest for doc in self.docs)
        return SchemaSet((delivered, self.managed_kinds.layer, built_in()))

    @functools.cached_property
    def managed_kinds(self) -> ManagedKinds:
        """
        The managed kinds of ``schemas/``, and what they are like.

        Raises:
            InvalidInputError: A file of ``schemas/`` cannot be read.
        """
        return ManagedKinds.of_pack(self.files)

    @functools.cached_property
    def xr_scopes(self) -> dict[Kind, bool]:
        """Whether the pack's own XR kinds are namespaced, in every version."""
        scopes = {}
        for doc in self.of_kind(XRD):
            if misshapen(doc.manifest):
                continue
            spec = doc.manifest.get("spec") or {}
            for version in dig(spec, "versions", default=None) or ():
                kind = Kind(
                    str(spec.get("group")),
                    str(dig(version, "name")),
                    str(dig(spec, "names", "kind")),
                )
                scopes[kind] = spec.get("scope", "Namespaced") == "Namespaced"
        return scopes


_STATION_LINE = re.compile(r"\((?P<file>stations/[^\s():]+\.py):(?P<line>[0-9]+)\)")


def misshapen(xrd: Manifest) -> str:
    """Return the path of the first part of an XRD with a wrong type; empty if there is none."""
    for name in ("annotations", "labels"):
        entries = dig(xrd, "metadata", name, default=None) or {}
        plain = isinstance(entries, Mapping)
        if not plain or not all(isinstance(value, str) for value in entries.values()):
            return f"metadata.{name}"
    texts = (("group",), ("names", "kind"), ("names", "plural"))
    for steps in texts:
        found_text = dig(xrd, "spec", *steps)
        if not isinstance(found_text, str) or not found_text:
            return ".".join(("spec", *steps))
    versions = dig(xrd, "spec", "versions")
    if not isinstance(versions, list) or not versions:
        return "spec.versions"
    for index, version in enumerate(versions):
        schema = dig(version, "schema", "openAPIV3Schema")
        if not isinstance(dig(version, "name"), str):
            return f"spec.versions[{index}].name"
        if not isinstance(schema, Mapping):
            return f"spec.versions[{index}].schema.openAPIV3Schema"
    return ""


def steps_in(doc: Doc) -> tuple[PipelineStep, ...] | None:
    """Return the steps of a Composition; None if they are unreadable."""
    spec = dig(doc.manifest, "spec")
    pipeline = dig(spec, "pipeline", default=None)
    entries = pipeline if isinstance(pipeline, list) else None if pipeline else []
    if entries is None or not isinstance(spec, Mapping):
        return None
    for entry in entries:
        step_input = dig(entry, "input", default=None) or {}
        selectors = dig(entry, "requirements", "requiredResources", default=None) or []
        shaped = isinstance(step_input, Mapping) and isinstance(selectors, list)
        if not isinstance(entry, Mapping) or not shaped:
            return None
        if not all(isinstance(selector, Mapping) for selector in selectors):
            return None
    return steps_of(spec)


def read_docs(path: PurePosixPath, data: bytes) -> tuple[list[Doc], list[Located]]:
    """Parse a file; an unreadable one gives a finding instead of objects."""
    try:
        return [Doc(path, manifest) for manifest in located_manifests(str(path), data)], []
    except ManifestError as error:
        finding = Finding(
            "", KitRule.UNREADABLE, error.reason, hint=error.hint or KitRule.UNREADABLE.advice
        )
        return [], [Located(path, error.line, None, "", finding)]


@dataclass(frozen=True)
class KitUnderCheck:
    """One kit under check."""

    name: str
    pack: PackFacts

    @property
    def room(self) -> PurePosixPath:
        """The folder of its XRD and Compositions."""
        return definition_path(self.name).parent

    @functools.cached_property
    def kit(self) -> Kit | None:
        """The kit; None if it is unreadable, which has findings of its own."""
        if self.definition is None or misshapen(self.definition.manifest):
            return None
        try:
            return checked_kit(self.name, self.pack.files)
        except OrderkitError:
            return None

    @functools.cached_property
    def kit_docs(self) -> tuple[list[Doc], list[Located]]:
        """The objects of kit.yaml, or the finding why it is unreadable."""
        path = kit_path(self.name)
        if path not in self.pack.files:
            return [], []
        return read_docs(path, self.pack.files[path])

    @property
    def kit_doc(self) -> Doc | None:
        docs = self.kit_docs[0]
        return docs[0] if docs else None

    @property
    def docs(self) -> list[Doc]:
        """Objects in the kit's folder below ``gitops/apis``."""
        return self.pack.by_folder.get(self.room, [])

    @functools.cached_property
    def definition(self) -> Doc | None:
        """The XRD."""
        path = definition_path(self.name)
        docs = (doc for doc in self.docs if doc.path == path and doc.manifest["kind"] == XRD.kind)
        return next(docs, None)

    @functools.cached_property
    def compositions(self) -> list[Doc]:
        """Compositions in the kit's folder, and those for its kind in other folders."""
        definition = self.definition
        group = dig(definition.manifest, "spec", "group") if definition else None
        kind = dig(definition.manifest, "spec", "names", "kind") if definition else None
        compositions = []
        for doc in self.pack.compositions:
            ref = dig(doc.manifest, "spec", "compositeTypeRef", default={})
            ours = (str(dig(ref, "apiVersion")).rpartition("/")[0], dig(ref, "kind")) == (
                group,
                kind,
            )
            if ours or doc.path.parent == self.room:
                compositions.append(doc)
        return compositions

    def in_kit(self, rule: Coded, path: str, message: str, *, hint: str = "") -> Located:
        """Return a finding in kit.yaml, or at the XRD where there is no kit.yaml."""
        doc = self.kit_doc
        if doc is not None:
            return finding_at(rule, doc, path, message, hint=hint)
        return self.in_file(rule, definition_path(self.name), message, hint=hint)

    def in_station(self, rule: Coded, message: str) -> Located | None:
        """Return a finding at the line of a station that a message names; None: it names none."""
        match = _STATION_LINE.search(message)
        file = PurePosixPath(match["file"]) if match else None
        if match is None or file is None or file not in self.pack.files:
            return None
        return self.in_file(rule, file, message, line=int(match["line"]))

    def in_file(
        self,
        rule: Coded,
        file: PurePosixPath,
        message: str,
        *,
        line: int | None = None,
        hint: str = "",
    ) -> Located:
        """Return a finding in a file."""
        about = Finding("", rule, message, hint=hint or rule.advice, severity=rule.severity)
        return Located(file, line, None, f"kit {self.name}", about)


def finding_at(rule: Coded, doc: Doc, path: str, message: str, *, hint: str = "") -> Located:
    """Return a finding at a field of an object."""
    about = Finding(path, rule, message, hint=hint or rule.advice, severity=rule.severity)
    return located(doc.path, doc.located, path, about)
