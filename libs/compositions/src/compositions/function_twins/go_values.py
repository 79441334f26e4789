"""
Values as a function written in Go holds them: Go's number types and Go's printed text.

Numbers that arrive over the wire are float64. Whole numbers that Kubernetes read from JSON are
int64. Transforms distinguish the two, so here a Go float64 is a Python float and an int64 is a
Python int. `json_text` writes what Go's ``encoding/json`` writes, `type_name` what ``%T`` prints.

`sprintf` is Go's ``fmt.Sprintf`` for the values that patches carry, including values of the wrong
type. It has the verbs ``s d v t q x f F e g`` with width, precision and the flags ``- + 0`` and
space, as far as all releases of Go agree. A verb that does not fit its value prints what Go prints
(``%!d(string=a)``), and so do missing or extra values. Refused by name: every other verb, ``#``,
``*``, explicit indices, and combinations whose output depends on the release.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from compositions.station import OpaqueError

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_PLAIN_MIN, _PLAIN_MAX = 1e-6, 1e21
"""Between these Go's JSON encoder writes a float without an exponent."""
_GENERAL_LOW, _GENERAL_HIGH = -4, 6
"""Decimal exponents between which ``%v`` writes a float without an exponent."""


class JSONError(ValueError):
    """A value that Go's JSON encoder cannot write; the message is Go's."""


def from_wire(value: Any) -> Any:
    """Return data as it arrives in a protobuf Struct: every number is a float."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, dict):
        return {key: from_wire(entry) for key, entry in value.items()}
    return [from_wire(entry) for entry in value]


def from_json(value: Any) -> Any:
    """
    Return data after a round trip through Kubernetes' JSON: whole numbers are integers.

    Raises:
        JSONError: A number that JSON cannot write.
    """
    if isinstance(value, float):
        _check_finite(value)
        is_whole = value.is_integer() and abs(value) < _PLAIN_MAX
        return int(value) if is_whole and INT64_MIN <= int(value) <= INT64_MAX else value
    if isinstance(value, dict):
        return {key: from_json(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [from_json(entry) for entry in value]
    return value


def type_name(value: Any) -> str:
    """Return what ``%T`` prints."""
    if value is None:
        return "<nil>"
    names = {
        bool: "bool", int: "int64", float: "float64", str: "string",
        dict: "map[string]interface {}", list: "[]interface {}",
    }  # fmt: skip
    return names[type(value)]


def same(value: Any, other_value: Any) -> bool:
    """Compare as ``reflect.DeepEqual`` does: 1 and 1.0 are different types."""
    if type(value) is not type(other_value):
        return False
    if isinstance(value, dict):
        return value.keys() == other_value.keys() and all(
            same(value[key], other_value[key]) for key in value
        )
    if isinstance(value, list):
        return len(value) == len(other_value) and all(map(same, value, other_value))
    return bool(value == other_value)


def json_text(value: Any) -> str:
    """
    Return compact JSON as ``encoding/json`` writes it: keys sorted, ``< > &`` escaped.

    Raises:
        JSONError: A number that JSON cannot write.
    """
    if isinstance(value, str):
        return _json_string(value)
    if isinstance(value, float):
        return _json_float(value)
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: str(key).encode())
        return "{" + ",".join(f"{_json_string(k)}:{json_text(value[k])}" for k in keys) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    return json.dumps(value)


_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028",
            "\u2029": "\\u2029"}  # fmt: skip


def _json_string(text: str) -> str:
    json_text_ = json.dumps(text, ensure_ascii=False)
    return "".join(_ESCAPES.get(char, char) for char in json_text_)


def _check_finite(value: float) -> None:
    if not math.isfinite(value):
        text = "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
        raise JSONError(f"json: unsupported value: {text}")


def _json_float(value: float) -> str:
    _check_finite(value)
    if value == 0 or _PLAIN_MIN <= abs(value) < _PLAIN_MAX:
        return fixed(value)
    return scientific(value).replace("e-0", "e-")


def fixed(value: float, digits: int = -1) -> str:
    """Return ``strconv.FormatFloat(value, 'f', digits)``; -1 means the shortest exact text."""
    if digits >= 0:
        return f"{value:.{digits}f}"
    sign = "-" if math.copysign(1, value) < 0 else ""
    text = format(Decimal(repr(abs(value))), "f")
    return sign + (text.rstrip("0").rstrip(".") if "." in text else text)


def scientific(value: float, digits: int = -1) -> str:
    """Return the 'e' format: one digit, the shortest exact fraction, two digits of exponent."""
    if digits >= 0:
        return f"{value:.{digits}e}"
    sign, digit_tuple, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 - finite
    first, fraction = str(digit_tuple[0]), "".join(map(str, digit_tuple[1:]))
    power = exponent + len(fraction)
    mantissa = first + (f".{fraction}" if fraction else "")
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def general(value: float) -> str:
    """Return what ``%v`` prints of a float."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    if value == 0:
        return fixed(value)
    power = Decimal(repr(value)).adjusted()
    if power < _GENERAL_LOW or power >= _GENERAL_HIGH:
        return scientific(value)
    return fixed(value)


_DIRECTIVE = re.compile(r"%([-+# 0]*)(\d+|\*)?(?:(\.)(\d*|\*))?(\[\d+\])?(.)?", re.DOTALL)
_VERBS = frozenset("sdvtqxfFeg")
_FITTING: dict[type, str] = {str: "svqx", bool: "tv", int: "dvx", float: "vxfFeg"}
_FIXED_DIGITS = 6
"""Default precision of ``%f`` and ``%e``."""


@dataclass(frozen=True, slots=True)
class _Directive:
    text: str
    flags: frozenset[str]
    width: int
    precision: int | None
    verb: str

    @property
    def is_plain(self) -> bool:
        return not (self.flags or self.width) and self.precision is None

    def refuse(self, why: str) -> OpaqueError:
        return OpaqueError(f"fmt {self.text!r}: {why}")


def sprintf(template: str, values: Sequence[Any]) -> str:
    """
    Return what Go prints.

    Raises:
        OpaqueError: The format uses something that is not supported here.
    """
    pieces, at, position = [], 0, 0
    for match in _DIRECTIVE.finditer(template):
        pieces.append(template[at : match.start()])
        at = match.end()
        if match.group() == "%%":
            pieces.append("%")
            continue
        if match.group() == "%":
            pieces.append("%!(NOVERB)")
            continue
        directive = _directive(match)
        if position < len(values):
            pieces.append(_printed(directive, values[position]))
        else:
            pieces.append(f"%!{directive.verb}(MISSING)")
        position += 1
    pieces.append(template[at:])
    if position < len(values):
        pieces.append(f"%!(EXTRA {', '.join(map(_extra, values[position:]))})")
    return "".join(pieces)


def shown(value: Any) -> str:
    """Return what ``%v`` prints."""
    return _printed(_Directive("%v", frozenset(), 0, None, "v"), value)


def _directive(match: re.Match[str]) -> _Directive:
    flags, width, dot, precision, index, verb = match.groups()
    if index or "*" in {width, precision} or verb == "[":
        raise OpaqueError(f"fmt {match.group()!r}: explicit indexes and '*' are not supported")
    if verb not in _VERBS or "#" in flags:
        raise OpaqueError(f"fmt {match.group()!r}: this verb or flag is not supported")
    digits = int(precision or 0) if dot else None
    return _Directive(match.group(), frozenset(flags), int(width or 0), digits, verb)


def _extra(value: Any) -> str:
    return "<nil>" if value is None else f"{type_name(value)}={shown(value)}"


def _printed(directive: _Directive, value: Any) -> str:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: str(key).encode())
        parts = (f"{_printed(directive, k)}:{_inner(directive, value[k])}" for k in keys)
        return f"map[{' '.join(parts)}]"
    if isinstance(value, list):
        return f"[{' '.join(_inner(directive, entry) for entry in value)}]"
    return _nil(directive) if value is None else _scalar(directive, value)


def _scalar(directive: _Directive, value: Any) -> str:
    if directive.verb not in _FITTING[type(value)]:
        return _misfit(directive, f"{type_name(value)}={shown(value)}")
    if isinstance(value, str):
        return _string(directive, value)
    if isinstance(value, bool):
        return _padded(directive, "true" if value else "false", number=False)
    if isinstance(value, int):
        return _integer(directive, value)
    return _float(directive, value)


def _inner(directive: _Directive, value: Any) -> str:
    return "<nil>" if value is None else _printed(directive, value)


def _nil(directive: _Directive) -> str:
    if directive.verb == "v":
        return _padded(directive, "<nil>", number=False)
    return _misfit(directive, "<nil>")


def _misfit(directive: _Directive, text: str) -> str:
    if not directive.is_plain:
        raise directive.refuse("flags on a value of another type are not supported")
    return f"%!{directive.verb}({text})"


def _string(directive: _Directive, text: str) -> str:
    if directive.verb in "qx" and not directive.is_plain:
        raise directive.refuse("flags of this verb are not supported")
    if directive.verb == "x":
        return text.encode().hex()
    if directive.verb == "q":
        return _quoted(directive, text)
    cut = text if directive.precision is None else text[: directive.precision]
    return _padded(directive, cut, number=False)


_CONTROLS = {"\\u0007": "\\a", "\\u000b": "\\v"}


def _quoted(directive: _Directive, text: str) -> str:
    if not text.isascii():
        raise directive.refuse("text beyond ASCII is not supported")
    quoted_text = json.dumps(text).replace("\x7f", "\\x7f")
    for code, escape in _CONTROLS.items():
        quoted_text = quoted_text.replace(code, escape)
    return re.sub(r"\\u00([0-9a-f]{2})", r"\\x\1", quoted_text)


def _integer(directive: _Directive, value: int) -> str:
    if directive.precision is not None:
        raise directive.refuse("a precision of whole numbers is not supported")
    digits = f"{abs(value):x}" if directive.verb == "x" else str(abs(value))
    return _padded(directive, _signed(directive, value < 0) + digits, number=True)


def _float(directive: _Directive, value: float) -> str:
    verb, digits = directive.verb, directive.precision
    if verb == "x":
        raise directive.refuse("hexadecimal fractions are not supported")
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        raise directive.refuse("infinite numbers are not supported")
    if verb in "vg":
        if digits is not None or (directive.flags & {"+", " "} and verb == "v"):
            raise directive.refuse("a precision or sign of this verb is not supported")
        text = general(abs(value))
    elif verb == "e":
        text = scientific(abs(value), _FIXED_DIGITS if digits is None else digits)
    else:
        text = fixed(abs(value), _FIXED_DIGITS if digits is None else digits)
    negative = str(value).startswith("-")
    return _padded(directive, _signed(directive, negative) + text, number=True)


def _signed(directive: _Directive, negative: bool) -> str:  # noqa: FBT001 - what it is about
    if negative:
        return "-"
    return next((sign for sign in ("+", " ") if sign in directive.flags), "")


def _padded(directive: _Directive, text: str, *, number: bool) -> str:
    room = directive.width - len(text)
    if not number and directive.flags & {"0", "+", " "}:
        raise directive.refuse("this flag on text depends on the release of Go")
    if room <= 0:
        return text
    if "-" in directive.flags:
        return text + " " * room
    if "0" not in directive.flags:
        return " " * room + text
    sign = text[0] if text[:1] in {"+", "-", " "} else ""
    return sign + "0" * room + text[len(sign) :]
