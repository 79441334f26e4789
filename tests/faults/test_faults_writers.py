"""Eight processes edit at once: what was acknowledged is what the history and the files hold."""

from __future__ import annotations

import secrets
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from bench.writer import SHARED, Done, Task, run_all
from tests.faults import history

from ground.names import RepoId
from orderkit.ports.forge import Operation

if TYPE_CHECKING:
    from chances import Chances
    from tests.faults.conftest import Bench, Report

WRITERS = 8
EDITS = {False: (4, 100), True: (2, 10)}
"""Short and full counts of each writer, by whether the forge is a real one."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("repositories", [1, 20])
def test_acknowledged_edits_are_the_history_and_the_final_state(
    bench: Bench, chances: Chances, report: Report, repositories: int
) -> None:
    repos = [bench.new_repo() for _ in range(repositories)]
    for repo in repos:
        beginning = Operation(secrets.token_hex(8), "user:default/me", "Begin")
        bench.direct.write(repo, [history.change(SHARED, "0\n", None)], beginning)
    names = [str(repo) for repo in repos]
    edits = chances.count(*EDITS[bench.real])
    tasks = [
        Task("orderkit", f"w{n}", edits, bench.url, names[n:] + names[:n], bench.token)
        for n in range(WRITERS)
    ]

    found, elapsed_s = run_all(tasks)

    for repo in repos:
        judge(bench, repo, found)
    assert [len(done.acknowledged) for done in found] == [edits] * WRITERS
    conflicts = sum((done.conflicts for done in found), Counter[str]())
    assert not sum((done.errors for done in found), Counter[str]())
    assert set(conflicts) <= {"3"}, "an exhausted retry ends with exit code 3"
    tries = sum(done.tries for done in found)
    figures = {
        "edits": edits * WRITERS,
        "tries": tries,
        "conflicts": conflicts.total(),
        "edits per second": round(edits * WRITERS / elapsed_s),
    }
    report.add(f"8 writers, {repositories} repositories, {bench.name}", Counter(figures))


def judge(bench: Bench, repo: RepoId, found: list[Done]) -> None:
    """Assert that one repository holds each acknowledged edit of it once, and nothing else."""
    told = {
        operation: place.rpartition("/")[2]
        for done in found
        for operation, place in done.acknowledged.items()
        if place.rpartition("/")[0] == str(repo)
    }
    repository = bench.repository(repo)
    (_, *steps) = history.steps(repository)
    made = Counter(name for step in steps for name in step.operations)
    assert made == Counter(told.keys()), "acknowledged edits are the commits"
    for step in steps:
        (operation,) = step.operations
        assert list(step.changed) == [told[operation]]
        assert step.parents == 1
    wanted = Counter(told.values())
    for path, sha in history.files(repository).items():
        assert sha == history.blob(f"{wanted[path]}\n"), f"{path} counts {wanted[path]} edits"
