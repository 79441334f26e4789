"""A line of the JSON log, the audit log and the answer name the same request."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from ground import secrets
from orderkit.web.auditing import AuditedApp, AuditLog, JsonLines, log_as_json

logger = logging.getLogger("orderkit.test")


@pytest.fixture
def json_log(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = logging.getLogger("orderkit")
    for name in ("handlers", "propagate", "level"):
        monkeypatch.setattr(ours, name, getattr(ours, name))
    monkeypatch.setattr(secrets, "_forms", secrets._forms)  # noqa: SLF001 - of this process


@pytest.mark.usefixtures("json_log")
def test_a_line_has_the_request_and_what_was_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secrets.register("s3cr3ts3cr3t")

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        def handler() -> None:
            extra = {"operation": "register-a", "repository": "platform/ledger", "commit": "1a2b"}
            logger.info("wrote %s", "with s3cr3ts3cr3t", extra=extra)

        await anyio.to_thread.run_sync(handler)
        await send({"type": "http.response.start", "status": 200, "headers": []})

    sent: list[Any] = []

    async def ask() -> None:
        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": "/x"}
        await AuditedApp(app, AuditLog(tmp_path / "audit"))(scope, None, send)  # type: ignore[arg-type]  # reads nothing

    log_as_json()
    asyncio.run(ask())

    line = json.loads(capsys.readouterr().err)
    audited = json.loads((tmp_path / "audit").read_text())
    assert (
        line["request"] == audited["request"] == dict(sent[0]["headers"])[b"x-request-id"].decode()
    )
    assert line["message"] == "wrote with ***"
    assert (line["operation"], line["repository"], line["commit"]) == (
        "register-a", "platform/ledger", "1a2b",
    )  # fmt: skip


def test_a_line_outside_of_requests_has_what_is_known_only() -> None:
    record = logging.LogRecord("orderkit.x", logging.WARNING, "", 0, "two\nlines", (), None)
    line = JsonLines().format(record)

    assert "\n" not in line
    assert json.loads(line).keys() == {"time", "level", "logger", "message"}


def test_an_audit_log_that_cannot_be_written_keeps_no_answer_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A folder stands where its file should: the service's own log says so."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    assert [message["status"] for message in answered(app, AuditLog(tmp_path))] == [200]
    assert "the audit log cannot be written" in caplog.text


def test_a_request_that_gets_no_answer_is_audited_with_status_0(tmp_path: Path) -> None:
    async def app(_scope: Any, _receive: Any, _send: Any) -> None:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        answered(app, AuditLog(tmp_path / "audit"))

    audited = json.loads((tmp_path / "audit").read_text())
    assert (audited["status"], audited["path"]) == (0, "/x")


def answered(app: Any, log: AuditLog) -> list[Any]:
    """Send a request to an app that is audited; return what it sent."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/x"}
    asyncio.run(AuditedApp(app, log)(scope, None, send))  # type: ignore[arg-type]  # reads nothing
    return sent
