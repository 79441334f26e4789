"""
The audit log of requests, and the service's log for programs, both as one JSON object per line.

`AuditLog` has a line for every request, also refused and failed ones: the caller, the proof, the
operation, order, team and status. It never has a body, a query or a token; registered secrets are
masked. Probes that succeed are left out. Thread-safe.

`log_as_json` is for programs that collect logs. Each line has the id of the request that it belongs
to, as the audit log has it, and the fields with which it was logged: a write to the forge has its
operation id, repository and commit. Registered secrets are masked.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ground.errors import shorten
from ground.secrets import redact

REQUEST: ContextVar[str] = ContextVar("request", default="")
"""The id of the request that is answered; handlers' threads inherit it."""
_FIELDS = ("operation", "repository", "commit", "requester")


class JsonLines(logging.Formatter):
    """Format records as JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        written = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": written,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request": REQUEST.get(),
            **{name: getattr(record, name, "") for name in _FIELDS},
            "trace": self.formatException(record.exc_info) if record.exc_info else "",
        }
        return redact(json.dumps({key: text for key, text in line.items() if text}, default=str))


def log_as_json() -> None:
    """Let Orderkit's own log go to standard error as JSON, from information upwards."""
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("orderkit")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)


AUDIT_KEY = "orderkit.audit"
"""Where a request's scope has the fields of its audit line, for handlers to add to."""
ASSET = "asset"
"""A file of the console that everybody may read."""
PROBES = frozenset({"alive", "ready", ASSET})
_OK = 200

logger = logging.getLogger(__name__)


class AuditLog:
    """Lines go to a file that only its owner reads, or to standard error."""

    def __init__(self, path: Path | None = None) -> None:
        """
        Open the file for appending.

        Raises:
            OSError: It cannot be written.
        """
        self._lock = threading.Lock()
        self._path = path
        if path is not None:
            path.touch(mode=0o600)

    def write(self, entry: Mapping[str, Any]) -> None:
        """
        Append one line.

        Raises:
            OSError: It cannot be written.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        shortened = {k: shorten(v) if isinstance(v, str) else v for k, v in entry.items()}
        line = redact(json.dumps({"time": now, **shortened})) + "\n"  # ASCII: always writable
        with self._lock:
            if self._path is None:
                sys.stderr.write(line)
                sys.stderr.flush()
                return
            # opened for each line: the file may be rotated away meanwhile
            with self._path.open("a", encoding="utf-8") as stream:
                stream.write(line)


class AuditedApp:
    """
    Write a line for every request of an app, and give the request an id.

    A request that gets no answer has status 0.
    """

    def __init__(self, app: ASGIApp, log: AuditLog | None) -> None:
        self._app, self._log = app, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began_s, is_written = time.monotonic(), False
        entry: dict[str, Any] = {"request": uuid.uuid4().hex}
        REQUEST.set(entry["request"])

        def write(status: int) -> None:
            nonlocal is_written
            is_written = True
            target = {} if "operation" in entry else {k: scope[k] for k in ("method", "path")}
            duration_ms = round((time.monotonic() - began_s) * 1000)
            address = (scope.get("client") or ("",))[0]
            self._write(
                {**entry, **target, "status": status, "ms": duration_ms, "address": address}
            )

        async def observed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Request-Id"] = entry["request"]
                # before the answer is sent: who has an answer can rely on it
                write(message["status"])
            await send(message)

        try:
            await self._app({**scope, AUDIT_KEY: entry}, receive, observed)
        finally:
            if not is_written:
                write(0)

    def _write(self, entry: Mapping[str, Any]) -> None:
        is_probe = entry["status"] == _OK and entry.get("operation") in PROBES
        if self._log is None or is_probe:
            return
        try:
            self._log.write(entry)
        except OSError:
            logger.exception("the audit log cannot be written")
