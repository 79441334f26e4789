"""What a team's file says, and how orders and changes are held to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ground.errors import InvalidInputError, OrderkitError, RefusedError, UsageError
from ground.names import OrderId, TeamName
from orderkit.adapters.folders.pack_folder import read_folder
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import read_pack
from orderkit.core.order import team_file, team_limits
from orderkit.core.order.team_file import TeamFile, TeamLimits
from orderkit.flows.team.teams import placed_namespaces

RX7 = TeamName("rx7")
XRD: dict[str, Any] = {
    "spec": {
        "group": "lab.example.org",
        "scope": "Cluster",
        "names": {"kind": "XStore", "plural": "xstores"},
        "versions": [
            {
                "name": "v1",
                "referenceable": True,
                "schema": {
                    "openAPIV3Schema": {
                        "properties": {
                            "spec": {
                                "properties": {
                                    "tier": {"type": "string", "enum": ["small", "big", "huge"]},
                                    "nodes": {"type": "integer", "default": 3},
                                    "disk": {
                                        "type": "object",
                                        "properties": {"size": {"type": "string"}},
                                    },
                                    "open": {"type": "boolean"},
                                }
                            }
                        }
                    }
                },
            }
        ],
    }
}
STORE = Kit(name="store", xrd=XRD)
KITS = {"store": STORE, "store-x": Kit(name="store-x", xrd=XRD)}


def team(**wanted: str) -> TeamFile:
    named = {name.replace("__", ".").replace("_", "-"): text for name, text in wanted.items()}
    return TeamFile(RX7, limits=team_limits.with_limits(TeamLimits(), named, (), KITS))


@pytest.mark.parametrize(
    ("reason", "spec", "before", "refused"),
    [
        ("at the bound", {"tier": "big", "nodes": 5, "disk": {"size": "10Gi"}}, None, ""),
        ("an enum by its order", {"tier": "huge"}, None, 'tier: "huge" is above the limit'),
        ("a number by its size", {"nodes": 6}, None, "nodes: 6 is above"),
        ("a quantity by what it means", {"disk": {"size": "11000Mi"}}, None, "disk.size"),
        ("a smaller unit may be a larger text", {"disk": {"size": "9999Mi"}}, None, ""),
        ("what cannot be compared is not allowed", {"disk": {"size": "lots"}}, None, "disk.size"),
        ("what is not there is not bound", {}, None, ""),
        ("what was above may stay", {"nodes": 9}, {"nodes": 9}, ""),
        ("and shrink", {"nodes": 8}, {"nodes": 9}, ""),
        ("and not grow", {"nodes": 10}, {"nodes": 9}, "nodes: 10 is above"),
    ],
)
def test_values_are_held_to_their_bounds(
    reason: str, spec: dict[str, Any], before: dict[str, Any] | None, refused: str
) -> None:
    found = team(store__tier="big", store__nodes="5", store__disk__size="10Gi")
    said = ""
    try:
        team_limits.check_values(found, STORE, spec, before=before)
    except RefusedError as error:
        said = str(error)
    assert said.startswith(refused) if refused else said == "", reason


def test_a_default_counts_as_the_value() -> None:
    with pytest.raises(RefusedError, match="nodes: 3 is above"):
        team_limits.check_values(team(store__nodes="2"), STORE, {})


def test_orders_are_counted_in_all_and_by_kit() -> None:
    living = [OrderId("store-a"), OrderId("store-x-a"), OrderId("store-x-b")]

    team_limits.check_count(team(orders="4", orders__store="2"), "store", living, KITS)
    with pytest.raises(RefusedError, match="has reached its limit of 3 orders"):
        team_limits.check_count(team(orders="3"), "store", living, KITS)
    with pytest.raises(RefusedError, match="limit of 1 orders of kit 'store'"):
        team_limits.check_count(team(orders__store="1"), "store", living, KITS)


def test_a_kit_that_is_not_the_teams_is_refused_by_name() -> None:
    with pytest.raises(RefusedError, match="may not order kit 'store', only vpn"):
        team_limits.check_kit(TeamFile(RX7, kits=("vpn",)), "store")
    team_limits.check_kit(TeamFile(RX7), "store")


@pytest.mark.parametrize(
    ("reason", "name", "text", "said"),
    [
        ("unknown limit", "order", "3", "is not a limit"),
        ("no number", "orders", "-1", "is not a number of orders"),
        ("unknown kit, near", "stor.nodes", "3", "is not a kit"),
        ("unknown kit of a count", "orders.vpn", "3", "is not a kit"),
        ("unknown field", "store.colour", "3", "is not a field of kit store"),
        ("not of the enum", "store.tier", "giant", "is not one of its values"),
        ("no number for a number", "store.nodes", "many", "cannot be a bound"),
        ("no number but JSON", "store.nodes", "true", "cannot be a bound"),
        ("a boolean has no most", "store.open", "true", "cannot be a bound"),
        ("no quantity", "store.disk.size", "lots", "cannot be a bound"),
    ],
)
def test_limits_that_cannot_be_are_refused(reason: str, name: str, text: str, said: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        team_limits.with_limits(TeamLimits(), {name: text}, (), KITS)
    assert f" {said}" in f" {error.value}", reason


def test_limits_are_told_as_they_are_given_and_dropped_one_by_one() -> None:
    given = {"orders": "20", "orders.store": "5", "store.disk.size": "10Gi", "store.nodes": "4"}
    found = team_limits.with_limits(TeamLimits(), given, (), KITS)
    assert found.texts() == tuple(f"{name}={text}" for name, text in given.items())

    left = team_limits.with_limits(found, {}, ("orders", "store.disk.size"), KITS)
    assert left.texts() == ("orders.store=5", "store.nodes=4")
    assert team_limits.with_limits(left, {}, left_names(left), KITS) == TeamLimits()
    with pytest.raises(UsageError, match="limit 'orders' is not set") as error:
        team_limits.with_limits(left, {}, ("orders",), KITS)
    assert "store.nodes=4" in error.value.hint


def left_names(found: TeamLimits) -> list[str]:
    return [told.partition("=")[0] for told in found.texts()]


def test_a_teams_file_reads_back_as_it_was_written() -> None:
    found = TeamFile(
        RX7,
        members=("alice",),
        kits=("store",),
        namespaces=("shop",),
        limits=TeamLimits(20, {"store": 5}, {"store": {"nodes": 4, "tier": "big"}}),
    )
    assert team_file.parse(found.to_yaml(), team=RX7) == found
    assert team_file.parse(TeamFile(RX7).to_yaml(), team=RX7).is_plain


@pytest.mark.parametrize(
    ("reason", "spec", "said"),
    [
        ("a misspelt key", "{member: [a]}", "is not a known key"),
        ("a negative number", "{limits: {orders: -1}}", "is refused"),
        ("no kit at all is written as no list", "{kits: []}", "is refused"),
        ("a bound that is a list", "{limits: {fields: {store: {a: []}}}}", "is refused"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(reason: str, spec: str, said: str) -> None:
    text = f"apiVersion: orderkit.dev/v1alpha1\nkind: Team\nmetadata: {{name: rx7}}\nspec: {spec}\n"
    with pytest.raises(OrderkitError) as error:
        team_file.parse(text, team=RX7)
    assert f" {said}" in f" {error.value}", reason
    assert "data/rx7/team.yaml:4" in str(error.value)


def test_another_teams_file_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="is not the team"):
        team_file.parse(TeamFile(TeamName("ae86")).to_yaml(), team=RX7)


def test_a_team_may_deliver_where_its_kits_place_their_xrs() -> None:
    pack = read_pack(read_folder(Path(__file__).parents[3] / "packs" / "agents"))

    assert list(placed_namespaces(pack, TeamFile(RX7))) == ["agent-*"]
    assert list(placed_namespaces(pack, TeamFile(RX7, kits=("datasetagent",)))) == []
