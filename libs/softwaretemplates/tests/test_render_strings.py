"""Strings render as Nunjucks 3.2.4 and Nunjitsu 0.7.0 both render them (recorded from both)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from softwaretemplates.render import COOKIECUTTER, Delimiters, compile_template

VALUES = {
    "s": "hello World",
    "empty": "",
    "n": 3,
    "neg": -7,
    "f": 1.5,
    "whole": 2.0,
    "t": True,
    "no": False,
    "nul": None,
    "l": ["a", "b", "c"],
    "no_items": [],
    "nested": ["a", ["b", None, "c"]],
    "o": {"k": "v", "10": "x", "2": "y"},
    "dash-ed": {"deep": "yes"},
    "lo": [{"n": "x"}, {"n": "y"}],
    "padded": "  pad \n",
    "repoUrl": "gitea.example:3000?owner=team-a&repo=cart",
}


@dataclass(frozen=True)
class Case:
    reason: str
    source: str
    text: str


CASES = [
    Case(
        "literal braces without the dollar are text", "a {{ .Values.x }} b", "a {{ .Values.x }} b"
    ),
    Case("a final newline and CRLF are kept", "${{ values.n }}\r\nx\r\n", "3\r\nx\r\n"),
    Case("undefined and null print nothing", "[${{ values.q.r.s }}${{ values.nul }}]", "[]"),
    Case("booleans are lower case", "${{ values.t }} ${{ values.no }}", "true false"),
    Case("a whole double has no fraction", "${{ values.whole }} ${{ values.f }}", "2 1.5"),
    Case("lists print joined, also nested", "${{ values.nested }}", "a,b,,c"),
    Case("maps print as JavaScript's objects", "${{ values.o }}", "[object Object]"),
    Case(
        "dump is compact, index keys first", "${{ values.o | dump }}", '{"2":"y","10":"x","k":"v"}'
    ),
    Case("dump keeps letters and angle brackets", '${{ "é<b>" | dump }}', '"é<b>"'),
    Case(
        "dump indents",
        "${{ values.lo | dump(1) }}",
        '[\n {\n  "n": "x"\n },\n {\n  "n": "y"\n }\n]',
    ),
    Case("strict equality exists", "${{ values.s === 'x' }} ${{ values.n !== '3' }}", "false true"),
    Case("loose equality converts", "${{ '3' == values.n }} ${{ none == values.q }}", "true true"),
    Case("and/or return values", "${{ values.n === 3 and 'y' or 'z' }}", "y"),
    Case("or falls back", "${{ values.empty or values.s }}", "hello World"),
    Case(
        "empty lists and maps are true", "${{ 'y' if [] else 'n' }}${{ 'y' if {} else 'n' }}", "yy"
    ),
    Case("not binds tighter than ==", "${{ not values.n == 3 }}", "false"),
    Case("~ has JavaScript's place", "${{ 1 + 2 ~ 3 }}", "33"),
    Case("plus joins texts", "${{ values.s + '/' + values.n }}", "hello World/3"),
    Case("% keeps the sign", "${{ values.neg % 3 }}", "-1"),
    Case("comparisons do not chain", "${{ 3 > 2 > 1 }}", "false"),
    Case("** and // are calls", "${{ 2 ** 3 ** 2 }} ${{ 7 // 2 }} ${{ -7 // 2 }}", "64 3 -4"),
    Case("division by zero is Infinity", "${{ 1 / 0 }} ${{ 0 / 0 }}", "Infinity NaN"),
    Case("numbers are doubles", "${{ 0.1 + 0.2 }} ${{ 10 ** 21 }}", "0.30000000000000004 1e+21"),
    Case(
        "a power beyond the doubles",
        "${{ 10 ** 309 }} ${{ (-10) ** 309 }} ${{ (-10) ** 310 }} ${{ 0.5 ** -2000 }}",
        "Infinity -Infinity Infinity Infinity",
    ),
    Case("quoted members with dashes", "${{ values['dash-ed'].deep }}", "yes"),
    Case(
        "members of a filter's result", "${{ (values.repoUrl | parseRepoUrl)['owner'] }}", "team-a"
    ),
    Case("projectSlug", "${{ values.repoUrl | projectSlug }}", "team-a/cart"),
    Case("pick", "${{ values | pick('lo[1].n') }}", "y"),
    Case("parseEntityRef", "${{ ('group:default/x' | parseEntityRef).name }}", "x"),
    Case("inline if without else is empty text", "[${{ 'x' if values.q }}]", "[]"),
    Case(
        "default only for undefined",
        "${{ values.q | default('d') }}${{ values.nul | default('d') }}",
        "d",
    ),
    Case("default for falsy with true", "${{ values.empty | default('d', true) }}", "d"),
    Case("a blank before the parenthesis", "${{ values.s | replace ('l', 'L') }}", "heLLo WorLd"),
    Case("title lowers the rest", "${{ 'foo-BAR baz' | title }}", "Foo-bar Baz"),
    Case("join by attribute", "${{ values.lo | join('+', 'n') }}", "x+y"),
    Case("indent also pads blank lines", "${{ 'a\\n\\nb' | indent(2) }}", "a\n  \n  b"),
    Case("trim", "[${{ values.padded | trim }}]", "[pad]"),
    Case("replaced first only by the method", "${{ values.s.replace('l', 'L') }}", "heLlo World"),
    Case(
        "in a list, a text, a map", "${{ 'b' in values.l }}${{ 'z' not in values.s }}", "truetrue"
    ),
    Case("tests", "${{ values.q is undefined }} ${{ values.n is not string }}", "true true"),
    Case("string escapes are six only", "${{ '\\x41\\d\\n' }}", "x41d\n"),
    Case(
        "loops know where they are",
        "{% for x in values.l %}${{ loop.index }}${{ x }}"
        "{% if not loop.last %},{% endif %}{% endfor %}",
        "1a,2b,3c",
    ),
    Case(
        "an empty loop takes else",
        "{% for x in values.no_items %}x{% else %}none{% endfor %}",
        "none",
    ),
    Case("null in a loop is empty", "{% for x in values.nul %}x{% endfor %}.", "."),
    Case(
        "maps loop by key and value",
        "{% for k, v in values.o %}${{ k }}${{ v }} {% endfor %}",
        "2y 10x kv ",
    ),
    Case(
        "set in a loop changes the outer variable",
        "{% set n = 0 %}{% for x in values.l %}{% set n = n + 1 %}{% endfor %}${{ n }}",
        "3",
    ),
    Case(
        "set in a loop stays there otherwise",
        "{% for x in [1] %}{% set m = 1 %}{% endfor %}[${{ m }}]",
        "[]",
    ),
    Case("elif and elseif", "{% if values.no %}a{% elseif values.t %}b{% else %}c{% endif %}", "b"),
    Case("dashes trim", "a  {%- if true -%}  b  {%- endif -%}  c", "abc"),
    Case("a dash in a tag of a value", "a  ${{- 'b' -}}  c", "abc"),
    Case("comments vanish, dashes in them trim", "a {#- ${{ x }} -#} b", "ab"),
    Case(
        "raw is text", "{% raw %}${{ github.sha }} {% x %}{% endraw %}", "${{ github.sha }} {% x %}"
    ),
    Case("a literal mark as a text", "${{ '${{' }} github.sha }}", "${{ github.sha }}"),
    Case("range", "{% for i in range(2, 8, 3) %}${{ i }} {% endfor %}", "2 5 "),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_renders_as_both_engines_do(case: Case) -> None:
    assert compile_template(case.source).render({"values": VALUES}) == case.text


def test_a_value_is_never_rendered_again() -> None:
    values = {"evil": "${{ values.secret }}{% raw %}", "secret": "x"}

    assert compile_template("${{ values.evil }}").render({"values": values}) == values["evil"]


def test_rendering_changes_neither_context_nor_template() -> None:
    context = {"values": {"n": 1}}
    template = compile_template("{% set extra = values.n %}${{ extra }}")

    assert (template.render(context), template.render(context)) == ("1", "1")
    assert context == {"values": {"n": 1}}


def test_the_same_source_is_compiled_once() -> None:
    assert compile_template("${{ a }} once") is compile_template("${{ a }} once")


def test_cookiecutter_delimiters_leave_a_dollar() -> None:
    template = compile_template("${{ cookiecutter.x }}", COOKIECUTTER)

    assert template.render({"cookiecutter": {"x": "1"}}) == "$1"


def test_trim_and_lstrip_blocks_swallow_lines_of_blocks() -> None:
    source = "a\n  {% if true %}\n  b\n  {% endif %}\nc\n"
    both = Delimiters(trim_blocks=True, lstrip_blocks=True)

    assert compile_template(source, both).render({}) == "a\n  b\nc\n"
