"""
Count the modules of Orderkit that an order and a plan pass through, and draw the walk.

It starts an embedded platform, adds a team, orders a garage and plans a change of it, each command
in a process of its own under `sys.setprofile`. A module counts when one of its functions is
entered; what runs while a module is imported (class bodies, tables) does not count. The platform
runs in one process, with its service. There only what runs below a function of ``orderkit.web``
counts: that is the service; forge, cluster and delivery are no part of the walk.

    .venv/bin/python scripts/story_modules.py            # print both numbers and the modules
    .venv/bin/python scripts/story_modules.py --write    # and write them into docs/modules.md
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.houses import HOUSES  # noqa: E402 - the path comes first

SOURCES = tuple(str(ROOT / house.source) + os.sep for house in HOUSES)
PAGE = ROOT / "docs" / "modules.md"
BEGIN, END = "<!-- written by scripts/story_modules.py -->\n", "<!-- end -->\n"
SERVERS = ("orderkit.web.serving", "orderkit.web.time_limited_http")
"""What serves every app of the embedded platform, not the service alone."""
CODE_OF_A_FUNCTION = 0x01  # CO_OPTIMIZED: bodies of modules and classes do not have it
START_S = 180
PLATFORM = "platform"
"""Instead of a command: the embedded platform."""
STORIES = {
    "order": ("order", "garage", "team_name=walk", "stage=stage2"),
    "plan": ("plan", "garage-walk", "stage=stage3"),
}
Walk = dict[str, str]
"""Modules in the order of their first entry, each with the module that called it first."""


class Recorder:
    """Records which modules' functions were entered, and from where first."""

    def __init__(self, only_below: str) -> None:
        self.walk: Walk = {}
        self._only_below = only_below
        self._threads = threading.local()

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            self._enter(frame)
        elif event == "return":
            stack = self._stack()
            if stack:
                stack.pop()

    def _stack(self) -> list[tuple[bool, str]]:
        """Return, per frame of this thread, whether its calls count, and the nearest module."""
        if not hasattr(self._threads, "stack"):
            self._threads.stack = []
        stack: list[tuple[bool, str]] = self._threads.stack
        return stack

    def _enter(self, frame: FrameType) -> None:
        stack, code = self._stack(), frame.f_code
        module = str(frame.f_globals.get("__name__", ""))
        counts, caller = stack[-1] if stack else (not self._only_below, "")
        if code.co_name == "<module>":
            counts = False
        elif self._only_below and module.startswith(self._only_below):
            counts = counts or module not in SERVERS
        if counts and code.co_flags & CODE_OF_A_FUNCTION and code.co_filename.startswith(SOURCES):
            self.walk.setdefault(module, caller)
            caller = module
        stack.append((counts, caller))


def record(file: str, only_below: str, arguments: tuple[str, ...]) -> int:
    """Run one command of Orderkit and write its walk; called in a child process."""
    from orderkit.cli.main import run as run_command

    run = run_platform if arguments[0] == PLATFORM else run_command
    recorder = Recorder(only_below)
    signal.signal(signal.SIGUSR1, lambda *_: recorder.walk.clear())
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    try:
        return run([*arguments])
    finally:
        sys.setprofile(None)
        Path(file).write_text(json.dumps(recorder.walk))


def run_platform(arguments: list[str]) -> int:
    """Run an embedded platform with its service in this process, until a signal ends it."""
    from orderkit.adapters.folders.pack_folder import reference_pack
    from orderkit_standins.platform import Ports
    from orderkit_standins.serve_platform import EmbeddedRunRequest, running

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # before there are threads
    request = EmbeddedRunRequest(Path(arguments[1]), reference_pack(), Ports(0, 0, 0, 0), ())
    with running(request, on_step=lambda *_: None):
        while not signal.sigtimedwait({signal.SIGTERM}, 1.0):  # other signals have handlers
            pass
    return 0


def command(
    file: Path, arguments: tuple[str, ...], state: Path, only_below: str = ""
) -> subprocess.Popen[bytes]:
    """Start a command of Orderkit under the recorder."""
    environment = {**os.environ, "ORDERKIT_STATE": str(state)}
    call = [sys.executable, __file__, "--record", str(file), only_below, *arguments]
    return subprocess.Popen(call, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603


@contextmanager
def platform(folder: Path, story: str) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """Run an embedded platform; its service's walk is written when it ends."""
    state = folder / f"state-{story}"
    up = (PLATFORM, str(state))
    process = command(folder / f"{story}-service", up, state, only_below="orderkit.web")
    try:
        deadline = time.monotonic() + START_S
        while not (state / "platform.yaml").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit("the platform did not start")
            time.sleep(0.2)
        yield state, process
    finally:
        process.terminate()
        process.wait(60)


def measured(story: str) -> tuple[Walk, Walk]:
    """Return the walk of one story in its command, and in the service."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with platform(folder, story) as (state, up):
            done(command(folder / "before", ("team", "add", "walk"), state))
            if story == "plan":
                done(command(folder / "before", STORIES["order"], state))
            up.send_signal(signal.SIGUSR1)  # what the service did before is not part of the story
            done(command(folder / story, STORIES[story], state))
        service = json.loads((folder / f"{story}-service").read_text())
        return json.loads((folder / story).read_text()), service


def done(process: subprocess.Popen[bytes]) -> None:
    """Wait for a command; a plan says by its exit code that something changes."""
    code = process.wait(START_S)
    if code not in (0, 2, 3, 10):
        sys.exit(f"a command ended with exit code {code}")


def room(module: str) -> str:
    """Return the room a module lies in: its package, below ``orderkit`` without that name."""
    package = module.rpartition(".")[0] or module
    return package.removeprefix("orderkit.")


def picture(walk: Walk) -> str:
    """Draw the rooms of a walk as Mermaid; an arrow leads from the room that asked first."""
    counts = Counter(room(module) for module in walk)
    ids = {name: f"r{number}" for number, name in enumerate(counts)}
    lines = ["```mermaid", "flowchart LR"]
    lines += [f'  {ids[name]}["{name} ({count})"]' for name, count in counts.items()]
    reached: set[str] = set()
    for module, caller in walk.items():
        here, there = room(module), room(caller) if caller else ""
        if there and here != there and here not in reached:
            lines.append(f"  {ids[there]} --> {ids[here]}")
        reached.add(here)
    return "\n".join([*lines, "```", ""])


def main(*, write: bool) -> None:
    """Measure every story, print the modules, and put numbers and pictures into the page."""
    text = ""
    for story, arguments in STORIES.items():
        own, service = measured(story)
        both = {**service, **own}
        numbers = f"{len(both)} modules: {len(own)} in the command, {len(service)} in the service"
        print(f"{story}: {numbers}")
        for module in both:
            print(f"  {module}{'' if module in own else ' (service)'}")
        text += f"\n`orderkit {' '.join(arguments)}` passes through {numbers}.\n\n{picture(own)}"
    if write:
        page = PAGE.read_text()
        before, _, rest = page.partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}{text}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        sys.exit(record(sys.argv[2], sys.argv[3], tuple(sys.argv[4:])))
    main(write="--write" in sys.argv)
