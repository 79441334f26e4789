"""A server that is stopped while a client owes it TLS's goodbye."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any

from orderkit.web.client_time_limits import ClientTimeLimits
from orderkit.web.serving import HOST, HttpServer, bind
from orderkit_standins.loopback_certificate import ensure_certificate


def serving() -> set[threading.Thread]:
    """Return the threads of servers; those of a platform that other tests share stay."""
    return {thread for thread in threading.enumerate() if thread.name == "http"}


async def answer_and_close(_scope: Any, _receive: Any, send: Any) -> None:
    headers = [(b"connection", b"close"), (b"content-length", b"1")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"x"})


def test_a_client_that_never_says_goodbye_keeps_no_thread_alive(tmp_path: Path) -> None:
    certificate = ensure_certificate(tmp_path)
    before = serving()
    server = HttpServer(answer_and_close, bind("test", 0), certificate)
    server.start()
    context = ssl.create_default_context(cafile=str(certificate.authority))
    plain = socket.create_connection((HOST, server.port), timeout=60)
    with context.wrap_socket(plain, server_hostname=HOST) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 200")

        server.stop()

        assert serving() <= before


async def answer_slowly(scope: Any, receive: Any, send: Any) -> None:
    """Answer after half a second; a stream begins at once and never ends."""
    headers = [(b"content-length", b"1")]
    if scope["path"] == "/stream":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        return
    await asyncio.sleep(0.5)
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"y"})


def asked(server: HttpServer, path: str) -> socket.socket:
    client = socket.create_connection((HOST, server.port), timeout=60)
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return client


def read_all(client: socket.socket) -> bytes:
    """Read until the server ends the connection, however it does."""
    found = b""
    with client, contextlib.suppress(ConnectionResetError):
        while part := client.recv(4096):
            found += part
    return found


def test_with_time_to_finish_requests_get_their_answers_and_streams_end() -> None:
    server = HttpServer(answer_slowly, bind("test", 0))
    server.start()
    stream = asked(server, "/stream")
    assert stream.recv(4096)
    request = asked(server, "/")
    time.sleep(0.1)

    server.stop(grace_s=30.0)

    assert read_all(request).endswith(b"y")
    read_all(stream)


def test_without_time_to_finish_requests_are_cut() -> None:
    server = HttpServer(answer_slowly, bind("test", 0))
    server.start()
    request = asked(server, "/")
    time.sleep(0.1)

    server.stop()

    assert read_all(request) == b""


def test_a_client_that_reads_nothing_is_cut_off() -> None:
    ended = threading.Event()

    async def answer_much(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(2_000):  # more than the buffers of both sides
            await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
        ended.set()

    server = HttpServer(answer_much, bind("test", 0), time_limits=ClientTimeLimits(reading_s=0.2))
    server.start()
    with socket.create_connection((HOST, server.port), timeout=60) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")

        assert ended.wait(60), "the server keeps a client that reads nothing"
    server.stop()
