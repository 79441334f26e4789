"""
The network of a function's program: the hosts that a person of this machine granted, and no other.

A program has no network of its own. Its init passes each connection to the port of a proxy out to
this process, which connects it to a granted host. So the program reaches names and ports that
somebody typed, and neither this machine's own services nor what a name of its choice leads to: a
granted name is judged again for each connection, because who owns the name can change its address.
The program has to use the proxy (``HTTPS_PROXY``), as Go's and Python's clients do.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Collection
from contextlib import suppress

from ground.errors import InvalidInputError, RefusedError
from orderkit.adapters.addresses import connected, is_near, look_up
from orderkit.adapters.http import is_loopback
from orderkit.adapters.processes.confined_program import pump

HTTPS_PORT = 443
_AT_ONCE, _HEAD_MAX_BYTES, _CONNECT_S, _IDLE_S = 32, 8192, 10.0, 60.0
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_ASKED = re.compile(rb"CONNECT ([^\s:]+):([0-9]{1,5}) HTTP/1\.[01]\r\n")


def granted_host(text: str) -> str:
    """
    Return a host that a program may reach, with its port.

    Raises:
        InvalidInputError: It is no HOST or HOST:PORT.
    """
    host, colon, port = text.partition(":")
    number = int(port) if port.isascii() and port.isdigit() else 0
    if not _HOST.fullmatch(host) or (colon and not 0 < number < 1 << 16):
        raise InvalidInputError(
            "--network", text, "is no host", hint="write HOST or HOST:PORT, one for each option"
        )
    return f"{host.lower()}:{number if colon else HTTPS_PORT}"


def serve(outside: socket.socket, granted: Collection[str]) -> None:
    """Connect what a program's init passes out, until the program ends. Runs in a thread."""
    places = threading.BoundedSemaphore(_AT_ONCE)
    with outside, suppress(OSError):
        while True:
            data, files, _, _ = socket.recv_fds(outside, 1, 1)
            if not data:
                return
            for file in files:
                near = socket.socket(fileno=file)
                if places.acquire(blocking=False):
                    arguments = (near, granted, places)
                    threading.Thread(target=_connect, args=arguments, daemon=True).start()
                else:
                    near.close()


def _connect(
    near: socket.socket, granted: Collection[str], places: threading.BoundedSemaphore
) -> None:
    try:
        with near, suppress(OSError):
            near.settimeout(_IDLE_S)
            wanted = _asked(near)
            if wanted is None:
                near.sendall(b"HTTP/1.1 405 Only CONNECT\r\n\r\n")
            elif wanted not in granted:
                text = f"HTTP/1.1 403 {wanted} is not granted to this function\r\n\r\n"
                near.sendall(text.encode())
            else:
                _carry(near, wanted)
    finally:
        places.release()


def _asked(near: socket.socket) -> str | None:
    """Read what a program asks for; None if it is no CONNECT."""
    head = b""
    while not head.endswith(b"\r\n\r\n") and len(head) < _HEAD_MAX_BYTES:
        data = near.recv(1)  # not a byte more: what follows is for the host
        if not data:
            return None
        head += data
    found = _ASKED.match(head)
    return f"{found[1].decode('latin-1').lower()}:{int(found[2])}" if found else None


def _carry(near: socket.socket, wanted: str) -> None:
    host, _, port = wanted.rpartition(":")
    try:
        far = connected(_judged(host, int(port)), int(port), _CONNECT_S)
    except RefusedError as error:
        near.sendall(f"HTTP/1.1 403 {error}\r\n\r\n".encode())
        return
    except (OSError, UnicodeError):
        near.sendall(b"HTTP/1.1 502 The host does not answer\r\n\r\n")
        return
    with far:
        far.settimeout(_IDLE_S)
        near.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        back = threading.Thread(target=pump, args=(far, near), daemon=True)
        back.start()
        pump(near, far)
        back.join()


def _judged(host: str, port: int) -> list[str]:
    """
    Return the addresses of a granted host.

    Raises:
        RefusedError: Its name leads to this machine or its link, and no address was granted.
        OSError, UnicodeError: The name is not known, or is none.
    """
    addresses = look_up(host, port)
    near = [str(address) for address in addresses.values() if is_near(address)]
    if near and host not in addresses and not is_loopback(host):
        raise RefusedError(
            f"{host} leads to {near[0]}, which is this machine or its link",
            hint=f"if it is meant: orderkit functions add ... --network {near[0]}:{port}",
        )
    return list(addresses)
