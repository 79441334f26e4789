"""Delivery: from a push to the cluster, and what the Application says about it."""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING

from ground.objects.kube_objects import CONFIG_MAP, annotations_of, dig

if TYPE_CHECKING:
    from extras.standins.tests.component.delivery.conftest import Lab

_WOULD_BE_LOOKED_AT_S = 0.3


def test_a_push_is_applied_with_the_tracking_annotation(lab: Lab) -> None:
    commit = lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a", one="1"))})
    lab.apply(lab.application("shop", "ae86/shop"))

    app = lab.wait_synced("shop", commit)

    live = lab.get(CONFIG_MAP, "a", "default")
    assert live is not None
    assert live["data"] == {"one": "1"}
    assert annotations_of(live)["argocd.argoproj.io/tracking-id"] == "shop:/ConfigMap:default/a"
    assert app["status"]["health"]["status"] == "Healthy"
    assert app["status"]["sourceType"] == "Directory"
    assert app["status"]["resources"] == [
        {"version": "v1", "kind": "ConfigMap", "namespace": "default", "name": "a",
         "status": "Synced"},
    ]  # fmt: skip
    state = app["status"]["operationState"]
    assert state["message"] == "successfully synced (all tasks run)"
    assert state["operation"]["initiatedBy"] == {"automated": True}
    assert [entry["revision"] for entry in app["status"]["history"]] == [commit]


def test_a_notified_push_is_applied_without_polling(lab: Lab) -> None:
    commit = lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a", v="0"))})
    lab.apply(lab.application("shop", "ae86/shop"))
    lab.wait_synced("shop", commit)

    lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a", v="1"))}, tell=False)
    lab.delivery.notify("http://127.0.0.1:7300/ae86/shop")

    lab.wait("the new value", functools.partial(lab.has_data, "a", v="1"))


def test_a_commit_outside_its_paths_does_not_touch_an_application(lab: Lab) -> None:
    """manifest-generate-paths: one team's commit is no reason to look at every other team."""
    paths = {"argocd.argoproj.io/manifest-generate-paths": "."}
    files = {
        f"apps/{name}/a.yaml": lab.dump(lab.config_map(name, v="0")) for name in ("red", "blue")
    }
    first = lab.push("platform/ledger", files)
    for name in ("red", "blue"):
        lab.apply(lab.application(name, "platform/ledger", f"apps/{name}", annotations=paths))
        lab.wait_synced(name, first)

    def leaves_blue_alone(number: int) -> bool:
        files = {"apps/red/a.yaml": lab.dump(lab.config_map("red", v=str(number)))}
        newest = lab.push("platform/ledger", files)
        lab.wait_synced("red", newest)
        time.sleep(number * _WOULD_BE_LOOKED_AT_S)
        return bool(dig(lab.app("blue"), "status", "sync", "revision") != newest)

    # A pass that follows its own writes may see each one while pushes come as fast as passes.
    assert any(map(leaves_blue_alone, range(1, 9)))

    last = lab.push(
        "platform/ledger", {"apps/blue/a.yaml": lab.dump(lab.config_map("blue", v="9"))}
    )
    lab.wait_synced("blue", last)
    assert lab.has_data("blue", v="9")


def test_a_push_nobody_reported_is_found_by_polling(lab: Lab) -> None:
    lab.restart(poll_s=0.05)
    commit = lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a"))}, tell=False)
    lab.apply(lab.application("shop", "ae86/shop"))
    lab.wait_synced("shop", commit)

    commit = lab.push(
        "ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a", x="z"))}, tell=False
    )

    lab.wait_synced("shop", commit)
    assert lab.map_data("a") == {"x": "z"}


def test_a_repository_that_appears_later_is_found_by_polling(lab: Lab) -> None:
    lab.restart(poll_s=0.05)
    lab.apply(lab.application("shop", "ae86/shop"))
    lab.wait_condition("shop", "ComparisonError", "repository not found")

    commit = lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a"))}, tell=False)

    lab.wait_synced("shop", commit)


def test_what_cannot_be_delivered_is_refused_by_name(lab: Lab) -> None:
    lab.push("ae86/k", {"manifests/kustomization.yaml": "resources: []\n"})
    helm = lab.application("c", "ae86/k")
    helm["spec"]["source"]["helm"] = {"releaseName": "x"}
    lab.apply(lab.application("k", "ae86/k"), helm)

    lab.wait_condition("k", "ComparisonError", "Kustomize is not supported")
    lab.wait_condition("c", "InvalidSpecError", "spec.source.helm is not supported")
