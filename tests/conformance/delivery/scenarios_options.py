"""Scenarios: options of a sync."""

from __future__ import annotations

from typing import Any

from tests.conformance.delivery.builders import config_map
from tests.conformance.delivery.playing import scenario
from tests.conformance.delivery.stage import PERSON, Stage

from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, annotations_of, labels_of, metadata

FILE = {"manifests/a.yaml": config_map("a", v="1")}


@scenario
def create_namespace(stage: Stage) -> None:
    """The destination is made when asked for; it is nobody's and outlives the Application."""
    new = stage.own("new")
    stage.push(dict(FILE))
    stage.deliver(destination=new, options=["CreateNamespace=true"], cascade=True)
    stage.delivered()
    assert stage.data("a", new) == {"v": "1"}
    assert "argocd.argoproj.io/tracking-id" not in annotations_of(
        stage.get(NAMESPACE, new, "") or {}
    )
    stage.step("the Application is deleted")
    stage.delete_app()
    stage.app_gone()
    assert stage.get(NAMESPACE, new, "") is not None


@scenario
def create_namespace_with_metadata(stage: Stage) -> None:
    """``managedNamespaceMetadata`` labels the namespace that is made."""
    new = stage.own("new")
    stage.push(dict(FILE))
    stage.deliver(
        destination=new,
        options=["CreateNamespace=true"],
        managedNamespaceMetadata={"labels": {"team": "red"}},
    )
    stage.until(phase="Succeeded", sync="Synced")
    assert labels_of(stage.get(NAMESPACE, new, "") or {})["team"] == "red"


@scenario
def server_side_apply(stage: Stage) -> None:
    """With ServerSideApply fields of others stay and a field that leaves Git leaves the object."""
    stage.push({"manifests/a.yaml": config_map("a", keep="1", drop="2")})
    stage.deliver(options=["ServerSideApply=true"])
    stage.delivered()
    stage.patch(CONFIG_MAP, "a", {"data": {"foreign": "1"}})
    stage.step("drop leaves Git")
    stage.push_and_refresh({"manifests/a.yaml": config_map("a", keep="1")})
    stage.delivered()
    stage.holds("a", keep="1", foreign="1")


@scenario
def server_side_apply_of_one_object(stage: Stage) -> None:
    """The option may stand at one object; its field manager is Argo CD's."""
    one = config_map("one", options="ServerSideApply=true", v="1")
    stage.push({**FILE, "manifests/one.yaml": one})
    stage.deliver()
    stage.delivered()
    managers = [
        (entry["manager"], entry["operation"])
        for entry in metadata(stage.get(CONFIG_MAP, "one") or {})["managedFields"]
    ]
    assert ("argocd-controller", "Apply") in managers


@scenario
def server_side_apply_takes_fields_over(stage: Stage) -> None:
    """A field that a person applied becomes Argo CD's: conflicts are forced."""
    mine: dict[str, Any] = config_map("a", v="hand")
    mine["metadata"]["namespace"] = stage.id
    stage.cluster.apply(mine, owner=PERSON)
    stage.step("delivered")
    stage.push(dict(FILE))
    stage.deliver(options=["ServerSideApply=true"])
    stage.delivered()
    stage.holds("a", v="1")


@scenario
def an_existing_object_is_adopted(stage: Stage) -> None:
    """An object that is there already is taken over, without being made anew."""
    mine: dict[str, Any] = config_map("a", v="hand", other="1")
    mine["metadata"]["namespace"] = stage.id
    stage.cluster.apply(mine, owner=PERSON)
    uid = metadata(stage.get(CONFIG_MAP, "a") or {})["uid"]
    stage.step("delivered")
    stage.push(dict(FILE))
    stage.deliver()
    stage.delivered()
    stage.holds("a", v="1", other="1")
    assert metadata(stage.get(CONFIG_MAP, "a") or {})["uid"] == uid


@scenario
def apply_out_of_sync_only(stage: Stage) -> None:
    """Only what differs is applied, and only that is in the result."""
    stage.push({**FILE, "manifests/b.yaml": config_map("b")})
    stage.deliver(options=["ApplyOutOfSyncOnly=true"])
    stage.delivered()
    stage.step("b changes")
    stage.push_and_refresh({"manifests/b.yaml": config_map("b", v="2")})
    stage.delivered()


@scenario
def history_is_bounded(stage: Stage) -> None:
    """Each delivered commit is remembered, as many as the Application asks for."""
    stage.push({"manifests/a.yaml": config_map("a", v="0")})
    app = stage.application()
    app["spec"]["revisionHistoryLimit"] = 2
    stage.apply(app)
    stage.delivered()
    for n in ("1", "2"):
        stage.step(f"commit {n}")
        stage.push_and_refresh({"manifests/a.yaml": config_map("a", v=n)})
        stage.delivered()
    assert len(stage.app()["status"]["history"]) == 2
