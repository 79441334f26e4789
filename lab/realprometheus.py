"""
A real Prometheus on the loopback that scrapes one address every second; its data in a folder.

The program is Debian's (``scripts/prometheus.sh``), or one on PATH. It ends with the test.

Used by ``tests/e2e/test_real_prometheus.py``.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

import requests
import yaml
from lab.binaries import CACHE, NotBuiltError, keep_log
from lab.daemons import Daemon
from lab.loopback import free_ports

HOST = "127.0.0.1"
_READY_S = 180.0


def program(name: str = "prometheus") -> Path:
    """
    Return the program, or ``promtool``.

    Raises:
        NotBuiltError: It was never fetched.
    """
    fetched = CACHE.parent / "prometheus" / name
    found = str(fetched) if fetched.is_file() else shutil.which(name)
    if found is None:
        raise NotBuiltError(f"no {name} here; fetch it: scripts/prometheus.sh")
    return Path(found)


@contextlib.contextmanager
def serving(folder: Path, target: str) -> Iterator[str]:
    """Start it, scraping `target` (``host:port``), and hand its address out when it is ready."""
    config = {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s"},
        "scrape_configs": [{"job_name": "agents", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    (port,) = free_ports(1)
    log = folder / "prometheus.log"
    command = [
        str(program()),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={HOST}:{port}",
    ]
    url = f"http://{HOST}:{port}"
    with contextlib.ExitStack() as undo:
        undo.callback(keep_log, log)
        daemon = undo.enter_context(Daemon("prometheus", command, log=log, folder=folder))
        daemon.wait_until(lambda: _ready(url), timeout_s=_READY_S)
        yield url


def _ready(url: str) -> bool:
    with contextlib.suppress(requests.RequestException):
        return requests.get(f"{url}/-/ready", timeout=5).status_code == HTTPStatus.OK
    return False
