"""
Resolve plain YAML scalars as Kubernetes does.

``kubectl``, Argo CD and the API server read YAML with one Go library whose dialect is neither YAML
1.1 nor 1.2: ``yes`` and ``y`` are true, ``1e3`` is a number, ``0o17`` and ``017`` are 15, ``1:20``
is text. So neither PyYAML's nor ruamel's resolver will do; this one follows Go's, except that
timestamps stay text (JSON has none).
"""

from __future__ import annotations

import re

Scalar = str | int | float | bool | None

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"),
        False,
    ),
}
_NOT_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_BASED = re.compile(r"(?P<sign>[-+]?)0(?P<base>[xXoObB]?)(?P<digits>[0-9a-fA-F]+)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASES = {"x": 16, "o": 8, "b": 2, "": 8}
_INT_MIN, _UINT_MAX = -(2**63), 2**64 - 1
_MAX_DIGITS = 400
"""Longer digit strings are not meant as numbers, and Python parses them slowly."""


def resolve(text: str) -> Scalar:
    """
    Return the value of an unquoted scalar.

    Raises:
        ValueError: It is infinity or NaN, which JSON cannot represent.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_JSON.fullmatch(text):
        raise ValueError(f"{text} cannot be written as JSON")
    if text[0] not in "+-.0123456789" or len(text) > _MAX_DIGITS:
        return text
    # go-yaml (resolve.go) removes underscores only if the scalar begins with a digit or a sign.
    plain = text if text.startswith(".") else text.replace("_", "")
    integer = _whole(plain)
    # go-yaml tries int64, then uint64, then float64.
    if integer is not None and _INT_MIN <= integer <= _UINT_MAX:
        return integer
    if _FLOAT.fullmatch(plain):
        return _finite(plain)
    return text


def _whole(plain: str) -> int | None:
    if _DECIMAL.fullmatch(plain):
        return int(plain)
    # Go's ParseInt with base 0 reads a leading zero as octal.
    based = _BASED.fullmatch(plain)
    if based is None:
        return None
    try:
        number = int(based["digits"], _BASES[based["base"].lower()])
    except ValueError:
        return None  # 08, for example, is no octal number
    return -number if based["sign"] == "-" else number


def _finite(plain: str) -> float:
    number = float(plain)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{plain} is too large for a number")
    return number
