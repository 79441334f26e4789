"""
Sweep leases now and then, in a thread of the service.

Of several replicas one sweeps: the holder of a Kubernetes Lease, which is renewed however long a
sweep takes. If two sweep at once, nothing is done twice; the Lease only saves work. Nobody sweeps
right after a start: whoever restarts the service again and again is not in a hurry.
"""

from __future__ import annotations

import logging
import threading
import uuid

from ground.errors import NotFoundError, OrderkitError
from ground.objects.kube_objects import ARGOCD_NAMESPACE, ObjectKey
from orderkit.core.telemetry import count
from orderkit.flows.leader_election import LEASE, Candidate, LeaderElection
from orderkit.flows.lease.sweeping import SweepRequest, SweptOrder, sweep
from orderkit.flows.platform import Platform

SWEEP_INTERVAL_S = 300.0
SWEEP_LEASE = ObjectKey(LEASE, "orderkit-lease-sweep", ARGOCD_NAMESPACE)
_JOIN_S = 5.0
_END_S = 120.0

logger = logging.getLogger(__name__)


class LeaseSweeper:
    """The sweeps of one process."""

    def __init__(self, platform: Platform, *, interval_s: float = SWEEP_INTERVAL_S) -> None:
        """Contact nothing yet."""
        self._platform, self._interval_s = platform, interval_s
        candidate = Candidate(SWEEP_LEASE, uuid.uuid4().hex, duration_s=max(1, int(2 * interval_s)))
        self._election = LeaderElection(platform.cluster, platform.clock, candidate)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep_sweeping, name="leases", daemon=True)

    def start(self) -> None:
        """Begin to wait for the first sweep, in a thread."""
        self._thread.start()

    def close(self) -> None:
        """Sweep no more and give the Lease up. Waits a little."""
        self._stop.set()
        if self._thread.is_alive():
            # what is under way may go on until the process ends: each of its steps is recorded
            self._thread.join(_JOIN_S)
        self._election.release()

    def _keep_sweeping(self) -> None:
        if self._stop.wait(self._interval_s):
            return
        self._election.start()
        while True:
            self._sweep_if_leading()
            if self._stop.wait(self._interval_s):
                return

    def _sweep_if_leading(self) -> None:
        if not self._election.is_leader():
            return
        try:
            self._sweep()
        except NotFoundError as error:
            logger.info("leases are not swept: %s", error)  # not bootstrapped yet
        except OrderkitError as error:
            logger.warning("leases cannot be swept now: %s", error)
        except Exception:
            logger.exception("a bug while sweeping leases")

    def _sweep(self) -> None:
        swept = sweep(self._platform, SweepRequest(timeout_s=_END_S), on_order=_log)
        if swept.doubt:
            logger.warning("leases are not swept: %s", swept.doubt)


def _log(swept: SweptOrder) -> None:
    count("lease_sweeps", swept.action if swept.done else f"{swept.action} failed")
    level = logging.INFO if swept.done else logging.WARNING
    details = f"{swept.stage} {swept.what}".strip()
    logger.log(level, "lease of %s: %s: %s", swept.order, swept.action, details)
