"""Why an Application is not delivered, in words: real ones, recorded, and some made up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from deliveryfaults import FAULTS, RECORDED, REPO_SERVER_DOWN, TERMINATE, Fault, recorded

from ground.argocd.delivery_obstacles import automated, delivers_nothing, obstacle_of, pinned
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
