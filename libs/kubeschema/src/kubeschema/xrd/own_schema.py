"""
The schema of XRDs themselves: what the API server accepts in one.

Both API versions as Crossplane 2.3 serves them.
"""

from __future__ import annotations

from typing import Any

from kubeschema.xrd.definition import LEGACY
from kubeschema.xrd.typed_schema import RULES

Schema = dict[str, Any]

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
        connectionSecretKeys=_list(_TEXT),
        defaultCompositeDeletePolicy=_delete_policy(legacy=legacy),
        defaultCompositionRef=_name_reference(),
        enforcedCompositionRef=_ruled(_name_reference(), _IMMUTABLE),
        defaultCompositionRevisionSelector=_selector(),
        defaultCompositionUpdatePolicy=_enum("Automatic", "Manual", default="Automatic"),
        metadata=_object(labels=_LABELS, annotations=_LABELS),
        conversion=_conversion(legacy=legacy),
        versions=_list(_version()),
    )
    return _ruled(schema, *(_legacy_rules() if legacy else _modern_rules()))


def _object(required: list[str] | None = None, /, **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def _list(items: Schema) -> Schema:
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
        shortNames=_list(_TEXT),
        categories=_list(_TEXT),
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
    expression = _object(["key", "operator"], key=_TEXT, operator=_TEXT, values=_list(_TEXT))
    return _object(matchLabels=_LABELS, matchExpressions=_list(expression))


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
        ["conversionReviewVersions"], conversionReviewVersions=_list(_TEXT), clientConfig=client
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
        additionalPrinterColumns=_list(column),
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
