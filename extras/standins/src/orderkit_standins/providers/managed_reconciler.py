"""
What all managed resources have in common: policies, finalizer, conditions, provider config.

Follows crossplane-runtime's reconciler for what a watcher of the cluster can see of it. The
condition Twin of every resource says that no real provider is at work. Not here: the annotations
about pending and failed creations, rate limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from compositions.paused import is_paused
from ground.errors import ConflictError, OrderkitError, shorten
from ground.objects.kube_objects import (
    DELETING,
    RECONCILE_SUCCESS,
    Condition,
    Kind,
    Manifest,
    ObjectKey,
    dig,
    reconcile_error,
)
from kubeschema.known.managed_behaviour import config_group, is_modern
from orderkit_standins.controller import Backoff, Controller
from orderkit_standins.crossplane.reconciler_context import ReconcilerContext, is_deleting

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
_MESSAGE_MAX = 2_000
TWIN = Condition(
    "Twin",
    "True",
    "EmbeddedPlatform",
    "A twin of the embedded platform plays this provider: nothing exists outside of this cluster",
)
_POLICIES = frozenset({"Observe", "Create", "Update", "Delete", "LateInitialize"})


class ManagedError(OrderkitError):
    """This round failed; the message is what the condition Synced shows."""

    def __init__(
        self,
        message: str,
        *,
        ready: Condition | None = None,
        again_s: float | None = None,
        status: Manifest | None = None,
    ) -> None:
        """
        Take the message, and what else follows.

        Args:
            ready: The condition Ready; None: it stays as it is.
            again_s: Seconds until the next look; None: longer from failure to failure.
            status: Fields of the status beside the conditions.
        """
        super().__init__(shorten(message, limit=_MESSAGE_MAX))
        self.ready, self.again_s, self.status = ready, again_s, status


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
    late_initialize: bool

    @classmethod
    def of(cls, managed: Manifest) -> Allowed:
        """
        Read ``spec.managementPolicies``, and ``deletionPolicy`` where they are the default.

        Raises:
            ManagedError: A policy that does not exist, or a set that providers do not support.
        """
        listed_policies = dig(managed, "spec", "managementPolicies", default=None)
        policies = set(listed_policies) if isinstance(listed_policies, list) else {"*"}
        if "*" in policies:
            orphaned = dig(managed, "spec", "deletionPolicy", default="Delete") == "Orphan"
            policies = set(_POLICIES) - ({"Delete"} if orphaned else set())
        elif not policies <= _POLICIES or (policies and not _is_supported(policies)):
            raise ManagedError(
                f"invalid managementPolicies: {', '.join(sorted(map(str, policies)))}"
            )
        names = ("Observe", "Create", "Update", "Delete", "LateInitialize")
        return cls(*(policy in policies for policy in names))

    @property
    def only_observe(self) -> bool:
        """Whether the external resource is somebody else's."""
        return not (self.create or self.update or self.delete)


def _is_supported(policies: set[str]) -> bool:
    """Return whether crossplane-runtime supports a set: not every combination makes sense."""
    odd = "Delete" in policies and "Create" not in policies and len(policies) > 2  # noqa: PLR2004 - with Observe
    return "Observe" in policies and not odd


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
        failure = error if isinstance(error, ManagedError) else ManagedError(str(error))
        if current is not None:
            ready = DELETING if is_deleting(current) else failure.ready
            conditions = (TWIN, reconcile_error(str(error)), *((ready,) if ready else ()))
            site.write_status(current, *conditions, status=failure.status)
        if failure.again_s is None:
            raise
        return failure.again_s


class Twin:
    """Looks after the managed resources of some kinds with one controller."""

    def __init__(
        self, site: ReconcilerContext, name: str, kinds: Iterable[Kind], *, workers: int
    ) -> None:
        self._site = site
        self._controller = Controller(
            name,
            site.cluster,
            lambda key: reconcile(site, key, self._visit, self._leave),
            workers=workers,
            backoff=Backoff(first_s=0.2, longest_s=10.0),
        )
        for kind in kinds:
            self._controller.watch(kind)

    def start(self) -> None:
        self._controller.start()

    def stop(self) -> None:
        self._controller.stop()

    def _visit(self, managed: Manifest, policies: Allowed) -> VisitOutcome:
        raise NotImplementedError

    def _leave(self, managed: Manifest, policies: Allowed) -> bool:
        raise NotImplementedError


def _round(site: ReconcilerContext, managed: Manifest, visit: Visit, leave: Leave) -> float | None:
    policies = Allowed.of(managed)
    if is_paused(managed) or not policies.observe:
        site.write_status(managed, TWIN, _PAUSED)
        return None
    if is_deleting(managed):
        return _delete_round(site, managed, policies, leave)
    _check_config(site, managed)
    managed = site.keep_finalizer(managed, FINALIZER)
    outcome = visit(managed, policies)
    current = site.cluster.get(ObjectKey.of(managed))
    if current is not None:
        site.write_status(current, TWIN, RECONCILE_SUCCESS, outcome.ready, status=outcome.status)
    return outcome.again_s


def _delete_round(
    site: ReconcilerContext, managed: Manifest, policies: Allowed, leave: Leave
) -> float | None:
    if not leave(managed, policies):
        site.write_status(managed, TWIN, DELETING, RECONCILE_SUCCESS)
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
