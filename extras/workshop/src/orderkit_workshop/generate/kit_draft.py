"""
Draft a new kit: its XRD from a short description, and the values that ``skeletons/kit`` needs.

A field is described as ``name:type[:enum=a|b][:default=x][:optional]``. The team is always part of
the XR, so that the admission policy can enforce it: a field ``team`` is added unless there is one.

`form_draft` drafts the form of an imported XRD: what kit.yaml should say so that people can fill it
in. It is written once, into kit.yaml, where the author sees and edits it: what a form is called and
where it puts a value must not change with a release of Orderkit.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ground.errors import InvalidInputError, OrderkitError, UsageError, with_article
from ground.names import check_label
from ground.objects.kube_objects import Kind, Manifest, dig, plural_of
from ground.shapes import changed
from kubeschema.pruning import PRESERVE
from kubeschema.samples import NoSampleError, fits, longest, valid_samples
from kubeschema.validate import Validator
from kubeschema.xrd import default_composition, referenceable_version, scope_of, xr_kind
from orderkit.core.kit.change_forms import order_data
from orderkit.core.kit.field_names import spelt_out
from orderkit.core.kit.kit_file_parts import FieldPath
from orderkit.core.kit.literals import RESERVED, YAML_PARAMETER
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import kit_of
from orderkit.core.kit.xrd_fields import ABSENT, FieldShape, KitField, fields_of
from yamlfiles import yaml11

GROUP = "parameters"
"""The group that many XRDs wrap around all their fields."""
FORM_MAX = 60
"""Values that a form asks for one by one. Of a larger one, as many stay as `KEPT` says."""
KEPT = 40


def form_draft(xrd: Manifest) -> dict[str, Any]:
    """Return ``unfold`` and ``yamlFields`` of kit.yaml, as far as the XRD needs them."""
    kit = Kit(name="draft", xrd=xrd)
    try:
        top = fields_of(kit).top
    except OrderkitError:
        return {}  # Crossplane cannot use the XRD: whoever reads the kit is told
    unfold = GROUP if _can_unfold(top) else ""
    fields = fields_of(changed(kit, unfold=unfold)).form
    asked = [field for field in fields if field.asked]
    paths = [path for field in asked for path in _advanced_inside(field)]
    if sum(field.weight for field in asked) > FORM_MAX:
        kept = _kept(asked, {*paths})
        paths = [path for field in asked for path in _rest(field, kept)]
    draft: dict[str, Any] = {"unfold": unfold} if unfold else {}
    return {**draft, "yamlFields": paths} if paths else draft


def _can_unfold(top: Sequence[KitField]) -> bool:
    group = next((field for field in top if field.path == GROUP), None)
    if group is None or group.shape is not FieldShape.OBJECT or group.schema.get(PRESERVE):
        return False
    if not group.required and any(field.required for field in group.fields):
        return False
    others = [f for f in top if f is not group]
    if any(f.shape is FieldShape.OBJECT and f.visible and not f.advanced for f in others):
        return False
    taken = {field.name for field in others} | {*RESERVED, YAML_PARAMETER}
    return group.visible and taken.isdisjoint(field.name for field in group.fields)


def _advanced_inside(field: KitField) -> Iterator[FieldPath]:
    """Yield the outermost advanced fields inside a group."""
    for inner in field.fields:
        if inner.visible and inner.advanced and not inner.required:
            yield inner.path
        elif inner.visible:
            yield from _advanced_inside(inner)


def _kept(asked: Sequence[KitField], never: set[FieldPath]) -> set[FieldPath]:
    """
    Return the fields that stay: what is required, then the outermost, as many as fit.

    A group stays as a whole or not at all, unless it is required or larger than any form.
    """
    kept: set[FieldPath] = set()
    budget = KEPT
    waiting = deque(asked)
    while waiting:
        field = waiting.popleft()
        is_group = field.shape is FieldShape.OBJECT and bool(field.fields)
        is_opened = is_group and (field.required or field.weight > KEPT)
        is_left_out = field.advanced or field.path in never or field.weight > budget
        if is_left_out and not field.required and not is_opened:
            continue
        kept.add(field.path)
        if is_opened:
            waiting.extend(inner for inner in field.fields if inner.visible)
        else:
            kept.update(inner.path for inner in field.walk() if inner.path not in never)
            budget -= field.weight
    return kept


def _rest(field: KitField, kept: set[FieldPath]) -> list[FieldPath]:
    """Return the outermost parts of a field that are not kept."""
    if field.path not in kept:
        return [field.path]
    inner = [f for f in field.fields if f.visible]
    rest = [path for nested in inner for path in _rest(nested, kept)]
    if inner and not field.required and all(nested.path not in kept for nested in inner):
        return [field.path]
    return rest


TYPES = ("string", "integer", "number", "boolean")
VERSION = "v1alpha1"
TEAM_FIELDS, NAME_FIELD = ("team", "teamName"), "name"
EXAMPLE_TEAM, EXAMPLE_NAME = "ae86", "first"
_TEAM: dict[str, Any] = {
    "type": "string",
    "description": "Team that orders, an organisation of the forge.",
    "pattern": "^[a-z0-9]([a-z0-9-]{0,56}[a-z0-9])?$",
}
_FIELD_NAME = re.compile(r"[a-z][a-zA-Z0-9]{0,62}\Z")
_KIND = re.compile(r"[A-Z][a-zA-Z0-9]{0,62}\Z")
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+\Z")
_OPTION = re.compile(r":(?=enum=|default=|optional(?::|\Z))")
_COLUMNS_MAX = 4
_LABEL, _LABEL_MAX = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", 63
"""Allowed order names: they become a label, a repository and part of an address."""


@dataclass(frozen=True, slots=True)
class FieldDraft:
    """One field of ``spec``."""

    name: str
    type: str = "string"
    enum: tuple[Any, ...] = ()
    default: Any = ABSENT
    optional: bool = False

    def schema(self) -> dict[str, Any]:
        """Return the field's schema."""
        schema: dict[str, Any] = {"type": self.type, "description": f"{spelt_out(self.name)}."}
        if self.enum:
            schema["enum"] = list(self.enum)
        if self.default is not ABSENT:
            schema["default"] = self.default
        return schema


def parse_field(text: str) -> FieldDraft:
    """
    Read ``name:type[:enum=a|b][:default=x][:optional]``.

    Raises:
        UsageError: The text has another form.
        InvalidInputError: A name, type or value is not valid.
    """
    head, *options = _OPTION.split(text)
    name, _, type_ = head.partition(":")
    type_ = type_ or "string"
    if not _FIELD_NAME.match(name):
        raise InvalidInputError(
            "--field", name, "is not a field name", hint="lowerCamelCase, for example sizeGb"
        )
    if type_ not in TYPES:
        raise InvalidInputError(
            f"--field {name}", type_, f"is none of {', '.join(TYPES)}", hint="--field size:integer"
        )
    enum: tuple[Any, ...] = ()
    default: Any = ABSENT
    for option in options:
        key, _, value = option.partition("=")
        if key == "enum":
            enum = tuple(_typed(name, type_, entry) for entry in value.split("|"))
        elif key == "default":
            default = _typed(name, type_, value)
    if enum and default is not ABSENT and default not in enum:
        raise InvalidInputError(f"--field {name}", default, "is not a value of its enum")
    if len(set(enum)) != len(enum):
        raise InvalidInputError(
            f"--field {name}",
            "|".join(map(str, enum)),
            "has a value twice",
            hint="name each value once",
        )
    return FieldDraft(name, type_, enum, default, optional="optional" in options)


def _typed(name: str, type_: str, text: str) -> Any:
    if type_ == "string":
        return text
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    kinds: dict[str, tuple[type, ...]] = {"integer": (int,), "number": (int, float)}
    types = kinds.get(type_, (bool,))
    if not isinstance(value, types) or (isinstance(value, bool) and type_ != "boolean"):
        raise InvalidInputError(f"--field {name}", text, f"is not {with_article(type_)}")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A new kit to be created."""

    name: str
    group: str
    kind: str = ""
    """If empty, derived from the name."""
    title: str = ""
    namespaced: bool = False
    fields: Sequence[FieldDraft] = field(default_factory=tuple)


def default_kind(name: str) -> str:
    """Return the kind suggested by a kit's name: ``stage-kit`` is an ``XStageKit``."""
    return "X" + "".join(word[:1].upper() + word[1:] for word in name.split("-"))


def xrd_of(draft: Draft) -> Manifest:
    """
    Return the XRD of a draft.

    Raises:
        InvalidInputError: A name in it is not valid.
        UsageError: A field is repeated.
    """
    kind = draft.kind or default_kind(draft.name)
    check_label("name", draft.name)
    if not _KIND.match(kind):
        raise InvalidInputError("kind", kind, "is not a kind", hint="UpperCamelCase, say XBucket")
    if not _GROUP.match(draft.group):
        raise InvalidInputError(
            "group", draft.group, "is not an API group", hint="a domain of yours: demo.example.org"
        )
    plural = plural_of(kind)
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": f"{plural}.{draft.group}"},
        "spec": {
            "scope": "Namespaced" if draft.namespaced else "Cluster",
            "group": draft.group,
            "names": {"kind": kind, "plural": plural},
            "enforcedCompositionRef": {"name": f"{kind.lower()}-default"},
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "referenceable": True,
                    "schema": {"openAPIV3Schema": _schema(draft)},
                }
            ],
        },
    }


def _schema(draft: Draft) -> dict[str, Any]:
    names = [field_.name for field_ in draft.fields]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"field '{name}' is given twice", hint=f"give --field {name} once")
        if name == "crossplane":
            raise InvalidInputError(
                "--field",
                name,
                "is Crossplane's own field in every XR",
                hint="choose another name, for example --field settings:string",
            )
    properties = {field_.name: field_.schema() for field_ in draft.fields}
    required = [
        field_.name for field_ in draft.fields if not field_.optional and field_.default is ABSENT
    ]
    if not set(TEAM_FIELDS) & set(names):
        properties = {TEAM_FIELDS[0]: _TEAM, **properties}
        required = [TEAM_FIELDS[0], *required]
    for name in set(TEAM_FIELDS) & set(names):
        properties[name] = {**_TEAM, **properties[name], "pattern": _TEAM["pattern"]}
    if properties.get(NAME_FIELD, {}).get("type") == "string":
        longest = _LABEL_MAX - len(draft.name) - 1
        properties[NAME_FIELD] |= {"pattern": _LABEL, "maxLength": longest}
    home = "settings" if draft.namespaced else "namespace"
    descriptions = {
        "settings": "ConfigMap that tells of the order.",
        "namespace": "Namespace that holds what was made.",
    }
    title = draft.title or spelt_out(draft.name)
    status = {home: {"type": "string", "description": descriptions[home]}}
    return {
        "type": "object",
        "description": f"{title}, for one team.",
        "properties": {
            "spec": {"type": "object", "required": required, "properties": properties},
            "status": {"type": "object", "properties": status},
        },
    }


def skeleton_values(
    name: str,
    title: str,
    xrd: Manifest,
    *,
    complete: bool = False,
    given: Mapping[str, Any] | None = None,
    not_secret: Sequence[str] = (),
    keys: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """
    Return the values that ``skeletons/kit`` needs for an XRD.

    Args:
        keys: The values that a Composition can do something with, by paths of fields.
        complete: The example has a value for every field that can be guessed.
        given: The spec of the example, which is not guessed then.
        not_secret: Paths of fields that look like secrets and are none.

    Raises:
        BrokenXrdError: No version is referenceable.
    """
    kind = xr_kind(xrd)
    version = next(v for v in xrd["spec"]["versions"] if v.get("referenceable"))
    schema = dig(version, "schema", "openAPIV3Schema", default={})
    spec = dig(schema, "properties", "spec", default={})
    fields = [key for key in spec.get("properties") or {} if key != "crossplane"]
    naming = {**_naming(name, spec), **form_draft(xrd)}
    if not_secret:
        naming["fields"] = {path: {"secret": False} for path in not_secret}
    kit = kit_of(name, naming, xrd)
    values = form_values(kit, complete=complete, given=given, keys=keys)
    status_field = "settings" if scope_of(xrd) == "Namespaced" else "namespace"
    team = kit.team_parameter
    return {
        "name": name,
        "module": name.replace("-", "_"),
        "title": title,
        "group": kind.group,
        "version": kind.version,
        "kind": kind.kind,
        "plural": xrd["spec"]["names"]["plural"],
        "composition": default_composition(xrd) or f"{kind.kind.lower()}-default",
        "namespaced": scope_of(xrd) == "Namespaced",
        "schema": _yaml(schema),
        "columns": _yaml(_columns(spec)),
        "fields": fields,
        "naming": _yaml(naming) if naming else "",
        "tells": dig(schema, "properties", "status", "properties", status_field, "type")
        == "string",
        "guessed": values is not None,
        "answers": _yaml(values or {}),
        "capitals": _yaml({**(values or {}), team: EXAMPLE_TEAM.upper()}),
        "spec": {key: v for key, v in kit.by_field(values or {}).items() if key in fields},
        "xr_name": f"{name}-{EXAMPLE_NAME}",
    }


def declared(
    composes: Sequence[Kind], requires: Sequence[Kind], compositions: Sequence[str]
) -> str:
    """Return the kinds of pipelines, and what an order may choose, as entries of kit.yaml."""
    choices = [{"name": name} for name in compositions]
    entries: dict[str, Any] = {"compositions": choices} if choices else {}
    entries |= {
        key: [{"apiVersion": kind.api_version, "kind": kind.kind} for kind in kinds]
        for key, kinds in (("composes", composes), ("requires", requires))
        if kinds
    }
    return _yaml(entries) if entries else ""


def _naming(kit: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return which fields name an order and its team, as kit.yaml says it."""
    name = dig(spec, "properties", NAME_FIELD, default={})
    named = _is_required_text(spec, NAME_FIELD) and (
        longest(name, _LABEL_MAX) + len(kit) < _LABEL_MAX  # a longer order has no repository
    )
    team = next((field_ for field_ in TEAM_FIELDS if _is_required_text(spec, field_)), None)
    return {
        **({"nameFrom": NAME_FIELD} if named else {}),
        **({"teamFrom": team} if team else {}),
    }


def _is_required_text(spec: Mapping[str, Any], name: str) -> bool:
    is_text = dig(spec, "properties", name, "type") == "string"
    return is_text and name in (spec.get("required") or ())


def form_values(
    kit: Kit,
    *,
    complete: bool = False,
    given: Mapping[str, Any] | None = None,
    keys: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any] | None:
    """
    Return form values for an example: valid for the XRD if that can be found.

    None if no value for a field can be guessed.
    """
    xrd = kit.xrd
    kind, namespaced = xr_kind(xrd), scope_of(xrd) == "Namespaced"
    meta = {"name": f"{kit.name}-{EXAMPLE_NAME}", **({"namespace": "team-a"} if namespaced else {})}
    head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
    spec = dig(referenceable_version(xrd), "schema", "openAPIV3Schema", "properties", "spec")
    schema = {**(spec or {}), "type": "object"}
    for path, found in (keys or {}).items():
        schema = _choosing(schema, path.split("."), found)
    validator = Validator(xrd)
    first: dict[str, Any] | None = None
    try:
        for sample in valid_samples(schema, complete=complete) if given is None else [given]:
            answers = _with_names(sample, schema)
            first = first if first is not None else answers
            if validator.check({**head, "spec": answers}).valid:
                first = answers
                break
    except NoSampleError:
        return None
    order = f"{kit.name}-{EXAMPLE_NAME}"
    values = order_data(kit, first or {}, order=order, team=EXAMPLE_TEAM)
    values.pop(YAML_PARAMETER, None)  # rare fields are no part of an example
    own = [*kit.name_parameters, kit.team_parameter]
    return {key: values[key] for key in (*own, *values) if key in values}


def _choosing(
    schema: Mapping[str, Any], path: Sequence[str], keys: Sequence[str]
) -> dict[str, Any]:
    """Return a schema whose field at a path has these values only, if it can have one of them."""
    if not path:
        enum = [key for key in schema.get("enum") or keys if key in keys]
        return {**schema, "enum": enum} if enum and schema.get("type") == "string" else {**schema}
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or path[0] not in properties:
        return dict(schema)
    inner = _choosing(properties[path[0]], path[1:], keys)
    return {**schema, "properties": {**properties, path[0]: inner}}


def _with_names(sample: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a sample in which the fields of name and team have speaking values."""
    answers = {key: value for key, value in sample.items() if key != "crossplane"}
    for key, text in {**dict.fromkeys(TEAM_FIELDS, EXAMPLE_TEAM), NAME_FIELD: EXAMPLE_NAME}.items():
        field_schema = dig(schema, "properties", key, default={})
        if key in answers and "enum" not in field_schema and fits(field_schema, text):
            answers[key] = text
    return answers


def _columns(spec: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return printer columns for the first scalar fields."""
    columns = [
        {"name": name.upper(), "type": schema["type"], "jsonPath": f".spec.{name}"}
        for name, schema in (spec.get("properties") or {}).items()
        if schema.get("type") in TYPES
    ]
    return columns[:_COLUMNS_MAX]


def _yaml(value: dict[str, Any] | list[Any]) -> str:
    return yaml11.dump_block(value).rstrip("\n")
