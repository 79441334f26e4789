"""What the server makes of every part of a policy and its binding; on ConfigMaps."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
import requests
from tests.conformance.policies.apiserver import ApiServer, Object, eventually

from kubeschema.admission import BINDING, POLICY

NAMESPACE, LABEL = "semantics", "policies.orderkit.dev/case"
DATA = {"size": "7", "name": "bay"}
_CUT = "resulted in error: "
"""What follows are the words of a CEL library; the real one has another."""
SENTINEL = "sentinel"
CONFIG_MAPS = {"apiVersion": "v1", "kind": "ConfigMap"}


def no(expression: str = "false", **more: Any) -> dict[str, Any]:
    """Return a validation."""
    return {"expression": expression, "message": "no", **more}


def rule(**more: Any) -> dict[str, Any]:
    return {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["configmaps"],
        **more,
    }


@dataclass(frozen=True)
class Case:
    """One policy with one binding, and one write. `told` empty: it is admitted."""

    reason: str
    validations: list[dict[str, Any]]
    told: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)
    constraints: Mapping[str, Any] = field(default_factory=dict)
    rules: Mapping[str, Any] = field(default_factory=dict)
    binding: Mapping[str, Any] = field(default_factory=dict)
    operation: Literal["CREATE", "UPDATE", "DELETE"] = "CREATE"
    code: int = 422
    warning: str = ""


def conditions(*expressions: str) -> dict[str, Any]:
    return {
        "matchConditions": [{"name": f"c{n}", "expression": e} for n, e in enumerate(expressions)]
    }


def variables(**expressions: str) -> dict[str, Any]:
    return {"variables": [{"name": n, "expression": e} for n, e in expressions.items()]}


def params(**reference: Any) -> dict[str, Any]:
    return {"paramRef": {"namespace": NAMESPACE, "parameterNotFoundAction": "Deny", **reference}}


WARNED = "Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': no"
MISSING = "object.data.missing == 'x'"
IGNORE = {"failurePolicy": "Ignore"}
BY_MAPS = {"paramKind": CONFIG_MAPS}
CASES = [
    Case("what holds is admitted", [no("object.data.size == '7'")]),
    Case("a message is told", [no()], "no"),
    Case(
        "the request leaves out what is empty",
        [
            no(
                "has(request.name) && has(request.namespace) && has(request.dryRun) &&"
                " !has(request.subResource) && !has(request.requestSubResource)"
            )
        ],
    ),
    Case(
        "without a message the expression is told",
        [{"expression": " 1 == 2 "}],
        "failed expression: 1 == 2",
    ),
    Case(
        "a computed message is told", [no(messageExpression="'not ' + object.data.name")], "not bay"
    ),
    Case("a computed message is trimmed", [no(messageExpression="'  not  '")], "not"),
    Case("an empty computed message gives way", [no(messageExpression="' '")], "no"),
    Case("a computed message of two lines gives way", [no(messageExpression="'a\\nb'")], "no"),
    Case(
        "a computed message that fails gives way",
        [no(messageExpression="string(object.data.missing)")],
        "no",
    ),
    Case("the first that fails is told", [no("true"), no(message="one"), no(message="two")], "one"),
    Case("a reason chooses the code", [no(reason="Forbidden")], "no", code=403),
    Case(
        "a reason chooses the code: too large", [no(reason="RequestEntityTooLarge")], "no", code=413
    ),
    Case(
        "variables use each other",
        [no("variables.b == 3", messageExpression="string(variables.b)")],
        "4",
        variables(a="size(object.data)", b="variables.a + 2"),
    ),
    Case(
        "the word variables in a text is a text",
        [no(messageExpression="'variables.a is ' + variables.a")],
        "variables.a is x",
        variables(a="'x'"),
    ),
    Case(
        "a variable nobody asks for may fail", [no("true")], "", variables(a="object.data.missing")
    ),
    Case(
        "a variable that fails, fails what asks",
        [no("variables.a == 'x'")],
        f"expression 'variables.a == 'x'' {_CUT}",
        variables(a="object.data.missing"),
    ),
    Case("an error refuses", [no(MISSING)], f"expression '{MISSING}' {_CUT}"),
    Case("an error is ignored where the policy says so", [no(MISSING)], "", IGNORE),
    Case("what does not hold refuses all the same", [no()], "no", IGNORE),
    Case("an error beside what decides does not matter", [no(f"true || {MISSING}")]),
    Case("a condition that does not hold ends it", [no()], "", conditions("true", "false")),
    Case(
        "conditions that hold do not", [no()], "no", conditions("true", "object.data.size == '7'")
    ),
    Case(
        "a condition that does not hold outdoes an error", [no()], "", conditions(MISSING, "false")
    ),
    Case(
        "an error of a condition is ignored where the policy says so",
        [no()],
        "",
        {**IGNORE, **conditions(MISSING)},
    ),
    Case("other operations are not meant", [no()], rules={"operations": ["UPDATE", "DELETE"]}),
    Case("any operation is meant", [no()], "no", rules={"operations": ["*"]}),
    Case(
        "an update sees both",
        [
            no(
                "object.data.size == oldObject.data.size",
                messageExpression="oldObject.data.size + ' to ' + object.data.size",
            )
        ],
        "7 to 8",
        operation="UPDATE",
    ),
    Case("a creation has no old object", [no("oldObject == null", message="x")]),
    Case(
        "a deletion has no new object",
        [no("object != null", messageExpression="request.operation + ' ' + oldObject.data.name")],
        "DELETE bay",
        operation="DELETE",
    ),
    Case(
        "request says what is asked",
        [
            no(
                messageExpression=(
                    "[request.operation, request.kind.kind, request.resource.resource, "
                    "request.namespace, request.kind.version, string(request.dryRun)].join(' ')"
                )
            )
        ],
        f"CREATE ConfigMap configmaps {NAMESPACE} v1 true",
    ),
    Case(
        "the namespace is there",
        [no(messageExpression="string(namespaceObject.metadata.labels.colour)")],
        "red",
    ),
    Case(
        "another namespace is not meant",
        [no()],
        constraints={"namespaceSelector": {"matchLabels": {"colour": "blue"}}},
    ),
    Case(
        "a namespace by expression",
        [no()],
        "no",
        constraints={
            "namespaceSelector": {
                "matchExpressions": [{"key": "colour", "operator": "In", "values": ["red"]}]
            }
        },
    ),
    Case(
        "another object is not meant",
        [no()],
        constraints={"objectSelector": {"matchLabels": {"other": "x"}}},
    ),
    Case("an excluded kind is not meant", [no()], constraints={"excludeResourceRules": [rule()]}),
    Case("another name is not meant", [no()], rules={"resourceNames": ["other"]}),
    Case("cluster scope is not meant", [no()], rules={"scope": "Cluster"}),
    Case("namespaced scope is meant", [no()], "no", rules={"scope": "Namespaced"}),
    Case("another group is not meant", [no()], rules={"apiGroups": ["apps"]}),
    Case("a star means all kinds, but no parts", [no()], "no", rules={"resources": ["*"]}),
    Case("stars mean all kinds and their parts", [no()], "no", rules={"resources": ["*/*"]}),
    Case("a part is not the whole", [no()], rules={"resources": ["configmaps/status"]}),
    Case("auditing refuses nothing", [no()], binding={"validationActions": ["Audit"]}),
    Case(
        "a warning refuses nothing", [no()], binding={"validationActions": ["Warn"]}, warning=WARNED
    ),
    Case(
        "refusing and auditing refuses",
        [no()],
        "no",
        binding={"validationActions": ["Deny", "Audit"]},
    ),
    Case(
        "the binding means other objects",
        [no()],
        binding={"matchResources": {"objectSelector": {"matchLabels": {"other": "x"}}}},
    ),
    Case(
        "the binding means other operations",
        [no()],
        binding={"matchResources": {"resourceRules": [rule(operations=["DELETE"])]}},
    ),
    Case(
        "parameters by name",
        [no("object.data.size == params.data.size", messageExpression="string(params.data.size)")],
        "1",
        BY_MAPS,
        binding=params(name="one"),
    ),
    Case(
        "every object of parameters has to agree",
        [no("object.data.size != params.data.size", messageExpression="string(params.data.size)")],
        "7",
        BY_MAPS,
        binding=params(selector={"matchLabels": {"set": "a"}}),
    ),
    Case(
        "no parameters refuse",
        [no("true")],
        "failed to configure binding: no params found for "
        "policy binding with `Deny` parameterNotFoundAction",
        BY_MAPS,
        binding=params(name="nothing"),
    ),
    Case(
        "no parameters end it where the binding says so",
        [no()],
        "",
        BY_MAPS,
        binding=params(name="nothing", parameterNotFoundAction="Allow"),
    ),
    Case(
        "a policy with parameters, a binding without",
        [no("params == null", message="x")],
        "",
        BY_MAPS,
    ),
    Case(
        "what is optional",
        [
            no(
                "object.?data.?missing.orValue('a') == 'b'",
                messageExpression="string(object.?metadata.?labels[?'x/y'].orValue('none'))",
            )
        ],
        "none",
    ),
    Case(
        "lists, texts and quantities",
        [
            no(
                "['a', 'b'].exists(x, x in object.data.name.split('')) && "
                "quantity('1Gi').isGreaterThan(quantity('900Mi')) && "
                "object.data.name.matches('^b.y$')"
            )
        ],
    ),
    Case("a list knows where something is", [no("['a', 'b'].indexOf('b') == 1")]),
]


@dataclass(frozen=True)
class Broken:
    """A policy that is not sound; `told` is where, and the sentence without the library's words."""

    reason: str
    told: str
    validation: Mapping[str, Any] = field(default_factory=lambda: no("true"))
    spec: Mapping[str, Any] = field(default_factory=dict)


_UNSOUND = "compilation failed: "
BROKEN = [
    Broken(
        "a name that nobody knows",
        f'spec.validations[0].expression: Invalid value: "nothing == 1": {_UNSOUND}',
        no("nothing == 1"),
    ),
    Broken(
        "no sentence at all",
        f'spec.validations[0].expression: Invalid value: "object.": {_UNSOUND}',
        no("object."),
    ),
    Broken(
        "types that do not fit",
        f"spec.validations[0].expression: Invalid value: \"variables.a == 'x'\": {_UNSOUND}",
        no("variables.a == 'x'"),
        variables(a="1"),
    ),
    Broken(
        "no boolean",
        "spec.validations[0].expression: Invalid value: \"'text'\": must evaluate to bool but "
        "got string",
        no("'text'"),
    ),
    Broken(
        "a message of a type that is not known",
        'spec.validations[0].messageExpression: Invalid value: "object.x": must evaluate to '
        "string but got dyn",
        no("true", messageExpression="object.x"),
    ),
    Broken(
        "a condition that is not sound",
        f'spec.matchConditions[0].expression: Invalid value: "nothing": {_UNSOUND}',
        spec=conditions("nothing"),
    ),
    Broken(
        "a variable that uses a later one",
        f'spec.variables[0].expression: Invalid value: "variables.b": {_UNSOUND}',
        spec=variables(a="variables.b", b="1"),
    ),
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.reason)
def test_the_server_refuses_a_policy_that_is_not_sound(server: ApiServer, broken: Broken) -> None:
    case = Case(broken.reason, [dict(broken.validation)], spec=broken.spec)
    made, _ = policy(case, "broken.policies.orderkit.dev")

    answer = server.create(made, dry_run=True)

    assert answer.status_code == requests.codes.unprocessable
    (cause,) = answer.json()["details"]["causes"]
    head, mark, _ = f"{cause['field']}: {cause['message']}".partition(_UNSOUND)
    assert head + mark == broken.told


def name_of(case: Case) -> str:
    return f"s{CASES.index(case):02}.policies.orderkit.dev"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_the_server_reads_a_policy_so(enforced: ApiServer, case: Case) -> None:
    answer = attempt(enforced, case)

    name = name_of(case)
    if case.told:
        words = f"{POLICY.kind} '{name}' with binding '{name}' denied request: {case.told}"
        assert not answer.ok
        assert (answer.status_code, cut(answer.json()["message"])) == (
            case.code,
            f'configmaps "{map_name(case)}" is forbidden: {words}',
        )
    else:
        assert answer.ok, answer.text
        assert case.warning.format(name=name) in answer.headers.get("Warning", "")


def cut(text: str) -> str:
    head, mark, _ = text.partition(_CUT)
    return head + mark


def map_name(case: Case) -> str:
    return f"map-{CASES.index(case):02}"


def config_map(name: str, labels: Mapping[str, str], data: Mapping[str, str]) -> Object:
    meta = {"name": name, "namespace": NAMESPACE, "labels": dict(labels)}
    return {**CONFIG_MAPS, "metadata": meta, "data": dict(data)}


def attempt(server: ApiServer, case: Case) -> requests.Response:
    manifest = config_map(map_name(case), {LABEL: name_of(case)}, DATA)
    if case.operation == "CREATE":
        return server.create(manifest, dry_run=True)
    if case.operation == "DELETE":
        return server.delete(manifest, dry_run=True)
    return server.put({**manifest, "data": {**DATA, "size": "8"}}, dry_run=True)


@pytest.fixture(scope="module")
def enforced(server: ApiServer) -> Iterator[ApiServer]:
    """All policies, and what is there before and beside them."""
    meta = {"name": NAMESPACE, "labels": {"colour": "red"}}
    server.must({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    for name, size in (("one", "1"), ("two", "2"), ("seven", "7")):
        labels = {"set": "a"} if name != "one" else {}
        server.must(config_map(name, labels, {"size": size}))
    for case in CASES:
        if case.operation != "CREATE":
            server.must(config_map(map_name(case), {LABEL: name_of(case)}, DATA))
    made = [part for case in CASES for part in policy(case)]
    made += policy(Case("sentinel", [no()]), SENTINEL)
    for kind in (POLICY.kind, BINDING.kind):
        for manifest in made:
            if manifest["kind"] == kind:
                answer = server.create(manifest)
                assert answer.ok, answer.text
    probe = config_map("probe", {LABEL: SENTINEL}, {})
    # each policy has its own program, so each is waited for by what it must refuse
    eventually(lambda: not server.create(probe, dry_run=True).ok, "the last policy is in force")
    for case in filter(operator.attrgetter("told"), CASES):
        eventually(functools.partial(refuses, server, case), case.reason)
    yield server
    for manifest in made:
        server.delete(manifest)


def refuses(server: ApiServer, case: Case) -> bool:
    return not attempt(server, case).ok


def policy(case: Case, name: str = "") -> list[Object]:
    """Return a case's policy and binding; they mean objects with the case's label."""
    name = name or name_of(case)
    selector = {"objectSelector": {"matchLabels": {LABEL: name}}}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [rule(**case.rules)],
            **selector,
            **case.constraints,
        },
        "validations": case.validations,
        **case.spec,
    }
    binding = {"policyName": name, "validationActions": ["Deny"], **case.binding}
    return [
        {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": name},
            "spec": content,
        }
        for kind, content in ((POLICY, spec), (BINDING, binding))
    ]
