"""Delivery: from a push to the cluster, and what the Application says about it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from orderkit.core.objects import CONFIG_MAP, NAMESPACE, Kind, annotations_of, dig

if TYPE_CHECKING:
    from tests.component.delivery.conftest import Lab


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

    for n in range(1, 6):
        files = {"apps/red/a.yaml": lab.dump(lab.config_map("red", v=str(n)))}
        newest = lab.push("platform/ledger", files)
        lab.wait_synced("red", newest)
    # A pass that was under way may have seen an early one; nobody sent it after the newest.
    assert dig(lab.app("blue"), "status", "sync", "revision") != newest

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


def test_fields_that_leave_git_leave_the_object_and_foreign_fields_stay(lab: Lab) -> None:
    first = lab.config_map("a", keep="1", drop="2")
    lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(first)})
    lab.apply(lab.application("shop", "ae86/shop"))
    lab.wait("the object", lambda: lab.map_data("a"))
    lab.cluster.patch(
        lab.key(CONFIG_MAP, "a"), {"metadata": {"labels": {"by": "hand"}}}, owner="kubectl"
    )

    commit = lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a", keep="1"))})

    lab.wait_synced("shop", commit)
    assert lab.map_data("a") == {"keep": "1"}
    assert dig(lab.get(CONFIG_MAP, "a", "default"), "metadata", "labels") == {"by": "hand"}


def test_a_folder_is_read_recursively_only_when_asked(lab: Lab) -> None:
    files = {
        "manifests/a.yaml": lab.dump(lab.config_map("a")),
        "manifests/deep/er/b.yml": lab.dump(lab.config_map("b")),
        "manifests/c.json": '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}',
        "manifests/README.md": "no manifest",
        "manifests/values.yaml": "just: values\n",
        "other.yaml": lab.dump(lab.config_map("other")),
    }
    commit = lab.push("ae86/flat", dict(files))
    lab.apply(lab.application("flat", "ae86/flat", destination="default"))
    lab.wait_synced("flat", commit)
    assert lab.map_data("b") is None
    assert lab.map_data("c") == {}

    lab.apply(lab.application("flat", "ae86/flat", recurse=True))

    lab.wait("the deep one", lambda: lab.map_data("b") is not None)
    assert lab.map_data("other") is None


def test_the_destination_is_created_when_asked_and_is_not_ours(lab: Lab) -> None:
    commit = lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a"))})
    lab.apply(
        lab.application(
            "shop", "ae86/shop", destination="shop-ns", options=["CreateNamespace=true"]
        )
    )

    lab.wait_synced("shop", commit)

    assert lab.map_data("a", "shop-ns") == {}
    assert annotations_of(lab.get(NAMESPACE, "shop-ns") or {}) == {}


def test_a_missing_destination_fails_and_is_retried_until_it_exists(lab: Lab) -> None:
    retry = {"limit": -1, "backoff": {"duration": "100ms", "maxDuration": "200ms"}}
    commit = lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a"))})
    lab.apply(lab.application("shop", "ae86/shop", destination="late", retry=retry))
    lab.wait("a retry", lambda: lab.operation("shop").get("retryCount", 0) >= 2)
    state = lab.operation("shop")
    assert state["phase"] == "Running"
    assert "Retrying attempt #" in state["message"]
    assert 'namespaces "late" not found' in state["syncResult"]["resources"][0]["message"]

    lab.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "late"}})

    lab.wait_synced("shop", commit)


def test_a_failed_commit_is_not_tried_again_but_the_next_one_is(lab: Lab) -> None:
    bad = lab.push("ae86/shop", {"manifests/w.yaml": lab.dump(lab.widget("w", size=1000))})
    retry = {"limit": 1, "backoff": {"duration": "50ms"}}
    lab.apply(lab.application("shop", "ae86/shop", retry=retry))
    lab.wait_condition("shop", "SyncError", f"Failed last sync attempt to [{bad}]")
    state = lab.operation("shop")
    assert state["phase"] == "Failed"
    assert "(retried 1 times)" in state["message"]
    assert "size" in state["syncResult"]["resources"][0]["message"]
    lab.refresh("shop")
    assert lab.operation("shop")["startedAt"] == state["startedAt"]

    good = lab.push("ae86/shop", {"manifests/w.yaml": lab.dump(lab.widget("w", size=10))})

    app = lab.wait_synced("shop", good)
    assert dig(app, "status", "conditions") == []


def test_an_unknown_kind_fails_before_anything_is_applied(lab: Lab) -> None:
    ghost = {"apiVersion": "ghost.example.org/v1", "kind": "Ghost", "metadata": {"name": "g"}}
    both = lab.dump(lab.config_map("a"), ghost)
    lab.push("ae86/shop", {"manifests/a.yaml": both})
    lab.apply(lab.application("shop", "ae86/shop", retry={"limit": 0}))

    lab.wait("the failure", lambda: lab.operation("shop").get("phase") == "Failed")

    state = lab.operation("shop")
    assert "one or more synchronization tasks are not valid" in state["message"]
    assert 'Make sure the "Ghost" CRD is installed' in state["message"]
    assert lab.map_data("a") is None


def test_skip_dry_run_applies_the_rest_and_retries_the_unknown_kind(lab: Lab) -> None:
    ghost = Kind("ghost.example.org", "v1", "Ghost")
    spirit = {"apiVersion": ghost.api_version, "kind": "Ghost", "metadata": {"name": "g"}}
    files = {"manifests/a.yaml": lab.dump(lab.config_map("a"), spirit)}
    commit = lab.push("ae86/shop", dict(files))
    lab.apply(
        lab.application(
            "shop",
            "ae86/shop",
            options=["SkipDryRunOnMissingResource=true"],
            retry={"limit": -1, "backoff": {"duration": "100ms", "maxDuration": "100ms"}},
        )
    )
    lab.wait("the rest", lambda: lab.map_data("a") is not None)

    lab.apply(lab.crd(ghost))

    lab.wait_synced("shop", commit)
    assert lab.get(ghost, "g") is not None


def test_a_definition_and_its_objects_come_in_one_sync(lab: Lab) -> None:
    ghost = Kind("ghost.example.org", "v1", "Ghost")
    spirit = {"apiVersion": ghost.api_version, "kind": "Ghost", "metadata": {"name": "a"}}
    commit = lab.push("ae86/shop", {"manifests/all.yaml": lab.dump(spirit, lab.crd(ghost))})
    lab.apply(lab.application("shop", "ae86/shop"))

    lab.wait_synced("shop", commit)


def test_one_bad_file_stops_its_application_and_nothing_else(lab: Lab) -> None:
    good = {"manifests/a.yaml": lab.dump(lab.config_map("a", v="1"))}
    lab.push("ae86/one", dict(good))
    two = lab.push("ae86/two", {"manifests/b.yaml": lab.dump(lab.config_map("b", v="1"))})
    lab.apply(lab.application("one", "ae86/one"), lab.application("two", "ae86/two"))
    lab.wait("both", lambda: lab.map_data("a") and lab.map_data("b"))

    bad = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n data: {v: '2'}\n"
    lab.push("ae86/one", {"manifests/a.yaml": bad})

    text = lab.wait_condition("one", "ComparisonError")
    assert 'Failed to unmarshal "a.yaml"' in text
    assert "line 5" in text
    app = lab.app("one")
    assert app["status"]["sync"]["status"] == "Unknown"
    assert app["status"]["sync"]["revision"] == "main"
    assert app["status"]["health"]["status"] == "Healthy"
    assert lab.map_data("a") == {"v": "1"}
    lab.wait_synced("two", two)

    repaired = lab.push("ae86/one", {"manifests/a.yaml": lab.dump(lab.config_map("a", v="3"))})
    lab.wait_synced("one", repaired)


def test_what_cannot_be_delivered_is_refused_by_name(lab: Lab) -> None:
    lab.push("ae86/k", {"manifests/kustomization.yaml": "resources: []\n"})
    lab.push(
        "ae86/h",
        {
            "manifests/job.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: h\n"
            "  annotations: {argocd.argoproj.io/hook: PreSync}\n"
        },
    )
    helm = lab.application("c", "ae86/k")
    helm["spec"]["source"]["helm"] = {"releaseName": "x"}
    lab.apply(lab.application("k", "ae86/k"), lab.application("h", "ae86/h"), helm)

    lab.wait_condition("k", "ComparisonError", "Kustomize is not supported")
    lab.wait_condition("h", "ComparisonError", "hooks (PreSync) are not supported")
    lab.wait_condition("c", "InvalidSpecError", "spec.source.helm is not supported")


def test_a_missing_project_is_an_invalid_spec_until_it_appears(lab: Lab) -> None:
    commit = lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a"))})
    lab.apply(lab.application("shop", "ae86/shop", project="ae86"))
    lab.wait_condition("shop", "InvalidSpecError", "project ae86 which does not exist")
    assert lab.map_data("a") is None

    project = {"name": "ae86", "namespace": "argocd"}
    lab.apply({"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": project,
               "spec": {}})  # fmt: skip

    app = lab.wait_synced("shop", commit)
    assert dig(app, "status", "conditions") == []


def test_manual_sync_is_needed_without_automation(lab: Lab) -> None:
    commit = lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a"))})
    lab.apply(lab.application("shop", "ae86/shop", automated=None))
    lab.wait(
        "OutOfSync",
        lambda: dig(lab.app("shop"), "status", "sync", "status") == "OutOfSync",
    )
    assert lab.map_data("a") is None

    lab.patch_app("shop", {"operation": {"sync": {"revision": commit}}})

    lab.wait_synced("shop", commit)


def test_skip_reconcile_leaves_everything_alone(lab: Lab) -> None:
    commit = lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a"))})
    skip = {"argocd.argoproj.io/skip-reconcile": "true"}
    lab.apply(lab.application("shop", "ae86/shop", annotations=skip))
    lab.apply(lab.application("other", "ae86/shop", destination="argocd"))
    lab.wait_synced("other", commit)
    assert "status" not in lab.app("shop")

    lab.patch_app(
        "shop", {"metadata": {"annotations": {"argocd.argoproj.io/skip-reconcile": None}}}
    )

    lab.wait_synced("shop", commit)


def test_refresh_is_answered_with_a_time_even_if_nothing_changed(lab: Lab) -> None:
    commit = lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a"))})
    lab.apply(lab.application("shop", "ae86/shop"))
    lab.wait_synced("shop", commit)
    lab.patch_app("shop", {"status": {"reconciledAt": "2020-01-01T00:00:00Z"}})

    lab.refresh("shop", "hard")

    assert lab.app("shop")["status"]["reconciledAt"] > "2026"


def test_two_applications_that_want_one_object_warn(lab: Lab) -> None:
    lab.push("ae86/shop", {"manifests/a.yaml": lab.dump(lab.config_map("a", v="1"))})
    lab.apply(
        lab.application("first", "ae86/shop", automated={"prune": True}),
        lab.application("second", "ae86/shop", automated=None),
    )
    lab.wait("delivery", lambda: lab.map_data("a"))

    text = lab.wait_condition("second", "SharedResourceWarning")

    assert text == "ConfigMap/a is part of applications argocd/second and first"
    assert lab.app("second")["status"]["sync"]["status"] == "OutOfSync"
    operation = {"sync": {"syncOptions": ["FailOnSharedResource=true"]}}
    lab.patch_app("second", {"operation": operation})
    lab.wait(
        "the refusal",
        lambda: "Shared resource found" in lab.operation("second").get("message", ""),
    )
