"""Where expressions of policies cannot be evaluated exactly, and what admission leaves alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from ground.objects.kube_objects import CONFIG_MAP, Kind
from kubeschema.admission import BINDING, POLICY, Policy, Review, Ruling, judge
from kubeschema.cel.environments import ADMISSION, admission_runner
from kubeschema.cel.evaluation import Parts, parts_read
from kubeschema.cel.expressions import Expression, bound
from kubeschema.cel.syntax_tree import read_tree

EVERYTHING = {
    "resourceRules": [
        {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    ]
}


def review(data: Any = None, kind: Kind = CONFIG_MAP) -> Review:
    new = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "x"},
        "data": data,
    }
    return Review("CREATE", kind, "configmaps", "x", new, None, namespace="default")


def ruled(expression: str, asked: Review, *, failure_policy: str = "Fail") -> Ruling:
    spec = {
        "failurePolicy": failure_policy,
        "matchConstraints": EVERYTHING,
        "validations": [{"expression": expression}],
    }
    policy = Policy({"metadata": {"name": "p"}, "spec": spec})
    binding = {
        "metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": ["Deny"]},
    }
    return judge({"p": policy}, [binding], asked, lambda _kind, _namespace: ())


@dataclass(frozen=True)
class Gap:
    reason: str
    expression: str
    data: Any = None


GAPS = [
    Gap("who may do what is not known here", "authorizer.path('/x').check('get').allowed()"),
    Gap("a function that the library lacks", "isSemver('1.0.0')"),
    Gap("a number beyond 64 bits", "object.data.n > 1", {"n": 2**70}),
]


@pytest.mark.parametrize("gap", GAPS, ids=lambda gap: gap.reason)
def test_what_cannot_be_evaluated_refuses_and_says_so(gap: Gap) -> None:
    ruling = ruled(gap.expression, review(gap.data))

    (denial,) = ruling.denials
    assert "was not evaluated: " in denial.message
    assert denial.reason == "Invalid"


@pytest.mark.parametrize("gap", GAPS, ids=lambda gap: gap.reason)
def test_what_cannot_be_evaluated_passes_where_failures_are_ignored_and_is_told(gap: Gap) -> None:
    ruling = ruled(gap.expression, review(gap.data), failure_policy="Ignore")

    assert ruling.denials == []
    (told,) = ruling.skipped
    assert "was not evaluated: " in told


@pytest.mark.parametrize("kind", [POLICY, BINDING], ids=lambda kind: kind.kind)
def test_admissions_own_configuration_is_never_judged(kind: Kind) -> None:
    assert ruled("false", review(kind=kind)) == Ruling()


def test_a_policy_without_a_binding_says_nothing() -> None:
    spec = {"matchConstraints": EVERYTHING, "validations": [{"expression": "false"}]}
    policy = Policy({"metadata": {"name": "p"}, "spec": spec})

    assert judge({"p": policy}, [], review(), lambda _kind, _namespace: ()) == Ruling()


@pytest.mark.parametrize(
    ("source", "sound"),
    [
        ("object.spec.x == 'a'", True),
        ("isSemver('1.0.0')", True),
        ("authorizer.path('/x').check('get').allowed()", True),
        ("variables.a == 1 && 'variables.b' == 'variables.b'", True),
        ("variables.b == 1", False),
        ("object.spec.", False),
        ("nothing == 1", False),
    ],
)
def test_an_expression_is_sound_if_the_server_takes_it(source: str, sound: bool) -> None:  # noqa: FBT001 - a table
    assert (Expression(source, {"a": "1"}).judged()[0] == "") is sound


READ = {
    "object.spec.a == oldObject.spec.a": {
        "object": {"spec": {"a": None}},
        "oldObject": {"spec": {"a": None}},
    },
    "object == null || has(object.spec.a)": {"object": {"spec": {"a": None}}},
    "oldObject != null && object != oldObject": {"object": None, "oldObject": None},
    "cel.bind(b, oldObject == null ? dyn({}) : oldObject, b.?spec.?a.orValue(params.a) == 1)": {
        "oldObject": {"spec": {"a": {}}},
        "params": {"a": {}},
    },
    "object.?spec.orValue(params).a": {"object": {"spec": {"a": None}}, "params": {"a": None}},
    "[object.spec].map(s, s.a)": {"object": {"spec": None}},
    "has(object.spec.a) && object.?spec.?b.orValue('') == ''": {
        "object": {"spec": {"a": None, "b": {}}}
    },
    "object.spec['a'] == object.metadata.name": {
        "object": {"spec": None, "metadata": {"name": None}}
    },
    "object.spec.list.all(object, object.x == 1)": {
        "object": {"spec": {"list": None}},
    },
    "1 == 1": {},
}


@pytest.mark.parametrize("expression", READ)
def test_the_parts_that_an_expression_reads_are_known(expression: str) -> None:
    compiled = admission_runner(positions=False).compile(expression)
    parts = parts_read(read_tree(compiled.serialize()))

    assert {name: below for name, below in parts.items() if name in ADMISSION} == READ[expression]


def test_the_library_is_given_the_parts_that_are_read_and_no_others() -> None:
    manifest = {"spec": {"a": {"b": 1}, "c": 2, "t": "text"}, "status": {"message": "y" * 1_000}}
    parts: Parts = {"object": {"spec": {"a": None, "t": {"x": None}, "none": None}}}

    given = bound(object=manifest).only(parts)

    assert given.variables == {"object": {"spec": {"a": {"b": 1}, "t": "text"}}}
    assert bound(object=None).only(parts).variables == {"object": None}
