"""
Transforms of function-patch-and-transform: map, match, math, string, convert.

Follows v0.10.8. A transform that fails raises `TransformError` with the function's message, and the
step ends fatally, as in the function. Refused by name (`OpaqueError`): regular expressions that
cannot be read with RE2's meaning, formats that ``go_values`` does not print, case conversion of
characters whose other case is more than one character, base64 of data that is not text, infinite
numbers and floats in Go's hexadecimal notation.

``patch_input`` has already refused malformed transforms.

`as_float` reads a Kubernetes quantity as the approximate float that a convert transform makes of
it. In Kubernetes the number of digits decides which arithmetic is used. Values that its exact slow
path would round (below a billionth) or cap are refused by name.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compositions.function_twins.field_paths import quoted
from compositions.function_twins.go_values import (
    INT64_MAX,
    INT64_MIN,
    JSONError,
    fixed,
    from_wire,
    json_text,
    shown,
    sprintf,
    type_name,
)
from compositions.station import OpaqueError
from ground.objects.quantities import NoQuantity, Unsure, parse
from ground.regular_expressions import LinearPattern
from kubeschema.re2_patterns import PatternError, compile_pattern

_SHAPE = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([A-Za-z]*(?:[+-]?[0-9]+)?)\Z")
_DECIMAL_POWERS = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY_POWERS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def as_float(text: str) -> float:
    """
    Return the number, computed as Kubernetes computes it.

    Raises:
        ValueError: It is not a quantity; the message is Kubernetes'.
        OpaqueError: Kubernetes would round or cap it.
    """
    try:
        parse(text)
    except Unsure as error:
        raise OpaqueError(f"quantity {text!r}: {error}") from error
    except NoQuantity as error:
        raise ValueError(str(error)) from error
    match = _SHAPE.match(text)
    if match is None:
        raise OpaqueError(f"quantity {text!r} is written unusually")
    sign, integer, fraction, suffix = match.groups(default="")
    value, exponent = int((integer or "0") + fraction), -len(fraction)
    if suffix in _BINARY_POWERS:
        value <<= _BINARY_POWERS[suffix]
    elif suffix in _DECIMAL_POWERS:
        exponent += _DECIMAL_POWERS[suffix]
    else:
        exponent += int(suffix[1:])
    base = float(-value if sign == "-" else value)
    return base * float(f"1e{exponent}") if exponent else base


Transform = Mapping[str, Any]


class TransformError(Exception):
    """A transform that cannot be applied to its value; the message is the function's."""


def transformed(transforms: Sequence[Transform], value: Any) -> Any:
    """
    Return the value after all transforms, in order.

    Raises:
        TransformError: A transform cannot be applied to its value.
        OpaqueError: A transform uses something that is not supported here.
    """
    for number, transform in enumerate(transforms):
        try:
            value = _transformed(transform, value)
        except TransformError as error:
            raise TransformError(f"transform at index {number} returned error: {error}") from error
    return value


def _transformed(transform: Transform, value: Any) -> Any:
    kind = str(transform.get("type"))
    settings = transform.get(kind)
    if kind not in _KINDS:
        raise TransformError(f"transform type {kind} is not supported")
    if settings is None:
        raise TransformError(f"given transform type {kind} requires configuration")
    try:
        return _KINDS[kind](settings, value)
    except (TransformError, JSONError) as error:
        raise TransformError(f"{kind} transform could not resolve: {error}") from error


def compiled(pattern: str) -> LinearPattern:
    """
    Return a regular expression with RE2's meaning.

    Raises:
        OpaqueError: It is not valid.
    """
    try:
        return compile_pattern(pattern)
    except PatternError as error:
        raise OpaqueError(f"regexp {error}") from error


def _map(pairs: Mapping[str, Any], value: Any) -> Any:
    if not isinstance(value, str):
        raise TransformError(f"type {type_name(value)} is not supported for map transform")
    if value not in pairs:
        raise TransformError(f"key {value} is not found in map")
    if pairs[value] is None:
        message = f"value for key {value} is not valid JSON: unexpected end of JSON input"
        raise TransformError(message)
    return from_wire(pairs[value])


def _match(settings: Transform, value: Any) -> Any:
    for number, pattern in enumerate(settings.get("patterns") or ()):
        try:
            is_match = _matches(pattern, value)
        except TransformError as error:
            raise TransformError(f"cannot match pattern at index {number}: {error}") from error
        if is_match:
            return from_wire(pattern.get("result"))
    fallback = settings.get("fallbackValue")
    if settings.get("fallbackTo") == "Input":
        if fallback is not None:
            message = "cannot set both a fallback value and the fallback to input flag"
            raise TransformError(message)
        return value
    return from_wire(fallback)


def _matches(pattern: Transform, value: Any) -> bool:
    kind = pattern.get("type", "")
    if kind not in {"literal", "regexp"}:
        raise TransformError(f"unsupported pattern type '{kind}'")
    if pattern.get(kind) is None:
        raise TransformError(f"{kind} is required by type {kind}")
    if not isinstance(value, str):
        shown_type = "null" if value is None and kind == "regexp" else type_name(value)
        raise TransformError(f"unsupported input type '{shown_type}'")
    if kind == "literal":
        return bool(value == pattern["literal"])
    return compiled(pattern["regexp"]).search(value) is not None


def _math(settings: Transform, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"input is required to be a number for math transformer, got {type_name(value)}"
        raise TransformError(message)
    kind = settings["type"]
    if kind == "Multiply":
        return _product(value, int(settings["multiply"]))
    bound = int(settings[kind[0].lower() + kind[1:]])
    outside = _whole(value) < bound if kind == "ClampMin" else _whole(value) > bound
    return bound if outside else value


def _product(value: Any, factor: int) -> Any:
    if isinstance(value, float):
        return value * float(factor)
    product: int = value * factor
    if not INT64_MIN <= product <= INT64_MAX:
        raise OpaqueError("math Multiply beyond 64 bits")
    return product


def _whole(value: Any) -> int:
    if isinstance(value, float) and not INT64_MIN <= value <= INT64_MAX:
        raise OpaqueError("math on a number beyond 64 bits")
    return int(value)


def _string(settings: Transform, value: Any) -> str:
    kind = settings["type"]
    if kind == "Format":
        return sprintf(settings["fmt"], [value])
    if kind == "Join":
        return _joined(settings["join"].get("separator") or "", value)
    text = shown(value)
    if kind == "Convert":
        return _converted(settings["convert"], value, text)
    if kind == "Regexp":
        return _extracted(settings["regexp"], text)
    return _cut(settings, text)


def _cut(settings: Transform, text: str) -> str:
    if settings["type"] == "TrimPrefix":
        return text.removeprefix(settings["trim"])
    if settings["type"] == "TrimSuffix":
        return text.removesuffix(settings["trim"])
    replace = settings["replace"]
    return text.replace(replace["search"], replace.get("replace") or "")


def _converted(kind: str, value: Any, text: str) -> str:
    if kind in _CASES:
        return "".join(_cased(kind, char) for char in text)
    if kind == "ToJson":
        return json_text(value)
    if kind == "ToBase64":
        return base64.b64encode(text.encode()).decode()
    if kind == "FromBase64":
        return _decoded(text)
    if kind not in _HASHES:
        raise TransformError(f"type {kind} is not supported for string convert")
    data = value if isinstance(value, str) else json_text(value)
    return _HASHES[kind](data.encode())


_CASES: Mapping[str, Callable[[str], str]] = {"ToUpper": str.upper, "ToLower": str.lower}
_HASHES: Mapping[str, Callable[[bytes], str]] = {
    "ToSha1": lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest(),
    "ToSha256": lambda data: hashlib.sha256(data).hexdigest(),
    "ToSha512": lambda data: hashlib.sha512(data).hexdigest(),
    "ToAdler32": lambda data: str(zlib.adler32(data)),
}


def _cased(kind: str, char: str) -> str:
    cased = _CASES[kind](char)
    if len(cased) != 1:
        raise OpaqueError(f"string {kind} of {char!r}")
    return cased


def _decoded(text: str) -> str:
    # Go's decoder ignores line breaks
    plain = text.replace("\r", "").replace("\n", "")
    try:
        data = base64.b64decode(plain, validate=True)
    except (binascii.Error, ValueError) as error:
        raise TransformError(f"string is not valid base64: {error}") from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise OpaqueError("string FromBase64 of data that is not text") from error


def _extracted(settings: Transform, text: str) -> str:
    group = int(settings.get("group") or 0)
    if group < 0:
        raise OpaqueError("string Regexp with a negative group: the function crashes on it")
    pattern = compiled(settings["match"])
    match = pattern.search(text)
    if match is None or group > pattern.groups:
        message = f"regexp {quoted(settings['match'])} had no matches for group {group}"
        raise TransformError(message)
    return match.group(group) or ""


def _joined(separator: str, value: Any) -> str:
    if not isinstance(value, list):
        raise TransformError("could not parse input array")
    text = "".join(f"{shown(entry)}{separator}" for entry in value)
    if not (separator and value):
        return text
    if not separator[-1].isascii():
        raise OpaqueError("string Join with a separator beyond ASCII: the function cuts it")
    return text[:-1]


def _convert(settings: Transform, value: Any) -> Any:
    target_type, form = settings["toType"], settings.get("format") or "none"
    source = type_name(value)
    if source not in {"string", "bool", "int64", "float64"}:
        raise TransformError(f"invalid input type {source}")
    target = "int64" if target_type == "int" else target_type
    if target == source:
        return value
    conversion = _CONVERSIONS.get((source, target, form))
    if conversion is None:
        message = f"conversion from {source} to {target} is not supported with format {form}"
        raise TransformError(message)
    return conversion(value)


_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def _integer(text: str) -> int:
    if not _INTEGER.match(text):
        raise TransformError(f"strconv.ParseInt: parsing {quoted(text)}: invalid syntax")
    if not INT64_MIN <= int(text) <= INT64_MAX:
        raise TransformError(f"strconv.ParseInt: parsing {quoted(text)}: value out of range")
    return int(text)


def _truth(text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise TransformError(f"strconv.ParseBool: parsing {quoted(text)}: invalid syntax")
    return text in _TRUE


def _number(text: str) -> float:
    if not _DECIMAL.match(text):
        if re.match(r"[+-]?(0[xX]|[iI][nN][fF]|[nN][aA][nN])", text):
            raise OpaqueError(f"convert of {text!r} to float64")
        raise TransformError(f"strconv.ParseFloat: parsing {quoted(text)}: invalid syntax")
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise TransformError(f"strconv.ParseFloat: parsing {quoted(text)}: value out of range")
    return number


def _quantity(text: str) -> float:
    try:
        return as_float(text)
    except ValueError as error:
        raise TransformError(str(error)) from error


def _parsed(expected_type: type, type_title: str) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            value = json.loads(text, parse_constant=_no_constant)
        except ValueError as error:
            raise TransformError(f"invalid JSON: {error}") from error
        if value is not None and not isinstance(value, expected_type):
            raise TransformError(f"json: cannot unmarshal it into Go value of type {type_title}")
        return from_wire(value)

    return parse


def _no_constant(name: str) -> Any:
    raise ValueError(f"invalid character in {name}")


_CONVERSIONS: Mapping[tuple[str, str, str], Callable[[Any], Any]] = {
    ("string", "int64", "none"): _integer,
    ("string", "bool", "none"): _truth,
    ("string", "float64", "none"): _number,
    ("string", "float64", "quantity"): _quantity,
    ("int64", "string", "none"): str,
    ("int64", "bool", "none"): lambda value: value == 1,
    ("int64", "float64", "none"): float,
    ("bool", "string", "none"): lambda value: "true" if value else "false",
    ("bool", "int64", "none"): int,
    ("bool", "float64", "none"): float,
    ("float64", "string", "none"): fixed,
    ("float64", "int64", "none"): _whole,
    ("float64", "bool", "none"): lambda value: value == 1,
    ("string", "object", "json"): _parsed(dict, "map[string]interface {}"),
    ("string", "array", "json"): _parsed(list, "[]interface {}"),
}
_KINDS: Mapping[str, Callable[[Any, Any], Any]] = {
    "map": _map,
    "match": _match,
    "math": _math,
    "string": _string,
    "convert": _convert,
}
