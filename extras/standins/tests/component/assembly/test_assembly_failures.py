"""What an XR shows and keeps when a pipeline or one of its objects fails, in exact words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from compositions.station import Ready, StationRequest, StationResponse
from ground.objects.kube_objects import (
    COMPOSITION,
    CONFIG_MAP,
    Kind,
    Manifest,
    ObjectKey,
    condition,
    dig,
    metadata,
)

if TYPE_CHECKING:
    from extras.standins.tests.component.assembly.conftest import Lab, Say

APP = Kind("lab.example.org", "v1", "App")
WIDGET = Kind("lab.example.org", "v1", "Widget")


def wants(*manifests: Manifest, ready: Ready = Ready.UNSPECIFIED) -> Say:
    """Want objects under their own names."""

    def say(_: StationRequest, response: StationResponse) -> None:
        for manifest in manifests:
            response.want(metadata(manifest)["name"], manifest, ready=ready)
        response.merge_status({"note": "assembled"})

    return say


def refuses(_: StationRequest, response: StationResponse) -> None:
    response.fatal("no more room")


def widget(name: str, colour: object = "red") -> Manifest:
    return {
        "apiVersion": WIDGET.api_version,
        "kind": "Widget",
        "metadata": {"name": name, "namespace": "team-a"},
        "spec": {"colour": colour},
    }


def touch(lab: Lab, name: str, size: int = 2) -> None:
    lab.cluster.patch(ObjectKey(APP, name), {"spec": {"size": size}}, owner="lab")


def test_a_fatal_result_keeps_what_exists_and_the_last_word_on_readiness(lab: Lab) -> None:
    lab.app("fatal", wants(lab.config_map("fatal")))
    ready = lab.wait_ready("fatal")

    lab.says["fatal"] = refuses
    touch(lab, "fatal")

    assert lab.wait_status("fatal", "Synced", "False") == (
        'False cannot compose resources: pipeline step "step0" returned a fatal result: '
        "no more room"
    )
    xr = lab.get(APP, "fatal") or {}
    assert lab.get(CONFIG_MAP, "fatal", "team-a")
    assert xr["status"]["note"] == "assembled"
    last = condition(xr, "Ready") or {}
    assert last["status"] == "True"
    assert last["observedGeneration"] == metadata(ready)["generation"]
    assert last["observedGeneration"] < metadata(xr)["generation"]


def test_a_new_order_that_fails_has_no_word_on_readiness(lab: Lab) -> None:
    lab.app("fatal-at-once", refuses)

    lab.wait_status("fatal-at-once", "Synced", "False")

    assert condition(lab.get(APP, "fatal-at-once") or {}, "Ready") is None
    lab.wait_event("fatal-at-once", "no more room")


def test_an_exception_in_a_function_keeps_what_exists(lab: Lab) -> None:
    lab.app("raises", wants(lab.config_map("raises")))
    lab.wait_ready("raises")

    def fail(_: StationRequest, __: StationResponse) -> None:
        raise LookupError("no such stage")

    lab.says["raises"] = fail
    touch(lab, "raises")

    assert "LookupError: no such stage" in lab.wait_status("raises", "Synced", "False")
    assert lab.get(CONFIG_MAP, "raises", "team-a")


def test_an_early_return_deletes_everything_and_reports_ready(lab: Lab) -> None:
    lab.app("early", wants(lab.config_map("early")))
    lab.wait_ready("early")

    lab.says["early"] = lambda *_: None
    touch(lab, "early")

    xr = lab.wait_ready("early")
    lab.wait("it is collected", lambda: lab.get(CONFIG_MAP, "early", "team-a") is None)
    assert "note" not in xr["status"]
    assert dig(xr, "spec", "crossplane", "resourceRefs") == []


def test_a_dropped_resource_goes_and_comes_back_under_the_same_name(lab: Lab) -> None:
    nameless = lab.config_map("x")
    del nameless["metadata"]["name"]

    def grow(request: StationRequest, response: StationResponse) -> None:
        if request.xr["spec"]["size"] == 1:
            response.want("part", nameless)

    def name() -> str:
        found = lab.cluster.list(CONFIG_MAP, labels={"crossplane.io/composite": "drops"}).items
        return str(metadata(found[0])["name"]) if found else ""

    lab.app("drops", grow)
    lab.wait_ready("drops")
    first = lab.wait("the part", name)
    touch(lab, "drops", 2)
    lab.wait("no part", lambda: not name())
    touch(lab, "drops", 1)

    assert lab.wait("the part again", name) == first


def test_an_invalid_object_is_skipped_and_the_others_are_applied(lab: Lab) -> None:
    lab.app(
        "purple",
        wants(widget("purple-bad", "purple"), lab.config_map("purple-good"), ready=Ready.TRUE),
    )

    assert lab.wait_status("purple", "Synced", "False") == ("False Unsynced resources: purple-bad")
    assert lab.get(CONFIG_MAP, "purple-good", "team-a")
    assert lab.wait_status("purple", "Ready", "True")
    assert (lab.get(APP, "purple") or {})["status"]["note"] == "assembled"
    lab.wait_event("purple", 'cannot apply composed resource "purple-bad": Widget.lab.example.org')
    lab.wait_event("purple", 'Unsupported value: "purple"')
    lab.wait_event("purple", 'Composed resource "purple-bad" is not yet valid')


def test_a_wrong_type_ends_the_round_before_the_status(lab: Lab) -> None:
    lab.app("typed", wants(widget("typed-bad", 5)))

    text = lab.wait_status("typed", "Synced", "False")

    assert text.startswith(
        'False cannot compose resources: cannot apply composed resource "typed-bad": '
        "failed to create typed patch object"
    )
    assert "note" not in (lab.get(APP, "typed") or {})["status"]


def test_an_unknown_kind_ends_the_round_until_it_is_served(lab: Lab) -> None:
    later = Kind("later.example.org", "v1", "Later")
    manifest = {
        "apiVersion": later.api_version,
        "kind": "Later",
        "metadata": {"name": "late", "namespace": "team-a"},
    }
    lab.app("later", wants(manifest, ready=Ready.TRUE))
    assert 'no matches for kind "Later" in version "later.example.org/v1"' in lab.wait_status(
        "later", "Synced", "False"
    )

    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    lab.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "laters.later.example.org"},
            "spec": {
                "group": later.group,
                "scope": "Namespaced",
                "names": {"kind": "Later", "plural": "laters", "singular": "later"},
                "versions": [version],
            },
        }
    )

    lab.wait_ready("later")
    assert lab.get(later, "late", "team-a")


def test_a_missing_namespace_ends_the_round_until_it_exists(lab: Lab) -> None:
    lab.app("homeless", wants(lab.config_map("homeless", "team-z")))
    assert lab.wait_status("homeless", "Synced", "False") == (
        'False cannot compose resources: cannot apply composed resource "homeless": '
        'namespaces "team-z" not found'
    )

    lab.apply(lab.namespace("team-z"))

    lab.wait_ready("homeless")


def test_an_object_without_controller_is_adopted_and_keeps_foreign_fields(lab: Lab) -> None:
    lab.apply(lab.config_map("adopted", foreign="stays", own="old"))

    lab.app("adopts", wants(lab.config_map("adopted", own="new")))

    xr = lab.wait_ready("adopts")
    found = lab.get(CONFIG_MAP, "adopted", "team-a") or {}
    assert found["data"] == {"foreign": "stays", "own": "new"}
    assert metadata(found)["ownerReferences"][0]["uid"] == metadata(xr)["uid"]


def test_an_object_of_another_order_is_left_alone(lab: Lab) -> None:
    lab.app("owner", wants(lab.config_map("shared", of="owner")))
    lab.wait_ready("owner")

    lab.app("thief", wants(lab.config_map("shared", of="thief"), lab.config_map("own")))

    assert lab.wait_status("thief", "Synced", "False") == "False Unsynced resources: shared"
    assert (lab.get(CONFIG_MAP, "shared", "team-a") or {})["data"] == {"of": "owner"}
    assert lab.get(CONFIG_MAP, "own", "team-a")


def test_an_object_that_lost_its_logical_name_blocks_the_order_until_it_is_gone(lab: Lab) -> None:
    lab.app("anonymous", wants(lab.config_map("anonymous")))
    lab.wait_ready("anonymous")
    key = ObjectKey(CONFIG_MAP, "anonymous", "team-a")

    name = "crossplane.io/composition-resource-name"

    def stuck() -> bool:
        """Take the name away, again if a round that was under way had put it back."""
        patch = {"metadata": {"annotations": {name: None}}}
        lab.cluster.patch(key, patch, owner="person")
        return lab.status("anonymous", "Synced") == (
            "False cannot compose resources: cannot get existing composed resources: encountered "
            f'composed resource without required "{name}" annotation'
        )

    lab.wait("the order to be stuck", stuck)
    lab.cluster.delete(key)
    lab.wait_ready("anonymous")


def test_an_own_condition_stays_and_becomes_unknown_after_a_fatal_result(lab: Lab) -> None:
    def healthy(_: StationRequest, response: StationResponse) -> None:
        response.add_condition("Tuned", "True", "Dyno", "314 hp")

    lab.app("tuned", healthy)
    lab.wait_ready("tuned")
    assert lab.status("tuned", "Tuned") == "True 314 hp"

    lab.says["tuned"] = lambda *_: None
    touch(lab, "tuned", 2)
    assert (condition(lab.wait_ready("tuned"), "Tuned") or {})["status"] == "True"

    lab.says["tuned"] = refuses
    touch(lab, "tuned", 3)
    assert lab.wait_status("tuned", "Tuned", "Unknown") == (
        "Unknown A fatal error occurred before the status of this condition could be determined."
    )


@pytest.mark.parametrize(
    ("functions", "text"),
    [
        (
            ("function-nope",),
            (
                'step "step0": cannot get gRPC client connection for Function "function-nope": '
                "cannot find an active FunctionRevision"
            ),
        ),
        (
            ("function-go-templating",),
            'step "step0": cannot run Function "function-go-templating": it does not run here',
        ),
    ],
    ids=["not installed", "foreign"],
)
def test_a_function_that_cannot_run_is_told_by_its_step(
    lab: Lab, functions: tuple[str, ...], text: str
) -> None:
    name = f"with-{functions[0]}"
    lab.apply(lab.function_object("function-go-templating"))
    lab.apply(lab.composition(name, APP, *functions))

    lab.app(name, refuses, crossplane={"compositionRef": {"name": name}})

    lab.wait(text, lambda: text in lab.status(name, "Synced"))


def test_a_deleted_composition_leaves_the_objects_and_is_told(lab: Lab) -> None:
    lab.apply(lab.composition("short-lived", APP))
    chosen = {"compositionRef": {"name": "short-lived"}}
    lab.app("orphan", wants(lab.config_map("orphan")), crossplane=chosen)
    lab.wait_ready("orphan")

    lab.cluster.delete(ObjectKey(COMPOSITION, "short-lived"))
    touch(lab, "orphan")

    assert lab.wait_status("orphan", "Synced", "False") == (
        "False cannot fetch Composition: cannot get Composition: "
        'Composition.apiextensions.crossplane.io "short-lived" not found'
    )
    assert lab.get(CONFIG_MAP, "orphan", "team-a")


def test_a_paused_order_is_left_alone_until_it_is_not(lab: Lab) -> None:
    lab.app("paused", wants(lab.config_map("paused", own="1")))
    lab.wait_ready("paused")
    key, xr = ObjectKey(CONFIG_MAP, "paused", "team-a"), ObjectKey(APP, "paused")

    def pause(value: str | None) -> None:
        patch = {"metadata": {"annotations": {"crossplane.io/paused": value}}}
        lab.cluster.patch(xr, patch, owner="person")

    pause("true")
    assert lab.wait_status("paused", "Synced", "False").startswith(
        "False Reconciliation (including deletion) is paused"
    )
    calls = len(lab.calls)
    lab.cluster.patch(key, {"data": {"own": "2"}}, owner="person")
    lab.cluster.delete(xr)
    lab.wait("the deletion mark", lambda: metadata(lab.cluster.get(xr) or {})["deletionTimestamp"])
    assert "paused" not in lab.calls[calls:]
    assert (lab.cluster.get(key) or {})["data"] == {"own": "2"}

    pause(None)
    lab.wait("the order's end", lambda: lab.cluster.get(xr) is None)


def test_functions_never_run_for_an_order_that_is_being_deleted(lab: Lab) -> None:
    lab.app("leaving", wants(lab.config_map("leaving")))
    lab.wait_ready("leaving")
    held = {"metadata": {"finalizers": ["lab.example.org/hold", *_finalizers(lab, "leaving")]}}
    lab.cluster.patch(ObjectKey(APP, "leaving"), held, owner="person")
    lab.wait_ready("leaving")

    lab.cluster.delete(ObjectKey(APP, "leaving"))
    assert lab.wait_status("leaving", "Ready", "False") == "False Deleting"
    calls = lab.calls.count("leaving")
    touch(lab, "leaving", 7)
    lab.wait_status("leaving", "Synced", "True")

    assert lab.calls.count("leaving") == calls
    lab.cluster.patch(ObjectKey(APP, "leaving"), {"metadata": {"finalizers": None}}, owner="person")
    lab.wait("the child's end", lambda: lab.get(CONFIG_MAP, "leaving", "team-a") is None)


def _finalizers(lab: Lab, name: str) -> list[str]:
    return list(metadata(lab.get(APP, name) or {}).get("finalizers") or [])


def test_repeated_events_are_one_object(lab: Lab) -> None:
    lab.app("chatty", lambda _, response: response.warning("again"))
    lab.wait_ready("chatty")
    for size in range(2, 6):
        touch(lab, "chatty", size)
        lab.wait_ready("chatty")
    lab.wait_event("chatty", "again")

    assert lab.events("chatty", "Warning") == ['Pipeline step "step0": again']
