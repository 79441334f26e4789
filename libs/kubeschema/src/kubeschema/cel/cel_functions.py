"""
Kubernetes' own CEL functions in Python, called by the CEL library.

Each function returns the server's result, raises the server's error (`ValueError`; its text goes
into the rule's message) or raises `Unsure`, in which case the rule is not evaluated. `Unsure`
passes through the library as an error whose text begins with `MARK`. Where the library may ignore
an error (``true || …``), ignoring `Unsure` is correct too.
"""

from __future__ import annotations

import functools
import ipaddress
import itertools
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ground.objects import quantities
from ground.objects.quantities import NoQuantity, Unsure
from ground.regular_expressions import LinearPattern
from kubeschema.cel.cel_declarations import positions
from kubeschema.re2_patterns import PatternError, compile_pattern

MARK = "orderkit: not evaluated: "
INT64 = range(-(2**63), 2**63)

_PLAIN_URL = re.compile(
    r"[a-z][a-z0-9+.-]*://[A-Za-z0-9.-]+(?::\d{1,5})?(?:/[A-Za-z0-9._~/-]*)?"
    r"(?:\?(?:[A-Za-z0-9_.-]+=[A-Za-z0-9_.-]*(?:&[A-Za-z0-9_.-]+=[A-Za-z0-9_.-]*)*)?)?\Z"
)
_NO_URL = re.compile(r"[A-Za-z0-9_. -]*\Z")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Interface | ipaddress.IPv6Interface
Function = Callable[..., Any]


def implementations(messages: Mapping[str, Callable[..., Any]]) -> dict[str, Function]:
    """
    Return the functions by their signature in ``library``.

    Args:
        messages: Constructors of the opaque types, by name. Each type has one field, ``text``.
    """
    functions = {**_lists(), **_regex()}
    functions |= _quantities(messages["Quantity"])
    functions |= _urls(messages["URL"]) | _addresses(messages["IP"])
    functions |= _networks(messages["CIDR"], messages["IP"])
    return {signature: _guarded(function) for signature, function in functions.items()}


def _guarded(function: Function) -> Function:
    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            _refuse_times(arguments)
            return function(*arguments)
        except Unsure as error:
            raise ValueError(f"{MARK}{error}") from error

    return call


def _refuse_times(arguments: tuple[Any, ...]) -> None:
    """Refuse times: the library passes them without nanoseconds and cannot take them back."""
    lists = [argument for argument in arguments if isinstance(argument, list)]
    if any(isinstance(value, datetime | timedelta) for values in lists for value in values):
        raise Unsure("a function of lists is called on times")


# -- lists


def _lists() -> dict[str, Function]:
    return {
        "list(A).isSorted() bool": lambda entries: all(
            not later < earlier for earlier, later in itertools.pairwise(entries)
        ),
        "list(A).sum() dyn": _sum,
        "list(A).min() dyn": lambda entries: _extreme(min, entries),
        "list(A).max() dyn": lambda entries: _extreme(max, entries),
        **{text: _last_position if "last" in text else _position for text in positions()},
    }


def _sum(entries: list[Any]) -> Any:
    if not entries:
        return 0
    total = entries[0]
    for value in entries[1:]:
        total += value
    if isinstance(total, int) and total not in INT64:
        raise ValueError("integer overflow")
    return total


def _extreme(best: Callable[[list[Any]], Any], entries: list[Any]) -> Any:
    if not entries:
        raise ValueError(f"{best.__name__} called on empty list")
    return best(entries)


def _position(entries: list[Any], target: Any) -> int:
    return next((index for index, value in enumerate(entries) if value == target), -1)


def _last_position(entries: list[Any], target: Any) -> int:
    back = _position(entries[::-1], target)
    return -1 if back < 0 else len(entries) - 1 - back


# -- regular expressions


def _regex() -> dict[str, Function]:
    return {
        "string.find(string) string": lambda text, pattern: (
            match.group() if (match := _compiled(pattern).search(text)) else ""
        ),
        "string.findAll(string) list(string)": lambda text, pattern: _find_all(text, pattern, -1),
        "string.findAll(string,int) list(string)": _find_all,
    }


def _find_all(text: str, pattern: str, limit: int) -> list[str]:
    compiled = _compiled(pattern)
    if compiled.search("") or any(not match.group() for match in compiled.finditer(text)):
        raise Unsure(f"{pattern!r} matches nothing at all, too")
    matches = [match.group() for match in compiled.finditer(text)]
    return matches if limit < 0 else matches[:limit]


def _compiled(pattern: str) -> LinearPattern:
    try:
        return compile_pattern(pattern)
    except PatternError as error:
        raise Unsure(str(error)) from error


# -- quantities


def _quantities(construct: Callable[..., Any]) -> dict[str, Function]:
    def quantity(value: Decimal) -> Any:
        return construct(text=f"{quantities.checked(value).normalize():f}")

    def number(value: Any) -> Decimal:
        return Decimal(value.text)

    def sign(value: Decimal) -> int:
        return (value > 0) - (value < 0)

    def compared(first: Any, second: Any) -> int:
        return sign(number(first) - number(second))

    return {
        "isQuantity(string) bool": _is_quantity,
        "quantity(string) Quantity": lambda text: quantity(quantities.parse(text)),
        "sign(Quantity) int": lambda value: sign(number(value)),
        "Quantity.isInteger() bool": lambda value: number(value) % 1 == 0,
        "Quantity.asInteger() int": lambda value: _integer(number(value)),
        "Quantity.asApproximateFloat() double": lambda value: float(number(value)),
        "Quantity.add(Quantity) Quantity": lambda a, b: quantity(number(a) + number(b)),
        "Quantity.add(int) Quantity": lambda a, b: quantity(number(a) + b),
        "Quantity.sub(Quantity) Quantity": lambda a, b: quantity(number(a) - number(b)),
        "Quantity.sub(int) Quantity": lambda a, b: quantity(number(a) - b),
        "Quantity.compareTo(Quantity) int": compared,
        "Quantity.isGreaterThan(Quantity) bool": lambda a, b: compared(a, b) > 0,
        "Quantity.isLessThan(Quantity) bool": lambda a, b: compared(a, b) < 0,
    }


def _is_quantity(text: str) -> bool:
    try:
        quantities.parse(text)
    except NoQuantity:
        return False
    return True


def _integer(value: Decimal) -> int:
    if value % 1:
        raise ValueError("cannot convert value to integer")
    return int(value)


# -- URLs


def _urls(construct: Callable[..., Any]) -> dict[str, Function]:
    def url(text: str) -> Any:
        if not _is_url(text):
            raise ValueError(
                f'URL parse error during conversion from string: parse "{text}": invalid URI for '
                "request"
            )
        return construct(text=text)

    return {
        "isURL(string) bool": _is_url,
        "url(string) URL": url,
        "URL.getScheme() string": lambda value: urlsplit(value.text).scheme,
        "URL.getHost() string": lambda value: urlsplit(value.text).netloc,
        "URL.getHostname() string": lambda value: urlsplit(value.text).netloc.partition(":")[0],
        "URL.getPort() string": lambda value: urlsplit(value.text).netloc.partition(":")[2],
        "URL.getEscapedPath() string": lambda value: urlsplit(value.text).path,
        "URL.getQuery() map(string,list(string))": lambda value: parse_qs(
            urlsplit(value.text).query, keep_blank_values=True
        ),
    }


def _is_url(text: str) -> bool:
    if _PLAIN_URL.match(text):
        return True
    if _NO_URL.match(text):
        return False
    raise Unsure(f"{text!r} is an unusual URL")


# -- addresses


def _addresses(construct: Callable[..., Any]) -> dict[str, Function]:
    def question(ask: Callable[[Address], bool]) -> Function:
        return lambda value: ask(ipaddress.ip_address(value.text))

    return {
        "isIP(string) bool": lambda text: _parsed(_address, text) is not None,
        "ip(string) IP": lambda text: construct(text=str(_address(text))),
        "ip.isCanonical(string) bool": lambda text: str(_address(text)) == text,
        "IP.family() int": lambda value: ipaddress.ip_address(value.text).version,
        "IP.isUnspecified() bool": question(lambda ip: ip.is_unspecified),
        "IP.isLoopback() bool": question(lambda ip: ip.is_loopback),
        "IP.isLinkLocalMulticast() bool": question(_is_link_local_multicast),
        "IP.isLinkLocalUnicast() bool": question(lambda ip: ip.is_link_local),
        "IP.isGlobalUnicast() bool": question(_is_global_unicast),
    }


def _parsed(parse: Callable[[str], Any], text: str) -> Any | None:
    try:
        return parse(text)
    except ValueError as error:
        if isinstance(error, Unsure):
            raise
        return None


def _address(text: str) -> Address:
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        raise ValueError(
            f'IP Address "{text}" parse error during conversion from string: '
            f'ParseAddr("{text}"): unable to parse IP'
        ) from error
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            raise ValueError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
        if address.scope_id:
            raise ValueError(f'IP address "{text}" with zone value is not allowed')
    return address


def _address_argument(text: str) -> Address:
    """
    Read the argument of ``containsIP``.

    The server rejects a non-address as "no such overload".
    """
    try:
        return _address(text)
    except ValueError as error:
        raise ValueError("No matching overloads found : _containsIP") from error


def _is_link_local_multicast(ip: Address) -> bool:
    block = "224.0.0.0/24" if isinstance(ip, ipaddress.IPv4Address) else "ff02::/16"
    return ip in ipaddress.ip_network(block)


def _is_global_unicast(ip: Address) -> bool:
    special = ip.is_unspecified or ip.is_loopback or ip.is_multicast or ip.is_link_local
    return not special and str(ip) != "255.255.255.255"


# -- networks


def _networks(
    construct: Callable[..., Any], construct_ip: Callable[..., Any]
) -> dict[str, Function]:
    def network(value: Any) -> Network:
        return ipaddress.ip_interface(value.text)

    def holds_address(value: Any, address: Address) -> bool:
        return address in network(value).network

    def holds_network(value: Any, other: Network) -> bool:
        outer, inner = network(value).network, other.network
        same_version = outer.version == inner.version
        return same_version and outer.prefixlen <= inner.prefixlen and other.ip in outer

    return {
        "isCIDR(string) bool": lambda text: _parsed(_network, text) is not None,
        "cidr(string) CIDR": lambda text: construct(text=str(_network(text))),
        "CIDR.containsIP(string) bool": lambda a, text: holds_address(a, _address_argument(text)),
        "CIDR.containsIP(IP) bool": lambda a, b: holds_address(a, ipaddress.ip_address(b.text)),
        "CIDR.containsCIDR(string) bool": lambda a, text: holds_network(a, _network(text)),
        "CIDR.containsCIDR(CIDR) bool": lambda a, b: holds_network(a, network(b)),
        "CIDR.ip() IP": lambda value: construct_ip(text=str(network(value).ip)),
        "CIDR.masked() CIDR": lambda value: construct(text=str(network(value).network)),
        "CIDR.prefixLength() int": lambda value: network(value).network.prefixlen,
    }


def _network(text: str) -> Network:
    address, slash, bits = text.partition("/")
    why = "" if slash else "no '/'"
    # Go refuses leading zeros
    if slash and not (bits.isdecimal() and str(int(bits)) == bits):
        why = "bad bits after slash"
    if not why:
        try:
            _address(address)
            return ipaddress.ip_interface(text)
        except ValueError as error:
            why = str(error)
    raise ValueError(
        "network address parse error during conversion from string: network address parse "
        f'error during conversion from string: netip.ParsePrefix("{text}"): {why}'
    )
