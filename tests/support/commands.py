"""What a command came to, for tests that run the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orderkit.cli.main import run

_COMMAND_S = 240


@dataclass(frozen=True)
class Done:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


Command = Callable[..., Done]


def as_process(platform_file: Path, *, within_s: int = _COMMAND_S) -> Command:
    """Return what runs ``orderkit ARGUMENTS`` as a process, on one platform unless told another."""

    def command(*arguments: str, platform_file: Path = platform_file) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "orderkit", *arguments, "--platform", str(platform_file)],
            capture_output=True,
            text=True,
            check=False,
            timeout=within_s,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return command


def in_process(platform_file: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return the same without a process of its own: quicker, and nothing to import again."""

    def command(*arguments: str, platform_file: Path = platform_file) -> Done:
        capsys.readouterr()
        code = run([*arguments, "--platform", str(platform_file)])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return command
