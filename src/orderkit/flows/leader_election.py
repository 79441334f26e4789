"""
Leader election with a Lease: one of several identical controllers works, the others wait.

A candidate takes the Lease by replacing exactly the version it read (resourceVersion), so only one
of two candidates succeeds. A Lease has expired when nobody renewed it for its duration *since this
process first saw it in that state*: clocks of different machines are never compared. A thread of
its own renews the Lease, also during a long pass. Election only saves work: a controller must stay
correct if two leaders overlap for a moment.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ground.errors import ConflictError, NotFoundError, OrderkitError
from ground.objects.kube_objects import Kind, Manifest, ObjectKey
from orderkit.ports.clock import Clock
from orderkit.ports.cluster import Cluster

LEASE = Kind("coordination.k8s.io", "v1", "Lease")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Which Lease to take, under which identity, and how long it lasts without a renewal."""

    key: ObjectKey
    """Of kind `LEASE`. The Lease is created if it does not exist; its namespace is not."""
    identity: str
    """Different for every process."""
    duration_s: int = 15

    @property
    def renew_interval_s(self) -> float:
        return self.duration_s / 3


class LeaderElection:
    """One candidate's view of one Lease."""

    def __init__(self, cluster: Cluster, clock: Clock, candidate: Candidate) -> None:
        self._cluster, self._clock, self._candidate = cluster, clock, candidate
        self._last_state: tuple[object, float] = (None, clock.monotonic_s())
        """The state of the Lease when it last changed, and when that was noticed."""
        self._renewed_s: float | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def is_leader(self) -> bool:
        """
        Return whether this process may work now: its last renewal is younger than the duration.

        Thread-safe; reads no cluster.
        """
        renewed_s = self._renewed_s
        if renewed_s is None:
            return False
        return self._clock.monotonic_s() - renewed_s < self._candidate.duration_s

    def start(self) -> None:
        """Try once, then keep trying and renewing in the background until `release`."""
        self.try_acquire()
        self._thread = threading.Thread(target=self._keep_trying, name="lease", daemon=True)
        self._thread.start()

    def try_acquire(self) -> bool:
        """Take or renew the Lease once; return whether we are the leader. Errors are logged."""
        started_s = self._clock.monotonic_s()
        try:
            acquired = self._try_write(started_s)
        except ConflictError:
            acquired = False  # another candidate wrote it at the same moment
        except OrderkitError as error:
            logger.warning("cannot renew the Lease %s: %s", self._candidate.key, error)
            # what we hold already is ours until it expires
            return self.is_leader()
        # counted from before the request, so that we never believe in it for longer than others do
        self._renewed_s = started_s if acquired else None
        return acquired

    def release(self) -> None:
        """Stop renewing and give up the Lease at once if we are the leader. Idempotent."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        if self._renewed_s is None:
            return
        self._renewed_s = None
        try:
            lease = self._cluster.get(self._candidate.key)
            if lease is not None and _spec(lease).get("holderIdentity") == self._candidate.identity:
                # 1 s, as client-go releases a Lease: the API server takes no 0
                spec = {**_spec(lease), "holderIdentity": "", "leaseDurationSeconds": 1}
                self._cluster.replace({**lease, "spec": spec}, owner=self._candidate.key.name)
        except OrderkitError as error:
            logger.warning("the Lease %s is left to expire: %s", self._candidate.key, error)

    def _keep_trying(self) -> None:
        while not self._stopping.wait(self._candidate.renew_interval_s):
            self.try_acquire()

    def _try_write(self, now_s: float) -> bool:
        """Raises ConflictError if another candidate writes first."""
        lease = self._cluster.get(self._candidate.key)
        if lease is None:
            self._cluster.create(self._new_lease(), owner=self._candidate.key.name)
            return True
        spec = _spec(lease)
        ours = spec.get("holderIdentity") == self._candidate.identity
        if not ours and not self._is_free(spec, now_s):
            return False
        try:
            self._cluster.replace(
                {**lease, "spec": self._new_spec(spec, ours=ours)}, owner=self._candidate.key.name
            )
        except NotFoundError:
            return False
        return True

    def _is_free(self, spec: dict[str, Any], now_s: float) -> bool:
        """Return whether the Lease has no holder or has not changed for its duration."""
        state = (spec.get("holderIdentity"), spec.get("renewTime"), spec.get("leaseTransitions"))
        # timed from when we saw it so: clocks of different machines are never compared
        if state != self._last_state[0]:
            self._last_state = (state, now_s)
        if not spec.get("holderIdentity"):
            return True
        return now_s - self._last_state[1] > float(spec.get("leaseDurationSeconds") or 0)

    def _new_lease(self) -> Manifest:
        key = self._candidate.key
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {"name": key.name, "namespace": key.namespace},
            "spec": self._new_spec({}, ours=False),
        }

    def _new_spec(self, before: dict[str, Any], *, ours: bool) -> dict[str, Any]:
        now = _micro_time(self._clock.now())
        transitions = int(before.get("leaseTransitions") or 0)
        return {
            "holderIdentity": self._candidate.identity,
            "leaseDurationSeconds": self._candidate.duration_s,
            "acquireTime": (before.get("acquireTime") or now) if ours else now,
            "renewTime": now,
            "leaseTransitions": transitions if ours or not before else transitions + 1,
        }


def _spec(lease: Manifest) -> dict[str, Any]:
    spec = lease.get("spec")
    return spec if isinstance(spec, dict) else {}


def _micro_time(moment: datetime) -> str:
    """Return a time as Kubernetes' MicroTime."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
