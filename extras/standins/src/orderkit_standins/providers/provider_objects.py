"""
Provider objects: start the twin that each asks for, and say which kinds nobody plays.

A pack asks by annotations of its Provider:

    embedded.orderkit.dev/twin: aws                aws, gcp, azure, helm, sql: a cloud's kinds
    embedded.orderkit.dev/twin: kubernetes         plays provider-kubernetes (also: objects)
    embedded.orderkit.dev/twin: cloud              plays any cloud; needs kinds
    embedded.orderkit.dev/twin: nop                plays provider-nop
    embedded.orderkit.dev/twin: other              plays the managed kinds of all other providers
    embedded.orderkit.dev/twin: operators          every other kind that kits compose is Ready
    embedded.orderkit.dev/kinds: Bucket.v1beta1.storage.gcp.m.upbound.io, ...
    embedded.orderkit.dev/delay: 2s                until its things are ready; default 2s
    embedded.orderkit.dev/fail: quota              everything fails so (`managed_state.FAILURES`)

Without ``kinds`` a twin plays those kinds of the pack's ``schemas/`` that the provider's package
has, and that no other Provider names. It brings the CRDs of ``schemas/``, else open ones; the
Provider is Healthy once they are served. One without the annotation is installed and not healthy:
no package is ever pulled. A Provider that is deleted stops its twin; CRDs stay, as with Crossplane.

Kinds of a pack that the embedded cluster does not serve are told by `unplayed_kinds`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

from compositions.managed_state import FAIL, FAILURES, ManagedKinds
from ground.errors import ConflictError, IncompleteError, InvalidInputError
from ground.objects.kube_objects import (
    Condition,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    condition,
    dig,
    metadata,
)
from ground.suggestions import did_you_mean
from kubeschema.known.managed_behaviour import config_group, is_modern, kinds_of
from orderkit.core.kit.pack import Pack
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit.ports.cluster import Cluster
from orderkit_standins.controller import Controller, side_by_side
from orderkit_standins.crossplane.reconciler_context import (
    OWNER,
    EventRecorder,
    ReconcilerContext,
    is_deleting,
)
from orderkit_standins.providers import plain_twins
from orderkit_standins.providers.cloud_twin import CloudSettings, CloudTwin, external_crd
from orderkit_standins.providers.plain_twins import NOP_KINDS, NopTwin, OperatorTwin
from orderkit_standins.providers.played_kinds import (
    CONFIG_NAMES,
    ManagedLibrary,
    config_crds,
    managed_crd,
    nop_crd,
    object_crd,
    operated_crd,
)

PROVIDER = Kind("pkg.crossplane.io", "v1", "Provider")
TWIN, KINDS, DELAY = (f"embedded.orderkit.dev/{name}" for name in ("twin", "kinds", "delay"))
DEFAULT_CONFIG = "embedded.orderkit.dev/default-config"
"""Annotation of a Provider for which nobody delivers a config: its twin makes one, ``default``."""
CLOUDS = ("aws", "gcp", "azure")
_PROVIDERS = (*CLOUDS, "kubernetes", "helm", "sql", "nop")
TWINS = (*_PROVIDERS, "other", "operators")
"""The twins that can be started without a Provider of the pack."""
_ALWAYS = {
    "helm": ("Release.v1beta1.helm.m.crossplane.io",),
    "sql": tuple(
        f"{kind}.v1alpha1.{engine}.sql.m.crossplane.io"
        for engine, kinds in (
            ("postgresql", ("Database", "Extension", "Grant", "Role", "Schema")),
            ("mysql", ("Database", "Grant", "User")),
        )
        for kind in kinds
    ),
}
"""Kinds that a twin plays although no schema of the pack has them."""
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


def read_twins(text: str) -> tuple[str, ...]:
    """
    Read a list of twins, as ``--twins`` takes it: ``aws,helm``.

    Raises:
        InvalidInputError: There is no such twin.
    """
    names = tuple(filter(None, (name.strip() for name in text.split(","))))
    for name in names:
        if name not in TWINS:
            raise InvalidInputError(
                "--twins", name, "is not a twin",
                hint=did_you_mean(name, TWINS, f"there are {', '.join(TWINS)}"),
            )  # fmt: skip
    return tuple(dict.fromkeys(names))


class Providers:
    """The Provider objects of one cluster, and the twins they asked for."""

    def __init__(self, cluster: Cluster, library: ManagedLibrary | None = None) -> None:
        clock = SystemClock()
        chance = random.Random()  # noqa: S311 - no secret; the twins apply one thing at a time
        self._recorder = EventRecorder(cluster, clock)
        self._site = ReconcilerContext(cluster, {}, self._recorder, clock, chance)
        self._library = library or ManagedLibrary({})
        self._running: dict[ObjectKey, tuple[str, _Twin]] = {}
        self._claims: dict[ObjectKey, str] = {}
        """What each Provider asks for; only its watcher's thread writes it."""
        self._controller = Controller("providers", cluster, self._patiently, workers=1)
        self._controller.watch(PROVIDER)
        self._controller.watch(PROVIDER, self._others)

    def start(self) -> None:
        self._recorder.start()
        self._controller.start()

    def ask_for(self, twins: Iterable[str]) -> None:
        """
        Make Provider objects for twins of `TWINS`, with a default config, where no pack has them.

        Idempotent. Those of an earlier start that are no longer asked for are removed.
        """
        names = {f"embedded-{twin}": twin for twin in twins}
        for name in {f"embedded-{twin}" for twin in TWINS} - names.keys():
            self._site.cluster.delete(ObjectKey(PROVIDER, name))
        for name, twin in names.items():
            manifest = {
                "apiVersion": PROVIDER.api_version,
                "kind": PROVIDER.kind,
                "metadata": {"name": name, "annotations": {TWIN: twin, DEFAULT_CONFIG: "true"}},
                "spec": {"package": f"embedded.orderkit.dev/provider-{twin}:none"},
            }
            self._site.cluster.apply(manifest, owner=OWNER)

    def stop(self) -> None:
        """Stop every twin; nothing is reconciled afterwards."""
        self._controller.stop()
        side_by_side([twin.stop for _, twin in self._running.values()])
        self._running.clear()
        self._recorder.stop()

    def _others(self, provider: Manifest) -> Iterable[ObjectKey]:
        """Return the other Providers if one came, went, or asks for something else."""
        key = ObjectKey.of(provider)
        is_there = self._site.cluster.get(key) is not None
        claim = repr((annotations_of(provider), provider.get("spec"))) if is_there else ""
        if self._claims.get(key, "") == claim:
            return ()
        self._claims[key] = claim
        providers = map(ObjectKey.of, self._site.cluster.list(PROVIDER).items)
        return tuple(other for other in providers if other != key)

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
            crds, make, identity = self._crds_and_twin(provider)
        except UnknownTwinError as error:
            self._end(key)
            self._site.write_status(provider, _INSTALLED, _unhealthy(str(error)))
            return None
        if self._running.get(key, ("", None))[0] == identity:
            crds = []  # they are there
        for crd in crds:
            self._site.cluster.apply(crd, owner=OWNER)
        if not all(self._site.cluster.serves(_served(crd)) for crd in crds):
            self._site.write_status(
                provider, _INSTALLED, _unhealthy("its kinds are not served yet")
            )
            return _AGAIN_S
        if annotations_of(provider).get(DEFAULT_CONFIG):
            self._make_configs(crds)
        self._begin(key, identity, make)
        self._site.write_status(provider, _INSTALLED, _HEALTHY)
        return None

    def _make_configs(self, crds: Iterable[Manifest]) -> None:
        """Make the configs that managed resources name if they name none."""
        for kind in map(_served, crds):
            default = "ClusterProviderConfig" if is_modern(kind) else "ProviderConfig"
            key = ObjectKey(kind, "default")
            if kind.kind == default and self._site.cluster.get(key) is None:
                spec = {"credentials": {"source": "None"}}
                self._site.cluster.apply({**_named(key), "spec": spec}, owner=OWNER)

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

    def _crds_and_twin(self, provider: Manifest) -> tuple[list[Manifest], Make, str]:
        """Return the CRDs of a Provider, what starts its twin, and what the twin follows from."""
        twin_name = annotations_of(provider).get(TWIN)
        kinds: tuple[Kind, ...] = (plain_twins.LEGACY, plain_twins.MODERN)
        if twin_name in {"objects", "kubernetes"}:
            objects = [self._library.crds.get(kind) or object_crd(kind) for kind in kinds]
            crds = [*objects, *_config_crds(kinds, plain_twins.CONFIG_VERSION)]
            return crds, plain_twins.ObjectTwin, str(twin_name)
        if twin_name == "nop":
            nops = [self._library.crds.get(kind) or nop_crd(kind) for kind in NOP_KINDS]
            return [*nops, *_config_crds(NOP_KINDS, "")], NopTwin, str(twin_name)
        if twin_name == "operators":
            kinds = tuple(sorted(self._library.operated_kinds))
            crds = [self._library.crds.get(kind) or operated_crd(kind) for kind in kinds]
            watched = tuple(kind for kind in kinds if kind.kind not in CONFIG_NAMES)
            return crds, lambda site: OperatorTwin(site, watched), repr(kinds)
        if twin_name not in {"cloud", *TWINS}:
            name = metadata(provider)["name"]
            raise UnknownTwinError(
                f'the embedded platform has no twin for "{name}"; its annotation {TWIN} may be '
                f"{', '.join(TWINS)} or cloud, and is {twin_name!r}"
            )
        kinds = self._kinds(provider)
        settings = CloudSettings(kinds, _delay_s(provider), _failure(provider))
        crds = [external_crd(), *(self._library.crds.get(k) or managed_crd(k) for k in kinds)]
        for crd in _config_crds(kinds, ""):
            crds.append(self._library.crds.get(_served(crd)) or crd)
        return crds, lambda site: CloudTwin(site, settings, self._library), repr(settings)

    def _kinds(self, provider: Manifest) -> tuple[Kind, ...]:
        """Return what a Provider's twin plays: what it names, else what is left of its package."""
        named_kinds = _named_kinds(provider)
        if named_kinds:
            return named_kinds
        rank = _rank(provider)
        earlier_providers = [
            other
            for other in self._site.cluster.list(PROVIDER).items
            if not is_deleting(other) and _rank(other) < rank
        ]
        claimed: set[Kind] = set()
        for other in earlier_providers:
            with suppress(UnknownTwinError):  # its own status says so
                claimed |= set(self._claimed(other))
        unclaimed = tuple(sorted(set(self._claimed(provider)) - claimed))
        if not unclaimed and not earlier_providers:
            twin_name = annotations_of(provider).get(TWIN)
            raise UnknownTwinError(
                f"neither schemas/ of the pack nor its kits have a kind of {twin_name}: add their "
                f"CRDs, or name kinds in the annotation {KINDS}"
            )
        return unclaimed

    def _claimed(self, provider: Manifest) -> Iterable[Kind]:
        """Return the kinds that a Provider may play."""
        named_kinds = _named_kinds(provider)
        twin_name = annotations_of(provider).get(TWIN, "")
        if named_kinds or twin_name not in TWINS:
            return named_kinds
        service = _service(provider)
        package_kinds = {
            kind for kind in self._library.managed_kinds if _is_of(kind, twin_name, service)
        }
        always = {_kind(text) for text in _ALWAYS.get(twin_name, ())}
        return package_kinds | {
            k for k in always if (k.group, k.kind) not in {(o.group, o.kind) for o in package_kinds}
        }


def _named(key: ObjectKey) -> Manifest:
    return {
        "apiVersion": key.kind.api_version,
        "kind": key.kind.kind,
        "metadata": {"name": key.name},
    }


def _unhealthy(why: str) -> Condition:
    return Condition("Healthy", "False", "UnhealthyPackageRevision", why)


def _served(crd: Manifest) -> Kind:
    versions = zip(kinds_of(crd), crd["spec"]["versions"], strict=True)
    return next(kind for kind, version in versions if version["served"])


def _config_crds(kinds: Iterable[Kind], version: str) -> list[Manifest]:
    """Return the CRDs of the configs of kinds, one of each group."""
    groups = {config_group(kind): kind for kind in kinds}
    crds: list[Manifest] = []
    for group, kind in groups.items():
        is_cloud = group.endswith("upbound.io") or group.partition(".")[0] in CLOUDS
        cloud_version = "v1beta1" if is_cloud else kind.version
        crds += config_crds(kind, version or cloud_version)
    return crds


def _rank(provider: Manifest) -> tuple[int, str]:
    """Return who takes a kind that several Providers may play: the one that says more."""
    service = 1 if _service(provider) else 2
    rank = 0 if annotations_of(provider).get(KINDS) else service
    return rank, str(metadata(provider)["name"])


def _service(provider: Manifest) -> str:
    """Return the service of ``…/provider-aws-ec2:v2``; '' for a package of a whole cloud."""
    package = str(dig(provider, "spec", "package", default=""))
    match = re.search(r"provider-(?:aws|gcp|azure)-([a-z0-9]+)(?:[:@]|$)", package)
    return match[1] if match else ""


def _is_of(kind: Kind, twin_name: str, service: str) -> bool:
    """Return whether a kind is of a cloud's provider, or of its package for one service."""
    labels = kind.group.split(".")
    if twin_name == "other":
        return not any(_is_of(kind, name, "") for name in _PROVIDERS)
    if twin_name in CLOUDS:
        ours = kind.group.endswith((".upbound.io", ".crossplane.io")) and twin_name in labels[:2]
        return ours and (not service or labels[0] == service)
    return kind.group.endswith("crossplane.io") and twin_name in labels


def _named_kinds(provider: Manifest) -> tuple[Kind, ...]:
    """Read kinds as kubectl writes them: ``Kind.version.group``."""
    texts = annotations_of(provider).get(KINDS, "").replace(",", " ").split()
    if not texts and annotations_of(provider).get(TWIN) == "cloud":
        raise UnknownTwinError(f"{KINDS} names no kind")
    return tuple(map(_kind, texts))


def _kind(text: str) -> Kind:
    kind, _, version_and_group = text.partition(".")
    version, _, group = version_and_group.partition(".")
    if not (kind and re.fullmatch(r"v[0-9][a-z0-9]*", version) and "." in group):
        raise UnknownTwinError(f"{KINDS}: '{text}' is not a Kind.version.group")
    return Kind(group, version, kind)


def _failure(provider: Manifest) -> str:
    failure = annotations_of(provider).get(FAIL, "")
    if failure and failure not in FAILURES:
        raise UnknownTwinError(f"{FAIL}: '{failure}' is not one of {', '.join(FAILURES)}")
    return failure


def _delay_s(provider: Manifest) -> float:
    text = annotations_of(provider).get(DELAY, f"{_DELAY_S:g}s")
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)s", text)
    if match is None:
        raise UnknownTwinError(f"{DELAY}: '{text}' is not a number of seconds, for example 2s")
    return float(match[1])


_PATIENCE_S = 10.0
"""For Providers of the start to say whether they are healthy."""


def unplayed_kinds(cluster: Cluster, pack: Pack) -> list[Kind]:
    """
    Return the kinds that kits compose, and the managed ones of ``schemas/``, that nothing serves.

    Raises:
        InvalidInputError: The pack cannot be read.
    """
    kinds = {Kind.parse(ref.api_version, ref.kind) for kit in pack.kits() for ref in kit.composes}
    for (group, name), known in ManagedKinds.of_pack(pack.files).layer.items():
        versions = known.validator.versions
        if not any(cluster.serves(Kind(group, version, name)) for version in versions):
            kinds |= {Kind(group, version, name) for version in versions[-1:]}
    if all(map(cluster.serves, kinds)):
        return []
    with suppress(IncompleteError):  # what is not served by then is named
        until(
            SystemClock(),
            lambda: cluster.list(PROVIDER).items,
            lambda providers: all(condition(each, "Healthy") for each in providers),
            timeout_s=_PATIENCE_S,
            goal="the health of the Providers",
        )
    return sorted(kind for kind in kinds if not cluster.serves(kind))
