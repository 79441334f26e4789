"""
The values of JSON Schema's ``format`` that a form may use, and texts that obey them.

The form asks ajv with ajv-formats, the backend npm's jsonschema; they read most formats
differently. `FORMATS` accepts a text where both do. A format that only one of them knows, or
that is not exact here, is in `REFUSED`: a pattern says the same to both. Any other name is
ignored by both, and so here. Called by ``formschema``.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Mapping

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_CLOCK = r"(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]|23:59:60)"
_ZONE = r"(?:[zZ]|[+-][0-5][0-9]:(?:[0-5][0-9]|60))"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_ENCODED = r"%[0-9A-Fa-f]{2}"
_NAME = rf"(?:[A-Za-z0-9._~!$&'()*+,;=-]|{_ENCODED})"
_PATH = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|{_ENCODED})"


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


def _is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    leap_or_plain = year or 2000  # the calendar has no year 0; like 2000 it is a leap year
    return 1 <= month <= 12 and 1 <= day <= monthrange(leap_or_plain, month)[1]  # noqa: PLR2004


_clock_and_zone = _matches(rf"{_CLOCK}(?:\.[0-9]+)?{_ZONE}")
_host = _matches(rf"{_LABEL}(?:\.{_LABEL})*\.?")


def _is_moment(text: str) -> bool:
    return _is_date(text[:10]) and text[10:11] in {"t", "T", " "} and _clock_and_zone(text[11:])


def _is_host(text: str) -> bool:
    return _host(text) and len(text.removesuffix(".")) <= 253  # noqa: PLR2004


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "date": _is_date,
    "date-time": _is_moment,
    "email": _matches(rf"{_ATOM}(?:\.{_ATOM})*@(?:{_LABEL}\.)+{_LABEL}"),
    "hostname": _is_host,
    "ipv4": _matches(rf"(?:{_OCTET}\.){{3}}{_OCTET}"),
    "time": _matches(_CLOCK),
    "uri": _matches(
        r"[A-Za-z][A-Za-z0-9+.-]*:"
        rf"(?://(?:(?:{_NAME}|:)*@)?{_NAME}*(?::[0-9]*)?(?:/{_PATH}*)*"
        rf"|/(?:{_PATH}+(?:/{_PATH}*)*)?|{_PATH}+(?:/{_PATH}*)*)"
        rf"(?:\?(?:{_PATH}|[/?])*)?(?:#(?:{_PATH}|[/?])*)?"
    ),
    "uuid": _matches(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
}
REFUSED = frozenset(
    {
        "alpha", "alphanumeric", "byte", "color", "data-url", "duration", "host-name", "idn-email",
        "int32", "int64", "ip-address", "ipv6", "iri", "iri-reference", "iso-date-time",
        "iso-time", "json-pointer", "json-pointer-uri-fragment", "pattern", "phone", "regex",
        "regexp", "relative-json-pointer", "style", "uri-reference", "uri-template", "url",
        "utc-millisec",
    }
)  # fmt: skip
"""Known to one of the two, or read differently by them, or not exact here."""
