"""
The values of JSON Schema's ``format`` that a form may use, as form and backend read them.

The form uses ajv with ajv-formats, the backend npm's jsonschema. They read most formats
differently, so `FORMATS` has a separate check for each. Formats that only one of them knows, or
that cannot be checked exactly here, are in `REFUSED`: a pattern means the same to both. Both ignore
any other name, and so does this module. A URI with an IPv6 host is refused.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ground.js_regex import SPACE

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
