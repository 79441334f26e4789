"""Known differences between Nunjucks and Jinja2, one by one, through all three engines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.conformance.render.comparing import one
from tests.conformance.render.tables import CASES, DIFFER, REFUSED, VALUES, Case
from tests.engines.process import Engines

from softwaretemplates.render import BACKSTAGE, COOKIECUTTER, Delimiters

TRIM = replace(BACKSTAGE, trim_blocks=True)
LSTRIP = replace(BACKSTAGE, lstrip_blocks=True)
BOTH = replace(TRIM, lstrip_blocks=True)

MODES = [
    (TRIM, Case("a newline behind a block goes", "{% if 1 %}\na\n{% endif %}\nb", "a\nb")),
    (TRIM, Case("one behind an expression stays", "${{ 1 }}\nb", "1\nb")),
    (TRIM, Case("only the first goes", "{% set x = 1 %}\n\na", "\na")),
    (TRIM, Case("CRLF goes whole", "{% set x = 1 %}\r\na", "a")),
    (TRIM, Case("a comment's newline stays", "{# c #}\na", "\na")),
    (TRIM, Case("raw's newline goes", "{%- raw -%}\na\n{% endraw %}\nb", "a\nb")),
    (LSTRIP, Case("blanks before a block go", "a\n  {% if 1 %}b{% endif %}", "a\nb")),
    (LSTRIP, Case("those behind text stay", "a  {% if 1 %}b{% endif %}", "a  b")),
    (LSTRIP, Case("those before an expression stay", "a\n  ${{ 1 }}", "a\n  1")),
    (LSTRIP, Case("those before a comment stay", "a\n  {# c #}b", "a\n  b")),
    (BOTH, Case("a line with a block goes", "a\n  {% if 1 %}\nb\n  {% endif %}\nc", "a\nb\nc")),
    (COOKIECUTTER, Case("braces without a dollar", "{{ values.s }}", "text")),
    (COOKIECUTTER, Case("a dollar is text", "${{ values.s }}", "$text")),
    (COOKIECUTTER, Case("jsonify is dump", "{{ values.l | jsonify }}", '["a","b"]')),
    (COOKIECUTTER, Case("items", "{% for k, v in values.o.items() %}{{v}}{% endfor %}", "yxv")),
    (COOKIECUTTER, Case(".get() with a default", "{{ values.o.get('q', 'd') }}", "d")),
    (COOKIECUTTER, Case("slices", "{{ values.l[1:] }}", REFUSED)),
    (COOKIECUTTER, Case("True is true", "{{ True }}", "true")),
    (COOKIECUTTER, Case("Backstage's filters", "{{ values.url | parseRepoUrl }}", DIFFER)),
    (COOKIECUTTER, Case("mutating methods", "{{ values.l.append('c') }}{{ values.l }}", "3a,b,c")),
]  # fmt: skip


def _check(engines: Engines, case: Case, delimiters: Delimiters) -> None:
    context = {"values": VALUES, "parameters": {"a": 1}, "user": {}}
    found = one(engines, case.source, context, delimiters)

    if isinstance(case.expected, str):
        assert (found.nunjitsu, found.nunjucks, found.ours) == (case.expected,) * 3, str(found)
    else:
        assert found.verdict is case.expected, str(found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_row(engines: Engines, case: Case) -> None:
    _check(engines, case, BACKSTAGE)


@pytest.mark.parametrize(("mode", "case"), MODES, ids=lambda each: getattr(each, "reason", "mode"))
def test_mode(engines: Engines, mode: Delimiters, case: Case) -> None:
    _check(engines, case, mode)
