"""
A proxy before an API server that notes which rights each request needs.

It sends every request in the name of one service account (``Impersonate-User``), so that a real
server judges it by that account's roles. Watches are passed on as they come.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import requests
import yaml

_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_TIMEOUT_S = 120


@dataclass(frozen=True, order=True)
class Right:
    """What RBAC asks for one request; `namespace` is empty for all of them or none."""

    namespace: str
    group: str
    resource: str
    verb: str


@dataclass
class Recording:
    """The kubeconfig that leads through the proxy, and what was asked."""

    kubeconfig: Path
    rights: set[Right] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)


def right_of(method: str, target: str) -> Right | None:
    """Return what a request needs; None for discovery, which everybody may read."""
    parts = urlsplit(target)
    steps = parts.path.strip("/").split("/")
    root = {"api": 2, "apis": 3}.get(steps[0], 0)
    if not root or len(steps) <= root:
        return None
    group, rest = (steps[1] if root == 3 else ""), steps[root:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    resource = "/".join([rest[0], *rest[2:]])
    reading = "watch" if parse_qs(parts.query).get("watch") else "list"
    verb = _VERBS.get(method) or ("get" if len(rest) > 1 else reading)
    return Right(namespace, group, resource, verb)


@contextlib.contextmanager
def recording(kubeconfig: Path, folder: Path, account: str) -> Iterator[Recording]:
    """Serve the proxy; `account` is the user in whose name it asks."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    server, session = cluster["server"], requests.Session()
    session.trust_env = False
    session.verify = str(kubeconfig.parent / cluster["certificate-authority"])
    record = Recording(folder / "recorded.kubeconfig")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            right = right_of(self.command, self.path)
            if right:
                record.rights.add(right)
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
            headers |= {"Authorization": f"Bearer {user['token']}", "Impersonate-User": account}
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = session.request(
                self.command,
                server + self.path,
                data=body,
                headers=headers,
                timeout=_TIMEOUT_S,
                stream=True,
            )
            if right and right.verb == "watch" and answer.ok:
                self._pass_on(answer)
                return
            if answer.status_code == 403:
                record.refused.append(answer.text)
            self.send_response(answer.status_code)
            self.send_header("Content-Type", answer.headers.get("Content-Type", ""))
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815

        def _pass_on(self, answer: requests.Response) -> None:
            self.send_response(answer.status_code)
            self.send_header("Content-Type", answer.headers.get("Content-Type", ""))
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            with contextlib.suppress(OSError, requests.RequestException), answer:
                for chunk in answer.iter_content(None):
                    self.wfile.write(chunk)

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy.daemon_threads = True
    config["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{proxy.server_port}"}
    record.kubeconfig.write_text(yaml.safe_dump(config))
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    try:
        yield record
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()
        session.close()
