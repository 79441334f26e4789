"""Which conditions, phases and events of real systems say that a part of an order fails."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ground.objects.kube_objects import Kind, Manifest, ObjectKey
from orderkit.core.order.order_state import OrderState
from orderkit.core.order.order_summary import with_parts
from orderkit.core.order.order_view import PartState
from orderkit.core.order.part_failures import counts, event_failure, part_failure, part_state

SINCE = "2026-11-27T10:00:00Z"
AT_ONCE, SOON, LATER = (datetime(2026, 11, 27, 10, 0, s, tzinfo=UTC) for s in (0, 29, 30))
REDIS = "https://registry.example/redis:nope"


def condition(type_: str, status: str, reason: str, message: str = "") -> dict[str, str]:
    return {
        "type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": SINCE,
    }  # fmt: skip


def part(api: str, kind: str, *conditions: dict[str, str], **status: Any) -> Manifest:
    return {
        "apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": "n"},
        "status": {"conditions": list(conditions), **status},
    }  # fmt: skip


def managed(*conditions: dict[str, str], **status: Any) -> Manifest:
    return part("s3.aws.m.upbound.io/v1beta1", "Bucket", *conditions, **status)


def waiting(reason: str, message: str) -> dict[str, Any]:
    return {"name": "app", "state": {"waiting": {"reason": reason, "message": message}}}


ERROR = "create failed: async create failed: QuotaExceeded: you have 100 buckets"
AT_ONCE_CASES = {
    "quota, upjet and classic": (
        managed(condition("Synced", "False", "ReconcileError", ERROR),
                condition("Ready", "False", "Creating")), ERROR),
    "an asynchronous operation, while Synced is True": (
        managed(condition("Synced", "True", "ReconcileSuccess"),
                condition("LastAsyncOperation", "False", "AsyncUpdateFailure", "refuse to update")),
        "refuse to update"),
    "an update that a provider refuses, of a Ready resource": (
        managed(condition("Ready", "True", "Available"),
                condition("Synced", "False", "ReconcileError", "requires replacing it")),
        "requires replacing it"),
    "a quota of the namespace": (
        part("apps/v1", "Deployment", condition(
            "ReplicaFailure", "True", "FailedCreate", "pods is forbidden: exceeded quota: team")),
        "pods is forbidden: exceeded quota: team"),
    "a roll-out that took too long": (
        part("apps/v1", "Deployment", condition(
            "Progressing", "False", "ProgressDeadlineExceeded", "has timed-out progressing.")),
        "has timed-out progressing."),
    "a Job that gave up": (
        part("batch/v1", "Job", condition(
            "Failed", "True", "BackoffLimitExceeded", "Job has reached the limit")),
        "Job has reached the limit"),
    "kstatus": (
        part("kustomize.toolkit.fluxcd.io/v1", "Kustomization", condition(
            "Stalled", "True", "BuildFailed", "kustomize build failed")),
        "kustomize build failed"),
    "a claim whose volume is gone": (
        part("v1", "PersistentVolumeClaim", phase="Lost"), "its phase is Lost"),
    "what provider-kubernetes made": (
        part("kubernetes.m.crossplane.io/v1alpha1", "Object",
             condition("Synced", "True", "ReconcileSuccess"),
             atProvider={"manifest": part("batch/v1", "Job", condition(
                 "Failed", "True", "BackoffLimitExceeded", "Job has reached the limit"))}),
        "Job has reached the limit"),
}  # fmt: skip
LATER_CASES = {
    "a ProviderConfig that may be composed, too": (
        managed(condition("Synced", "False", "ReconcileError",
                          'connect failed: ProviderConfig "x" not found')),
        'connect failed: ProviderConfig "x" not found'),
    "a busy cloud": (
        managed(condition("Synced", "False", "ReconcileError", "observe failed: Throttling")),
        "observe failed: Throttling"),
    "no node has room": (
        part("v1", "Pod", condition("PodScheduled", "False", "Unschedulable", "0/3 nodes")),
        "0/3 nodes"),
    "an image that nobody can pull": (
        part("v1", "Pod", condition("Ready", "False", "ContainersNotReady"),
             containerStatuses=[waiting("ImagePullBackOff", REDIS)]),
        f"container app: ImagePullBackOff: {REDIS}"),
    "a Secret that is missing": (
        part("v1", "Pod", condition("Ready", "False", "ContainersNotReady"),
             containerStatuses=[waiting("CreateContainerConfigError", 'secret "db" not found')]),
        'container app: CreateContainerConfigError: secret "db" not found'),
}  # fmt: skip
PASSES = {
    "it is being made": managed(
        condition("Synced", "True", "ReconcileSuccess"), condition("Ready", "False", "Creating")
    ),
    "a sibling is being made": managed(
        condition(
            "Synced", "False", "ReconcileError",
            "cannot resolve references: referenced field was empty "
            "(referenced resource may not yet be ready)",
        )
    ),
    "it is paused": managed(condition("Synced", "False", "ReconcilePaused", "is paused")),
    "replicas are starting": part(
        "apps/v1", "Deployment", condition("Available", "False", "MinimumReplicasUnavailable")
    ),
    "the phase of a kind of its own": part("example.org/v1", "Thing", phase="Failed"),
    "it is being deleted": {
        **managed(condition("Synced", "False", "ReconcileError", ERROR)),
        "metadata": {"name": "x", "deletionTimestamp": SINCE},
    },
}  # fmt: skip


@pytest.mark.parametrize("case", AT_ONCE_CASES)
def test_what_does_not_pass_by_itself_fails_at_once(case: str) -> None:
    obj, sentence = AT_ONCE_CASES[case]

    failure = part_failure(obj)

    assert failure is not None
    assert failure.sentence == sentence
    assert counts(failure.counts_from, AT_ONCE)


@pytest.mark.parametrize("case", LATER_CASES)
def test_what_often_passes_fails_within_a_minute(case: str) -> None:
    obj, sentence = LATER_CASES[case]

    failure = part_failure(obj)

    assert failure is not None
    assert failure.sentence == sentence
    assert not counts(failure.counts_from, SOON)
    assert counts(failure.counts_from, LATER)


@pytest.mark.parametrize("case", PASSES)
def test_what_passes_by_itself_does_not_fail(case: str) -> None:
    assert part_failure(PASSES[case]) is None


def event(reason: str, message: str, at: str, type_: str = "Warning") -> Manifest:
    return {
        "type": type_, "reason": reason, "message": message,
        "firstTimestamp": at, "lastTimestamp": at,
    }  # fmt: skip


def test_events_name_what_an_object_does_not_say() -> None:
    quota = "create Pod db-0 in StatefulSet db failed error: exceeded quota"
    refused = '"bad": Widget "v2" is invalid: spec.colour: Unsupported value: "purple"'
    newer = "2026-11-27T10:05:00Z"

    assert (
        event_failure([event("WaitForFirstConsumer", "waiting for first consumer", SINCE)]) is None
    )
    assert event_failure([event("FailedCreate", quota, newer, "Normal")]) is None
    found = event_failure([event("Failed", "older", SINCE), event("FailedCreate", quota, newer)])
    assert found is not None
    assert found.sentence == quota
    told = event_failure(
        [event("ComposeResources", f"cannot apply composed resource {refused}", SINCE)]
    )
    assert told is not None
    assert told.sentence == refused


@pytest.mark.parametrize(
    ("phase", "reason", "becomes"),
    [
        ("Assembling", "Unready resources: bucket", "Failing"),
        ("Ready", "", "Failing"),
        ("Failing", "Unsynced resources: bucket", "Failing"),
        ("Delivering", "Argo CD is applying it", "Delivering"),
        ("Waiting", "waits for approval", "Waiting"),
        ("Ending", "the order is ending", "Ending"),
    ],
)
def test_an_order_fails_with_the_words_of_its_part(phase: Any, reason: str, becomes: str) -> None:
    failing = part_state(AT_ONCE_CASES["quota, upjet and classic"][0])

    state = with_parts(OrderState(phase, reason), (failing,), LATER)

    assert state.phase == becomes
    assert state.reason == (
        f"Bucket.s3.aws.m.upbound.io n/x: {ERROR}" if becomes == "Failing" else reason
    )


def test_who_makes_what_is_missing_is_told() -> None:
    failing = part_state(LATER_CASES["a ProviderConfig that may be composed, too"][0])

    state = with_parts(OrderState("Assembling", "Unready resources: bucket"), (failing,), LATER)

    assert state.advice.startswith('make ProviderConfig "x", or name one that exists')


def test_a_part_that_is_paused_needs_attention() -> None:
    paused = managed(condition("Synced", "False", "ReconcilePaused"))
    paused["metadata"]["annotations"] = {"crossplane.io/paused": "true"}

    state = with_parts(OrderState("Ready", ""), (part_state(paused),), LATER)

    assert state.phase == "Attention"
    assert "it is paused, so nothing about it changes" in state.reason
    assert "kubectl annotate" in state.advice
    fine = PartState(ObjectKey(Kind("", "v1", "ConfigMap"), "x"), "-", "-")
    assert with_parts(OrderState("Ready", ""), (fine,), LATER).phase == "Ready"
