"""Delivery: an Application's end, interrupted; tests/conformance/delivery has what ends do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ground.objects.kube_objects import CONFIG_MAP, ObjectKey, dig

if TYPE_CHECKING:
    from extras.standins.tests.component.delivery.conftest import Lab

FINALIZER = "resources-finalizer.argocd.argoproj.io"


def test_the_end_goes_on_after_a_restart_in_the_middle(lab: Lab) -> None:
    stuck = lab.config_map("stuck")
    stuck["metadata"]["finalizers"] = ["test.example.org/wait"]
    commit = lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(stuck)})
    lab.apply(lab.application("shop", "ae86/shop", finalizers=[FINALIZER]))
    lab.wait_synced("shop", commit)
    lab.cluster.delete(ObjectKey.of(lab.app("shop")))
    lab.wait(
        "deletion",
        lambda: dig(lab.get(CONFIG_MAP, "stuck", "default"), "metadata", "deletionTimestamp"),
    )

    lab.restart()
    assert lab.app("shop")
    lab.cluster.patch(
        lab.key(CONFIG_MAP, "stuck"), {"metadata": {"finalizers": None}}, owner="kubectl"
    )

    lab.wait("the end", lambda: not lab.app("shop"))
