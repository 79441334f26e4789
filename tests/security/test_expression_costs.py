"""Values made for conditions and rules: what costs too much is stopped and counts against them."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from scripts.houses import HOUSES

from ground.objects.kube_objects import Kind
from kubeschema.admission import Policy, Review
from kubeschema.cel import RuleSet
from kubeschema.cel.expressions import Subject, condition
from orderkit.core.kit.approval_rules import Subjects, needs_of
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_terms import Approval, ApprovalRule

ROOT = Path(__file__).parents[2]
TEXTS = {"type": "array", "items": {"type": "string"}}
SPEC = {"properties": {"guests": TEXTS, "numbers": TEXTS, "text": {"type": "string"}}}
OLD_AND_NEW = Subject({"old": SPEC, "new": SPEC})
GUESTS = [f"guest-{number}" for number in range(6_000)]
VALUES = {
    "old": {"guests": [f"other-{number}" for number in range(6_000)]},
    "new": {
        "guests": GUESTS,
        "numbers": [str(number) for number in range(9_000)],
        "text": "a" * 90_000,
    },
}
SMALL = {"old": {"guests": ["a"]}, "new": {"guests": ["b"], "numbers": ["1", "2"], "text": "a"}}


def nested(form: str, levels: int, last: str) -> str:
    """Return an expression with one loop or binding inside another."""
    source = last % {"at": levels}
    for level in range(levels, 0, -1):
        source = form % {"at": level, "above": level - 1, "inside": source}
    return f"cel.bind(v0, new.text, {source})"


NESTED_LISTS = "cel.bind(v%(at)d, [v%(above)d, v%(above)d], %(inside)s)"
COSTLY = {
    "membership in a loop": "new.guests.filter(g, !(g in old.guests)).size() > 1",
    "replace in a loop": "new.numbers.all(n, new.text.replace('a', 'b') != n)",
    "a filter alone": "new.numbers.filter(n, true).size() > 1",
    "three loops": "new.guests.map(a, new.guests.map(b, new.guests.map(c, a + b + c))) != []",
    "a loop with two variables": "new.numbers.transformList(i, v, v + v).size() > 0",
    "a text that doubles": nested(
        "cel.bind(v%(at)d, v%(above)d + v%(above)d, %(inside)s)", 14, "v%(at)d.size() > 0"
    ),
    "a text that doubles in loops": nested(
        "[v%(above)d + v%(above)d].all(v%(at)d, %(inside)s)", 14, "v%(at)d.size() > 0"
    ),
    "lists in lists": nested(NESTED_LISTS, 14, "v%(at)d == v%(at)d"),
    "a list in each round": "new.numbers.all(n, (new.numbers + new.numbers).size() > 0)",
    "a part in each round": "new.numbers.all(n, new.numbers.slice(0, 8000).size() > 0)",
    "a list from a number": "lists.range(100000000).size() > 0",
    "a computed number": "[100000].all(n, lists.range(n * n).size() > 0)",
    "a pattern with a count": "new.text.matches('(a?){1000}b')",
    "a text as a pattern": "new.numbers.all(n, n.matches(new.text) || true)",
    "a long needle": "(new.text + 'a').contains(new.text + 'b')",
    "each letter by a text": "new.text.replace('a', new.text).size() > 0",
    "all letters": "new.text.split('').map(c, c + c).size() > 0",
    "format in a loop": "new.numbers.all(n, '%s%s'.format([new.text, n]) != '')",
    "join by a text": "new.numbers.join(new.text).size() > 0",
    "all matches": "new.text.findAll('a').size() > 0",
    "sets": "sets.contains(new.numbers, new.guests)",
    "loops of more rounds than the library has": (
        "new.guests.exists(a, new.guests.exists(b, a == b + 'x'))"
    ),
}


@pytest.mark.parametrize("attack", COSTLY)
def test_what_costs_too_much_is_not_evaluated(attack: str) -> None:
    """The first two took 9 s and 411 s: hundreds of times what is measured here."""
    judged = condition(COSTLY[attack])
    started_s = time.thread_time()

    verdict = judged.judge(OLD_AND_NEW.values(VALUES))

    assert time.thread_time() - started_s < 2
    assert (verdict.holds, verdict.is_known) == (False, False)
    assert "it costs too much to evaluate" in verdict.why_unknown


@pytest.mark.parametrize("attack", [name for name in COSTLY if "number" not in name])
def test_the_same_expressions_are_evaluated_with_few_values(attack: str) -> None:
    verdict = condition(COSTLY[attack]).judge(OLD_AND_NEW.values(SMALL))

    assert "costs too much" not in verdict.why_unknown


def test_all_attacks_together_need_little_memory_and_time() -> None:
    """A filter over 9,000 texts alone takes 1.3 GB, a list of 100 million numbers 3 GB."""
    code = "from tests.security.test_expression_costs import judge_all; judge_all()"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    megabytes, seconds = map(float, ran.stdout.split())

    assert megabytes < 300
    assert seconds < 20


def judge_all() -> None:
    """Write the memory (MB) and processor time that all attacks take, each eight times."""
    values = OLD_AND_NEW.values(VALUES)
    for source in COSTLY.values():
        for _ in range(8):
            condition(source).judge(values)
    # ru_maxrss of a new program begins with the memory of the process that started it.
    kilobytes = re.search(
        r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE
    )
    assert kilobytes
    sys.stdout.write(f"{int(kilobytes[1]) / 1024} {time.process_time()}")


@pytest.mark.parametrize("count", [10, 900])
def test_what_kubernetes_affords_is_evaluated(count: int) -> None:
    """Each entry that is compared costs one unit of a million."""
    new, old = GUESTS[:count], [f"other-{number}" for number in range(count)]
    judged = condition(COSTLY["membership in a loop"])

    verdict = judged.judge(OLD_AND_NEW.values({"old": {"guests": old}, "new": {"guests": new}}))

    assert verdict.holds


def test_a_rule_of_an_xrd_that_costs_too_much_refuses_the_object() -> None:
    """In the words of the API server, whose limit is the same."""
    rule = {"rule": "self.filter(g, !(g in self)).size() == 0"}
    guests = {**TEXTS, "x-kubernetes-validations": [rule]}
    rules = RuleSet({"type": "object", "properties": {"guests": guests}})

    verdicts = rules.check({"guests": GUESTS})

    assert not verdicts.gaps
    [problem] = verdicts.problems
    assert problem.path == "guests"
    assert f"call cost exceeds limit for rule: {rule['rule']}" in problem.message
    assert not rules.check({"guests": GUESTS[:500]}).problems


def test_all_rules_of_an_object_share_a_limit() -> None:
    """Each list is cheap enough alone; 400 of them took 30 s. A fast machine evaluates 350."""
    rule = {"rule": "self.filter(g, !(g in self)).size() == 0"}
    rooms = {"type": "array", "items": {**TEXTS, "x-kubernetes-validations": [rule]}}
    rules = RuleSet({"type": "object", "properties": {"rooms": rooms}})
    started_s = time.thread_time()

    verdicts = rules.check({"rooms": [GUESTS[:900]] * 700})

    assert time.thread_time() - started_s < 15
    assert len(verdicts.problems) > 100


def test_an_approval_rule_that_costs_too_much_needs_its_approval() -> None:
    """Although it would not ask for one: no guest is new."""
    rule = ApprovalRule(COSTLY["membership in a loop"], ("platform",), "guests are added")
    schema = {"properties": {"spec": {"type": "object", **SPEC}}}
    version = {"name": "v1", "referenceable": True, "schema": {"openAPIV3Schema": schema}}
    xrd = {"spec": {"group": "example.org", "names": {"kind": "Hall"}, "versions": [version]}}
    kit = Kit(name="hall", xrd=xrd, approval=Approval((rule,)))
    few, many = {"guests": ["a"]}, {"guests": GUESTS}

    [need] = needs_of(kit, Subjects(many, many, {}, {}, {}))

    assert need.unknown
    assert not needs_of(kit, Subjects(few, few, {}, {}, {}))


@pytest.mark.parametrize("ignores", [False, True])
def test_a_policy_that_costs_too_much_fails(ignores: bool) -> None:  # noqa: FBT001 - a case
    """Its failure policy decides, as on the server."""
    expression = "object.spec.guests.filter(g, !(g in object.spec.guests)).size() == 0"
    spec: dict[str, Any] = {"validations": [{"expression": expression}]}
    policy = Policy(
        {
            "metadata": {"name": "guests"},
            "spec": {**spec, "failurePolicy": "Ignore" if ignores else "Fail"},
        }
    )
    kind = Kind("example.org", "v1", "Hall")
    review = Review("CREATE", kind, "halls", "a", {"spec": {"guests": GUESTS}}, None)

    [failure] = policy.failures(review, None)

    assert "it costs too much to evaluate" in failure.message
    assert failure.skipped is ignores


def test_expressions_are_evaluated_in_one_place_only() -> None:
    """``eval`` of the CEL library has no limits of its own."""
    callers = {
        path.relative_to(ROOT).as_posix()
        for house in HOUSES
        for path in (ROOT / house.source).rglob("*.py")
        if ".eval(" in path.read_text(encoding="utf-8")
    }
    importers = {
        path.relative_to(ROOT).as_posix()
        for house in HOUSES
        for path in (ROOT / house.source).rglob("*.py")
        if "cel_expr_python import" in path.read_text(encoding="utf-8")
    }

    assert callers == {"libs/kubeschema/src/kubeschema/cel/evaluation.py"}
    assert importers == {"libs/kubeschema/src/kubeschema/cel/environments.py"}
