"""Why an Application is not delivered, in words: real ones, recorded, and some made up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from deliveryfaults import FAULTS, RECORDED, REPO_SERVER_DOWN, TERMINATE, Fault, recorded

from ground.argocd.delivery_obstacles import (
    ORDER_LABEL,
    applied,
    automated,
    delivers_nothing,
    extraneous,
    kubectl_patch,
    obstacle_of,
    pinned,
    refusals,
    short,
    sync_request,
    tracker,
)
from ground.argocd.sync_rules import FINALIZERS, HINT
from ground.objects.kube_objects import Manifest, dig

HEAD, OLD = "a" * 40, "b" * 40


HINDERED = [fault for fault in (*FAULTS, REPO_SERVER_DOWN) if fault.says]


@pytest.mark.parametrize("fault", HINDERED, ids=lambda fault: fault.name)
def test_a_fault_on_a_real_argo_cd_is_told_in_words(fault: Fault) -> None:
    found = obstacle_of(recorded(fault.name))

    assert found is not None
    assert found.failing is fault.failing
    assert fault.says in found.reason
    assert fault.advises in found.advice
    assert "rpc error" not in found.reason
    assert "\n" not in found.reason


def test_every_recorded_application_is_judged() -> None:
    known = {fault.name for fault in (*FAULTS, REPO_SERVER_DOWN)}

    assert {path.stem for path in RECORDED.glob("*.json")} == known


@pytest.mark.parametrize("name", ["delivered", "unrecognised"])
def test_what_is_synced_is_not_hindered(name: str) -> None:
    application = recorded(name)

    assert obstacle_of(application, dig(application, "status", "sync", "revision")) is None
    assert delivers_nothing(application) is (name == "unrecognised")


def test_a_commit_that_took_back_what_failed_is_delivered_without_a_sync() -> None:
    """Nothing differs, so Argo CD begins no operation, and the failed one stays written."""
    found = application({"phase": "Failed", "syncResult": {"revision": OLD}})
    found["status"]["sync"]["status"] = "Synced"

    assert obstacle_of(found, HEAD) is None


def test_a_delivered_commit_is_not_another_one() -> None:
    found = obstacle_of(recorded("delivered"), OLD)

    assert found is not None
    assert (found.failing, "Git is at bbbbbbbb" in found.reason) == (False, True)


def test_the_object_waited_for_can_be_looked_up() -> None:
    found = obstacle_of(recorded("waiting-wave"))

    assert found is not None
    assert found.waits_for is not None
    assert (found.waits_for.kind.api_version, found.waits_for.name) == ("apps/v1", "d")
    assert found.waits_for.namespace.startswith("lab-")


def test_a_pinned_commit_is_the_operations_not_the_one_seen() -> None:
    application = recorded("pinned")

    assert pinned(application) != dig(application, "status", "sync", "revision")
    assert automated(application)


def application(state: dict[str, Any], **more: Any) -> Manifest:
    return {
        "metadata": {"name": "garage-ae86", "namespace": "argocd", **more},
        "status": {"sync": {"status": "OutOfSync", "revision": HEAD}, "operationState": state},
    }


def running(**state: Any) -> dict[str, Any]:
    sync = {"sync": {"revision": OLD}, "retry": {"limit": -1}}
    return {"phase": "Running", "startedAt": "2026-11-21T16:00:00Z", "operation": sync, **state}


WAITED = {
    "message": "waiting for healthy state of g.io/XThing/x and 2 more resources",
    "syncResult": {
        "resources": [{"group": "g.io", "version": "v1", "kind": "XThing", "name": "x"}]
    },
}


@dataclass(frozen=True)
class Made:
    reason: str
    application: Manifest
    says: str
    advises: str = ""
    failing: bool = False


MADE = [
    Made(
        "a wave that waits with an older commit keeps the newer one out",
        application(running(**WAITED)),
        "XThing.g.io x and 2 more to become healthy; aaaaaaaa has to wait, since 2026-11-21T16:00",
        TERMINATE,
    ),
    Made(
        "just after a wave the message names what nobody waits for yet",
        application(running(message="waiting for healthy state of /ConfigMap/next")),
        "Argo CD is applying bbbbbbbb",
    ),
    Made(
        "retries without limit are said to be so",
        application(running(retryCount=3, message="boom. Retrying attempt #3 at 4:46PM.")),
        "boom (retry 3 without limit of bbbbbbbb); aaaaaaaa has to wait",
        TERMINATE,
        failing=True,
    ),
    Made(
        "an operation that is being ended is under way",
        application(running() | {"phase": "Terminating"}),
        "Argo CD ends its sync of bbbbbbbb",
    ),
    Made(
        "what failed at an older commit does not speak against the new one",
        application({"phase": "Failed", "syncResult": {"revision": OLD}}),
        "Argo CD is about to apply aaaaaaaa, when it looks at Git next: within three minutes",
    ),
    Made(
        "a removal waits for a wave without limit, though nothing says so",
        application(running(**WAITED), deletionTimestamp="2026-11-21T16:01:00Z"),
        "is to be removed, but its sync still waits for XThing.g.io x",
        TERMINATE,
        failing=True,
    ),
    Made(
        "a removal that waits for nothing is under way",
        application({}, deletionTimestamp="2026-11-21T16:01:00Z"),
        "is being removed",
    ),
    Made(
        "a sync that was asked for begins soon",
        application({"phase": "Succeeded"}) | {"operation": {"sync": {}}},
        "Argo CD is applying aaaaaaaa",
    ),
    Made(
        "a wave of the commit that shall be there keeps nothing out",
        application(running(**WAITED, operation={"sync": {"revision": HEAD}})),
        "the sync of aaaaaaaa waits for XThing.g.io x and 2 more to become healthy, since",
        "Argo CD waits without limit: see why XThing.g.io x does not get ready",
    ),
    Made(
        "an order's sync is ended by its command",
        application(running(**WAITED), labels={ORDER_LABEL: "garage-ae86"}),
        "aaaaaaaa has to wait",
        "let the newer commit through: orderkit repair garage-ae86",
    ),
    Made(
        "a limit of retries is told, and the commit's own retries keep nothing out",
        application(
            running(
                retryCount=2,
                message="app path does not exist",
                operation={"sync": {"revision": HEAD}, "retry": {"limit": 5}},
            )
        ),
        "app path does not exist (retry 2 of 5 of aaaaaaaa)",
        failing=True,
    ),
    Made(
        "one retry is not several",
        application({"phase": "Error", "syncResult": {"revision": HEAD}, "retryCount": 1}),
        "Argo CD gave up on aaaaaaaa after 1 retry: Error",
        "correct it with a new commit, or have this commit tried again: kubectl -n argocd patch",
        failing=True,
    ),
    Made(
        "a sync that names no commit failed at the one that was compared",
        application({"phase": "Failed", "retryCount": 5, "message": "boom"}),
        "Argo CD gave up on aaaaaaaa after 5 retries: boom",
        failing=True,
    ),
    Made(
        "an object that failed speaks for its sync, and one whose hook failed too",
        application(
            {
                "phase": "Failed",
                "syncResult": {
                    "revision": HEAD,
                    "resources": [
                        {
                            "group": "",
                            "version": "v1",
                            "kind": "Pod",
                            "name": "ok",
                            "hookPhase": "Succeeded",
                        },
                        {
                            "group": "batch",
                            "version": "v1",
                            "kind": "Job",
                            "name": "j",
                            "namespace": "n",
                            "hookPhase": "Error",
                            "message": "it ended",
                        },
                    ],
                },
            }
        ),
        "Argo CD gave up on aaaaaaaa: Job.batch n/j: it ended",
        failing=True,
    ),
    Made(
        "hooks of an order hinder it whatever else is said",
        application(
            running(), labels={ORDER_LABEL: "x"}, finalizers=[FINALIZERS["PostDelete"] + "/cleanup"]
        ),
        "manifests/ holds a hook of Argo CD (PostDelete), and an order has no hooks",
        HINT,
        failing=True,
    ),
    Made(
        "a difference with auto-sync is to be applied",
        application({}) | {"spec": {"syncPolicy": {"automated": {"selfHeal": True}}}},
        "the cluster differs from aaaaaaaa",
    ),
]


@pytest.mark.parametrize("made", MADE, ids=lambda made: made.reason)
def test_operations(made: Made) -> None:
    found = obstacle_of(made.application)

    assert found is not None
    assert made.says in found.reason
    assert made.advises in found.advice
    assert found.failing is made.failing


def test_a_version_that_is_not_served_is_told_like_a_kind_that_is_not() -> None:
    """What Argo CD 3.2 says where the group serves the kind in another version."""
    told = recorded("missing-crd")
    results = told["status"]["operationState"]["syncResult"]["resources"]
    for result in results:
        result["message"] = result.get("message", "").replace(
            "find lab.example.org/Widget", 'find version "v1" of lab.example.org/Widget'
        )

    found = obstacle_of(told)

    assert found is not None
    assert "the kind Widget of lab.example.org in version v1" in found.reason


@pytest.mark.parametrize("automated_", [None, {"enabled": False}])
def test_a_difference_without_auto_sync_is_synced_by_hand(automated_: Any) -> None:
    differing = application({}) | {"spec": {"syncPolicy": {"automated": automated_}}}

    found = obstacle_of(differing)

    assert found is not None
    assert found.reason == "the cluster differs from aaaaaaaa, and auto-sync is off"
    assert found.advice.startswith("sync it by hand: kubectl -n argocd patch application garage-a")


def test_what_git_no_longer_has_is_told_unless_it_is_pruned() -> None:
    resources = [
        {"version": "v1", "kind": "Pod", "name": "a", "requiresPruning": True},
        {"version": "v1", "kind": "Pod", "name": "b"},
    ]
    kept = application({})
    kept["status"]["resources"] = resources
    pruned = kept | {"spec": {"syncPolicy": {"automated": {"prune": True}}}}

    found = obstacle_of(kept)

    assert [str(key) for key in extraneous(kept)] == ["Pod a"]
    assert found is not None
    assert found.reason.startswith("aaaaaaaa does not hold Pod a any more, and Argo CD keeps")
    assert found.failing
    assert extraneous(pruned) == []


CONDITION = {"message": "it is so", "lastTransitionTime": "2026-11-21T16:02:00Z"}


@pytest.mark.parametrize(
    ("type_", "status", "is_told"),
    [
        ("ComparisonError", "Synced", True),
        ("ComparisonError", "Unknown", True),
        ("SyncError", "OutOfSync", True),
        ("SharedResourceWarning", "OutOfSync", True),
        ("SyncError", "Synced", False),
        ("SharedResourceWarning", "Synced", False),
        ("OrphanedResourceWarning", "OutOfSync", False),
    ],
)
def test_conditions_hinder_unless_they_are_left_over(
    type_: str, status: str, *, is_told: bool
) -> None:
    found = application({})
    found["status"] |= {"conditions": [{"type": type_, **CONDITION}]}
    found["status"]["sync"]["status"] = status

    obstacle = obstacle_of(found)
    told = obstacle is not None and obstacle.reason == "it is so"

    assert told is is_told
    if told and obstacle:
        assert (obstacle.failing, obstacle.since) == (True, CONDITION["lastTransitionTime"])
    listed = type_ != "OrphanedResourceWarning"
    event = (CONDITION["lastTransitionTime"], type_, "it is so", 1)
    assert list(refusals(found)) == ([event] if listed else [])


@pytest.mark.parametrize(("revision", "status"), [("", "OutOfSync"), (HEAD, "Unknown")])
def test_what_argo_cd_has_not_compared_is_not_read_yet(revision: str, status: str) -> None:
    found = application({})
    found["status"]["sync"] = {"status": status, "revision": revision}

    obstacle = obstacle_of(found)

    assert obstacle is not None
    assert obstacle.reason == "Argo CD has not read the repository yet"


REQUESTED = {"operation": {"sync": {"revision": OLD}}}


@pytest.mark.parametrize(
    ("found", "commit", "reason"),
    [
        (application(running()), OLD, "the operation's request names it"),
        (application(running(operation={}, syncResult={"revision": OLD})), OLD, "or its result"),
        (application(running() | {"phase": "Terminating"}), OLD, "also while it is ended"),
        (application({"phase": "Succeeded"}) | REQUESTED, OLD, "one that has not begun has a name"),
        (application(running() | {"phase": "Succeeded"}), "", "one that has ended pins nothing"),
        (application({}), "", "no operation"),
    ],
)
def test_only_an_operation_pins_a_commit(found: Manifest, commit: str, reason: str) -> None:
    assert pinned(found) == commit, reason


def test_the_commit_that_was_applied_is_the_newest_of_the_history_until_all_is_delivered() -> None:
    delivered = recorded("delivered")
    history = [{"revision": "c" * 40}, {"revision": OLD}]
    waiting = application(running())
    waiting["status"]["history"] = history
    empty = recorded("unrecognised")
    empty["status"]["history"] = history

    assert applied(delivered) == dig(delivered, "status", "sync", "revision")
    assert applied(waiting) == OLD
    assert applied(empty) == OLD, "a commit without objects needs no sync"
    assert applied(application({})) == ""


@pytest.mark.parametrize(
    ("tracking_id", "namespace", "name"),
    [
        ("garage-x:shop.io/XGarage:home/x", "home", "garage-x"),
        ("garage-x:shop.io/XGarage:home/x", "", "garage-x"),
        ("garage-x:shop.io/XGarage:away/x", "home", ""),
        ("garage-x:shop.io/XGarage:home/y", "home", ""),
        ("garage-x:shop.io/XBike:home/x", "home", ""),
        ("garage-x:shop.io/XGarage", "home", ""),
        (None, "home", ""),
    ],
)
def test_an_application_tracks_the_object_that_its_mark_names(
    tracking_id: str | None, namespace: str, name: str
) -> None:
    """Controllers copy annotations to objects that they make."""
    annotations = {"argocd.argoproj.io/tracking-id": tracking_id} if tracking_id else {}
    metadata = {"name": "x", "namespace": namespace, "annotations": annotations}

    live = {"apiVersion": "shop.io/v1", "kind": "XGarage", "metadata": metadata}

    assert tracker(live) == name


@pytest.mark.parametrize(
    ("labels", "policy", "prune"),
    [
        ({ORDER_LABEL: "x"}, {}, False),
        ({ORDER_LABEL: "x"}, {"prune": True}, True),
        ({}, {}, True),
        ({}, {"prune": True}, True),
    ],
)
def test_a_requested_sync_prunes_nothing_of_an_order(
    labels: dict[str, str], policy: dict[str, Any], *, prune: bool
) -> None:
    found = application({}, labels=labels) | {"spec": {"syncPolicy": {"automated": policy}}}

    assert sync_request(found) == {"operation": {"sync": {"prune": prune, "revision": HEAD}}}


def test_a_patch_is_written_for_the_namespace_of_the_application() -> None:
    found = application({}, namespace="gitops")
    del found["status"]

    assert kubectl_patch(found, {"a": 1}) == (
        "kubectl -n gitops patch application garage-ae86 --type merge -p '{\"a\":1}'"
    )


def test_a_branch_is_not_shortened() -> None:
    assert (short(HEAD), short("feature-branch")) == ("aaaaaaaa", "feature-branch")


def test_a_person_started_a_sync_unless_it_says_that_it_was_automatic() -> None:
    assert not automated(application(running()))
