"""What the engines read differently, or what is wrong, is refused with place and way out."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from orderkit.core.render import (
    LimitError,
    Position,
    RenderError,
    UndefinedValueError,
    UnsupportedError,
    compile_template,
)
from orderkit.core.render.javascript import Closed


@dataclass(frozen=True)
class Case:
    reason: str
    source: str
    error: type[RenderError]


CASES = [
    Case("unknown filter", "${{ 1 | nope }}", RenderError),
    Case("a filter of Backstage that is not exact yet", "${{ 1 | round }}", UnsupportedError),
    Case("too many arguments", "${{ 1 | upper(2) }}", RenderError),
    Case("unknown test", "${{ 1 is boolean }}", UnsupportedError),
    Case("slices differ", "${{ values.l[1:2] }}", UnsupportedError),
    Case("exponents differ", "${{ 1e3 }}", UnsupportedError),
    Case("keyword arguments", "${{ values.l | join(d='x') }}", UnsupportedError),
    Case("regular expressions", "${{ r/a/ }}", UnsupportedError),
    Case("members called as literals differ", "${{ values.none }}", UnsupportedError),
    Case("tuples", "${{ (1, 2) }}", UnsupportedError),
    Case("methods old releases lack", "${{ values.s.replaceAll('a', 'b') }}", UnsupportedError),
    Case("macros", "{% macro m() %}{% endmacro %}", UnsupportedError),
    Case("set with a body", "{% set x %}a{% endset %}", UnsupportedError),
    Case("raw with dashes", "{%- raw -%}{% endraw %}", UnsupportedError),
    Case("include", "{% include 'x' %}", RenderError),
    Case("python's lines", "{%+ if x %}{% endif %}", RenderError),
    Case("an open tag", "a ${{ values.x", RenderError),
    Case("an open block", "{% if true %}", RenderError),
    Case("an open comment, as bash's ${#array}", "${#array[@]}", RenderError),
    Case("a comment's end alone", "a #} b", RenderError),
    Case("an open text", "${{ 'a }}", RenderError),
    Case("braces that end the tag", "${{ {'a': {'b': 1}} }}", RenderError),
    Case("words without an operator", "${{ a b }}", RenderError),
    Case("nothing in a tag", "${{ }}", RenderError),
    Case("adjacent texts", "${{ 'a' 'b' }}", RenderError),
    Case("a filter on undefined", "${{ values.q | trim }}", RenderError),
    Case("in without a list", "${{ 'a' in values.q }}", RenderError),
    Case("members every object has", "${{ values.constructor }}", RenderError),
    Case("Python's internals", "${{ values.__class__ }}x", UndefinedValueError),
    Case("calling what is no function", "${{ nofunction() }}", RenderError),
    Case("a map looped with one name", "{% for k in values.o %}{% endfor %}", RenderError),
    Case("a count that is no number", "${{ 'a' | replace('a', 'b', 'c') }}", RenderError),
    Case("an endless indent", "${{ 'a' | indent(1 / 0) }}", RenderError),
    Case("an endless dump", "${{ [1] | dump(1 / 0) }}", RenderError),
    Case("a range without bounds", "${{ range() }}", RenderError),
    Case("deep nesting", "${{ " + "(" * 500 + "1" + ")" * 500 + " }}", LimitError),
    Case("deep blocks", "{% if 1 %}" * 200 + "{% endif %}" * 200, LimitError),
    Case("deep loops", "{% for x in [1] %}" * 20 + "{% endfor %}" * 20, LimitError),
    Case("a giant range", "${{ range(1000000000) | length }}", LimitError),
    Case(
        "loops that never end",
        "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
        LimitError,
    ),
    Case("a giant source", "x" * (1 << 20) + "y", LimitError),
    Case("doubling", "{% set x = 'aaaaaaaaaaaaaaaa' %}" + "{% set x = x + x %}" * 30, LimitError),
    Case("giant output", "{% for a in range(99999) %}" + "x" * 99 + "{% endfor %}", LimitError),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_is_refused(case: Case) -> None:
    values = {"s": "text", "l": [1], "o": {"a": 1}}
    context = {"values": Closed(values) if case.error is UndefinedValueError else values}

    with pytest.raises(case.error) as refused:
        compile_template(case.source).render(context)

    assert type(refused.value) is case.error


def test_an_error_names_line_column_and_expression() -> None:
    with pytest.raises(RenderError) as refused:
        compile_template("a\nbc ${{ values.s | nope }}\n")

    assert refused.value.position == Position(2, 19)
    assert "${{ values.s | nope }}" in str(refused.value)
    assert "upper" in refused.value.hint


def test_an_error_while_rendering_names_its_statement() -> None:
    template = compile_template("one\n{% if true %}\n  ${{ values.s | join }}\n{% endif %}")

    with pytest.raises(RenderError, match=r":3:3: .*`\$\{\{ values\.s \| join \}\}`"):
        template.render({"values": {"s": "x"}})


@pytest.mark.parametrize(
    "source",
    ["${{ values.nme }}", "${{ values.nme ~ 'x' }}", "${{ values.nme | dump }}", "${{ vals.x }}"],
)
def test_a_value_never_passed_is_an_error_where_it_is_printed(source: str) -> None:
    template = compile_template(source)

    with pytest.raises(UndefinedValueError) as refused:
        template.render({"values": Closed({"name": "x"})}, strict=True)

    assert "name" in refused.value.hint


@pytest.mark.parametrize(
    "source",
    [
        "${{ values.nme | default('x') }}",
        "${{ values.nme or 'x' }}",
        "${{ 'y' if values.nme else 'x' }}",
        "{% if values.nme %}y{% else %}x{% endif %}",
        "${{ 'x' if values.nme is undefined }}",
        "${{ values.name.absent }}x",
    ],
)
def test_an_optional_value_handled_by_the_template_is_none(source: str) -> None:
    context = {"values": Closed({"name": {"present": 1}})}

    assert compile_template(source).render(context, strict=True) == "x"
