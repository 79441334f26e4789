"""
Start Orderkit's commands fast: everything is imported here once, each command is a fork.

A fork is a process of its own in every respect that a SIGKILL is about. Started by
``processes`` as ``python -m tests.crash.zygote``; reads one JSON request a line, answers with
one JSON line; at the end of its input it kills what still runs.

    {"entry": "MODULE:FUNCTION", "argv": […], "log": FILE, "redirect": {PORT: PORT},
     "faults": {…} | null, "environment": {NAME: VALUE}}      → {"pid": 7}
    {"poll": 7}                                                     → {"code": 0 | null}
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tests.crash import durable

PRELOADED = (
    "anyio._backends._asyncio",
    "dyingend",
    "kubernetes.config",
    "kubernetes.dynamic",
    "orderkit.adapters.kube.cluster",
    "orderkit.cli.commands.changes",
    "orderkit.cli.inputs",
    "orderkit.cli.signals",
    "compositions.parts",
    "compositions.function_twins.environment",
    "orderkit_standins.catalog.http",
    "orderkit_standins.platform",
    "orderkit_standins.commands.demo",
    "orderkit.cli.main",
    "orderkit.cli.commands.ordering",
    "orderkit.cli.commands.orders",
    "orderkit.cli.commands.platform",
    "orderkit.cli.root",
    "orderkit_standins.serve_platform",
    "orderkit_standins.demo.story",
    "orderkit.cli.commands.team",
    "orderkit.cli.views.order_views",
    "orderkit.flows.order.placing",
    "tests.faults.deeds",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
)
"""What the commands import lazily, so that a fork does not have to: most of its processor time."""


def main() -> None:
    """Serve requests until the input ends."""
    codes: dict[int, int | None] = {}
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()
    for request in _requests():
        if "poll" in request:
            answer = {"code": _poll(codes, request["poll"])}
        else:
            pid = os.fork()
            if pid == 0:
                _become(request)
            codes[pid] = None
            answer = {"pid": pid}
        os.write(1, f"{json.dumps(answer)}\n".encode())
    for pid, code in codes.items():
        if code is None and _poll(codes, pid) is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _requests() -> Iterator[dict[str, Any]]:
    text = b""
    while chunk := os.read(0, 65536):
        text += chunk
        *lines, text = text.split(b"\n")
        yield from map(json.loads, lines)


def _poll(codes: dict[int, int | None], pid: int) -> int | None:
    if codes[pid] is None:
        found, status = os.waitpid(pid, os.WNOHANG)
        codes[pid] = os.waitstatus_to_exitcode(status) if found else None
    return codes[pid]


def _become(request: dict[str, Any]) -> None:
    """Be the command in this (forked) process; never return to the loop."""
    os.setpgid(0, 0)
    out = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a TextIOWrapper
    _redirect({int(old): int(new) for old, new in request["redirect"].items()})
    os.environ.update(request["environment"])
    if request["faults"]:
        durable.install(durable.Faults(**request["faults"]))
    module, _, function = request["entry"].partition(":")
    sys.exit(getattr(importlib.import_module(module), function)(request["argv"]))


def _redirect(ports: Mapping[int, int]) -> None:
    """Lead connections elsewhere, as a packet filter would; no URL changes."""
    connect = socket.socket.connect

    def elsewhere(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple):
            address = (address[0], ports.get(address[1], address[1]), *address[2:])
        connect(self, address)

    socket.socket.connect = elsewhere  # type: ignore[assignment,method-assign]  # same call


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
