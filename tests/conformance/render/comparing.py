"""Runs many random templates through all engines, in batches, and sums up what was found."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from tests.conformance.render.contexts import context
from tests.conformance.render.judging import PROMISED, Comparison, Verdict, compare
from tests.conformance.render.productions import PRODUCTIONS
from tests.conformance.render.writing import Writer
from tests.engines.process import Answer, Engines

from softwaretemplates.render import BACKSTAGE, Delimiters

CONTEXTS, BATCH = 40, 500
Job = tuple[str, int]
Answers = list[tuple[Answer, Answer]]


@dataclass(slots=True)
class Outcome:
    """What a run found: counts, the broken promises, and how often each production was taken."""

    counts: Counter[Verdict] = field(default_factory=Counter)
    broken: list[Comparison] = field(default_factory=list)
    hits: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.counts.total()

    @property
    def refused(self) -> float:
        """The share that ours refuses and at least one engine renders."""
        count = self.counts[Verdict.REFUSED_ALIKE] + self.counts[Verdict.REFUSED_DIFFERENT]
        return count / self.total

    def add(self, found: Comparison) -> None:
        self.counts[found.verdict] += 1
        if found.verdict not in PROMISED:
            self.broken.append(found)

    def smallest(self, most: int = 10) -> str:
        """Return the shortest templates that break a promise, with their values."""
        found = sorted(self.broken, key=lambda one: len(one.source))[:most]
        return "\n".join(f"{one}\n    values   {one.context!r}" for one in found)

    def __str__(self) -> str:
        lines = [
            f"{self.counts[v]:7} {self.counts[v] / self.total:7.2%}  {v.value}" for v in Verdict
        ]
        return "\n".join([f"{self.total} templates, {self.refused:.2%} refused", *lines])


def run(
    engines: Engines,
    choices: random.Random,
    count: int,
    *,
    lifelike: bool,
    delimiters: Delimiters = BACKSTAGE,
) -> Outcome:
    """Write `count` templates and compare all; the engines work while ours does."""
    writer = Writer(choices, lifelike=lifelike)
    contexts = [context(choices, lifelike=lifelike) for _ in range(CONTEXTS)]
    outcome = Outcome(hits=writer.hits)
    jobs = (
        (writer.template().replace(BACKSTAGE.start, delimiters.start), choices.randrange(CONTEXTS))
        for _ in range(count)
    )
    ask = partial(engines.render, contexts, options=_options(delimiters))
    for batch, answers in _answered(ask, jobs):
        for (source, at), answer in zip(batch, answers, strict=True):
            outcome.add(compare(source, contexts[at], answer, delimiters))
    return outcome


def _answered(
    ask: Callable[[tuple[Job, ...]], Answers], jobs: Iterator[Job]
) -> Iterator[tuple[tuple[Job, ...], Answers]]:
    """Yield batches with their answers, one batch ahead of the reader."""
    with ThreadPoolExecutor(1) as pool:
        ahead: tuple[tuple[Job, ...], Future[Answers]] | None = None
        while batch := tuple(islice(jobs, BATCH)):
            asked = pool.submit(ask, batch)
            if ahead:
                yield ahead[0], ahead[1].result()
            ahead = batch, asked
        if ahead:
            yield ahead[0], ahead[1].result()


def rarely_taken(*outcomes: Outcome, least: int) -> list[str]:
    """Return the productions that all outcomes together took less than `least` times."""
    hits: Counter[tuple[str, str]] = Counter()
    for outcome in outcomes:
        hits.update(outcome.hits)
    return [
        f"{pattern!r}: {hits[kind, pattern]}"
        for kind, patterns in PRODUCTIONS.items()
        for pattern in patterns
        if hits[kind, pattern] < least
    ]


def one(engines: Engines, source: str, values: Any, delimiters: Delimiters) -> Comparison:
    """Compare one template."""
    (answers,) = engines.render([values], [(source, 0)], options=_options(delimiters))
    return compare(source, values, answers, delimiters)


def _options(delimiters: Delimiters) -> dict[str, bool]:
    return {
        "compat": delimiters.cookiecutter,
        "trim": delimiters.trim_blocks,
        "lstrip": delimiters.lstrip_blocks,
    }
