"""How long the client waits by what GitLab's answers say."""

from __future__ import annotations

import pytest

from orderkit.adapters.gitlab.pacing import WAIT_MAX_S, pause_s

NOW = 1_000.0


@pytest.mark.parametrize(
    ("status", "headers", "seconds", "reason"),
    [
        (200, {}, 0, "nothing is said"),
        (200, {"ratelimit-remaining": "7", "ratelimit-reset": "1030"}, 0, "some are left"),
        (200, {"ratelimit-remaining": "0", "ratelimit-reset": "1030"}, 30, "until the reset"),
        (200, {"ratelimit-remaining": "0"}, 0, "no one says until when"),
        (429, {"retry-after": "12", "ratelimit-reset": "1030"}, 12, "as it is told"),
        (429, {"ratelimit-reset": "1030"}, 30, "until the reset"),
        (429, {}, 1, "for a moment"),
        (429, {"retry-after": "100000"}, WAIT_MAX_S, "never longer than a period"),
        (429, {"retry-after": "-5"}, 1, "no number of seconds"),
        (429, {"ratelimit-reset": "900"}, 0, "the period is over"),
    ],
)
def test_the_answer_says_how_long(
    status: int, headers: dict[str, str], seconds: float, reason: str
) -> None:
    assert pause_s(status, headers, NOW) == seconds, reason
