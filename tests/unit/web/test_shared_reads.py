"""Readers who ask at the same time share a read, and none gets one that began before they asked."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from ground.errors import UnreachableError
from orderkit.web.operations import KEPT_S, KEYS_MAX, KeptAnswers, SharedReads


class Source:
    """What is read: slowly, and with the number of the newest write."""

    def __init__(self) -> None:
        self.written = 0
        self.reads = itertools.count(1)
        self.read_count = 0

    def read(self) -> int:
        self.read_count = next(self.reads)
        found = self.written
        time.sleep(0.01)
        return found


def test_fifty_readers_at_once_cost_two_reads() -> None:
    shared, source = SharedReads(), Source()
    together = threading.Barrier(50)

    def ask(_: int) -> int:
        together.wait()
        return shared.read("order", source.read)

    with ThreadPoolExecutor(50) as threads:
        assert set(threads.map(ask, range(50))) == {0}
    # the first read begins before most have asked; a slow machine may need one more
    assert source.read_count <= 3


def test_nobody_reads_less_than_was_written_before_they_asked() -> None:
    shared, source = SharedReads(), Source()
    stale: list[tuple[int, int]] = []

    def ask(_: int) -> None:
        for _ in range(30):
            written = source.written
            found = shared.read("order", source.read)
            if found < written:
                stale.append((written, found))

    def write() -> None:
        for _ in range(300):
            source.written += 1
            time.sleep(0.001)

    with ThreadPoolExecutor(17) as threads:
        writer = threads.submit(write)
        list(threads.map(ask, range(16)))
        writer.result()
    assert not stale
    assert source.read_count < 16 * 30


def test_reads_of_other_things_do_not_wait() -> None:
    shared, begun, may_end = SharedReads(), threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert may_end.wait(10)
        return "slow"

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(shared.read, "one", slow)
        assert begun.wait(10)
        assert shared.read("other", lambda: "quick") == "quick"
        may_end.set()
        assert waiting.result() == "slow"


def test_an_error_is_told_to_all_who_wait_and_not_remembered() -> None:
    shared, together = SharedReads(), threading.Barrier(8)
    tries = itertools.count(1)

    def fail() -> int:
        time.sleep(0.05)
        raise UnreachableError(f"no answer, try {next(tries)}")

    def ask(_: int) -> str:
        together.wait()
        with pytest.raises(UnreachableError) as caught:
            shared.read("order", fail)
        return str(caught.value)

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(ask, range(8)))) <= 3
    assert shared.read("order", lambda: 7) == 7


def test_an_answer_is_kept_until_a_version_changes() -> None:
    answers, made = KeptAnswers[dict[str, int]](), itertools.count(1)
    versions = ["head-1"]

    def ask() -> object:
        return answers.get("order", lambda: tuple(versions), lambda _: {"made": next(made)})["made"]

    assert [ask(), ask()] == [1, 1]
    versions[0] = "head-2"
    assert ask() == 2


def test_a_kept_answer_is_no_older_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, made, now_s = KeptAnswers[dict[str, int]](), itertools.count(1), [100.0]
    monkeypatch.setattr("orderkit.web.operations.time.monotonic", lambda: now_s[0])

    def ask() -> object:
        return answers.get("order", lambda: "head", lambda _: {"made": next(made)})["made"]

    assert ask() == 1
    now_s[0] += KEPT_S - 0.1
    assert ask() == 1
    now_s[0] += 0.2
    assert ask() == 2


def test_what_changes_while_an_answer_is_made_is_seen_by_the_next() -> None:
    answers, version = KeptAnswers[dict[str, int]](), [1]

    def make(_: int) -> dict[str, int]:
        found = version[0]
        version[0] = 2  # a push, after the answer's own read
        return {"found": found}

    def ask() -> object:
        return answers.get("order", lambda: version[0], make)["found"]

    assert [ask(), ask()] == [1, 2]


def test_a_failed_answer_is_not_kept() -> None:
    answers = KeptAnswers[dict[str, int]]()

    def fail(_: int) -> dict[str, int]:
        raise UnreachableError("the forge gives no answer")

    with pytest.raises(UnreachableError):
        answers.get("order", lambda: 1, fail)
    assert answers.get("order", lambda: 1, lambda _: {"made": 1}) == {"made": 1}


def test_no_more_than_the_newest_answers_are_kept() -> None:
    answers, made = KeptAnswers[int](), itertools.count(1)

    def ask(key: int) -> int:
        return answers.get(key, lambda: 1, lambda _: next(made))

    first = [ask(key) for key in range(KEYS_MAX + 1)]

    assert ask(KEYS_MAX) == first[-1]
    assert ask(0) > first[-1], "it gave way to the newest and is made again"
