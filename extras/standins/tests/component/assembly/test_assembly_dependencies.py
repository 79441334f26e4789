"""What wakes an order: nested orders, required resources, times to live."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compositions.station import StationRequest, StationResponse
from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Kind, Manifest, metadata

if TYPE_CHECKING:
    from extras.standins.tests.component.assembly.conftest import Lab

APP = Kind("lab.example.org", "v1", "App")
BAY = Kind("lab.example.org", "v1", "Bay")


@pytest.fixture(scope="module", autouse=True)
def bay(lab: Lab) -> None:
    """A namespaced kind of order that composes two ConfigMaps."""
    lab.apply(lab.composition("bays", BAY))
    lab.apply(lab.xrd(BAY, "bays", scope="Namespaced"))
    lab.wait("kind Bay", lambda: lab.cluster.serves(BAY))


def two_sheets(_: StationRequest, response: StationResponse) -> None:
    for name in ("front", "back"):
        response.want(name, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"side": name}})


def order_of_bay(name: str, home: str) -> Manifest:
    meta = {"name": name, "namespace": home}
    return {
        "apiVersion": BAY.api_version,
        "kind": "Bay",
        "metadata": meta,
        "spec": {"size": 1},
    }


def test_an_order_may_compose_a_namespace_and_another_order_in_it(lab: Lab) -> None:
    def outer(request: StationRequest, response: StationResponse) -> None:
        response.want("home", lab.namespace("nested-home"))
        if request.observed_resource("home"):
            response.want("inner", order_of_bay("inner", "nested-home"))

    lab.says["inner"] = two_sheets
    lab.app("one", outer)

    xr = lab.wait_ready("one")
    inner = lab.wait_ready("inner", kind=BAY, namespace="nested-home")
    sheets = lab.cluster.list(CONFIG_MAP, namespace="nested-home").items
    assert [r["kind"] for r in xr["spec"]["crossplane"]["resourceRefs"]] == ["Bay", "Namespace"]
    assert metadata(inner)["ownerReferences"][0]["name"] == "one"
    assert metadata(inner)["labels"]["crossplane.io/composite"] == "one"
    assert len(sheets) == 2
    for sheet in sheets:
        assert metadata(sheet)["name"].startswith("one-"), "named after the root"
        assert metadata(sheet)["ownerReferences"][0]["name"] == "inner"
    assert all("namespace" not in r for r in inner["spec"]["crossplane"]["resourceRefs"])


def test_a_nested_order_that_fails_keeps_its_parent_from_being_ready(lab: Lab) -> None:
    lab.says["inner-bad"] = lambda _, response: response.fatal("no more room")

    def outer(_: StationRequest, response: StationResponse) -> None:
        response.want("inner", order_of_bay("inner-bad", "team-a"))

    lab.app("parent", outer)

    lab.wait_status("inner-bad", "Synced", "False", kind=BAY, namespace="team-a")
    assert lab.wait_status("parent", "Ready", "False") == "False Unready resources: inner"
    assert lab.status("parent", "Synced") == "True ReconcileSuccess"

    lab.says["inner-bad"] = two_sheets
    lab.cluster.apply(order_of_bay("inner-bad", "team-a") | {"spec": {"size": 2}}, owner="person")
    lab.wait_ready("parent")


def test_a_namespaced_order_composes_no_cluster_scoped_kind(lab: Lab) -> None:
    lab.says["greedy"] = lambda _, response: response.want("ns", lab.namespace("greedy-ns"))

    lab.apply(order_of_bay("greedy", "team-a"))

    assert lab.wait_status("greedy", "Synced", "False", kind=BAY, namespace="team-a") == (
        'False cannot compose resources: cannot apply cluster scoped composed resource "ns" '
        "(a Namespace named greedy-ns) for a namespaced composite resource."
    )
    assert lab.get(NAMESPACE, "greedy-ns") is None


def test_another_namespace_is_overridden_with_a_warning(lab: Lab) -> None:
    lab.says["stray"] = lambda _, response: response.want("cm", lab.config_map("stray", "default"))

    lab.apply(order_of_bay("stray", "team-a"))

    lab.wait_ready("stray", kind=BAY, namespace="team-a")
    assert lab.get(CONFIG_MAP, "stray", "team-a")
    assert lab.get(CONFIG_MAP, "stray", "default") is None
    lab.wait_event("stray", 'in namespace "default", using XR namespace "team-a" instead')


@pytest.mark.parametrize("by", ["name", "labels"])
def test_an_order_follows_the_objects_it_requires(lab: Lab, by: str) -> None:
    fact = f"fact-by-{by}"

    def follow(request: StationRequest, response: StationResponse) -> None:
        match = {"match_name": fact} if by == "name" else {"match_labels": {"fact": fact}}
        response.require("fact", "v1", "ConfigMap", namespace="team-a", **match)
        found = request.required_resource("fact")
        note = found["data"]["value"] if found else "nothing"
        response.merge_status({"note": note})

    def note() -> str:
        return str((lab.get(APP, f"by-{by}") or {}).get("status", {}).get("note"))

    lab.app(f"by-{by}", follow)
    lab.wait("no fact yet", lambda: note() == "nothing")

    manifest = lab.config_map(fact, value="one")
    manifest["metadata"]["labels"] = {"fact": fact}
    lab.apply(manifest)
    lab.wait("the fact", lambda: note() == "one")

    manifest["data"] = {"value": "two"}
    lab.apply(manifest)
    lab.wait("the change of the fact", lambda: note() == "two")


def test_an_order_refused_for_want_of_a_fact_is_woken_by_the_fact(lab: Lab) -> None:
    def insist(request: StationRequest, response: StationResponse) -> None:
        response.require("fact", "v1", "ConfigMap", match_name="wanted", namespace="team-a")
        if request.is_answered("fact") and not request.required_resource("fact"):
            response.fatal("the fact is missing")

    lab.app("waits", insist)
    lab.wait_status("waits", "Synced", "False")

    lab.apply(lab.config_map("wanted"))

    lab.wait_ready("waits")


def test_an_order_is_looked_at_again_after_its_time_to_live(lab: Lab) -> None:
    def live(_: StationRequest, response: StationResponse) -> None:
        response.ttl_s = 0.05

    lab.app("short", live)
    lab.wait_ready("short")
    seen = lab.calls.count("short")

    lab.wait("three more looks", lambda: lab.calls.count("short") >= seen + 3)


def test_a_settled_order_is_left_in_peace(lab: Lab) -> None:
    lab.app("settled", lambda _, r: r.want("cm", lab.config_map("settled")))
    version = metadata(lab.wait_ready("settled"))["resourceVersion"]
    lab.app("other", lambda _, r: r.want("cm", lab.config_map("other")))
    lab.wait_ready("other")

    assert metadata(lab.get(APP, "settled") or {})["resourceVersion"] == version
    assert lab.calls.count("settled") <= 12, "one round for each event of its own at most"
