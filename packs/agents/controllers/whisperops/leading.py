"""
Leader election by a Lease: of several equal controllers one works, the others wait.

A Lease is taken by writing it as it was read (its resourceVersion), so of two that try one wins.
It counts as given up when nobody renewed it for its duration *since we first saw it like that*:
clocks of machines are never compared. Renewing goes on in a thread of its own while a long pass
runs. Electing only saves work; two leaders for a moment do no harm.

Called by ``running``.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orderkit.core.errors import ConflictError, NotFoundError, OrderkitError
from orderkit.core.objects.kube_objects import Kind, Manifest, ObjectKey
from orderkit.ports.clock import Clock
from orderkit.ports.cluster import Cluster

LEASE = Kind("coordination.k8s.io", "v1", "Lease")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Candidate:
    """Which Lease is wanted, by whom, and for how long it is held without renewing."""

    key: ObjectKey
    identity: str
    duration_s: int = 15

    @property
    def renew_s(self) -> float:
        return self.duration_s / 3


class Leadership:
    """One candidate's view of one Lease. `held` may be asked from any thread."""

    def __init__(self, cluster: Cluster, clock: Clock, candidate: Candidate) -> None:
        self._cluster, self._clock, self._candidate = cluster, clock, candidate
        self._seen: tuple[object, float] = (None, clock.monotonic_s())
        """What the Lease said last, and since when it has said that."""
        self._renewed_s: float | None = None
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def held(self) -> bool:
        """Say whether we may work now: our last renewal is younger than the duration."""
        renewed_s = self._renewed_s
        if renewed_s is None:
            return False
        return self._clock.monotonic_s() - renewed_s < self._candidate.duration_s

    def start(self) -> None:
        """Try once, then go on trying and renewing in the background until `release`."""
        self.attempt()
        self._thread = threading.Thread(target=self._go_on, name="lease", daemon=True)
        self._thread.start()

    def attempt(self) -> bool:
        """Take or renew the Lease once; say whether we hold it. Failures are logged."""
        begun_s = self._clock.monotonic_s()
        try:
            taken = self._try_take(begun_s)
        except ConflictError:
            taken = False  # somebody wrote it at the same moment
        except OrderkitError as error:
            logger.warning("the Lease %s cannot be renewed: %s", self._candidate.key, error)
            return self.held()
        self._renewed_s = begun_s if taken else None
        return taken

    def release(self) -> None:
        """Stop renewing, and give the Lease up at once if we hold it. Safe to call twice."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        if self._renewed_s is None:
            return
        self._renewed_s = None
        try:
            found = self._cluster.get(self._candidate.key)
            if found is not None and _spec(found).get("holderIdentity") == self._candidate.identity:
                spec = {**_spec(found), "holderIdentity": "", "leaseDurationSeconds": 1}
                self._cluster.replace({**found, "spec": spec}, owner=self._candidate.key.name)
        except OrderkitError as error:
            logger.warning("the Lease %s is left to run out: %s", self._candidate.key, error)

    def _go_on(self) -> None:
        while not self._ending.wait(self._candidate.renew_s):
            self.attempt()

    def _try_take(self, now_s: float) -> bool:
        """Raises ConflictError if another is faster."""
        found = self._cluster.get(self._candidate.key)
        if found is None:
            self._cluster.create(self._lease(), owner=self._candidate.key.name)
            return True
        spec = _spec(found)
        ours = spec.get("holderIdentity") == self._candidate.identity
        if not ours and not self._given_up(spec, now_s):
            return False
        try:
            self._cluster.replace(
                {**found, "spec": self._spec(spec, ours=ours)}, owner=self._candidate.key.name
            )
        except NotFoundError:
            return False
        return True

    def _given_up(self, spec: dict[str, Any], now_s: float) -> bool:
        said = (spec.get("holderIdentity"), spec.get("renewTime"), spec.get("leaseTransitions"))
        if said != self._seen[0]:
            self._seen = (said, now_s)
        if not spec.get("holderIdentity"):
            return True
        return now_s - self._seen[1] > float(spec.get("leaseDurationSeconds") or 0)

    def _lease(self) -> Manifest:
        key = self._candidate.key
        return {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {"name": key.name, "namespace": key.namespace},
            "spec": self._spec({}, ours=False),
        }

    def _spec(self, before: dict[str, Any], *, ours: bool) -> dict[str, Any]:
        now = _micro(self._clock.now())
        transitions = int(before.get("leaseTransitions") or 0)
        return {
            "holderIdentity": self._candidate.identity,
            "leaseDurationSeconds": self._candidate.duration_s,
            "acquireTime": (before.get("acquireTime") or now) if ours else now,
            "renewTime": now,
            "leaseTransitions": transitions if ours or not before else transitions + 1,
        }


def _spec(lease: Manifest) -> dict[str, Any]:
    found = lease.get("spec")
    return found if isinstance(found, dict) else {}


def _micro(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
