"""A policy's expression gets only the parts of an object that it reads; that changes no verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubeschema.cel.environments import ADMISSION
from kubeschema.cel.evaluation import Activation, EvaluationOutcome, Parts
from kubeschema.cel.expressions import Expression, bound

ROOT = Path(__file__).parents[3]
NAMES = ("a", "b", "c")
_PATH = re.compile(r"\w((?:\.\??\w+\b(?!\()|\[\??'[^']*'\])+)")
_STEP = re.compile(r"\.\??(\w+)|\[\??'([^']*)'\]")

scalars = st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "b", "x:a"])
plain = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
    max_leaves=6,
)
names = st.sampled_from(NAMES)
literals = st.sampled_from(["1", "'a'", "null", "true", "[]", "{}", "{'a': 1}"])


def written(template: str, **parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Fill in a template: each field is drawn."""
    return st.fixed_dictionaries(dict(parts)).map(lambda drawn: template.format(**drawn))


def longer(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return expressions that use values, with one step more."""
    steps = (
        "{p}.{n}",
        "{p}.?{n}",
        "{p}['{n}']",
        "{p}[?'{n}']",
        "dyn({p})",
        "{p}.?{n}.orValue({q})",
    )
    more = (
        "({p} == {q} ? {q} : {p}).{n}",
        "cel.bind(v, {p}, {q} == null ? v : v.{n})",
        "cel.bind(object, {p}, object.?{n}.orValue(oldObject))",
        "{p}.map(object, object.{n})",
        "[{p}, {q}][0].{n}",
        "{{'a': {p}, 'b': {q}}}.{n}",
        "optional.of({p}).value().{n}",
        "optional.ofNonZeroValue({p}).or({q}.?{n}).orValue(null)",
    )
    return st.one_of([written(each, p=inner, q=inner, n=names) for each in (*steps, *more)])


values = st.recursive(st.sampled_from(["object", "oldObject", "params"]), longer, max_leaves=5)
questions = st.one_of(
    [
        written(each, p=values, q=values, n=names, x=literals)
        for each in (
            "{p} == {q}",
            "{p} != {x}",
            "{x} == {p}",
            "has({p}.{n})",
            "'{n}' in {p}",
            "size({p}) > 1",
            "{p}.all(k, k == '{n}')",
            "{p}.exists(k, {q}[k] == {p}[k])",
            "{p}.map(k, {q}) == [{x}]",
            "{p}.?{n}.hasValue()",
        )
    ]
)
expressions = st.recursive(
    questions,
    lambda inner: (
        written("({p} && {q})", p=inner, q=inner)
        | written("({p} || !{q})", p=inner, q=inner)
        | written("({p} ? {q} : {r})", p=inner, q=inner, r=inner)
    ),
    max_leaves=3,
)


class Whole(Activation):
    """The variables, of which every expression gets everything."""

    def only(self, parts: Parts) -> Activation:  # noqa: ARG002 - Activation's
        return self


def verdicts(expression: Expression, values: Mapping[str, Any]) -> list[EvaluationOutcome]:
    """Return what an expression says of whole objects, and of the parts that it is given."""
    return [
        expression.evaluate(each) for each in (Whole(bound(**values).variables), bound(**values))
    ]


@given(expressions, st.fixed_dictionaries(dict.fromkeys(ADMISSION, plain)))
def test_random_expressions_say_the_same_of_whole_objects_and_of_their_parts(
    source: str, values: dict[str, Any]
) -> None:
    of_whole, of_parts = verdicts(Expression(source), values)

    assert of_whole == of_parts


def objects_of(text: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return random objects with the fields that expressions name, and others."""
    found = {tuple(a or b for a, b in _STEP.findall(path)) for path in _PATH.findall(text)}
    paths = sorted({path[:end] for path in found for end in range(1, len(path) + 1)})
    texts = st.sampled_from(sorted(set(re.findall(r"'([^']*)'", text))) or [""])
    settings = st.lists(st.tuples(st.sampled_from(paths), plain | texts), max_size=8)
    return settings.map(_set)


def _set(settings: list[tuple[tuple[str, ...], Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {"noise": {"a": ["a"]}, "metadata": {"noise": "a"}}
    for (*parents, last), value in settings:
        place = whole
        for parent in parents:
            if not isinstance(place.get(parent), dict):
                place[parent] = {"noise": 1}
            place = place[parent]
        place[last] = value
    return whole


def policies() -> Iterator[tuple[list[Expression], st.SearchStrategy[dict[str, Any]]]]:
    """Yield the expressions of each policy of the repository, and random objects."""
    for file in sorted(
        f for at in ("gitops", "packs", "day2") for f in (ROOT / at).rglob("*.yaml")
    ):
        text = file.read_text()
        if "kind: ValidatingAdmissionPolicy\n" not in text:
            continue
        for policy in yaml.safe_load_all(text):
            spec = policy["spec"]
            variables = {v["name"]: v["expression"] for v in spec.get("variables", ())}
            sources = {
                rule[key]: None
                for rule in (*spec.get("matchConditions", ()), *spec.get("validations", ()))
                for key in ("expression", "messageExpression")
                if key in rule
            }
            if sources:
                text = "\n".join([*sources, *variables.values()])
                rules = [Expression(source, variables) for source in sources]
                yield rules, objects_of(text)


POLICIES = list(policies())


@given(st.data())
def test_policies_say_the_same_of_whole_objects_and_of_their_parts(data: st.DataObject) -> None:
    rules, objects = data.draw(st.sampled_from(POLICIES))
    values = data.draw(st.fixed_dictionaries(dict.fromkeys(ADMISSION, objects | st.none())))

    for rule in rules:
        of_whole, of_parts = verdicts(rule, values)
        assert of_whole == of_parts, rule.source
