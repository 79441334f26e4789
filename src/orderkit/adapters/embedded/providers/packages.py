"""
Provider objects: start the twin that each asks for, and say whether it is there.

A pack asks by annotations of its Provider:

    embedded.orderkit.dev/twin: objects            plays provider-kubernetes
    embedded.orderkit.dev/twin: cloud              plays a cloud; with
    embedded.orderkit.dev/kinds: Bucket.v1beta1.storage.gcp.m.upbound.io, ...
    embedded.orderkit.dev/delay: 2s                until its things are ready; default 2s

The twin brings its CRDs; the Provider is Healthy once they are served. One without the
annotation is installed and not healthy: no package is ever pulled. A Provider that is deleted
stops its twin; CRDs stay, as with Crossplane.

Started by ``adapters.embedded.platform``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Protocol

from orderkit.adapters.embedded.controller import Controller, side_by_side
from orderkit.adapters.embedded.crossplane.events import OWNER, EventRecorder
from orderkit.adapters.embedded.crossplane.reconciler_context import ReconcilerContext, is_deleting
from orderkit.adapters.embedded.providers import objects
from orderkit.adapters.embedded.providers.cloud import CloudSettings, CloudTwin, external_crd
from orderkit.adapters.embedded.providers.crds import config_crds, managed_crd, object_crd
from orderkit.core.errors import ConflictError
from orderkit.core.objects.conditions import Condition
from orderkit.core.objects.kube_objects import Kind, Manifest, ObjectKey, annotations_of
from orderkit.ports.clock import Clock, SystemClock
from orderkit.ports.cluster import Cluster

PROVIDER = Kind("pkg.crossplane.io", "v1", "Provider")
TWIN, KINDS, DELAY = (f"embedded.orderkit.dev/{name}" for name in ("twin", "kinds", "delay"))
CLOUD_CONFIG_VERSION = "v1beta1"
_DELAY_S = 2.0
_AGAIN_S = 0.05
_INSTALLED = Condition("Installed", "True", "ActivePackageRevision")
_HEALTHY = Condition("Healthy", "True", "HealthyPackageRevision")


class _Twin(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


Make = Callable[[ReconcilerContext], _Twin]


class UnknownTwinError(ValueError):
    """The annotations of a Provider name an unknown twin."""


class Providers:
    """The Provider objects of one cluster, and the twins they asked for."""

    def __init__(self, cluster: Cluster, *, clock: Clock | None = None) -> None:
        clock = clock or SystemClock()
        chance = random.Random()  # noqa: S311 - no secret; the twins apply one thing at a time
        self._site = ReconcilerContext(cluster, {}, EventRecorder(cluster, clock), clock, chance)
        self._running: dict[ObjectKey, tuple[str, _Twin]] = {}
        self._controller = Controller("providers", cluster, self._patiently, workers=1)
        self._controller.watch(PROVIDER)

    def start(self) -> None:
        self._controller.start()

    def stop(self) -> None:
        """Stop every twin; nothing is reconciled afterwards."""
        self._controller.stop()
        side_by_side([twin.stop for _, twin in self._running.values()])
        self._running.clear()

    def _patiently(self, key: ObjectKey) -> float | None:
        try:
            return self._reconcile(key)
        except ConflictError:
            return _AGAIN_S

    def _reconcile(self, key: ObjectKey) -> float | None:
        provider = self._site.cluster.get(key)
        if provider is None or is_deleting(provider):
            self._end(key)
            return None
        try:
            crds, make = _crds_and_twin(provider)
        except UnknownTwinError as error:
            self._end(key)
            self._site.write_status(provider, _INSTALLED, _unhealthy(str(error)))
            return None
        for crd in crds:
            self._site.cluster.apply(crd, owner=OWNER)
        if not all(self._site.cluster.serves(_served(crd)) for crd in crds):
            self._site.write_status(
                provider, _INSTALLED, _unhealthy("its kinds are not served yet")
            )
            return _AGAIN_S
        self._begin(key, repr(sorted(annotations_of(provider).items())), make)
        self._site.write_status(provider, _INSTALLED, _HEALTHY)
        return None

    def _begin(self, key: ObjectKey, twin_name: str, make: Make) -> None:
        if key in self._running and self._running[key][0] == twin_name:
            return
        self._end(key)
        twin = make(self._site)
        twin.start()
        self._running[key] = twin_name, twin

    def _end(self, key: ObjectKey) -> None:
        _, twin = self._running.pop(key, ("", None))
        if twin is not None:
            twin.stop()


def _unhealthy(why: str) -> Condition:
    return Condition("Healthy", "False", "UnhealthyPackageRevision", why)


def _served(crd: Manifest) -> Kind:
    spec = crd["spec"]
    return Kind(spec["group"], spec["versions"][0]["name"], spec["names"]["kind"])


def _crds_and_twin(provider: Manifest) -> tuple[list[Manifest], Make]:
    twin_name = annotations_of(provider).get(TWIN)
    if twin_name == "objects":
        crds = [object_crd(kind) for kind in (objects.LEGACY, objects.MODERN)]
        for kind in (objects.LEGACY, objects.MODERN):
            crds += config_crds(kind, objects.CONFIG_VERSION)
        return crds, objects.ObjectTwin
    if twin_name == "cloud":
        cloud = CloudSettings(_kinds(provider), _delay_s(provider))
        crds = [external_crd(), *(managed_crd(kind) for kind in cloud.kinds)]
        for kind in {provided_kind.group: provided_kind for provided_kind in cloud.kinds}.values():
            crds += config_crds(kind, CLOUD_CONFIG_VERSION)
        return crds, lambda site: CloudTwin(site, cloud)
    name = provider["metadata"]["name"]
    raise UnknownTwinError(
        f'the embedded platform has no twin for "{name}"; its annotation {TWIN} may be objects or '
        f"cloud, and is {twin_name!r}"
    )


def _kinds(provider: Manifest) -> tuple[Kind, ...]:
    """Read kinds as kubectl writes them: ``Kind.version.group``."""
    kinds = []
    for text in annotations_of(provider).get(KINDS, "").replace(",", " ").split():
        kind, _, version_and_group = text.partition(".")
        version, _, group = version_and_group.partition(".")
        if not (kind and re.fullmatch(r"v[0-9][a-z0-9]*", version) and "." in group):
            raise UnknownTwinError(f"{KINDS}: '{text}' is not a Kind.version.group")
        kinds.append(Kind(group, version, kind))
    if not kinds:
        raise UnknownTwinError(f"{KINDS} names no kind")
    return tuple(kinds)


def _delay_s(provider: Manifest) -> float:
    text = annotations_of(provider).get(DELAY, f"{_DELAY_S:g}s")
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)s", text)
    if match is None:
        raise UnknownTwinError(f"{DELAY}: '{text}' is not a number of seconds, for example 2s")
    return float(match[1])
