"""
The lab left standing: Gitea, an API server with its controllers, and Argo CD, for work by hand.

``make lab`` calls ``python -m lab.standing up``, ``make lab-down`` the same with ``down``.
One process of ours holds all of them and ends them with itself; its pid is in the folder's ``pid``.
They listen on the loopback. State begins anew with every start and lies in ``.cache/standing``.

Tests start their own (``tests/conftest.py``).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn
from urllib.parse import urlsplit

import click
from lab import realargocd, realgitea, realkube, realnode
from lab.binaries import HERE

from orderkit import __version__

ROOT = HERE.parent
FOLDER = ROOT / ".cache" / "standing"
_IMAGE = f"orderkit.local/orderkit:v{__version__}"
_USAGE_OF_NODE = f"""\
  node      image {_IMAGE}; nothing is pulled
            Pods reach the forge as http://{realnode.HOST}:{{port}} (allowHttp: true)
"""
_START_S, _STOP_S, _POLL_S = 300.0, 60.0, 0.1
_TAIL_BYTES = 4000


def main(arguments: list[str]) -> int:
    """Run one verb: up, cluster, down, or one of those that hold what up and cluster start."""
    verbs = {"up": up, "cluster": cluster, "down": down, "hold": hold, "hold-cluster": hold_cluster}
    if len(arguments) != 1 or arguments[0] not in verbs:
        click.echo("usage: python -m lab.standing up|cluster|down", err=True)
        return 2
    return verbs[arguments[0]]()


def up(hold: str = "hold") -> int:
    """Bring the lab up, unless it stands, and say how to use it."""
    if _holder() is None:
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        begun = time.monotonic()
        if not _started(hold):
            log = (FOLDER / "lab.log").read_text(errors="replace")
            click.echo(f"error: the lab does not start:\n{log[-_TAIL_BYTES:]}", err=True)
            return 1
        click.echo(f"lab: up after {time.monotonic() - begun:.1f} s")
    click.echo((FOLDER / "usage").read_text(), nl=False)
    return 0


def cluster() -> int:
    """Bring the lab up with a real node, unless a lab stands."""
    if reason := realnode.reason_not_possible():
        click.echo(f"error: {reason}", err=True)
        return 1
    return up("hold-cluster")


def down() -> int:
    """End the lab, wait until it is gone, and remove its state."""
    pid = _holder()
    if pid is None:
        click.echo("lab: nothing stands")
    else:
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_S
        while _holder() is not None:
            if time.monotonic() > deadline:
                click.echo(f"error: process {pid} does not end; see {FOLDER}/lab.log", err=True)
                return 1
            time.sleep(_POLL_S)
        click.echo("lab: down")
    shutil.rmtree(FOLDER, ignore_errors=True)
    return 0


def hold_cluster() -> int:
    """Hold the lab with a node."""
    return hold(with_node=True)


def hold(*, with_node: bool = False) -> int:
    """Start everything, write down how to use it, and stay until told to end."""
    signal.signal(signal.SIGTERM, _end)
    with contextlib.ExitStack() as undo:
        gitea = undo.enter_context(realgitea.serving(FOLDER / "gitea"))
        kube = undo.enter_context(
            realkube.serving(FOLDER / "kube", realnode.CONTROLLERS * with_node)
        )
        argocd = undo.enter_context(realargocd.serving(FOLDER / "argocd", kube))
        argocd.lend(gitea.url, (gitea.user, gitea.token))
        (FOLDER / "token").touch(mode=0o600)
        (FOLDER / "token").write_text(gitea.token)
        written = FOLDER / "usage.part"
        usage = _usage(gitea, kube)
        if with_node:
            port = urlsplit(gitea.url).port or 80
            node = realnode.serving(FOLDER / "node", kube, names=[_IMAGE], ports=[port])
            undo.enter_context(node)
            usage += _USAGE_OF_NODE.format(port=port)
        written.write_text(usage)
        written.rename(FOLDER / "usage")
        while True:
            signal.pause()


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


def _started(hold: str) -> bool:
    """Start the holding process; say whether everything came up."""
    with (FOLDER / "lab.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "lab.standing", hold],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    mark = {"pid": process.pid, "started": _start_time(process.pid)}
    (FOLDER / "pid").write_text(json.dumps(mark))
    deadline = time.monotonic() + _START_S
    while not (FOLDER / "usage").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.terminate()
            process.wait()
            return False
        time.sleep(_POLL_S)
    process.returncode = 0  # it stays; nobody here waits for it
    return True


def _holder() -> int | None:
    """Return the pid of the process that holds the lab, if that very process still runs."""
    try:
        mark = json.loads((FOLDER / "pid").read_text())
    except (FileNotFoundError, ValueError):
        return None
    pid = int(mark["pid"])
    return pid if _start_time(pid) == mark["started"] else None


def _start_time(pid: int) -> str:
    """Return when a process started; nothing if it does not run. A reused pid differs in it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    state, started = fields[0], fields[19]
    return "" if state == "Z" else started


def _usage(gitea: realgitea.Gitea, kube: realkube.Kube) -> str:
    config = FOLDER / "kubeconfig"
    shutil.copyfile(kube.kubeconfig, config)
    config.chmod(0o600)
    return f"""\
  cluster   export KUBECONFIG={config}
            kubectl get applications -n {realargocd.NAMESPACE}
  forge     {gitea.url}   user {gitea.user}, token in {FOLDER / "token"}
            Argo CD may read all of its repositories
  tests     ORDERKIT_TEST_KUBECONFIG=$KUBECONFIG lets tests use this API server
  logs      {FOLDER}/*/**.log
  end it    make lab-down
"""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
