"""A laboratory for killing: platforms on ports that stay the same, commands, copies of states."""

from __future__ import annotations

import itertools
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.loopback import free_ports
from tests.crash import pushing
from tests.crash.durable import Faults, Side
from tests.crash.interposed import Interposer, Watch
from tests.crash.processes import KILLED, Process, Zygote
from tests.crash.pushing import Push

from orderkit.adapters.folders.pack_folder import reference_pack

PARTS = ("forge", "cluster", "portal", "service")
COMMAND_DEADLINE_S = 120.0


class Launcher:
    """Starts commands that go through a watch, on a platform whose parts listen on these ports."""

    def __init__(self, folder: Path, ports: Mapping[str, int]) -> None:
        self.folder, self.ports = folder, ports
        self.zygote = Zygote()
        self.interposer = Interposer(ports)
        self._started: list[Process] = []
        self._numbers = itertools.count(1)

    def path(self, name: str) -> Path:
        """Return a path that nobody used."""
        return self.folder / f"{name}-{next(self._numbers)}"

    def command(self, state: Path, *arguments: str) -> Process:
        """Start a command whose every request passes the interposer."""
        full = [*arguments, "--platform", str(state / "platform.yaml")]
        redirect = self.interposer.redirect
        return self._keep(self.zygote.start(full, self.path(arguments[0]), redirect=redirect))

    def must_do(self, state: Path, *arguments: str) -> None:
        """Run a command that must end with exit code 0."""
        process = self.command(state, *arguments)
        code = process.wait(COMMAND_DEADLINE_S)
        assert code == 0, f"{arguments} ended with {code}:\n{process.text()}"

    def killed_at(self, state: Path, arguments: Sequence[str], at: int, side: Side) -> Watch:
        """Run a command and kill it at its n-th write; 0: let it end."""
        started = threading.Event()
        found: list[Process] = []

        def kill() -> None:
            started.wait(60)
            found[0].kill()

        with self.interposer.watching(Watch(at, side, kill)) as watch:
            found.append(self.command(state, *arguments))
            started.set()
            code = found[0].wait(COMMAND_DEADLINE_S)
        expected = KILLED if watch.killed else 0
        assert code == expected, f"{arguments} ended with {code}:\n{found[0].text()}"
        return watch

    def killed_after(self, state: Path, arguments: Sequence[str], delay_s: float) -> Watch:
        """Run a command and kill it after a while, if it still runs."""
        with self.interposer.watching(Watch()) as watch:
            process = self.command(state, *arguments)
            time.sleep(delay_s)
            watch.killed = process.poll() is None
            process.kill()
        assert process.poll() in {0, KILLED}, f"{arguments}:\n{process.text()}"
        return watch

    def _keep(self, process: Process) -> Process:
        self._started.append(process)
        return process

    def kill_all(self) -> None:
        for process in self._started:
            process.kill()
        self._started.clear()

    def close(self) -> None:
        self.kill_all()
        self.zygote.close()
        self.interposer.close()


class Lab(Launcher):
    """Starts platforms too, on ports that stay the same."""

    def __init__(self, folder: Path, *, forge: str = "gitea") -> None:
        super().__init__(folder, dict(zip(PARTS, free_ports(len(PARTS)), strict=True)))
        self.forge = forge
        self._pack = _frozen_pack(folder / "pack")
        self._pushes: list[Push] = []

    def up(self, state: Path, *, faults: Faults | None = None) -> Process:
        """Start ``orderkit up`` on a state folder."""
        arguments = ["up", "--state", str(state), "--pack", str(self._pack), "--team", "ae86"]
        arguments += ["--forge", self.forge]
        for part, port in self.ports.items():
            arguments += [f"--{part}-port", str(port)]
        return self._keep(self.zygote.start(arguments, self.path("up.log"), faults=faults))

    def is_up(self, up: Process, state: Path) -> bool:
        """Wait until a platform serves and the interposer can stand before it."""
        if not up.is_up():
            return False
        self.interposer.present(state / "tls")
        return True

    def must_be_up(self, state: Path) -> Process:
        up = self.up(state)
        assert self.is_up(up, state), f"orderkit up ended with {up.poll()}:\n{up.text()}"
        return up

    def copy(self, state: Path) -> Path:
        """Return a copy of a stopped platform's folder, to run on the same ports."""
        target = self.path("state")
        shutil.copytree(state, target, symlinks=True)
        return target

    def forget(self, state: Path) -> None:
        """Remove a folder that was found good, and the clones beside it."""
        for path in (state, *state.parent.glob(f"{state.name}-*")):
            shutil.rmtree(path)

    def push(self, state: Path, team: str, stage: str) -> Push:
        """Push a change of a team's order; the second time, what is committed already."""
        clone = state.with_name(f"{state.name}-{team}")
        if not clone.exists():
            pushing.commit(state, team, clone, stage)
        found = Push(state, team, clone)
        self._pushes.append(found)
        return found

    def kill_all(self) -> None:
        super().kill_all()
        for push in self._pushes:
            push.process.kill()
            push.process.wait(60)
        self._pushes.clear()


def _frozen_pack(target: Path) -> Path:
    """
    Copy the reference pack: an edit during the tests would be a new commit of it.

    Its stage kit changes directly, so that both ways of a change can be killed.
    """
    source = reference_pack()
    target.mkdir()
    shutil.copy(source / "pack.yaml", target)
    for part in ("templates", "stations", "gitops"):
        shutil.copytree(source / part, target / part)
    kit = target / "templates" / "garage" / "kit.yaml"
    assert "how: review" in kit.read_text()
    kit.write_text(kit.read_text().replace("how: review", "how: direct"))
    return target
