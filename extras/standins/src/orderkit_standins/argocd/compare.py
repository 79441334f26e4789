"""
Compare what an Application should deliver with what is there.

Reads only. Targets come from Git, live objects from the cluster: those the targets name, and
those that carry the Application's tracking annotation (`candidates` says where to look).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ground.argocd.delivery_hindrances import tracker
from ground.objects.kube_objects import (
    ARGOCD_NAMESPACE,
    TRACKING_ID,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    metadata,
)
from orderkit.ports.cluster import Cluster, NoSuchKindError
from orderkit_standins.argocd.difference import differs
from orderkit_standins.argocd.hooks import is_hook, is_skipped
from orderkit_standins.argocd.ignored_differences import IgnoreRule, as_it_is
from orderkit_standins.argocd.projects import Project
from orderkit_standins.argocd.source_repositories import SourceError
from orderkit_standins.argocd.spec import ApplicationSource
from orderkit_standins.argocd.targets import TargetLoader, Targets
from orderkit_standins.argocd.tracking import is_owned, tracking_id

FIELD_MANAGER = "argocd-controller"
COMPARE_OPTIONS = "argocd.argoproj.io/compare-options"

SyncCode = Literal["Synced", "OutOfSync", "Unknown", ""]
"""Empty: the hook annotation ``Skip`` leaves the object out."""
Identity = tuple[str, str, str, str]
Look = Callable[[ObjectKey], Manifest | None]
"""Reads a live object; raises `NoSuchKindError` if its kind is not served."""


def identity(key: ObjectKey) -> Identity:
    """Return what stays when only the API version changes."""
    return key.kind.group, key.kind.kind, key.namespace, key.name


@dataclass(frozen=True, slots=True)
class ApplicationCondition:
    """An entry of ``status.conditions``."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class ComparedResource:
    """One object of the comparison. Without target it is extra, without live it is missing."""

    key: ObjectKey
    target: Manifest | None
    live: Manifest | None
    status: SyncCode
    is_served: bool = True
    refusal: str = ""
    """Why the AppProject does not permit it; empty if it does."""
    respected: Manifest | None = None
    """The target with ignored fields as they are; None if none are ignored, or none are there."""

    @property
    def needs_pruning(self) -> bool:
        return self.target is None

    @property
    def is_extraneous(self) -> bool:
        """Extra, but marked to be left out of the sync status."""
        options = annotations_of(self.live or {}).get(COMPARE_OPTIONS, "")
        return self.needs_pruning and "IgnoreExtraneous" in options


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison."""

    revision: str
    """The commit; when nothing could be loaded, the revision as it was asked for."""
    resources: tuple[ComparedResource, ...]
    conditions: tuple[ApplicationCondition, ...]
    is_loaded: bool = True
    hooks: tuple[ComparedResource, ...] = ()
    """Objects that are made in a phase of a sync, or when the Application is deleted."""

    @property
    def status(self) -> SyncCode:
        if not self.is_loaded:
            return "Unknown"
        counted = (each for each in self.resources if each.status and not each.is_extraneous)
        return "Synced" if all(resource.status == "Synced" for resource in counted) else "OutOfSync"

    @property
    def errors(self) -> tuple[ApplicationCondition, ...]:
        """The conditions that stop an operation."""
        return tuple(
            condition
            for condition in self.conditions
            if condition.type in ("ComparisonError", "InvalidSpecError")
        )


@dataclass(frozen=True, slots=True)
class DeliveryDestination:
    """Where an Application delivers to, and what of it its project permits."""

    namespace: str
    """For namespaced objects that name none."""
    project: Project
    ignored: tuple[IgnoreRule, ...] = ()
    """Fields that are ignored in comparisons."""


class Comparer:
    """Compares Applications of one cluster. Keeps nothing but the loader's files."""

    def __init__(self, cluster: Cluster, loader: TargetLoader, look: Look) -> None:
        """Look at live objects with `look`; nothing here changes what it returns."""
        self._cluster, self._loader, self._look = cluster, loader, look

    def compare(
        self,
        app: str,
        source: ApplicationSource,
        revision: str,
        context: DeliveryDestination,
        *,
        candidates: Iterable[ObjectKey],
    ) -> Comparison:
        """
        Compare one Application with one revision.

        Args:
            candidates: Objects that may carry the Application's tracking annotation.
        """
        conditions: list[ApplicationCondition] = []
        try:
            targets = self._loader.load(source, revision)
        except SourceError as error:
            conditions.append(
                ApplicationCondition("ComparisonError", f"Failed to load target state: {error}")
            )
            targets = None
        hooks: list[ComparedResource] = []
        targets_by_id = self._targets_by_id(app, context, targets, conditions, hooks)
        permitted = filter(context.project.permits, candidates)
        resources = [
            *self._compared_targets(app, targets_by_id, context, conditions),
            *self._extra(app, targets_by_id, permitted, is_loaded=targets is not None),
        ]
        resources.sort(key=lambda resource: identity(resource.key))
        return Comparison(
            revision=targets.commit if targets else revision,
            resources=tuple(resources),
            conditions=tuple(conditions),
            is_loaded=targets is not None,
            hooks=tuple(hooks),
        )

    def live(self, key: ObjectKey) -> Manifest | None:
        """Return the object as it is now; None also when its kind is not served."""
        try:
            return self._look(key)
        except NoSuchKindError:
            return None

    def _targets_by_id(
        self,
        app: str,
        context: DeliveryDestination,
        targets: Targets | None,
        conditions: list[ApplicationCondition],
        hooks: list[ComparedResource],
    ) -> dict[Identity, Manifest]:
        """
        Put each target into its namespace and mark it as ours; the last of equals wins.

        Hooks go into a list of their own.
        """
        destination = context.namespace
        targets_by_id: dict[Identity, Manifest] = {}
        counts: dict[Identity, int] = {}
        scopes: dict[Kind, bool | None] = {}
        for manifest in targets.manifests if targets else ():
            kind = Kind.of(manifest)
            if kind not in scopes:
                scopes[kind] = self._scope(kind)
            target = {**manifest, "metadata": {**metadata(manifest)}}  # the rest stays shared
            if not _place(target, scopes[kind], destination):
                conditions.append(_namespace_missing(target))
            key = ObjectKey.of(target)
            annotations = dict(annotations_of(target))
            annotations[TRACKING_ID] = tracking_id(app, key, destination)
            target["metadata"]["annotations"] = annotations
            if is_hook(target):
                refusal = self._refusal(context.project, key)
                hooks.append(ComparedResource(key, target, None, "", refusal=refusal))
                continue
            counts[identity(key)] = counts.get(identity(key), 0) + 1
            targets_by_id[identity(key)] = target
        conditions += [_repeated(target_id, n) for target_id, n in counts.items() if n > 1]
        return targets_by_id

    def _scope(self, kind: Kind) -> bool | None:
        """Say whether a kind is namespaced; None while it is not served."""
        try:
            return self._cluster.is_namespaced(kind)
        except NoSuchKindError:
            return None

    def _compared_targets(
        self,
        app: str,
        targets_by_id: dict[Identity, Manifest],
        context: DeliveryDestination,
        conditions: list[ApplicationCondition],
    ) -> Iterator[ComparedResource]:
        for target in targets_by_id.values():
            key = ObjectKey.of(target)
            refusal = self._refusal(context.project, key)
            if refusal:
                is_permitted = context.project.permits_kind(
                    key.kind, is_namespaced=bool(key.namespace)
                )
                status: SyncCode = "OutOfSync" if is_permitted else "Unknown"
                yield ComparedResource(key, target, None, status, refusal=refusal)
                continue
            is_served, live = True, None
            try:
                live = self._look(key)
            except NoSuchKindError:
                is_served = False
            if live is not None and tracker(live) not in ("", app):
                conditions.append(_shared(app, live))
            yield _compared(
                ComparedResource(key, target, live, "OutOfSync", is_served), context.ignored
            )

    def _refusal(self, project: Project, key: ObjectKey) -> str:
        """Say why the project does not permit an object; empty if its kind is not served."""
        scope = self._scope(key.kind)
        if scope is None:
            return ""
        return project.refusal(key.kind, key.namespace if scope else None)

    def _extra(
        self,
        app: str,
        targets_by_id: dict[Identity, Manifest],
        candidates: Iterable[ObjectKey],
        *,
        is_loaded: bool,
    ) -> Iterator[ComparedResource]:
        for key in {identity(key): key for key in candidates}.values():
            if identity(key) in targets_by_id:
                continue
            live = self.live(key)
            if live is not None and tracker(live) == app and not is_owned(live):
                yield ComparedResource(key, None, live, "OutOfSync" if is_loaded else "Unknown")


def _compared(resource: ComparedResource, ignored: tuple[IgnoreRule, ...]) -> ComparedResource:
    target, live = resource.target, resource.live
    if target is not None and is_skipped(target):
        return replace(resource, status="")
    if target is None or live is None:
        return resource
    respected = as_it_is(target, live, ignored, resource.key)
    status: SyncCode = "OutOfSync" if differs(respected, live, owner=FIELD_MANAGER) else "Synced"
    return replace(resource, status=status, respected=None if respected is target else respected)


def _place(target: Manifest, is_namespaced: bool | None, destination: str) -> bool:  # noqa: FBT001 - a tri-state
    """Set or remove the namespace; False when a namespaced object has none."""
    if is_namespaced is False:
        metadata(target).pop("namespace", None)
    elif is_namespaced and not metadata(target).get("namespace"):
        if not destination:
            return False
        metadata(target)["namespace"] = destination
    return True


def _namespace_missing(target: Manifest) -> ApplicationCondition:
    kind, name = Kind.of(target), metadata(target).get("name")
    return ApplicationCondition(
        "InvalidSpecError",
        f"Namespace for {name} {kind.api_version}, Kind={kind.kind} is missing.",
    )


def _repeated(target_id: Identity, count: int) -> ApplicationCondition:
    return ApplicationCondition(
        "RepeatedResourceWarning",
        f"Resource {'/'.join(target_id)} appeared {count} times among application resources.",
    )


def _shared(app: str, live: Manifest) -> ApplicationCondition:
    kind, name = Kind.of(live).kind, metadata(live).get("name")
    return ApplicationCondition(
        "SharedResourceWarning",
        f"{kind}/{name} is part of applications {ARGOCD_NAMESPACE}/{app} and {tracker(live)}",
    )
