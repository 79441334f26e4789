"""Compares one rendering with what both JavaScript engines write."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from tests.engines.process import Answer, Failed

from softwaretemplates.render import Delimiters, RenderError, compile_template


class Verdict(Enum):
    """What a comparison found; the first four are what is promised."""

    EQUAL = "equal bytes"
    FAILS_ALIKE = "an error in all three"
    REFUSED_DIFFERENT = "refused, and the engines differ"
    REFUSED_ALIKE = "refused, though the engines agree"
    UNEQUAL = "other bytes than both engines"
    TOO_LENIENT = "rendered, though the engines differ or fail"
    CRASHED = "failed with an error that is not a RenderError"


PROMISED = frozenset(list(Verdict)[:4])


@dataclass(frozen=True, slots=True)
class Comparison:
    """One template through three engines."""

    verdict: Verdict
    source: str
    context: Any
    nunjitsu: Answer
    nunjucks: Answer
    ours: str | Exception

    def __str__(self) -> str:
        return (
            f"{self.verdict.value}: {self.source!r}\n    ours     {self.ours!r}\n"
            f"    nunjitsu {self.nunjitsu!r}\n    nunjucks {self.nunjucks!r}"
        )


def compare(
    source: str, context: Any, answers: tuple[Answer, Answer], delimiters: Delimiters
) -> Comparison:
    """Render with ours, and judge."""
    nunjitsu, nunjucks = answers
    ours: str | Exception
    try:
        ours = compile_template(source, delimiters).render(context)
    except Exception as error:  # noqa: BLE001 - which error it is decides the verdict
        ours = error
    return Comparison(_verdict(ours, nunjitsu, nunjucks), source, context, nunjitsu, nunjucks, ours)


def _verdict(ours: str | Exception, nunjitsu: Answer, nunjucks: Answer) -> Verdict:
    agree = isinstance(nunjitsu, str) and nunjitsu == nunjucks
    if isinstance(ours, str):
        if not agree:
            return Verdict.TOO_LENIENT
        return Verdict.EQUAL if ours == nunjitsu else Verdict.UNEQUAL
    if not isinstance(ours, RenderError):
        return Verdict.CRASHED
    if agree:
        return Verdict.REFUSED_ALIKE
    both_fail = isinstance(nunjitsu, Failed) and isinstance(nunjucks, Failed)
    return Verdict.FAILS_ALIKE if both_fail else Verdict.REFUSED_DIFFERENT
