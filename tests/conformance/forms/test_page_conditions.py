"""Pages with ``when`` are shown and hidden as by Backstage's form and backend, values included."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from chances import Chances
from tests.engines.process import Engines

from softwaretemplates.form_answers import check_condition, shown_pages
from softwaretemplates.render import RenderError

SHORT, FULL = 1_500, 100_000
NAMES = ("a", "b", "c", "d")
CONDITIONS = (
    True, False, "", "  ", "parameters.a", "${{ parameters.b }}", " ${{ parameters.a === 1 }} ",
    "not parameters.a", "parameters.a == parameters.b", "parameters.c.a", "parameters.a.b.c",
    "parameters.b | length > 1", "parameters.a and parameters.b", "parameters.d or parameters.c",
    "parameters.a in ['x', 1]", "parameters.c | default('')", "parameters.a | safe", "[]", "{}",
    "parameters.b[0]", "parameters.b[0].a", "0 / 0", "other", "secrets.a",
)  # fmt: skip

REFERENCES = (
    "#/definitions/d", "#/definitions/d/properties/a", "#/nowhere", "#", "%", "#/%zz", "#/%61",
)  # fmt: skip


def page(*names: str, when: Any = None, **schema: Any) -> dict[str, Any]:
    condition = {} if when is None else {"when": when}
    return {**condition, "properties": {name: {"type": "string"} for name in names}, **schema}


CLOUD = page("cloud")
AWS = page("region", when="${{ parameters.cloud === 'aws' }}", required=["region"])
GCP = page("project", when="parameters.cloud === 'gcp'", required=["project"])


@pytest.mark.parametrize(
    ("pages", "values", "shown", "kept"),
    [
        pytest.param(
            [CLOUD, AWS], {"cloud": "aws"}, [1, 1], {"cloud": "aws"}, id="the condition holds"
        ),
        pytest.param(
            [CLOUD, AWS], {"cloud": "x", "region": "r"}, [1, 0], {"cloud": "x"}, id="it does not"
        ),
        pytest.param(
            [CLOUD, AWS, GCP], {"cloud": "gcp"}, [1, 0, 1], {"cloud": "gcp"}, id="one of two"
        ),
        pytest.param(
            [AWS, CLOUD], {"cloud": "aws"}, [1, 1], {"cloud": "aws"}, id="later answers count too"
        ),
        pytest.param(
            [page("a", when=False), CLOUD], {"a": "x"}, [0, 1], {}, id="a boolean is a condition"
        ),
        pytest.param(
            [page("a", when="")], {"a": "x"}, [1], {"a": "x"}, id="an empty one always holds"
        ),
        pytest.param(
            [CLOUD, AWS, page("x", when="parameters.region")],
            {"cloud": "gcp", "region": "r", "x": "y"},
            [1, 0, 0],
            {"cloud": "gcp"},
            id="answers of a hidden page hide the next",
        ),
        pytest.param(
            [CLOUD, AWS, page("region")],
            {"cloud": "gcp", "region": "r"},
            [1, 0, 1],
            {"cloud": "gcp", "region": "r"},
            id="a shown page asks for it too",
        ),
        pytest.param(
            [page("a", when=False), page(additionalProperties=True)],
            {"a": "x"},
            [0, 1],
            {"a": "x"},
            id="a page that takes anything keeps everything",
        ),
        pytest.param(
            [
                {"when": False, "properties": {"o": page("a", "b")}},
                {"properties": {"o": page("a")}},
            ],
            {"o": {"a": "x", "b": "y", "c": "z"}},
            [0, 1],
            {"o": {"a": "x", "c": "z"}},
            id="members of objects are told apart",
        ),
        pytest.param(
            [page(when=False, allOf=[{"$ref": "#/definitions/d"}], definitions={"d": page("a")})],
            {"a": "x", "b": "y"},
            [0],
            {"b": "y"},
            id="references and branches count",
        ),
        pytest.param(
            [page("a", when=False, allOf=[{"$ref": "#/nowhere"}])],
            {"a": "x"},
            [0],
            {"a": "x"},
            id="a page that cannot be read removes nothing",
        ),
    ],
)
def test_row(
    engines: Engines,
    pages: list[dict[str, Any]],
    values: dict[str, Any],
    shown: list[int],
    kept: dict[str, Any],
) -> None:
    expected = {"visible": [bool(one) for one in shown], "values": kept}

    assert engines.ask("pages", jobs=[(pages, values)]) == [expected]
    assert shown_pages(pages, values) == (expected["visible"], kept)


def test_generated_forms_show_the_same_pages_and_keep_the_same_values(
    engines: Engines, chances: Chances
) -> None:
    choices = chances.random("pages")
    jobs = [(_pages(choices), _object(choices, 0)) for _ in range(chances.count(SHORT, FULL))]
    for pages, _ in jobs:
        for one in pages:
            check_condition(one, "when")

    different, hidden, removed, refused = [], 0, 0, 0
    for (pages, values), theirs in zip(jobs, engines.ask("pages", jobs=jobs), strict=True):
        hidden += not all(theirs["visible"])
        removed += theirs["values"] != values
        try:
            ours = shown_pages(pages, values)
        except RenderError:
            refused += 1  # Backstage shows a page whose condition fails
            continue
        if ours != (theirs["visible"], theirs["values"]):
            different.append((pages, values, ours, theirs))

    assert not different, min(different, key=lambda one: len(repr(one)))
    assert min(hidden, removed) > len(jobs) / 10
    assert refused < len(jobs) / 20


def _pages(choices: random.Random) -> list[dict[str, Any]]:
    pages = []
    for _ in range(choices.randint(1, 4)):
        one = {"properties": {}, **_schema(choices, 0), "definitions": {"d": _schema(choices, 2)}}
        pages.append({**one, "when": choices.choice(CONDITIONS)} if choices.random() < 0.7 else one)
    return pages


def _schema(choices: random.Random, depth: int) -> dict[str, Any]:
    """Return any schema that names members; deep ones are small."""
    if depth > 3:
        return {}

    def inner() -> dict[str, Any]:
        return _schema(choices, depth + 1)

    schema: dict[str, Any] = {}
    parts: dict[str, Callable[[], Any]] = {
        "items": lambda: choices.choice([inner(), [inner(), inner()]]),
        "additionalItems": inner,
        "additionalProperties": lambda: choices.choice([True, False, inner()]),
        "allOf": lambda: [inner(), inner()],
        "oneOf": lambda: [inner(), True],
        "anyOf": lambda: [inner()],
        "if": inner,
        "then": inner,
        "else": inner,
        "dependencies": lambda: {"a": inner(), "b": ["c"]},
        "$ref": lambda: choices.choice(REFERENCES),
    }
    if choices.random() < 0.9 - depth / 5:
        schema["properties"] = {name: inner() for name in NAMES if choices.random() < 0.5}
    for key, made in parts.items():
        if choices.random() < (0.4 / (depth + 1) if key == "items" else 0.1):
            schema[key] = made()
    return schema


def _value(choices: random.Random, depth: int) -> Any:
    kind = choices.random()
    if kind < 0.2 and depth < 3:
        return _object(choices, depth)
    if kind < 0.4 and depth < 3:
        return [_value(choices, depth + 1) for _ in range(choices.randint(0, 3))]
    return choices.choice([None, "", "x", "y", 0, 1, True, False])


def _object(choices: random.Random, depth: int) -> dict[str, Any]:
    return {name: _value(choices, depth + 1) for name in NAMES if choices.random() < 0.7}
