"""
The audit log: one JSON object per line for every authenticated request.

Has the caller, the proof, the operation, order, team and status. Never has a body, a query or a
token; registered secrets are masked. Called by ``request_pipeline``; thread-safe.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orderkit.core.errors import shorten
from orderkit.core.secrets import redact


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
        Append one line; the file may be rotated away meanwhile.

        Raises:
            OSError: It cannot be written.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        shortened = {k: shorten(v) if isinstance(v, str) else v for k, v in entry.items()}
        line = redact(json.dumps({"time": now, **shortened}, ensure_ascii=False)) + "\n"
        with self._lock:
            if self._path is None:
                sys.stderr.write(line)
                sys.stderr.flush()
                return
            with self._path.open("a", encoding="utf-8") as stream:
                stream.write(line)
