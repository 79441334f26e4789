"""What people changed in an order's entry of the ledger, by the entry alone."""

from __future__ import annotations

from typing import Any

import pytest

from ground.names import OrderId, TeamName
from orderkit.core.order.damage import DamageKind, in_entry
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.ledger_applications import Stage, order_application

FORGE = "https://git.example.org"
ENTRY = OrderEntry(TeamName("ae86"), OrderId("garage-x"))
OTHER = OrderEntry(TeamName("rx7"), OrderId("garage-x"))


def application(stage: Stage = "living") -> dict[str, Any]:
    return order_application(ENTRY, kit="garage", forge_url=FORGE, stage=stage)


@pytest.mark.parametrize("stage", ["proposed", "entering", "living"])
def test_what_orderkit_writes_is_no_edit(stage: Stage) -> None:
    assert not list(in_entry(ENTRY, application(stage), FORGE))


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (None, "is off"),
        ({"prune": False, "selfHeal": True, "enabled": False}, "is off"),
        ({"prune": True, "selfHeal": True}, "prune is on"),
        ({"selfHeal": False}, "selfHeal is off"),
        ({}, "selfHeal is off"),
        ("on", "is off"),
        ({"selfHeal": True, "enabled": True}, ""),
    ],
)
def test_an_order_that_argocd_delivers_otherwise_was_edited(policy: object, says: str) -> None:
    edited = application()
    edited["spec"]["syncPolicy"]["automated"] = policy

    found = [damage.what for damage in in_entry(ENTRY, edited, FORGE)]

    assert bool(found) is bool(says)
    assert all(f"spec.syncPolicy.automated{'' if says == 'is off' else '.'}" in it for it in found)
    assert all(says in it for it in found)


@pytest.mark.parametrize(
    ("has_original", "advice"),
    [
        (
            False,
            "git mv apps/rx7/garage-x.yaml apps/ae86/garage-x.yaml; commit and push the ledger",
        ),
        (True, "git rm apps/rx7/garage-x.yaml; commit and push the ledger"),
        (None, "orderkit repair garage-x"),
    ],
    ids=["moved", "copied", "not known"],
)
def test_only_a_copy_may_be_removed(*, has_original: bool | None, advice: str) -> None:
    (damage,) = in_entry(OTHER, application(), FORGE, has_original=has_original)

    assert damage.kind is DamageKind.COPY
    assert damage.advice(OTHER.order) == advice
