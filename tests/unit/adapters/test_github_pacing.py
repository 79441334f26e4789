"""The pacer of GitHub's limits, with a clock of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from ground.errors import TooFastError
from orderkit.adapters.forges.answers import ForgeResponse
from orderkit.adapters.forges.pacing import Clock
from orderkit.adapters.github.transport import Pacer, api_urls


@dataclass
class Hours:
    """A clock that only sleeping moves."""

    now: float = 1_000.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, lambda: self.now, self.sleep)


def answer(status: int, body: bytes = b"{}", **headers: str) -> ForgeResponse:
    named: Mapping[str, str] = {key.replace("_", "-"): value for key, value in headers.items()}
    return ForgeResponse(status, named, body)


def create(pacer: Pacer, times: int) -> None:
    for _ in range(times):
        with pacer.turn("core", creates=True):
            pass


def test_eighty_a_minute_pass_at_once_and_the_next_waits_for_the_first() -> None:
    hours = Hours()
    pacer = Pacer(per_minute=80, per_hour=500, clock=hours.clock)

    create(pacer, 81)

    assert hours.slept == [60.0]


def test_an_hour_takes_five_hundred_and_says_when_the_next_may_be_sent() -> None:
    hours = Hours()
    pacer = Pacer(per_minute=80, per_hour=500, clock=hours.clock)
    create(pacer, 500)

    with pytest.raises(TooFastError) as refused:
        create(pacer, 1)

    assert hours.now + refused.value.seconds == 1_000.0 + 3_600
    assert "repeat the command in" in refused.value.hint
    hours.now += refused.value.seconds
    create(pacer, 1)


def test_reads_wait_for_no_limit_of_content() -> None:
    hours = Hours()
    pacer = Pacer(per_minute=1, clock=hours.clock)
    create(pacer, 1)

    with pacer.turn("core", creates=False):
        pass

    assert hours.slept == []


@pytest.mark.parametrize(
    ("found", "wait_s", "reason"),
    [
        (answer(429, retry_after="7"), 7, "too many requests"),
        (answer(403, retry_after="7"), 7, "a secondary limit names its time"),
        (answer(403, x_ratelimit_remaining="0", x_ratelimit_reset="1030"), 31, "none is left"),
        (answer(429), 60, "without a time it is a minute"),
        (
            answer(
                200,
                b'{"errors": [{"type": "RATE_LIMITED"}]}',
                x_ratelimit_remaining="0",
                x_ratelimit_reset="1030",
            ),
            31,
            "GraphQL refuses with a success",
        ),
        (
            answer(
                403, b'{"documentation_url": "https://d/overview/rate-limits-for-the-rest-api"}'
            ),
            60,
            "its page is that of the limits",
        ),
    ],
)
def test_a_refusal_for_speed_is_waited_for(
    found: ForgeResponse, wait_s: float, reason: str
) -> None:
    hours = Hours()
    pacer = Pacer(clock=hours.clock)

    assert pacer.is_refusal("core", found), reason
    with pacer.turn("core", creates=False):
        pass
    with pacer.turn("graphql", creates=False):
        pass

    assert hours.slept == [wait_s]


@pytest.mark.parametrize(
    "found",
    [
        answer(403, b'{"message": "Resource not accessible by integration"}'),
        answer(404, x_ratelimit_remaining="12"),
        answer(200, b"no JSON"),
    ],
)
def test_another_refusal_is_none_for_speed(found: ForgeResponse) -> None:
    hours = Hours()
    pacer = Pacer(clock=hours.clock)

    assert not pacer.is_refusal("core", found)
    with pacer.turn("core", creates=False):
        pass
    assert hours.slept == []


def test_the_last_request_of_an_hour_makes_the_next_one_wait() -> None:
    hours = Hours()
    pacer = Pacer(clock=hours.clock)

    last = answer(200, x_ratelimit_remaining="0", x_ratelimit_reset="1010")
    assert not pacer.is_refusal("core", last)
    with pacer.turn("core", creates=False):
        pass

    assert hours.slept == [11]


@pytest.mark.parametrize(
    ("url", "api_url", "expected"),
    [
        ("https://github.com", "", ("https://api.github.com", "https://api.github.com/graphql")),
        ("https://x.ghe.com", "", ("https://api.x.ghe.com", "https://api.x.ghe.com/graphql")),
        ("https://ghes.example", "", ("/api/v3", "/api/graphql")),
        ("https://g.example", "https://a.example/api/v3/", ("https://a.example/api/v3", "https://a.example/api/graphql")),
    ],
)  # fmt: skip
def test_the_addresses_of_the_apis_follow_from_the_forges(
    url: str, api_url: str, expected: tuple[str, str]
) -> None:
    assert api_urls(url, api_url) == expected
