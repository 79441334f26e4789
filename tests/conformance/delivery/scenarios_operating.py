"""Scenarios: operations that fail, wait, are repeated, pinned and ended; revisions."""

from __future__ import annotations

from tests.conformance.delivery.builders import (
    RETRY_SOON,
    WIDGET,
    config_map,
    crd,
    namespace,
    of_kind,
    widget,
)
from tests.conformance.delivery.playing import scenario
from tests.conformance.delivery.scenarios_ordering import NO_RETRY, WAITS, two_waves
from tests.conformance.delivery.stage import Stage

from ground.objects.kube_objects import CONFIG_MAP, Kind

BAD = {"manifests/w.yaml": widget("w", size=1000)}
GOOD = {"manifests/w.yaml": None, "manifests/a.yaml": config_map("a", v="good")}


@scenario
def retries_are_exhausted(stage: Stage) -> None:
    """After its retries a commit is given up and said so; the next commit is tried."""
    bad = stage.push(dict(BAD))
    stage.deliver(retry={"limit": 2, "backoff": {"duration": "1s", "factor": 1}})
    stage.until(phase="Failed", retries=2, fault="Failed last sync attempt", is_done=bad)
    stage.step("a refresh")
    began = stage.operation()["startedAt"]
    stage.refresh("shop")
    assert stage.operation()["startedAt"] == began
    stage.step("a good commit")
    stage.push_and_refresh(dict(GOOD))
    stage.delivered()


@scenario
def a_failure_without_retry(stage: Stage) -> None:
    """``limit: 0`` gives up at once."""
    stage.push(dict(BAD))
    stage.deliver(retry=NO_RETRY)
    stage.until(phase="Failed", fault="Failed last sync attempt", refused="spec.size")


@scenario
def retries_wait_for_what_is_missing(stage: Stage) -> None:
    """A missing namespace fails and is retried with back-off until it is there."""
    commit = stage.push({"manifests/a.yaml": config_map("a")})
    late = stage.own("late")
    stage.deliver(destination=late, retry=RETRY_SOON)
    stage.until(phase="Running", refused="not found")
    stage.retried()
    stage.step("the namespace comes")
    stage.apply(namespace(late))
    stage.delivered("shop", commit)


@scenario
def a_running_operation_pins_its_commit(stage: Stage) -> None:
    """Retries of a bad commit keep a newer, good one out, though the status names it."""
    bad = stage.push(dict(BAD))
    stage.deliver(retry=RETRY_SOON)
    stage.until(phase="Running", says="Retrying attempt")
    stage.retried()
    stage.step("a good commit")
    good = stage.push_and_refresh(dict(GOOD))
    stage.until(at=good, is_done=bad, phase="Running")
    stage.retried()
    assert stage.data("a") is None
    stage.step("the operation is ended")
    stage.terminate()
    stage.delivered("shop", good)


@scenario
def a_waiting_wave_pins_its_commit(stage: Stage) -> None:
    """An operation that waits on a wave keeps a newer commit out until it is ended."""
    old = two_waves(stage)
    stage.deliver()
    stage.until(says=WAITS, health="Progressing")
    stage.step("a newer commit")
    new = stage.push_and_refresh({"manifests/all.yaml": config_map("a")})
    stage.until(at=new, is_done=old, phase="Running", says=WAITS, health="Progressing")
    stage.step("the operation is ended")
    stage.terminate()
    stage.delivered("shop", new)
    stage.gone(WIDGET, "w")


@scenario
def retry_refresh_takes_a_newer_commit(stage: Stage) -> None:
    """With ``retry.refresh`` a retry takes the newest commit by itself."""
    stage.push(dict(BAD))
    stage.deliver(retry={**RETRY_SOON, "refresh": True})
    stage.until(phase="Running", says="Retrying attempt")
    stage.retried()
    stage.step("a good commit")
    stage.push_and_refresh(dict(GOOD))
    stage.delivered()


@scenario
def an_ended_operation_is_not_repeated(stage: Stage) -> None:
    """Terminating ends an operation without retry; its commit is not tried again."""
    commit = two_waves(stage)
    stage.deliver(retry=RETRY_SOON)
    stage.until(says=WAITS, health="Progressing")
    stage.step("the operation is ended")
    stage.terminate()
    stage.until(phase="Failed", fault="Failed last sync attempt", at=commit)
    assert stage.get(CONFIG_MAP, "late") is None


@scenario
def a_missing_definition_fails_before_anything(stage: Stage) -> None:
    """An unknown kind fails the whole sync before anything is applied."""
    ghost = Kind(f"{stage.id}.example.org", "v1", f"Spectre{stage.platform.run}")
    stage.push({"manifests/all.yaml": [config_map("a"), of_kind(ghost, "g")]})
    stage.deliver(retry=NO_RETRY)
    stage.until(phase="Failed", refused=f'Make sure the "{ghost.kind}" CRD is installed',
                fault="Failed last sync attempt")  # fmt: skip
    assert stage.data("a") is None
    stage.step("the definition comes with the next commit")
    stage.apply(crd(ghost, scope="Namespaced"))
    stage.wait("the kind", lambda: stage.cluster.serves(ghost))
    stage.push_and_refresh({"manifests/b.yaml": config_map("b")})
    stage.delivered()


@scenario
def skip_dry_run_applies_the_rest(stage: Stage) -> None:
    """SkipDryRunOnMissingResource: the rest is applied, the unknown kind when its CRD is there."""
    ghost = Kind(f"{stage.id}.example.org", "v1", f"Phantom{stage.platform.run}")
    skip = "SkipDryRunOnMissingResource=true"
    commit = stage.push(
        {"manifests/all.yaml": [config_map("a"), of_kind(ghost, "g", options=skip)]}
    )
    stage.deliver(retry=RETRY_SOON)
    stage.holds("a")
    stage.until(says="Retrying attempt")
    stage.wait("a synced", lambda: stage.resource_states()["a"] == "Synced")
    stage.step("the definition comes")
    stage.apply(crd(ghost, scope="Namespaced"))
    stage.delivered("shop", commit)
    assert stage.get(ghost, "g") is not None


@scenario
def a_pinned_revision_stays(stage: Stage) -> None:
    """An Application that names a commit does not follow the branch."""
    first = stage.push({"manifests/a.yaml": config_map("a", v="1")})
    stage.deliver(revision=first)
    stage.delivered("shop", first)
    stage.step("a newer commit")
    second = stage.push_and_refresh({"manifests/a.yaml": config_map("a", v="2")})
    stage.delivered("shop", first)
    stage.holds("a", v="1")
    stage.step("the other revision")
    stage.deliver(revision=second)
    stage.delivered("shop", second)
    stage.step("and back")
    stage.deliver(revision=first)
    stage.delivered("shop", first)
    stage.holds("a", v="1")


@scenario
def branches_and_tags_are_followed(stage: Stage) -> None:
    """A tag is resolved to its commit; a branch to its head."""
    first = stage.push({"manifests/a.yaml": config_map("a", v="1")})
    stage.tag("v1", first)
    second = stage.push({"manifests/a.yaml": config_map("a", v="2")})
    stage.deliver(revision="v1")
    stage.delivered("shop", first)
    stage.step("HEAD")
    stage.deliver(revision="HEAD")
    stage.delivered("shop", second)
    stage.step("the tag is moved")
    stage.deliver(revision="v1")
    stage.delivered("shop", first)
    stage.tag("v1", second)
    stage.refresh("shop")
    stage.delivered("shop", second)


@scenario
def a_refresh_is_answered(stage: Stage) -> None:
    """The annotation goes away and the time of the look is written, though nothing changed."""
    stage.push({"manifests/a.yaml": config_map("a")})
    stage.deliver()
    stage.delivered()
    stage.step("hard")
    stage.patch_app("shop", {"status": {"reconciledAt": "2020-01-01T00:00:00Z"}})
    stage.refresh("shop", kind="hard")
    assert stage.app()["status"]["reconciledAt"] > "2026"
    stage.delivered()


@scenario
def the_wanted_state_changes_without_a_commit(stage: Stage) -> None:
    """Another path of the same commit is delivered; the old objects are pruned."""
    commit = stage.push({"one/a.yaml": config_map("a"), "two/b.yaml": config_map("b")})
    stage.deliver(path="one")
    stage.delivered("shop", commit)
    stage.step("the other path")
    stage.deliver(path="two")
    stage.wait("a pruned", lambda: stage.data("a") is None and stage.data("b") == {})
    stage.delivered("shop", commit)


@scenario
def an_operation_on_chosen_objects(stage: Stage) -> None:
    """An operation may name its objects; the others stay as they are."""
    commit = stage.push({f"manifests/{n}.yaml": config_map(n) for n in ("a", "b")})
    stage.deliver(automated=None)
    stage.until(sync="OutOfSync", at=commit)
    stage.step("only a")
    chosen = [{"kind": "ConfigMap", "name": "a", "namespace": stage.id}]
    stage.patch_app("shop", {"operation": {"sync": {"resources": chosen, "revision": commit}}})
    stage.until(phase="Succeeded", sync="OutOfSync", is_done=commit)
    stage.wait("a synced", lambda: stage.resource_states()["a"] == "Synced")
    assert stage.data("b") is None
