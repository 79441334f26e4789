"""
Read a kit from a pack's files: ``definition.yaml`` and, if there is one, ``kit.yaml``.

Messages name file, line, key and the way out. Whether both files agree is not checked here: that is
done before a pack is published (``core.kit.consistency``).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from ground.errors import InvalidInputError
from ground.objects.kube_objects import XRD, Manifest, annotations_of, dig
from orderkit.core.kit.field_titles import spelt_out
from orderkit.core.kit.kit_schema import KIT_SCHEMA
from orderkit.core.kit.lease_approval_windows import approval_of, lease_of, windows_of
from orderkit.core.kit.model import (
    AcceptedDanger,
    AtLeast,
    Direction,
    End,
    Example,
    First,
    Gate,
    Hidden,
    Hints,
    How,
    Import,
    KindRef,
    Kit,
    KitAttention,
    KitChange,
    KitFact,
    KitOutput,
    Link,
    Page,
    Picker,
    Refers,
    Survivor,
    When,
)
from yamlfiles import yaml11
from yamlfiles.documents import Files, data_kinds

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
    Return ``spec`` of a kit's kit.yaml; empty if it has none.

    Raises:
        InvalidInputError: kit.yaml is broken; file, line and key are named.
    """
    return _document(name, files).get("spec") or {}


def _document(name: str, files: Files) -> dict[str, Any]:
    path = kit_path(name)
    if path not in files:
        return {}
    document = yaml11.load(files[path], name=str(path), schema=KIT_SCHEMA)
    if document["metadata"]["name"] != name:
        line = yaml11.line_of(files[path], ("metadata", "name"))
        raise InvalidInputError(
            f"{path}:{line}: metadata.name",
            document["metadata"]["name"],
            f"is not the name of its folder, '{name}'",
        )
    return document


def kit_of(name: str, spec: Mapping[str, Any], xrd: Manifest) -> Kit:
    """Return a kit with the defaults of what `spec`, checked before, leaves out."""
    kind = str(dig(xrd, "spec", "names", "kind", default=name))
    name_from = spec.get("nameFrom", ())
    kit = Kit(name=name, xrd=xrd)
    imports = _import(spec["import"]) if "import" in spec else None
    annotations = annotations_of(xrd)
    tags = re.split(r"[,\s]+", annotations.get(f"{TERASKY}backstage-tags", "").strip())
    return Kit(
        name=name,
        xrd=xrd,
        title=spec.get("title") or annotations.get(f"{TERASKY}title") or spelt_out(kind),
        description=spec.get("description")
        or annotations.get(f"{TERASKY}description")
        or str(kit.schema.get("description") or ""),
        owner=spec.get("owner") or annotations.get(f"{TERASKY}owner") or kit.owner,
        type=spec.get("type", kit.type),
        tags=tuple(spec.get("tags", filter(None, tags))),
        name_from=(name_from,) if isinstance(name_from, str) else tuple(name_from),
        team_from=spec.get("teamFrom", ""),
        xr_name=spec.get("xrName", kit.xr_name),
        xr_namespace=spec.get("xrNamespace", ""),
        aliases=spec.get("aliases", {}),
        unfold=spec.get("unfold", ""),
        yaml_fields=tuple(spec.get("yamlFields", ())),
        pages=tuple(_page(page) for page in spec.get("pages", ())),
        fields=_fields(spec.get("fields", {}), imports),
        hidden={
            path: Hidden(entry["from"], entry.get("pattern", ""))
            for path, entry in spec.get("hidden", {}).items()
        },
        links=tuple(_link(link) for link in spec.get("links", ())),
        changes=(*map(_change, spec.get("changes", ())), *_import_changes(spec, imports)),
        imports=imports,
        end=_end(spec.get("end", {})),
        lease=lease_of(spec.get("lease", {})),
        gate=_gate(spec["gate"]) if "gate" in spec else None,
        approval=approval_of(spec.get("approval", {})),
        windows=windows_of(spec.get("windows", ())),
        examples=tuple(
            Example(e["name"], e.get("title") or spelt_out(e["name"]), e["values"])
            for e in spec.get("examples", ())
        ),
        composes=tuple(map(_kind, spec.get("composes", ()))),
        requires=tuple(map(_kind, spec.get("requires", ()))),
        public_keys=frozenset(dig(spec, "secrets", "public", default=())),
        data_kinds=data_kinds(spec),
        accepts=tuple(map(_accepted, dig(spec, "plan", "accepts", default=()))),
        outputs=tuple(map(_output, spec.get("outputs", ()))),
        facts=tuple(_fact(entry) for entry in spec.get("facts", ()) if not is_fixture(entry)),
        attention=tuple(map(_attention, spec.get("attention", ()))),
        fixtures=(
            *spec.get("fixtures", ()),
            *(entry for entry in spec.get("facts", ()) if is_fixture(entry)),
        ),
    )


def is_fixture(entry: Mapping[str, Any]) -> bool:
    """Say whether an entry of ``facts`` is an object: kits from before ``fixtures`` have those."""
    return "apiVersion" in entry


def _accepted(entry: Mapping[str, Any]) -> AcceptedDanger:
    return AcceptedDanger(entry["danger"], entry["part"], entry["reason"], entry.get("words", ""))


def _output(entry: Mapping[str, Any]) -> KitOutput:
    secret = entry.get("secret", False)
    source = secret if isinstance(secret, Mapping) else {}
    return KitOutput(
        name=entry["name"],
        title=entry.get("title") or spelt_out(entry["name"]),
        path=entry.get("path", ""),
        secret_name=source.get("name", ""),
        secret_namespace=source.get("namespace", ""),
        secret_key=source.get("key", ""),
        is_secret=bool(secret),
        is_link=entry.get("link", False),
    )


def _fact(entry: Mapping[str, Any]) -> KitFact:
    return KitFact(
        entry["name"],
        entry.get("title") or spelt_out(entry["name"]),
        entry["path"],
        entry.get("unit", ""),
        entry.get("format", ""),
        entry.get("spend", False),
    )


def _attention(entry: Mapping[str, Any]) -> KitAttention:
    return KitAttention(
        entry["when"], entry["sentence"], entry.get("change", ""), entry.get("button", "")
    )


def _page(entry: Mapping[str, Any]) -> Page:
    return Page(entry["title"], tuple(entry["fields"]), entry.get("description", ""))


def _hints(entry: Mapping[str, Any]) -> Hints:
    built = ("picker", "refers", "when", "labels")
    plain = {key: value for key, value in entry.items() if key not in built}
    return Hints(
        **plain,
        labels={str(value): text for value, text in entry.get("labels", {}).items()},
        picker=_picker(entry["picker"]) if "picker" in entry else None,
        refers=_refers(entry["refers"]) if "refers" in entry else None,
        when=_when(entry["when"]) if "when" in entry else None,
    )


def _fields(entries: Mapping[str, Mapping[str, Any]], imports: Import | None) -> dict[str, Hints]:
    """Return the hints; a new order never manages at once what it takes over."""
    hints = {path: _hints(entry) for path, entry in entries.items()}
    if imports is not None:
        hints[imports.manage] = replace(hints.get(imports.manage, Hints()), ask="later")
    return hints


def _import(entry: Mapping[str, Any]) -> Import:
    return Import(entry["names"], entry["manage"])


def _import_changes(spec: Mapping[str, Any], imports: Import | None) -> Iterator[KitChange]:
    """Yield the reviewed changes of an import that the kit does not declare itself."""
    declared = [path for change in spec.get("changes", ()) for path in change["fields"]]
    if imports is None or not declared:
        return
    names = tuple(dict.fromkeys(imports.names.values()))
    missing = tuple(path for path in names if not is_covered(path, declared))
    if missing:
        yield KitChange("import", "Take over what exists", missing, how=How.REVIEW)
    if not is_covered(imports.manage, declared):
        yield KitChange(
            "manage",
            "Manage what was taken over",
            (imports.manage,),
            how=How.REVIEW,
            warning="From then on the order changes what it took over, and deletes it at its end.",
        )


def is_covered(path: str, fields: Iterable[str]) -> bool:
    """Return whether one of the fields is this one, or a group that has it."""
    return any(f"{path}.".startswith(f"{field}.") for field in fields)


def _picker(entry: Mapping[str, Any]) -> Picker:
    filters = entry.get("filter", ())
    return Picker(
        entry["kind"],
        tuple([filters] if isinstance(filters, dict) else filters),
        entry.get("value", "reference"),
    )


def _refers(entry: Mapping[str, Any]) -> Refers:
    return Refers(entry["apiVersion"], entry["kind"], entry.get("ready", ""))


def _when(entry: Mapping[str, Any]) -> When:
    ((path, values),) = entry.items()
    return When(path, tuple(values) if isinstance(values, list) else (values,))


def _link(entry: Mapping[str, Any]) -> Link:
    return Link(
        entry["title"], entry.get("url", ""), entry.get("entityRef", ""), entry.get("icon", "")
    )


def _change(entry: Mapping[str, Any]) -> KitChange:
    return KitChange(
        name=entry["name"],
        title=entry.get("title") or spelt_out(entry["name"]),
        fields=tuple(entry["fields"]),
        direction=Direction(entry.get("direction", "any")),
        who=tuple(entry.get("who", ("team",))),
        how=How(entry.get("how", "direct")),
        warning=entry.get("warning", ""),
        differs=entry.get("differs", False),
        at_least=AtLeast(**entry["atLeast"]) if "atLeast" in entry else None,
    )


def _end(entry: Mapping[str, Any]) -> End:
    first = entry.get("first")
    return End(
        entry.get("repository", "archive"),
        tuple(
            Survivor(survivor) if isinstance(survivor, str) else _survivor(survivor)
            for survivor in entry.get("survives", ())
        ),
        First(first["set"], first.get("until", {}), first.get("why", "")) if first else None,
    )


def _survivor(entry: Mapping[str, Any]) -> Survivor:
    return Survivor(entry["text"], entry["unless"], entry.get("name", ""), entry.get("ask", ""))


def _gate(entry: Mapping[str, Any]) -> Gate:
    return Gate(entry["paused"], entry["cause"], tuple(entry["exhausted"]))


def _kind(entry: Mapping[str, Any]) -> KindRef:
    return KindRef(
        entry["apiVersion"], entry["kind"], entry.get("resource", ""), tuple(entry.get("binds", ()))
    )
