"""What all forges' pacers do: how long GitLab's answers make us wait, and that people go first."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import nullcontext

import pytest

from ground.errors import TooFastError
from ground.names import RepoId
from orderkit.adapters.forges.answers import ForgeResponse, turn
from orderkit.adapters.forges.pacing import BACKGROUND_PATIENCE_S, Clock
from orderkit.adapters.github.transport import Pacer
from orderkit.adapters.gitlab.transport import GitLabPacer
from orderkit.ports.urgency import background, longest_wait

NOW = 1_000.0
SOON_S = 10


class Hours:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now, self.slept = NOW, list[float]()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, lambda: self.now, self.sleep)


@pytest.mark.parametrize(
    ("status", "headers", "seconds", "reason"),
    [
        (200, {}, 0, "nothing is said"),
        (200, {"ratelimit-remaining": "7", "ratelimit-reset": "1030"}, 0, "some are left"),
        (200, {"ratelimit-remaining": "0", "ratelimit-reset": "1030"}, 31, "until the reset"),
        (200, {"ratelimit-remaining": "0"}, 0, "no one says until when"),
        (429, {"retry-after": "12", "ratelimit-reset": "1030"}, 12, "as it is told"),
        (429, {"ratelimit-remaining": "0", "ratelimit-reset": "1030"}, 31, "until the reset"),
        (429, {}, 1, "for a moment"),
        (429, {"retry-after": "100000"}, 60, "never longer than a period"),
        (429, {"retry-after": "-5"}, 1, "no number of seconds"),
    ],
)
def test_the_answer_says_how_long(
    status: int, headers: dict[str, str], seconds: float, reason: str
) -> None:
    hours = Hours()
    pacer = GitLabPacer(clock=hours.clock)

    assert pacer.is_refusal("api", ForgeResponse(status, headers, b"{}")) == (status == 429)
    with pacer.turn("api", creates=False):
        pass

    assert sum(hours.slept) == seconds, reason


def test_background_work_leaves_a_tenth_to_people() -> None:
    """72 of 80 in a minute; a person's request still passes at once."""
    hours = Hours()
    pacer = Pacer(per_minute=80, per_hour=500, clock=hours.clock)
    with background():
        for _ in range(72):
            with pacer.turn("core", creates=True):
                pass
    for _ in range(8):
        with pacer.turn("core", creates=True):
            pass
    assert hours.slept == []

    with background(), pacer.turn("core", creates=True):
        pass

    assert hours.slept == [60.0]


def test_background_work_stops_when_a_tenth_of_what_the_forge_counts_is_left() -> None:
    hours = Hours()
    pacer = Pacer(clock=hours.clock)
    left = {"x-ratelimit-limit": "5000", "x-ratelimit-remaining": "500"}
    pacer.is_refusal("core", ForgeResponse(200, {**left, "x-ratelimit-reset": "1030"}, b""))

    with pacer.turn("core", creates=False):
        pass
    assert hours.slept == []
    with background(), pacer.turn("core", creates=False):
        pass

    assert hours.slept == [31]


def test_background_work_waits_an_hour_where_a_person_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hours = Hours()
    pacer = Pacer(per_hour=10, clock=hours.clock)
    for _ in range(10):
        with pacer.turn("core", creates=True):
            pass

    with pytest.raises(TooFastError, match="GitHub's limit for these credentials"):
        pacer.turn("core", creates=True).__enter__()
    with caplog.at_level(logging.WARNING), background(), pacer.turn("core", creates=True):
        pass

    assert hours.slept == [3600]
    assert hours.slept[0] < BACKGROUND_PATIENCE_S
    assert caplog.messages == ["waiting 3600 s for GitHub's limit of speed; people go first"]


def test_background_work_does_not_sleep_long_while_others_wait_for_its_repository() -> None:
    hours = Hours()
    pacer = Pacer(per_hour=10, clock=hours.clock)
    for _ in range(10):
        with pacer.turn("core", creates=True):
            pass

    with background(), turn("http://forge", RepoId("a", "b")), pytest.raises(TooFastError):
        pacer.turn("core", creates=True).__enter__()

    assert hours.slept == []


def test_a_persons_request_overtakes_background_work_that_came_first() -> None:
    """One request is under way, ten of a campaign wait, and a person comes last."""
    pacer, order = Pacer(), list[str]()
    begun, may_end = threading.Event(), threading.Event()

    def request(name: str, how: Callable[[], object]) -> threading.Thread:
        def act() -> None:
            how_urgent = background() if name == "campaign" else nullcontext()
            with how_urgent, pacer.turn("core", creates=True):
                order.append(name)
                how()

        thread = threading.Thread(target=act)
        thread.start()
        return thread

    def hold() -> None:
        begun.set()
        assert may_end.wait(SOON_S)

    threads = [request("first", hold)]
    assert begun.wait(SOON_S)
    threads += [request("campaign", lambda: None) for _ in range(10)]
    _until(lambda: pacer._queued[True] == 10)  # noqa: SLF001  nothing else shows that they wait
    threads.append(request("person", lambda: None))
    _until(lambda: pacer._queued[False] == 1)  # noqa: SLF001
    may_end.set()
    for thread in threads:
        thread.join(SOON_S)

    assert order == ["first", "person", *["campaign"] * 10]


def test_what_sleeps_is_shown_and_lets_people_pass() -> None:
    now, sleeping, may_wake = [NOW], threading.Event(), threading.Event()

    def sleep(seconds: float) -> None:
        sleeping.set()
        assert may_wake.wait(SOON_S)
        now[0] += seconds

    pacer = Pacer(per_minute=10, clock=Clock(lambda: now[0], lambda: now[0], sleep))

    def work() -> None:
        with background():
            for _ in range(10):
                with pacer.turn("core", creates=True):
                    pass

    thread = threading.Thread(target=work)
    thread.start()
    assert sleeping.wait(SOON_S)

    wait = longest_wait()
    assert wait is not None
    assert wait.system == "GitHub"
    assert 50 < wait.left_s <= 60
    with pacer.turn("core", creates=True):
        pass
    may_wake.set()
    thread.join(SOON_S)
    assert longest_wait() is None


def _until(holds: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it does not hold after 10 s")
