"""Texts of steps keep their values' types as nunjitsu's, or are refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from chances import Chances
from tests.conformance.render.contexts import context
from tests.conformance.render.writing import Writer
from tests.engines.process import Engines

from softwaretemplates.render import RenderError, render_data

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
        ("", DROPPED, "an empty one drops the key"),
        ("${{ parameters.q }}${{ parameters.q }}", DROPPED, "and so does an empty text"),
        ("${{ '' }}", "", "an empty value is kept"),
        ("${{ 0 / 0 }}", None, "JSON has no NaN"),
        ("${{ [1 / 0] }}", [None], "nor an infinite number, in a list either"),
        ("{% if true %}5{% endif %}", 5, "a block of a number is one"),
        ("{% if false %}true{% else %} false{% endif %}", False, "a block of a boolean is one"),
        ("{% if true %}5{% endif %} ", "5 ", "but not with a blank behind it"),
        ("{# none #}{% if true %}5{% endif %}", 5, "a comment is nothing"),
        ("{% if false %}5{% endif %}", DROPPED, "a block without text drops the key"),
        ("{% set x = 1 %}", DROPPED, "so does one that prints nothing"),
        ("{% raw %}5{% endraw %}", "5", "raw text is a text"),
        ("{% if true %}${{ parameters.s }}{% endif %}", "5", "a value in a block keeps its type"),
        ("{% if true %}${{ parameters }}{% endif %}", VALUES["parameters"], "a map too"),
        ("{% if true %}${{ parameters.nul }}{% endif %}", None, "and null"),
        ("{% if true %}${{ '' }}{% endif %}", "", "and an empty text"),
        ("{% if true %}${{ '5' | safe }}{% endif %}", "5", "and a safe one"),
        ("{% if true %}${{ parameters }}!{% endif %}", "[object Object]!", "but no text around it"),
        ("{% if true %}[${{ parameters.s }}]{% endif %}", ["5"], "JSON is read with its values"),
        ("{% for i in [1, 2] %}${{ i }}{% endfor %}", 12, "a loop is a block"),
        ("{% switch 1 %}{% case 1 %}${{ parameters.s }}{% endswitch %}", "5", "a switch too"),
        ("{% block b %}${{ parameters.s }}{% endblock %}", "5", "and a block of that name"),
        ("{% filter upper %}5{% endfilter %}", "5", "what a filter made is a text"),
        (
            "{% if true %}{% set x %}${{ parameters.n }}{% endset %}${{ x }}{% endif %}",
            "5",
            "so is what a variable holds",
        ),
        ("{% if true %}NaN{% endif %}", "NaN", "NaN is not JSON"),
        ("{% if true %}5.0{% endif %}", 5, "numbers are doubles"),
        (
            "{% if true %}12345678901234567890{% endif %}",
            float(12345678901234567890),
            "large ones too",
        ),
        ("${{- parameters.n -}}", 5, "dashes change nothing"),
        ("${{\n parameters.n\n}}", 5, "nor do lines"),
        ("${{ '${{ parameters.n }}' }}", "${{ parameters.n }}", "a value is not rendered again"),
        ("${{ parameters.n === 5 }}", True, "a condition is a boolean"),
        ("${{ parameters.q or 7 }}", 7, "or returns a value"),
    ],
)
def test_row(engines: Engines, source: str, expected: Any, reason: str) -> None:
    assert _same(expected, _theirs(engines, source, VALUES)), reason
    assert _same(_ours(source, VALUES), expected), reason


@pytest.mark.parametrize("lifelike", [True, False])
def test_generated_texts_keep_types_alike(
    engines: Engines, chances: Chances, *, lifelike: bool
) -> None:
    choices = chances.random(f"steps {lifelike}")
    writer = Writer(choices, lifelike=lifelike)
    contexts = [context(choices, lifelike=lifelike) for _ in range(20)]
    writers: tuple[Callable[[], str], ...] = (
        *[writer.expression] * 3,
        writer.template,
        lambda: f"{{% if true %}}{writer.template()}{{% endif %}}",
    )
    jobs = [
        (choices.choice(writers)(), choices.randrange(20))
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
