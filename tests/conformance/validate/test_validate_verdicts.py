"""Our verdict is the API server's, or the rule is not evaluated and counted as such."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from chances import Chances
from tests.conformance.validate.cases import Case, Verdict
from tests.conformance.validate.conftest import RECORD_VARIABLE, RECORDED
from tests.conformance.validate.judges import Judge, Ours, Server
from tests.conformance.validate.productions import generated, refused_rules
from tests.conformance.validate.table import table

SEED, SCHEMAS, FULL_SCHEMAS = "recorded", 80, 300
NOT_EVALUATED_MOST = 0.10
Figure = Callable[[str], None]
KNOWN_TEXTS = ("evaluating rule: ", "compilation failed: ")
"""Sentences that continue in the words of a CEL library: theirs is another one."""


def cases() -> list[Case]:
    """Return the cases whose real verdicts are recorded."""
    random_ = random.Random(SEED)  # noqa: S311 - no secrets
    return [*table(), *refused_rules(random_), *generated(random_, SCHEMAS)]


CASES = cases()


def comparable(verdict: Verdict) -> tuple[str, Any, list[tuple[str, str]]]:
    """Return what has to be equal: outcome, stored value, paths, and sentences that are ours."""
    return verdict.outcome, verdict.stored, [_cut(path, text) for path, text in verdict.faults]


def _cut(path: str, text: str) -> tuple[str, str]:
    # The server names the whole schema of single-version definitions `spec.validation`.
    path = path.replace("spec.versions[0].schema.", "spec.validation.")
    text = text.replace("spec.versions[0].schema.", "spec.validation.")
    for known in KNOWN_TEXTS:
        if known in text:
            return path, text.partition(": ")[0] if known == KNOWN_TEXTS[0] else known
    return path, text


@pytest.mark.skipif(RECORD_VARIABLE not in os.environ, reason=f"needs {RECORD_VARIABLE}")
@pytest.mark.timeout(1_800)
def test_verdicts_are_recorded_from_the_real_server(real: Server) -> None:
    real.prepare(CASES)
    verdicts = {case.id: {"case": case.digest, **real.judge(case).to_json()} for case in CASES}
    document = {"server": f"kube-apiserver {real.version()}", "verdicts": verdicts}
    RECORDED.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


@pytest.mark.parametrize(
    "case", [c for c in CASES if not c.id.startswith("generated")], ids=lambda case: case.id
)
def test_a_known_case_is_judged_as_by_the_real_server(
    judge: Judge, recorded: dict[str, Any], case: Case
) -> None:
    theirs = real_verdict(recorded, case)

    assert disagreement(judge.judge(case), theirs) is None, case.reason


@pytest.mark.timeout(900)
def test_generated_cases_are_judged_as_by_the_real_server(
    judge: Judge, recorded: dict[str, Any], figure: Figure
) -> None:
    wanted = [case for case in CASES if case.id.startswith("generated")]
    if isinstance(judge, Server):
        judge.prepare(wanted)

    tally = judged(judge, ((case, real_verdict(recorded, case)) for case in wanted))

    figure(f"{type(judge).__name__}: {len(wanted)} generated cases, {tally.text()}")
    assert len(wanted) >= 300
    assert tally.outcomes["accepted"] > 50
    assert tally.outcomes["refused"] > 50
    assert not tally.disagreements
    assert tally.not_evaluated <= NOT_EVALUATED_MOST * len(wanted)


@pytest.mark.timeout(1_800)
def test_new_generated_cases_are_judged_as_by_a_live_server(
    real: Server, chances: Chances, figure: Figure
) -> None:
    count = chances.count(SCHEMAS // 2, FULL_SCHEMAS)
    wanted = list(generated(chances.random("verdicts"), count))
    real.prepare(wanted)

    tally = judged(Ours(), ((case, real.judge(case)) for case in wanted))

    figure(f"live server: {len(wanted)} generated cases, {tally.text()}")
    assert not tally.disagreements


@dataclass
class Tally:
    """How often what was said, and where two judges differ."""

    outcomes: Counter[str] = field(default_factory=Counter)
    not_evaluated: int = 0
    disagreements: list[str] = field(default_factory=list)

    def text(self) -> str:
        outcomes = ", ".join(f"{count} {name}" for name, count in sorted(self.outcomes.items()))
        return f"{outcomes}; {self.not_evaluated} with a rule that is not evaluated"


def judged(judge: Judge, cases: Iterable[tuple[Case, Verdict]]) -> Tally:
    """Judge every case and compare."""
    tally = Tally()
    for case, theirs in cases:
        mine = judge.judge(case)
        tally.outcomes[theirs.outcome] += 1
        tally.not_evaluated += bool(mine.not_evaluated)
        found = disagreement(mine, theirs)
        if found:
            tally.disagreements.append(
                f"{case.id}: {found}\n{case.schema}\n{case.old} -> {case.new}"
            )
    return tally


def real_verdict(recorded: dict[str, Any], case: Case) -> Verdict:
    found = recorded["verdicts"].get(case.id)
    assert found is not None, f"{case.id} is not recorded; conftest.py says how"
    assert found["case"] == case.digest, f"{case.id} changed since it was recorded"
    return Verdict.from_json(found)


def disagreement(mine: Verdict, theirs: Verdict) -> str | None:
    """
    Return how two verdicts differ; None if they agree.

    Where a rule was not evaluated, nothing may be refused that the server accepts.
    """
    ours, others = comparable(mine), comparable(theirs)
    if ours == others:
        return None
    if mine.not_evaluated and theirs.outcome == "old-refused":
        return None  # our old object was not fully judged: whatever follows is about another one
    if mine.not_evaluated and theirs.outcome == "refused" and set(ours[2]) <= set(others[2]):
        return None
    return f"ours {ours}, theirs {others}"
