"""How a step is repeated until it is clear whether a forge carried it out."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from ground.errors import ConflictError, OrderkitError, RefusedError, UnreachableError
from ground.names import RepoId
from orderkit.adapters.forges import answers
from orderkit.adapters.forges.answers import (
    ROUNDS,
    LostAnswerError,
    ServerError,
    has_turn,
    pauses,
    settle,
    turn,
)

LOST = LostAnswerError("no answer")
BROKEN = ServerError("500")
NO = RefusedError("not allowed")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "PAUSE_FIRST_S", 0.0)
    monkeypatch.setattr(answers, "PAUSE_MAX_S", 0.0)


class Steps:
    """What a forge shows, and does, in turn; the last of each again and again."""

    def __init__(self, shown: list[object], done: list[object]) -> None:
        self.shown, self.done = shown, done
        self.log: list[str] = []

    def look(self, attempted: bool) -> str | None:  # noqa: FBT001  settle's shape
        self.log.append(f"look {attempted}")
        return _next(self.shown)

    def act(self) -> str | None:
        self.log.append("act")
        return _next(self.done)

    def settle(self) -> str:
        return settle(self.look, self.act, "paint it")


def _next(steps: list[object]) -> str | None:
    now = steps.pop(0) if len(steps) > 1 else steps[0]
    if isinstance(now, Exception):
        raise now
    return None if now is None else str(now)


def test_what_is_done_already_is_not_done_again() -> None:
    steps = Steps(["red"], ["blue"])

    assert steps.settle() == "red"
    assert steps.log == ["look False"]


def test_the_answer_to_the_request_is_the_result() -> None:
    steps = Steps([None], ["blue"])

    assert steps.settle() == "blue"
    assert steps.log == ["look False", "act"]


def test_without_an_answer_that_tells_it_is_read_whether_it_is_done() -> None:
    steps = Steps([None, "red"], [None])

    assert steps.settle() == "red"
    assert steps.log == ["look False", "act", "look True"]


@pytest.mark.parametrize("problem", [LOST, BROKEN, NO])
def test_a_failed_read_before_any_request_is_told_at_once(problem: OrderkitError) -> None:
    steps = Steps([problem], ["blue"])

    with pytest.raises(type(problem)) as caught:
        steps.settle()

    assert caught.value is problem
    assert steps.log == ["look False"]


def test_a_refusal_of_what_is_found_all_the_same_is_no_error() -> None:
    """A proxy may have refused what the forge carried out."""
    assert Steps([None, "red"], [NO]).settle() == "red"


def test_a_refusal_of_what_is_not_found_is_told_at_once() -> None:
    steps = Steps([None], [NO])

    with pytest.raises(RefusedError) as caught:
        steps.settle()

    assert caught.value is NO
    assert steps.log == ["look False", "act", "look True"]


@pytest.mark.parametrize("doubt", [LOST, BROKEN])
def test_after_a_lost_answer_it_is_looked_for_and_tried_again(doubt: OrderkitError) -> None:
    steps = Steps([None], [doubt, "blue"])

    assert steps.settle() == "blue"
    assert steps.log == ["look False", "act", "look True", "act"]


def test_a_refusal_after_a_lost_answer_leaves_open_what_happened() -> None:
    steps = Steps([None], [LOST, NO])

    with pytest.raises(LostAnswerError, match="may still be carried out; not allowed") as caught:
        steps.settle()

    assert caught.value.__cause__ is NO
    assert "not done again" in caught.value.hint


def test_a_conflict_that_is_read_after_a_lost_answer_leaves_open_what_happened() -> None:
    moved = ConflictError("moved")

    with pytest.raises(LostAnswerError, match="may still be carried out; moved"):
        Steps([None, moved], [LOST]).settle()


def test_reads_that_fail_after_a_request_are_repeated() -> None:
    assert Steps([None, BROKEN, BROKEN, "red"], [LOST]).settle() == "red"


@pytest.mark.parametrize("problem", [LOST, BROKEN])
def test_who_never_gets_an_answer_is_told_of_the_last_failure(problem: OrderkitError) -> None:
    steps = Steps([None], [problem])

    with pytest.raises(type(problem)) as caught:
        steps.settle()

    assert caught.value is problem
    assert steps.log.count("act") == ROUNDS


def test_what_is_accepted_and_never_shown_is_a_lost_answer() -> None:
    steps = Steps([None], [None])

    with pytest.raises(LostAnswerError, match="paint it: accepted, but the forge does not show it"):
        steps.settle()

    assert steps.log.count("act") == ROUNDS


def test_between_two_tries_there_is_a_pause_and_none_after_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    monkeypatch.setattr(answers, "PAUSE_FIRST_S", 1.0)
    monkeypatch.setattr(answers, "PAUSE_MAX_S", 4.0)
    with pytest.raises(LostAnswerError):
        Steps([None], [None]).settle()

    assert len(slept) == ROUNDS - 1
    assert slept[0] <= 1.0 < slept[-1] <= 4.0


def test_pauses_double_up_to_a_bound_and_keep_half_of_their_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "PAUSE_FIRST_S", 1.0)
    monkeypatch.setattr(answers, "PAUSE_MAX_S", 4.0)

    found = list(islice(pauses(random.Random(1)), 40))  # noqa: S311  no secrets

    for pause_s, longest_s in zip(found, [1.0, 2.0, *[4.0] * 38], strict=True):
        assert longest_s / 2 <= pause_s <= longest_s
    assert max(found) > 3.5
    assert min(found[2:]) < 2.5


def test_a_turn_is_over_when_it_ends_however_it_ends() -> None:
    repo = RepoId("team", "order")
    assert not has_turn()
    with turn("http://forge", repo):
        assert has_turn()
    assert not has_turn()

    def fail() -> None:
        with turn("http://forge", repo):
            raise UnreachableError("gone")

    with pytest.raises(UnreachableError):
        fail()
    assert not has_turn()
