"""
What all managed resources have in common: policies, finalizer, conditions, provider config.

Follows crossplane-runtime's reconciler for what a watcher of the cluster can see of it. Not here:
the annotations about pending and failed creations, initialisers, rate limits.

Called by ``objects`` and ``cloud``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orderkit.adapters.embedded.controller import Backoff, Controller, side_by_side
from orderkit.adapters.embedded.crossplane.reconciler_context import ReconcilerContext, is_deleting
from orderkit.core.crossplane.paused import is_paused
from orderkit.core.errors import ConflictError, OrderkitError
from orderkit.core.objects.conditions import DELETING, RECONCILE_SUCCESS, Condition, reconcile_error
from orderkit.core.objects.kube_objects import Kind, Manifest, ObjectKey, dig

FINALIZER = "finalizer.managedresource.crossplane.io"
UNAVAILABLE = Condition("Ready", "False", "Unavailable")
_PAUSED = Condition(
    "Synced",
    "False",
    "ReconcilePaused",
    "Reconciliation is paused either through the `spec.managementPolicies` or the pause annotation",
)
_NO_CONFIG = "connect failed: cannot get ProviderConfig: "
_AGAIN_S = 0.02
_POLICIES = frozenset({"Observe", "Create", "Update", "Delete", "LateInitialize"})


class ManagedError(OrderkitError):
    """This round failed; the message is what the condition Synced shows."""


@dataclass(frozen=True, slots=True)
class VisitOutcome:
    """The result of one round."""

    ready: Condition
    again_s: float | None = None
    """Seconds until the next look; None: when something changes."""
    status: Manifest | None = None
    """Fields of the status beside the conditions."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What the management policies let a provider do."""

    observe: bool
    create: bool
    update: bool
    delete: bool

    @classmethod
    def of(cls, managed: Manifest) -> Allowed:
        """
        Read ``spec.managementPolicies``; absent means everything.

        Raises:
            ManagedError: A policy that does not exist, or none without Observe.
        """
        listed_policies = dig(managed, "spec", "managementPolicies", default=None)
        policies = set(listed_policies) if isinstance(listed_policies, list) else {"*"}
        if "*" in policies:
            policies = set(_POLICIES)
        if not policies <= _POLICIES or (policies and "Observe" not in policies):
            raise ManagedError(
                f"invalid managementPolicies: {', '.join(sorted(map(str, policies)))}"
            )
        return cls(*(policy in policies for policy in ("Observe", "Create", "Update", "Delete")))


Visit = Callable[[Manifest, Allowed], VisitOutcome]
"""Bring what a managed resource stands for to its wanted state; raises ManagedError."""
Leave = Callable[[Manifest, Allowed], bool]
"""Take it away as far as allowed; True once nothing is left to do."""


def reconcile(site: ReconcilerContext, key: ObjectKey, visit: Visit, leave: Leave) -> float | None:
    """
    Do one round for a managed resource and write what came of it. Idempotent.

    Raises:
        OrderkitError: It failed; the condition Synced says why.
    """
    managed = site.cluster.get(key)
    if managed is None:
        return None
    try:
        return _round(site, managed, visit, leave)
    except ConflictError:
        return _AGAIN_S
    except OrderkitError as error:
        current = site.cluster.get(key)
        if current is not None:
            site.write_status(current, reconcile_error(str(error)))
        raise


class Twin:
    """Looks after the managed resources of some kinds: one controller for each."""

    def __init__(self, site: ReconcilerContext) -> None:
        self._site = site
        self._controllers: list[Controller] = []

    def _look_after(self, kinds: Mapping[str, Kind], *, workers: int = 2) -> None:
        """Make a controller for each kind, by the controller's name."""
        for name, kind in kinds.items():
            controller = Controller(
                name,
                self._site.cluster,
                lambda key: reconcile(self._site, key, self._visit, self._leave),
                workers=workers,
                backoff=Backoff(first_s=0.2, longest_s=10.0),
            )
            controller.watch(kind)
            self._controllers.append(controller)

    def start(self) -> None:
        for controller in self._controllers:
            controller.start()

    def stop(self) -> None:
        side_by_side([controller.stop for controller in self._controllers])

    def _visit(self, managed: Manifest, policies: Allowed) -> VisitOutcome:
        raise NotImplementedError

    def _leave(self, managed: Manifest, policies: Allowed) -> bool:
        raise NotImplementedError


def _round(site: ReconcilerContext, managed: Manifest, visit: Visit, leave: Leave) -> float | None:
    policies = Allowed.of(managed)
    if is_paused(managed) or not policies.observe:
        site.write_status(managed, _PAUSED)
        return None
    if is_deleting(managed):
        return _delete_round(site, managed, policies, leave)
    _check_config(site, managed)
    managed = site.keep_finalizer(managed, FINALIZER)
    outcome = visit(managed, policies)
    current = site.cluster.get(ObjectKey.of(managed))
    if current is not None:
        site.write_status(current, RECONCILE_SUCCESS, outcome.ready, status=outcome.status)
    return outcome.again_s


def _delete_round(
    site: ReconcilerContext, managed: Manifest, policies: Allowed, leave: Leave
) -> float | None:
    if not leave(managed, policies):
        site.write_status(managed, DELETING, RECONCILE_SUCCESS)
        return 0.1
    site.drop_finalizer(managed, FINALIZER)
    return None


def _check_config(site: ReconcilerContext, managed: Manifest) -> None:
    """A provider does nothing without its config; its kind has the group of all its kinds."""
    kind = Kind.of(managed)
    reference = dig(managed, "spec", "providerConfigRef", default={}) or {}
    name = reference.get("name", "default")
    config = reference.get("kind") or (
        "ClusterProviderConfig" if is_modern(kind) else "ProviderConfig"
    )
    for version in ("v1beta1", "v1alpha1"):
        config_kind = Kind(config_group(kind), version, config)
        if site.cluster.serves(config_kind):
            home = dig(managed, "metadata", "namespace", default="")
            namespace = home if site.cluster.is_namespaced(config_kind) else ""
            if site.cluster.get(ObjectKey(config_kind, name, namespace)) is not None:
                return
            raise ManagedError(f'{_NO_CONFIG}{config}.{config_kind.group} "{name}" not found')
    raise ManagedError(
        f'{_NO_CONFIG}no matches for kind "{config}" in group "{config_group(kind)}"'
    )


def is_modern(kind: Kind) -> bool:
    """Say whether a kind is of the namespaced flavour that Crossplane 2 brought."""
    return ".m." in kind.group


def config_group(kind: Kind) -> str:
    """Return the group of a provider's configs: ``storage.gcp.m.upbound.io`` has gcp's."""
    return kind.group.partition(".")[2] if kind.group.endswith("upbound.io") else kind.group
