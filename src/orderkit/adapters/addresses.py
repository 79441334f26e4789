"""
Where a name leads: it is looked up once, every address is judged, and a judged one is connected.

A second look-up could give other addresses than those that were judged.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from contextlib import suppress

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
