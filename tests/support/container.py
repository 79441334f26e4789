"""
One command as a container would run it: its own root, nothing of this machine but what is listed.

Linux namespaces and ``setpriv``, no container engine: the root is an empty read-only file
system that holds the image's folders (read-only) and the volumes at their mount paths; the
command runs as an ordinary user without capabilities and without a way to get any. The network
is this machine's, and memory limits are not held. Needs root, to mount.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.houses import HOUSES

_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/dev")
_SCRIPT = """
set -eu
root=$1; shift
mount -t tmpfs -o mode=755 tmpfs "$root"
while [ "$1" != -- ]; do
  mkdir -p "$root$2"
  mount --rbind "$1" "$root$2"
  if [ "$3" = ro ]; then mount -o remount,bind,ro "$root$2"; fi
  shift 3
done
shift
mount -o remount,ro "$root"
user=$1; shift
exec chroot "$root" setpriv --reuid "$user" --regid "$user" --clear-groups --inh-caps=-all \
  --bounding-set=-all --no-new-privs -- "$@"
"""


@dataclass(frozen=True)
class Mount:
    """A folder of this machine and where the container sees it."""

    source: Path
    path: str
    writable: bool = False


@dataclass(frozen=True)
class Run:
    """What to run: the image's entry point with arguments."""

    command: Sequence[str]
    environment: Mapping[str, str]
    user: int
    mounts: Sequence[Mount]


def reason_not_possible() -> str:
    """Say why this machine cannot; empty: it can."""
    if os.geteuid() != 0:
        return "needs root, to mount"
    missing = [name for name in ("unshare", "setpriv", "chroot") if shutil.which(name) is None]
    if missing:
        return f"needs {', '.join(missing)}"
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False
    )
    return tried.stderr.decode().strip()


def our_image() -> tuple[str, list[Mount]]:
    """Return the entry point, and the folders an image of this checkout would hold."""
    source = Path(__file__).parents[2]
    folders = {Path(sys.base_prefix), Path(sys.prefix), *_sources(source), *_packs(source)}
    entry = Path(sysconfig.get_path("scripts")) / "orderkit"
    return str(entry), [Mount(folder, str(folder)) for folder in sorted(folders)]


def _sources(source: Path) -> list[Path]:
    return [(source / house.source).parent for house in HOUSES]


def _packs(source: Path) -> list[Path]:
    return [source / name for name in ("stations", "templates", "gitops")]


def start(run: Run, root: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start it; its output goes to `log`. Killing the process kills everything in it."""
    mounts = [*(Mount(Path(each), each) for each in _SYSTEM if Path(each).exists()), *run.mounts]
    told = [
        part
        for each in mounts
        for part in (str(each.source), each.path, "rw" if each.writable else "ro")
    ]
    root.mkdir(parents=True)
    alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--"]
    inner = ["env", "-i", *(f"{k}={v}" for k, v in run.environment.items()), *run.command]
    with log.open("wb") as out:
        return subprocess.Popen(
            [
                *alone,
                "bash",
                "-c",
                _SCRIPT,
                "container",
                str(root),
                *told,
                "--",
                str(run.user),
                *inner,
            ],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a container as a node that runs out of memory does."""
    process.send_signal(signal.SIGKILL)
    process.wait()
