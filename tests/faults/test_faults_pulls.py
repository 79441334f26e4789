"""A change offered and merged through the fault proxy is there once, or the error is true."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.faults.pulls import Offer

if TYPE_CHECKING:
    from chances import Chances
    from tests.faults.conftest import Bench, Report

SEEDS = {False: (8, 500), True: (2, 25)}
"""Short and full counts, by whether the forge is a real one."""


@pytest.mark.timeout(900)
def test_random_faults_make_no_pull_request_comment_or_merge_twice(
    bench: Bench, chances: Chances, report: Report
) -> None:
    bench.hits()
    for number in range(chances.count(*SEEDS[bench.real])):
        offer = Offer(bench, bench.new_repo(), chances.random(f"pulls {number}"))
        try:
            offer.go()
        except BaseException as error:
            error.add_note(f"seed {chances.seed}, run {number}\n" + "\n".join(bench.proxy.log))
            raise
        report.add(f"pull requests on the {bench.name}", offer.counts)
    report.add(f"what happened to writes about pull requests, {bench.name}", bench.hits())
