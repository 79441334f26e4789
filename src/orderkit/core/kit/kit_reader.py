"""
Read a kit from a pack's files: ``definition.yaml`` and, if there is one, ``kit.yaml``.

Messages name file, line, key and the way out. Whether both files agree is not checked here: that is
done before a pack is published (``core.kit.consistency``).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, TypeVar

from msgspec import ValidationError
from msgspec.structs import asdict

from ground.errors import InvalidInputError
from ground.objects.kube_objects import XRD, Manifest, annotations_of, dig
from ground.shapes import changed, read_shape
from orderkit.core.kit.field_titles import spelt_out
from orderkit.core.kit.form_shapes import Hints
from orderkit.core.kit.kit_file import Example, How, KitChange, KitFile, is_fixture, kit_schema
from orderkit.core.kit.model import DEFAULT_OWNER, Kit
from orderkit.core.kit.order_terms import Scalar
from orderkit.core.kit.shown_values import KitFact, KitOutput
from yamlfiles import yaml11
from yamlfiles.documents import Files

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
