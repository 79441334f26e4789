"""
Where ``scripts/lab.sh`` (``make lab``) puts the real systems it builds from this folder.

Each part is a folder here with ``go.mod``, ``go.sum`` and ``build.sh``, which builds one program or
several; they lie in ``.cache/lab/<key>/``, and the key is a digest of those three files and of Go
files of our own beside them. ``ORDERKIT_LAB="gitea=1.27.1"`` chooses another version, for the build
and for the tests: its ``.mod`` and ``.sum`` lie in ``versions``. Beside the parts stand the modules
that start them, ``realgitea`` and ``realkube``. To add a system, add its folder, its module, and a
session fixture in ``tests/conftest.py``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE.parent / ".cache" / "lab"
LOGS = HERE.parent / ".cache" / "logs"
"""Logs of the last run, for whoever looks at a failure afterwards."""
CHOSEN = "ORDERKIT_LAB"
_KEY_LENGTH = 16


class NotBuiltError(Exception):
    """A part of the lab is not there; the message says how to build it."""


def built(part: str) -> Path:
    """
    Return the folder that holds the part's programs and what they serve.

    Raises:
        NotBuiltError: It was never built, or its recipe changed since.
    """
    versions = dict(choice.split("=", 1) for choice in os.environ.get(CHOSEN, "").split())
    module = f"versions/{versions[part]}" if part in versions else "go"
    own = sorted(path.name for path in (HERE / part).glob("*.go"))
    names = ("build.sh", f"{module}.mod", f"{module}.sum", *own)
    recipe = b"".join((HERE / part / name).read_bytes() for name in names)
    folder = CACHE / hashlib.sha256(recipe).hexdigest()[:_KEY_LENGTH]
    if not folder.is_dir():
        raise NotBuiltError(f"no {part} here; build it, once, in minutes: make lab")
    return folder


def keep_log(log: Path, *, as_name: str = "") -> None:
    """Copy a log to where it outlives the run, under its own name or another; none is nothing."""
    if log.exists():
        LOGS.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(log, LOGS / (as_name or log.name))
