"""Ten thousand orders of two hundred teams: what grows, and what does not."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath
from typing import Any

import yaml

from ground.names import OrderId, RepoId, TeamName
from orderkit.core.kit.order_kinds import OrderKinds
from orderkit.core.order import ledger, ledger_applications
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.ledger_applications import TeamPlace
from yamlfiles import yaml11

TEAMS, ORDERS = 200, 10_000
EACH = ORDERS // TEAMS
FORGE, LEDGER = "http://forge", RepoId("platform", "ledger")
KINDS = OrderKinds(cluster=(("blog.opsbogus.dev", "XGarage"),))
ALL = [
    OrderEntry(TeamName(f"crew-{n % TEAMS:03d}"), OrderId(f"garage-{n:05d}")) for n in range(ORDERS)
]
PATHS = {
    *(ledger.team_path(entry.team) for entry in ALL),
    *(ledger.apps_keep_path(entry.team) for entry in ALL),
    *(entry.application_path for entry in ALL),
}


DELIVERED = Counter(path.parent for path in PATHS if path.suffix == ".yaml")
"""How many files an Application of a folder renders; it does not look below."""


def team_file(team: str) -> list[dict[str, Any]]:
    text = ledger_applications.team_file(TeamPlace(TeamName(team), FORGE, LEDGER, KINDS))
    return list(yaml.safe_load_all(text))


def test_no_application_lists_more_than_its_teams_or_one_teams_orders() -> None:
    assert DELIVERED[PurePosixPath("teams")] == TEAMS
    assert {DELIVERED[PurePosixPath("apps", f"crew-{n:03d}")] for n in range(TEAMS)} == {EACH}
    project, application = team_file("crew-000")
    assert application["spec"]["source"]["path"] == "apps/crew-000"
    assert project["spec"]["sourceRepos"] == [f"{FORGE}/crew-000/*"]


def test_no_file_says_more_because_others_order() -> None:
    """A team's file knows no order, and an order's file no other order."""
    text = ledger_applications.team_file(TeamPlace(TeamName("crew-000"), FORGE, LEDGER, KINDS))
    assert "garage-" not in text
    sizes = {
        len(
            yaml11.dump(ledger_applications.order_application(entry, kit="garage", forge_url=FORGE))
        )
        for entry in ALL[:: ORDERS // 50]
    }
    assert len(sizes) == 1
    assert sizes.pop() < 1500


def test_an_order_is_found_among_all_and_each_counts_once() -> None:
    assert ledger.living_order(PATHS, "garage-07777") == ALL[7777]
    assert ledger.living_order(PATHS, "garage-1") is None
    assert len(ledger.living_orders(PATHS, TeamName("crew-077"))) == EACH
    assert Counter(entry.team for entry in ledger.entries(PATHS)).most_common(1)[0][1] == EACH
    assert list(ledger.entries(PATHS)) == sorted(ALL, key=lambda each: (each.team, each.order))
