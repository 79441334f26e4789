"""Texts of steps keep their values' types as nunjitsu's, or are refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.conformance.render.contexts import context
from tests.conformance.render.writing import Writer
from tests.conftest import Chances
from tests.engines.process import Engines

from orderkit.core.portal.render import RenderError, render_data

SHORT, FULL = 600, 40_000
VALUES = {"parameters": {"n": 5, "s": "5", "t": "true", "j": '{"a":1}', "l": [1], "nul": None}}
DROPPED = "dropped"


def _ours(source: str, values: Any) -> Any:
    return render_data({"key": source}, values, name="input").get("key", DROPPED)


def _theirs(engines: Engines, source: str, values: Any) -> Any:
    (found,) = engines.ask("values", contexts=[values], jobs=[(source, 0)])
    return found.get("error", DROPPED) if "value" not in found else found["value"]


@pytest.mark.parametrize(
    ("source", "expected", "reason"),
    [
        ("${{ parameters.n }}", 5, "a number stays one"),
        ("${{ parameters.s }}", "5", "a text of digits stays a text"),
        ("${{ parameters.t }}", "true", "a text true is not a boolean"),
        ("${{ parameters.j }}", '{"a":1}', "a text of JSON stays a text"),
        ("${{ parameters.l }}", [1], "a list stays one"),
        ("${{ parameters.nul }}", None, "null stays null"),
        ("${{ parameters }}", VALUES["parameters"], "a map stays one"),
        ("${{ parameters.q }}", DROPPED, "undefined drops the key"),
        (" ${{ parameters.n }}", " 5", "one blank makes it a text"),
        ("${{ parameters }}!", "[object Object]!", "maps in texts print as JavaScript's"),
        ("5", "5", "a literal text stays one"),
        ("", "", "so does an empty one"),
        ("${{ '' }}", "", "an empty value is kept"),
        ("{% if true %}5{% endif %}", "5", "a statement makes a text"),
        ("${{- parameters.n -}}", 5, "dashes change nothing"),
        ("${{\n parameters.n\n}}", 5, "nor do lines"),
        ("${{ '${{ parameters.n }}' }}", "${{ parameters.n }}", "a value is not rendered again"),
        ("${{ parameters.n === 5 }}", True, "a condition is a boolean"),
        ("${{ parameters.q or 7 }}", 7, "or returns a value"),
    ],
)
def test_row(engines: Engines, source: str, expected: Any, reason: str) -> None:
    assert _theirs(engines, source, VALUES) == expected, reason
    assert _ours(source, VALUES) == expected, reason


@pytest.mark.parametrize("lifelike", [True, False])
def test_generated_texts_keep_types_alike(
    engines: Engines, chances: Chances, *, lifelike: bool
) -> None:
    choices = chances.random(f"steps {lifelike}")
    writer = Writer(choices, lifelike=lifelike)
    contexts = [context(choices, lifelike=lifelike) for _ in range(20)]
    jobs = [
        (
            writer.expression() if choices.random() < 0.8 else writer.template(),
            choices.randrange(20),
        )
        for _ in range(chances.count(SHORT, FULL))
    ]
    unequal = []
    answers = engines.ask("values", contexts=contexts, jobs=jobs)
    for (source, at), found in zip(jobs, answers, strict=True):
        try:
            ours = _ours(source, contexts[at])
        except RenderError:
            continue
        if "error" in found or not _same(ours, found.get("value", DROPPED)):
            unequal.append((source, contexts[at], ours, found))

    assert not unequal, sorted(unequal, key=lambda one: len(one[0]))[:5]


def _same(ours: Any, theirs: Any) -> bool:
    """Compare as JSON does, telling true from 1."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_same(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    if isinstance(ours, float) and not math.isfinite(ours):
        return theirs is None  # JSON, which brings their values here, has no NaN
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    numbers = isinstance(ours, int | float) and isinstance(theirs, int | float)
    return float(ours) == float(theirs) if numbers else bool(ours == theirs)
