"""
Carry a campaign out by Jobs of the cluster: what the coordinator does, and what a shard does.

Both are `running.Run` with a part of its work elsewhere: the coordinator has the orders of a wave
changed by the wave's Job, and a shard judges and records nothing. So a killed Pod, a second
coordinator or somebody who runs the campaign from a terminal meanwhile change nothing twice.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ground.errors import ConflictError, IncompleteError, RefusedError
from ground.objects.kube_objects import Manifest, ObjectKey, condition
from ground.shapes import changed
from orderkit.core.campaign import cluster_jobs
from orderkit.core.campaign.cluster_jobs import Crew, shard_of
from orderkit.core.campaign.deciding import Decision, OrderFact, OrderPhase
from orderkit.core.campaign.record import CampaignRecord
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.portal.runner_job import NAMESPACE
from orderkit.flows.campaign.campaign_reads import CampaignFiles, read_campaign
from orderkit.flows.campaign.running import Progress, Run
from orderkit.flows.leader_election import LEASE, Candidate, LeaderElection
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.cluster import Cluster

_OWNER = "orderkit-campaign"
_LOOK_EVERY_S, _AT_ONCE = 15.0, 150
"""How often the coordinator asks the forge about orders it knows nothing of, and about how many."""
_LEASE_S = 15
_GONE_S = 120.0


def start_in_cluster(platform: Platform, name: str, crew: Crew) -> str:
    """
    Start the coordinator's Job of a campaign that was started or resumed. Idempotent.

    Returns:
        The Job's name, in the namespace ``orderkit``.

    Raises:
        RefusedError: The campaign was not started.
        OrderkitError: The cluster refuses the Job, for example because ``day2/job`` is missing.
    """
    record = read_campaign(platform, name).record
    if record is None:
        hint = f"orderkit campaign start {name} --in-cluster"
        raise RefusedError(f"campaign {name} was not started", hint=hint)
    for number in itertools.count(1):  # one that was paused and resumed has ended before
        job = _ensure(platform.cluster, cluster_jobs.coordinator_job(record, crew, number))
        if not _is_over(job):
            break
    return str(job["metadata"]["name"])


def _ensure(cluster: Cluster, job: Manifest) -> Manifest:
    """Create a Job if it is missing; return it as the cluster has it."""
    key = ObjectKey.of(job)
    present = cluster.get(key)
    if present is None:
        try:
            return cluster.create(job, owner=_OWNER)
        except ConflictError:  # another coordinator was faster
            present = cluster.get(key)
    return present or job


@dataclass
class Coordinator(Run):
    """Has each wave's orders changed by the wave's Job, and judges and records what comes of it."""

    crew: Crew = field(kw_only=True)
    _election: LeaderElection | None = None
    _looked_s: float = float("-inf")
    _turns: dict[int, int] = field(default_factory=dict)
    """By number of the wave: which of its Jobs is the newest."""
    _given: set[int] = field(default_factory=set)
    """The waves that this process gave to a Job."""

    def run(self) -> CampaignRecord:
        """
        See `running.run`. While another coordinator holds the campaign's Lease, this one waits.

        Raises:
            OrderkitError: What `running.run` raises.
        """
        try:
            return super().run()
        finally:
            if self._election is not None:
                self._election.release()

    def _step(self, files: CampaignFiles, record: CampaignRecord) -> bool:
        if self._election is None:
            key = ObjectKey(LEASE, f"campaign-{record.id}", NAMESPACE)
            candidate = Candidate(key, uuid.uuid4().hex, _LEASE_S)
            self._election = LeaderElection(self.platform.cluster, self.platform.clock, candidate)
            self._election.start()
        if not self._election.is_leader():
            why = f"waits: another coordinator has the Lease campaign-{record.id}, or no one may"
            self.on_progress(Progress(record, record.current, (), why))
            return False
        return super()._step(files, record)

    def _wave(
        self,
        files: CampaignFiles,
        record: CampaignRecord,
        number: int,
        entries: Mapping[str, OrderEntry],
    ) -> bool:
        now_s = self.platform.clock.monotonic_s()
        if self._facts is not None and now_s - self._looked_s >= _LOOK_EVERY_S:
            self._look(record, number, entries, at_most=_AT_ONCE)
        return super()._wave(files, record, number, entries)

    def _look(
        self,
        record: CampaignRecord,
        number: int,
        entries: Mapping[str, OrderEntry],
        *,
        at_most: int | None = None,
    ) -> None:
        """Read from the forge what the shards have done until now."""
        assert self._facts is not None  # noqa: S101 - made by `_step`
        wave = record.waves[number]
        self._facts.look_back(record, wave, entries, with_made=True, at_most=at_most)
        self._looked_s = self.platform.clock.monotonic_s()
        self.has_looked = True

    def _apply(
        self,
        files: CampaignFiles,
        record: CampaignRecord,
        number: int,
        orders: Sequence[str],
        entries: Mapping[str, OrderEntry],
    ) -> bool:
        """See that the wave's Job works on the orders; do what it left, once it has ended."""
        if not _is_over(self._present_job(files, record, number)):
            return False
        self._look(record, number, entries)
        assert self._facts is not None  # noqa: S101 - made by `_step`
        facts = self._facts.facts(record, record.waves[number], entries)
        left = {fact.order for fact in facts if fact.phase is OrderPhase.TODO}
        left_here = [order for order in orders if order in left]
        # a Job that ended before this process came was paused in between: another one follows it
        if left_here and number not in self._given:
            self._turns[number] += 1
            self._present_job(files, record, number)
            return False
        # an order with nothing to do leaves no trace in Git, and one whose Pod failed for good may
        # be untouched: both are looked at here, as without a cluster
        return not left_here or super()._apply(files, record, number, left_here, entries)

    def _present_job(self, files: CampaignFiles, record: CampaignRecord, number: int) -> Manifest:
        """Return the newest Job of a wave; create it if there is none."""
        cluster = self.platform.cluster
        if number not in self._turns:
            turn = 1
            while cluster.get(ObjectKey.of(self._job(files, record, number, turn + 1))):
                turn += 1
            self._turns[number] = turn
        job = self._job(files, record, number, self._turns[number])
        if found := cluster.get(ObjectKey.of(job)):
            return found
        self._given.add(number)
        return _ensure(self.platform.cluster, job)

    def _job(
        self, files: CampaignFiles, record: CampaignRecord, number: int, turn: int
    ) -> Manifest:
        return cluster_jobs.wave_job(files.campaign, record, number, self.crew, turn=turn)

    def _write(self, files: CampaignFiles, record: CampaignRecord, summary: str) -> None:
        if record.state != "running" and (number := record.current) is not None:
            for turn in range(self._turns.get(number, 1), 0, -1):
                self._end(ObjectKey.of(self._job(files, record, number, turn)))
        super()._write(files, record, summary)

    def _end(self, key: ObjectKey) -> None:
        """
        Delete a wave's Job and wait for its Pods to go: none may write while it is taken back.

        Raises:
            IncompleteError: They do not go.
        """
        cluster = self.platform.cluster
        # foreground: the Job stays until its Pods are gone
        cluster.delete(key, propagation="Foreground")
        until(
            self.platform.clock, lambda: cluster.get(key), lambda found: found is None,
            timeout_s=_GONE_S, goal=f"the end of Job {key.name}",
        )  # fmt: skip


def _is_over(job: Manifest) -> bool:
    ends = (condition(job, "Complete"), condition(job, "Failed"))
    return any(end is not None and end.get("status") == "True" for end in ends)


@dataclass
class Shard(Run):
    """Changes one shard's orders of one wave, and waits until they are Ready or have failed."""

    wave: int = 0
    shard: int = 0
    shards: int = 1
    failed: list[OrderFact] = field(default_factory=list)
    _is_done: bool = False

    def is_over(self, record: CampaignRecord) -> bool:
        """Say whether the wave is over, or somebody paused or stopped the campaign."""
        return self._is_done or record.state != "running" or record.current != self.wave

    def _step(self, files: CampaignFiles, record: CampaignRecord) -> bool:
        wave = record.waves[self.wave]
        own = tuple(order for order in wave.orders if shard_of(order, self.shards) == self.shard)
        part = record.with_wave(self.wave, changed(wave, orders=own))
        campaign = cluster_jobs.of_shard(files.campaign, self.shards)
        return super()._step(replace(files, campaign=campaign), part)

    def _wait(self, decision: Decision, facts: Sequence[OrderFact]) -> None:
        """People merge pull requests; the coordinator sees it."""
        try:
            super()._wait(decision, facts)
        except IncompleteError:
            self._end(facts)

    def _close(
        self,
        files: CampaignFiles,  # noqa: ARG002 - as it is called
        record: CampaignRecord,  # noqa: ARG002
        number: int,  # noqa: ARG002
        facts: Sequence[OrderFact],
    ) -> None:
        self._end(facts)

    def _end(self, facts: Sequence[OrderFact]) -> None:
        self.failed = [fact for fact in facts if fact.phase is OrderPhase.FAILED]
        self._is_done = True


def work(shard: Shard) -> None:
    """
    Do a shard's part of a wave. Idempotent, resumable.

    Raises:
        RefusedError: Orders failed; Git has what was done to the others.
        OrderkitError: What `running.run` raises.
    """
    shard.run()
    if shard.failed:
        first = shard.failed[0]
        raise RefusedError(
            f"{len(shard.failed)} orders of shard {shard.shard} failed: {first.order}: {first.why}",
            hint=f"orderkit campaign status {shard.name}",
        )
