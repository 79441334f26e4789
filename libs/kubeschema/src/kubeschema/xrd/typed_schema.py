"""
Schemas in Kubernetes' own type: the author's as Crossplane represents it, and that of XRDs.

Crossplane reads the author's schema into Kubernetes' Go type and writes that into the CRD. This
silently drops what the type lacks (``const``, ``examples``, ``x-…`` of other tools) at any depth.
Keywords match regardless of case (``maxlength`` is read as ``maxLength``), as Go's JSON decoder
does. Empty strings, empty lists and ``false`` are left out. An argument of the wrong type is an
error. ``structural`` judges which of the remaining keywords the API server refuses.

`spec_schema` is what the API server accepts in an XRD itself, for both API versions as Crossplane
2.3 serves them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubeschema.xrd.definition import LEGACY, BrokenXrdError

Steps = tuple[str, ...]
Schema = dict[str, Any]

TEXTS = ("id", "$schema", "description", "type", "format", "title", "pattern")
KEPT_TEXTS = ("$ref", "x-kubernetes-list-type", "x-kubernetes-map-type")
"""Keywords that are kept although empty."""
FLAGS = (
    *("exclusiveMaximum", "exclusiveMinimum", "uniqueItems", "nullable"),
    *("x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"),
)
PRESERVE = "x-kubernetes-preserve-unknown-fields"
RULES = "x-kubernetes-validations"
COUNTS = (
    *("maxLength", "minLength", "maxItems", "minItems"),
    *("maxProperties", "minProperties"),
)
NUMBERS = ("maximum", "minimum", "multipleOf")
LISTS_OF_TEXT = ("required", "x-kubernetes-list-map-keys")
LISTS_OF_SCHEMAS = ("allOf", "oneOf", "anyOf")
MAPS_OF_SCHEMAS = ("properties", "patternProperties", "definitions")
_RULE_TEXTS = ("message", "messageExpression", "fieldPath")


@dataclass(slots=True)
class SchemaWalk:
    """What was lost or changed while reading a schema."""

    unknown: list[Steps] = field(default_factory=list)
    """Keywords that Kubernetes' type lacks. They are dropped."""
    recased: list[tuple[Steps, str]] = field(default_factory=list)
    """Keywords written in another case, and the keywords they are read as."""


def typed(author: object, steps: Steps = (), reading: SchemaWalk | None = None) -> Schema:
    """
    Return a schema as Crossplane represents it. The argument is not changed.

    Args:
        steps: Where the schema stands; prefix of the steps in `reading` and in errors.
        reading: Collects what is lost.

    Raises:
        BrokenXrdError: An argument has a type that cannot be read.
    """
    reading = reading if reading is not None else SchemaWalk()
    if author is None:
        return {}
    if not isinstance(author, Mapping):
        raise _wrong(steps, "a schema")
    schema: Schema = {}
    for author_keyword in sorted(author):
        keyword = _FOLDED.get(author_keyword.lower())
        keyword_steps = (*steps, author_keyword)
        if keyword is None:
            reading.unknown.append(keyword_steps)
            continue
        if keyword != author_keyword:
            reading.recased.append((keyword_steps, keyword))
        value = _READERS[keyword](author[author_keyword], keyword_steps, reading)
        if value is not None:
            schema[keyword] = value
    return schema


def _wrong(steps: Steps, expected: str) -> BrokenXrdError:
    return BrokenXrdError(
        f"cannot parse validation schema: {steps[-1] if steps else 'openAPIV3Schema'} "
        f"is not {expected}",
        hint=f"write {expected} there",
        steps=steps,
    )


def _text(value: object, steps: Steps, _: SchemaWalk) -> object:
    if value is not None and not isinstance(value, str):
        raise _wrong(steps, "a text")
    return value or None


def _kept_text(value: object, steps: Steps, reading: SchemaWalk) -> object:
    _text(value, steps, reading)
    return value


def _flag(value: object, steps: Steps, _: SchemaWalk) -> object:
    if value is not None and not isinstance(value, bool):
        raise _wrong(steps, "true or false")
    return value or None


def _kept_flag(value: object, steps: Steps, reading: SchemaWalk) -> object:
    _flag(value, steps, reading)
    return value


def _number(value: object, steps: Steps, _: SchemaWalk) -> object:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise _wrong(steps, "a number")
    return value


def _count(value: object, steps: Steps, reading: SchemaWalk) -> object:
    _number(value, steps, reading)
    if isinstance(value, float):
        if not value.is_integer():
            raise _wrong(steps, "a whole number")
        return int(value)
    return value


def _any(value: object, _steps: Steps, _: SchemaWalk) -> object:
    return value


def _list(value: object, steps: Steps) -> list[Any]:
    if value is not None and not isinstance(value, list):
        raise _wrong(steps, "a list")
    return value or []


def _values(value: object, steps: Steps, _: SchemaWalk) -> object:
    return list(_list(value, steps)) or None


def _texts(value: object, steps: Steps, reading: SchemaWalk) -> object:
    entries = _list(value, steps)
    for index, entry in enumerate(entries):
        _text(entry, (*steps, str(index)), reading)
    return [entry or "" for entry in entries] or None


def _schema(value: object, steps: Steps, reading: SchemaWalk) -> object:
    return None if value is None else typed(value, steps, reading)


def _schemas(value: object, steps: Steps, reading: SchemaWalk) -> object:
    entries = _list(value, steps)
    return [typed(v, (*steps, str(i)), reading) for i, v in enumerate(entries)] or None


def _map(value: object, steps: Steps) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise _wrong(steps, "a map")
    return value or {}


def _schema_map(value: object, steps: Steps, reading: SchemaWalk) -> object:
    entries = _map(value, steps)
    return {name: typed(v, (*steps, name), reading) for name, v in entries.items()} or None


def _schema_or_flag(value: object, steps: Steps, reading: SchemaWalk) -> object:
    if isinstance(value, bool) or value is None:
        return value
    if not isinstance(value, Mapping):
        raise _wrong(steps, "true, false or a schema")
    return typed(value, steps, reading)


def _schema_or_list(value: object, steps: Steps, reading: SchemaWalk) -> object:
    return (
        _schemas(value, steps, reading)
        if isinstance(value, list)
        else _schema(value, steps, reading)
    )


def _dependencies(value: object, steps: Steps, reading: SchemaWalk) -> object:
    dependencies = {
        name: _texts(v, (*steps, name), reading)
        if isinstance(v, list)
        else typed(v, (*steps, name), reading)
        for name, v in _map(value, steps).items()
    }
    return dependencies or None


def _documents(value: object, steps: Steps, reading: SchemaWalk) -> object:
    if value is None:
        return None
    return _fields(value, steps, reading, {"description": _text, "url": _text})


def _rules(value: object, steps: Steps, reading: SchemaWalk) -> object:
    readers: dict[str, _Reader] = {
        "rule": _text,
        "reason": _kept_text,
        "optionalOldSelf": _kept_flag,
        **dict.fromkeys(_RULE_TEXTS, _text),
    }
    rules = []
    for index, entry in enumerate(_list(value, steps)):
        read = _fields(entry, (*steps, str(index)), reading, readers)
        rules.append({"rule": "", **read})
    return rules or None


def _fields(
    value: object, steps: Steps, reading: SchemaWalk, readers: Mapping[str, _Reader]
) -> dict[str, Any]:
    folded = {name.lower(): name for name in readers}
    fields = {}
    for name, entry in _map(value, steps).items():
        canonical = folded.get(name.lower())
        if canonical is None:
            reading.unknown.append((*steps, name))
            continue
        value_read = readers[canonical](entry, (*steps, name), reading)
        if value_read is not None:
            fields[canonical] = value_read
    return fields


_Reader = Callable[[object, Steps, SchemaWalk], object]
_READERS: dict[str, _Reader] = {
    **dict.fromkeys(TEXTS, _text),
    **dict.fromkeys(KEPT_TEXTS, _kept_text),
    **dict.fromkeys(FLAGS, _flag),
    PRESERVE: _kept_flag,
    **dict.fromkeys(COUNTS, _count),
    **dict.fromkeys(NUMBERS, _number),
    "default": _any,
    "example": _any,
    "enum": _values,
    **dict.fromkeys(LISTS_OF_TEXT, _texts),
    "not": _schema,
    **dict.fromkeys(LISTS_OF_SCHEMAS, _schemas),
    **dict.fromkeys(MAPS_OF_SCHEMAS, _schema_map),
    "additionalProperties": _schema_or_flag,
    "additionalItems": _schema_or_flag,
    "items": _schema_or_list,
    "dependencies": _dependencies,
    "externalDocs": _documents,
    RULES: _rules,
}
_FOLDED = {keyword.lower(): keyword for keyword in _READERS}  # Go's JSON decoder ignores case


_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_OPEN: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_LABELS: Schema = {"type": "object", "additionalProperties": _TEXT}
_IMMUTABLE = {"rule": "self == oldSelf", "message": "Value is immutable"}


def spec_schema(api_version: str) -> Schema:
    """Return the schema of ``spec`` in ``v1`` or ``v2``."""
    legacy = api_version == "v1"
    schema = _object(
        ["group", "names", "versions"],
        scope=_ruled(_scope(legacy=legacy), _IMMUTABLE),
        group=_ruled(_TEXT, _IMMUTABLE),
        names=_names(),
        claimNames=_names() if legacy else _OPEN,
        connectionSecretKeys=_list_schema(_TEXT),
        defaultCompositeDeletePolicy=_delete_policy(legacy=legacy),
        defaultCompositionRef=_name_reference(),
        enforcedCompositionRef=_ruled(_name_reference(), _IMMUTABLE),
        defaultCompositionRevisionSelector=_selector(),
        defaultCompositionUpdatePolicy=_enum("Automatic", "Manual", default="Automatic"),
        metadata=_object(labels=_LABELS, annotations=_LABELS),
        conversion=_conversion(legacy=legacy),
        versions=_list_schema(_version()),
    )
    return _ruled(schema, *(_legacy_rules() if legacy else _modern_rules()))


def _object(required: list[str] | None = None, /, **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def _list_schema(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _enum(*values: str, default: str = "") -> Schema:
    schema: Schema = {**_TEXT, "enum": list(values)}
    return {**schema, "default": default} if default else schema


def _ruled(schema: Schema, *rules: dict[str, str]) -> Schema:
    return {**schema, RULES: [*schema.get(RULES, ()), *rules]}


def _name_reference() -> Schema:
    return _object(["name"], name=_TEXT)


def _scope(*, legacy: bool) -> Schema:
    if legacy:
        return _enum(LEGACY, "Namespaced", "Cluster", default=LEGACY)
    return _enum("Namespaced", "Cluster", default="Namespaced")


def _delete_policy(*, legacy: bool) -> Schema:
    return _enum("Background", "Foreground", default="Background" if legacy else "")


def _names() -> Schema:
    names = _object(
        ["kind", "plural"],
        kind=_TEXT,
        plural=_TEXT,
        singular=_TEXT,
        listKind=_TEXT,
        shortNames=_list_schema(_TEXT),
        categories=_list_schema(_TEXT),
    )
    lower = "Plural name must be lowercase", "Singular name must be lowercase"
    return _ruled(
        names,
        _IMMUTABLE,
        {"rule": "self.plural == self.plural.lowerAscii()", "message": lower[0]},
        {
            "rule": "!has(self.singular) || self.singular == self.singular.lowerAscii()",
            "message": lower[1],
        },
    )


def _selector() -> Schema:
    expression = _object(["key", "operator"], key=_TEXT, operator=_TEXT, values=_list_schema(_TEXT))
    return _object(matchLabels=_LABELS, matchExpressions=_list_schema(expression))


def _conversion(*, legacy: bool) -> Schema:
    service = _object(
        ["name", "namespace"],
        name=_TEXT,
        namespace=_TEXT,
        path=_TEXT,
        port={"type": "integer", "format": "int32"},
    )
    client = _object(url=_TEXT, caBundle={**_TEXT, "format": "byte"}, service=service)
    webhook = _object(
        ["conversionReviewVersions"],
        conversionReviewVersions=_list_schema(_TEXT),
        clientConfig=client,
    )
    schema = _object(["strategy"], strategy=_TEXT, webhook=webhook)
    rule = "self.strategy == 'Webhook' && has(self.webhook)"
    message = "Webhook configuration is required when conversion strategy is Webhook"
    return _ruled(schema, {"rule": rule, "message": message}) if legacy else schema


def _version() -> Schema:
    column = _object(
        ["jsonPath", "name", "type"],
        name=_TEXT,
        type=_TEXT,
        jsonPath=_TEXT,
        format=_TEXT,
        description=_TEXT,
        priority={"type": "integer", "format": "int32"},
    )
    scale = _object(
        ["specReplicasPath", "statusReplicasPath"],
        specReplicasPath=_TEXT,
        statusReplicasPath=_TEXT,
        labelSelectorPath=_TEXT,
    )
    return _object(
        ["name", "referenceable", "served"],
        name=_TEXT,
        served=_FLAG,
        referenceable=_FLAG,
        deprecated=_FLAG,
        deprecationWarning={**_TEXT, "maxLength": 256},
        additionalPrinterColumns=_list_schema(column),
        subresources=_object(scale=scale),
        schema=_object(openAPIV3Schema=_OPEN),
    )


def _legacy_rules() -> tuple[dict[str, str], ...]:
    return (
        {
            "rule": f"self.scope == '{LEGACY}' || !has(self.claimNames)",
            "message": f"Only {LEGACY} composite resources can offer claims",
        },
        {
            "rule": f"self.scope == '{LEGACY}' || !has(self.connectionSecretKeys)",
            "message": f"Only {LEGACY} composite resources support connection secrets",
        },
    )


def _modern_rules() -> tuple[dict[str, str], ...]:
    message = "aren't supported in apiextensions.crossplane.io/v2"
    return (
        {"rule": "!has(self.claimNames)", "message": f"Claims {message}"},
        {"rule": "!has(self.connectionSecretKeys)", "message": f"XR connection secrets {message}"},
    )
