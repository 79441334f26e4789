"""Delivery: waves wait for health, retries, terminated operations, restarts in the middle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orderkit.core.objects import CONFIG_MAP, Manifest, dig

if TYPE_CHECKING:
    from tests.component.delivery.conftest import Lab

QUICK = {"limit": -1, "backoff": {"duration": "100ms", "maxDuration": "100ms"}}


def push_two_waves(lab: Lab, repo: str = "ae86/shop") -> str:
    """A widget in wave 1, a ConfigMap in wave 2."""
    manifests = (lab.widget("w", wave=1, size=1), lab.config_map("late", wave=2))
    return lab.push(repo, {"manifests/all.yaml": lab.dump(*manifests)})


def until_it_waits(lab: Lab, name: str = "shop") -> None:
    lab.wait(
        "the wave to wait",
        lambda: "waiting for healthy state" in lab.operation(name).get("message", ""),
    )


def test_a_wave_waits_for_the_health_of_the_one_before(lab: Lab) -> None:
    commit = push_two_waves(lab)
    lab.apply(lab.application("shop", "ae86/shop"))
    lab.wait("the first wave", lambda: lab.get(lab.widget_kind, "w"))
    lab.set_conditions(lab.widget_kind, "w", Synced="True", Ready="False")
    until_it_waits(lab)
    state = lab.operation("shop")
    assert state["message"] == "waiting for healthy state of shop.example.org/Widget/w"
    assert state["phase"] == "Running"
    assert "operation" in lab.app("shop")
    assert lab.map_data("late") is None

    lab.set_conditions(lab.widget_kind, "w", Synced="True", Ready="True")

    lab.wait_synced("shop", commit)
    assert lab.map_data("late") == {}


def test_the_only_wave_does_not_wait(lab: Lab) -> None:
    lab.push("ae86/shop", {"manifests/all.yaml": lab.dump(lab.widget("w"))})
    lab.apply(lab.application("shop", "ae86/shop"))

    lab.wait("success", lambda: lab.operation("shop").get("phase") == "Succeeded")

    lab.set_conditions(lab.widget_kind, "w", Synced="True", Ready="False")
    lab.wait(
        "health",
        lambda: dig(lab.app("shop"), "status", "health", "status") == "Progressing",
    )


def test_degraded_fails_the_operation_and_a_retry_takes_it_up_again(lab: Lab) -> None:
    commit = push_two_waves(lab)
    lab.apply(lab.application("shop", "ae86/shop", retry=QUICK))
    lab.wait("the first wave", lambda: lab.get(lab.widget_kind, "w"))

    lab.set_conditions(lab.widget_kind, "w", Synced="False")
    lab.wait("a retry", lambda: lab.operation("shop").get("retryCount", 0) > 0)
    assert lab.map_data("late") is None

    lab.set_conditions(lab.widget_kind, "w", Synced="True", Ready="True")
    lab.wait_synced("shop", commit)


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


def test_a_waiting_operation_pins_its_commit_until_it_is_terminated(lab: Lab) -> None:
    """As observed: status shows the newer commit while the old one is being applied."""
    old = push_two_waves(lab)
    lab.apply(lab.application("shop", "ae86/shop"))
    lab.wait("the first wave", lambda: lab.get(lab.widget_kind, "w"))
    until_it_waits(lab)

    new = lab.push("ae86/shop", {"manifests/all.yaml": lab.dump(lab.config_map("only"))})
    lab.wait("the view", lambda: dig(lab.app("shop"), "status", "sync", "revision") == new)
    assert lab.operation("shop")["syncResult"]["revision"] == old
    assert lab.map_data("only") is None
    assert lab.get(lab.widget_kind, "w") is not None

    lab.patch_app("shop", {"status": {"operationState": {"phase": "Terminating"}}})

    lab.wait_synced("shop", new)
    assert lab.map_data("only") == {}
    assert lab.get(lab.widget_kind, "w") is None


def test_a_terminated_commit_is_not_begun_again(lab: Lab) -> None:
    push_two_waves(lab)
    lab.apply(lab.application("shop", "ae86/shop"))
    lab.wait("the first wave", lambda: lab.get(lab.widget_kind, "w"))
    until_it_waits(lab)

    lab.patch_app("shop", {"status": {"operationState": {"phase": "Terminating"}}})

    lab.wait_condition("shop", "SyncError", "Operation terminated")
    assert lab.operation("shop")["phase"] == "Failed"


def bad_then_good(lab: Lab, *, refresh: bool) -> str:
    """A commit that fails and retries for ever, then a good one on top; returns the good one."""
    lab.push("ae86/shop", {"manifests/w.yaml": lab.dump(lab.widget("w", size=1000))})
    retry = {**QUICK, "refresh": refresh}
    lab.apply(lab.application("shop", "ae86/shop", retry=retry))
    lab.wait("a retry", lambda: lab.operation("shop").get("retryCount", 0) > 0)
    return lab.push("ae86/shop", {"manifests/w.yaml": lab.dump(lab.widget("w", size=10))})


def test_retries_of_a_bad_commit_block_the_good_one(lab: Lab) -> None:
    good = bad_then_good(lab, refresh=False)
    seen = lab.operation("shop")["retryCount"]
    lab.wait("more retries", lambda: lab.operation("shop").get("retryCount", 0) > seen + 2)
    assert lab.get(lab.widget_kind, "w") is None

    lab.patch_app("shop", {"status": {"operationState": {"phase": "Terminating"}}})

    lab.wait_synced("shop", good)


def test_a_refreshing_retry_takes_the_newest_commit(lab: Lab) -> None:
    good = bad_then_good(lab, refresh=True)

    lab.wait_synced("shop", good)


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
    health = lab.app("root")["status"]["health"]
    assert health["status"] == "Degraded"
    assert "Application/functions" in health["message"]


def test_a_later_wave_is_not_begun_when_one_fails_to_apply(lab: Lab) -> None:
    manifests = (lab.widget("w", wave=-1, size=1000), lab.config_map("late"))
    lab.push("ae86/shop", {"manifests/all.yaml": lab.dump(*manifests)})
    lab.apply(lab.application("shop", "ae86/shop", retry={"limit": 0}))

    lab.wait("the failure", lambda: lab.operation("shop").get("phase") == "Failed")

    assert lab.operation("shop")["message"].startswith("one or more objects failed to apply")
    assert lab.get(CONFIG_MAP, "late", "default") is None
