"""
The embedded forge as a process that can be killed and started again on the same port.

`main` runs in the zygote of ``tests.crash``; `ForgeProcess` is the other end.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from lab.loopback import free_ports
from tests.crash.processes import Process, Zygote

from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge

TOKEN = "d" * 40
_READY = "ready\n"
_DEADLINE_S = 120.0


def main(arguments: list[str]) -> int:
    """Serve a forge until killed. Arguments: its folder, its port."""
    forge = EmbeddedForge(Path(arguments[0]))
    server = HttpServer(forge.app, bind("forge", int(arguments[1])))
    server.start()
    forge.set_base_url(server.url)
    forge.ensure_user("warden", "warden-pw1", admin=True)
    forge.ensure_token("warden", "t", TOKEN, ["all"])
    print(_READY, end="", flush=True)  # noqa: T201  this is how it tells
    while True:
        signal.pause()


@dataclass
class ForgeProcess:
    """A forge in one folder, on one port, dead or alive."""

    zygote: Zygote
    root: Path
    port: int = field(default_factory=lambda: free_ports(1)[0])
    _process: Process | None = None
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it serves."""
        log = self.root.with_name(f"forge-{next(self._numbers)}.log")
        arguments = [str(self.root), str(self.port)]
        entry = "tests.faults.forgeprocess:main"
        process = self._process = self.zygote.start(arguments, log, entry=entry)
        end = time.monotonic() + _DEADLINE_S
        while _READY not in process.text():
            assert process.poll() is None, f"the forge ended:\n{process.text()}"
            assert time.monotonic() < end, f"no forge:\n{process.text()}"
            time.sleep(0.005)

    def kill(self) -> Counter[str]:
        """SIGKILL; return what it left in its repositories."""
        if self._process is not None:
            self._process.kill()
        walked = os.walk(self.root / "repos")  # what a dying git removes meanwhile is no error
        names = [name for _, folders, files in walked for name in (*folders, *files)]
        return Counter({
            "left a lock": any(name.endswith(".lock") for name in names),
            "left half an object": any(name.startswith("tmp_obj") for name in names),
        })  # fmt: skip
