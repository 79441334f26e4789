"""The account of a scenario, by which two deliverers are compared, keeps the server's order."""

from __future__ import annotations

from typing import Any

from tests.conformance.delivery.account import Step, Vocabulary, account
from tests.conformance.delivery.eventlog import Event

BEGIN = Step("begin", 0)


def config_map(name: str, version: int, *, wave: int = 0, gone: bool = False) -> Event:
    annotations = {"argocd.argoproj.io/sync-wave": str(wave)}
    meta: dict[str, Any] = {"name": name, "uid": name, "annotations": annotations}
    return Event(version, gone, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})


def application(version: int, *revisions: str, **operation: Any) -> Event:
    status: dict[str, Any] = {"history": [{"revision": revision} for revision in revisions]}
    status["operationState"] = operation
    meta = {"name": "shop", "uid": "shop"}
    head = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
    return Event(version, gone=False, manifest={**head, "metadata": meta, "status": status})


def objects(*events: Event) -> str:
    return account([BEGIN], list(events), Vocabulary())["begin"]["nobody objects"]


def test_a_deletion_stands_where_it_happened_among_other_objects() -> None:
    old, new = config_map("old", 1), config_map("new", 2, wave=1)

    assert objects(old, new, config_map("old", 3, gone=True)) == (
        "create ConfigMap/old, create ConfigMap/new, delete ConfigMap/old"
    )
    assert objects(old, config_map("old", 2, gone=True), config_map("new", 3)) == (
        "create ConfigMap/old, delete ConfigMap/old, create ConfigMap/new"
    )


def test_what_one_wave_applies_has_no_order() -> None:
    assert objects(config_map("b", 1), config_map("a", 2)) == objects(
        config_map("a", 1), config_map("b", 2)
    )


def test_waves_have_an_order() -> None:
    assert objects(config_map("b", 1, wave=1), config_map("a", 2, wave=2)) == (
        "create ConfigMap/b, create ConfigMap/a"
    )


def test_a_commit_that_is_synced_again_is_told_once() -> None:
    words = Vocabulary({"one": "c1", "two": "c2"})
    events = [application(1, "one"), application(2, "one", "two", "two", "one")]

    assert account([BEGIN], events, words)["begin"]["shop history"] == "c1, c2, c1"


def results(phase: str, message: str) -> str:
    """Return what is told of the result of pruning ConfigMap/old."""
    entry = {"kind": "ConfigMap", "name": "old", "status": "SyncFailed", "hookPhase": "Failed"}
    state = {"phase": phase, "syncResult": {"resources": [{**entry, "message": message}]}}
    return account([BEGIN], [application(1, **state)], Vocabulary())["begin"]["shop results"]


def test_an_object_pruned_twice_is_told_only_while_that_hinders_the_operation() -> None:
    gone = 'configmaps "old" not found'

    assert results("Succeeded", gone) == "none"
    assert results("Running", gone) == f"ConfigMap/old SyncFailed Failed: {gone}"
    assert "not found" in results("Succeeded", 'namespaces "elsewhere" not found')


def test_between_two_tries_the_message_is_the_one_that_says_why() -> None:
    waits = "one or more objects failed to apply. Retrying attempt #1 at 2026-11-27T03:42:00Z."
    events = [application(1, message=waits), application(2, message="Retrying operation. Attempt")]

    told = account([BEGIN], events, Vocabulary())["begin"]["shop message"]
    assert told == "one or more objects failed to apply. Retrying attempt #n at <time>."
    assert account([BEGIN], events[1:], Vocabulary())["begin"]["shop message"] == (
        "Retrying operation. Attempt"
    )
