"""Scenarios: in which order a sync creates things, and what it waits for."""

from __future__ import annotations

from tests.conformance.delivery.builders import (
    RETRY_SOON,
    RIG,
    WIDGET,
    config_map,
    crd,
    namespace,
    of_kind,
    rig,
    widget,
)
from tests.conformance.delivery.platforms import ROLE, SECRET
from tests.conformance.delivery.playing import scenario
from tests.conformance.delivery.stage import Content, Stage

from ground.objects.kube_objects import CONFIG_MAP, Kind

WAITS = "waiting for healthy state of shop.example.org/Widget/w"
NO_RETRY = {"limit": 0}


def two_waves(stage: Stage) -> str:
    """Push a Widget in wave 1 and a ConfigMap in wave 2."""
    return stage.push({"manifests/all.yaml": [widget("w", wave=1), config_map("late", wave=2)]})


@scenario
def a_push_is_delivered(stage: Stage) -> None:
    """A folder of a commit becomes objects that say who delivered them."""
    commit = stage.push({"manifests/a.yaml": config_map("a", one="1"), "README.md": "no manifest"})
    stage.deliver()
    stage.delivered("shop", commit)
    stage.step("a change")
    commit = stage.push_and_refresh({"manifests/a.yaml": config_map("a", one="2")})
    stage.delivered("shop", commit)
    stage.holds("a", one="2")


@scenario
def waves_in_order(stage: Stage) -> None:
    """Lower waves first, negative ones before those without a number."""
    waves = {"fourth": 7, "first": -3, "third": 2, "second": None}
    found = [config_map(name, wave=wave) for name, wave in waves.items()]
    stage.push({"manifests/all.yaml": found})
    stage.deliver()
    stage.delivered()


@scenario
def kinds_in_order(stage: Stage) -> None:
    """Inside a wave: Secret, ConfigMap, Role, then custom kinds."""
    found = [widget("w"), of_kind(ROLE, "r"), config_map("c"), of_kind(SECRET, "s")]
    stage.push({"manifests/all.yaml": found})
    stage.deliver()
    stage.until(sync="Synced", phase="Succeeded", health="Progressing")


@scenario
def a_wave_waits_for_health(stage: Stage) -> None:
    """The next wave begins when everything in this one is healthy."""
    commit = two_waves(stage)
    stage.deliver()
    stage.there(WIDGET, "w")
    stage.conditions(WIDGET, "w", Synced="True", Ready="False")
    stage.until(says=WAITS, health="Progressing")
    stage.step("ready")
    stage.ready(WIDGET, "w")
    stage.delivered("shop", commit)


@scenario
def a_wave_waits_for_a_status(stage: Stage) -> None:
    """An XR without any status is not ready."""
    commit = two_waves(stage)
    stage.deliver()
    stage.until(says=WAITS, health="Progressing")
    stage.step("ready")
    stage.ready(WIDGET, "w")
    stage.delivered("shop", commit)


@scenario
def the_only_wave_does_not_wait(stage: Stage) -> None:
    """With one wave the operation ends at once, whatever the health."""
    stage.push({"manifests/w.yaml": widget("w")})
    stage.deliver()
    stage.until(phase="Succeeded", sync="Synced", health="Progressing")


@scenario
def health_follows_an_xr(stage: Stage) -> None:
    """Not synced is Degraded, not ready is Progressing, synced and ready is Healthy."""
    commit = stage.push({"manifests/w.yaml": widget("w")})
    stage.deliver()
    stage.until(phase="Succeeded", sync="Synced", health="Progressing")
    stage.step("not synced")
    stage.conditions(WIDGET, "w", Synced="False", Ready="True")
    stage.until(health="Degraded")
    stage.step("not ready")
    stage.conditions(WIDGET, "w", Synced="True", Ready="False")
    stage.until(health="Progressing")
    stage.step("ready")
    stage.conditions(WIDGET, "w", Synced="True", Ready="True")
    stage.delivered("shop", commit)
    stage.step("of an older generation")
    stage.push_and_refresh({"manifests/w.yaml": widget("w", size=2)})
    stage.delivered(health="Progressing")


@scenario
def degraded_fails_the_sync(stage: Stage) -> None:
    """Degraded in a waited wave fails the operation; later health does not revive it."""
    commit = two_waves(stage)
    stage.deliver(retry=NO_RETRY)
    stage.until(says=WAITS, health="Progressing")
    stage.step("degraded")
    stage.conditions(WIDGET, "w", Synced="False", Ready="False")
    stage.until(phase="Failed", fault="Failed last sync attempt", sync="OutOfSync")
    stage.step("healthy again")
    stage.ready(WIDGET, "w")
    stage.until(phase="Failed", at=commit, health="Healthy")


@scenario
def a_retry_survives_transient_degraded(stage: Stage) -> None:
    """A wave that was Degraded for a moment is taken up again by a retry."""
    commit = two_waves(stage)
    stage.deliver(retry=RETRY_SOON)
    stage.until(says=WAITS, health="Progressing")
    stage.step("degraded")
    stage.conditions(WIDGET, "w", Synced="False", Ready="False")
    stage.until(says="Retrying attempt #")
    stage.step("healthy again")
    stage.ready(WIDGET, "w")
    stage.delivered("shop", commit)


@scenario
def a_later_wave_is_not_begun_after_a_failure(stage: Stage) -> None:
    """What cannot be applied stops the waves after it."""
    stage.push({"manifests/all.yaml": [config_map("a", wave=-1), widget("w", size=1000, wave=1),
                                       config_map("late", wave=2)]})  # fmt: skip
    stage.deliver(retry=NO_RETRY)
    stage.until(phase="Failed", sync="OutOfSync", fault="Failed last sync attempt")
    assert stage.get(CONFIG_MAP, "late") is None


@scenario
def a_definition_and_its_objects_in_one_sync(stage: Stage) -> None:
    """A CRD comes before the objects of its kind, though it has no wave."""
    ghost = Kind(f"{stage.id}.example.org", "v1", f"Ghost{stage.platform.run}")
    stage.push({"manifests/all.yaml": [of_kind(ghost, "g"), config_map("a"),
                                       crd(ghost, scope="Namespaced")]})  # fmt: skip
    stage.deliver()
    stage.until(phase="Succeeded", sync="Synced")
    stage.refresh("shop")  # a look before the CRD is established finds it Degraded
    stage.delivered()
    assert stage.get(ghost, "g") is not None


@scenario
def a_namespace_and_its_objects_in_one_sync(stage: Stage) -> None:
    """A Namespace comes before what lives in it and takes its wave."""
    inner = config_map("a", wave=-1)
    inner["metadata"]["namespace"] = stage.own("inner")
    stage.push({"manifests/all.yaml": [inner, namespace(stage.own("inner"))]})
    stage.deliver()
    stage.delivered()


@scenario
def cluster_scoped_objects_are_delivered(stage: Stage) -> None:
    """A cluster-scoped XR lives in no namespace, also when the manifest names one."""
    found = rig(stage.own("r"), size=1)
    found["metadata"]["namespace"] = stage.id
    stage.push({"manifests/r.yaml": found})
    stage.deliver()
    stage.ready(RIG, stage.own("r"), "")
    stage.delivered()


@scenario
def a_folder_is_read_recursively_only_when_asked(stage: Stage) -> None:
    """Flat by default; no manifest is what is not an object; other folders do not count."""
    files: dict[str, Content] = {
        "manifests/a.yaml": config_map("a"),
        "manifests/deep/er/b.yml": config_map("b"),
        "manifests/c.json": '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}',
        "manifests/README.md": "no manifest",
        "manifests/values.yaml": "just: values\n",
        "other.yaml": config_map("other"),
    }
    commit = stage.push(files)
    stage.deliver()
    stage.delivered("shop", commit)
    stage.step("recursively")
    stage.deliver(recurse=True)
    stage.holds("b")
    stage.delivered("shop", commit)


@scenario
def tombstones_are_not_delivered(stage: Stage) -> None:
    """What lies beside the delivered folder stays in Git: the ledger's data and tombstones."""
    entry = config_map("order")
    commit = stage.push(
        {"apps/red/order.yaml": entry, "data/red/limits.yaml": config_map("limits")}
    )
    stage.deliver(path="apps/red")
    stage.delivered("shop", commit)
    stage.step("the order ends")
    stage.push({"apps/red/order.yaml": None, "apps/red/next.yaml": config_map("next"),
                "data/red/order/tombstone.yaml": entry})  # fmt: skip
    stage.refresh("shop")
    stage.delivered()
    assert stage.data("order") is None
