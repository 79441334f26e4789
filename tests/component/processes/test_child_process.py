"""One child process: it answers, is limited, and is gone afterwards whatever it does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orderkit.adapters.processes.child_process import LocalProcesses, SocketChild
from orderkit.ports.processes import ChildEndedError, ChildTimeoutError, ProcessLimits

HERE = "tests.component.processes.test_child_process"
PATIENCE_S = 60.0


def serve(setup: bytes) -> tuple[bytes, Callable[[bytes], bytes] | None]:
    """Answer by what the first message says: the entry of the children of these tests."""
    return b"ready " + setup, _act


def answer_once(setup: bytes) -> tuple[bytes, None]:
    return setup[::-1], None


def _act(message: bytes) -> bytes:
    if message == b"sleep":
        time.sleep(600)
    if message == b"end":
        os._exit(7)
    if message == b"allocate":
        try:
            bytearray(1 << 30)
        except MemoryError:
            return b"refused"
    if message == b"spin":
        while True:
            pass
    if message == b"facts":
        return f"{os.getpid()} {os.environ.get('TMPDIR', '')} {os.environ.get('HOME', '')}".encode()
    return message * 2


def started(limits: ProcessLimits | None = None, entry: str = "serve") -> SocketChild:
    child = LocalProcesses().start(f"{HERE}:{entry}", limits or ProcessLimits())
    child.send(b"set up", PATIENCE_S)
    return child


def test_messages_are_answered_in_their_order() -> None:
    with started() as child:
        child.send(b"a", PATIENCE_S)
        child.send(b"b" * 3_000_000, PATIENCE_S)
        assert child.receive(PATIENCE_S) == b"ready set up"
        assert child.receive(PATIENCE_S) == b"aa"
        assert child.receive(PATIENCE_S) == b"b" * 6_000_000


def test_an_entry_may_answer_once_and_end() -> None:
    with started(entry="answer_once") as child:
        assert child.receive(PATIENCE_S) == b"pu tes"
        with pytest.raises(ChildEndedError):
            child.receive(PATIENCE_S)


def test_a_child_that_hangs_is_a_timeout_and_is_gone_afterwards() -> None:
    with started() as child:
        child.receive(PATIENCE_S)
        child.send(b"facts", PATIENCE_S)
        number, folder, home = child.receive(PATIENCE_S).decode().split(" ")
        assert Path(folder).is_dir()
        assert home == os.environ.get("HOME", "")
        child.send(b"sleep", PATIENCE_S)
        with pytest.raises(ChildTimeoutError):
            child.receive(0.3)

    assert not Path(f"/proc/{number}").exists()
    assert not Path(folder).exists()
    child.stop()


def test_a_child_that_ends_is_told_apart_from_one_that_hangs() -> None:
    with started() as child:
        child.receive(PATIENCE_S)
        child.send(b"end", PATIENCE_S)
        with pytest.raises(ChildEndedError):
            child.receive(PATIENCE_S)


@pytest.mark.parametrize(
    ("limits", "message", "answer"),
    [
        (ProcessLimits(data_bytes=512 << 20), b"allocate", b"refused"),
        (ProcessLimits(answer_bytes=100), b"x" * 50, b"x" * 100),
    ],
)
def test_limits_let_pass_what_keeps_within_them(
    limits: ProcessLimits, message: bytes, answer: bytes
) -> None:
    with started(limits) as child:
        child.receive(PATIENCE_S)
        child.send(message, PATIENCE_S)
        assert child.receive(PATIENCE_S) == answer


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (ProcessLimits(answer_bytes=100), b"x" * 51),
        (ProcessLimits(cpu_s=1), b"spin"),
    ],
)
def test_what_goes_beyond_its_limits_gets_no_answer(limits: ProcessLimits, message: bytes) -> None:
    with started(limits) as child:
        child.receive(PATIENCE_S)
        child.send(message, PATIENCE_S)
        with pytest.raises(ChildEndedError):
            child.receive(PATIENCE_S)


def test_an_isolated_child_has_nothing_of_our_environment() -> None:
    with started(ProcessLimits(is_isolated=True)) as child:
        child.receive(PATIENCE_S)
        child.send(b"facts", PATIENCE_S)
        _, folder, home = child.receive(PATIENCE_S).decode().split(" ")

    assert (folder, home) == ("", "")


def test_a_child_that_is_killed_answers_nobody() -> None:
    with started() as child:
        child.receive(PATIENCE_S)
        child.kill()
        with pytest.raises(ChildEndedError):
            child.receive(PATIENCE_S)
