"""
Count tokens exactly: an odometer that raw samples of counters move forward.

It keeps the last counted sample of each series, so a pass that repeats, overlaps or comes hours
late counts every token once: a rise adds the difference, a fall means that the counter restarted
at 0, and a series that began within the window counts from 0. Nothing is extrapolated, and the
count never falls, whatever Prometheus forgets later.

Pure; called by ``metering``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from orderkit.controllers import InvalidInputError
from whisperops.prometheus import Series

TokenKind = str
COUNTERS: Mapping[str, TokenKind] = {
    "whisperops_tokens_input_total": "input",
    "whisperops_tokens_output_total": "output",
    "whisperops_tokens_cached_input_total": "cached_input",
}
"""The counters that an agent exports, and the kind of token each counts."""
SERIES_MAX = 5_000
FORGET_S = 30 * 86_400.0
"""After so long without a sample, the Pod of a series is gone."""
_DIGEST = 16


@dataclass(frozen=True, slots=True)
class Odometer:
    """What an agent has used since its window began."""

    window_start: str
    """As in the budget. Another text means another window, which is counted from 0."""
    counted_to_s: float
    """Everything that was scraped until then is counted (Unix time)."""
    tokens: Mapping[tuple[str, TokenKind], float] = field(default_factory=dict)
    """By model and kind of token."""
    last: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The last counted sample of each series: time and value."""

    def to_json(self) -> str:
        """Return it as text, the same text for the same count."""
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
            InvalidInputError: `to_json` did not write this.
        """
        try:
            data: dict[str, Any] = json.loads(text)
            odometer = cls(
                str(data["windowStart"]),
                float(data["countedTo"]),
                {(str(m), str(k)): float(count) for m, k, count in data["tokens"]},
                {str(key): (float(at_s), float(v)) for key, (at_s, v) in data["last"].items()},
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InvalidInputError("odometer", "", "is not what the meter wrote") from error
        if not math.isfinite(odometer.counted_to_s) or not all(
            map(math.isfinite, odometer.tokens.values())
        ):
            raise InvalidInputError("odometer", "", "contains a number that is not finite")
        return odometer

    def counts_as(self, other: Odometer) -> bool:
        """Return whether both have counted the same; `counted_to_s` may differ."""
        values = {key: value for key, (_, value) in self.last.items()}
        return (self.window_start, self.tokens, values) == (
            other.window_start,
            other.tokens,
            {key: value for key, (_, value) in other.last.items()},
        )


def advance(
    before: Odometer, all_series: Iterable[Series], *, window_start_s: float, to_s: float
) -> Odometer:
    """
    Return the odometer after counting all samples up to a time.

    Args:
        window_start_s: What was used before that does not count.
    """
    tokens, last = dict(before.tokens), dict(before.last)
    for series in all_series:
        name = series.labels.get("__name__", "")
        if name not in COUNTERS or not series.samples:
            continue
        key = _key(series.labels)
        rise, last[key] = _rise(series.samples, last.get(key), window_start_s)
        if rise:
            model_and_kind = (series.labels.get("model", ""), COUNTERS[name])
            tokens[model_and_kind] = tokens.get(model_and_kind, 0.0) + rise
    return Odometer(before.window_start, to_s, tokens, _without_old(last, to_s))


def _rise(
    samples: tuple[tuple[float, float], ...],
    last_counted: tuple[float, float] | None,
    window_start_s: float,
) -> tuple[float, tuple[float, float]]:
    """Return how far a counter rose, and its last sample."""
    last_s, last_value = last_counted or (window_start_s, 0.0)
    rise = 0.0
    for sample_s, value in samples:
        if last_counted is None and sample_s <= window_start_s:
            last_value = value  # the counter's value when the window began
        elif sample_s > last_s:
            rise += value - last_value if value >= last_value else value
            last_s, last_value = sample_s, value
    return rise, (last_s, last_value)


def _without_old(
    last: Mapping[str, tuple[float, float]], now_s: float
) -> Mapping[str, tuple[float, float]]:
    newest = sorted(last.items(), key=lambda item: item[1][0], reverse=True)[:SERIES_MAX]
    return {key: sample for key, sample in newest if now_s - sample[0] < FORGET_S}


def _key(labels: Mapping[str, str]) -> str:
    text = json.dumps(sorted(labels.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]
