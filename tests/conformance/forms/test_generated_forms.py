"""
Generated forms and skeletons in Backstage's own engines: what is entered is taken and rendered.

The form's ajv and the backend's jsonschema judge each page; nunjitsu and nunjucks render each
file of the skeleton to the bytes that ours does.
"""

from __future__ import annotations

import random
from typing import Any

from chances import Chances
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kitforms import BAKED, Made
from kitschemas import SPECS, values_of
from tests.engines.process import Engines

from kubeschema.re2_patterns import compile_pattern
from orderkit.core.kit.form_rules import to_javascript
from softwaretemplates.render import render_data

OPTIONS = {"compat": False, "trim": False, "lstrip": False}
PATTERNS, FULL = 1_000, 100_000


@settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_entered_passes_form_and_backend_and_renders_alike(
    engines: Engines, data: st.DataObject
) -> None:
    spec = data.draw(SPECS, label="spec")
    made = Made(spec)
    entered = made.answered(data.draw(values_of(spec), label="values"))
    template = made.template
    parameters = template.validate(entered)

    verdicts = engines.ask("judge", jobs=[(page, parameters) for page in template.pages])
    assert [(v["ajv"], v["jsonschema"]) for v in verdicts] == [(True, True)] * len(verdicts)

    scope = {"parameters": parameters, "user": {"ref": "user:default/eve"}}
    values: Any = render_data(template.steps[0].input["values"], scope, name="values")
    ours = made.render(entered)
    for path, data_ in made.skeleton().items():
        ((new, old),) = engines.render([{"values": values}], [(data_.decode(), 0)], options=OPTIONS)
        assert new == old == ours[path].decode(), path


def test_the_values_of_the_steps_are_the_portals(engines: Engines) -> None:
    made = Made({"properties": {"a": {"type": "string"}, "n": {"type": "integer"}}})
    scope = {
        "parameters": {**BAKED, "name": "n1", "team": "group:default/ae86", "a": "${{ x }}"},
        "user": {},
    }
    wanted = made.template.steps[0].input["values"]

    ours: Any = render_data(wanted, scope, name="values")

    for key in ("order", "team", "requester", "pack_commit"):
        (theirs,) = engines.ask("values", contexts=[scope], jobs=[(wanted[key], 0)])
        assert ours[key] == theirs["value"]
    assert ours["spec"] == {"a": "${{ x }}"}


_PARTS = (
    "a", "b", "[a-z]", "[^a]", r"\d", r"\w", r"\s", r"\S", ".", "(a|b)", "(?:ab)", "^", "$", "*",
    "+", "?", "{2}", "{1,}", "|", r"\.", r"\-", r"\_", "[a-]", r"[\w-]", "[[]", "[]a]", "[^]a]",
    r"\b", "[[:alpha:]]", "[[:^alpha:]]", "[^[:space:]]", "[:a]", r"\z", r"\A", r"\x{e9}", r"\x61",
    r"\141", r"\a", r"[\]]", r"[\-a]", "(?P<x>a)", "é", "😀", r"\n", "[\\s]", "[^\\s-]", "-", "{",
    r"\v", r"\f", "\u2028", "[.]", "(?i)", "(?i:k)", "(?s-i)", "[a-s]", "[[:lower:]]", "[Kz]",
    r"\Q", r"\pL", r"\C", "#", " ",
)  # fmt: skip


def test_a_pattern_of_the_server_matches_alike_in_the_form_or_is_refused(
    engines: Engines, chances: Chances
) -> None:
    choices = chances.random("server patterns")
    count = chances.count(PATTERNS, FULL)
    jobs: list[tuple[str, str]] = []
    known: list[tuple[str, bool]] = []
    refused = 0
    for _ in range(count):
        pattern, text = _job(choices)
        try:
            jobs.append((to_javascript(pattern), text))
        except ValueError:
            refused += 1
            continue
        known.append((pattern, bool(compile_pattern(pattern).search(text))))

    answers = engines.ask("match", jobs=jobs)

    unequal = [
        (pattern, *job, ours, unicode)
        for (pattern, ours), job, (unicode, _) in zip(known, jobs, answers, strict=True)
        if ours != unicode
    ]
    assert not unequal, sorted(unequal, key=lambda one: len(one[0]))[:10]
    assert refused < count * 0.6, "refusing nearly all would prove nothing"


def _job(choices: random.Random) -> tuple[str, str]:
    pattern = "".join(choices.choices(_PARTS, k=choices.randint(1, 4)))
    text = "".join(
        choices.choices(
            "aAbBkKsSz\u212a\u017f_-. 1é😀\n\v\f\u2028\u00a0:[]\\x", k=choices.randint(0, 6)
        )
    )
    return pattern, text
