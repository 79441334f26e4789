"""``orderkit serve`` as a process of its own, on a free port, and requests to it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from orderkit.cli.connecting import SECRET_HEADER

_START_S = 120.0
_STOP_S = 90.0
_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class ServedProcess:
    """A running service."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def ask(self, method: str, path: str, secret: str = "", **options: Any) -> requests.Response:
        """Send a request; with the portal's secret if one is given."""
        headers = {SECRET_HEADER: secret} if secret else {}
        with requests.Session() as session:
            session.trust_env = False
            return session.request(
                method,
                f"{self.url}{path}",
                headers={**headers, **options.pop("headers", {})},
                timeout=_TIMEOUT_S,
                **options,
            )

    def wait_until_ready(self) -> float:
        """Wait until /readyz says so; return how many seconds that took."""
        began_s = time.monotonic()
        while (answer := self.ask("GET", "/readyz")).status_code != 200:
            assert time.monotonic() - began_s < _START_S, answer.text
            time.sleep(0.05)
        return time.monotonic() - began_s


@contextlib.contextmanager
def served_process(
    platform_file: Path, folder: Path, *options: str, **environment: str
) -> Iterator[ServedProcess]:
    """Start it, with variables more, and yield it once it listens; end it with SIGTERM."""
    log = folder / "serve.log"
    command = [sys.executable, "-m", "orderkit", "serve", "--platform", str(platform_file)]
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--port=0", *options],
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
        )
    try:
        yield ServedProcess(_address(process, log), process, log)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        finally:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline_s = time.monotonic() + _START_S
    while time.monotonic() < deadline_s:
        found = re.search(r"runs: (\S+)", log.read_text())
        if found:
            return found[1]
        assert process.poll() is None, log.read_text()
        time.sleep(0.02)
    raise AssertionError(f"it does not listen: {log.read_text()}")
