"""
The Jobs that carry a campaign out in the cluster: a coordinator, and an Indexed Job for each wave.

The orders of a wave are dealt to shards by a hash of their names. Each index of the wave's Job
changes the orders of its shard, at its part of the pace, and waits until they are Ready. The
coordinator starts the Jobs, judges the wave by what Git and the cluster show, and writes the
record. What a Job says of itself decides nothing: one failed index makes a Job Failed, although
the campaign may allow failures.

Exit codes fail an index or the whole Job by the rules of
https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ground.errors import InvalidInputError
from ground.objects.kube_objects import Manifest
from ground.shapes import changed
from orderkit.core.campaign.definition import Campaign, StopRule
from orderkit.core.campaign.record import CampaignRecord
from orderkit.core.portal.runner_job import CONTAINER, RunnerJob, manifest

ACCOUNT = "orderkit-campaign"
CAMPAIGN_LABEL = "orderkit.dev/campaign"
SHARDS_MAX = 50
"""As in ``day2/job/policies.yaml``."""
_DAY_S = 86_400
_NAME_SHOWN = 24
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Crew:
    """Who works on a campaign in the cluster."""

    image: str
    """Orderkit's, with a tag or a digest."""
    requester: str
    """Whom the commits name."""
    shards: int
    """Pods of a wave, at most."""


def checked_shards(shards: int) -> int:
    """
    Return how many Pods somebody wants.

    Raises:
        InvalidInputError: The cluster's policy for Jobs does not allow so many.
    """
    if shards > SHARDS_MAX:
        raise InvalidInputError(
            "--shards", shards, "is more than the cluster's policy for Jobs allows",
            hint=f"--shards {SHARDS_MAX}, or fewer",
        )  # fmt: skip
    return shards


def shard_of(order: str, shards: int) -> int:
    """Return the shard of an order: the same in every process."""
    return int(hashlib.sha256(order.encode()).hexdigest()[:12], 16) % shards


def shard_count(campaign: Campaign, orders: int, wanted: int) -> int:
    """Return how many shards a wave gets: each has an order and a part of the pace."""
    pace = campaign.pace
    return max(1, min(wanted, orders, pace.per_minute, pace.in_flight, SHARDS_MAX))


def of_shard(campaign: Campaign, shards: int) -> Campaign:
    """
    Return a campaign as one shard carries it out: its part of the pace, and no end before its time.

    Whether the campaign stops, and whether a wave soaks, is judged over all shards.
    """
    pace = changed(
        campaign.pace,
        per_minute=max(1, campaign.pace.per_minute // shards),
        in_flight=max(1, campaign.pace.in_flight // shards),
    )
    never = StopRule(failed=100_000)
    return changed(campaign, pace=pace, stop=never, gates=changed(campaign.gates, soak=None))


def failed_indexes(rule: StopRule, orders: int, shards: int) -> int:
    """Return how many indexes may fail before Kubernetes ends the Job; never too few."""
    allowed = rule.failed - 1 if rule.share is None else orders * rule.share // 100
    return min(allowed, shards)


def coordinator_job(record: CampaignRecord, crew: Crew, number: int = 1) -> Manifest:
    """Return the coordinator's Job, the first or a later one for this state of the record."""
    text = f"{number} {record.to_text()}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    arguments = ("campaign", "carry", f"--requester={crew.requester}", f"--shards={crew.shards}")
    job = _job(record, f"c-{digest}", crew.image, [*arguments, "--", record.name])
    final = {"action": "FailJob", "onExitCodes": _codes(2, 3, 4, 5, 70)}
    job["spec"]["podFailurePolicy"] = {"rules": [_DISRUPTED, final]}
    return job


def wave_job(
    campaign: Campaign, record: CampaignRecord, wave: int, crew: Crew, *, turn: int = 1
) -> Manifest:
    """Return the Indexed Job of a wave, the first or a later one for the same attempt."""
    orders = len(record.waves[wave].orders)
    shards = shard_count(campaign, orders, crew.shards)
    arguments = ("campaign", "work", f"--requester={crew.requester}", f"--wave={wave + 1}")
    step = f"w{wave + 1}-{record.attempt}{f'-{turn}' * (turn > 1)}"
    job = _job(record, step, crew.image, [*arguments, f"--shards={shards}", "--", record.name])
    # of all indexes together: Kubernetes sets no limit beside backoffLimitPerIndex
    del job["spec"]["backoffLimit"]
    job["spec"] |= {
        "completionMode": "Indexed",
        "completions": shards,
        "parallelism": shards,
        "backoffLimitPerIndex": _TRIES,
        "maxFailedIndexes": failed_indexes(campaign.stop, orders, shards),
        "podFailurePolicy": {
            "rules": [
                _DISRUPTED,
                {"action": "FailIndex", "onExitCodes": _codes(3, 4)},  # a conflict, a failed order
                {"action": "FailJob", "onExitCodes": _codes(2, 70)},  # a wrong value, a bug
            ]
        },
    }
    return job


# a Pod that was evicted or preempted does not count
_DISRUPTED: Manifest = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}


def _codes(*values: int) -> dict[str, Any]:
    return {"containerName": CONTAINER, "operator": "In", "values": list(values)}


def _job(record: CampaignRecord, step: str, image: str, arguments: Sequence[str]) -> Manifest:
    shown = record.name[:_NAME_SHOWN].rstrip("-")
    name = f"campaign-{shown}-{record.id[-8:]}-{step}"
    job = manifest(RunnerJob(name, image, arguments, account=ACCOUNT))
    job["metadata"]["labels"] = {**job["metadata"]["labels"], CAMPAIGN_LABEL: record.name}
    job["spec"]["activeDeadlineSeconds"] = _DAY_S
    return job
