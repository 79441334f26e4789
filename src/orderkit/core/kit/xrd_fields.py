"""
The fields of a kit: the XRD's schema and kit.yaml's hints as one tree.

The schema is that of the CRD which Crossplane derives, so a form never asks for a field that would
be dropped; Crossplane's own fields are omitted. Hints in TeraSky's vocabulary (``x-ui-hidden``,
``x-ui-advanced``, ``x-ui-order``) are read from the author's schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from ground.objects.kube_objects import dig
from kubeschema.pruning import INT_OR_STRING, PRESERVE
from kubeschema.xrd import crd_for, scope_of, xr_kind
from kubeschema.xrd.definition import spec_fields
from orderkit.core.kit import form_rules
from orderkit.core.kit.field_names import is_infrastructure, is_secret
from orderkit.core.kit.form_rules import RuleKeyword
from orderkit.core.kit.kit_file_parts import FieldPath, Hidden, Hints
from orderkit.core.kit.model import Kit

Schema = Mapping[str, Any]
ABSENT: Any = object()
"""No default."""
_NO_HINTS = Hints()


class FieldShape(StrEnum):
    """The kind of value that a field holds, from the form's point of view."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    INT_OR_STRING = "int-or-string"
    OBJECT = "object"
    LIST = "list"
    MAP = "map"
    FREE = "free"
    """Anything: ``x-kubernetes-preserve-unknown-fields`` without properties."""
    EMPTY = "empty"
    """An object whose content would be pruned, so nothing can be entered."""


SCALARS = frozenset({FieldShape.TEXT, FieldShape.INTEGER, FieldShape.NUMBER, FieldShape.BOOLEAN})


@dataclass(frozen=True, slots=True)
class KitField:
    """One property below ``spec`` of the XR, or an entry of a list or map."""

    name: str
    path: FieldPath
    """Dotted; entries of lists and maps end in ``[]``."""
    shape: FieldShape
    schema: Schema
    required: bool
    """Whether the XR is refused without it. A default makes it optional."""
    present: bool
    """Whether its parent is in every XR: only then may the form fill in its default."""
    default: Any = ABSENT
    hints: Hints = _NO_HINTS
    hidden: Hidden | None = None
    unseen: bool = False
    """``x-ui-hidden``: not part of the form."""
    secret: bool = False
    """It would hold a secret as plain text, or cannot be without one: no form asks for it."""
    in_yaml: bool = False
    """The form takes it with others as YAML (``yamlFields``)."""
    advanced: bool = False
    order: float | None = None
    fields: tuple[KitField, ...] = ()
    item: KitField | None = None
    """What a list or map holds."""
    limits: tuple[RuleKeyword, ...] = ()
    """Rules of the XRD, translated to keywords."""
    sentences: tuple[str, ...] = ()
    """Rules that a form can only describe."""

    @property
    def visible(self) -> bool:
        """Whether a person fills it in, in a field of its own."""
        if self.hidden is not None or self.unseen or self.in_yaml:
            return False
        all_in_yaml = bool(self.fields) and all(field.in_yaml for field in self.fields)
        return self.shape is not FieldShape.EMPTY and not all_in_yaml

    @property
    def needs_secret(self) -> bool:
        """Whether no order can do without a secret in it; of a top-level field."""
        return self.secret and (self.required or self.hidden is not None)

    @property
    def asked(self) -> bool:
        """Whether the order form shows it; forms of changes show all visible fields."""
        return self.visible and self.hints.ask == "order"

    @property
    def weight(self) -> int:
        """The number of values that a person may have to enter."""
        inner = self.item.fields if self.item else self.fields
        return sum(field.weight for field in inner if field.visible) or 1

    @property
    def always(self) -> bool:
        """Whether it is in every XR, by requirement or by default."""
        return self.present and (self.required or self.default is not ABSENT)

    @property
    def may_be_empty(self) -> bool:
        """
        Whether the XR omits it if nothing is entered in it.

        A form sends empty lists, maps and groups for untouched fields; the XR must not contain
        them, because rules would see them, and the server would not fill in its default.
        """
        if self.in_yaml:
            return False  # people write an empty list there if they mean one
        filled_in = self.default is not ABSENT and self.present
        optional = not self.required and not filled_in and self.hidden is None
        holds = self.shape in (FieldShape.LIST, FieldShape.MAP, FieldShape.FREE, FieldShape.OBJECT)
        return optional and holds and not any(field.hidden for field in self.walk())

    def walk(self) -> Iterator[KitField]:
        """Yield the field and its nested fields, without entries of lists and maps."""
        yield self
        for field in self.fields:
            yield from field.walk()

    def secrets(self) -> Iterator[KitField]:
        """Yield the innermost fields that hold secrets as plain text."""
        inner = (*self.fields, *((self.item,) if self.item else ()))
        if self.secret and not any(field.secret for field in inner):
            yield self
        for field in inner:
            yield from field.secrets()


@dataclass(frozen=True, slots=True)
class KitFields:
    """All fields of a kit, and the rules of its ``spec`` that a form can only describe."""

    top: tuple[KitField, ...]
    rules: tuple[tuple[frozenset[str], str], ...]
    """For each rule: the top-level fields it uses, and its sentence."""
    unfold: FieldPath = ""
    """The group whose fields stand in the form as if they were beside it."""

    @property
    def form(self) -> tuple[KitField, ...]:
        """The fields that have a form parameter of their own, if they are visible or hidden."""
        return unfolded(self.top, self.unfold)

    def walk(self) -> Iterator[KitField]:
        """Yield every field in the form's order, without entries of lists and maps."""
        for field in self.top:
            yield from field.walk()

    def find(self, path: FieldPath) -> KitField | None:
        """Return the field of that path."""
        return next((field for field in self.walk() if field.path == path), None)

    @property
    def paths(self) -> tuple[FieldPath, ...]:
        """The paths of all fields."""
        return tuple(field.path for field in self.walk())


def unfolded(top: Sequence[KitField], group: FieldPath) -> tuple[KitField, ...]:
    """Return top-level fields with the fields of `group` in its place."""
    return tuple(
        field for outer in top for field in (outer.fields if outer.path == group else (outer,))
    )


def fields_of(kit: Kit) -> KitFields:
    """
    Return the fields of a kit in the order of its XRD.

    Raises:
        BrokenXrdError: Crossplane cannot derive a CRD from the XRD.
    """
    spec = spec_of(kit)
    reader = _Reader(kit)
    top, rules = reader.properties(spec, kit.spec_schema, "", present=True)
    group = next((field for field in top if field.path == kit.unfold), None)
    if group is not None:
        rules = (*rules, *((frozenset[str](), sentence) for sentence in group.sentences))
    return KitFields(top, (*rules, *_choices(spec)), kit.unfold)


def spec_of(kit: Kit) -> dict[str, Any]:
    """
    Return the schema of ``spec`` as in the API server, without Crossplane's fields.

    Raises:
        BrokenXrdError: Crossplane cannot derive a CRD from the XRD.
    """
    version = xr_kind(kit.xrd).version
    crd = crd_for(kit.xrd)
    entry = next(v for v in crd["spec"]["versions"] if v["name"] == version)
    spec: dict[str, Any] = dict(
        dig(entry, "schema", "openAPIV3Schema", "properties", "spec", default={})
    )
    ours = spec_fields(scope_of(kit.xrd), "")
    theirs = spec.get("properties") or {}
    spec["properties"] = {name: schema for name, schema in theirs.items() if name not in ours}
    return kit.with_offered(spec)


_BY_TYPE = {
    "string": FieldShape.TEXT,
    "integer": FieldShape.INTEGER,
    "number": FieldShape.NUMBER,
    "boolean": FieldShape.BOOLEAN,
    "array": FieldShape.LIST,
}


def shape_of(schema: Schema) -> FieldShape:
    """Return the kind of value that a schema describes."""
    if schema.get(INT_OR_STRING):
        return FieldShape.INT_OR_STRING
    by_type = _BY_TYPE.get(str(schema.get("type")))
    if by_type is not None:
        return by_type
    if schema.get("properties"):
        return FieldShape.OBJECT
    values = schema.get("additionalProperties")
    if isinstance(values, dict) and values:
        return FieldShape.MAP
    return FieldShape.FREE if schema.get(PRESERVE) or values else FieldShape.EMPTY


class _Reader:
    """Builds the tree of one kit."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit

    def properties(
        self, schema: Schema, author: Schema, path: FieldPath, *, present: bool
    ) -> tuple[tuple[KitField, ...], tuple[tuple[frozenset[str], str], ...]]:
        """Return the fields of an object, and its rules about more than one of them."""
        required = schema.get("required") or ()
        hints = author.get("properties")
        fields: list[KitField] = []
        for name, inner in (schema.get("properties") or {}).items():
            field_path = f"{path}.{name}" if path else name
            author_schema = hints.get(name) if isinstance(hints, Mapping) else None
            fields.append(
                self._field(
                    name,
                    field_path,
                    inner,
                    author_schema,
                    present=present,
                    is_required=name in required,
                    siblings=schema["properties"],
                )
            )
        nested = path not in ("", self._kit.unfold)
        fields.sort(key=lambda f: (nested and f.advanced, f.order is None, f.order or 0))
        return self._ruled(tuple(fields), schema)

    def _field(
        self,
        name: str,
        path: FieldPath,
        schema: Schema,
        author: Any,
        *,
        present: bool,
        is_required: bool,
        siblings: Mapping[str, Any] = MappingProxyType({}),
    ) -> KitField:
        author = author if isinstance(author, Mapping) else {}
        default = schema.get("default")
        order = author.get("x-ui-order")
        hints = self._kit.fields.get(path, _NO_HINTS)
        required = is_required and default is None
        secret = _is_secret(name, path, schema, hints, siblings)
        field = KitField(
            name=name,
            path=path,
            shape=shape_of(schema),
            schema=schema,
            required=required,
            present=present,
            default=ABSENT if default is None else default,
            hints=hints,
            hidden=self._kit.hidden.get(path),
            unseen=secret or author.get("x-ui-hidden") is True,
            secret=secret,
            advanced=_is_advanced(name, hints, author, required=required),
            order=order if isinstance(order, int | float) else None,
        )
        return self._completed(field, author)

    def _completed(self, field: KitField, author: Schema) -> KitField:
        """Add the nested fields and the field's own rules."""
        rule_sentences: tuple[str, ...] = ()
        if field.shape is FieldShape.OBJECT:
            inner, about = self.properties(
                _with_defaults(field), author, field.path, present=field.always
            )
            field = replace(field, fields=inner, advanced=field.advanced or _is_all_advanced(inner))
            rule_sentences = tuple(sentence for _, sentence in about)
        elif field.shape in (FieldShape.LIST, FieldShape.MAP):
            key = "items" if field.shape is FieldShape.LIST else "additionalProperties"
            item = self._field(
                "",
                f"{field.path}[]",
                field.schema[key],
                author.get(key),
                present=True,
                is_required=True,
            )
            field = replace(field, item=item)
        if any(inner.secret and inner.required for inner in (*field.fields, field.item) if inner):
            field = replace(field, secret=True, unseen=True)  # it cannot be without the secret
        if field.path in self._kit.yaml_fields:
            field = _in_yaml(field)
        choice_rules = tuple(_choices(field.schema))
        field = replace(
            field, sentences=(*rule_sentences, *(sentence for _, sentence in choice_rules))
        )
        for rule in form_rules.rules_of(field.schema):
            if field.shape is not FieldShape.OBJECT:
                field = _limited(field, str(rule.get("rule", "")), rule)
        return field

    def _ruled(
        self, fields: tuple[KitField, ...], schema: Schema
    ) -> tuple[tuple[KitField, ...], tuple[tuple[frozenset[str], str], ...]]:
        """Move each rule of an object to its only property, or keep it as a sentence."""
        by_name = {field.name: field for field in fields}
        rules: list[tuple[frozenset[str], str]] = []
        for rule in form_rules.rules_of(schema):
            text = str(rule.get("rule", ""))
            about = form_rules.rule_of_one_property(text, str(rule.get("message") or ""))
            field = by_name.get(about.name) if about else None
            if about and field and (about.guarded or field.always):
                by_name[field.name] = _limited(field, about.rule, rule)
            else:
                rules.append((form_rules.properties_mentioned(text), form_rules.sentence(rule)))
        return tuple(by_name.values()), tuple(rules)


def _is_secret(
    name: str, path: FieldPath, schema: Schema, hints: Hints, siblings: Mapping[str, Any]
) -> bool:
    if hints.secret is not None:
        return hints.secret
    parent = path.rpartition(".")[0].removesuffix("[]").rpartition(".")[2]
    return is_secret(name, schema, parent=parent, siblings=siblings)


def _is_advanced(name: str, hints: Hints, author: Schema, *, required: bool) -> bool:
    if hints.advanced is not None:
        return hints.advanced
    word = author.get("x-ui-advanced")
    return word if isinstance(word, bool) else is_infrastructure(name) and not required


def _is_all_advanced(fields: Sequence[KitField]) -> bool:
    visible = [field for field in fields if field.visible]
    return bool(visible) and all(field.advanced for field in visible)


def _in_yaml(field: KitField) -> KitField:
    """Return a field of ``yamlFields`` with all that is inside it."""
    return replace(
        field,
        in_yaml=True,
        fields=tuple(map(_in_yaml, field.fields)),
        item=_in_yaml(field.item) if field.item else None,
    )


def _limited(field: KitField, text: str, rule: Mapping[str, Any]) -> KitField:
    """Add a rule to a field, as keywords if that is exact, else as a sentence."""
    message = str(rule.get("message") or "")
    new_limits = None if "oldSelf" in text else form_rules.limits(text, message, field.schema)
    keywords = {limit.keyword for limit in field.limits}
    if (
        new_limits is None
        or any(limit.keyword in keywords for limit in new_limits)
        or _contradicts(field, new_limits)
    ):
        return replace(field, sentences=(*field.sentences, form_rules.sentence(rule)))
    tighter = tuple(limit for limit in new_limits if form_rules.is_tighter(limit, field.schema))
    return replace(field, limits=(*field.limits, *tighter))


def _contradicts(field: KitField, new_limits: Sequence[RuleKeyword]) -> bool:
    """Say whether the default is not among the choices: the form must offer its initial value."""
    return any(
        limit.keyword == "enum" and field.default is not ABSENT and field.default not in limit.value
        for limit in new_limits
    )


def _with_defaults(field: KitField) -> dict[str, Any]:
    """Return an object's schema with its default applied to its properties, where it wins."""
    schema = dict(field.schema)
    if not isinstance(field.default, dict) or not field.default:
        return schema
    schema["properties"] = {
        name: {**inner, "default": field.default[name]} if name in field.default else inner
        for name, inner in schema["properties"].items()
    }
    return schema


def _choices(schema: Schema) -> Iterator[tuple[frozenset[str], str]]:
    """Yield sentences for ``oneOf``, ``anyOf``, ``allOf`` and ``not``: forms cannot show them."""
    if schema.get(INT_OR_STRING):
        return
    for key, words in (("oneOf", "Exactly one of"), ("anyOf", "At least one of")):
        branches = schema.get(key)
        if not branches:
            continue
        names = [b["required"][0] for b in branches if _requires_one_field(b)]
        if len(names) == len(branches):
            yield frozenset(names), f"{words} {_joined_names(names)} is needed."
        else:
            yield frozenset(), _UNSHOWN_RULES
    if schema.get("allOf") or schema.get("not"):
        yield frozenset(), _UNSHOWN_RULES


_UNSHOWN_RULES = "More rules are checked when it is ordered."


def _requires_one_field(branch: object) -> bool:
    return isinstance(branch, dict) and set(branch) == {"required"} and len(branch["required"]) == 1


def _joined_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
