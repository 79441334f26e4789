"""KubeCluster against API servers that are slow, broken, gone or not what they say."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml

from ground.errors import AccessError, InvalidInputError, RemoteError, UnreachableError
from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, ObjectKey
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.ports.cluster import ExpiredError
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.cluster.http import cluster_app
from orderkit_standins.loopback_certificate import ensure_certificate

SECRET = "tok-1234567890"
SILENT_S = 60.0
"""How long a server is silent at most: longer than a busy machine makes anybody wait."""
DISCOVERY = {
    "kind": "APIResourceList",
    "resources": [
        {"name": "configmaps", "kind": "ConfigMap", "namespaced": True},
        {"name": "namespaces", "kind": "Namespace", "namespaced": False},
    ],
}
CONFIG = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "default"},
}

Answer = Callable[[BaseHTTPRequestHandler, dict[str, str]], None]


@dataclass
class Stub:
    """An HTTP server that answers what a test scripts, and remembers what it was asked."""

    answer: Answer
    asked: list[tuple[str, str]] = field(default_factory=list)

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        length = int(handler.headers.get("Content-Length") or 0)
        handler.rfile.read(length)
        if parts.path == "/api/v1":
            send(handler, DISCOVERY)
            return
        self.asked.append((handler.command, handler.path))
        self.answer(handler, dict(parse_qsl(parts.query)))


def send(handler: BaseHTTPRequestHandler, body: Any, status: int = 200) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def hang_up(handler: BaseHTTPRequestHandler, _query: dict[str, str]) -> None:
    handler.close_connection = True


def in_turn(answers: Sequence[Answer]) -> Answer:
    """Return an answer that is each of `answers` once."""
    left = iter(answers)

    def answer(handler: BaseHTTPRequestHandler, query: dict[str, str]) -> None:
        next(left)(handler, query)

    return answer


def silent_until(release: threading.Event) -> Answer:
    def answer(_handler: BaseHTTPRequestHandler, _query: dict[str, str]) -> None:
        release.wait(SILENT_S)

    return answer


def kubeconfig(folder: Path, url: str, **cluster: str) -> Path:
    path = folder / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "x", "cluster": {"server": url, **cluster}}],
        "users": [{"name": "x", "user": {"token": SECRET}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "current-context": "x",
    }
    path.write_text(yaml.safe_dump(content))
    return path


Serve = Callable[..., tuple[KubeCluster, Stub]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start a stub and a client of it; both end with the test."""
    running: list[tuple[ThreadingHTTPServer, KubeCluster]] = []

    def start(answer: Answer, read_timeout_s: float = SILENT_S) -> tuple[KubeCluster, Stub]:
        stub = Stub(answer)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do(self) -> None:
                stub.handle(self)

            def log_message(self, *_: object) -> None:
                """Keep the test output quiet."""

        for method in ("GET", "POST"):
            setattr(Handler, f"do_{method}", Handler.do)
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        client = KubeCluster.from_kubeconfig(
            kubeconfig(tmp_path, url), read_timeout_s=read_timeout_s
        )
        running.append((server, client))
        return client, stub

    yield start
    for server, client in running:
        client.close()
        server.shutdown()
        server.server_close()


def test_a_port_without_listener_is_unreachable(tmp_path: Path) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        client = KubeCluster.from_kubeconfig(kubeconfig(tmp_path, url))
        with pytest.raises(UnreachableError, match="connection refused") as caught:
            client.serves(NAMESPACE)
    assert url in str(caught.value)
    assert caught.value.retryable
    assert caught.value.hint


def test_a_silent_server_is_given_up_after_one_request(serve: Serve) -> None:
    release = threading.Event()
    client, stub = serve(silent_until(release), read_timeout_s=0.5)
    started = time.monotonic()

    with pytest.raises(UnreachableError, match="time-out"):
        client.get(ObjectKey(NAMESPACE, "a"))
    assert time.monotonic() - started < SILENT_S
    assert len(stub.asked) <= 1
    release.set()


def test_a_read_whose_connection_breaks_is_sent_once_more(serve: Serve) -> None:
    answers = [hang_up, lambda handler, _query: send(handler, CONFIG)]
    client, stub = serve(in_turn(answers))

    assert client.get(ObjectKey(CONFIG_MAP, "a", "default")) == CONFIG
    assert len(stub.asked) == 2


def test_a_write_whose_connection_breaks_is_not_repeated(serve: Serve) -> None:
    client, stub = serve(hang_up)

    with pytest.raises(UnreachableError):
        client.create(CONFIG, owner="me")
    assert len(stub.asked) == 1


def test_an_answer_that_is_no_json_is_told(serve: Serve) -> None:
    client, _ = serve(lambda handler, _query: send(handler, b"<html>hello"))

    with pytest.raises(RemoteError, match="answered no JSON"):
        client.get(ObjectKey(NAMESPACE, "a"))


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_in_trouble_is_worth_a_retry(serve: Serve, status: int) -> None:
    client, stub = serve(lambda handler, _query: send(handler, b"no leader", status))

    with pytest.raises(RemoteError, match="no leader") as caught:
        client.get(ObjectKey(NAMESPACE, "a"))
    assert caught.value.retryable
    assert len(stub.asked) == 1


def test_redirects_are_not_followed(serve: Serve) -> None:
    def answer(handler: BaseHTTPRequestHandler, _query: dict[str, str]) -> None:
        handler.send_response(302)
        handler.send_header("Location", "/elsewhere")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    client, stub = serve(answer)
    with pytest.raises(RemoteError, match="302"):
        client.get(ObjectKey(NAMESPACE, "a"))
    assert len(stub.asked) == 1


def page(names: list[str], token: str = "") -> dict[str, Any]:
    items = [{"metadata": {"name": name}} for name in names]
    return {"metadata": {"resourceVersion": "7", "continue": token}, "items": items}


def test_a_list_that_expires_between_pages_is_read_at_once(serve: Serve) -> None:
    def answer(handler: BaseHTTPRequestHandler, query: dict[str, str]) -> None:
        if "continue" in query:
            send(handler, {"kind": "Status", "code": 410, "message": "too old"}, 410)
        elif query["limit"] == "0":
            send(handler, page(["a", "b", "c"]))
        else:
            send(handler, page(["a"], "more"))

    client, _ = serve(answer)
    found = client.list(NAMESPACE)
    assert [item["metadata"]["name"] for item in found.items] == ["a", "b", "c"]
    assert found.resource_version == "7"


def stream(
    *chunks: bytes, end: bool = True
) -> Callable[[BaseHTTPRequestHandler, dict[str, str]], None]:
    """Return an answer that sends these chunks and ends, or leaves the rest open."""

    def answer(handler: BaseHTTPRequestHandler, _query: dict[str, str]) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for chunk in (*chunks, b"") if end else chunks:
            handler.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            handler.wfile.flush()

    return answer


def event(name: str, version: int, type_: str = "ADDED") -> bytes:
    manifest = {"metadata": {"name": name, "resourceVersion": str(version)}}
    return json.dumps({"type": type_, "object": manifest}).encode() + b"\n"


def test_a_watch_resumes_where_the_server_hung_up(serve: Serve) -> None:
    answers = [stream(event("a", 5)), stream(), stream(event("b", 6), event("c", 9))]
    client, stub = serve(in_turn(answers))

    found = []
    for seen in client.watch(NAMESPACE, since="4", timeout_s=SILENT_S):
        found.append(seen.object["metadata"]["name"])
        if len(found) == 3:
            break
    assert found == ["a", "b", "c"]
    versions = [dict(parse_qsl(urlsplit(path).query))["resourceVersion"] for _, path in stub.asked]
    assert versions == ["4", "5", "5"]


def test_watched_lines_may_come_in_any_pieces(serve: Serve) -> None:
    whole = event("a", 5) + event("b", 6)
    client, _ = serve(stream(whole[:10], whole[10:-3], whole[-3:]))

    seen = client.watch(NAMESPACE, since="4", timeout_s=SILENT_S)
    assert [next(seen).object["metadata"]["name"] for _ in range(2)] == ["a", "b"]
    assert (
        next(client.watch(NAMESPACE, since="4", timeout_s=SILENT_S)).object["kind"] == "Namespace"
    )


def test_a_watch_that_expires_while_it_runs_says_so(serve: Serve) -> None:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    error = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
    client, _ = serve(stream(event("a", 5), error))

    seen = client.watch(NAMESPACE, since="4", timeout_s=SILENT_S)
    assert next(seen).type == "ADDED"
    with pytest.raises(ExpiredError, match="too old"):
        next(seen)


def test_a_watch_of_garbage_is_unreachable(serve: Serve) -> None:
    client, _ = serve(stream(b"{nonsense}\n"))

    with pytest.raises(UnreachableError):
        next(client.watch(NAMESPACE, since="4", timeout_s=SILENT_S))


def test_a_silent_watch_ends_in_time(serve: Serve) -> None:
    release = threading.Event()

    def answer(handler: BaseHTTPRequestHandler, query: dict[str, str]) -> None:
        stream(event("a", 5), end=False)(handler, query)
        release.wait(SILENT_S)

    client, _ = serve(answer)
    started = time.monotonic()
    for seen in client.watch(NAMESPACE, since="4", timeout_s=0.3):  # on a busy machine: nothing
        assert seen.object["metadata"]["name"] == "a"
    assert time.monotonic() - started < SILENT_S
    release.set()


def test_a_watch_that_the_server_does_not_end_is_unreachable(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orderkit.adapters.kube.cluster.END_LATE_S", 0.2)
    release = threading.Event()

    def answer(handler: BaseHTTPRequestHandler, query: dict[str, str]) -> None:
        stream(event("a", 5), end=False)(handler, query)
        release.wait(SILENT_S)

    client, _ = serve(answer)
    seen = client.watch(NAMESPACE, since="4", timeout_s=1)
    assert next(seen).object["metadata"]["name"] == "a"
    with pytest.raises(UnreachableError, match="time-out"):
        next(seen)
    release.set()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="missing file"),
        pytest.param("a: [", id="broken YAML"),
        pytest.param("hello", id="a text"),
        pytest.param("apiVersion: v1\nkind: Config\n", id="no clusters"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_named(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)

    with pytest.raises(InvalidInputError, match="cannot be used") as caught:
        KubeCluster.from_kubeconfig(path)
    assert str(path) in str(caught.value)


def test_an_unknown_context_is_named(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path, "http://127.0.0.1:1")

    with pytest.raises(InvalidInputError, match="nowhere"):
        KubeCluster.from_kubeconfig(path, "nowhere")


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(tmp_path / "cluster.sqlite")
    yield cluster
    cluster.close()


def test_a_wrong_token_is_refused_and_not_repeated(
    tmp_path: Path, embedded: EmbeddedCluster
) -> None:
    server = HttpServer(cluster_app(embedded, token="another"), bind("cluster", 0))
    server.start()
    with (
        KubeCluster.from_kubeconfig(kubeconfig(tmp_path, server.url)) as client,
        pytest.raises(AccessError, match="Unauthorized") as caught,
    ):
        client.get(ObjectKey(NAMESPACE, "default"))
    server.stop()
    assert SECRET not in str(caught.value) + caught.value.hint


def test_a_foreign_certificate_is_refused(tmp_path: Path, embedded: EmbeddedCluster) -> None:
    server = HttpServer(
        cluster_app(embedded, token=SECRET),
        bind("cluster", 0),
        ensure_certificate(tmp_path),
    )
    server.start()
    with (
        KubeCluster.from_kubeconfig(kubeconfig(tmp_path, server.url)) as client,
        pytest.raises(RemoteError, match="CERTIFICATE_VERIFY_FAILED") as caught,
    ):
        client.get(ObjectKey(NAMESPACE, "default"))
    server.stop()
    assert "certificate-authority" in caught.value.hint


def test_importing_the_adapter_does_not_import_the_client() -> None:
    code = (
        "import sys, orderkit.adapters.kube.cluster;"
        "print([m for m in sys.modules if m.split('.')[0] in {'kubernetes', 'urllib3', 'yaml'}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_token_that_is_replaced_in_its_file_is_used_from_then_on(
    tmp_path: Path, embedded: EmbeddedCluster
) -> None:
    """As kubelet replaces the token of a Pod, within the hour."""
    certificate = ensure_certificate(tmp_path)
    server = HttpServer(cluster_app(embedded, token=SECRET), bind("cluster", 0), certificate)
    server.start()
    path = kubeconfig(tmp_path, server.url, **{"certificate-authority": str(certificate.authority)})
    config = yaml.safe_load(path.read_text())
    config["users"][0]["user"] = {"tokenFile": "token"}
    path.write_text(yaml.safe_dump(config))
    (tmp_path / "token").write_text("an old one")
    with KubeCluster.from_kubeconfig(path) as client:
        with pytest.raises(AccessError):
            client.list(NAMESPACE)
        (tmp_path / "token").write_text(f"{SECRET}\n")

        assert client.list(NAMESPACE).items
        (tmp_path / "token").unlink()
        assert client.list(NAMESPACE).items
    server.stop()
