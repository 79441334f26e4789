"""Scenarios: what somebody changes by hand, and what others own."""

from __future__ import annotations

from typing import Any

from tests.conformance.delivery.builders import config_map
from tests.conformance.delivery.playing import scenario
from tests.conformance.delivery.stage import Stage

from ground.objects.kube_objects import CONFIG_MAP, annotations_of, labels_of

BY_HAND = {"data": {"v": "hand"}}
IGNORED = [{"group": "", "kind": "ConfigMap", "jsonPointers": ["/data/v"]}]


def shop(stage: Stage, **changes: Any) -> str:
    """Deliver two ConfigMaps."""
    commit = stage.push({f"manifests/{n}.yaml": config_map(n, v="git") for n in ("a", "b")})
    stage.deliver(**changes)
    stage.delivered()
    return commit


@scenario
def self_heal_undoes_an_edit(stage: Stage) -> None:
    """A value changed by hand is set back; only that object is synced, history stays."""
    shop(stage)
    stage.step("an edit")
    stage.patch(CONFIG_MAP, "a", BY_HAND)
    stage.holds("a", v="git")
    stage.delivered()
    selected = stage.operation()["operation"]["sync"]["resources"]
    assert [one["name"] for one in selected] == ["a"]


@scenario
def self_heal_brings_back_what_was_deleted(stage: Stage) -> None:
    """An object deleted by hand is created again."""
    shop(stage)
    stage.step("a deletion")
    stage.delete(CONFIG_MAP, "a")
    stage.holds("a", v="git")
    stage.delivered()


@scenario
def self_heal_restores_the_tracking_annotation(stage: Stage) -> None:
    """An object that lost its mark is marked again."""
    shop(stage)
    stage.step("the mark is removed")
    mark = "argocd.argoproj.io/tracking-id"
    stage.patch(CONFIG_MAP, "a", {"metadata": {"annotations": {mark: None}}})
    stage.wait("the mark", lambda: mark in annotations_of(stage.get(CONFIG_MAP, "a") or {}))
    stage.delivered()


@scenario
def without_self_heal_drift_stays(stage: Stage) -> None:
    """Without self-heal an edit stays and is reported, until the next commit."""
    shop(stage, automated={"prune": True})
    stage.step("an edit")
    stage.patch(CONFIG_MAP, "a", BY_HAND)
    stage.until(sync="OutOfSync")
    stage.refresh("shop")
    stage.holds("a", v="hand")
    stage.step("a commit")
    stage.push_and_refresh({"manifests/c.yaml": config_map("c")})
    stage.delivered()
    stage.holds("a", v="git")


@scenario
def without_automation_nothing_happens(stage: Stage) -> None:
    """Synced by hand only: an ``operation`` in the Application is carried out once."""
    commit = stage.push({"manifests/a.yaml": config_map("a")})
    stage.deliver(automated=None)
    stage.until(sync="OutOfSync", at=commit)
    stage.step("a sync by hand")
    stage.patch_app("shop", {"operation": {"sync": {"revision": commit}}})
    stage.delivered()


@scenario
def automation_can_be_switched_off(stage: Stage) -> None:
    """``automated.enabled: false`` is as if there were no automation."""
    commit = stage.push({"manifests/a.yaml": config_map("a")})
    stage.deliver(automated={"enabled": False, "prune": True})
    stage.until(sync="OutOfSync", at=commit)
    stage.step("a refresh")
    stage.refresh("shop")
    stage.until(sync="OutOfSync", at=commit)


@scenario
def foreign_fields_stay(stage: Stage) -> None:
    """Fields of others are no drift; fields that leave Git leave the object."""
    stage.push({"manifests/a.yaml": config_map("a", keep="1", drop="2")})
    stage.deliver()
    stage.delivered()
    stage.step("a label by hand")
    stage.patch(CONFIG_MAP, "a", {"metadata": {"labels": {"by": "hand"}}})
    stage.refresh("shop")
    stage.delivered()
    stage.step("drop leaves Git")
    stage.push_and_refresh({"manifests/a.yaml": config_map("a", keep="1")})
    stage.delivered()
    stage.holds("a", keep="1")
    assert labels_of(stage.get(CONFIG_MAP, "a") or {}) == {"by": "hand"}


@scenario
def keys_of_others_are_drift_or_not(stage: Stage) -> None:
    """A key that somebody adds to a map of ours is not drift."""
    shop(stage)
    stage.step("a further key")
    stage.patch(CONFIG_MAP, "a", {"data": {"further": "1"}})
    stage.refresh("shop")
    stage.delivered()
    assert stage.data("a") == {"v": "git", "further": "1"}


@scenario
def ignored_differences_are_no_drift(stage: Stage) -> None:
    """A field named in ignoreDifferences may be changed by anybody."""
    shop(stage, ignore=IGNORED)
    stage.step("an edit")
    stage.patch(CONFIG_MAP, "a", BY_HAND)
    stage.refresh("shop")
    stage.delivered()
    stage.holds("a", v="hand")


@scenario
def ignored_differences_are_overwritten_by_a_sync(stage: Stage) -> None:
    """A sync for another reason writes the field, unless RespectIgnoreDifferences."""
    shop(stage, ignore=IGNORED)
    stage.patch(CONFIG_MAP, "a", BY_HAND)
    stage.refresh("shop")
    stage.delivered()
    stage.step("a commit")
    stage.push_and_refresh({"manifests/c.yaml": config_map("c")})
    stage.delivered()
    stage.holds("a", v="git")


@scenario
def respected_differences_survive_a_sync(stage: Stage) -> None:
    """With RespectIgnoreDifferences a sync leaves the field as it is."""
    shop(stage, ignore=IGNORED, options=["RespectIgnoreDifferences=true"])
    stage.patch(CONFIG_MAP, "a", BY_HAND)
    stage.refresh("shop")
    stage.delivered()
    stage.step("a commit")
    stage.push_and_refresh({"manifests/c.yaml": config_map("c")})
    stage.delivered()
    stage.holds("a", v="hand")


@scenario
def skip_reconcile_leaves_everything_alone(stage: Stage) -> None:
    """A marked Application is not looked at until the mark is removed."""
    commit = stage.push({"manifests/a.yaml": config_map("a"), "other/b.yaml": config_map("b")})
    mark = "argocd.argoproj.io/skip-reconcile"
    stage.deliver(annotations={mark: "true"})
    stage.deliver("other", path="other")
    stage.delivered("other", commit)
    assert not stage.app("shop").get("status")
    stage.step("the mark is removed")
    stage.patch_app("shop", {"metadata": {"annotations": {mark: None}}})
    stage.delivered("shop", commit)
