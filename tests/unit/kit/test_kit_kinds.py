"""The list of kinds that AppProjects are made of."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from ground.errors import InvalidInputError
from ground.names import RepoId, TeamName
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_kinds import PATH, OrderKinds, kinds, kinds_of, read_kinds
from orderkit.core.order import ledger_applications


def kit(kind: str, scope: str) -> Kit:
    xrd: dict[str, Any] = {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "spec": {
            "scope": scope,
            "group": "lab.example.org",
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "versions": [{"name": "v1", "served": True, "referenceable": True}],
        },
    }
    return Kit(name=kind.lower(), xrd=xrd)


KITS = [kit("XB", "Cluster"), kit("XC", "Namespaced"), kit("XA", "Cluster")]
FOUND = OrderKinds(
    cluster=(("lab.example.org", "XA"), ("lab.example.org", "XB")),
    namespaced=(("lab.example.org", "XC"),),
)


def test_kinds_are_listed_by_where_they_live_in_order() -> None:
    assert kinds_of(KITS) == FOUND


def test_the_list_reads_back_as_it_was_written() -> None:
    assert read_kinds(kinds("lab", KITS)) == FOUND


def test_a_pack_without_the_list_has_none() -> None:
    assert read_kinds({}) is None


def test_a_broken_list_is_told_by_its_file() -> None:
    with pytest.raises(InvalidInputError, match=str(PATH)):
        read_kinds({PATH: b"apiVersion: orderkit.dev/v1alpha1\nkind: OrderKinds\nspec: {}\n"})


def test_a_teams_project_allows_each_kind_where_it_lives() -> None:
    text = ledger_applications.team_file(
        ledger_applications.TeamPlace(
            TeamName("ae86"), "http://f", RepoId("platform", "ledger"), FOUND
        )
    )
    namespace, project, _ = yaml.safe_load_all(text)

    assert namespace["metadata"]["name"] == "team-ae86"

    assert [k["kind"] for k in project["spec"]["clusterResourceWhitelist"]] == ["XA", "XB"]
    assert [k["kind"] for k in project["spec"]["namespaceResourceWhitelist"]] == ["XC"]
