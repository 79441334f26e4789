"""Many people at one order, through bad lines, killed, beside a hand in Git and a reviewer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bays import Bay
from changingcrowd import Crowd
from faultproxy import FAULTS_OF_A_BAD_LINE, Seeded, open_proxy
from roguery import deliver_main

from orderkit.flows.order.awaiting import await_commit
from orderkit_standins.serve_platform import Running

if TYPE_CHECKING:
    from chances import Chances


@pytest.mark.timeout(900)
def test_every_acknowledged_change_is_there_once_in_order_and_every_conflict_is_true(
    site: Running, bay: Bay, tmp_path: Path, chances: Chances
) -> None:
    straight = site.embedded.state.folder / "platform.yaml"
    with open_proxy(site.settings.forge.url) as proxy:
        bad = straight.with_name("behind-a-bad-line.yaml")
        bad.write_text(straight.read_text().replace(site.settings.forge.url, proxy.url))
        proxy.plan = Seeded(
            chances.random("chaos"), FAULTS_OF_A_BAD_LINE, write_rate=0.2, read_rate=0.02
        )
        crowd = Crowd(
            bay, [straight, bad], tmp_path, chances.seed,
            people=chances.count(4, 8), wishes_each=chances.count(3, 30),
            kills=chances.count(1, 40),
        )  # fmt: skip
        crowd.run(deadline_s=chances.count(800, 3000))

    crowd.judge()
    print(dict(sorted(crowd.counts.items())))  # noqa: T201  shown with -rP

    assert crowd.counts["kills"] == crowd.kills
    assert crowd.hands
    deliver_main(bay.platform, bay.repo)  # the last to write may have been a hand
    state = await_commit(bay.platform, bay.order, bay.head, timeout_s=120)
    assert state.ready
