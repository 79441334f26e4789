"""
The grammar that random templates are written from, as data: `PRODUCTIONS`, by kind.

A production is a pattern with holes: ``@S`` is an expression that should be text, ``@N`` a
number, ``@B`` a condition, ``@L`` a list, ``@M`` a map, ``@A`` any of them; ``@s`` is a quoted
text, ``@i`` a small number, ``@v`` a variable's name, ``@x`` a variable in scope, ``@T`` a
template, ``@t`` literal text, ``@-`` a dash or nothing, ``@_`` blanks or nothing. The number
beside it is how often it is taken when templates should look like those people write (counted
in six public packs: 75 templates, 372 files); 0.1 and less is what nobody there wrote.
"""

from __future__ import annotations

Patterns = dict[str, float]

_TEXT_NAMES = ("name", "owner", "title", "description", "csv", "empty", "lines", "quoted", "padded")
_FILTERS_TO_TEXT: Patterns = {
    "@A | dump": 10, "@A | dump(2)": 1, "@A | dump(@i)": 0.1, "@A | dump('--')": 0.1,
    "@S | default(@S)": 4, "@S | default(@s, true)": 4, "@S | d(@s)": 0.5,
    "values.missing | default(@s)": 3, "user.entity.metadata.name | default(@s)": 2,
    "(@S | default(@S) | default(@s)) | replace(' ', '')": 1,
    "@S | replace(@s, @s)": 2, "@S | replace('a', @S)": 0.5, "@S | replace(@s, @s, @i)": 0.1,
    '@S | replace(" ", "-") | replace("\\"", "") | lower': 1, "@S | replace (' ', '-')": 0.5,
    "@S | replace(r/a+/g, @s)": 0.03, "@N | replace(@i, @s)": 0.1,
    "@S | title": 1, "@S | lower": 1, "@S | upper": 0.5, "@S | capitalize": 0.3, "@A | string": 0.5,
    "@S | trim": 0.5, "@S | indent": 0.3, "@S | indent(@i)": 0.3, "@S | indent(2, true)": 0.2,
    "@L | join(',')": 1, "@L | join": 0.3, "@L | join(@s, 'n')": 0.2, "@L | join(@S)": 0.2,
    "@L | first": 0.5, "@L | last": 0.5, "@S | first": 0.2, "@S | reverse": 0.1,
    "(values.url | parseRepoUrl).repo": 2, "(parameters.repoUrl | parseRepoUrl)['owner']": 3,
    "values.url | projectSlug": 0.5, "(values.ref | parseEntityRef).name": 0.5,
    "(values.ref | parseEntityRef({defaultKind: 'group'})).kind": 0.2,
    "values | pick('name')": 0.2, "values.deep | pick('a.b')": 0.2,
    "values | pick('people[0].n')": 0.1,
    "@S | urlencode": 0.1, "@S | escape": 0.1, "@S | e": 0.1, "@S | safe": 0.1,
    "@S | forceescape": 0.03,
    "@S | nl2br": 0.1, "@S | striptags": 0.1, "@S | striptags(true)": 0.03, "@S | center(@i)": 0.1,
    "@S | truncate(@i)": 0.1, "@S | truncate(@i, true, @s)": 0.03, "@S | urlize": 0.03,
    "[@A] | random | string": 0.01, "@S | random": 0.003, "@S | upper | escape | length": 0.02,
}  # fmt: skip
_METHODS_TO_TEXT: Patterns = {
    "(@S).toUpperCase()": 0.1, "(@S).toLowerCase()": 0.1, "(@S).trim()": 0.1,
    "(@S).trimStart()": 0.03,
    "(@S).trimEnd()": 0.03, "(@S).replace(@s, @s)": 0.1, "values.csv.replaceAll(',', '-')": 0.03,
    "(@S).charAt(@i)": 0.05, "(@S).slice(@i)": 0.05, "(@S).slice(@N, @N)": 0.05,
    "(@S).substring(@i, @i)": 0.05, "(@S).concat(@S)": 0.05, "(@L).join(@s)": 0.1,
    "(@L).at(@N)": 0.02,
    "(@L).pop()": 0.02, "(@L).shift()": 0.02, "(@N).toFixed(@i)": 0.05, "(@N).toString()": 0.05,
    "(@N).toPrecision(3)": 0.03, "(@N).toExponential()": 0.03, "(@S)['toUpperCase']()": 0.03,
    "(@S).padStart(@i)": 0.02, "(@S).repeat(@i)": 0.02,
}  # fmt: skip

TEXT: Patterns = {
    **{f"values.{name}": 8 for name in _TEXT_NAMES},
    'values["d-k"]': 3, "values['name']": 3, "parameters.name": 6, "parameters.repoUrl": 2,
    "steps['fetch-base'].output.entity.spec.host": 12, "steps.fetch.output.url": 4,
    "steps['fetch-base'].output.missing.deep": 2, "user.entity.metadata.name": 2, "user.ref": 1,
    "values.deep.a.b": 3, "values.people[0].n": 1, "values.labels['team']": 1, "values[@S]": 0.3,
    "values.missing": 1, "values.unicode": 2, "@s": 12, "@x": 8,
    "@S + @S": 3, "@S + '/' + @S": 5, "@S + @N": 0.5, "@S ~ @S": 1, "@S ~ '-' ~ @A": 0.5,
    "@S or @S": 5, "parameters.account or steps['fetch-base'].output.account": 2, "@S and @S": 1,
    "@B and @s or @S": 6, "@S if @B else @S": 6, "@S if @B": 1,
    "parameters.name if parameters.name else '.'": 1,
    "(@S)": 2, "@L[0]": 0.3, "@S[@i]": 0.1, "(@S if @B else @S) + @S": 0.5,
    "@S[0:2]": 0.02, "@S[1:]": 0.02, "(@S, @S)": 0.02, "@s @s": 0.01,
    **_FILTERS_TO_TEXT, **_METHODS_TO_TEXT,
}  # fmt: skip

NUMBER: Patterns = {
    "values.count": 12, "values.zero": 2, "values.negative": 2, "values.fraction": 3,
    "values.big": 2,
    "@i": 12, "1.5": 1, "0.1": 1, "100": 1, "-1": 1, "@x": 4, "values.tags.length": 1,
    "values.name.length": 0.5,
    "loop.index": 1, "loop.index0": 0.5, "loop.length": 0.5,
    "@N + @N": 3, "@N - @N": 1, "@N * @N": 1, "@N / @N": 1, "@N % @N": 1, "@N // @N": 0.5,
    "@N ** @i": 0.3,
    "-@N": 0.5, "+@S": 0.1, "-(@A)": 0.1, "(@N)": 1, "@N + @N ~ @N": 0.3, "@i - -@N": 0.1,
    "2 ** @i ** 2": 0.1,
    "@N if @B else @N": 1, "1 if @S else 0": 2, "@N or @N": 0.5, "@B + @N": 0.1, "@A * @N": 0.1,
    "@S | length": 1, "@L | length": 2, "@M | length": 0.5, "@A | length": 0.1, "@N | abs": 0.3,
    "@S | int": 0.1, "@N | int": 0.1, "@S | int(@i)": 0.05, "@S | float": 0.1, "@N | round": 0.1,
    "@N | round(@i)": 0.05, "@N | round(@i, 'floor')": 0.05, "@N | round(1, 'ceil')": 0.05,
    "values.numbers | sum": 0.1, "@L | sum('v')": 0.05, "@S | wordcount": 0.1,
    "(@S).indexOf(@s)": 0.1, "(@S).lastIndexOf(@s)": 0.05, "(@L).indexOf(@A)": 0.05,
    "(@L).push(@A)": 0.02,
    "(@S).charCodeAt(@i)": 0.03, "(@L).lastIndexOf(@A)": 0.03, "(@L).unshift(@A)": 0.02,
    "1e3": 0.01, "0x10": 0.01, "1_000": 0.01, "1.": 0.01, "007": 0.01, ".5": 0.01, "--@N": 0.01,
}  # fmt: skip

_TESTS = (
    "defined", "undefined", "string", "number", "mapping", "none", "null", "truthy", "falsy", "odd",
    "even", "iterable", "lower", "upper", "callable", "escaped", "divisibleby(@i)",
    "divisibleby(@N)",
    "eq(@A)", "equalto(@A)", "sameas(@A)", "ne(@A)", "gt(@N)", "ge(@N)", "lt(@N)", "le(@N)",
    "greaterthan(@N)", "lessthan(@N)",
)  # fmt: skip
CONDITION: Patterns = {
    "values.yes": 6, "values.no": 6, "true": 2, "false": 2, "@S": 10, "values.missing": 4, "@A": 1,
    "@x": 2,
    "@S == @s": 12, "@S != @s": 4, "@S === @s": 12, "@S !== @s": 3, "@N == @i": 2, "@N === @i": 3,
    "steps.fetch.output.code === 200": 4, "parameters.dryRun !== true": 4, "@A == @A": 1,
    "@A != @A": 0.5,
    "@A === @A": 0.5, "@A !== @A": 0.3, "@N < @N": 1, "@N > @N": 1, "@N <= @N": 0.5,
    "@N >= @N": 0.5,
    "@A < @A": 0.2, "@A >= @A": 0.2, "@N < @N < @N": 0.1, "@A == @A == @A": 0.1,
    "not @S == @s": 0.2,
    "not @B": 4, "not (@B)": 2, "not not @B": 0.2, "@B and @B": 4, "@B or @B": 4, "(@B)": 2,
    "@B and not @B": 1,
    "'Bucket' in values.tags": 4, "@s in @L": 3, "@s not in @L": 0.5, "@s in @S": 1,
    "@s in @M": 0.3, "@A in @A": 0.2,
    "not @s in @L": 0.1, "@L": 1, "@M": 0.5, "(@S).includes(@s)": 0.1, "(@L).includes(@A)": 0.1,
    "(@S).startsWith(@s)": 0.1, "(@S).endsWith(@s)": 0.1,
    "steps.fetch.output.result is not string": 1,
    "loop.first": 1, "loop.last": 1, "not loop.last": 1,
    "@A is boolean": 0.01, "@A is sequence": 0.01, "@A is in @L": 0.01, "@A is sameas @A": 0.02,
    **{f"@A is {test}": 0.3 if "(" not in test else 0.1 for test in _TESTS},
    **{f"@A is not {test}": 0.15 if "(" not in test else 0.05 for test in _TESTS},
}  # fmt: skip

LIST: Patterns = {
    "values.tags": 20, "values.numbers": 4, "values.people": 6, "values.nobody": 1,
    "values.none": 0.02, "values.nested": 2,
    "values.mixed": 2, "values.missing": 0.3, "[@A, @A]": 2, "[@S]": 1, "[]": 1,
    "[[@i, @i], [@A, @A]]": 0.5,
    "range(3)": 1, "range(@i)": 1, "range(@i, @i)": 0.5, "range(@i, @i, 2)": 0.3,
    "range(@i, @i, -1)": 0.1,
    "(@L or [])": 1, "@L or []": 1, "@x": 2, "values.deep.list": 1, "@M | dictsort": 1,
    "@L | sort": 0.1,
    "@L | sort(true)": 0.05, "values.people | sort(false, false, 'n')": 0.05,
    "@L | sort(attribute='v')": 0.03,
    "@L | reverse": 0.3, "@S | list": 0.2, "@L | list": 0.2, "@M | list": 0.1,
    "@L | batch(@i)": 0.1,
    "@L | batch(2, @s)": 0.05, "@L | slice(@i)": 0.1, "@L | slice(2, @s)": 0.05,
    "@L | select": 0.05,
    "@L | select('odd')": 0.05, "@L | reject": 0.05, "@L | reject('string')": 0.05,
    "@L | selectattr('on')": 0.1,
    "@L | rejectattr('on')": 0.1, "@L | selectattr('n', 'equalto', @s)": 0.02,
    "(@S).split(',')": 0.1,
    "(@S).split(@s)": 0.05, "(@S).split()": 0.02, "(@L).concat(@L)": 0.1, "(@L).slice(@N)": 0.05,
    "(@L).slice(@i, @i)": 0.05, "(@L).reverse()": 0.02, "(@L).sort()": 0.02, "(@L).flat()": 0.02,
    "(@L).splice(@i, @i)": 0.01, "(@L).fill(@A)": 0.01, "(@L).copyWithin(@i, @i)": 0.01,
    "@L[1:3]": 0.02,
    "@L[::2]": 0.01, "@L | default([])": 1, "@L if @B else []": 1, "@M | dictsort(true)": 0.05,
    "@M | dictsort(false, 'value')": 0.05, "@L + @L": 0.1, "@L | length | string | list": 0.05,
}  # fmt: skip

MAP: Patterns = {
    "values.labels": 20, "values.deep": 6, "values.deep.a": 2, "values.digits": 2,
    "values.nothing": 1,
    "values.blank": 1, "values.missing": 0.3, "values.people[0]": 2, "{}": 1, "{'a': @A}": 1,
    "{a: @A, b: @A}": 1,
    "{'a': {'b': @A} }": 0.5, '{"x-y": @S, "n": @N}': 0.5, "@x": 1, "values.url | parseRepoUrl": 2,
    "values.ref | parseEntityRef": 1,
    "values.ref | parseEntityRef({defaultKind: @s, defaultNamespace: @s})": 0.2,
    "@M or {}": 1, "@M | default({})": 1, "values.people | groupby('v')": 0.05,
    "@L | groupby('n')": 0.03,
    "@M if @B else @M": 0.5, "(@M)": 0.5, "{1: @A}": 0.01, "{'a': {'b': 1}}": 0.01,
    "steps.fetch.output": 1,
}  # fmt: skip

ANY: Patterns = {
    "@S": 55, "@N": 12, "@B": 6, "@L": 6, "@M": 4, "null": 1, "none": 1, "values.nothing": 1,
    "true": 1, "false": 1,
    "values.missing": 2, "missing": 0.5, "values.a.b.c": 0.5, "True": 0.1, "None": 0.1,
    "@M.team": 0.5, "@M['a']": 0.5,
    "@L[@i]": 0.5, "@L.length": 0.5, "@L[-1]": 0.1, "@M[@S]": 0.2, "@A[@A]": 0.05,
    "@S | pick(@s)": 0.03,
    "@M | pick(@s)": 0.1, "cycler('a', 'b').next()": 0.03, "joiner()()": 0.03, "@x.n": 0.5,
    "(@A) | string": 0.3,
    "@A | nosuchfilter": 0.02, "nosuchfunction()": 0.02, "@A is nosuchtest": 0.02,
    "@M.items()": 0.02,
    "@M.get('a')": 0.01, "@M.keys()": 0.01, "values.constructor": 0.01,
    "values.name.__proto__": 0.01,
    "values.toString()": 0.01, "r/a/i": 0.01, "@S | trim(": 0.005, "@A ? @A : @A": 0.01,
    "@A && @A": 0.01,
    "@A || @A": 0.01, "!@A": 0.01, "@A |": 0.005, "": 0.01, "@S.name": 0.2, "@N.name": 0.1,
    "@A, @A": 0.01,
    "@A | default(@A)": 1, "@A | default(@A, true)": 1, "@A | default": 0.1, "@A | upper(1)": 0.02,
    "@L | join(d=',')": 0.02, "@S | indent(width=2)": 0.02, "@L | join(',', attribute='n')": 0.02,
    "@A if @B else (@A if @B else @A)": 0.5, "@A if @B else @A if @B else @A": 0.02,
    "values.true": 0.02,
    "values . name": 0.1, "values\n.name": 0.1, "caller()": 0.02, "super()": 0.02, "self": 0.02,
    "a.1x": 0.01,
    "values.people[0]\n  .n": 0.1, "values['people'][1]['n']": 0.3, "é": 0.01, "values.d-k": 0.2,
    "$x": 0.02,
}  # fmt: skip

QUOTED: Patterns = {
    '"x"': 10, "'a'": 10, "'Bucket'": 5, "'-'": 5, "','": 5, "' '": 3, "''": 3,
    '"A new repository"': 5, '"l"': 5,
    r'"a\nb"': 1, r"'it\'s'": 1, r'"say \"hi\""': 1, r"'\\d'": 0.5, r"'\d'": 0.3, r'"\x41"': 0.1,
    r"'tab\tx'": 0.3,
    "'é'": 1, "'日本'": 0.5, "'😀'": 0.3, "'${{ x }}'": 0.5, "'{% if %}'": 0.3, "'}}'": 0.1,
    "'%}'": 0.1, "'{#'": 0.1,
    "'it is \"x\"'": 1, "'$&'": 0.1, "'<b>'": 0.3, "'line\nbreak'": 0.2, "'12'": 1, "'n'": 1,
    "'a.b'": 0.5,
}  # fmt: skip

STATEMENT: Patterns = {
    "${{@-@_@S@_@-}}": 60, "${{ @S }}": 120, "${{ @A }}": 40, "@t": 80,
    "{%@- if @B @-%}@T{%@- endif @-%}": 14, "{% if @B %}@T{% else %}@T{% endif %}": 10,
    "{%- if @B %}@T{% elif @B %}@T{% endif %}": 3,
    "{% if @B %}@T{% elif @B %}@T{% else %}@T{% endif %}": 3,
    "{% if @B %}@T{% elseif @B %}@T{% endif %}": 0.1, "{% if @B -%}@T{%- endif %}": 2,
    "{%@- for @v in @L @-%}@T{%@- endfor @-%}": 4,
    "{% for @v in @L %}@T{% else %}@T{% endfor %}": 0.5,
    "{% for @v in @L %}${{ @x }}{% if not loop.last %}, {% endif %}{% endfor %}": 2,
    "{% for @v, @v in @M | dictsort %}${{ @x }}@T{% endfor %}": 1,
    "{% for @v, @v in @M %}@T{% endfor %}": 1,
    "{% for @v, @v in @L %}@T{% endfor %}": 0.2, "{% for @v, @v, @v in @L %}@T{% endfor %}": 0.05,
    "{% for @v in @M %}@T{% endfor %}": 0.05, "{% for @v in @A %}@T{% endfor %}": 0.1,
    "{% for @v in @S %}${{ @x }}.{% endfor %}": 0.2, "{% for @v in @L if @B %}@T{% endfor %}": 0.01,
    "{% for @v in @L %}${{ loop.index }}${{ loop.revindex }}${{ loop.revindex0 }}{% endfor %}": 0.5,
    "{% for @v in @L %}${{ loop.cycle('a', 'b') }}${{ loop.previtem }}{% endfor %}": 0.01,
    "{% set @v = @A %}@T${{ @x }}": 4, "{% set @v = @A %}": 1,
    "{% set @v, @v = @A %}${{ @x }}": 0.1,
    "{% for @v in @L %}{% set acc = @x %}{% endfor %}${{ acc }}": 0.3,
    "{% for @v in @L %}{% macro w(a) %}${{ a }}{% endmacro %}${{ w(@A) }}{% endfor %}": 0.05,
    "{% for @v in values.tags %}@T${{ values.tags.pop() }}{% endfor %}": 0.05,
    "{% for @v in values.numbers %}${{ values.numbers.shift() }}@T{% endfor %}": 0.05,
    "{% set acc = 0 %}{% for @v in @L %}{% set acc = acc + @N %}{% endfor %}${{ acc }}": 0.3,
    "{% if @B %}{% set @v = @A %}{% endif %}${{ @x }}": 0.3,
    "{% set @v %}@T{% endset %}${{ @x }}": 0.05,
    "{% macro m(a, b) %}@T${{ a }}${{ b }}{% endmacro %}${{ m(@A) }}${{ m(@A, @A) }}": 0.05,
    "{% macro m(a, b=@A) %}${{ a }}-${{ b }}{% endmacro %}${{ m(@A, b=@A) }}": 0.05,
    "{% macro m(a) %}${{ a }}(${{ caller() }}){% endmacro %}{% call m(@A) %}@T{% endcall %}": 0.03,
    "{% macro m(a) %}${{ caller(a) }}{% endmacro %}{% call(z) m(@A) %}${{ z }}{% endcall %}": 0.02,
    "{% filter upper %}@T{% endfilter %}": 0.05,
    "{% filter replace('a', @s) %}@T{% endfilter %}": 0.03,
    "{% switch @A %}{% case @A %}@T{% case @s %}@T{% default %}@T{% endswitch %}": 0.05,
    "{% switch @S %}{% case 'a' %}{% case 'b' %}@T{% endswitch %}": 0.03,
    "{% block b %}@T{% endblock %}": 0.05, "{% block b %}@T{% endblock b %}": 0.02,
    "{% raw %}@R{% endraw %}": 2, "{% verbatim %}@R{% endverbatim %}": 0.1,
    "{%- raw -%}@R{% endraw %}": 0.02,
    "{% raw %}a{% raw %}b{% endraw %}c{% endraw %}": 0.02, "${{ '${{' }} github.sha }}": 0.5,
    "{#@- @R @-#}": 1, "{##}": 0.1, "{% include 'x' %}": 0.01, "{% import 'x' as y %}": 0.01,
    "{% extends 'x' %}": 0.005,
    "{% include 'x' ignore missing %}": 0.01, "{% with x = @A %}@T{% endwith %}": 0.005,
    "{% do @A %}": 0.005,
    "{% autoescape true %}@T{% endautoescape %}": 0.005, "{%+ if @B %}@T{% endif %}": 0.005,
    "{% if @B %}@T": 0.01,
    "@T{% endif %}": 0.01, "${{ @A": 0.01, "{% for @v in @L %}@T{% break %}{% endfor %}": 0.005,
    "{%if @B%}@T{%endif%}": 0.3, "${{@S}}": 1, "{% if\n@B\n%}@T{% endif %}": 0.2,
    "${{\n  @S\n}}": 0.5,
    "{% endraw %}": 0.003, "{% asyncEach @v in @L %}@T{% endeach %}": 0.003,
    "{% from 'x' import y %}": 0.003,
}  # fmt: skip

LITERAL: Patterns = {
    "apiVersion: v1\nkind: Service\n": 10, "  name: ": 10, "\n": 10, " ": 5, "": 5,
    "{{ .Values.image }}": 3,
    "{{- if .Values.x }}\n{{ end }}\n": 1, "$ {": 1, "}}": 1, "{": 1, "}": 1, "%": 1, "#": 1,
    "$": 2, "${": 1, "$${VAR}": 1,
    "a\r\nb\r\n": 0.5, "\t": 1, "é 日本 😀": 1, "  \n  ": 2, "\n    ": 3, "- item\n": 5,
    "# comment\n": 3, "%}": 0.3,
    "`code`": 1, '<b>html</b> & "x"': 1, "{ {": 0.5, "\\": 1, "\u00a0": 0.3, "\u2028": 0.1,
    "#}": 0.01,
    "${#array[@]}": 0.01, "end": 2,
}  # fmt: skip

RAW: Patterns = {
    "${{ secrets.TOKEN }}": 5, " ${{ x ": 1, "{% if %}": 1, " text ": 3, "\n  x\n": 2, "": 1,
    "{# c": 0.3, "{{ y }}": 1, "}}": 1,
}  # fmt: skip

PRODUCTIONS: dict[str, Patterns] = {
    "S": TEXT, "N": NUMBER, "B": CONDITION, "L": LIST, "M": MAP, "A": ANY,
    "s": QUOTED, "T": STATEMENT, "t": LITERAL, "R": RAW,
}  # fmt: skip
VERBATIM = frozenset({"s", "t", "R"})
"""Kinds whose patterns have no holes."""
