"""Who owns the name of a granted host can change its address, and gets no way to this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from orderkit.adapters.functions.local_functions import granted_host, serve
from orderkit.adapters.http import is_near, look_up

ANSWER = b"an own service"


@pytest.fixture
def own_service() -> Iterator[tuple[int, list[str]]]:
    """A server of this machine, and who connected to it."""
    callers: list[str] = []

    def answer() -> None:
        while True:
            connection, peer = server.accept()
            with connection:
                callers.append(str(peer[0]))
                if peer[1] == closer:
                    return
                connection.sendall(ANSWER)

    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as last:
        last.bind(("127.0.0.1", 0))
        closer = last.getsockname()[1]
        thread = threading.Thread(target=answer)
        thread.start()
        yield server.getsockname()[1], callers
        last.connect(server.getsockname())
        thread.join()


def asked(host: str, port: int) -> bytes:
    """Return the answer to a program that is granted a host and connects to it."""
    ours, theirs = socket.socketpair()
    program, passed_out = socket.socketpair()
    granted = granted_host(f"{host}:{port}")
    with closing(theirs), closing(program):
        thread = threading.Thread(target=serve, args=(ours, {granted}))
        thread.start()
        with passed_out:
            socket.send_fds(theirs, [b"x"], [passed_out.fileno()])
        program.settimeout(20)
        program.sendall(f"CONNECT {granted} HTTP/1.1\r\n\r\n".encode())
        answer = b"".join(iter(lambda: program.recv(4096), b""))
    thread.join()
    return answer


def lead_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Have every name lead to these addresses, as the resolver would say it."""

    def resolved(_host: str, port: int, **_: object) -> list[Any]:
        return [
            (socket.AF_INET6 if ":" in one else socket.AF_INET, 1, 6, "", (one, port))
            for one in addresses
        ]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("127.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0", "0.0.0.0"),  # noqa: S104 - it is refused
        ("0xa9fea9fe", "169.254.169.254"),
    ],
)
def test_a_name_that_leads_to_this_machine_or_its_link_is_refused(
    own_service: tuple[int, list[str]], name: str, address: str
) -> None:
    """The resolver turns these names into addresses without asking a server."""
    port, callers = own_service

    answer = asked(name, port).decode()

    assert answer.startswith(f"HTTP/1.1 403 {name} leads to {address}, which is this machine")
    assert callers == []


@pytest.mark.parametrize(
    "addresses",
    [
        ("::1",),
        ("::ffff:127.0.0.1",),
        ("64:ff9b::7f00:1",),
        ("fe80::1%eth0",),
        ("fd00:ec2::254",),
        ("203.0.113.7", "127.0.0.1"),
    ],
    ids=" and ".join,
)
def test_a_name_that_was_rebound_is_refused_whatever_else_it_leads_to(
    own_service: tuple[int, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    addresses: tuple[str, ...],
) -> None:
    port, callers = own_service
    lead_to(monkeypatch, *addresses)

    assert asked("registry.example.org", port).startswith(b"HTTP/1.1 403 ")
    assert callers == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_an_address_that_a_person_typed_is_reached(
    own_service: tuple[int, list[str]], host: str
) -> None:
    port, callers = own_service

    assert asked(host, port) == b"HTTP/1.1 200 Connected\r\n\r\n" + ANSWER
    assert callers == ["127.0.0.1"]


def test_the_address_of_this_machine_in_its_network_is_its_own() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("203.0.113.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no network")
        own = str(probe.getsockname()[0])

    (address,) = look_up(own, 443).values()
    assert is_near(address)
    (other,) = look_up("203.0.113.1", 443).values()
    assert not is_near(other)


def test_a_name_that_no_resolver_takes_is_not_there() -> None:
    assert asked("a..b", 443) == b"HTTP/1.1 502 The host does not answer\r\n\r\n"
