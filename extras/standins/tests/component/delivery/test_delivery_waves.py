"""Delivery: waves interrupted, and layers; tests/conformance/delivery has what waves do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ground.objects.kube_objects import Manifest, dig

if TYPE_CHECKING:
    from extras.standins.tests.component.delivery.conftest import Lab


def push_two_waves(lab: Lab, repo: str = "ae86/shop") -> str:
    """A widget in wave 1, a ConfigMap in wave 2."""
    manifests = (lab.widget("w", wave=1, size=1), lab.config_map("late", wave=2))
    return lab.push(repo, {"manifests/all.yaml": lab.dump(*manifests)})


def until_it_waits(lab: Lab, name: str = "shop") -> None:
    lab.wait(
        "the wave to wait",
        lambda: "waiting for healthy state" in lab.operation(name).get("message", ""),
    )


def test_a_restart_in_a_waiting_wave_goes_on(lab: Lab) -> None:
    commit = push_two_waves(lab)
    lab.apply(lab.application("shop", "ae86/shop"))
    lab.wait("the first wave", lambda: lab.get(lab.widget_kind, "w"))
    lab.set_conditions(lab.widget_kind, "w", Synced="True", Ready="False")
    until_it_waits(lab)
    started = lab.operation("shop")["startedAt"]

    lab.restart()
    lab.set_conditions(lab.widget_kind, "w", Synced="True", Ready="True")

    lab.wait_synced("shop", commit)
    assert lab.operation("shop")["startedAt"] == started


def test_what_vanishes_while_its_wave_is_waited_for_comes_back(lab: Lab) -> None:
    push_two_waves(lab)
    lab.apply(lab.application("shop", "ae86/shop"))
    lab.wait("the first wave", lambda: lab.get(lab.widget_kind, "w"))
    lab.set_conditions(lab.widget_kind, "w", Synced="True", Ready="False")
    until_it_waits(lab)

    lab.cluster.delete(lab.key(lab.widget_kind, "w", ""))

    lab.wait("the widget", lambda: lab.get(lab.widget_kind, "w"))


def layered(lab: Lab) -> str:
    """A root whose children are the layers functions and apis, in waves."""
    lab.push("platform/functions", {"manifests/w.yaml": lab.dump(lab.widget("fn"))})
    lab.push("platform/apis", {"manifests/a.yaml": lab.dump(lab.config_map("api"))})
    children: list[Manifest] = [
        lab.application("functions", "platform/functions", wave=10),
        lab.application("apis", "platform/apis", wave=20),
    ]
    files = {f"manifests/{one['metadata']['name']}.yaml": lab.dump(one) for one in children}
    return lab.push("platform/root", dict(files))


def test_layers_come_one_after_the_other_when_each_is_healthy(lab: Lab) -> None:
    commit = layered(lab)
    lab.apply(lab.application("root", "platform/root", destination="argocd"))
    lab.wait("the first layer", lambda: lab.get(lab.widget_kind, "fn"))
    lab.set_conditions(lab.widget_kind, "fn", Synced="True", Ready="False")
    until_it_waits(lab, "root")
    assert not lab.app("apis")

    lab.set_conditions(lab.widget_kind, "fn", Synced="True", Ready="True")

    lab.wait_synced("root", commit)
    lab.wait("the second layer", lambda: lab.map_data("api") is not None)
    lab.wait(
        "health of the root",
        lambda: dig(lab.app("root"), "status", "health", "status") == "Healthy",
    )


def test_a_degraded_child_stops_the_root_and_shows_in_its_health(lab: Lab) -> None:
    layered(lab)
    root = lab.application("root", "platform/root", destination="argocd", retry={"limit": 0})
    lab.apply(root)
    lab.wait("the first layer", lambda: lab.get(lab.widget_kind, "fn"))

    lab.set_conditions(lab.widget_kind, "fn", Synced="False")

    lab.wait("the failure", lambda: lab.operation("root").get("phase") == "Failed")
    assert not lab.app("apis")
    assert lab.app("root")["status"]["health"]["status"] == "Degraded"
