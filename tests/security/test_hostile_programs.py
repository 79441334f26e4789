"""A function's program is a stranger's: what it tries in its confinement, and what comes of it."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from functionimages import asked
from functionprograms import DIGEST, tiny_function

from compositions.station import Station
from orderkit.adapters.functions import local_functions
from orderkit.adapters.functions.program_store import stored_program


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    with tiny_function(tmp_path_factory.mktemp("cache")) as function:
        yield function


def told(function: Station, do: str, **more: object) -> list[str]:
    return [result.message for result in function(asked(do, **more)).results]


def test_it_sees_no_file_and_no_variable_of_this_machine(
    tiny: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")

    passwords, home, _, variables = told(tiny, "read")

    assert (passwords, home) == ("FileNotFoundError", "FileNotFoundError")
    assert variables in (
        "['HOME', 'LD_LIBRARY_PATH', 'PATH', 'PYTHONPATH']",
        "['HOME', 'LC_CTYPE', 'LD_LIBRARY_PATH', 'PATH', 'PYTHONPATH']",  # what Python sets itself
    )


def test_it_reaches_neither_this_machine_nor_the_network(tiny: Station) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here, elsewhere = told(tiny, "connect", port=listener.getsockname()[1])

    assert (here, elsewhere) == ("ConnectionRefusedError", "OSError")


def test_it_changes_nothing_and_fills_no_disk(tiny: Station) -> None:
    program = stored_program(DIGEST)
    assert program is not None
    before = (program.root / "program.py").read_bytes()

    new, own, big = told(tiny, "write")

    assert (new, big) == ("OSError", "OSError"), "the root is read-only, and /tmp is small"
    assert own in ("OSError", "PermissionError")
    assert (program.root / "program.py").read_bytes() == before
    assert not list((program.root / "tmp").iterdir())


def test_it_ends_no_process_and_gains_no_rights(tiny: Station) -> None:
    user, ours, init, unshare, kernel = told(tiny, "kill", process=os.getpid())

    assert user != "0"
    assert ours == "ProcessLookupError"
    assert init == "None", "its init takes no signal from inside"
    assert unshare == "[-1, 1]", "it makes no namespace"
    assert kernel in ("PermissionError", "OSError", "FileNotFoundError")
    assert tiny(asked("compose")).desired.resources


def test_its_memory_and_its_processes_are_limited(
    tiny: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(tiny, "memory") == ["MemoryError"]
    monkeypatch.setattr(local_functions, "CALL_S", 2.0)
    tiny(asked("die"))  # the limit belongs to a start

    tiny(asked("fork"))  # it may be stopped for it

    assert tiny(asked("compose")).desired.resources


def test_nothing_of_it_stays_once_it_was_stopped(tiny: Station) -> None:
    tiny(asked("die"))
    others = _running()
    tiny(asked("compose"))
    assert len(_running() - others) == 1
    tiny(asked("die"))

    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and _running() - others:
        time.sleep(0.05)
    assert not _running() - others


def _running() -> set[str]:
    """Return the programs that this process has started."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
            parent = (folder / "status").read_text().partition("PPid:\t")[2].split()[0]
        except (OSError, IndexError):
            continue
        if any(b"confined_program" in part for part in command) and int(parent) == os.getpid():
            found.add(folder.name)
    return found
