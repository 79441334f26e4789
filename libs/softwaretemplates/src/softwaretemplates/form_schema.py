"""
JSON Schema as a form uses it: one verdict that ajv in the form and npm's jsonschema share.

`check` refuses an invalid schema and one that the two read differently; `problems` judges a value.
A value is valid if both would accept it. Exact for what forms use: types, patterns, enums, bounds,
lengths, lists, objects, dependencies, conditions, and formats.

Draft 7, checked by the library ``jsonschema`` with its patterns, multiples and formats replaced by
JavaScript's. No I/O.

`FORMATS` has the values of ``format`` that a form may use. The form uses ajv with ajv-formats, the
backend npm's jsonschema. They read most formats differently, so each has a check of its own.
Formats that only one of them knows, or that cannot be checked exactly here, are in `REFUSED`: a
pattern means the same to both. Both ignore any other name, and so do we. A URI with an IPv6 host is
refused.
"""

from __future__ import annotations

import functools
import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ground.errors import InvalidInputError
from ground.regular_expressions import SPACE, compile_pattern

__all__ = ["first_problem"]


Obeys = Callable[[str], bool]
HOST_MAX, BACKEND_HOST_MAX = 253, 255


@dataclass(frozen=True, slots=True)
class Format:
    """The checks that decide whether a text has a format, for the form and for the backend."""

    form: Obeys
    backend: Obeys


_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_CLOCK = r"(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]|23:59:60)"
_ZONE = r"(?:[zZ]|[+-][0-9]{2}(?::?[0-9]{2})?)"
_LOOSE_DATE = r"[0-9]{4}-(?:0[0-9]|1[0-2])-(?:3[01]|0[1-9]|[12][0-9])"
_LOOSE_CLOCK = r"(?:2[0-4]|[01][0-9]):[0-5][0-9]:(?:60|[0-5][0-9])"
_LOOSE_ZONE = r"(?:[zZ]|[+-][0-5][0-9]:(?:60|[0-5][0-9]))"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_LONG_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LOCAL = rf"{_ATOM}(?:\.{_ATOM})*@"
_ENCODED = r"%[0-9A-Fa-f]{2}"
_NAME = rf"(?:[A-Za-z0-9._~!$&'()*+,;=-]|{_ENCODED})"
_PATH = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|{_ENCODED})"
_LINE = r"[^\n\r\u2028\u2029]"
_UUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"


def _matches(pattern: str) -> Obeys:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    leap_or_plain = year or 2000  # the calendar has no year 0; it is a leap year, like 2000
    return 1 <= month <= 12 and 1 <= day <= monthrange(leap_or_plain, month)[1]  # noqa: PLR2004


_is_time = _matches(rf"{_CLOCK}(?:\.[0-9]+)?{_ZONE}?")
_separates = _matches(rf"[tT{SPACE}]")
_host = _matches(rf"{_LABEL}(?:\.{_LABEL})*\.?")
_ipv4 = _matches(rf"(?:{_OCTET}\.){{3}}{_OCTET}")


def _is_moment(text: str) -> bool:
    return _is_date(text[:10]) and _separates(text[10:11]) and _is_time(text[11:])


def _is_host(text: str) -> bool:
    return _host(text) and len(text.removesuffix(".")) <= HOST_MAX


FORMATS: Mapping[str, Format] = {
    # The form's own format, of @rjsf/validator-ajv8; the backend knows none of that name.
    "data-url": Format(
        _matches(rf"data:([a-z]+/[a-z0-9+.-]+)?;(?:name=({_LINE}*);)?base64,({_LINE}*)"),
        lambda _: True,
    ),
    "date": Format(_is_date, _matches(_LOOSE_DATE)),
    "date-time": Format(
        _is_moment, _matches(rf"{_LOOSE_DATE}[tT ]{_LOOSE_CLOCK}(?:\.[0-9]+)?{_LOOSE_ZONE}")
    ),
    "email": Format(
        _matches(rf"{_LOCAL}(?:{_LONG_LABEL}\.)+{_LONG_LABEL}"),
        _matches(rf"{_LOCAL}(?:(?:{_LABEL}\.)+{_LABEL}|\[(?:{_OCTET}\.){{3}}{_OCTET}\])"),
    ),
    "hostname": Format(_is_host, lambda text: _host(text) and len(text) <= BACKEND_HOST_MAX),
    "ipv4": Format(_ipv4, _ipv4),
    "time": Format(_is_time, _matches(_LOOSE_CLOCK)),
    "uri": Format(
        _matches(
            r"[A-Za-z][A-Za-z0-9+.-]*:"
            rf"(?:/?/(?:(?:{_NAME}|:)*@)?{_NAME}*(?::[0-9]*)?(?:/{_PATH}*)*"
            rf"|/(?:{_PATH}+(?:/{_PATH}*)*)?|{_PATH}+(?:/{_PATH}*)*)"
            rf"(?:\?(?:{_PATH}|[/?])*)?(?:#(?:{_PATH}|[/?])*)?"
        ),
        _matches(rf"[A-Za-z][A-Za-z0-9+.-]*:[^{SPACE}]*"),
    ),
    "uuid": Format(_matches(rf"(?i:urn:uuid:)?{_UUID}"), _matches(_UUID)),
}
REFUSED = frozenset(
    {
        "alpha", "alphanumeric", "byte", "color", "duration", "host-name", "idn-email",
        "int32", "int64", "ip-address", "ipv6", "iri", "iri-reference", "iso-date-time",
        "iso-time", "json-pointer", "json-pointer-uri-fragment", "pattern", "phone", "regex",
        "regexp", "relative-json-pointer", "style", "uri-reference", "uri-template", "url",
        "utc-millisec",
    }
)  # fmt: skip
"""Known to only one of the two, read differently by them, or not checked exactly here."""


Schema = dict[str, Any]
_BESIDE_REF = frozenset({"$ref", "title", "description", "default", "$comment", "examples"})
_ENUM: Schema = {"type": "array", "minItems": 1, "uniqueItems": True}
_MAPS = ("properties", "patternProperties", "definitions", "dependencies")
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = (
    "additionalItems", "additionalProperties", "contains", "else", "if", "items", "not",
    "propertyNames", "then",
)  # fmt: skip


class SchemaError(ValueError):
    """A schema is refused. `path` is the place in the schema, `value` its content there."""

    def __init__(self, path: str, value: object, problem: str, hint: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path, self.value, self.problem, self.hint = path, value, problem, hint


def check(schema: Schema) -> None:
    """
    Check a schema.

    Raises:
        SchemaError: It is not a schema of draft 7, or form and backend read a pattern, a format or
            a reference in it differently.
    """
    import jsonschema  # lazy: heavy

    for path, subschema in _parts(schema, ""):
        _check_part(path, subschema)
    problem = jsonschema.exceptions.best_match(
        jsonschema.Draft7Validator(jsonschema.Draft7Validator.META_SCHEMA).iter_errors(schema)
    )
    if problem is not None:
        path = ".".join(map(str, problem.absolute_path))
        raise SchemaError(path, problem.instance, f"is not JSON Schema: {problem.message}", "")


def _parts(schema: object, path: str) -> Iterator[tuple[str, Schema]]:
    """Yield each schema inside a schema with its path. Data (enum, default) is not a schema."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    inner = [(key, schema.get(key)) for key in _SINGLE]
    inner += [
        (f"{key}.{name}", item)
        for key in _MAPS
        if isinstance(schema.get(key), dict)
        for name, item in schema[key].items()
    ]
    inner += [
        (f"{key}[{at}]", item)
        for key in (*_LISTS, "items")
        if isinstance(schema.get(key), list)
        for at, item in enumerate(schema[key])
    ]
    for name, item in inner:
        yield from _parts(item, f"{path}.{name}".lstrip("."))


def _check_part(path: str, schema: Schema) -> None:
    patterns = [("pattern", schema.get("pattern"))]
    if isinstance(schema.get("patternProperties"), dict):
        patterns += [("patternProperties", name) for name in schema["patternProperties"]]
    for key, pattern in patterns:
        _check_pattern(f"{path}.{key}".lstrip("."), pattern)
    if isinstance(schema.get("format"), str) and schema["format"] in REFUSED:
        raise SchemaError(
            f"{path}.format".lstrip("."),
            schema["format"],
            "is refused: form and backend read this format differently",
            "write a pattern instead",
        )
    if "enum" in schema and not accepts(_ENUM, schema["enum"]):
        raise SchemaError(
            f"{path}.enum".lstrip("."),
            schema["enum"],
            "is not a list of different values",
            "the form refuses an empty enum and one with a value twice",
        )
    if "$ref" in schema and set(schema) - _BESIDE_REF:
        raise SchemaError(
            path,
            sorted(set(schema) - _BESIDE_REF),
            "stands beside $ref, which the form reads and the backend ignores",
            "write allOf: [{$ref: …}, {…}]",
        )


def _check_pattern(path: str, pattern: object) -> None:
    if not isinstance(pattern, str):
        return
    try:
        compile_pattern(pattern)
    except ValueError as error:
        raise SchemaError(
            path,
            pattern,
            f"is refused as a pattern: {error}",
            "use what JavaScript and Python read alike: classes, groups, counts",
        ) from error


def problems(schema: Schema, value: object) -> Iterator[Any]:
    """
    Yield a value's errors, as ``jsonschema.ValidationError``: the form's errors first.

    Raises:
        InvalidInputError: A ``$ref`` of the schema leads back to itself.
    """
    has_problem = False
    try:
        for problem in _form()(schema).iter_errors(value):
            has_problem = True
            yield problem
        if not has_problem:
            yield from _backend()(schema).iter_errors(value)
    except RecursionError as error:
        raise InvalidInputError(
            "$ref",
            schema.get("$ref", ""),
            "leads back to itself",
            hint="have it name a schema that has no such reference",
        ) from error


def first_problem(schema: Schema, value: object) -> Any | None:
    """Return the most telling of `problems`, or None."""
    import jsonschema  # lazy: heavy

    return jsonschema.exceptions.best_match(problems(schema, value))


def causes(problem: Any) -> Iterator[Any]:
    """
    Yield what a problem comes down to.

    Of ``oneOf`` and ``anyOf`` of a map, these are the problems of the branch that the map's values
    select by ``const`` or ``enum``, or else of the branch of which it has most properties: the one
    that the form shows.
    """
    import jsonschema  # lazy: heavy

    if problem.validator not in ("oneOf", "anyOf") or not isinstance(problem.instance, dict):
        yield jsonschema.exceptions.best_match([problem])
        return
    branches: dict[int, list[Any]] = {}
    for error in problem.context:
        branches.setdefault(error.schema_path[0], []).append(error)
    choosers = _choosers(problem.validator_value)
    others = {
        at: next((error for error in errors if _is_choice(error, choosers)), None)
        for at, errors in branches.items()
    }
    selected = [at for at, error in others.items() if error is None]
    if selected:
        best = max(selected, key=lambda at: len(_names(problem.validator_value[at], problem)))
        for error in branches[best]:
            yield from causes(error)
    else:
        yield _no_choice(problem, list(others.values()))


def _choosers(branches: list[Any]) -> set[str]:
    """Return the fields by which a value selects its branch: each branch says which it takes."""
    named = [
        {
            name
            for name, schema in (branch.get("properties") or {}).items()
            if isinstance(schema, dict) and {"const", "enum"} & schema.keys()
        }
        for branch in branches
        if isinstance(branch, dict)
    ]
    return set.intersection(*named) if named else set()


def _is_choice(error: Any, choosers: set[str]) -> bool:
    """Say whether an error means that a branch is for another value."""
    path = error.path
    return error.validator in ("const", "enum") and len(path) == 1 and path[0] in choosers


def _names(branch: Any, problem: Any) -> set[str]:
    properties = branch.get("properties") if isinstance(branch, dict) else None
    return set(properties or ()) & set(problem.instance)


def _no_choice(problem: Any, choices: list[Any]) -> Any:
    """Return the error of a value for which there is no branch."""
    import jsonschema  # lazy: heavy

    if len({error.path[0] for error in choices}) != 1:
        return problem
    values: list[Any] = []
    for error in choices:
        values += error.validator_value if error.validator == "enum" else [error.validator_value]
    return jsonschema.ValidationError(
        "has no branch for this value",
        validator="enum",
        path=choices[0].path,
        validator_value=values,
        instance=choices[0].instance,
        schema={},
        parent=problem,
    )


def accepts(schema: Schema, value: object) -> bool:
    """Return whether form and backend would both accept the value."""
    return next(problems(schema, value), None) is None


@functools.cache
def _form() -> Callable[[Schema], Any]:
    return _validator({"format": _format_of_form})


@functools.cache
def _backend() -> Callable[[Schema], Any]:
    keywords = {
        "format": _format_of_backend,
        "const": _const_of_backend,
        "enum": _enum_of_backend,
        "uniqueItems": _unique_items_of_backend,
    }
    return _validator(keywords)


def _validator(rules: dict[str, Any]) -> Callable[[Schema], Any]:
    import jsonschema  # lazy: heavy

    shared = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "multipleOf": _multiple_of,
    }
    extend: Any = jsonschema.validators.extend
    validator_class: Callable[[Schema], Any] = extend(
        jsonschema.Draft7Validator, {**shared, **rules}
    )
    return validator_class


def _wrong(text: str) -> Any:
    import jsonschema  # lazy: heavy

    return jsonschema.ValidationError(text)


def _pattern(_: Any, source: str, value: object, __: Any) -> Iterator[Any]:
    if isinstance(value, str) and not compile_pattern(source).search(value):
        yield _wrong(f"does not match '{source}'")


def _pattern_properties(
    validator: Any, patterns: dict[str, Any], value: object, _: Any
) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    for source, inner in patterns.items():
        for key, item in value.items():
            if compile_pattern(source).search(key):
                yield from validator.descend(item, inner, path=key, schema_path=source)


def _multiple_of(_: Any, factor: float, value: object, __: Any) -> Iterator[Any]:
    if _is_number(value) and Decimal(str(value)) % Decimal(str(factor)):
        yield _wrong(f"is not a multiple of {factor}")


def _format_of_form(_: Any, name: object, value: object, __: Any) -> Iterator[Any]:
    is_valid = FORMATS.get(name) if isinstance(name, str) else None
    if is_valid and isinstance(value, str) and not is_valid.form(value):
        yield _wrong(f"is not a valid {name}")


def _format_of_backend(_: Any, name: object, value: object, __: Any) -> Iterator[Any]:
    is_valid = FORMATS.get(name) if isinstance(name, str) else None
    if is_valid and isinstance(value, str) and not is_valid.backend(value):
        yield _wrong(f"is not a valid {name}")


def _const_of_backend(_: Any, constant: object, value: object, __: Any) -> Iterator[Any]:
    if not _alike(constant, value):
        yield _wrong(f"is not {constant!r}")


def _enum_of_backend(_: Any, choices: list[Any], value: object, __: Any) -> Iterator[Any]:
    if not any(_alike(value, choice) for choice in choices):
        yield _wrong(f"is none of {choices!r}")


def _unique_items_of_backend(_: Any, is_set: object, value: object, __: Any) -> Iterator[Any]:
    if is_set is not True or not isinstance(value, list):
        return
    if any(_alike(item, other) for at, item in enumerate(value) for other in value[at + 1 :]):
        yield _wrong("has an item twice")


def _alike(left: object, right: object) -> bool:
    """Compare as the backend does: a map equals a list with the same keys, but not the reverse."""
    if isinstance(left, list):
        if not isinstance(right, list) or len(left) != len(right):
            return False
        return all(_alike(item, other) for item, other in zip(left, right, strict=True))
    if isinstance(left, dict):
        if isinstance(right, list):
            right = {str(at): item for at, item in enumerate(right)}
        if not isinstance(right, dict) or left.keys() != right.keys():
            return False
        return all(_alike(item, right[key]) for key, item in left.items())
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
