"""
Read a pack and its kits.

``pack.yaml`` marks the root and names the kits. Each kit has three folders: ``templates/<kit>``
with ``kit.yaml`` and ``template.yaml``, ``stations/<kit>`` and ``gitops/apis/<kit>``. A kit is read
from ``definition.yaml`` and, if there is one, ``kit.yaml``. All is read from a mapping of paths to
bytes; the caller fetches them from a folder, a wheel or a repository.

Messages name file, line, key and the way out. Whether both files of a kit agree is not checked
here: that is done before a pack is published (``core.kit.consistency``).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Annotated, Any, TypeVar

from msgspec import Meta, ValidationError
from msgspec.structs import asdict

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import Files
from ground.objects.kube_objects import XRD, Manifest, annotations_of, dig
from ground.shapes import StrictShape, changed, read_shape
from ground.suggestions import did_you_mean
from orderkit.core.documents import DocumentName, PlanRules, read_document
from orderkit.core.kit.field_names import spelt_out
from orderkit.core.kit.kit_file import Example, How, KitChange, KitFile, is_fixture, kit_schema
from orderkit.core.kit.kit_file_parts import Hints, KitFact, KitOutput
from orderkit.core.kit.model import DEFAULT_OWNER, Kit
from orderkit.core.kit.order_terms import Scalar
from yamlfiles import yaml11

__all__ = ["Files", "Kit", "Pack", "read_pack"]

TERASKY = "terasky.backstage.io/"
"""Annotations that the TeraSky ingestor reads; here they are defaults of kit.yaml."""
_XRD_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "kind": {"const": XRD.kind},
        "spec": {
            "type": "object",
            "required": ["group", "names", "versions"],
            "properties": {
                "group": {"type": "string"},
                "names": {
                    "type": "object",
                    "required": ["kind"],
                    "properties": {"kind": {"type": "string"}},
                },
                "versions": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"schema": {"type": "object"}}},
                    "contains": {"properties": {"referenceable": {"const": True}}},
                    "minContains": 1,
                    "maxContains": 1,
                },
            },
        },
    },
}


def kit_path(name: str) -> PurePosixPath:
    """Return where a kit's kit.yaml lies in a pack."""
    return PurePosixPath("templates", name, "kit.yaml")


def definition_path(name: str) -> PurePosixPath:
    """Return where a kit's XRD lies in a pack."""
    return PurePosixPath("gitops", "apis", name, "definition.yaml")


def read_kit(name: str, files: Files) -> Kit:
    """
    Read one kit of a pack. Nobody may change what is returned: equal files yield one kit.

    Raises:
        InvalidInputError: The XRD is missing, or a file is broken; file, line and key are named.
    """
    path = definition_path(name)
    if path not in files:
        raise InvalidInputError(
            str(path), None, "is missing", hint=f"kit '{name}' needs an XRD there"
        )
    return _read(name, files[path], files.get(kit_path(name)))


@functools.lru_cache(maxsize=100)  # every request to the service reads the kits of the pack
def _read(name: str, definition: bytes, kit: bytes | None) -> Kit:
    xrd = yaml11.load(definition, name=str(definition_path(name)), schema=_XRD_SCHEMA)
    files = {} if kit is None else {kit_path(name): kit}
    return kit_of(name, kit_spec(name, files), xrd)


def kit_spec(name: str, files: Files) -> dict[str, Any]:
    """
    Return ``spec`` of a kit's kit.yaml as it is written; empty if it has none.

    Raises:
        InvalidInputError: kit.yaml is broken; file, line and key are named.
    """
    return _document(name, files).get("spec") or {}


def _document(name: str, files: Files) -> dict[str, Any]:
    path = kit_path(name)
    if path not in files:
        return {}
    document = yaml11.load(files[path], name=str(path), schema=kit_schema())
    if document["metadata"]["name"] != name:
        line = yaml11.line_of(files[path], ("metadata", "name"))
        raise InvalidInputError(
            f"{path}:{line}: metadata.name",
            document["metadata"]["name"],
            f"is not the name of its folder, '{name}'",
        )
    return document


def kit_of(name: str, spec: Mapping[str, Any], xrd: Manifest) -> Kit:
    """
    Return a kit with the defaults of what the `spec` of its kit.yaml, checked before, leaves out.

    Raises:
        InvalidInputError: `spec` has something that no JSON has.
    """
    facts = spec.get("facts", ())
    data = {
        **spec,
        "name": name,
        "facts": [fact for fact in facts if not is_fixture(fact)],
        "fixtures": [*spec.get("fixtures", ()), *filter(is_fixture, facts)],
    }
    try:
        return _with_defaults(read_shape(KitFile, data), xrd)
    except ValidationError as error:
        raise InvalidInputError(str(kit_path(name)), None, str(error)) from error


def _with_defaults(file: KitFile, xrd: Manifest) -> Kit:
    kind = str(dig(xrd, "spec", "names", "kind", default=file.name))
    annotations = annotations_of(xrd)
    tags = re.split(r"[,\s]+", annotations.get(f"{TERASKY}backstage-tags", "").strip())
    given: dict[str, Any] = {**asdict(file), "tags": ()}
    kit = Kit(**given, xrd=xrd)
    return changed(
        kit,
        title=file.title or annotations.get(f"{TERASKY}title") or spelt_out(kind),
        description=file.description
        or annotations.get(f"{TERASKY}description")
        or str(kit.schema.get("description") or ""),
        owner=file.owner or annotations.get(f"{TERASKY}owner") or DEFAULT_OWNER,
        tags=tuple(filter(None, tags)) if file.tags is None else file.tags,
        fields={**_choice_hints(kit), **_fields(file)},
        changes=(*map(_titled, file.changes), *_import_changes(file)),
        examples=tuple(map(_titled, file.examples)),
        outputs=tuple(map(_titled, file.outputs)),
        facts=tuple(map(_titled, file.facts)),
    )


T = TypeVar("T", KitChange, Example, KitOutput, KitFact)


def _titled(part: T) -> T:
    return part if part.title else changed(part, title=spelt_out(part.name))


def _choice_hints(kit: Kit) -> Mapping[str, Hints]:
    """Return how the field that chooses a Composition looks, with the groups that it is in."""
    steps = kit.composition_path.split(".") if kit.compositions else []
    groups = (".".join(steps[:depth]) for depth in range(1, len(steps)))
    hints = dict.fromkeys(groups, Hints(title="Composition", advanced=False))
    if not steps:
        return hints
    labels: dict[Scalar, str] = {each.name: each.title or each.name for each in kit.compositions}
    choice = Hints(title="Composition", advanced=False, labels=labels)
    return {**hints, kit.composition_path: choice}


def _fields(file: KitFile) -> Mapping[str, Hints]:
    """Return the hints; a new order never manages at once what it takes over."""
    if file.imports is None:
        return file.fields
    manage = file.imports.manage
    return {**file.fields, manage: changed(file.fields.get(manage, Hints()), ask="later")}


def _import_changes(file: KitFile) -> Iterator[KitChange]:
    """Yield the reviewed changes of an import that the kit does not declare itself."""
    imports = file.imports
    declared = [path for change in file.changes for path in change.fields]
    if imports is None or not declared:
        return
    names = tuple(dict.fromkeys(imports.names.values()))
    missing = tuple(path for path in names if not is_covered(path, declared))
    if missing:
        yield KitChange("import", missing, "Take over what exists", how=How.REVIEW)
    if not is_covered(imports.manage, declared):
        yield KitChange(
            "manage",
            (imports.manage,),
            "Manage what was taken over",
            how=How.REVIEW,
            warning="From then on the order changes what it took over, and deletes it at its end.",
        )


def is_covered(path: str, fields: Iterable[str]) -> bool:
    """Return whether one of the fields is this one, or a group that has it."""
    return any(f"{path}.".startswith(f"{field}.") for field in fields)


_Names = Annotated[tuple[DocumentName, ...], Meta(extra_json_schema={"uniqueItems": True})]
_Version = Annotated[
    str,
    Meta(
        pattern=r"^v?[0-9]+\.[0-9]+\.[0-9]+[A-Za-z0-9.-]*(@sha256:[0-9a-f]{64})?$",
        description="pin one release, as v1.2.3 or v1.2.3@sha256:…: a tag can move",
    ),
]


class PackFile(StrictShape, frozen=True, kw_only=True):
    """``metadata.name`` and ``spec`` of pack.yaml."""

    name: DocumentName
    title: str = ""
    kits: _Names
    providers: _Names | None = None
    """Folders of ``gitops/providers`` that its kits need; None: all of them."""
    versions: Annotated[
        Mapping[str, _Version],
        Meta(extra_json_schema={"propertyNames": {"pattern": "^[a-z][a-z0-9]*(-[a-z0-9]+)*$"}}),
    ] = {}
    """The releases of the foreign software that the pack delivers."""
    plan: PlanRules = PlanRules()


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack's name, its kits and all its files."""

    name: str
    kit_names: tuple[str, ...]
    files: Files
    providers: tuple[str, ...] | None = None
    """Folders of ``gitops/providers`` that its kits need; None: all of them."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """The releases of the foreign software that the pack delivers."""
    data_kinds: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    """Whether kinds hold data, as the pack declares."""

    def unknown_kit(self, name: str) -> NotFoundError:
        """Return the error about a kit that the pack does not have."""
        names = ", ".join(self.kit_names)
        other = f"use one of: {names}" if names else "start one: orderkit kit new NAME"
        hint = did_you_mean(name, self.kit_names, other)
        return NotFoundError(f"kit '{name}' is not in pack '{self.name}'", hint=hint)

    def kit(self, name: str) -> Kit:
        """
        Read one kit.

        Raises:
            NotFoundError: The pack has no kit of that name.
            InvalidInputError: One of its files is malformed.
        """
        if name not in self.kit_names:
            raise self.unknown_kit(name)
        return read_kit(name, self.files)

    def kits(self) -> tuple[Kit, ...]:
        """Read every kit; raises like `kit`."""
        return tuple(self.kit(name) for name in self.kit_names)

    def check_only(self, name: str) -> None:
        """
        Check that no other kit defines the kind of this one: the cluster holds one definition.

        Raises:
            RefusedError: Another kit does.
            What `kit` raises.
        """
        kind = self.kit(name).kind
        for other in self.kit_names:
            with suppress(InvalidInputError):  # a broken kit is no reason to refuse another
                theirs = self.kit(other).kind
                if other != name and (theirs.group, theirs.kind) == (kind.group, kind.kind):
                    raise RefusedError(
                        f"kit {name} cannot be used: kit {other} defines {kind} too",
                        hint="ask a platform admin to remove one of these kits from the pack",
                    )

    def folder(self, path: str) -> Files:
        """Return the files below a folder, by their path relative to it."""
        root = PurePosixPath(path)
        return {
            file.relative_to(root): data
            for file, data in self.files.items()
            if file.is_relative_to(root)
        }


_OUTSIDE = frozenset({"..", ".git"})


def read_pack(files: Files) -> Pack:
    """
    Read ``pack.yaml``.

    Raises:
        InvalidInputError: It is missing or malformed, or a file's path leaves the pack.
    """
    for path in files:
        # a forge may hold trees that no git would check out (Gitea accepts them), and some commands
        # write a pack's files to disk
        if path.is_absolute() or _OUTSIDE & {part.casefold() for part in path.parts}:
            raise InvalidInputError(
                "path", str(path), "leaves the pack", hint="remove it from the pack's repository"
            )
    data = files.get(PurePosixPath("pack.yaml"))
    if data is None:
        raise InvalidInputError(
            "pack.yaml",
            None,
            "is missing: this is not a pack",
            hint="orderkit init DIR makes a pack; --pack DIR names one",
        )
    file = _pack_file(data)
    return Pack(file.name, file.kits, files, file.providers, file.versions, file.plan.holds_data)


@functools.lru_cache(maxsize=8)  # every request to the service reads the pack
def _pack_file(data: bytes) -> PackFile:
    return read_document(PackFile, data, name="pack.yaml", kinds=("Pack",), named="name")
