"""
What our HTTP clients share: checks of addresses, judged connections, and a cap on answers.

Where a name leads is looked up once (`look_up`), every address is judged, and a judged one is
connected (`connected`). A second look-up could give other addresses than those that were judged.

Sessions, retries and the meaning of answers are the clients' own.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ground.errors import InvalidInputError, RefusedError, RemoteError
from ground.secrets import redact

if TYPE_CHECKING:
    import requests

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        (
            *("fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe"),
            *("100.100.100.200", "168.63.129.16"),
        ),
    )
)
"""Of AWS, Google, Oracle, Alibaba and Azure, besides the link-local ones."""


def look_up(host: str, port: int) -> dict[str, Address]:
    """
    Return the addresses of a host as text, in their order, each with where it leads.

    Raises:
        OSError: The name is not known.
    """
    # else each address comes once for each type of socket
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return {(text := str(entry[4][0])): _plain(text) for entry in entries}


def connected(addresses: Sequence[str], port: int, timeout_s: float) -> socket.socket:
    """
    Return a connection to the first address that takes one.

    Raises:
        OSError: None does.
    """
    problem: OSError = OSError("the name has no address")
    for address in addresses:
        try:
            return socket.create_connection((address, port), timeout=timeout_s)
        except OSError as error:
            problem = error
    raise problem


def is_near(address: Address) -> bool:
    """Return whether an address is this machine, its link, a group, or a cloud's metadata."""
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_unspecified
        or address.is_multicast
        or address in _METADATA
        or _is_own(address)
    )


def _plain(text: str) -> Address:
    """Return the IPv4 address to which a mapped or translated (NAT64) IPv6 address leads."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        if address in _TRANSLATED:
            return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        return address.ipv4_mapped or address
    return address


def _is_own(address: Address) -> bool:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6  # noqa: PLR2004 - of IP
    with socket.socket(family, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect((str(address), 9))  # sends nothing: the kernel only chooses the route
        return bool(probe.getsockname()[0] == str(address))
    return False


CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 30.0
CHUNK_BYTES = 64 * 1024


def check_url(field: str, url: str, *, allow_http: bool | None = None) -> str:
    """
    Return a base URL without its last slash.

    Args:
        allow_http: What platform.yaml says about plain HTTP; None if it has no key for it.

    Raises:
        InvalidInputError: No http(s) address, or one with user, query or fragment.
        RefusedError: Plain HTTP to another machine without `allow_http`.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidInputError(field, redact(url), "is not a http(s) address")
    if parts.username or parts.password or parts.query or parts.fragment:
        host_url = f"{parts.scheme}://{parts.hostname}"
        raise InvalidInputError(field, host_url, "must have no user, query or fragment")
    if parts.scheme == "http" and not allow_http and not is_loopback(parts.hostname):
        lab = "; in a lab network only: allowHttp: true beside url in platform.yaml"
        raise RefusedError(
            f"{parts.hostname}: credentials over plain HTTP",
            hint=f"use https{'' if allow_http is None else lab}",
        )
    return url.rstrip("/")


def unsendable(secret: str) -> InvalidInputError:
    """Return the error for a secret that no header may have; its value is not shown."""
    return InvalidInputError(
        secret,
        "***",
        "has a line break or another character that no header may have",
        hint="set it anew, in one line",
    )


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def read_capped(response: requests.Response, limit_bytes: int) -> bytes:
    """
    Read a streamed answer.

    Raises:
        RemoteError: It is larger than `limit_bytes`.
    """
    return joined(response.iter_content(CHUNK_BYTES), limit_bytes)


def joined(parts: Iterable[bytes], limit_bytes: int) -> bytes:
    """
    Join the parts of an answer.

    Raises:
        RemoteError: They are larger than `limit_bytes`; the rest is not read.
    """
    chunks, size = [], 0
    for chunk in parts:
        size += len(chunk)
        if size > limit_bytes:
            raise RemoteError(f"the answer is larger than {limit_bytes} bytes")
        chunks.append(chunk)
    return b"".join(chunks)
