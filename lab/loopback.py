"""Where servers that are told their port listen: the loopback, on ports the system gives nobody."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

HOST = "127.0.0.1"
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_BELOW = 12_000
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """
    Return ports that are free now, all different, never the same again.

    They are taken later, and again after a stop or a kill. So they lie below the range from which
    the system gives ports to outgoing connections and to whoever asks for any port: only another
    choice by chance could be the same.
    """
    low = int(_RANGE.read_text().split()[0])
    found: list[int] = []
    while len(found) < count:
        port = random.SystemRandom().randrange(low - _BELOW, low)
        if port not in _given and _is_free(port):
            _given.add(port)
            found.append(port)
    return found


def taken(log: str) -> bool:
    """Say whether a process ended because somebody took its port in between."""
    return "address already in use" in log.lower()


def _is_free(port: int) -> bool:
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.bind((HOST, port))
        return True
    return False
