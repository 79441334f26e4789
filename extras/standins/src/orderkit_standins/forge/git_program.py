"""
Run the real ``git`` without any configuration of the user or the machine.

Its processes inherit the lock on the forge's folder, so that no second forge opens it while one of
them writes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ground.errors import OrderkitError


@dataclass(frozen=True, slots=True)
class GitProgram:
    """The git program and the descriptor of the folder's lock."""

    path: str
    lock_fd: int

    def run(
        self, *arguments: str, config: Mapping[str, str], environment: Mapping[str, str], **how: Any
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git to its end; `how` goes to ``subprocess.run``."""
        result: subprocess.CompletedProcess[bytes] = subprocess.run(  # noqa: S603  fixed program, options and paths of our own
            [self.path, *arguments],
            env={**_environment(config), **environment},
            check=False,
            pass_fds=(self.lock_fd,),
            **how,
        )
        return result

    def start(
        self, *arguments: str, config: Mapping[str, str], environment: Mapping[str, str], stdin: int
    ) -> subprocess.Popen[bytes]:
        """Start git with its output in a pipe."""
        return subprocess.Popen(  # noqa: S603  fixed program, options and paths of our own
            [self.path, *arguments],
            env={**_environment(config), **environment},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(self.lock_fd,),
        )


def find_git() -> str:
    """
    Return the path of the git program.

    Raises:
        OrderkitError: git is not installed.
    """
    path = shutil.which("git")
    if path is None:
        raise OrderkitError("there is no git program", hint="install git (apt install git)")
    return path


def _environment(config: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with this git configuration and no other."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": str(len(config)),
    }
    for number, (key, value) in enumerate(config.items()):
        environment[f"GIT_CONFIG_KEY_{number}"] = key
        environment[f"GIT_CONFIG_VALUE_{number}"] = value
    return environment
