"""Scenarios: Applications that are deleted."""

from __future__ import annotations

from tests.conformance.delivery.builders import CASCADE, WIDGET, config_map, held, widget
from tests.conformance.delivery.playing import scenario
from tests.conformance.delivery.scenarios_ordering import WAITS, two_waves
from tests.conformance.delivery.stage import REFRESH, Stage

from ground.objects.kube_objects import annotations_of, metadata

TWO = {f"manifests/{name}.yaml": config_map(name) for name in ("a", "b")}


def deleted(stage: Stage) -> None:
    """Delete the Application and see it go."""
    stage.step("the Application is deleted")
    stage.delete_app()
    stage.app_gone()


@scenario
def with_finalizer_the_objects_go(stage: Stage) -> None:
    """With its finalizer an Application takes its objects along."""
    stage.push(dict(TWO))
    stage.deliver(cascade=True)
    stage.delivered()
    deleted(stage)
    assert stage.data("a") is None
    assert stage.data("b") is None


@scenario
def with_the_background_finalizer_the_objects_go(stage: Stage) -> None:
    """The background finalizer does the same."""
    stage.push(dict(TWO))
    stage.deliver(cascade=f"{CASCADE}/background")
    stage.delivered()
    deleted(stage)
    assert stage.data("a") is None


@scenario
def without_finalizer_the_objects_stay(stage: Stage) -> None:
    """Without finalizer only the Application goes; another of its name adopts the objects."""
    stage.push(dict(TWO))
    stage.deliver()
    stage.delivered()
    deleted(stage)
    assert stage.data("a") == {}
    stage.step("it comes again")
    commit = stage.push({"manifests/b.yaml": None})
    stage.deliver()
    stage.delivered("shop", commit)
    stage.wait("b pruned", lambda: stage.data("b") is None)


@scenario
def delete_false_keeps_an_object(stage: Stage) -> None:
    """An object marked Delete=false outlives its Application."""
    kept = config_map("kept", options="Delete=false")
    stage.push({**TWO, "manifests/kept.yaml": kept})
    stage.deliver(cascade=True)
    stage.delivered()
    deleted(stage)
    assert stage.data("a") is None
    assert stage.data("kept") == {}


@scenario
def delete_false_of_an_application_keeps_its_objects(stage: Stage) -> None:
    """Among the options of an Application Delete=false holds for all of its objects, since 3.4."""
    stage.push(dict(TWO))
    stage.deliver(cascade=True, options=["Delete=false"])
    stage.delivered()
    deleted(stage)
    assert stage.data("a") == {}


@scenario
def the_end_goes_backwards_through_the_waves(stage: Stage) -> None:
    """The highest wave is deleted first and waited for."""
    found = [held(widget("first", wave=1)), held(widget("last", wave=2))]
    stage.push({"manifests/w.yaml": found})
    stage.deliver(cascade=True)
    stage.ready(WIDGET, "first")
    stage.ready(WIDGET, "last")
    stage.delivered()
    stage.step("the Application is deleted")
    stage.delete_app()
    stage.wait(
        "the last to go",
        lambda: metadata(stage.get(WIDGET, "last") or {}).get("deletionTimestamp"),
    )
    assert not metadata(stage.get(WIDGET, "first") or {}).get("deletionTimestamp")
    stage.step("the last goes")
    stage.release(WIDGET, "last")
    stage.wait(
        "the first to go",
        lambda: metadata(stage.get(WIDGET, "first") or {}).get("deletionTimestamp"),
    )
    stage.step("the first goes")
    stage.release(WIDGET, "first")
    stage.app_gone()


@scenario
def the_end_waits_for_an_operation(stage: Stage) -> None:
    """While an operation waits on a wave nothing is deleted; ending it lets the Application go."""
    two_waves(stage)
    stage.deliver(cascade=True)
    stage.until(says=WAITS, health="Progressing")
    stage.step("the Application is deleted")
    stage.delete_app()
    stage.patch_app("shop", {"metadata": {"annotations": {REFRESH: "normal"}}})
    stage.wait("a look", lambda: REFRESH not in annotations_of(stage.app()))
    assert stage.get(WIDGET, "w") is not None
    stage.step("the operation is ended")
    stage.terminate()
    stage.app_gone()
    assert stage.get(WIDGET, "w") is None


@scenario
def the_end_needs_no_repository(stage: Stage) -> None:
    """An Application whose repository cannot be read any more still takes its objects along."""
    stage.push(dict(TWO))
    stage.deliver(cascade=True)
    stage.delivered()
    stage.step("the repository is another")
    stage.patch_app("shop", {"spec": {"source": {"repoURL": stage.url("ghost")}}})
    stage.refresh("shop")
    stage.until(sync="Unknown", fault="ComparisonError")
    deleted(stage)
    assert stage.data("a") is None


@scenario
def the_end_needs_no_project(stage: Stage) -> None:
    """An Application whose AppProject is gone: who deletes both deletes the objects, too."""
    stage.push(dict(TWO))
    stage.deliver(cascade=True, project=stage.project("own"))
    stage.delivered()
    stage.step("the Application is deleted, then its project")
    stage.delete_app()
    stage.app_gone()
    stage.cluster.delete(stage.project_key("own"))
    assert stage.data("a") is None
