"""What a command came to, for tests that run the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_COMMAND_S = 120


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


def as_process(platform_file: Path) -> Command:
    """Return what runs ``orderkit ARGUMENTS`` as a process, on one platform unless told another."""

    def command(*arguments: str, platform_file: Path = platform_file) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "orderkit", *arguments, "--platform", str(platform_file)],
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_S,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return command
