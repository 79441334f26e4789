"""
Run the program of a campaign in a child process with limits: files in, files out.

The program is somebody's own. It gets no environment, files, network or processes, and its answer
is JSON whose types are checked; nothing that it says is ever executed. Given to flows as the port
`ProgramRunner`.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Mapping
from typing import Any

from ground.errors import RefusedError, shorten
from orderkit.adapters.processes.child_process import Answer, SocketChild
from orderkit.ports.processes import ChildEndedError, ChildTimeoutError, ProcessLimits

WALL_S, _CPU_S = 20.0, 10
_MEMORY_BYTES, _ANSWER_BYTES = 512 << 20, 8 << 20
_ENTRY = "orderkit.adapters.processes.confined_edits:answer"
_NAME = "spec.what.run.program"


def run_program(
    program: str, order: Mapping[str, Any], *, wall_s: float = WALL_S
) -> dict[str, str | None]:
    """
    Return what a program makes of an order's files: path and text; None removes the file.

    Raises:
        RefusedError: It failed, took too much, or answered something else.
    """
    bounds = ProcessLimits(
        address_bytes=_MEMORY_BYTES, cpu_s=_CPU_S, answer_bytes=_ANSWER_BYTES, is_isolated=True
    )
    request = json.dumps({"program": program, "order": order}).encode()
    until_s = time.monotonic() + wall_s
    with SocketChild(_ENTRY, bounds) as child:
        try:
            child.send(request, wall_s)
            said = json.loads(child.receive(max(0.0, until_s - time.monotonic())))
        except (ChildTimeoutError, ChildEndedError, ValueError) as error:
            raise RefusedError(
                f"{_NAME} was stopped: it needs more than {wall_s:g} s, {_CPU_S} s of processor"
                f" time, {_MEMORY_BYTES >> 20} MiB of memory or {_ANSWER_BYTES >> 20} MiB of"
                f" answer, or it ended its process ({error})",
                hint="try it with the files of one order, on your own machine",
            ) from error
    if not isinstance(said, dict) or "files" not in said:
        fault = said.get("error") if isinstance(said, dict) else said
        raise RefusedError(
            f"{_NAME}: {shorten(str(fault))}",
            hint="it may not read files, use the network or start processes; see docs/campaigns.md",
        )
    files = said["files"]
    if not isinstance(files, dict) or not all(
        text is None or isinstance(text, str) for text in files.values()
    ):
        raise RefusedError(
            f"{_NAME}: edit() returned {shorten(repr(files))}, and not paths with texts",
            hint="return {'README.md': 'the whole text'}; None removes a file",
        )
    return files


# --- the child's side


def answer(request: bytes) -> tuple[bytes, Answer | None]:
    """Run the program; the entry of the child."""
    asked = json.loads(request)
    try:
        names: dict[str, Any] = {"__name__": "campaign"}
        exec(compile(asked["program"], _NAME, "exec"), names)  # noqa: S102 - what the child is for
        said: dict[str, Any] = {"files": names["edit"](asked["order"])}
        text = json.dumps(said)
    except BaseException as error:  # noqa: BLE001 - the program's fault, whatever it is
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == _NAME]
        at = f"line {lines[-1]}: " if lines else ""
        text = json.dumps({"error": f"{at}{type(error).__name__}: {error}"})
    return text.encode(), None
