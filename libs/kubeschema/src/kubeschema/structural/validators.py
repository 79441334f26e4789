"""
The two ``jsonschema`` validator classes that this package uses.

`StructuralValidator` is draft 4 (OpenAPI 3.0's dialect, where ``exclusiveMaximum`` is a boolean)
with ``nullable``, int-or-string, RE2 patterns, Kubernetes' formats, embedded resources and list
types. `TypeValidator` checks only types and declared fields, which is what server-side apply looks
at first.

The string formats that Kubernetes knows are predicates. Their rules are those of the API server,
which are looser or stricter than the RFCs in places (a date-time needs a zone, a UUID needs no
dashes). ``bsonobjectid``, ``isbn*``, ``creditcard``, ``ssn``, ``hexcolor`` and ``rgbcolor`` are
judged by their shape alone. Unknown formats are ignored, as on the server.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from email.utils import parseaddr
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft4Validator, ValidationError, validators

from ground.errors import with_article
from kubeschema.pruning import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_MAP_KEYS,
    LIST_TYPE,
    META_FIELDS,
    PRESERVE,
)
from kubeschema.re2_patterns import compile_pattern

HOST_MAX, LABEL_MAX = 255, 63
"""Of a host's name and of each of its labels (RFC 1123)."""
_DURATION_UNITS = "ns|us|µs|μs|ms|s|m|h"
_LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_HOST = re.compile(
    r"(?:[^\W_](?:-?[^\W_]{0,62})?|(?:[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?\.)+[^\W\d_]{2,63})\Z"
)
# the dot is any character in go-openapi's strfmt, too
_TIME = re.compile(r"(\d{2}):(\d{2}):(\d{2})(.[0-9]+)?(z|[+-]\d{2}:\d{2})\Z", re.ASCII)


def _matches(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    compiled = re.compile(rf"(?:{pattern})\Z", re.ASCII | flags)
    return lambda text: compiled.match(text) is not None


def _is_date(text: str) -> bool:
    # fromisoformat reads 20260101 and 2026-W01-1 as well
    if not re.match(r"\d{4}-\d{2}-\d{2}\Z", text, re.ASCII):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    day, mark, time = text.lower().partition("t")
    match = _TIME.match(time)
    if not (mark and match and _is_date(day)):
        return False
    return match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_address(version: int) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            return ipaddress.ip_address(text).version == version
        except ValueError:
            return False

    return check


def _is_cidr(text: str) -> bool:
    # ipaddress reads an address alone as a network
    if "/" not in text:
        return False
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _is_uri(text: str) -> bool:
    """Return whether it is an absolute URI or path, as Go's ``url.ParseRequestURI`` accepts it."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return " " not in text and (bool(parts.scheme) or text.startswith("/"))


def _is_hostname(text: str) -> bool:
    """Match one label (a dash only in second place), or labels and a top level of letters."""
    if len(text) > HOST_MAX or any(len(label) > LABEL_MAX for label in text.split(".")):
        return False
    return bool(_HOST.match(text))


def _is_email(text: str) -> bool:
    address = parseaddr(text)[1]
    name, _, host = address.rpartition("@")
    return bool(name and host) and " " not in address


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return bool(text)


def _uuid(version: str) -> Callable[[str], bool]:
    variant = "[89ab][0-9a-f]{3}" if version in {"4", "5"} else "[0-9a-f]{4}"
    third = f"{version}[0-9a-f]{{3}}" if version else "[0-9a-f]{4}"
    return _matches(
        f"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{third}-?{variant}-?[0-9a-f]{{12}}", re.IGNORECASE
    )


BYTES = "byte, or nothing"
"""The format of bytes in Kubernetes' own kinds. No CRD has it."""
FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches("[0-9a-fA-F]{24}"),
    "byte": _is_base64,
    BYTES: lambda text: not text or _is_base64(text),
    "cidr": _is_cidr,
    "creditcard": _matches(r"(?:\D*\d){13,16}\D*"),
    "date": _is_date,
    "datetime": _is_datetime,
    "duration": _matches(rf"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+) ?(?:{_DURATION_UNITS}|d|w))+)"),
    "email": _is_email,
    "hexcolor": _matches("#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _is_hostname,
    "ipv4": _is_address(4),
    "ipv6": _is_address(6),
    "isbn": _matches(r"(?:97[89][- ]?)?(?:\d[- ]?){9}[\dX]"),
    "isbn10": _matches(r"(?:\d[- ]?){9}[\dX]"),
    "isbn13": _matches(r"97[89][- ]?(?:\d[- ]?){9}\d"),
    "k8slongname": _matches(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*"),
    "k8sshortname": _matches(rf"(?=.{{1,63}}\Z){_LABEL}"),
    "mac": _matches(
        r"[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}|(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}", re.IGNORECASE
    ),
    "password": lambda _: True,
    "rgbcolor": _matches(r"rgb\(\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*\)"),
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "uri": _is_uri,
    "uuid": _uuid(""),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4"),
    "uuid5": _uuid("5"),
}


Errors = Iterator[ValidationError]
Keyword = Callable[[Any, Any, Any, Any], Any]

INT32 = range(-(2**31), 2**31)
INT64 = range(-(2**63), 2**63)


def type_name(value: object) -> str:
    """Return the JSON type of a value as the API server names it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = ((str, "string"), (int, "integer"), (float, "number"), (list, "array"))
    return next((name for kind, name in names if isinstance(value, kind)), "object")


def _is_integer(_checker: object, value: object) -> bool:
    """Return whether the value is an integer: 3.0 is, true is not."""
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def _type(validator: Any, expected_type: str, value: Any, schema: Mapping[str, Any]) -> Errors:
    if value is None and schema.get("nullable"):
        return
    if schema.get(INT_OR_STRING):
        return  # the keyword INT_OR_STRING judges
    if not validator.is_type(value, expected_type):
        yield ValidationError(f"{type_name(value)} is not {with_article(expected_type)}")


def _int_or_string(validator: Any, is_set: bool, value: Any, schema: Mapping[str, Any]) -> Errors:  # noqa: FBT001 - jsonschema calls it by position
    fits = validator.is_type(value, "string") or validator.is_type(value, "integer")
    if is_set and not fits and not (value is None and schema.get("nullable")):
        yield ValidationError(f"{type_name(value)} is not an integer,string")


def _pattern(validator: Any, pattern: str, value: Any, _schema: object) -> Errors:
    if validator.is_type(value, "string") and not compile_pattern(pattern).search(value):
        yield ValidationError(f"does not match {pattern}")


def _format(validator: Any, name: str, value: Any, _schema: object) -> Errors:
    bounds = {"int32": INT32, "int64": INT64}.get(name)
    if bounds is not None:
        if validator.is_type(value, "integer") and int(value) not in bounds:
            yield ValidationError(f"is out of the range of {name}")
        return
    check = FORMATS.get(name.replace("-", ""))
    if check and isinstance(value, str) and not check(value):
        yield ValidationError(f"is not a valid {name}")


def _embedded(validator: Any, is_set: bool, value: Any, _schema: object) -> Errors:  # noqa: FBT001 - jsonschema calls it by position
    if not is_set or not validator.is_type(value, "object"):
        return
    for name in ("apiVersion", "kind"):
        if name not in value:
            yield ValidationError("Required value", path=(name,))
        elif not value[name]:
            yield ValidationError("Required value: must not be empty", path=(name,))


def _list_type(_validator: object, kind: str, value: Any, schema: Mapping[str, Any]) -> Errors:
    if kind not in {"set", "map"} or not isinstance(value, list):
        return
    earlier = set()
    for index, entry in enumerate(value):
        identity = _identity(entry, schema) if kind == "map" else entry
        text = json.dumps(identity, sort_keys=True)
        if text in earlier:
            yield ValidationError("duplicate", path=(index,), instance=identity)
        earlier.add(text)


def _identity(entry: Any, schema: Mapping[str, Any]) -> Any:
    keys = schema.get(LIST_MAP_KEYS) or ()
    return {k: entry[k] for k in keys if k in entry} if isinstance(entry, dict) else entry


def _unless_null(keyword: Keyword) -> Keyword:
    """Skip a keyword for null: the server checks only type and enum then."""

    def judge(validator: Any, argument: Any, value: Any, schema: Any) -> Errors:
        if value is not None:
            yield from keyword(validator, argument, value, schema)

    return judge


_extend: Any = validators.extend  # untyped in its stubs
_CHECKER = Draft4Validator.TYPE_CHECKER.redefine("integer", _is_integer)
_JUNCTORS = {
    name: _unless_null(Draft4Validator.VALIDATORS[name])
    for name in ("allOf", "anyOf", "oneOf", "not")
}

StructuralValidator: Any = _extend(
    Draft4Validator,
    {
        **_JUNCTORS,
        "type": _type,
        "pattern": _pattern,
        "format": _format,
        INT_OR_STRING: _int_or_string,
        EMBEDDED: _embedded,
        LIST_TYPE: _list_type,
    },
    type_checker=_CHECKER,
)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: _is_integer(None, value),
    "null": lambda value: value is None,
}
_CACHE: dict[int, tuple[Mapping[str, Any], Any]] = {}
_CACHE_MAX = 4096


def _is_type(_validator: object, value: Any, type_: str) -> bool:
    return _TYPES[type_](value)


def _descend(
    _validator: object,
    value: Any,
    schema: Any,
    path: str | int | None = None,
    schema_path: str | int | None = None,
    resolver: object = None,  # noqa: ARG001 - the library passes it; structural schemas have no $ref
) -> Errors:
    """Judge a part with its schema's validator. The library would create a new one every time."""
    for error in validator_of(schema).iter_errors(value):
        if path is not None:
            error.path.appendleft(path)
        if schema_path is not None:
            error.schema_path.appendleft(schema_path)
        yield error


def validator_of(schema: Any) -> Any:
    """
    Return the validator of a schema.

    Schemas are values: nobody changes one after its first use.
    """
    cached = _CACHE.get(id(schema))
    if cached is not None:
        return cached[1]
    if len(_CACHE) >= _CACHE_MAX:
        _CACHE.clear()
    validator = StructuralValidator(schema)
    _CACHE[id(schema)] = (schema, validator)  # the reference keeps the id from being reused
    return validator


# jsonschema builds the class itself, so methods can be replaced only afterwards.
StructuralValidator.is_type = _is_type
StructuralValidator.descend = _descend


def _apply_type(
    validator: Any, expected_type: str, value: Any, schema: Mapping[str, Any]
) -> Errors:
    """Check a type as server-side apply does: null always passes, any number is an integer."""
    expected_type = "number" if expected_type == "integer" else expected_type
    if value is None or schema.get(INT_OR_STRING) or validator.is_type(value, expected_type):
        return
    yield ValidationError(f"expected {expected_type}")


def _apply_scalar(validator: Any, is_set: bool, value: Any, _schema: object) -> Errors:  # noqa: FBT001 - jsonschema calls it by position
    if is_set and (validator.is_type(value, "object") or validator.is_type(value, "array")):
        yield ValidationError("expected any scalar")


def _declared(validator: Any, properties: Mapping[str, Any], value: Any, schema: Any) -> Errors:
    if not validator.is_type(value, "object"):
        return
    open_ended = schema.get(PRESERVE) or schema.get("additionalProperties")
    for name, entry in value.items():
        if schema.get(EMBEDDED) and name in META_FIELDS:
            continue
        if name in properties:
            yield from validator.descend(entry, properties[name], path=name, schema_path=name)
        elif not open_ended:
            yield ValidationError("field not declared in schema", path=(name,))


TypeValidator: Any = validators.create(
    meta_schema={},
    validators={
        "type": _apply_type,
        "properties": _declared,
        "items": Draft4Validator.VALIDATORS["items"],
        "additionalProperties": Draft4Validator.VALIDATORS["additionalProperties"],
        INT_OR_STRING: _apply_scalar,
    },
    type_checker=_CHECKER,
)
