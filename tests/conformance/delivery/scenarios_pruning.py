"""Scenarios: what leaves Git."""

from __future__ import annotations

from typing import Any

from tests.conformance.delivery.builders import (
    RETRY_SOON,
    WIDGET,
    config_map,
    held,
    noted,
    widget,
)
from tests.conformance.delivery.playing import scenario
from tests.conformance.delivery.stage import Stage

from ground.objects.kube_objects import Manifest, metadata

KEPT = {"manifests/a.yaml": config_map("a")}
EMPTY = {"manifests/a.yaml": None, "manifests/.gitkeep": ""}


@scenario
def what_leaves_git_is_pruned(stage: Stage) -> None:
    """An object whose manifest is gone is deleted."""
    stage.push({**KEPT, "manifests/b.yaml": config_map("b")})
    stage.deliver()
    stage.delivered()
    stage.step("b leaves")
    stage.push_and_refresh({"manifests/b.yaml": None})
    stage.delivered()
    assert stage.data("b") is None


@scenario
def without_prune_it_stays(stage: Stage) -> None:
    """Without prune an extra object stays and keeps the Application OutOfSync."""
    stage.push({**KEPT, "manifests/b.yaml": config_map("b")})
    stage.deliver(automated={"selfHeal": True})
    stage.delivered()
    stage.step("b leaves")
    commit = stage.push_and_refresh({"manifests/b.yaml": None})
    stage.until(sync="OutOfSync", at=commit)
    assert stage.data("b") == {}


@scenario
def without_prune_the_rest_is_applied(stage: Stage) -> None:
    """A commit that adds and removes is synced as far as it may be; the rest is said."""
    stage.push({**KEPT, "manifests/b.yaml": config_map("b")})
    stage.deliver(automated={})
    stage.delivered()
    stage.step("b leaves, c comes")
    commit = stage.push_and_refresh({"manifests/b.yaml": None, "manifests/c.yaml": config_map("c")})
    stage.until(sync="OutOfSync", is_done=commit, phase="Succeeded")
    assert stage.data("b") == {}


@scenario
def prunes_go_backwards_through_the_waves(stage: Stage) -> None:
    """What was created last is deleted first; the next wave waits for its end."""
    found = [held(widget(name, wave=wave)) for name, wave in (("first", 1), ("last", 2))]
    stage.push({**KEPT, "manifests/w.yaml": found})
    stage.deliver()
    stage.ready(WIDGET, "first")
    stage.ready(WIDGET, "last")
    stage.delivered()
    stage.step("both leave")
    stage.push_and_refresh({"manifests/w.yaml": None})
    stage.until(phase="Running", says="waiting for deletion of shop.example.org/Widget/last")
    assert not metadata(stage.get(WIDGET, "first") or {}).get("deletionTimestamp")
    stage.step("the last goes")
    stage.release(WIDGET, "last")
    stage.until(phase="Succeeded", sync="OutOfSync", health="Progressing")
    stage.step("the first goes")
    stage.release(WIDGET, "first")
    stage.delivered()


@scenario
def prune_last(stage: Stage) -> None:
    """With PruneLast an extra object goes after the last wave, though its own wave is early."""
    stage.push({"manifests/old.yaml": config_map("old", wave=-5)})
    stage.deliver(options=["PruneLast=true"])
    stage.delivered()
    stage.step("old is replaced")
    new = [config_map("first", wave=1), config_map("second", wave=2)]
    stage.push_and_refresh({"manifests/old.yaml": None, "manifests/new.yaml": new})
    stage.delivered()


@scenario
def prune_before_the_waves(stage: Stage) -> None:
    """Without PruneLast an extra object of an early wave goes before what comes later."""
    stage.push({"manifests/old.yaml": config_map("old", wave=-5)})
    stage.deliver()
    stage.delivered()
    stage.step("old is replaced")
    new = [config_map("first", wave=1), config_map("second", wave=2)]
    stage.push_and_refresh({"manifests/old.yaml": None, "manifests/new.yaml": new})
    stage.delivered()


@scenario
def prune_false_keeps_an_object(stage: Stage) -> None:
    """An object marked Prune=false stays; the operation succeeds, the Application is OutOfSync."""
    kept = config_map("kept", options="Prune=false")
    stage.push({**KEPT, "manifests/kept.yaml": kept})
    stage.deliver(automated={"prune": True})
    stage.delivered()
    stage.step("kept leaves")
    commit = stage.push_and_refresh({"manifests/kept.yaml": None})
    stage.until(sync="OutOfSync", is_done=commit, phase="Succeeded")
    assert stage.data("kept") == {}


@scenario
def prune_false_of_an_application_keeps_what_leaves(stage: Stage) -> None:
    """Among the options of an Application Prune=false holds for all of its objects, since 3.4."""
    stage.push({**KEPT, "manifests/b.yaml": config_map("b")})
    stage.deliver(automated={"prune": True}, options=["Prune=false"])
    stage.delivered()
    stage.step("b leaves")
    commit = stage.push_and_refresh({"manifests/b.yaml": None})
    stage.until(sync="OutOfSync", is_done=commit, phase="Succeeded")
    assert stage.data("b") == {}


@scenario
def extraneous_objects_are_not_counted(stage: Stage) -> None:
    """IgnoreExtraneous: an extra object does not make the Application OutOfSync."""
    mark = {"argocd.argoproj.io/compare-options": "IgnoreExtraneous"}
    extra = noted(config_map("extra"), mark)
    stage.push({**KEPT, "manifests/extra.yaml": extra})
    stage.deliver(automated={})
    stage.delivered()
    stage.step("extra leaves")
    commit = stage.push_and_refresh({"manifests/extra.yaml": None})
    stage.until(sync="Synced", at=commit)
    assert stage.data("extra") == {}


@scenario
def the_folder_that_vanishes_prunes_nothing(stage: Stage) -> None:
    """Removing the last file of a folder is an error, not a deletion."""
    stage.push(dict(KEPT))
    stage.deliver()
    stage.delivered()
    stage.step("the last manifest leaves")
    stage.push_and_refresh({"manifests/a.yaml": None})
    stage.until(sync="Unknown", fault="app path does not exist", at="main")
    assert stage.data("a") == {}


@scenario
def the_last_object_needs_allow_empty(stage: Stage) -> None:
    """A folder without manifests would wipe out everything: refused without allowEmpty."""
    stage.push(dict(KEPT))
    stage.deliver()
    stage.delivered()
    stage.step("the last manifest leaves")
    commit = stage.push_and_refresh(dict(EMPTY))
    stage.until(sync="OutOfSync", fault="auto-sync will wipe out all resources", at=commit)
    assert stage.data("a") == {}


@scenario
def an_order_ends(stage: Stage) -> None:
    """The end of an order: self-heal off and allowEmpty, empty folder, Application deleted."""
    stage.push(dict(KEPT))
    stage.deliver(cascade=True)
    stage.delivered()
    stage.step("the end is marked")
    policy = {"automated": {"selfHeal": False, "allowEmpty": True, "prune": True}}
    stage.patch_app("shop", {"spec": {"syncPolicy": policy}})
    stage.refresh("shop")
    stage.delivered()
    stage.step("the object leaves")
    stage.push_and_refresh(dict(EMPTY))
    stage.delivered()
    assert stage.data("a") is None
    stage.step("the Application is deleted")
    stage.delete_app()
    stage.app_gone()


@scenario
def copied_tracking_annotations_do_not_count(stage: Stage) -> None:
    """An object that only carries a copy of another's annotation is left alone."""
    stage.push(dict(KEPT))
    stage.deliver()
    stage.delivered()
    copied = config_map("copy")
    copied["metadata"] |= {
        "namespace": stage.id,
        "annotations": {
            "argocd.argoproj.io/tracking-id": f"{stage.own('shop')}:/ConfigMap:{stage.id}/a"
        },
    }
    stage.step("a commit")
    stage.apply(copied)
    stage.push_and_refresh({"manifests/b.yaml": config_map("b")})
    stage.delivered()
    assert stage.data("copy") == {}


def _push_refused_rename(
    stage: Stage, old: Manifest | None = None, *, retry: Manifest = RETRY_SOON, **delivery: Any
) -> None:
    """Deliver a widget, and push another name for it that the server refuses."""
    stage.push({"manifests/w.yaml": old or widget("old")})
    stage.deliver(retry=retry, **delivery)
    stage.ready(WIDGET, "old")
    stage.delivered()
    stage.step("another name that the server refuses")
    stage.push_and_refresh({"manifests/w.yaml": widget("new", size=1000)})
    stage.until(phase="Running", refused="spec.size")


@scenario
def a_refused_rename_prunes_the_old_object(stage: Stage) -> None:
    """A sync prunes before it applies: what leaves is gone although its successor is refused."""
    _push_refused_rename(stage)
    stage.gone(WIDGET, "old")
    stage.wait("old is not listed", lambda: "old" not in stage.resource_states())


@scenario
def prune_last_waits_for_what_is_refused(stage: Stage) -> None:
    """With PruneLast nothing is pruned as long as an object of the commit is refused."""
    _push_refused_rename(stage, options=["PruneLast=true"])
    stage.retried()
    assert stage.get(WIDGET, "old")
    stage.step("another name that the server takes")
    commit = stage.push_and_refresh({"manifests/w.yaml": widget("new")})
    stage.terminate()
    stage.ready(WIDGET, "new")
    stage.delivered("shop", commit)
    stage.gone(WIDGET, "old")


@scenario
def without_prune_a_refused_rename_prunes_nothing(stage: Stage) -> None:
    """Without prune the old object stays, refused successor or not, until the revert."""
    retry = {**RETRY_SOON, "refresh": True}
    _push_refused_rename(stage, retry=retry, automated={"selfHeal": True})
    stage.retried()
    assert stage.get(WIDGET, "old")
    stage.step("the revert")
    stage.push_and_refresh({"manifests/w.yaml": widget("old")})
    stage.delivered()


@scenario
def an_unmarked_prune_false_still_keeps_the_object(stage: Stage) -> None:
    """Whether an extra object may go, the object in the cluster says, not Git."""
    _push_refused_rename(stage, widget("old", options="Prune=false"))
    stage.retried()
    assert stage.get(WIDGET, "old")
