"""What the engines read differently, or what is wrong, is refused with place and way out."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from softwaretemplates.render import (
    LimitError,
    Position,
    RenderError,
    UndefinedValueError,
    UnsupportedError,
    compile_template,
)
from softwaretemplates.render.javascript import Closed


@dataclass(frozen=True)
class Case:
    reason: str
    source: str
    error: type[RenderError]


CASES = [
    Case("unknown filter", "${{ 1 | nope }}", RenderError),
    Case("a filter with a random result", "${{ [1] | random }}", UnsupportedError),
    Case("too many arguments", "${{ 1 | upper(2) }}", RenderError),
    Case("unknown test", "${{ 1 is boolean }}", UnsupportedError),
    Case("slices differ", "${{ values.l[1:2] }}", UnsupportedError),
    Case("exponents differ", "${{ 1e3 }}", UnsupportedError),
    Case("keyword arguments of functions", "${{ range(stop=3) }}", UnsupportedError),
    Case("keyword arguments of methods", "${{ values.s.split(separator='x') }}", UnsupportedError),
    Case("regular expressions", "${{ r/a/ }}", UnsupportedError),
    Case("members called as literals differ", "${{ values.none }}", UnsupportedError),
    Case("a call of what is not a function", "${{ 'a'() }}", RenderError),
    Case("methods old releases lack", "${{ values.s.replaceAll('a', 'b') }}", UnsupportedError),
    Case(
        "a macro in a loop's else part",
        "{% for x in [] %}{% else %}{% macro m() %}{% endmacro %}{% endfor %}",
        UnsupportedError,
    ),
    Case("a dot without a name", "${{ values. }}", RenderError),
    Case(
        "a splice of undefined many",
        "${{ values.l.splice(0, values.missing) }}",
        UnsupportedError,
    ),
    Case("a set with two values", "{% set x = 1 2 %}", RenderError),
    Case("a set block of two names without a comma", "{% set x y %}a{% endset %}", RenderError),
    Case("a set block whose tag trims", "{% set x -%} a{% endset %}", UnsupportedError),
    Case(
        "a dash behind blanks of raw",
        "{% raw %}a {% endraw %}{%- if 1 %}{% endif %}",
        UnsupportedError,
    ),
    Case("a break in endraw", "{% raw %}a{% endraw\n%}", UnsupportedError),
    Case(
        "reserved names, also unused",
        "{% if 0 %}${{ values.constructor }}{% endif %}",
        UnsupportedError,
    ),
    Case("reserved keys", "${{ {'__proto__': 1} }}", UnsupportedError),
    Case(
        "text before the first case", "{% switch 1 %} {% case 1 %}{% endswitch %}", UnsupportedError
    ),
    Case(
        "a switch without a case", "{% switch 1 %}{% default %}a{% endswitch %}", UnsupportedError
    ),
    Case(
        "a case of trimmed blanks",
        "{% switch 1 %}{% case 1 -%} {%- case 2 %}b{% endswitch %}",
        UnsupportedError,
    ),
    Case(
        "set in a filter block",
        "{% filter upper %}{% set x = 1 %}{% endfilter %}",
        UnsupportedError,
    ),
    Case(
        "set in a loop's else",
        "{% for x in [] %}{% else %}{% set y = 1 %}{% endfor %}",
        UnsupportedError,
    ),
    Case(
        "a loop's variable in its else",
        "{% for x in [] %}{% else %}${{ x }}{% endfor %}",
        UnsupportedError,
    ),
    Case("a loop variable called loop", "{% for loop in [] %}{% endfor %}", UnsupportedError),
    Case(
        "a block in a macro",
        "{% macro m() %}{% block b %}{% endblock %}{% endmacro %}",
        UnsupportedError,
    ),
    Case(
        "two blocks of one name",
        "{% block b %}{% endblock %}{% block b %}{% endblock %}",
        RenderError,
    ),
    Case("a call of a function", "{% call range() %}{% endcall %}", UnsupportedError),
    Case("a call of no call", "{% call values.s %}{% endcall %}", UnsupportedError),
    Case("a parameter called caller", "{% macro m(caller) %}{% endmacro %}", UnsupportedError),
    Case(
        "a name that call block and macro both have",
        "{% macro m(a) %}${{ caller() }}{% endmacro %}{% call m(1) %}${{ a }}{% endcall %}",
        UnsupportedError,
    ),
    Case(
        "macros that never end",
        "{% macro m() %}${{ m() }}{% endmacro %}${{ m() }}",
        LimitError,
    ),
    Case("printing a macro", "{% macro m() %}{% endmacro %}${{ m }}", UnsupportedError),
    Case("the items of safe text", "{% for c in values.s | safe %}{% endfor %}", UnsupportedError),
    Case("sorting text and numbers", "${{ ['a', 1] | sort }}", UnsupportedError),
    Case("half of a character", "${{ '\U0001f600' | first }}", UnsupportedError),
    Case("tags in tags", "${{ '<<b>b>' | striptags }}", UnsupportedError),
    Case("a dollar in a replacement", "${{ values.s.replace('t', '$') }}", UnsupportedError),
    Case("a list in itself", "{% set l = [] %}${{ l.push(l) }}", RenderError),
    Case("a list that doubles", "{% set l = [1] %}" + "{% set l = l.concat(l) %}" * 30, LimitError),
    Case("include", "{% include 'x' %}", RenderError),
    Case("python's lines", "{%+ if x %}{% endif %}", UnsupportedError),
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
    Case("members every object has", "${{ values.toString }}", UnsupportedError),
    Case("Python's internals", "${{ values.__class__ }}x", UndefinedValueError),
    Case("calling what is not a function", "${{ nofunction() }}", RenderError),
    Case("three names over a map", "{% for a, b, c in values.o %}{% endfor %}", UnsupportedError),
    Case("a count that is not a number", "${{ 'a' | replace('a', 'b', 'c') }}", RenderError),
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
    Case("a giant source", "x" * (1 << 24) + "y", LimitError),
    Case("doubling", "{% set x = 'aaaaaaaaaaaaaaaa' %}" + "{% set x = x + x %}" * 30, LimitError),
    Case("giant output", "{% for a in range(99999) %}" + "x" * 199 + "{% endfor %}", LimitError),
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
