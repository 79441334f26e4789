"""The controllers of the embedded Crossplane, one for each of its kinds, started together."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from compositions.station import Station
from ground.errors import ConflictError
from ground.objects.kube_objects import (
    CLUSTER_USAGE,
    COMPOSITION,
    COMPOSITION_REVISION,
    CRD,
    FUNCTION,
    USAGE,
    Kind,
    Manifest,
    ObjectKey,
    controller,
)
from kubeschema.xrd import XRD_KIND
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import Cluster
from orderkit_standins.controller import Controller, side_by_side
from orderkit_standins.crossplane.composites import BACKOFF
from orderkit_standins.crossplane.definitions import DefinitionReconciler
from orderkit_standins.crossplane.events import EventRecorder
from orderkit_standins.crossplane.functions import FunctionReconciler
from orderkit_standins.crossplane.reconciler_context import ReconcilerContext
from orderkit_standins.crossplane.revisions import CompositionReconciler, RevisionReconciler
from orderkit_standins.crossplane.usages import UsageReconciler

_AGAIN_S = 0.02


class EmbeddedCrossplane:
    """
    Crossplane's reconcilers on a cluster that already serves `crossplane_crds`.

    `start` returns at once; `stop` waits for what is running. One instance starts once. What a
    stopped (or killed) one left undone, the next one finishes.

    Args:
        functions: What runs in this process, by the name of the Function object that a
            Composition refers to. The object must exist too, as in Crossplane.
        program_of: Returns a function's own program by its digest, if it was added here.
        seed: For the order of applying; by default it is random, as in Crossplane.
    """

    def __init__(
        self,
        cluster: Cluster,
        functions: Mapping[str, Station],
        *,
        seed: int | None = None,
        program_of: Callable[[str], Station | None] = lambda _digest: None,
    ) -> None:
        clock = SystemClock()
        self._recorder = EventRecorder(cluster, clock)
        chance = random.Random(seed)  # noqa: S311 - an order, not a secret
        self._site = ReconcilerContext(
            cluster, functions, self._recorder, clock, chance, program_of
        )
        self._definitions = DefinitionReconciler(self._site)
        definitions = self._controller("definitions", XRD_KIND, self._definitions)
        definitions.watch(CRD, _defining_xrd)
        usages = UsageReconciler(self._site)
        self._controllers = (
            self._controller("functions", FUNCTION, FunctionReconciler(self._site)),
            self._controller("compositions", COMPOSITION, CompositionReconciler(self._site)),
            self._controller("revisions", COMPOSITION_REVISION, RevisionReconciler(self._site)),
            definitions,
            *(self._controller(kind.kind, kind, usages) for kind in (USAGE, CLUSTER_USAGE)),
        )

    def _controller(
        self,
        name: str,
        kind: Kind,
        reconcile: DefinitionReconciler
        | FunctionReconciler
        | CompositionReconciler
        | RevisionReconciler
        | UsageReconciler,
    ) -> Controller:
        def patiently(key: ObjectKey) -> float | None:
            try:
                return reconcile(key)
            except ConflictError:
                return _AGAIN_S

        controller = Controller(name, self._site.cluster, patiently, workers=1, backoff=BACKOFF)
        controller.watch(kind)
        return controller

    def start(self) -> None:
        """Start everything; returns at once."""
        self._recorder.start()
        for running in self._controllers:
            running.start()

    def stop(self) -> None:
        """Stop everything; no reconcile runs afterwards. Safe to call twice."""
        stops = [running.stop for running in self._controllers]
        side_by_side([*stops, self._definitions.close])
        self._recorder.stop()


def _defining_xrd(crd: Manifest) -> list[ObjectKey]:
    owner = controller(crd)
    if owner is None or owner.get("kind") != XRD_KIND.kind:
        return []
    return [ObjectKey(XRD_KIND, owner["name"])]
