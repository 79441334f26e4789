"""Traces by OpenTelemetry's own SDK, received by a collector of our own over real HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from commands import Command
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from platformsettings import settings_with
from servedprocess import served_process

from orderkit.core.platform.service_access import AccessSettings
from orderkit_standins.serve_platform import Running

TRACE_ID, PARENT_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


class Collector(ThreadingHTTPServer):
    """Keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[Span] = []
        self.services: set[str] = set()
        self.raw = b""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def named(self, name: str) -> Span:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def of_trace(self, trace_id: bytes) -> list[Span]:
        return [span for span in self.spans if span.trace_id == trace_id]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.raw += body
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.server.services |= {
                each.value.string_value
                for each in of_resource.resource.attributes
                if each.key == "service.name"
            }
            for scope in of_resource.scope_spans:
                self.server.spans += scope.spans
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        pass


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.url)
        yield server
        server.shutdown()
        thread.join()


def attributes_of(span: Span) -> dict[str, str | int]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def test_an_order_is_one_trace_down_to_forge_and_cluster(
    orderkit: Command, collector: Collector
) -> None:
    done = orderkit("order", "garage", "team_name=ae86", "stage=stage1")

    assert done.code == 0, done.err
    assert collector.services == {"orderkit"}
    root = collector.named("order")
    steps = collector.of_trace(root.trace_id)  # beside it: what the platform's service answered
    forge = [span for span in steps if span.name.startswith("forge ")]
    cluster = [span for span in steps if span.name.startswith("cluster ")]
    assert len(steps) == 1 + len(forge) + len(cluster)
    assert {span.parent_span_id for span in (*forge, *cluster)} == {root.span_id}
    assert {"forge GET", "forge POST"} <= {span.name for span in forge}
    assert cluster
    written = [attributes_of(span) for span in forge if span.name == "forge POST"]
    assert "/repos/ae86/garage-ae86/contents" in {str(a["url.path"]) for a in written}
    assert {a["http.response.status_code"] for a in written} == {201}


SENT = """
import http.client, json, sys
from orderkit.cli.main import run

sent = []
put = http.client.HTTPConnection.putrequest

def putrequest(connection, method, url, *more, **named):
    sent.append((connection.port, method, url.partition("?")[0]))
    put(connection, method, url, *more, **named)

http.client.HTTPConnection.putrequest = putrequest
code = run(sys.argv[2:])
open(sys.argv[1], "w").write(json.dumps(sent))
sys.exit(code)
"""
"""Runs a command and writes which requests its process sent, by the port that they went to."""


def test_a_trace_has_every_request_of_its_command_also_those_of_parallel_steps(
    platform: Running, collector: Collector, team: str, tmp_path: Path
) -> None:
    sent_file = tmp_path / "sent.json"
    file = platform.embedded.state.folder / "platform.yaml"
    ports = {urlsplit(platform.embedded.url(server)).port for server in ("forge", "cluster")}
    for command in (
        ("order", "garage", f"team_name={team}", "stage=stage1"),
        ("status", f"garage-{team}"),
        ("doctor",),
    ):
        arguments = [sys.executable, "-c", SENT, str(sent_file), *command, "--platform", str(file)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=240)

        assert done.returncode == 0, done.stderr
        root = collector.named(command[0])
        steps = [span for span in collector.of_trace(root.trace_id) if span is not root]
        assert {span.parent_span_id for span in steps} == {root.span_id}
        sent = [url for port, _, url in json.loads(sent_file.read_text()) if port in ports]
        assert len(steps) == len(sent), command


def test_a_command_that_fails_is_a_trace_without_its_message(
    orderkit: Command, collector: Collector
) -> None:
    done = orderkit("status", "garage-none")

    assert done.code == 1
    root = collector.named("status")
    assert root.status.code == Status.STATUS_CODE_ERROR
    assert attributes_of(root)["error.type"] == "NotFoundError"
    assert b"in the ledger" not in collector.raw


def test_a_collector_that_is_away_fails_no_command(
    orderkit: Command, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")

    assert orderkit("team", "list").code == 0
    assert collector.spans == []


def test_a_request_to_the_service_belongs_to_the_trace_of_its_caller(
    platform: Running, orderkit: Command, collector: Collector, tmp_path: Path
) -> None:
    access = AccessSettings(tokens_file=tmp_path / "clients.yaml")
    file = platform.embedded.state.folder / "traced.yaml"
    file.write_text(settings_with(platform.settings, service__access=access).to_yaml())
    added = orderkit("access", "add", "ci", "--everywhere", "--json", platform_file=file)
    token = added.json["token"]
    with served_process(file, tmp_path) as served:
        headers = {
            "Authorization": f"Bearer {token}",
            "traceparent": f"00-{TRACE_ID}-{PARENT_ID}-01",
        }
        answer = served.ask("GET", "/v1/orders/garage-none", headers=headers)

    assert answer.status_code == 404
    root = collector.named("getOrder")
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (TRACE_ID, PARENT_ID)
    said = attributes_of(root)
    assert said["orderkit.order"] == "garage-none"
    assert said["orderkit.request"] == answer.headers["X-Request-Id"]
    assert said["http.response.status_code"] == 404
    steps = collector.of_trace(root.trace_id)
    assert {span.parent_span_id for span in steps if span is not root} <= {root.span_id}
    assert len(steps) > 1, "it reads the ledger"
    assert token.encode() not in collector.raw
