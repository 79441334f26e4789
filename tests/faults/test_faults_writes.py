"""Every write ends as one commit or as an error that is true, whatever happens on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.faults.writes import Run

from orderkit.ports.urgency import background

if TYPE_CHECKING:
    from chances import Chances
    from tests.faults.conftest import Bench, Report

SEEDS = {False: (40, 1000), True: (5, 50)}
"""Short and full counts, by whether the forge is a real one."""
WRITES = {False: 5, True: 4}


@pytest.mark.timeout(600)
def test_random_faults_lose_no_write_and_make_none_twice(
    bench: Bench, chances: Chances, report: Report
) -> None:
    for number in range(chances.count(*SEEDS[bench.real])):
        run = Run(bench, bench.new_repo(), chances.random(f"writes {number}"))
        try:
            run.go(WRITES[bench.real])
        except BaseException as error:
            error.add_note(f"seed {chances.seed}, run {number}\n" + "\n".join(bench.proxy.log))
            raise
        report.add(f"writes on the {bench.name}", run.counts)
    report.add("what happened to writes", bench.hits())


@pytest.mark.timeout(600)
def test_random_faults_lose_no_push_and_make_none_twice(
    bench: Bench, chances: Chances, report: Report
) -> None:
    """Background work is pushed to GitHub and GitLab: the same promises, whatever happens."""
    if bench.face not in ("github", "gitlab"):
        pytest.skip("Gitea's API has no limit of content, so nothing is pushed there")
    for number in range(chances.count(15, 500)):
        run = Run(bench, bench.new_repo(), chances.random(f"pushes {number}"))
        try:
            with background():
                run.go(WRITES[bench.real])
        except BaseException as error:
            error.add_note(f"seed {chances.seed}, run {number}\n" + "\n".join(bench.proxy.log))
            raise
        report.add(f"pushes to the {bench.name}", run.counts)
    report.add("what happened to pushes", bench.hits())
