"""Macros, blocks, filters and methods render as both engines do (recorded from both)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from softwaretemplates.render import COOKIECUTTER, Delimiters, compile_template

VALUES = {
    "s": "hello World",
    "l": ["a", "b", "c"],
    "lo": [{"n": "x", "d": {"e": 2}}, {"n": "Y", "d": {"e": 1}}],
    "o": {"b": 2, "a": "x", "C": 1},
    "n": 1234.5678,
    "h": "<p>Hi <b>there</b></p>",
    "long": "the quick brown fox jumps",
}


@dataclass(frozen=True)
class Case:
    reason: str
    source: str
    text: str


CASES = [
    Case(
        "macros with defaults and keywords",
        "{% macro f(a, b='B', c=b) %}<${{ a }}${{ b }}${{ c }}>{% endmacro %}${{ f(1) }"
        "}${{ f(1, 2) }}${{ f(a=3, c=4) }}",
        "<1BB><122><3B4>",
    ),
    Case(
        "a macro sees the template's variables, not the loop's",
        "{% set t = 1 %}{% macro f() %}${{ t }}${{ x }}{% endmacro %}{% for x in [7] %}"
        "${{ f() }}{% endfor %}",
        "1",
    ),
    Case(
        "call gives its body to the macro",
        "{% macro box(t) %}[${{ t }}: ${{ caller() }}]{% endmacro %}{% call box('T') %}"
        "${{ values.s }}{% endcall %}",
        "[T: hello World]",
    ),
    Case(
        "call with arguments",
        "{% macro each(l) %}{% for i in l %}${{ caller(i, loop.index) }}{% endfor %}{% "
        "endmacro %}{% call(x, n=0) each(values.l) %}${{ n }}${{ x }};{% endcall %}",
        "1a;2b;3c;",
    ),
    Case(
        "filter blocks",
        "{% filter replace('l', 'L') %}${{ values.s }}!{% endfilter %}",
        "heLLo WorLd!",
    ),
    Case(
        "set blocks",
        "{% set x %}a ${{ values.s }}{% endset %}[${{ x | upper }}]",
        "[A HELLO WORLD]",
    ),
    Case(
        "switch falls through empty cases",
        "{% switch values.s %}{% case 'x' %}x{% case 'hello World' %}{% case 'y' %}foun"
        "d{% default %}none{% endswitch %}",
        "found",
    ),
    Case(
        "blocks render where they stand",
        "{% block b %}${{ values.s }}{% endblock %}",
        "hello World",
    ),
    Case(
        "an empty macro's result is true",
        "{% macro e() %}{% endmacro %}${{ 'y' if e() else 'n' }}${{ e() is string }}",
        "yfalse",
    ),
    Case(
        "sort by a path, both ways",
        "${{ values.lo | sort(attribute='d.e') | join(',', 'n') }} ${{ values.l | sort("
        "reverse=true) }}",
        "Y,x c,b,a",
    ),
    Case(
        "groupby and dictsort",
        "${{ values.lo | groupby('n') | dump }} ${{ values.o | dictsort }} ${{ values.o"
        " | dictsort(true, 'key') }}",
        '{"x":[{"n":"x","d":{"e":2}}],"Y":[{"n":"Y","d":{"e":1}}]} a,x,b,2,C,1 C,1,a,x,b,2',
    ),
    Case(
        "batch and slice",
        "${{ values.l | batch(2, '-') | dump }} ${{ values.l | slice(2) | dump }}",
        '[["a","b"],["c","-"]] [["a","b"],["c"]]',
    ),
    Case(
        "select and reject",
        "${{ [1, 2, 3] | select('odd') }} ${{ [1, 2, 3] | reject('divisibleby', 2) }} $"
        "{{ values.lo | selectattr('n') | length }}",
        "1,3 1,3 2",
    ),
    Case(
        "sum adds as JavaScript does",
        "${{ [1, 2] | sum }} ${{ values.lo | sum('n') }} ${{ [] | sum('x', 5) }}",
        "3 00xY 5",
    ),
    Case(
        "int, float and round",
        "${{ '12px' | int }} ${{ 'ff' | int(base=16) }} ${{ 'x' | int(7) }} ${{ '1.5e3x"
        "' | float }} ${{ 2.5 | round }} ${{ -2.5 | round }} ${{ 1.005 | round(2) }}",
        "12 255 7 1500 3 -2 1",
    ),
    Case("a method that brackets name is called", """${{ values.l["join"]("-") }}""", "a-b-c"),
    Case(
        "the end of a text, or of its first characters",
        "${{ values.s.endsWith('World') }} ${{ values.s.endsWith('hello', 5) }} ${{ "
        "values.s.endsWith('hello') }}",
        "true true false",
    ),
    Case("range counts down to what it leaves out", "${{ range(3, 0, -1) }}", "3,2,1"),
    Case(
        "int reads 0x where the base allows it",
        "${{ '0x1f' | int(0, 16) }} ${{ '-0Xa' | int(0, 16) }} ${{ '0x1f' | int }}",
        "31 -10 0",
    ),
    Case(
        "center and truncate",
        "[${{ 'ab' | center(7) }}] ${{ values.long | truncate(12) }} ${{ values.long | "
        "truncate(12, true, '!') }}",
        "[  ab   ] the quick... the quick br!",
    ),
    Case(
        "HTML",
        "${{ values.h | e }} ${{ values.h | striptags }} ${{ values.h | e | e | length "
        "}} ${{ 'a\\nb' | nl2br }}",
        "&lt;p&gt;Hi &lt;b&gt;there&lt;/b&gt;&lt;/p&gt; Hi there 46 a<br />\nb",
    ),
    Case(
        "URLs",
        "${{ 'a b/ü' | urlencode }} ${{ {a: 1, b: 'x y'} | urlencode }} ${{ 'see www.x."
        "org.' | urlize }}",
        'a%20b%2F%C3%BC a=1&b=x%20y see <a href="http://www.x.org">www.x.org</a>',
    ),
    Case(
        "wordcount",
        "${{ values.long | wordcount }}",
        "5",
    ),
    Case(
        "cycler and joiner",
        "{% set c = cycler('o', 'e') %}{% set j = joiner(', ') %}{% for x in values.l %"
        "}${{ j() }}${{ c.next() }}${{ x }}{% endfor %}",
        "oa, eb, oc",
    ),
    Case(
        "texts are cut",
        "${{ values.s.slice(-5) }} ${{ values.s.substring(4, 1) }} ${{ values.s.charAt("
        "4) }} ${{ values.s.split(' ', 1) }} ${{ values.s.lastIndexOf('l') }}",
        "World ell o hello 9",
    ),
    Case(
        "lists are changed in place for this rendering",
        "{% set _ = values.l.push('d') %}{% set _ = values.l.reverse() %}${{ values.l }"
        "} ${{ values.l.splice(1, 2) }} ${{ values.l }}",
        "d,c,b,a c,b d,a",
    ),
    Case(
        "numbers are written",
        "${{ values.n.toFixed(1) }} ${{ (0.000001).toFixed(7) }} ${{ values.n.toPrecisi"
        "on(2) }} ${{ values.n.toExponential(2) }} ${{ (255).toString(16) }} ${{ (1.45)"
        ".toFixed(1) }}",
        "1234.6 0.0000010 1.2e+3 1.23e+3 ff 1.4",
    ),
    Case(
        "raw with dashes",
        "a {%- raw -%} ${{ x }} {% endraw %} b",
        "a ${{ x }} b",
    ),
    Case(
        "parentheses hold a sequence",
        "${{ (1, 2) }}",
        "2",
    ),
    Case(
        "a map with one name takes no rounds",
        "{% for k in values.o %}x{% else %}none{% endfor %}",
        "none",
    ),
    Case(
        "set in a loop changes what is set outside, also as a loop's name",
        "{% set k = 1 %}{% for k, v in [[2, 3]] %}{% set k = 4 %}${{ k }}{% endfor %}${{ k }}",
        "44",
    ),
    Case(
        "other keywords become a map, as in Nunjucks",
        "${{ values.l | join(d='x') }}",
        "a[object Object]b[object Object]c",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_renders_as_both_engines_do(case: Case) -> None:
    assert compile_template(case.source).render({"values": VALUES}) == case.text


def test_empty_safe_text_is_indented_as_any_object() -> None:
    assert compile_template("[${{ '' | e | indent(2, true) }}]").render({}) == "[  ]"


def test_trim_blocks_drops_the_line_break_behind_a_raw_tag_with_a_dash() -> None:
    trim = Delimiters(trim_blocks=True)

    assert compile_template("{%- raw -%}\n  x\n{% endraw %}", trim).render({}) == "  x\n"


def test_dividing_by_minus_zero_turns_the_sign() -> None:
    assert (
        compile_template("${{ 2 / -0 }} ${{ -2 // -z }}").render({"z": 0}) == "-Infinity Infinity"
    )


def test_a_result_may_be_called() -> None:
    assert compile_template("[${{ joiner('-')() }}]").render({}) == "[]"


def test_lists_of_the_caller_are_never_changed() -> None:
    values = {"l": [3, 1, 2], "o": {"l": [1]}}
    source = "${{ values.l.sort() }}${{ values.l.push(9) }}${{ values.o.l.pop() }}"

    assert compile_template(source).render({"values": values}) == "1,2,341"
    assert values == {"l": [3, 1, 2], "o": {"l": [1]}}


def test_whole_numbers_beyond_2_53_are_doubles_everywhere() -> None:
    big = 2**53 + 1
    source = "${{ n.toFixed() }} ${{ n + 1 }} ${{ n === m }} ${{ n | string }} ${{ n | round }}"

    text = compile_template(source).render({"n": big, "m": big - 1})

    assert text == " ".join(
        ["9007199254740992", "9007199254740992", "true", *["9007199254740992"] * 2]
    )


def test_a_macro_keeps_nothing_between_renderings() -> None:
    template = compile_template("{% macro m(a) %}{% set b = a %}${{ b }}{% endmacro %}${{ m(n) }}")

    assert [template.render({"n": n}) for n in (1, 2)] == ["1", "2"]


@pytest.mark.parametrize(
    ("source", "text", "reason"),
    [
        ("{{ cookiecutter.o.get('a') }}{{ cookiecutter.o.get('z', 1) }}", "x1", "get"),
        ("{{ cookiecutter.o.keys() }} {{ cookiecutter.o.items() | dump }}",
         'b,a [["b",2],["a","x"]]', "keys and items"),
        ("{% set l = [] %}{% set _ = l.append(2) %}{{ l }}", "2", "append"),
        ("{{ True }} {{ False }} [{{ None }}]", "true false []", "Python's constants"),
        ("{{ cookiecutter.o | jsonify }}", '{"b":2,"a":"x"}', "jsonify"),
        ("${{ cookiecutter.o.b }}", "$2", "a dollar is text"),
    ],
)  # fmt: skip
def test_cookiecutter_mode(source: str, text: str, reason: str) -> None:
    context = {"cookiecutter": {"o": {"b": 2, "a": "x"}}}

    assert compile_template(source, COOKIECUTTER).render(context) == text, reason
