"""
Run a controller: connect it to the platform, and make one pass per interval while it leads.

Commands of Orderkit and controllers read the same ``platform.yaml`` and use the same credentials.

A pass that raises has a bug: the exception is logged and the next pass runs anyway. After
``stop_requested`` is set, the loop ends as soon as the current pass returns, and gives up the
Lease so that the next leader need not wait.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol, Self

from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.cli.signals import asked_to_end, set_by_signal
from orderkit.core.platform.installation import PlatformTarget
from orderkit.core.platform.settings import PlatformSettings
from orderkit.flows.leader_election import LeaderElection
from orderkit.ports.catalog import Catalog
from orderkit.ports.clock import Clock
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import Forge


class Connection:
    """
    One platform, from `connect`. Each part connects when it is first used.

    As a context manager, it closes its idle connections at the end.
    """

    def __init__(self, file: Path, settings: PlatformSettings) -> None:
        self.file = file
        """The platform.yaml that was read, as an absolute path."""
        self.is_embedded = settings.target is PlatformTarget.EMBEDDED
        """Whether the platform is an embedded one, which runs no containers."""
        self._settings = settings

    @property
    def cluster(self) -> Cluster:
        """
        The API server, as the kubeconfig of platform.yaml says. Nothing is sent.

        Raises:
            InvalidInputError: The kubeconfig cannot be used.
        """
        return self._kube_cluster

    @cached_property
    def _kube_cluster(self) -> KubeCluster:
        settings = self._settings
        return KubeCluster.from_kubeconfig(
            Path(settings.cluster.kubeconfig), context=settings.cluster.context or None
        )

    def forge(self) -> Forge:
        """
        Return the forge, with the credentials that platform.yaml names.

        Nothing is sent, unless the credentials have to be read from the cluster.

        Raises:
            NotFoundError: There are no credentials.
            InvalidInputError: The address, CA file, kubeconfig or source of credentials cannot be
                used.
            RefusedError: Credentials would go over plain HTTP to another machine.
        """
        from orderkit.adapters.forge_choice import connect_forge  # lazy: forge clients

        return connect_forge(self._settings.forge, self._kube_cluster)

    def catalog(self) -> Catalog:
        """
        Return the portal's catalog, an empty one where there is no portal. Nothing is sent.

        Raises:
            NotFoundError: The portal's token cannot be read.
        """
        from orderkit.cli import connecting

        return connecting.connect_catalog(self._settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "_kube_cluster" in vars(self):
            self._kube_cluster.close()


def connect(platform_file: str | None = None) -> Connection:
    """
    Read ``platform.yaml`` and prepare the connection. Nothing is sent yet.

    Args:
        platform_file: Path of platform.yaml. None: ``$ORDERKIT_STATE``, then the default state
            folder, as for every command of Orderkit.

    Raises:
        NotFoundError: There is no such file. InvalidInputError: it is broken.
    """
    from orderkit.cli import connecting  # lazy: forge and portal clients

    settings = connecting.load_settings(platform_file)
    return Connection(connecting.settings_path(platform_file).resolve(), settings)


logger = logging.getLogger(__name__)
_STANDBY_INTERVAL_S = 1.0
"""How often a controller that does not lead checks whether it may start."""


class Work(Protocol):
    """One pass. It asks `may_continue` before each write and returns early if that is False."""

    def __call__(self, may_continue: Callable[[], bool], /) -> object: ...


@dataclass(slots=True)
class Loop:
    """Runs passes. Without an `election` the loop always works."""

    work: Work
    clock: Clock
    interval_s: float
    election: LeaderElection | None = None
    hang_s: float = 600.0
    """How long a pass may take until `alive` returns False."""
    stop_requested: threading.Event = field(default_factory=threading.Event)
    _finished_s: float | None = None
    _started_s: float | None = None

    def is_leader(self) -> bool:
        return self.election is None or self.election.is_leader()

    def may_continue(self) -> bool:
        """Return whether the current pass may go on writing."""
        return not self.stop_requested.is_set() and self.is_leader()

    def alive(self) -> bool:
        """Return False once the current pass has taken longer than `hang_s`."""
        started_s = self._started_s
        return started_s is None or self.clock.monotonic_s() - started_s < self.hang_s

    def ready(self) -> bool:
        """Return whether the first turn has ended."""
        return self._finished_s is not None

    def run(self) -> None:
        """Run until `stop_requested` is set; then give up the Lease."""
        if self.election is not None:
            self.election.start()
        try:
            while not self.stop_requested.is_set():
                self._turn()
                self.stop_requested.wait(self._pause_s())
        finally:
            if self.election is not None:
                self.election.release()

    def _turn(self) -> None:
        self._started_s = self.clock.monotonic_s()
        if self.is_leader():
            try:
                self.work(self.may_continue)
            except Exception:
                logger.exception("a bug ended this pass; the next pass runs anyway")
        self._finished_s, started_s = self.clock.monotonic_s(), self._started_s
        self._started_s = None
        logger.debug("the turn took %.2f s", self._finished_s - started_s)

    def _pause_s(self) -> float:
        return self.interval_s if self.is_leader() else min(self.interval_s, _STANDBY_INTERVAL_S)


@contextlib.contextmanager
def stop_on_signals(stop_requested: threading.Event) -> Iterator[None]:
    """Set `stop_requested` on SIGTERM or SIGINT, inside the ``with`` block. Main thread only."""

    def stop(number: int, _frame: object) -> None:
        logger.info("stopping after %s", signal.Signals(number).name)
        set_by_signal(stop_requested)

    with asked_to_end(stop):
        yield
