"""Which repository an order's Application names, on a forge with subgroups too."""

from __future__ import annotations

import pytest

from ground.names import OrderId, TeamName
from orderkit.core.order.damage import in_entry, source_order
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.ledger_applications import order_application

FORGE = "https://git.example.org/acme/platform"
ENTRY = OrderEntry(TeamName("ae86"), OrderId("garage-x"))


def application(url: str) -> dict[str, object]:
    made = order_application(ENTRY, kit="garage", forge_url=FORGE)
    made["spec"]["source"]["repoURL"] = url
    return made


@pytest.mark.parametrize(
    ("url", "is_ours"),
    [
        (f"{FORGE}/ae86/garage-x.git", True),
        ("https://new.example.org/acme/platform/ae86/garage-x.git", True),
        (f"{FORGE}/evil/ae86/garage-x.git", False),
        ("https://git.example.org/acme/ae86/garage-x.git", False),
        ("https://git.example.org/ae86/garage-x.git", False),
    ],
)
def test_a_repository_of_the_same_name_in_another_group_is_an_edit(
    url: str, *, is_ours: bool
) -> None:
    edits = list(in_entry(ENTRY, application(url), FORGE))

    assert (not edits) is is_ours
    assert (source_order(application(url), FORGE) == ENTRY) is is_ours
