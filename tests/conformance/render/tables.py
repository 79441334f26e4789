"""Each row of the tables that say how Nunjucks differs from Jinja2, as a template with its text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.conformance.render.judging import Verdict

FAILS, DIFFER, REFUSED = Verdict.FAILS_ALIKE, Verdict.REFUSED_DIFFERENT, Verdict.REFUSED_ALIKE


@dataclass(frozen=True, slots=True)
class Case:
    """A template and what all three engines write, or which refusal or error it ends in."""

    reason: str
    source: str
    expected: str | Verdict


VALUES: dict[str, Any] = {
    "s": "text", "e": "", "n": 3, "z": 0, "f": 1.5, "t": True, "b": False, "nul": None,
    "l": ["a", "b"], "el": [], "eo": {}, "nl": [3, 10, 2], "nest": ["a", ["b", ["c"]]],
    "o": {"k": "v", "10": "x", "2": "y"}, "lo": [{"n": "x", "g": 1}, {"n": "y", "g": 2}],
    "emoji": "a😀", "html": '<b>"x"</b>', "neg": -7, "big": 1e21, "small": 1e-7,
    "beyond": 9007199254740993, "two": 2.0, "num": "12", "d-k": "dash",
    "url": "github.com?repo=r&owner=o", "ref": "group:default/team", "tpl": "${{ values.s }}",
    "lines": "a\n\nb", "path": "a/b", "o2": {"items": "mine", "keys": "k", "length": 7},
}  # fmt: skip

CASES = [
    Case("an empty list is true", "${{ 'y' if values.el else 'n' }}", "y"),
    Case("an empty map is true", "${{ 'y' if values.eo else 'n' }}", "y"),
    Case("an empty text is false", "${{ 'y' if values.e else 'n' }}", "n"),
    Case("== converts a number and a text", "${{ 1 == '1' }}", "true"),
    Case("== takes null for undefined", "${{ values.nul == values.missing }}", "true"),
    Case("== takes an empty text for 0", "${{ '' == 0 }}", "true"),
    Case("!= is its opposite", "${{ 1 != '1' }}", "false"),
    Case("== compares lists by identity", "${{ [] == [] }}", "false"),
    Case("=== converts nothing", "${{ 1 === '1' }} ${{ 1 === 1 }}", "false true"),
    Case("!== is its opposite", "${{ 1 !== '1' }}", "true"),
    Case(
        "not binds tighter than ==", "${{ not values.s == false }} ${{ not 1 == 2 }}", "true false"
    ),
    Case("~ binds as + does", "${{ 1 + 2 ~ 3 }}", "33"),
    Case("comparisons go from left to right", "${{ 3 > 2 > 1 }}", "false"),
    Case("+ joins a text and a number", "${{ 'a' + 1 }} ${{ 1 + 'a' }}", "a1 1a"),
    Case(
        "~ writes words for true, null, undefined",
        "${{ 'a' ~ true ~ values.nul ~ values.missing }}",
        "atruenullundefined",
    ),
    Case("% keeps the sign of the dividend", "${{ -7 % 3 }} ${{ values.neg % 2 }}", "-1 -1"),
    Case("* on a text is NaN", "${{ 'a' * 2 }}", "NaN"),
    Case("+ on lists joins texts", "${{ [1] + [2] }}", "12"),
    Case("True and None are names", "${{ True }}|${{ None }}|${{ False }}", "||"),
    Case("a member of undefined is undefined", "[${{ values.a.b.c }}]", "[]"),
    Case("a filter on undefined fails", "${{ values.missing | trim }}", FAILS),
    Case("default leaves null alone", "[${{ values.nul | default('d') }}]", "[]"),
    Case("default with true replaces null", "${{ values.nul | default('d', true) }}", "d"),
    Case("default replaces undefined", "${{ values.missing | default('d') }}", "d"),
    Case("default with true replaces an empty text", "${{ values.e | default('d', true) }}", "d"),
    Case(
        "an inline if without else is an empty text",
        "[${{ 'y' if values.b }}]${{ ('y' if values.b) is defined }}",
        "[]true",
    ),
    Case(
        "a nested inline if needs parentheses",
        "${{ 'a' if true else 'b' if true else 'c' }}",
        FAILS,
    ),
    Case(
        "a nested inline if in parentheses", "${{ 'a' if false else ('b' if true else 'c') }}", "b"
    ),
    Case(
        "for with two names goes through a map",
        "{% for k, v in values.o %}${{ k }}=${{ v }};{% endfor %}",
        "2=y;10=x;k=v;",
    ),
    Case(
        "for with one name over a map takes no round",
        "[{% for k in values.o %}${{ k }}{% endfor %}]",
        "[]",
    ),
    Case(
        "dictsort sorts by key",
        "{% for k, v in values.o | dictsort %}${{ k }}=${{ v }};{% endfor %}",
        "10=x;2=y;k=v;",
    ),
    Case(".items() fails", "${{ values.o.items() }}", FAILS),
    Case(".get() fails", "${{ values.o.get('k') }}", FAILS),
    Case(".keys() fails", "${{ values.o.keys() }}", FAILS),
    Case(
        "properties named items, keys and length are data",
        "${{ values.o2.items }} ${{ values.o2.keys }} ${{ values.o2.length }}",
        "mine k 7",
    ),
    Case(
        "for with a condition is not a loop",
        "[{% for x in values.l if x %}${{ x }}{% endfor %}]",
        "[]",
    ),
    Case(
        "for over null takes no round",
        "[{% for x in values.nul %}x{% else %}none{% endfor %}]",
        "[none]",
    ),
    Case(
        "for over undefined takes no round",
        "[{% for x in values.missing %}x{% else %}none{% endfor %}]",
        "[none]",
    ),
    Case(
        "set in a loop changes the outer variable",
        "{% set a = 0 %}{% for x in values.l %}{% set a = a + 1 %}{% endfor %}${{ a }}",
        "2",
    ),
    Case("namespace() fails", "{% set ns = namespace(a=1) %}${{ ns.a }}", FAILS),
    Case("set of two names takes one value", "{% set a, b = 1 %}${{ a }}${{ b }}", "11"),
    Case("set of two names and two values fails", "{% set a, b = 1, 2 %}${{ a }}", FAILS),
    Case(
        "loop has index, index0, first, last",
        "{% for x in values.l %}${{ loop.index }}${{ loop.index0 }}${{ loop.first }}"
        "${{ loop.last }} {% endfor %}",
        "10truefalse 21falsetrue ",
    ),
    Case(
        "loop has revindex, revindex0, length",
        "{% for x in values.l %}${{ loop.revindex }}${{ loop.revindex0 }}${{ loop.length }}"
        " {% endfor %}",
        "212 102 ",
    ),
    Case(
        "loop.cycle fails", "{% for x in values.l %}${{ loop.cycle('a', 'b') }}{% endfor %}", FAILS
    ),
    Case(
        "loop has no previtem",
        "[{% for x in values.l %}${{ loop.previtem }}${{ loop.depth }}{% endfor %}]",
        "[]",
    ),
    Case("a negative index finds nothing", "[${{ values.l[-1] }}]", "[]"),
    Case("slices differ", "${{ values.l[1:3] }}", DIFFER),
    Case("slices with steps differ", "${{ values.l[::2] }}", DIFFER),
    Case("two closing braces end the tag", "${{ {'a': {'b': 1}} }}", FAILS),
    Case("a blank between them does not", "${{ {'a': {'b': 1} } | dump }}", '{"a":{"b":1}}'),
    Case(
        "escapes are the common six",
        "${{ 'a\\n\\t\\r\\\\\\'\\\"b' | dump }}",
        '"a\\n\\t\\r\\\\\'\\"b"',
    ),
    Case("other escapes lose the backslash", "${{ '\\x41\\d' }}", "x41d"),
    Case("adjacent texts fail", "${{ 'a' 'b' }}", FAILS),
    Case("a group is its last item", "${{ (1, 2) }}", "2"),
    Case("dump is compact and keeps order", "${{ values.o | dump }}", '{"2":"y","10":"x","k":"v"}'),
    Case("dump does not escape markup", "${{ values.html | dump }}", '"<b>\\"x\\"</b>"'),
    Case("dump of nested lists", "${{ values.nest | dump }}", '["a",["b",["c"]]]'),
    Case(
        "dump(2) indents",
        "${{ values.o | dump(2) }}",
        '{\n  "2": "y",\n  "10": "x",\n  "k": "v"\n}',
    ),
    Case("dump(2) of empty containers", "${{ [{}, []] | dump(2) }}", "[\n  {},\n  []\n]"),
    Case("tojson is unknown", "${{ values.l | tojson }}", FAILS),
    Case("map is unknown", "${{ values.lo | map(attribute='n') }}", FAILS),
    Case("unique is unknown", "${{ values.l | unique }}", FAILS),
    Case("min is unknown", "${{ values.nl | min }}", FAILS),
    Case("max is unknown", "${{ values.nl | max }}", FAILS),
    Case("wordwrap is unknown", "${{ values.s | wordwrap(2) }}", FAILS),
    Case("is in is unknown", "${{ 'a' is in(values.l) }}", FAILS),
    Case("is boolean is unknown", "${{ true is boolean }}", FAILS),
    Case("is sequence is unknown", "${{ values.l is sequence }}", FAILS),
    Case("nl2br adds a tag", "${{ values.lines | nl2br }}", "a<br />\n<br />\nb"),
    Case(
        "switch takes the first case that is equal",
        "{% switch values.s %}{% case 'a' %}A{% case 'text' %}T{% default %}D{% endswitch %}",
        "T",
    ),
    Case(
        "switch has a default",
        "{% switch values.n %}{% case '3' %}text{% default %}D{% endswitch %}",
        "D",
    ),
    Case(
        "a case without a body falls through",
        "{% switch 'a' %}{% case 'a' %}{% case 'b' %}AB{% endswitch %}",
        "AB",
    ),
    Case("verbatim is raw", "{% verbatim %}${{ x }}{% endverbatim %}", "${{ x }}"),
    Case("elseif is elif", "{% if false %}a{% elseif true %}b{% endif %}", "b"),
    Case("regular expressions", "${{ values.s | replace(r/t/g, 'T') }}", REFUSED),
    Case(
        "selectattr ignores more arguments",
        "${{ values.lo | selectattr('g', 'equalto', 1) | length }}",
        "2",
    ),
    Case("selectattr by one attribute", "${{ values.lo | selectattr('g') | length }}", "2"),
    Case("rejectattr by one attribute", "${{ values.lo | rejectattr('g') | length }}", "0"),
    Case(
        "join with a keyword prints separators only",
        "${{ values.lo | join(',', attribute='n') }}",
        ",",
    ),
    Case("join by position", "${{ values.lo | join(',', 'n') }}", "x,y"),
    Case(".replace() replaces the first match", "${{ values.s.replace('t', 'T') }}", "Text"),
    Case("the filter replace replaces all", "${{ values.s | replace('t', 'T') }}", "TexT"),
    Case(".replaceAll() differs", "${{ values.s.replaceAll('t', 'T') }}", DIFFER),
    Case(".length of a text", "${{ values.s.length }}", "4"),
    Case(".split()", "${{ values.path.split('/') | dump }}", '["a","b"]'),
    Case(".toUpperCase()", "${{ values.s.toUpperCase() }}", "TEXT"),
    Case(
        "round goes half up",
        "${{ 2.5 | round }} ${{ -2.5 | round }} ${{ 1.005 | round(2) }}",
        "3 -2 1",
    ),
    Case(
        "round down and up", "${{ 2.7 | round(0, 'floor') }} ${{ 2.1 | round(0, 'ceil') }}", "2 3"
    ),
    Case("round of junk is NaN", "${{ 'x' | round }}", "NaN"),
    Case("int of junk is empty", "[${{ 'x' | int }}]", "[]"),
    Case("int with a default", "${{ 'x' | int(7) }} ${{ '12x' | int }}", "7 12"),
    Case("float of junk is empty", "[${{ 'x' | float }}] ${{ '1.5x' | float }}", "[] 1.5"),
    Case("indent also indents blank lines", "${{ values.lines | indent(2) }}", "a\n  \n  b"),
    Case("indent with the first line", "${{ values.lines | indent(2, true) }}", "  a\n  \n  b"),
    Case("indent of an escaped empty text", "${{ '' | e | indent(2, true) }}", "  "),
    Case(
        "dividing by minus zero",
        "${{ 1 / -(none) }} ${{ -1 / 0 }} ${{ (0 - 0) ** -1 }}",
        "-Infinity -Infinity Infinity",
    ),
    Case("a rounded power", "${{ 2 ** 0.5 }}", REFUSED),
    Case(
        "a power beyond the doubles",
        "${{ 10 ** 309 }} ${{ (-10) ** 309 }} ${{ (-10) ** 310 }} ${{ (-0.5) ** -2001 }}",
        "Infinity -Infinity Infinity -Infinity",
    ),
    Case(
        "set of undefined in a loop",
        "{% set y = 1 %}{% for x in [1] %}{% set y = values.missing %}{% endfor %}${{ y }}",
        DIFFER,
    ),
    Case(
        "set of what is undefined outside",
        "{% set y = values.missing %}{% for x in [1] %}{% set y = 2 %}{% endfor %}${{ y }}",
        DIFFER,
    ),
    Case(
        "set of undefined in a block",
        "{% set y = 1 %}{% block b %}{% set y = values.missing %}${{ y }}{% endblock %}",
        DIFFER,
    ),
    Case(
        "set of undefined in a macro",
        "{% set y = 1 %}{% macro m() %}{% set y = q %}${{ y }}{% endmacro %}${{ m() }}",
        DIFFER,
    ),
    Case("title knows blanks only", "${{ 'foo-bar baz' | title }}", "Foo-bar Baz"),
    Case("urlencode encodes the slash", "${{ values.path | urlencode }}", "a%2Fb"),
    Case("truncate has no leeway", "${{ 'hello world' | truncate(6) }}", "hello..."),
    Case("truncate in a word", "${{ 'hello world' | truncate(6, true) }}", "hello ..."),
    Case(
        "escape writes &quot;",
        "${{ values.html | escape }} ${{ values.html | e }}",
        "&lt;b&gt;&quot;x&quot;&lt;/b&gt; &lt;b&gt;&quot;x&quot;&lt;/b&gt;",
    ),
    Case("joiner's separator is a comma", "{% set j = joiner() %}${{ j() }}a${{ j() }}b", "a,b"),
    Case("joiner with its own", "{% set j = joiner('|') %}${{ j() }}a${{ j() }}b", "a|b"),
    Case(
        "cycler",
        "{% set c = cycler('a', 'b') %}${{ c.next() }}${{ c.next() }}${{ c.next() }}",
        "aba",
    ),
    Case(
        "length counts UTF-16 units",
        "${{ values.emoji | length }} ${{ values.emoji.length }}",
        "3 3",
    ),
    Case("CRLF is kept", "a\r\n{% if true %}b\r\n{% endif %}c\r\n", "a\r\nb\r\nc\r\n"),
    Case("plus behind the percent sign fails", "{%+ if true %}a{% endif %}", FAILS),
    Case("raw with dashes", "a {%- raw -%}${{ x }}{%- endraw -%} b", FAILS),
    Case("raw with dashes and blanks inside", "a {%- raw -%} ${{ x }} {%- endraw -%} b", FAILS),
    Case("a comment's mark in bash fails", "n=${#arr[@]}", FAILS),
    Case("a comment may hide text", "n=${#arr[@]} and #} more", "n=$ more"),
    Case("literal GitHub expressions by a text", "${{ '${{' }} github.sha }}", "${{ github.sha }}"),
    Case(
        "literal GitHub expressions by raw",
        "{% raw %}${{ github.sha }}{% endraw %}",
        "${{ github.sha }}",
    ),
    Case("helm is literal", "{{ .Values.image }} {{- end }}", "{{ .Values.image }} {{- end }}"),
    Case(
        "undefined at any depth prints nothing",
        "[${{ values.missing }}${{ values.missing.deep.er }}]",
        "[]",
    ),
    Case("undefined dumps as nothing", "[${{ values.missing | dump }}]", "[]"),
    Case("null prints nothing", "[${{ values.nul }}]", "[]"),
    Case("null dumps as null", "${{ values.nul | dump }}", "null"),
    Case(
        "true and false print as words",
        "${{ values.t }} ${{ values.b }} ${{ values.t | dump }}",
        "true false true",
    ),
    Case(
        "numbers print as JavaScript's",
        "${{ values.n }} ${{ values.two }} ${{ values.f }} ${{ values.big }} ${{ values.small }}",
        "3 2 1.5 1e+21 1e-7",
    ),
    Case(
        "numbers dump alike",
        "${{ [values.n, values.two, values.f, values.big, values.small] | dump }}",
        "[3,2,1.5,1e+21,1e-7]",
    ),
    Case("integers beyond 2^53 lose precision", "${{ values.beyond }}", "9007199254740992"),
    Case(
        "lists print joined",
        "${{ values.l }} ${{ values.nest }} [${{ values.el }}]",
        "a,b a,b,c []",
    ),
    Case(
        "maps print as JavaScript's",
        "${{ values.o }} ${{ values.eo }}",
        "[object Object] [object Object]",
    ),
    Case("a text beyond ASCII is not escaped", "${{ values.emoji | dump }}", '"a😀"'),
    Case("${{ }} in a value is not rendered", "${{ values.tpl }}", "${{ values.s }}"),
    Case("a final newline is kept", "a\n", "a\n"),
    Case("several final newlines are kept", "a\n\n", "a\n\n"),
    Case("a BOM is kept", "\ufeffa", "\ufeffa"),
    Case("a conditional name", "{% if values.t %}name{% endif %}", "name"),
    Case("a conditional name that is off", "{% if values.b %}name{% endif %}", ""),
    Case("an empty value in a name", "${{ values.e }}.txt", ".txt"),
    Case("only values are known in files", "[${{ secrets }}${{ steps.x.output }}]", "[]"),
    Case(
        "parseRepoUrl",
        "${{ values.url | parseRepoUrl | dump }}",
        '{"host":"github.com","owner":"o","repo":"r"}',
    ),
    Case("parseRepoUrl needs a repo", "${{ 'github.com?owner=o' | parseRepoUrl }}", FAILS),
    Case("projectSlug", "${{ values.url | projectSlug }}", "o/r"),
    Case(
        "parseEntityRef",
        "${{ values.ref | parseEntityRef | dump }}",
        '{"kind":"group","namespace":"default","name":"team"}',
    ),
    Case(
        "parseEntityRef with defaults",
        "${{ 'team' | parseEntityRef({defaultKind: 'group', defaultNamespace: 'ns'}) | dump }}",
        '{"kind":"group","namespace":"ns","name":"team"}',
    ),
    Case("parseEntityRef without a kind fails", "${{ 'team' | parseEntityRef }}", FAILS),
    Case("pick", "${{ values.o | pick('k') }}", "v"),
    Case(
        "the result of a filter has members",
        "${{ (values.url | parseRepoUrl)['owner'] }} ${{ (values.url | parseRepoUrl).repo }}",
        "o r",
    ),
    Case("quoted members with dashes", "${{ values['d-k'] }}", "dash"),
    Case("a bare dash is a subtraction", "${{ values.d-k }}", "NaN"),
    Case(
        "and, or return values",
        "${{ values.e or 'x' }} ${{ values.s and 'y' }} ${{ values.b and 'y' or 'z' }}",
        "x y z",
    ),
    Case(
        "in on a list, a text, a map",
        "${{ 'a' in values.l }} ${{ 'ex' in values.s }} ${{ 'k' in values.o }}",
        "true true true",
    ),
    Case("in on undefined fails", "${{ 'a' in values.missing }}", FAILS),
    Case("not in", "${{ 'z' not in values.l }}", "true"),
    Case("is not string", "${{ values.n is not string }}", "true"),
    Case(
        "tests of kind",
        "${{ values.s is string }} ${{ values.n is number }} ${{ values.o is mapping }}"
        " ${{ values.l is iterable }} ${{ values.nul is none }}",
        "true true true true true",
    ),
    Case(
        "tests of numbers",
        "${{ 3 is odd }} ${{ 4 is even }} ${{ 9 is divisibleby(3) }} ${{ 3 is gt(2) }}"
        " ${{ 3 is le(2) }}",
        "true true true true false",
    ),
    Case(
        "tests of texts",
        "${{ 'a' is lower }} ${{ 'A' is upper }} ${{ 'A' is lower }}",
        "true true false",
    ),
    Case(
        "tests of truth",
        "${{ values.el is truthy }} ${{ values.e is falsy }}"
        " ${{ values.missing is undefined }} ${{ values.s is defined }}",
        "true true true true",
    ),
    Case(
        "tests of equality",
        "${{ 1 is eq(1) }} ${{ 1 is equalto('1') }} ${{ 1 is sameas(1) }} ${{ 1 is ne(1) }}",
        "true false true false",
    ),
    Case("is callable", "${{ values.s is callable }} ${{ range is callable }}", "false true"),
    Case(
        "abs, sum, sort, reverse",
        "${{ -3 | abs }} ${{ values.nl | sum }} ${{ values.nl | sort }}"
        " ${{ values.nl | reverse }} ${{ 'abc' | reverse }}",
        "3 15 2,3,10 2,10,3 cba",
    ),
    Case(
        "sort by an attribute", "${{ values.lo | sort(true, false, 'n') | join(',', 'n') }}", "y,x"
    ),
    Case(
        "batch and slice",
        "${{ values.nl | batch(2) | dump }} ${{ values.nl | slice(2) | dump }}",
        "[[3,10],[2]] [[3,10],[2]]",
    ),
    Case(
        "groupby",
        "${{ values.lo | groupby('g') | dump }}",
        '{"1":[{"n":"x","g":1}],"2":[{"n":"y","g":2}]}',
    ),
    Case("first and last", "${{ values.l | first }} ${{ values.l | last }}", "a b"),
    Case(
        "list of a text, a map",
        "${{ 'ab' | list | dump }} ${{ values.o | list | dump }}",
        '["a","b"] [{"key":"2","value":"y"},{"key":"10","value":"x"},{"key":"k","value":"v"}]',
    ),
    Case(
        "capitalize, center, striptags, wordcount",
        "${{ 'aB' | capitalize }}|${{ 'a' | center(5) }}|${{ values.html | striptags }}"
        "|${{ 'a b' | wordcount }}",
        'Ab|  a  |"x"|2',
    ),
    Case(
        "urlize",
        "${{ 'see http://a.com x' | urlize }}",
        'see <a href="http://a.com">http://a.com</a> x',
    ),
    Case("safe and string", "${{ values.html | safe }} ${{ values.n | string }}", '<b>"x"</b> 3'),
    Case("random of one is not a chance", "${{ ['a'] | random }}", REFUSED),
    Case(
        "select and reject",
        "${{ [1, 2, 3] | select('odd') }} ${{ [1, 2, 3] | reject('odd') }} ${{ [0, 1] | select }}",
        "1,3 2 1",
    ),
    Case(
        "range",
        "${{ range(3) }} ${{ range(1, 3) }} ${{ range(0, 6, 2) }} ${{ range(3, 0, -1) }}",
        "0,1,2 1,2 0,2,4 3,2,1",
    ),
    Case(
        "a macro",
        "{% macro m(a, b='d') %}${{ a }}${{ b }}{% endmacro %}${{ m(1) }} ${{ m(1, 2) }}"
        " ${{ m(1, b=3) }}",
        "1d 12 13",
    ),
    Case(
        "a call block",
        "{% macro m(a) %}${{ a }}(${{ caller() }}){% endmacro %}{% call m(1) %}x{% endcall %}",
        "1(x)",
    ),
    Case("a filter block", "{% filter upper %}a${{ values.s }}{% endfilter %}", "ATEXT"),
    Case("set with a body", "{% set x %}a${{ values.s }}{% endset %}${{ x }}", "atext"),
    Case("a block", "{% block b %}x{% endblock %}", "x"),
    Case("include fails", "{% include 'x' %}", FAILS),
    Case("include ignore missing differs", "{% include 'x' ignore missing %}", DIFFER),
    Case("import fails", "{% import 'x' as y %}", FAILS),
    Case("extends fails", "{% extends 'x' %}", FAILS),
    Case("with fails", "{% with a = 1 %}${{ a }}{% endwith %}", FAILS),
    Case("do fails", "{% do values.l %}", FAILS),
    Case("exponents differ", "${{ 1e3 }}", DIFFER),
    Case("hexadecimals differ", "${{ 0x10 }}", DIFFER),
    Case("underscores in numbers differ", "${{ 1_000 }}", DIFFER),
    Case("a digit in front of a name is refused (Nunjitsu < 0.6.2)", "${{ a.1x }}", REFUSED),
    Case("constructor differs", "[${{ values.constructor }}]", DIFFER),
    Case("an unknown filter fails", "${{ values.s | nope }}", FAILS),
    Case("an unknown test fails", "${{ values.s is nope }}", FAILS),
    Case("an unknown function fails", "${{ nope() }}", FAILS),
    Case(
        "text methods",
        "${{ values.s.charAt(1) }}${{ values.s.indexOf('x') }}"
        "${{ values.s.startsWith('te') }}${{ values.s.slice(1, 3) }}"
        "${{ values.s.concat('!') }}${{ values.s.substring(2) }}",
        "e2trueextext!xt",
    ),
    Case(
        "text methods that trim",
        "[${{ ' a '.trim() }}][${{ ' a '.trimStart() }}][${{ ' a '.trimEnd() }}]",
        "[a][a ][ a]",
    ),
    Case(
        "list methods",
        "${{ values.l.concat(['c']) }} ${{ values.l.indexOf('b') }}"
        " ${{ values.l.includes('a') }} ${{ values.l.join('+') }} ${{ values.nl.slice(1) }}",
        "a,b,c 1 true a+b 10,2",
    ),
    Case(
        "list methods that change the list",
        "{% set x = [1, 2] %}${{ x.push(3) }} ${{ x }} ${{ x.pop() }} ${{ x }}",
        "3 1,2,3 3 1,2",
    ),
    Case(
        "number methods",
        "${{ 1.005.toFixed(2) }} ${{ (255).toString(16) }} ${{ (1234.5).toPrecision(3) }}"
        " ${{ (1234).toExponential() }}",
        "1.00 ff 1.23e+3 1.234e+3",
    ),
    Case("dashes trim both sides", "a  {%- if true -%}  b  {%- endif -%}  c", "abc"),
    Case("dashes in expressions trim", "a  ${{- 'b' -}}  c", "abc"),
    Case("dashes in comments trim", "a  {#- c -#}  b", "ab"),
    Case(
        "a loop's third name over a text is left alone",
        "{% for a, b, c in 'xy' %}${{ a }}${{ b }}[${{ c }}]{% endfor %}",
        "0x[]1y[]",
    ),
    Case(
        "a loop's name twice, over a text",
        "{% for a, b, a in 'xy' %}${{ a }}{% endfor %}",
        REFUSED,
    ),
    Case(
        "a loop's name twice, over a list",
        "{% for a, b, a in [[1, 2, 3]] %}${{ a }}{% endfor %}",
        REFUSED,
    ),
    Case(
        "a loop's name twice, over a map",
        "{% for a, a in values.o %}${{ a }}{% endfor %}",
        REFUSED,
    ),
    Case("sort of texts and lists, in small letters", "${{ ['b', ['a'], 'c'] | sort }}", "a,b,c"),
    Case(
        "sort of texts and lists, case counting",
        "${{ ['C', ['D'], ['a'], 'b'] | sort(false, true) }}",
        "C,D,a,b",
    ),
    Case("sort of lists ignores no case", "${{ [['b'], ['C']] | sort }}", "C,b"),
    Case(
        "sort of texts and lists, case ignored",
        "${{ ['T', ['a', 'x'], 'b'] | sort(true) }}",
        REFUSED,
    ),
    Case("sort of texts and maps, case ignored", "${{ ['B', {}, 'a'] | sort }}", REFUSED),
    Case("sort of safe text, case ignored", "${{ ['B', 'a' | safe] | sort }}", DIFFER),
    Case(
        "dictsort of safe text, case ignored",
        "${{ {'x': 'a' | safe, 'y': 'B'} | dictsort(false, 'value') }}",
        DIFFER,
    ),
    Case("pick of NaN", "${{ {'n': [1, 10] | sum('v')} | pick('n') }}", DIFFER),
    Case("a member that is NaN", "${{ {'n': [1, 10] | sum('v')}.n }}", "NaN"),
    Case("pick of a list with Infinity", "${{ {'n': [1 / 0]} | pick('n') }}", DIFFER),
    Case("pick of minus zero", "${{ 1 / ({'n': -(0)} | pick('n')) }}", DIFFER),
    Case("pick of zero and fractions", "${{ {'n': [0, 1.5, -2]} | pick('n') }}", "0,1.5,-2"),
    Case(
        "pick makes null of undefined items",
        "${{ ({'n': [q]} | pick('n'))[0] is undefined }}",
        "false",
    ),
    Case(
        "pick drops undefined members",
        "${{ {'n': {'a': q, 'b': 1} } | pick('n') | length }}",
        "1",
    ),
    Case("pick copies", "${{ values.l === (values | pick('l')) }}", "false"),
    Case(
        "a list changed behind pick",
        "{% set l = values | pick('l') %}${{ l.push('c') }}${{ values.l }}",
        "3a,b",
    ),
    Case("pick of safe text", "${{ {'n': 'a' | safe} | pick('n') }}", DIFFER),
    Case("pick of a function in a list", "${{ {'n': [range]} | pick('n') | length }}", DIFFER),
    Case("parseEntityRef of safe text", "${{ ('a:b/c' | safe | parseEntityRef).kind }}", DIFFER),
    Case(
        "parseEntityRef of a safe part",
        "${{ ({'kind': 'a' | safe, 'name': 'c'} | parseEntityRef).kind }}",
        DIFFER,
    ),
    Case(
        "pop in its own loop",
        "{% for x in values.l %}${{ x }}${{ values.l.pop() }};{% endfor %}",
        "ab;",
    ),
    Case(
        "shift keeps the loop's length",
        "{% for x in values.l %}${{ values.l.shift() }}${{ loop.length }}{% endfor %}",
        "a2",
    ),
    Case(
        "push in its own loop",
        "{% for x in values.l %}${{ x }}${{ values.l.push('c') if loop.first }}{% endfor %}",
        "a3bc",
    ),
    Case(
        "pairs that go in their own loop",
        "{% set l = [[1, 2], [3, 4]] %}{% for a, b in l %}${{ b }}${{ l.pop() }};{% endfor %}",
        "23,4;",
    ),
    Case(
        "a macro in a loop",
        "{% for x in [1,2] %}{% macro m(a) %}[${{ a }}${{x}}]{% endmacro %}${{ m(x) }}{% endfor %}",
        "[1][2]",
    ),
    Case(
        "and behind it",
        "{% for x in [1] %}{% macro m() %}a{% endmacro %}{% endfor %}[${{ m }}]",
        "[]",
    ),
    Case(
        "in an inner loop",
        "{% for x in [1, 2] %}{% macro m(a) %}${{ a }}{% endmacro %}{% for y in [3] %}${{ m(y) }}{% endfor %}{% endfor %}",  # noqa: E501
        "33",
    ),
    Case(
        "before the round defines it",
        "{% for x in [1, 2] %}[${{ 1 if m else 0 }}]{% macro m() %}{% endmacro %}{% endfor %}",
        DIFFER,
    ),
    Case(
        "set of a loop's macro",
        "{% set m = 5 %}{% for x in [1, 2] %}{% macro m() %}{% endmacro %}{% set m = 7 %}{% endfor %}${{ m }}",  # noqa: E501
        DIFFER,
    ),
    Case(
        "a macro called loop in a loop",
        "{% for x in [1, 2] %}{% macro loop() %}{% endmacro %}{% endfor %}",
        DIFFER,
    ),
    Case("escape of a backslash", r"${{ 'a\\b' | escape }}", REFUSED),
]
