"""Small real HTTP servers whose answers a test decides, and certificates for them."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from orderkit_standins.loopback_certificate import Certificate

Answering = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def server(answer: Answering) -> Iterator[str]:
    """Serve GET, POST and PATCH with `answer` on a free port; it reads the body of a PATCH."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer(self)

        def do_PATCH(self) -> None:
            answer(self)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name
            """Stay silent."""

    with _running(Handler) as url:
        yield url


@contextmanager
def _running(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}"
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def says(status: int, body: bytes, **headers: str) -> Answering:
    """Return an answer that is always the same."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


Reply = tuple[int, object]
"""A status, and what is sent as JSON; bytes are sent as they are."""
NO_ANSWER = 0
"""In place of a status: the connection is closed."""


@dataclass
class Script:
    """A server whose replies are listed, and what it was asked."""

    replies: Mapping[str, Reply | list[Reply]]
    """
    By method and path, maybe with some of the query; the key that names most of it counts.

    Of a list each reply is given once, the last one again and again.
    """
    headers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By method and path."""
    url: str = ""
    asked: list[str] = field(default_factory=list)
    """Methods and paths, in order."""
    sent: dict[str, Any] = field(default_factory=dict)
    """The newest body of each method and path that had one."""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Give the listed reply; 404 to what is not listed."""
        parts = urlsplit(handler.path)
        key = f"{handler.command} {unquote(parts.path)}"
        self.asked.append(key)
        data = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        if data:
            self.sent[key] = json.loads(data) if data[:1] in b"{[" else data
        listed = self._listed(key, dict(parse_qsl(parts.query)))
        found = self.replies.get(listed, (404, {"message": "not listed"}))
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        status, document = found
        if status == NO_ANSWER:
            handler.close_connection = True
            return
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        says(status, body, **self.headers.get(listed, {}))(handler)

    def _listed(self, key: str, query: Mapping[str, str]) -> str:
        best, most = "", -1
        for listed in self.replies:
            path, _, wanted = listed.partition("?")
            named = dict(parse_qsl(wanted))
            if path == key and named.items() <= query.items() and len(named) > most:
                best, most = listed, len(named)
        return best


@contextmanager
def scripted(
    replies: Mapping[str, Reply | list[Reply]],
    headers: Mapping[str, Mapping[str, str]] | None = None,
) -> Iterator[Script]:
    """Serve listed replies on a free port."""
    own = {key: [*reply] if isinstance(reply, list) else reply for key, reply in replies.items()}
    script = Script(own, headers or {})

    class Handler(BaseHTTPRequestHandler):
        def reply(self) -> None:
            script.answer(self)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name
            """Stay silent."""

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.reply)
    with _running(Handler) as script.url:
        yield script


def own_certificate(folder: Path, *, days_ago: int = 1, days: int = 30) -> Certificate:
    """Return a self-signed certificate for 127.0.0.1 that began some days ago."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "forge")])
    begin = dt.datetime.now(dt.UTC) - dt.timedelta(days=days_ago)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + dt.timedelta(days=days))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    server_file, key_file = folder / "own.crt", folder / "own.key"
    server_file.write_bytes(pem)
    key_file.write_bytes(secret)
    return Certificate(server_file, server_file, key_file)
