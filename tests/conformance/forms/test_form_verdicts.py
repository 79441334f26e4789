"""
Random forms and answers: the verdict of the form's ajv and the backend's jsonschema, or refused.

Where the two disagree about a value, ours must not take it; where one of them refuses the
schema itself, ours must too. The figures stand at the end of the report.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from chances import Chances
from tests.conformance.forms.schemas import PATTERNS, TEXTS, Forms
from tests.engines.process import Engines

from ground.regular_expressions import compile_pattern
from softwaretemplates.form_schema import SchemaError, accepts, check

SHORT, FULL, PER_SCHEMA, PATTERN_COUNT = 2_000, 100_000, 4, 1_000
JUDGED_LEAST = 0.8
Figure = Callable[[str], None]


class Verdict(Enum):
    ACCEPTED = "accepted by all"
    WRONG = "refused by all"
    DISAGREE = "form and backend disagree: not accepted"
    SCHEMA_BAD = "schema refused, as by the form or the backend"
    SCHEMA_REFUSED = "schema refused, though both read it"
    UNEQUAL = "another verdict"


@dataclass(frozen=True, slots=True)
class Judged:
    verdict: Verdict
    schema: Any
    value: Any
    theirs: Any
    ours: bool | str


def _judge(schema: Any, value: Any, theirs: dict[str, Any]) -> Judged:
    ours: bool | str
    try:
        check(schema)
        ours = accepts(schema, value)
    except SchemaError as error:
        ours = str(error)
    return Judged(_verdict(ours, theirs["jsonschema"], theirs["ajv"]), schema, value, theirs, ours)


def _verdict(ours: bool | str, backend: Any, form: Any) -> Verdict:  # noqa: FBT001 - a verdict
    judged = isinstance(backend, bool) and isinstance(form, bool)
    if isinstance(ours, str):
        return Verdict.SCHEMA_REFUSED if judged else Verdict.SCHEMA_BAD
    if not judged or ours != (backend and form):
        return Verdict.UNEQUAL
    if backend != form:
        return Verdict.DISAGREE
    return Verdict.ACCEPTED if ours else Verdict.WRONG


@pytest.fixture(scope="module")
def judged(engines: Engines, chances: Chances, figure: Figure) -> list[Judged]:
    choices = chances.random("forms")
    forms = Forms(choices)
    found: list[Judged] = []
    count = chances.count(SHORT, FULL)
    while len(found) < count:
        schemas = [forms.schema() for _ in range(250)]
        jobs = [(schema, forms.value(schema)) for schema in schemas for _ in range(PER_SCHEMA)]
        answers = engines.ask("judge", jobs=jobs)
        found += [
            _judge(schema, value, theirs)
            for (schema, value), theirs in zip(jobs, answers, strict=True)
        ]
    counts = Counter(one.verdict for one in found)
    lines = [f"{counts[v]:7} {counts[v] / len(found):7.2%}  {v.value}" for v in Verdict]
    figure("\n".join([f"{len(found)} pairs of a schema and a value", *lines]))
    return found


def test_every_verdict_is_theirs(judged: list[Judged]) -> None:
    unequal = [one for one in judged if one.verdict is Verdict.UNEQUAL]
    unequal.sort(key=lambda one: len(repr(one.schema)) + len(repr(one.value)))

    assert not unequal, "\n".join(map(repr, unequal[:10]))


def test_most_schemas_are_judged(judged: list[Judged]) -> None:
    """Refusing all would prove nothing."""
    counts = Counter(one.verdict for one in judged)

    assert counts[Verdict.SCHEMA_REFUSED] <= (1 - JUDGED_LEAST) * len(judged)
    assert min(counts[Verdict.ACCEPTED], counts[Verdict.WRONG]) >= len(judged) / 10


_PARTS = (
    "a", "b", "[a-z]", "[^a]", r"\d", r"\w", r"\s", r"\S", ".", "(a|b)", "(?:ab)", "^", "$", "*",
    "+", "?", "{2}", "{1,}",
    "{,2}", "|", r"\.", r"\-", r"\_", r"\/", "[a-]", r"[\w-]", r"[\w-z]", "[+--]", "[[]", "[]]",
    "[^]", "[]", r"\b", r"\B",
    "(?=a)", "(?!a)", "(?<=a)", "(?<!b)", "-", "é", "😀", r"\u00e9", r"\x61", r"\1", "(", ")", "[",
    "]", "{", "}", " ", "#",
    r"[\s]", r"[^\s]", r"[\S]", r"[\d.]", "&&", "[&&a]", r"\n", r"[\b]", r"\0", r"\cA", "++",
    "(?i:a)", "(?P<a>b)", "\n", r"\Z",
)  # fmt: skip


def test_patterns_match_as_in_javascript_or_are_refused(
    engines: Engines, chances: Chances, figure: Figure
) -> None:
    choices = chances.random("patterns")
    jobs = [_pattern_job(choices) for _ in range(chances.count(PATTERN_COUNT, FULL))]
    refused, unequal = 0, []
    for (source, text), (unicode, _) in zip(jobs, engines.ask("match", jobs=jobs), strict=True):
        try:
            ours = bool(compile_pattern(source).search(text))
        except ValueError:
            refused += unicode is not None
            continue
        if ours != unicode:
            unequal.append((source, text, unicode, ours))
    figure(f"{len(jobs)} patterns, {refused / len(jobs):.1%} refused though JavaScript reads them")

    assert not unequal, sorted(unequal, key=lambda one: len(one[0]))[:10]


def _pattern_job(choices: random.Random) -> tuple[str, str]:
    if choices.random() < 0.1:
        return choices.choice(PATTERNS), choices.choice(TEXTS)
    source = "".join(choices.choices(_PARTS, k=choices.randint(1, 5)))
    text = "".join(choices.choices("aabbz_-. 1é😀\n\u2028\u00a0#&+,[]", k=choices.randint(0, 6)))
    return source, text
