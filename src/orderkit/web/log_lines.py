"""
The log as one JSON object per line, for programs that collect logs.

Each line has the id of the request that it belongs to, as the audit log has it, and the fields with
which it was logged: a write to the forge has its operation id, repository and commit. Registered
secrets are masked.
"""

from __future__ import annotations

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

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
