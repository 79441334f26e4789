"""Scenarios: Applications that deliver Applications."""

from __future__ import annotations

from typing import Any

from tests.conformance.delivery.builders import WIDGET, config_map, widget
from tests.conformance.delivery.playing import scenario
from tests.conformance.delivery.scenarios_refusing import BROKEN
from tests.conformance.delivery.stage import Stage

from ground.argocd.sync_rules import SYNC_OPTIONS
from ground.objects.kube_objects import ARGOCD_NAMESPACE, annotations_of, dig


def root(stage: Stage, **changes: Any) -> None:
    """Deliver an Application of Applications from the repository ``root``."""
    stage.deliver("root", repo="root", destination=ARGOCD_NAMESPACE, **changes)


@scenario
def child_waves_wait_for_health(stage: Stage) -> None:
    """The next child is made when the one before is healthy, not merely synced."""
    stage.push({"manifests/w.yaml": widget("w")}, repo="one")
    stage.push({"manifests/a.yaml": config_map("a")}, repo="two")
    children = [
        stage.application("one", repo="one", wave=1),
        stage.application("two", repo="two", wave=2),
    ]
    stage.push({"manifests/all.yaml": children}, repo="root")
    root(stage)
    stage.until("one", sync="Synced", phase="Succeeded", health="Progressing")
    stage.refresh("root")  # it may have seen the child before that had any health
    stage.until("root", says="waiting for healthy state", health="Progressing")
    assert not stage.app("two")
    stage.step("the first is ready")
    stage.ready(WIDGET, "w")
    stage.delivered("one", stage.commits[0])
    stage.delivered("two", stage.commits[1])
    stage.delivered("root", stage.commits[2])


@scenario
def a_degraded_child_degrades_its_root(stage: Stage) -> None:
    """The health of a root is the worst of its children's."""
    stage.push({"manifests/w.yaml": widget("w")}, repo="one")
    stage.push({"manifests/one.yaml": stage.application("one", repo="one")}, repo="root")
    root(stage)
    stage.until("one", sync="Synced", phase="Succeeded", health="Progressing")
    stage.refresh("root")  # it may have seen the child before that had any health
    stage.until("root", sync="Synced", phase="Succeeded", health="Progressing")
    stage.step("degraded")
    stage.conditions(WIDGET, "w", Synced="False", Ready="False")
    stage.until("one", health="Degraded")
    stage.until("root", health="Degraded", sync="Synced")
    stage.step("healthy")
    stage.ready(WIDGET, "w")
    stage.until("one", health="Healthy")
    stage.until("root", health="Healthy")


@scenario
def a_child_follows_its_own_repository(stage: Stage) -> None:
    """A commit that changes content only is the child's business: the root stays as it is."""
    first = stage.push({"manifests/a.yaml": config_map("a", v="1")}, repo="one")
    top = stage.push({"manifests/one.yaml": stage.application("one", repo="one")}, repo="root")
    root(stage)
    stage.delivered("one", first)
    stage.delivered("root", top)
    stage.step("content changes")
    second = stage.push_and_refresh({"manifests/a.yaml": config_map("a", v="2")}, "one", repo="one")
    stage.delivered("one", second)
    stage.delivered("root", top)


@scenario
def the_root_heals_a_child(stage: Stage) -> None:
    """A child whose spec is changed by hand is set back."""
    first = stage.push({"manifests/a.yaml": config_map("a")}, repo="one")
    top = stage.push({"manifests/one.yaml": stage.application("one", repo="one")}, repo="root")
    root(stage)
    stage.delivered("one", first)
    stage.delivered("root", top)
    stage.step("a hand on the child")
    automated = {"syncPolicy": {"automated": {"prune": False}}}  # its own sync stays out of it
    stage.patch_app("one", {"spec": automated})
    stage.wait("prune", lambda: dig(stage.app("one"), "spec", "syncPolicy", "automated", "prune"))
    stage.delivered("root", top)
    stage.delivered("one", first)


@scenario
def a_malformed_child_stops_its_root(stage: Stage) -> None:
    """One bad file stops every new child of the Application that holds it; the old ones live on."""
    first = stage.push({"manifests/a.yaml": config_map("a", v="1")}, repo="one")
    child = {"manifests/one.yaml": stage.application("one", repo="one")}
    stage.push(dict(child), repo="root")
    root(stage)
    stage.delivered("one", first)
    stage.delivered("root")
    stage.step("a bad file and a new child")
    new = stage.application("two", repo="one")
    stage.push({"manifests/bad.yaml": BROKEN, "manifests/two.yaml": new}, repo="root")
    stage.refresh("root")
    stage.until("root", sync="Unknown", fault="ComparisonError", health="Healthy")
    assert not stage.app("two")
    stage.step("the old child changes")
    commit = stage.push_and_refresh({"manifests/a.yaml": config_map("a", v="2")}, "one", repo="one")
    stage.delivered("one", commit)


@scenario
def a_child_that_leaves_takes_its_objects_along(stage: Stage) -> None:
    """A child with finalizer that leaves Git is pruned with all it delivered."""
    stage.push({"manifests/a.yaml": config_map("a")}, repo="one")
    stage.push({"manifests/b.yaml": config_map("b")}, repo="two")
    children = {
        f"manifests/{name}.yaml": stage.application(name, repo=name, cascade=True)
        for name in ("one", "two")
    }
    stage.push(dict(children), repo="root")
    root(stage)
    stage.delivered("one", stage.commits[0])
    stage.delivered("two", stage.commits[1])
    stage.delivered("root")
    stage.step("one leaves")
    stage.push_and_refresh({"manifests/one.yaml": None}, "root", repo="root")
    stage.app_gone("one")
    stage.delivered("root")
    assert stage.data("a") is None
    assert stage.data("b") == {}


@scenario
def a_child_without_finalizer_leaves_its_objects(stage: Stage) -> None:
    """A child without finalizer is pruned alone."""
    stage.push({"manifests/a.yaml": config_map("a")}, repo="one")
    children = {
        "manifests/one.yaml": stage.application("one", repo="one"),
        "manifests/b.yaml": stage.application("two", repo="one", path="other", automated=None),
    }
    stage.push(dict(children), repo="root")
    root(stage)
    stage.delivered("one", stage.commits[0])
    stage.until("two", sync="Unknown")
    stage.until("root", sync="Synced", phase="Succeeded", health="Healthy")
    stage.step("one leaves")
    commit = stage.push_and_refresh({"manifests/one.yaml": None}, "root", repo="root")
    stage.app_gone("one")
    stage.until("root", sync="Synced", phase="Succeeded", is_done=commit, health="Healthy")
    assert stage.data("a") == {}


@scenario
def the_end_of_a_root_is_the_end_of_its_children(stage: Stage) -> None:
    """A root with finalizer takes its children along, and they what they delivered."""
    stage.push({"manifests/a.yaml": config_map("a")}, repo="one")
    child = stage.application("one", repo="one", cascade=True)
    stage.push({"manifests/one.yaml": child}, repo="root")
    root(stage, cascade=True)
    stage.delivered("one", stage.commits[0])
    stage.delivered("root")
    stage.step("the root is deleted")
    stage.delete_app("root")
    stage.app_gone("root")
    stage.app_gone("one")
    assert stage.data("a") is None


@scenario
def a_removed_wave_of_children_goes_backwards(stage: Stage) -> None:
    """Children are pruned in reversed waves, each waiting for the one before to be gone."""
    stage.push({"manifests/a.yaml": config_map("a")}, repo="one")
    stage.push({"manifests/b.yaml": config_map("b")}, repo="two")
    children = [
        stage.application("one", repo="one", wave=1, cascade=True),
        stage.application("two", repo="two", wave=2, cascade=True),
    ]
    stage.push({"manifests/all.yaml": children, "manifests/c.yaml": stage.application(
        "three", repo="one", path="none", automated=None)}, repo="root")  # fmt: skip
    root(stage)
    stage.delivered("one", stage.commits[0])
    stage.delivered("two", stage.commits[1])
    stage.until("root", sync="Synced", phase="Succeeded", health="Healthy")
    stage.step("both leave")
    commit = stage.push_and_refresh({"manifests/all.yaml": None}, "root", repo="root")
    stage.app_gone("one")
    stage.app_gone("two")
    stage.until("root", sync="Synced", phase="Succeeded", is_done=commit, health="Healthy")


@scenario
def a_kept_child_outlives_its_file_until_it_is_unmarked(stage: Stage) -> None:
    """A child marked Prune=false goes on delivering without its file; unmarked, it is pruned."""
    stage.push({"manifests/a.yaml": config_map("a", v="1")}, repo="one")
    kept = stage.application("one", repo="one", annotations={SYNC_OPTIONS: "Prune=false"})
    stage.push({"manifests/b.yaml": config_map("b")}, repo="two")
    other = {"manifests/two.yaml": stage.application("two", repo="two")}
    stage.push({"manifests/one.yaml": kept, **other}, repo="root")
    root(stage)
    stage.delivered("one", stage.commits[0])
    stage.delivered("two", stage.commits[1])
    stage.until("root", phase="Succeeded", sync="Synced", health="Healthy")
    stage.step("its file leaves")
    stage.push_and_refresh({"manifests/one.yaml": None}, "root", repo="root")
    stage.until("root", sync="OutOfSync", phase="Succeeded", done=stage.commits[-1])
    commit = stage.push_and_refresh({"manifests/a.yaml": config_map("a", v="2")}, "one", repo="one")
    stage.delivered("one", commit)
    stage.step("its file comes back without the mark")
    stage.push({"manifests/one.yaml": stage.application("one", repo="one")}, repo="root")
    stage.refresh("root")
    stage.wait("the mark gone", lambda: SYNC_OPTIONS not in annotations_of(stage.app("one")))
    stage.until("root", sync="Synced", phase="Succeeded")
    stage.step("its file leaves again")
    stage.push_and_refresh({"manifests/one.yaml": None}, "root", repo="root")
    stage.app_gone("one")
    stage.until("root", sync="Synced", health="Healthy")
    assert stage.data("a") == {"v": "2"}


@scenario
def a_child_loses_the_finalizer_that_its_file_loses(stage: Stage) -> None:
    """A child whose file no longer has the finalizer is deleted without what it delivered."""
    stage.push({"manifests/a.yaml": config_map("a")}, repo="one")
    child = stage.application("one", repo="one", cascade=True)
    stage.push({"manifests/one.yaml": child}, repo="root")
    root(stage)
    stage.delivered("one", stage.commits[0])
    stage.delivered("root")
    stage.step("without the finalizer")
    bare = {"manifests/one.yaml": stage.application("one", repo="one")}
    stage.push_and_refresh(bare, "root", repo="root")
    stage.wait("no finalizer", lambda: not dig(stage.app("one"), "metadata", "finalizers"))
    stage.delivered("root")
    stage.step("deleted by hand")
    before = dig(stage.app("one"), "metadata", "uid")
    stage.delete_app("one")
    stage.wait("a new one", lambda: dig(stage.app("one"), "metadata", "uid") not in (None, before))
    stage.until("one", sync="Synced", at=stage.commits[0], health="Healthy")
    stage.delivered("root")
    assert stage.data("a") == {}
