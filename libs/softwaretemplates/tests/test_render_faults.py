"""What a template cannot do with a value, in the words of the error, and what it may just do."""

from __future__ import annotations

import pytest

from softwaretemplates.render import (
    BACKSTAGE,
    COOKIECUTTER,
    LimitError,
    RenderError,
    UnsupportedError,
    compile_template,
)

VALUES = {"s": "text", "l": [1, [2, [3]]], "o": {"a": 1, "items": 2}, "n": None}
SAFE = "the result of a macro, of `safe` or of `escape` in {} is refused"
FUNCTION = "a function as a value in {} is refused"
ARGUMENT = "this argument of '{}' is refused"
NO_ADDRESS = "parseRepoUrl: '{}' is not an address of a repository"
NO_REFERENCE = "parseEntityRef: '{}' is not an entity reference"
NULL_MEMBER = "filter '{}' cannot read an attribute of null or undefined"

WRONG = [
    ("'ftp://x' | parseRepoUrl", NO_ADDRESS.format("ftp://x")),
    ("'1.2.3.4.5?repo=r' | parseRepoUrl", NO_ADDRESS.format("1.2.3.4.5?repo=r")),
    ("'1.2.3.256?repo=r' | parseRepoUrl", NO_ADDRESS.format("1.2.3.256?repo=r")),
    ("'1.2.3.04?repo=r' | parseRepoUrl", NO_ADDRESS.format("1.2.3.04?repo=r")),
    ("'h?owner=o' | parseRepoUrl", "parseRepoUrl: 'h?owner=o' has no repo"),
    (
        "'github.com?repo=r' | parseRepoUrl",
        "parseRepoUrl: 'github.com?repo=r' has no owner",
    ),
    (
        "'dev.azure.com?repo=r' | parseRepoUrl",
        "parseRepoUrl: 'dev.azure.com?repo=r' has no project",
    ),
    (
        "'bitbucket.org?repo=r&project=p' | parseRepoUrl",
        "parseRepoUrl: 'bitbucket.org?repo=r&project=p' has no workspace",
    ),
    ("1 | parseEntityRef", "parseEntityRef: 1 is not an entity reference"),
    ("{'name': 'n'} | parseEntityRef", 'parseEntityRef: {"name":"n"} has no kind'),
    ("{'kind': 'k'} | parseEntityRef", 'parseEntityRef: {"kind":"k"} has no name'),
    ("{'kind': 1, 'name': 'n'} | parseEntityRef", "parseEntityRef: {"),
    ("':n' | parseEntityRef", NO_REFERENCE.format(":n")),
    ("'a:/n' | parseEntityRef", NO_REFERENCE.format("a:/n")),
    ("'a:b/' | parseEntityRef", NO_REFERENCE.format("a:b/")),
    ("range('a', 2)", "range takes numbers"),
    ("range(1, 'a')", "range takes numbers"),
    ("range(1, 2, 'x')", "range takes numbers"),
    ("range(1, 2, 3, 4)", "range() takes 1 to 3 arguments"),
    ("1 is", "expected the name of a test"),
    ("1 is divisibleby", "test 'divisibleby' with 0 arguments"),
    ("1 is odd(2)", "test 'odd' with 1 arguments"),
    ("'a' | replace('a')", "filter 'replace' takes 2 to 3 arguments"),
    ("'a' | replace('a', 'b', 1, 2)", "filter 'replace' takes 2 to 3 arguments"),
    ("+", "the expression ends too early"),
    ("()", "nothing between the parentheses"),
    (")", "unexpected `)`"),
    ("{,}", "expected a key"),
    ("1 | ", "expected a name"),
    ("{'a' 1}", "expected `:`"),
    ("f(1", "expected `,`"),
    ("values.n | first", "filter 'first' needs a list or text"),
    ("values.q | last", "filter 'last' needs a list or text"),
    ("[none] | join(',', 'a')", NULL_MEMBER.format("join")),
    ("[none] | sum('a')", NULL_MEMBER.format("sum")),
    ("[none] | selectattr('a')", NULL_MEMBER.format("selectattr")),
    ("[none] | rejectattr('a')", NULL_MEMBER.format("rejectattr")),
    ("[none] | groupby('a')", NULL_MEMBER.format("groupby")),
    ("1 | slice(2)", "filter 'slice' needs a list or text"),
    ("values.s | safe | slice(2)", "filter 'slice' needs a list or text"),
    ("'abc' | slice(2, 'x')", "filter 'slice' cannot fill up text"),
    ("[1] | select('nope')", "filter 'select': there is no test 'nope'"),
    ("[1] | reject(1)", "filter 'reject': there is no test '1'"),
    ("[1] | dictsort", "filter 'dictsort' needs a map"),
    ("{} | dictsort(false, 'x')", "filter 'dictsort' sorts by 'key' or 'value'"),
    ("values.l.push(values.l)", "a list cannot be put into itself"),
    ("values.l.push({'a': [values.l]})", "a list cannot be put into itself"),
    ("(1.5).toFixed(101)", ".toFixed() takes 0 to 100"),
    ("(1.5).toFixed(-1)", ".toFixed() takes 0 to 100"),
    ("(1.5).toPrecision(0)", ".toPrecision() takes 1 to 100"),
    ("(1.5).toPrecision(101)", ".toPrecision() takes 1 to 100"),
    ("(1.5).toExponential(101)", ".toExponential() takes 0 to 100"),
    ("(1).toString(1)", ".toString() takes 2 to 36"),
    ("(1).toString(37)", ".toString() takes 2 to 36"),
    ("values.n | batch(2)", "filter 'batch' needs a list"),
    ("1 | trim", "filter 'trim' needs text"),
    ("1 | join", "filter 'join' needs a list"),
    ("none is iterable", "test 'iterable' needs a value"),
    ("values.q is iterable", "test 'iterable' needs a value"),
    ("1 is lower", "test 'lower' needs text"),
    ("1 is upper", "test 'upper' needs text"),
    ("none | string", "filter 'string' needs a value"),
    ("values.q | string", "filter 'string' needs a value"),
    ("'a' | indent(1001)", "filter 'indent' takes 0 to 1000 columns"),
    ("'a' | indent(-1)", "filter 'indent' takes 0 to 1000 columns"),
    ("[none] | urlencode", "filter 'urlencode' on a list with null in it"),
    ("'a' | int(0, 1.5)", "'int' takes a whole number"),
    ("'a'()", "what is called here is not a function"),
    ("a.b.", "expected a name behind `.`"),
    ("values.l[", "the expression ends too early"),
]
DIFFERENT = [
    ("(values.s | safe) | parseEntityRef", SAFE.format("'parseEntityRef'")),
    ("{'kind': values.s | safe} | parseEntityRef", SAFE.format("'parseEntityRef'")),
    ("{'kind': 'k', 'name': values.s | safe} | parseEntityRef", SAFE.format("'parseEntityRef'")),
    ("values.o | pick('a b')", ARGUMENT.format("pick")),
    ("{'a': values.s | safe} | pick('a')", SAFE.format("'pick'")),
    ("{'a': range} | pick('a')", FUNCTION.format("'pick'")),
    ("{'a': [range]} | pick('a')", FUNCTION.format("'pick'")),
    ("range | upper", FUNCTION.format("'upper'")),
    ("'a' | replace('a', values.s | safe)", SAFE.format("an argument of 'replace'")),
    ("'a' | replace('a', range)", SAFE.format("an argument of 'replace'")),
    ("cycler(range)", FUNCTION.format("cycler")),
    ("joiner(range)", FUNCTION.format("joiner")),
    ("values.l[:2]", "a slice `x[1:3]` is refused"),
    ("values.l[1:]", "a slice `x[1:3]` is refused"),
    ("(values.s | safe)[0]", SAFE.format("a look-up")),
    ("range.x", FUNCTION.format("a look-up")),
    ("'a' in (values.s | safe)", SAFE.format("`in`")),
    ("values.s | safe | dump", SAFE.format("`dump`")),
    ("values.l[range]", FUNCTION.format("text")),
    ("values.s | safe | first", SAFE.format("'first'")),
    ("values.s | safe | last", SAFE.format("'last'")),
    ("{'length': 1} | first", ARGUMENT.format("first")),
    ("values.s | safe | reverse", SAFE.format("'reverse'")),
    ("values.s | safe | batch(2)", SAFE.format("'batch'")),
    ("{'length': 1} | batch(2)", ARGUMENT.format("batch")),
    ("[1] | batch(0)", ARGUMENT.format("batch")),
    ("[1] | select('odd', 2)", ARGUMENT.format("select")),
    ("['x'] | groupby('length')", ARGUMENT.format("groupby")),
    ("['x'] | groupby(1)", ARGUMENT.format("groupby")),
    ("['A', {}] | sort", "sorting values of different kinds in 'sort' is refused"),
    ("'a'.split('x', -1)", ARGUMENT.format("split")),
    ("values.s.trim(1)", "`.trim()` with so many arguments is refused"),
    ("values.s.concat(values.s | safe)", SAFE.format("`.concat()`")),
    ("[1].concat(range)", SAFE.format("`.concat()`")),
    ("(1.5).toString(2)", "a fraction in another base than ten is refused"),
    ("range is string", FUNCTION.format("the test 'string'")),
    ("{'length': 3} | center(9)", ARGUMENT.format("center")),
    ("'a' | replace('', values.q)", ARGUMENT.format("replace")),
    ("values.s | safe | urlencode", SAFE.format("'urlencode'")),
    ("1.5 | round(21)", ARGUMENT.format("round")),
    ("1.5 | round(-21)", ARGUMENT.format("round")),
    ("(range, 1)", FUNCTION.format("parentheses")),
    ("values.l.splice(0, values.q)", ARGUMENT.format("splice")),
]
TOO_LARGE = [
    ("range(0, 200000, 1) | length", "range of more than 100000 entries"),
    ("range(100001) | length", "range of more than 100000 entries"),
    ("[1] | batch(100001)", "'batch' with 100001; at most 100000"),
    ("'a' | center(100001)", "filter 'center' takes at most 100000 columns"),
]


def told(source: str, error: type[RenderError]) -> str:
    """Return what is said of a template, which is an expression or the whole."""
    is_compat = "cookiecutter" in source
    source = source if "%}" in source or is_compat else f"${{{{ {source} }}}}"
    context = {"cookiecutter" if is_compat else "values": VALUES}
    with pytest.raises(error) as refused:
        compile_template(source, COOKIECUTTER if is_compat else BACKSTAGE).render(context)
    assert type(refused.value) is error
    return refused.value.problem


@pytest.mark.parametrize(("source", "problem"), WRONG)
def test_an_expression_that_fails_in_every_engine_is_told_in_words(
    source: str, problem: str
) -> None:
    assert told(source, RenderError).startswith(problem)


@pytest.mark.parametrize(("source", "problem"), DIFFERENT)
def test_an_expression_on_which_engines_differ_is_refused(source: str, problem: str) -> None:
    assert told(source, UnsupportedError).startswith(problem)


@pytest.mark.parametrize(("source", "problem"), TOO_LARGE)
def test_an_expression_with_too_large_a_result_is_refused(source: str, problem: str) -> None:
    assert told(source, LimitError).startswith(problem)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("{% for 1 in [1] %}{% endfor %}", "expected a name"),
        ("{% raw x %}{% endraw %}", "words behind raw"),
        ("{% raw %}", "{% raw %} without {% endraw %}"),
        ("{% verbatim %}", "{% verbatim %} without {% endverbatim %}"),
        ("{% for a, b in [none] %}{% endfor %}", "a loop with several names over null or undef"),
        ("{% block a %}{% endblock b %}", "expected `a`"),
        ("{% if %}{% endif %}", "the expression ends too early"),
        ("{% endif %}", "there is no tag `endif` here"),
        ("{% else %}", "there is no tag `else` here"),
        ("{% macro 1() %}{% endmacro %}", "expected a name"),
        ("{% set 1 = 2 %}", "expected a name"),
    ],
)
def test_a_tag_that_no_engine_reads_is_told_in_words(source: str, problem: str) -> None:
    assert told(source, RenderError).startswith(problem)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("{% for x in range %}{% endfor %}", FUNCTION.format("a loop")),
        ("{% set x = range %}${{ x }}", FUNCTION.format("text")),
        ("{{ cookiecutter.l.remove('z') }}", "`.remove()` of something that is not in the list"),
        ("{{ cookiecutter.o.update }}", "the key 'update' with cookiecutterCompat is refused"),
        ("{{ cookiecutter.o.items() }}", "the key 'items' with cookiecutterCompat is refused"),
        ("{{ cookiecutter.l.append }}", "the member 'append' is refused"),
    ],
)
def test_tags_and_members_on_which_engines_differ_are_refused(source: str, problem: str) -> None:
    assert told(source, UnsupportedError).startswith(problem)


def test_a_member_of_an_empty_text_of_cookiecutter_is_told() -> None:
    assert told("{{ cookiecutter.s[:0] }}", UnsupportedError).startswith("a slice")
    assert told("{{ ''.x }}{# cookiecutter #}", RenderError).startswith("a member of an empty text")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("'1.2.3.255?repo=r' | parseRepoUrl | dump", '{"host":"1.2.3.255","repo":"r"}'),
        ("('H.Org:443/x?owner=/o/&repo=r#f' | parseRepoUrl).host", "h.org"),
        ("('H.Org:8443?owner=/o/&repo=r' | parseRepoUrl).owner", "o"),
        ("'h?owner=o&repo=r' | projectSlug", "o/r"),
        ("'h?repo=r' | projectSlug", "undefined/r"),
        ("('k:ns/n' | parseEntityRef).namespace", "ns"),
        ("('k:n' | parseEntityRef).namespace", "default"),
        ("('ns/k:n' | parseEntityRef({'defaultKind': 'd'})).name", "k:n"),
        ("('n' | parseEntityRef({'defaultKind': 'd'})).kind", "d"),
        ("('k:n' | parseEntityRef({'defaultNamespace': 'x'})).namespace", "x"),
        ("({'kind': 'k', 'name': 'n'} | parseEntityRef).namespace", "default"),
        ("{'a': [1, {'b-c': 2}]} | pick('a[1][\"b-c\"]')", "2"),
        ("{'a.b': 3} | pick('a.b')", "3"),
        ("{'a': [1, 2]} | pick(['a', 1])", "2"),
        ("({'a': 1} | pick('b.c')) is undefined", "true"),
        ("{'a': 1.5} | pick('a')", "1.5"),
        ("range(100000) | length", "100000"),
        ("range(5, 0, -2) | dump", "[5,3,1]"),
        ("range(1, 4) | dump", "[1,2,3]"),
        ("[1, 2, 3] | batch(2, 'x') | dump", '[[1,2],[3,"x"]]'),
        ("[1, 2, 3] | batch(2) | dump", "[[1,2],[3]]"),
        ("[1, 2, 3, 4] | slice(3) | dump", "[[1,2],[3],[4]]"),
        ("[1, 2, 3, 4] | slice(3, 'x') | dump", '[[1,2],[3,"x"],[4,"x"]]'),
        ("[[1, [2]], 3].flat() | dump", "[1,[2],3]"),
        ("[[1, [2]], 3].flat(0) | dump", "[[1,[2]],3]"),
        ("[1, 2, 1].indexOf(1, 1)", "2"),
        ("[1, 2, 1].lastIndexOf(1, 1)", "0"),
        ("[1, 2, 1].lastIndexOf(1, -2)", "0"),
        ("[1, 2, 1].lastIndexOf(1, -1)", "2"),
        ("[1, 2, 3].slice(1) | dump", "[2,3]"),
        ("[1, 2, 3].slice(-2, -1) | dump", "[2]"),
        ("[1, 2, 3].at(-3)", "1"),
        ("[1, 2, 3].at(3) is undefined", "true"),
        ("[1, 2, 3].at(-4) is undefined", "true"),
        ("'abcabc'.indexOf('c', 3)", "5"),
        ("'abcabc'.lastIndexOf('c', 4)", "2"),
        ("'abcabc'.lastIndexOf('c', 5)", "5"),
        ("'abc'.includes('a', 1)", "false"),
        ("'abc'.includes('b', 1)", "true"),
        ("'abc'.startsWith('b', 1)", "true"),
        ("'abc'.endsWith('b', 2)", "true"),
        ("'abc'.endsWith('c', 2)", "false"),
        ("'a-b-c'.split('-', 2) | dump", '["a","b"]'),
        ("'ab'.split('') | dump", '["a","b"]'),
        ("'ab'.split() | dump", '["ab"]'),
        ("(-1.5).toFixed(0)", "-2"),
        ("(2.345).toFixed(2)", "2.35"),
        ("(0).toExponential(2)", "0.00e+0"),
        ("(12345).toExponential()", "1.2345e+4"),
        ("(0.00001234).toExponential(1)", "1.2e-5"),
        ("(123.456).toPrecision(4)", "123.5"),
        ("(0.000001).toPrecision(2)", "0.0000010"),
        ("(0.0000001).toPrecision(2)", "1.0e-7"),
        ("(1000).toPrecision(3)", "1.00e+3"),
        ("(-255).toString(16)", "-ff"),
        ("(35).toString(36)", "z"),
        ("'0x1f' | int(0, 16)", "31"),
        ("'zZ' | int(0, 36)", "1295"),
        ("'12a' | int(0, 10)", "12"),
        ("'-7' | int", "-7"),
        ("'x' | int(5)", "5"),
        ("'1.5x' | float", "1.5"),
        ("'x' | float(2)", "2"),
        ("2.5 | round", "3"),
        ("2.4 | round", "2"),
        ("2.1 | round(0, 'ceil')", "3"),
        ("2.9 | round(0, 'floor')", "2"),
        ("1.255 | round(1)", "1.3"),
        ("'b' | center(4)", " b  "),
        ("'abcd' | center(4)", "abcd"),
        ("'a' | replace('', '-')", "-a-"),
        ("'aaa' | replace('a', 'b', 2)", "bba"),
        ("'aaa' | replace('b', values.q)", "aaa"),
        ("'a1a' | replace(1, 'b')", "aba"),
        ("{'a': '1 2', 'b': '&'} | urlencode", "a=1%202&b=%26"),
        ("[['a', 1]] | urlencode", "a=1"),
        ("[1, 2] | sum", "3"),
        ("[{'a': 1}, {'a': 2}] | sum('a', 10)", "13"),
        ("[{'a': 1}, {'a': 2}] | join('-', 'a')", "1-2"),
        ("[1, none, 2] | join('-')", "1--2"),
        ("{'b': 1, 'A': 2} | dictsort | dump", '[["A",2],["b",1]]'),
        ("{'b': 1, 'a': 2} | dictsort(false, 'value') | dump", '[["b",1],["a",2]]'),
        ("['b', 'A'] | sort | dump", '["A","b"]'),
        ("['b', 'A'] | sort(true) | dump", '["b","A"]'),
        ("['b', 'C'] | sort(false, true) | dump", '["C","b"]'),
        ("[{'a': {'b': 2} }, {'a': {'b': 1} }] | sort(false, false, 'a.b') | first | dump",
         '{"a":{"b":1}}'),
        ("[{'k': 1, 'v': 2}, {'k': 1, 'v': 3}] | groupby('k') | dump",
         '{"1":[{"k":1,"v":2},{"k":1,"v":3}]}'),
        ("{'0': 'x'} | first", "x"),
        ("('' | first) is undefined", "true"),
        ("{} | length", "0"),
        ("(true | length) is undefined", "true"),
        ("none | length", "0"),
    ],
)  # fmt: skip
def test_functions_and_filters_compute_as_javascript_does(source: str, text: str) -> None:
    rendered = compile_template(f"${{{{ {source} }}}}", BACKSTAGE).render({"values": VALUES})

    assert rendered == text


def test_a_cycler_and_a_joiner_remember_where_they_are() -> None:
    source = (
        "{% set c = cycler('a', 'b') %}{% set j = joiner('-') %}"
        "${{ c.next() }}${{ j() }}${{ c.next() }}${{ j() }}${{ c.next() }}${{ c.current }}"
        "${{ c.reset() }}${{ c.current is null }}${{ c.next() }}"
    )

    assert compile_template(source).render({}) == "ab-aatruea"
