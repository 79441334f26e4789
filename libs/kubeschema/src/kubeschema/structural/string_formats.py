"""
String formats that Kubernetes knows, as predicates.

The rules are those of the API server, which are looser or stricter than the RFCs in places (a
date-time needs a zone, a UUID needs no dashes). ``bsonobjectid``, ``isbn*``, ``creditcard``,
``ssn``, ``hexcolor`` and ``rgbcolor`` are judged by their shape alone. Unknown formats are ignored,
as on the server.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date
from email.utils import parseaddr
from urllib.parse import urlsplit

HOST_MAX, LABEL_MAX = 255, 63
_DURATION_UNITS = "ns|us|µs|μs|ms|s|m|h"
_LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_HOST = re.compile(
    r"(?:[^\W_](?:-?[^\W_]{0,62})?|(?:[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?\.)+[^\W\d_]{2,63})\Z"
)
_TIME = re.compile(r"(\d{2}):(\d{2}):(\d{2})(.[0-9]+)?(z|[+-]\d{2}:\d{2})\Z", re.ASCII)


def _matches(pattern: str, flags: int = 0) -> Callable[[str], bool]:
    compiled = re.compile(rf"(?:{pattern})\Z", re.ASCII | flags)
    return lambda text: compiled.match(text) is not None


def _is_date(text: str) -> bool:
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


FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _matches("[0-9a-fA-F]{24}"),
    "byte": _is_base64,
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
