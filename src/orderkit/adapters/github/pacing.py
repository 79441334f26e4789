"""
GitHub's limits of speed.

Source: its pages "Rate limits for the REST API" and "… GraphQL API". GitHub.com takes 80 requests a
minute and 500 an hour that create content, and of each minute 900 points of the API (a read is 1, a
write 5) and 2,000 of GraphQL; an Enterprise Server has no limits unless its admin sets some. A
refusal is a 429, or a 403 with ``retry-after``, no requests left, or a link to that page; of
GraphQL a 200 with an error of the type ``RATE_LIMITED``.
"""

from __future__ import annotations

import json
from typing import ClassVar

from orderkit.adapters.forges.answers import ForgeResponse
from orderkit.adapters.forges.pacing import TOO_MANY, ForgePacer

PER_MINUTE, PER_HOUR = 80, 500
POINTS = {"core": 900, "graphql": 2_000}
"""Of a minute, by resource."""
_OK, _FORBIDDEN = 200, 403


class Pacer(ForgePacer):
    """The limits of one credential of GitHub."""

    title: ClassVar[str] = "GitHub"
    prefix: ClassVar[str] = "x-ratelimit-"
    unnamed_s: ClassVar[float] = 60.0

    def _is_refused(self, answer: ForgeResponse) -> bool:
        is_used_up = self._number(answer, "remaining") == 0
        if answer.status == _OK:  # GraphQL's way to say it
            return is_used_up and b'"RATE_LIMITED"' in answer.body
        if answer.status != _FORBIDDEN:
            return answer.status == TOO_MANY
        return is_used_up or "retry-after" in answer.headers or _names_limits(answer)


def of_cloud() -> Pacer:
    """Return a pacer that keeps within the numbers of GitHub.com."""
    return Pacer(per_minute=PER_MINUTE, per_hour=PER_HOUR, points=POINTS)


def _names_limits(answer: ForgeResponse) -> bool:
    try:
        document = json.loads(answer.body)
    except ValueError:
        return False
    return isinstance(document, dict) and "rate-limits" in str(document.get("documentation_url"))
