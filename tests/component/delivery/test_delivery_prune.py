"""Delivery: what leaves Git, what is changed by hand, and the end of an Application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from orderkit.core.objects import CONFIG_MAP, ObjectKey, annotations_of, dig

if TYPE_CHECKING:
    from tests.component.delivery.conftest import Lab

FINALIZER = "resources-finalizer.argocd.argoproj.io"
KEEP = "argocd.argoproj.io/sync-options"


def shop(lab: Lab, *names: str, **changes: Any) -> str:
    """An Application that delivers ConfigMaps, up and running."""
    files = {f"manifests/{name}.yaml": lab.dump(lab.config_map(name, v="1")) for name in names}
    commit = lab.push("ae86/shop", dict(files))
    lab.apply(lab.application("shop", "ae86/shop", **changes))
    lab.wait_synced("shop", commit)
    return commit


def test_what_leaves_git_is_pruned(lab: Lab) -> None:
    shop(lab, "a", "b")

    commit = lab.push("ae86/shop", {"manifests/b.yaml": None})

    lab.wait_synced("shop", commit)
    assert lab.map_data("b") is None
    assert lab.map_data("a") == {"v": "1"}
    results = lab.operation("shop")["syncResult"]["resources"]
    assert {one["name"]: one["status"] for one in results} == {"a": "Synced", "b": "Pruned"}


def test_without_prune_extra_objects_stay_and_are_reported(lab: Lab) -> None:
    shop(lab, "a", "b", automated={"prune": False})

    lab.push("ae86/shop", {"manifests/b.yaml": None})

    lab.wait(
        "the report",
        lambda: (
            [
                one["name"]
                for one in dig(lab.app("shop"), "status", "resources", default=())
                if one.get("requiresPruning")
            ]
            == ["b"]
        ),
    )
    assert lab.app("shop")["status"]["sync"]["status"] == "OutOfSync"
    assert lab.map_data("b") == {"v": "1"}


def test_the_folder_that_vanishes_prunes_nothing(lab: Lab) -> None:
    shop(lab, "a")

    lab.push("ae86/shop", {"manifests/a.yaml": None})

    text = lab.wait_condition("shop", "ComparisonError")
    assert text.endswith("manifests: app path does not exist")
    sync = lab.app("shop")["status"]["sync"]
    assert (sync["status"], sync["revision"]) == ("Unknown", "main")
    assert lab.map_data("a") == {"v": "1"}


def test_the_last_object_is_pruned_only_with_allow_empty(lab: Lab) -> None:
    """The end of an order: .gitkeep alone is refused, allowEmpty lets it through."""
    shop(lab, "a")

    commit = lab.push("ae86/shop", {"manifests/a.yaml": None, "manifests/.gitkeep": ""})

    text = lab.wait_condition("shop", "SyncError")
    assert text == f"Skipping sync attempt to [{commit}]: auto-sync will wipe out all resources"
    assert lab.app("shop")["status"]["sync"]["status"] == "OutOfSync"
    assert lab.map_data("a") == {"v": "1"}

    policy = {"automated": {"selfHeal": False, "allowEmpty": True, "prune": True}}
    lab.patch_app("shop", {"spec": {"syncPolicy": policy}})

    app = lab.wait_synced("shop", commit)
    assert lab.map_data("a") is None
    assert dig(app, "status", "conditions") == []
    assert dig(app, "status", "resources") == []


def test_prune_false_keeps_the_object(lab: Lab) -> None:
    kept = lab.config_map("kept")
    kept["metadata"]["annotations"] = {KEEP: "Prune=false,Delete=false"}
    lab.push(
        "ae86/shop",
        {"manifests/a.yaml": lab.dump(lab.config_map("a")), "manifests/k.yaml": lab.dump(kept)},
    )
    lab.apply(lab.application("shop", "ae86/shop", finalizers=[FINALIZER]))
    lab.wait("both", lambda: lab.map_data("kept") is not None and lab.map_data("a") is not None)

    commit = lab.push("ae86/shop", {"manifests/k.yaml": None})
    lab.wait(
        "the sync",
        lambda: (
            dig(lab.operation("shop"), "syncResult", "revision") == commit
            and lab.operation("shop")["phase"] == "Succeeded"
        ),
    )
    results = lab.operation("shop")["syncResult"]["resources"]
    assert {one["name"]: one["message"] for one in results}["kept"] == "ignored (no prune)"
    assert lab.map_data("kept") == {}

    lab.cluster.delete(ObjectKey.of(lab.app("shop")))
    lab.wait("the end", lambda: not lab.app("shop"))
    assert lab.map_data("a") is None
    assert lab.map_data("kept") == {}


def test_prunes_go_backwards_through_the_waves(lab: Lab) -> None:
    first, last = lab.widget("first", wave=1), lab.widget("last", wave=2)
    for one in (first, last):
        one["metadata"]["finalizers"] = ["test.example.org/wait"]
    files = {"manifests/a.yaml": lab.dump(lab.config_map("a"))}
    lab.push("ae86/shop", {**files, "manifests/w.yaml": lab.dump(first, last)})
    lab.apply(lab.application("shop", "ae86/shop"))
    lab.wait("the first", lambda: lab.get(lab.widget_kind, "first"))
    lab.set_conditions(lab.widget_kind, "first", Synced="True", Ready="True")
    lab.wait("the last", lambda: lab.get(lab.widget_kind, "last"))
    lab.wait("the sync", lambda: lab.operation("shop").get("phase") == "Succeeded")

    lab.push("ae86/shop", {"manifests/w.yaml": None})

    def is_going(name: str) -> bool:
        live = lab.get(lab.widget_kind, name) or {}
        return bool(dig(live, "metadata", "deletionTimestamp"))

    lab.wait("the last to go", lambda: is_going("last"))
    until = "waiting for deletion of shop.example.org/Widget/last"
    lab.wait("the wait", lambda: lab.operation("shop").get("message") == until)
    assert not is_going("first")
    lab.cluster.patch(
        lab.key(lab.widget_kind, "last", ""), {"metadata": {"finalizers": None}}, owner="t"
    )
    lab.wait("the first to go", lambda: is_going("first"))


def test_self_heal_restores_what_is_deleted_or_edited_by_hand(lab: Lab) -> None:
    commit = shop(lab, "a", "b")

    lab.cluster.delete(lab.key(CONFIG_MAP, "a"))
    lab.wait("the object", lambda: lab.map_data("a") == {"v": "1"})
    lab.cluster.patch(lab.key(CONFIG_MAP, "b"), {"data": {"v": "hand"}}, owner="kubectl")
    lab.wait("the value", lambda: lab.map_data("b") == {"v": "1"})
    strip = {"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": None}}}
    lab.cluster.patch(lab.key(CONFIG_MAP, "b"), strip, owner="kubectl")
    lab.wait("the annotation", lambda: annotations_of(lab.get(CONFIG_MAP, "b", "default") or {}))

    lab.wait_synced("shop", commit)
    selected = dig(lab.operation("shop"), "operation", "sync", "resources")
    assert [one["name"] for one in selected] == ["b"]
    assert len(lab.app("shop")["status"]["history"]) == 1


def test_without_self_heal_hand_edits_stay_until_the_next_commit(lab: Lab) -> None:
    shop(lab, "a", automated={"prune": True})
    lab.cluster.patch(lab.key(CONFIG_MAP, "a"), {"data": {"v": "hand"}}, owner="kubectl")
    lab.wait("OutOfSync", lambda: dig(lab.app("shop"), "status", "sync", "status") == "OutOfSync")
    assert lab.map_data("a") == {"v": "hand"}

    commit = lab.push("ae86/shop", {"manifests/b.yaml": lab.dump(lab.config_map("b"))})

    lab.wait_synced("shop", commit)
    assert lab.map_data("a") == {"v": "1"}


@pytest.mark.parametrize("finalizer", [FINALIZER, f"{FINALIZER}/background"])
def test_an_application_with_finalizer_takes_its_objects_along(lab: Lab, finalizer: str) -> None:
    shop(lab, "a", "b", finalizers=[finalizer])

    lab.cluster.delete(ObjectKey.of(lab.app("shop")))

    lab.wait("the end", lambda: not lab.app("shop"))
    assert lab.map_data("a") is None
    assert lab.map_data("b") is None


def test_without_finalizer_the_objects_stay_and_can_be_adopted_again(lab: Lab) -> None:
    shop(lab, "a", "b")

    lab.cluster.delete(ObjectKey.of(lab.app("shop")))
    lab.wait("the end", lambda: not lab.app("shop"))
    assert lab.map_data("a") == {"v": "1"}

    commit = lab.push("ae86/shop", {"manifests/b.yaml": None})
    lab.apply(lab.application("shop", "ae86/shop"))
    lab.wait_synced("shop", commit)
    lab.wait("the leftover to be pruned", lambda: lab.map_data("b") is None)


def test_the_end_of_a_root_is_the_end_of_its_children(lab: Lab) -> None:
    lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a"))})
    child = lab.application("child", "ae86/shop", finalizers=[FINALIZER])
    commit = lab.push("platform/root", {"manifests/child.yaml": lab.dump(child)})
    lab.apply(lab.application("root", "platform/root", finalizers=[FINALIZER]))
    lab.wait_synced("root", commit)
    lab.wait("the object", lambda: lab.map_data("a") is not None)

    lab.cluster.delete(ObjectKey.of(lab.app("root")))

    lab.wait("the end", lambda: not lab.app("root"))
    assert not lab.app("child")
    assert lab.map_data("a") is None


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


def test_deletion_hangs_while_the_operation_waits_on_a_wave(lab: Lab) -> None:
    """As observed on the real one; ending the operation lets it go."""
    manifests = (lab.widget("w", wave=1), lab.config_map("late", wave=2))
    lab.push("ae86/shop", {"manifests/all.yaml": lab.dump(*manifests)})
    lab.apply(lab.application("shop", "ae86/shop", finalizers=[FINALIZER]))
    lab.wait("the wait", lambda: "waiting for" in lab.operation("shop").get("message", ""))

    lab.cluster.delete(ObjectKey.of(lab.app("shop")))
    lab.patch_app("shop", {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}})
    lab.wait("a look", lambda: "argocd.argoproj.io/refresh" not in annotations_of(lab.app("shop")))
    assert lab.get(lab.widget_kind, "w") is not None

    lab.patch_app("shop", {"status": {"operationState": {"phase": "Terminating"}}})
    lab.wait("the end", lambda: not lab.app("shop"))
    assert lab.get(lab.widget_kind, "w") is None


def test_objects_that_only_carry_a_copied_annotation_are_not_touched(lab: Lab) -> None:
    shop(lab, "a")
    copied = lab.config_map("copy")
    copied["metadata"]["namespace"] = "default"
    copied["metadata"]["annotations"] = {
        "argocd.argoproj.io/tracking-id": "shop:/ConfigMap:default/a"
    }
    lab.apply(copied)

    commit = lab.push("ae86/shop", {"manifests/b.yaml": lab.dump(lab.config_map("b"))})

    lab.wait_synced("shop", commit)
    assert lab.map_data("copy") == {}
