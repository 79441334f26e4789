"""What failed in an order's delivery, as `orderkit events` lists it: from the Application alone."""

from __future__ import annotations

from typing import Any

from ground.argocd.delivery_obstacles import refusals

AT = "2026-11-23T01:02:03Z"
COMMIT = "a" * 40


def failures(**state: Any) -> list[tuple[str, str, str, int]]:
    operation = {"finishedAt": AT, "syncResult": {"revision": COMMIT}, **state}
    application = {
        "metadata": {"name": "disk-a", "namespace": "argocd"},
        "status": {"operationState": operation},
    }
    return list(refusals(application))


def test_a_sync_that_failed_as_a_whole_is_listed_with_its_time() -> None:
    message = "ComparisonError: failed to load target state: failed to generate manifest"

    ((at, reason, words, count),) = failures(phase="Error", message=message)

    assert (at, reason, count) == (AT, "OperationFailed", 1)
    assert words.startswith("the sync of aaaaaaaa failed: ")
    assert "failed to generate manifest" in words


def test_a_sync_that_is_retried_is_listed_with_its_attempts() -> None:
    ((_, reason, words, count),) = failures(phase="Running", message="it timed out", retryCount=4)

    assert (reason, count) == ("OperationFailed", 5)
    assert words.endswith("it timed out")


def test_objects_that_were_refused_speak_for_their_sync() -> None:
    refused = {
        "group": "example.org", "version": "v1", "kind": "XDisk", "name": "disk-a",
        "status": "SyncFailed", "message": "spec.size: Invalid value",
    }  # fmt: skip
    result = {"revision": COMMIT, "resources": [refused, {**refused, "status": "Synced"}]}

    events = failures(phase="Failed", message="one or more objects failed", syncResult=result)

    assert [reason for _, reason, _, _ in events] == ["SyncFailed"]
    assert "Invalid value" in events[0][2]


def test_a_sync_that_succeeded_or_runs_is_no_failure() -> None:
    assert failures(phase="Succeeded", message="successfully synced") == []
    assert failures(phase="Running", message="waiting for healthy state of /Pod/a") == []
