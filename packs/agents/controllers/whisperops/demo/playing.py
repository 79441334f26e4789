"""
What a cluster would run beside an embedded platform: ``python -m whisperops play``.

The pack's two controllers as processes (``pods``), kagent and Kyverno as twins (``kagent``), a
Prometheus stand-in that counts what agents spend (``counters``). So an agent that is ordered in a
portal becomes ready, and its budget cuts. Refuses any platform but an embedded one: the twins
bring CRDs of their own.

Called by ``commands``.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.cli.connecting import load_settings
from orderkit.core.errors import OrderkitError, RefusedError
from orderkit.core.objects.kube_objects import CONFIG_MAP, Kind, ObjectKey, dig, metadata
from orderkit.core.platform.installation import Target
from orderkit.flows.waiting import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import Cluster
from whisperops.demo.counters import Counters
from whisperops.demo.kagent import DEPLOYMENT, Operators
from whisperops.demo.looking import MODEL
from whisperops.demo.pods import NAMES, NAMESPACE, Pods, arguments

_SETTINGS = ObjectKey(CONFIG_MAP, "whisperops-controllers", NAMESPACE)
_BUDGETS = Kind("whisperops.io", "v1alpha1", "XAgentBudget")
_LAYER_S = 60.0
_TICK_S = 5.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Which platform, which bucket, and what agents do all day."""

    settings_file: Path
    bucket: Path
    catalog: str
    interval_s: float
    registers: bool
    tokens_per_minute: int
    """What each agent that runs writes; 0: nothing."""


def play(stage: Stage, ending: threading.Event, say: Callable[[str], object]) -> None:
    """
    Run everything until `ending` is set.

    Raises:
        RefusedError: The platform is no embedded one. NotFoundError: it has another pack.
        IncompleteError: A controller ended, or the layer of controllers does not come.
    """
    settings = load_settings(str(stage.settings_file))
    if settings.installation.target is not Target.EMBEDDED:
        raise RefusedError(
            f"{stage.settings_file} describes no embedded platform",
            hint="in a cluster, Argo CD delivers gitops/controllers",
        )
    stage.bucket.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as undo:
        client = KubeCluster.from_kubeconfig(Path(settings.kubeconfig), context=settings.context)
        cluster = undo.enter_context(client)
        operators, counters, pods = Operators(cluster), Counters(), Pods()
        for part in (operators, counters):
            part.start()
            undo.callback(part.stop)
        undo.callback(pods.stop)
        _configure(cluster, stage, counters.url)
        for name in NAMES:
            told = arguments(cluster, name, settings_file=stage.settings_file)
            more = ["--register"] if stage.registers and name == NAMES[0] else []
            pods.start(name, [*told, f"--interval={stage.interval_s:g}", *more])
        say(f"Every CSV in {stage.bucket} is a dataset. Stop with ctrl-C")
        while not ending.wait(_TICK_S):
            pods.check()
            _spend(cluster, counters, stage.tokens_per_minute * _TICK_S / 60)


def _configure(cluster: Cluster, stage: Stage, prometheus: str) -> None:
    """Wait for the layer of controllers, and say what no pack can know."""
    until(
        SystemClock(),
        lambda: [cluster.get(ObjectKey(DEPLOYMENT, name, NAMESPACE)) for name in NAMES],
        all,
        timeout_s=_LAYER_S,
        goal="the Deployments of the layer 'controllers'",
    )
    data = {"bucket": stage.bucket.as_uri(), "catalog": stage.catalog, "prometheus": prometheus}
    meta = {"name": _SETTINGS.name, "namespace": _SETTINGS.namespace}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
    cluster.apply(made, owner="play")


def _spend(cluster: Cluster, counters: Counters, tokens: float) -> None:
    """Let each agent that is not paused have written something since the last look."""
    if not tokens:
        return
    try:
        budgets = cluster.list(_BUDGETS).items
    except OrderkitError:
        return  # the next look sees them
    for budget in budgets:
        if dig(budget, "status", "paused") is False:
            counters.count(str(metadata(budget)["name"]), MODEL, output=round(tokens))
