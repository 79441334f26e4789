"""
What a cluster would run beside an embedded platform: ``python -m whisperops play``.

The pack's two controllers as processes (``processes``), kagent and Kyverno as twins (``kagent``),
and a Prometheus twin that counts what agents spend (``counters``). So an agent that is ordered in
a portal becomes ready, and its budget pauses it. Only for embedded platforms: the twins bring
their own CRDs.

Called by ``commands``.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orderkit.controllers import (
    CONFIG_MAP,
    Cluster,
    Connection,
    Kind,
    ObjectKey,
    OrderkitError,
    RefusedError,
    dig,
    metadata,
)
from orderkit_standins.testing import wait
from whisperops.demo.counters import Counters
from whisperops.demo.kagent import DEPLOYMENT, Operators
from whisperops.demo.processes import DEPLOYMENTS, NAMESPACE, WATCHER, Processes, arguments
from whisperops.demo.site import MODEL

_SETTINGS = ObjectKey(CONFIG_MAP, "whisperops-controllers", NAMESPACE)
_BUDGETS = Kind("whisperops.io", "v1alpha1", "XAgentBudget")
_LAYER_TIMEOUT_S = 60.0
_TICK_S = 5.0


@dataclass(frozen=True, slots=True)
class PlayOptions:
    """Which bucket to watch, and how much agents spend."""

    bucket: Path
    catalog: str
    interval_s: float
    registers: bool
    tokens_per_minute: int
    """What each running agent writes; 0: nothing."""


def play(
    platform: Connection,
    options: PlayOptions,
    stop_requested: threading.Event,
    say: Callable[[str], object],
) -> None:
    """
    Run everything until `stop_requested` is set.

    Raises:
        RefusedError: The platform is not an embedded one. NotFoundError: it has another pack.
        IncompleteError: A controller ended, or the layer of controllers does not come.
    """
    if not platform.is_embedded:
        raise RefusedError(
            f"{platform.file} describes no embedded platform",
            hint="in a cluster, Argo CD delivers gitops/controllers",
        )
    options.bucket.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as undo:
        cluster = platform.cluster
        operators, counters, controllers = Operators(cluster), Counters(), Processes()
        for server in (operators, counters):
            server.start()
            undo.callback(server.stop)
        undo.callback(controllers.stop)
        _configure(cluster, options, counters.url)
        for name in DEPLOYMENTS:
            container_arguments = arguments(cluster, name, platform_file=platform.file)
            register = ["--register"] if options.registers and name == WATCHER else []
            interval = f"--interval={options.interval_s:g}"
            controllers.start(name, [*container_arguments, interval, *register])
        say(f"Every CSV in {options.bucket} is a dataset. Stop with ctrl-C")
        while not stop_requested.wait(_TICK_S):
            controllers.check()
            _spend(cluster, counters, options.tokens_per_minute * _TICK_S / 60)


def _configure(cluster: Cluster, options: PlayOptions, prometheus: str) -> None:
    """Wait for the layer of controllers, then set the addresses that no pack can know."""
    wait(
        "the Deployments of the layer 'controllers'",
        lambda: [cluster.get(ObjectKey(DEPLOYMENT, name, NAMESPACE)) for name in DEPLOYMENTS],
        all,
        timeout_s=_LAYER_TIMEOUT_S,
    )
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _SETTINGS.name, "namespace": _SETTINGS.namespace},
        "data": {
            "bucket": options.bucket.as_uri(),
            "catalog": options.catalog,
            "prometheus": prometheus,
        },
    }
    cluster.apply(settings, owner="play")


def _spend(cluster: Cluster, counters: Counters, tokens: float) -> None:
    """Count `tokens` for every agent that is not paused."""
    if not tokens:
        return
    try:
        budgets = cluster.list(_BUDGETS).items
    except OrderkitError:
        return  # the next tick tries again
    for budget in budgets:
        if dig(budget, "status", "paused") is False:
            counters.count(str(metadata(budget)["name"]), MODEL, output=round(tokens))
