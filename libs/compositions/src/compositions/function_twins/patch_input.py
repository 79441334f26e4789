"""
Validate the input of function-patch-and-transform as the function does, with its messages.

The CRD of this input is never installed, so only the function checks what a Composition contains.
The CRD's defaults do not apply either (a transform without ``type`` is an error). Follows v0.10.8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from compositions.function_twins.field_paths import POLICIES, quoted
from compositions.function_twins.function_inputs import (
    HEADER,
    ListOf,
    OptionalFields,
    Shape,
    misshapen,
)
from compositions.function_twins.transforms import compiled
from compositions.station import OpaqueError

__all__ = ["FROM_COMPOSITE", "SHAPE", "refusal"]

Part = Mapping[str, Any]

FROM_COMPOSITE, TO_COMPOSITE = "FromCompositeFieldPath", "ToCompositeFieldPath"
FROM_ENVIRONMENT, TO_ENVIRONMENT = "FromEnvironmentFieldPath", "ToEnvironmentFieldPath"
COMBINE_FROM_COMPOSITE, COMBINE_TO_COMPOSITE = "CombineFromComposite", "CombineToComposite"
COMBINE_FROM_ENVIRONMENT = "CombineFromEnvironment"
COMBINE_TO_ENVIRONMENT = "CombineToEnvironment"
PATCH_SET = "PatchSet"

_SINGLE = {FROM_COMPOSITE, TO_COMPOSITE, FROM_ENVIRONMENT, TO_ENVIRONMENT}
COMBINING = {
    COMBINE_FROM_COMPOSITE, COMBINE_TO_COMPOSITE, COMBINE_FROM_ENVIRONMENT, COMBINE_TO_ENVIRONMENT,
}  # fmt: skip
_OF_ENVIRONMENT = {*_SINGLE, COMBINE_FROM_COMPOSITE, COMBINE_TO_COMPOSITE}

_TRANSFORM = OptionalFields(
    go_type="Transform",
    shapes={
        "type": "text",
        "map": "object",
        "match": OptionalFields(
            {
                "patterns": ListOf(
                    OptionalFields(
                        {"type": "text", "literal": "text", "regexp": "text", "result": "any"},
                        "MatchTransformPattern",
                    )
                ),
                "fallbackValue": "any",
                "fallbackTo": "text",
            },
            "MatchTransform",
        ),
        "math": OptionalFields(
            {"type": "text", "multiply": "whole", "clampMin": "whole", "clampMax": "whole"},
            "MathTransform",
        ),
        "string": OptionalFields(
            {
                "type": "text",
                "fmt": "text",
                "convert": "text",
                "trim": "text",
                "regexp": OptionalFields(
                    {"match": "text", "group": "whole"}, "StringTransformRegexp"
                ),
                "join": OptionalFields({"separator": "text"}, "StringTransformJoin"),
                "replace": OptionalFields(
                    {"search": "text", "replace": "text"}, "StringTransformReplace"
                ),
            },
            "StringTransform",
        ),
        "convert": OptionalFields({"toType": "text", "format": "text"}, "ConvertTransform"),
    },
)
_PATCH: dict[str, Shape] = {
    "type": "text",
    "fromFieldPath": "text",
    "toFieldPath": "text",
    "combine": OptionalFields(
        {
            "variables": ListOf(OptionalFields({"fromFieldPath": "text"}, "CombineVariable")),
            "strategy": "text",
            "string": OptionalFields({"fmt": "text"}, "StringCombine"),
        },
        "Combine",
    ),
    "transforms": ListOf(_TRANSFORM),
    "policy": OptionalFields({"fromFieldPath": "text", "toFieldPath": "text"}, "PatchPolicy"),
}
_RESOURCE = OptionalFields(
    go_type="ComposedTemplate",
    shapes={
        "name": "text",
        "base": "object",
        "patches": ListOf(OptionalFields({**_PATCH, "patchSetName": "text"}, "ComposedPatch")),
        "connectionDetails": ListOf(
            OptionalFields(
                {
                    "name": "text",
                    "type": "text",
                    "fromConnectionSecretKey": "text",
                    "fromFieldPath": "text",
                    "value": "text",
                },
                "ConnectionDetail",
            )
        ),
        "readinessChecks": ListOf(
            OptionalFields(
                {
                    "type": "text",
                    "fieldPath": "text",
                    "matchString": "text",
                    "matchInteger": "whole",
                    "matchCondition": OptionalFields(
                        {"type": "text", "status": "text"}, "MatchConditionReadinessCheck"
                    ),
                },
                "ReadinessCheck",
            )
        ),
    },
)
SHAPE = OptionalFields(
    go_type="Resources",
    shapes={
        **HEADER,
        "patchSets": ListOf(
            OptionalFields(
                {"name": "text", "patches": ListOf(OptionalFields(_PATCH, "PatchSetPatch"))},
                "PatchSet",
            )
        ),
        "environment": OptionalFields(
            {"patches": ListOf(OptionalFields(_PATCH, "EnvironmentPatch"))}, "Environment"
        ),
        "resources": ListOf(_RESOURCE),
        "writeConnectionSecretToRef": OptionalFields(
            {
                "name": "text",
                "namespace": "text",
                "patches": ListOf(OptionalFields(_PATCH, "ConnectionSecretPatch")),
            },
            "WriteConnectionSecretToRef",
        ),
    },
)


_UNDECODED = (
    "cannot get Function input: cannot get function input *v1beta1.Resources from "
    "*v1.RunFunctionRequest: cannot unmarshal JSON from *structpb.Struct into "
    "*v1beta1.Resources: "
)


def refusal(data: Part) -> str:
    """
    Return why the function refuses its input, in its words; empty if it accepts it.

    Raises:
        OpaqueError: The input contains something that cannot be judged here.
    """
    wrong = misshapen(dict(data), SHAPE)
    if wrong:
        return f"{_UNDECODED}{wrong}"
    fault = next(_resources(data), "")
    return f"invalid Function input: {fault}" if fault else ""


def type_of(patch: Part) -> str:
    """Return the type of a patch."""
    return patch.get("type") or FROM_COMPOSITE


def _required(field: str, why: str) -> str:
    return f"{field}: Required value: {why}"


def _invalid(field: str, value: Any, why: str) -> str:
    value_text = quoted(value) if isinstance(value, str) else value
    return f"{field}: Invalid value: {value_text}: {why}"


def _under(path: str, faults: Iterable[str]) -> Iterator[str]:
    return (f"{path}.{fault}" for fault in faults)


def _list_problems(
    name: str, entries: Iterable[Part] | None, judge: Callable[[Part], Iterator[str]]
) -> Iterator[str]:
    for number, entry in enumerate(entries or ()):
        yield from _under(f"{name}[{number}]", judge(entry or {}))


def _resources(data: Part) -> Iterator[str]:
    for patch_set in data.get("patchSets") or ():
        yield from _patch_set(patch_set)
    environment = (data.get("environment") or {}).get("patches") or ()
    if not (data.get("resources") or environment):
        yield _required("resources", "resources or environment patches are required")
    yield from _list_problems("resources", data.get("resources"), _template)
    for number, patch in enumerate(environment):
        if type_of(patch) not in _OF_ENVIRONMENT:
            field = f"environment.patches[{number}][type]"
            yield _invalid(field, type_of(patch), "invalid environment patch type")
        yield from _under(f"environment.patches[{number}]", _patch(patch))


def _patch_set(data: Part) -> Iterator[str]:
    if not data.get("name"):
        yield _required("name", "name is required")
    for number, patch in enumerate(data.get("patches") or ()):
        if type_of(patch) == PATCH_SET:
            message = "patch type *v1beta1.PatchSetPatch does not support patch of type PatchSet"
            yield _invalid(f"patches[{number}].type", PATCH_SET, message)
        yield from _under(f"patches[{number}]", _patch(patch))


def _template(data: Part) -> Iterator[str]:
    if not data.get("name"):
        yield _required("name", "name is required")
    yield from _list_problems("patches", data.get("patches"), _patch)
    yield from _list_problems(
        "connectionDetails", data.get("connectionDetails"), _connection_detail
    )
    yield from _list_problems("readinessChecks", data.get("readinessChecks"), _readiness_check)


def _patch(patch: Part) -> Iterator[str]:
    kind = type_of(patch)
    if kind in COMBINING:
        yield from _combining(patch, kind)
        return
    if kind == PATCH_SET:
        if not patch.get("patchSetName"):
            message = f"patchSetName must be set for patch type {kind}"
            yield _required("patchSetName", message)
    elif kind not in _SINGLE:
        yield _invalid("type", kind, "unknown patch type")
    elif not patch.get("fromFieldPath"):
        yield _required("fromFieldPath", f"fromFieldPath must be set for patch type {kind}")
    yield from _list_problems("transforms", patch.get("transforms"), _transform)
    yield from _policy(patch.get("policy") or {})


def _policy(policy: Part) -> Iterator[str]:
    target, source = policy.get("toFieldPath", "Replace"), policy.get("fromFieldPath", "Optional")
    if target is not None and target not in POLICIES:
        yield _invalid("policy.toFieldPathPolicy", target, "unknown toFieldPathPolicy")
    if source is not None and source not in {"Required", "Optional"}:
        yield _invalid("policy.fromFieldPathPolicy", source, "unknown fromFieldPathPolicy")


def _combining(patch: Part, kind: str) -> Iterator[str]:
    combine = patch.get("combine")
    if combine is None:
        yield _required("combine", f"combine must be set for patch type {kind}")
        return
    if not (patch.get("toFieldPath") or patch.get("fromFieldPath")):
        yield _required("toFieldPath", f"toFieldPath must be set for patch type {kind}")
    yield from _under("combine", _combine(combine))


def _combine(combine: Part) -> Iterator[str]:
    strategy = combine.get("strategy") or ""
    if not strategy:
        yield _required("strategy", "a combine strategy must be provided")
    elif strategy != "string":
        yield _invalid("strategy", strategy, "unknown strategy type")
    elif combine.get("string") is None:
        yield _required("string", "string must be set for combine strategy string")
    if not combine.get("variables"):
        yield _required("variables", "at least one variable must be provided")
    for number, variable in enumerate(combine.get("variables") or ()):
        if not variable.get("fromFieldPath"):
            message = "fromFieldPath must be set for each combine variable"
            yield _required(f"variables[{number}].fromFieldPath", message)


def _transform(transform: Part) -> Iterator[str]:
    kind = transform.get("type") or ""
    judge = _TRANSFORMS.get(kind)
    if judge is None:
        yield _invalid("type", kind, "unknown transform type")
    elif transform.get(kind) is None:
        yield _required(kind, f"given transform type {kind} requires configuration")
    else:
        yield from _under(kind, judge(transform[kind]))


_MATH = {
    "Multiply": ("multiply", "must specify a value if a multiply math transform is specified"),
    "ClampMin": ("clampMin", "must specify a value if a clamp min math transform is specified"),
    "ClampMax": ("clampMax", "must specify a value if a clamp max math transform is specified"),
}


def _typed(
    settings: Part, title: str, fields_by_type: Mapping[str, tuple[str, str]]
) -> Iterator[str]:
    """Check the type of a transform, and that the fields of that type are present."""
    kind = settings.get("type") or ""
    if not kind:
        yield _required("type", f"{title} transform type is required")
    elif kind not in fields_by_type:
        yield _invalid("type", kind, f"unknown {title} transform type")
    elif settings.get(fields_by_type[kind][0]) is None:
        yield _required(*fields_by_type[kind])


def _math(settings: Part) -> Iterator[str]:
    yield from _typed(settings, "math", _MATH)


def _map(settings: Part) -> Iterator[str]:
    if not settings:
        yield _required("pairs", "at least one pair must be specified if a map transform is "
                        "specified")  # fmt: skip


def _match(settings: Part) -> Iterator[str]:
    if not settings.get("patterns"):
        message = "at least one pattern must be specified if a match transform is specified"
        yield _required("patterns", message)
    yield from _list_problems("patterns", settings.get("patterns"), _pattern)


def _pattern(pattern: Part) -> Iterator[str]:
    kind = pattern.get("type") or ""
    if kind in {"literal", ""}:
        if pattern.get("literal") is None:
            yield _required("literal", "literal pattern type requires a literal")
    elif kind != "regexp":
        yield _invalid("type", kind, "unknown pattern type")
    elif pattern.get("regexp") is None:
        yield _required("regexp", "regexp pattern type requires a regexp")
    else:
        compiled(pattern["regexp"])


_STRING = {
    "Format": ("fmt", "format transform requires a format"),
    "Convert": ("convert", "convert transform requires a conversion type"),
    "TrimPrefix": ("trim", "trim transform requires a trim value"),
    "TrimSuffix": ("trim", "trim transform requires a trim value"),
    "Regexp": ("regexp", "regexp transform requires a regexp"),
    "Join": ("join", "join transform requires a join"),
    "Replace": ("replace", "replace transform requires a replace"),
}


def _string(settings: Part) -> Iterator[str]:
    wrong = list(_typed(settings, "string", _STRING))
    yield from wrong
    if wrong:
        return
    if settings["type"] == "Regexp":
        if not settings["regexp"].get("match"):
            yield _required("regexp.match", "regexp transform requires a match")
        compiled(settings["regexp"].get("match") or "")
    elif settings["type"] == "Replace" and not settings["replace"].get("search"):
        yield _required("replace.search", "replace transform requires a search")


_TYPES = {"string", "bool", "int", "int64", "float64", "object", "array"}


def _convert(settings: Part) -> Iterator[str]:
    form = settings.get("format")
    if form is not None and form not in {"none", "quantity", "json"}:
        yield _invalid("format", form, "invalid format")
    if settings.get("toType") not in _TYPES:
        yield _invalid("toType", settings.get("toType") or "", "invalid type")


_TRANSFORMS: Mapping[str, Callable[[Part], Iterator[str]]] = {
    "math": _math,
    "map": _map,
    "match": _match,
    "string": _string,
    "convert": _convert,
}


_DETAILS = {
    "FromValue": ("value", "value connection detail requires a value"),
    "FromConnectionSecretKey": (
        "fromConnectionSecretKey",
        "from connection secret key connection detail requires a key",
    ),
    "FromFieldPath": (
        "fromFieldPath",
        "from field path connection detail requires a field path",
    ),
}


def _connection_detail(detail: Part) -> Iterator[str]:
    kind = detail.get("type") or ""
    if not kind:
        yield _required("type", "connection detail type is required")
    elif kind not in _DETAILS:
        yield _invalid("type", kind, "unknown connection detail type")
    elif not detail.get("name"):
        yield _required("name", "name is required")
    elif detail.get(_DETAILS[kind][0]) is None:
        yield _required(*_DETAILS[kind])


_CHECKS = {"None", "NonEmpty", "MatchString", "MatchInteger", "MatchCondition", "MatchTrue",
           "MatchFalse"}  # fmt: skip


def _readiness_check(check: Part) -> Iterator[str]:
    kind = check.get("type") or ""
    if kind not in _CHECKS:
        yield _invalid("type", kind, "unknown readiness check type")
    elif kind == "MatchCondition":
        yield from _under("matchCondition", _condition(check.get("matchCondition")))
    elif kind != "None":
        field = "matchString" if kind == "MatchString" else "matchInteger"
        if kind in {"MatchString", "MatchInteger"} and check.get(field) is None:
            yield _required(field, f"cannot be nil for type {kind}")
        if check.get("fieldPath") is None:
            yield _required("fieldPath", "cannot be empty")


def _condition(check: Part | None) -> Iterator[str]:
    if check is None:
        raise OpaqueError("readiness check MatchCondition without matchCondition")
    for field in ("type", "status"):
        if not check.get(field):
            yield _required(field, "cannot be empty for type MatchCondition")
