"""
Count tokens exactly: an odometer that is moved on by raw samples of counters.

It knows the last sample it has counted of each series, so a pass that is repeated, overlaps, or
comes hours late counts everything once: a rise counts as what it rose, a fall is a counter that
began anew, and a series that was born within the window counts from 0. Nothing is extrapolated
and nothing ever falls, whatever a Prometheus forgets later.

Pure; called by ``metering``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from orderkit.core.errors import InvalidInputError
from whisperops.prometheus import Series

TokenKind = str
COUNTERS: Mapping[str, TokenKind] = {
    "whisperops_tokens_input_total": "input",
    "whisperops_tokens_output_total": "output",
    "whisperops_tokens_cached_input_total": "cached_input",
}
"""The counters an agent exports, and what they count."""
SERIES_MAX = 5_000
FORGET_S = 30 * 86_400.0
"""A series that was silent for so long is a pod that is gone."""
_DIGEST = 16


@dataclass(frozen=True, slots=True)
class Odometer:
    """What an agent used since its window began."""

    window_start: str
    """As the budget has it; another text is another window, counted from 0."""
    counted_to_s: float
    """Everything that was scraped until then is counted."""
    tokens: Mapping[tuple[str, TokenKind], float] = field(default_factory=dict)
    """By model and kind."""
    last: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The last counted sample of each series."""

    def to_json(self) -> str:
        """Return it as one text, the same for the same count."""
        return json.dumps(
            {
                "windowStart": self.window_start,
                "countedTo": self.counted_to_s,
                "tokens": [[*key, count] for key, count in sorted(self.tokens.items())],
                "last": {key: list(sample) for key, sample in sorted(self.last.items())},
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """
        Read what `to_json` wrote.

        Raises:
            InvalidInputError: It is something else.
        """
        try:
            found: dict[str, Any] = json.loads(text)
            made = cls(
                str(found["windowStart"]),
                float(found["countedTo"]),
                {(str(m), str(k)): float(count) for m, k, count in found["tokens"]},
                {str(key): (float(at_s), float(v)) for key, (at_s, v) in found["last"].items()},
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InvalidInputError("odometer", "", "is not what the meter wrote") from error
        if not math.isfinite(made.counted_to_s) or not all(
            map(math.isfinite, made.tokens.values())
        ):
            raise InvalidInputError("odometer", "", "holds a number that is none")
        return made

    def counts_as(self, other: Odometer) -> bool:
        """Say whether both have counted the same; how far they looked may differ."""
        values = {key: value for key, (_, value) in self.last.items()}
        return (self.window_start, self.tokens, values) == (
            other.window_start,
            other.tokens,
            {key: value for key, (_, value) in other.last.items()},
        )


def moved_on(
    before: Odometer, series: Iterable[Series], *, begun_s: float, to_s: float
) -> Odometer:
    """
    Count samples up to a time.

    Args:
        begun_s: When the window began; what was counted by then does not count.
    """
    tokens, last = dict(before.tokens), dict(before.last)
    for each in series:
        name = each.labels.get("__name__", "")
        if name not in COUNTERS or not each.samples:
            continue
        key = _key(each.labels)
        rise, last[key] = _rise(each.samples, last.get(key), begun_s)
        if rise:
            meter = (each.labels.get("model", ""), COUNTERS[name])
            tokens[meter] = tokens.get(meter, 0.0) + rise
    return Odometer(before.window_start, to_s, tokens, _remembered(last, to_s))


def _rise(
    samples: tuple[tuple[float, float], ...], known: tuple[float, float] | None, begun_s: float
) -> tuple[float, tuple[float, float]]:
    """Return how far a counter rose, and its last sample."""
    at_s, value = known or (begun_s, 0.0)
    rise = 0.0
    for sample_s, now in samples:
        if known is None and sample_s <= begun_s:
            value = now  # before the window: where it begins
        elif sample_s > at_s:
            rise += now - value if now >= value else now
            at_s, value = sample_s, now
    return rise, (at_s, value)


def _remembered(
    last: Mapping[str, tuple[float, float]], now_s: float
) -> Mapping[str, tuple[float, float]]:
    newest = sorted(last.items(), key=lambda item: item[1][0], reverse=True)[:SERIES_MAX]
    return {key: sample for key, sample in newest if now_s - sample[0] < FORGET_S}


def _key(labels: Mapping[str, str]) -> str:
    text = json.dumps(sorted(labels.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]
