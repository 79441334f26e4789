"""
Compare what an Application should deliver with what is there.

`Comparer` only reads. Targets come from Git, live objects from the cluster: those the targets name,
and those that carry the Application's tracking annotation (`candidates` says where to look).

`differs` says whether a live object differs from what Git wants. Every field Git gives must be
there with that value; every field we applied before and Git no longer gives (our field manager's
entry in ``managedFields``) must be gone. Fields of others (defaults, status, other controllers) do
not count. No dry run is needed: nothing is written.

Not done: quantities written differently (``1000m`` and ``1``). Fields that are to be ignored
are made equal before (``spec`` reads which).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ground.argocd.delivery_obstacles import tracker
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
from orderkit_standins.argocd.projects import Project
from orderkit_standins.argocd.source_repositories import SourceError
from orderkit_standins.argocd.spec import (
    ApplicationSource,
    IgnoreRule,
    as_it_is,
    is_owned,
    tracking_id,
)
from orderkit_standins.argocd.targets import TargetLoader, Targets, is_hook, is_skipped

_NOT_COMPARED = frozenset({"status"})
_SERVER_FIELDS = frozenset({"creationTimestamp", "managedFields", "generation", "uid"})


def differs(target: Manifest, live: Manifest, *, owner: str) -> bool:
    """Say whether applying `target` as `owner` would change `live`."""
    owned = _owned_fields(live, owner)
    for field in target.keys() - _NOT_COMPARED:
        target_value, live_value = target[field], live.get(field)
        if field == "metadata":
            target_value = {k: v for k, v in target_value.items() if k not in _SERVER_FIELDS}
            live_value = metadata(live)
        if not _same(target_value, live_value, owned.get(f"f:{field}", {})):
            return True
    return any(
        step.startswith("f:") and step[2:] not in target and step[2:] not in _NOT_COMPARED
        for step in owned
    )


def _owned_fields(live: Manifest, owner: str) -> Mapping[str, Any]:
    for entry in metadata(live).get("managedFields") or ():
        is_ours = entry.get("manager") == owner and entry.get("operation") == "Apply"
        if is_ours and not entry.get("subresource"):
            fields = entry.get("fieldsV1")
            return fields if isinstance(fields, dict) else {}
    return {}


def _same(target: object, live: object, owned: Mapping[str, Any]) -> bool:
    if live is None and target in ({}, []):
        return True  # of kinds that are built in the API server drops what is empty
    if isinstance(target, dict):
        return isinstance(live, dict) and _same_map(target, live, owned)
    if isinstance(target, list):
        return isinstance(live, list) and _same_list(target, live, owned)
    if target is None:
        return live is None
    return target == live and isinstance(target, bool) == isinstance(live, bool)


def _same_map(target: Mapping[str, Any], live: Mapping[str, Any], owned: Mapping[str, Any]) -> bool:
    if not all(
        _same(target_value, live.get(key), owned.get(f"f:{key}", {}))
        for key, target_value in target.items()
    ):
        return False
    return all(step[2:] in target for step in owned if step.startswith("f:"))


def _same_list(target: list[Any], live: list[Any], owned: Mapping[str, Any]) -> bool:
    if any(step.startswith("k:") for step in owned):
        return _same_items(target, live, owned)
    values = {step[2:] for step in owned if step.startswith("v:")}
    if values:
        target_value = {_canonical(value) for value in target}
        present = {_canonical(value) for value in live}
        return (
            target_value <= present and {_canonical(json.loads(v)) for v in values} <= target_value
        )
    if len(target) != len(live):
        return False
    return all(
        _same(target_value, live_value, {})
        for target_value, live_value in zip(target, live, strict=True)
    )


def _same_items(target: list[Any], live: list[Any], owned: Mapping[str, Any]) -> bool:
    """Compare lists whose items have keys: match by key, ignore what others added."""
    ours = {step[2:]: fields for step, fields in owned.items() if step.startswith("k:")}
    names = json.loads(next(iter(ours)))
    key_names = tuple(n for n in names if all(isinstance(i, dict) and n in i for i in target))
    if not key_names:  # all keys are defaulted by the server
        return len(target) == len(live) and all(map(_same, target, live, [{}] * len(live)))
    by_key = {_item_key(item, key_names): item for item in live}
    targets_by_key = {_item_key(item, key_names): item for item in target}
    owned_by_key = {_item_key(json.loads(text), key_names): text for text in ours}
    if not owned_by_key.keys() <= targets_by_key.keys():
        return False
    return all(
        key in by_key and _same(item, by_key[key], ours.get(owned_by_key.get(key, ""), {}))
        for key, item in targets_by_key.items()
    )


def _item_key(item: object, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_values(item, names))


def _values(item: object, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        yield _canonical(item.get(name) if isinstance(item, dict) else None)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)


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


@dataclass(slots=True)
class _Placed:
    """A target in its namespace, and how it compared last."""

    manifest: Manifest
    """As Git has it."""
    target: Manifest
    key: ObjectKey
    condition: ApplicationCondition | None
    last: ComparedResource | None = None


_Setting = tuple[DeliveryDestination, dict[Kind, bool | None]]
"""What else a comparison depends on: the destination, and the scopes of the targets' kinds."""


class Comparer:
    """
    Compares Applications of one cluster. Remembers the last comparison of each.

    Only objects that changed since, here or in Git, are compared again: an Application of a whole
    fleet looks at all its orders whenever one of them changes.
    """

    def __init__(self, cluster: Cluster, loader: TargetLoader, look: Look) -> None:
        """Look at live objects with `look`; nothing here changes what it returns."""
        self._cluster, self._loader, self._look = cluster, loader, look
        self._last: dict[str, tuple[_Setting, dict[int, _Placed]]] = {}
        """By Application: its targets, by the ``id`` of what the loader returned."""

    def forget(self, app: str) -> None:
        """Forget an Application that is gone."""
        self._last.pop(app, None)

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
        placed = self._placed(app, context, targets)
        targets_by_id = self._by_id(placed, context, conditions, hooks)
        resources = [
            *self._compared_targets(app, targets_by_id.values(), context, conditions),
            *self._extra(app, targets_by_id, context, candidates, is_loaded=targets is not None),
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

    def _placed(
        self, app: str, context: DeliveryDestination, targets: Targets | None
    ) -> list[_Placed]:
        """Put each target into its namespace and mark it as ours."""
        manifests = targets.manifests if targets else ()
        kinds = [Kind.of(manifest) for manifest in manifests]
        scopes = {kind: self._scope(kind) for kind in set(kinds)}
        setting, before = self._last.get(app, (None, {}))
        if setting != (context, scopes):
            before = {}
        placed = [
            before.get(id(manifest)) or _place(app, manifest, scopes[kind], context.namespace)
            for manifest, kind in zip(manifests, kinds, strict=True)
        ]
        self._last[app] = (context, scopes), {id(each.manifest): each for each in placed}
        return placed

    def _by_id(
        self,
        placed: Iterable[_Placed],
        context: DeliveryDestination,
        conditions: list[ApplicationCondition],
        hooks: list[ComparedResource],
    ) -> dict[Identity, _Placed]:
        """Return the targets; the last of equals wins. Hooks go into a list of their own."""
        targets_by_id: dict[Identity, _Placed] = {}
        counts: Counter[Identity] = Counter()
        for each in placed:
            if each.condition is not None:
                conditions.append(each.condition)
            if is_hook(each.target):
                refusal = self._refusal(context.project, each.key)
                hooks.append(ComparedResource(each.key, each.target, None, "", refusal=refusal))
                continue
            key_id = identity(each.key)
            counts[key_id] += 1
            targets_by_id[key_id] = each
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
        placed: Iterable[_Placed],
        context: DeliveryDestination,
        conditions: list[ApplicationCondition],
    ) -> Iterator[ComparedResource]:
        for each in placed:
            resource = each.last = self._compared(each, context)
            live = resource.live
            if live is not None and tracker(live) not in ("", app):
                conditions.append(_shared(app, live))
            yield resource

    def _compared(self, placed: _Placed, context: DeliveryDestination) -> ComparedResource:
        last, key, target = placed.last, placed.key, placed.target
        if last is not None and last.refusal:
            return last
        refusal = "" if last is not None else self._refusal(context.project, key)
        if refusal:
            is_permitted = context.project.permits_kind(key.kind, is_namespaced=bool(key.namespace))
            status: SyncCode = "OutOfSync" if is_permitted else "Unknown"
            return ComparedResource(key, target, None, status, refusal=refusal)
        try:
            live = self._look(key)
        except NoSuchKindError:
            return _with_status(
                ComparedResource(key, target, None, "OutOfSync", is_served=False), ()
            )
        if last is not None and _is_unchanged(last.live, live):
            return last
        return _with_status(ComparedResource(key, target, live, "OutOfSync"), context.ignored)

    def _refusal(self, project: Project, key: ObjectKey) -> str:
        """Say why the project does not permit an object; empty if its kind is not served."""
        scope = self._scope(key.kind)
        if scope is None:
            return ""
        return project.refusal(key.kind, key.namespace if scope else None)

    def _extra(
        self,
        app: str,
        targets_by_id: Container[Identity],
        context: DeliveryDestination,
        candidates: Iterable[ObjectKey],
        *,
        is_loaded: bool,
    ) -> Iterator[ComparedResource]:
        keys = {key_id: key for key in candidates if (key_id := identity(key)) not in targets_by_id}
        for key in filter(context.project.permits, keys.values()):
            live = self.live(key)
            if live is not None and tracker(live) == app and not is_owned(live):
                yield ComparedResource(key, None, live, "OutOfSync" if is_loaded else "Unknown")


def _is_unchanged(before: Manifest | None, live: Manifest | None) -> bool:
    """Say whether both are one stored object: each write and each conversion makes it anew."""
    return before is not None and live is not None and metadata(before) is metadata(live)


def _with_status(resource: ComparedResource, ignored: tuple[IgnoreRule, ...]) -> ComparedResource:
    target, live = resource.target, resource.live
    if target is not None and is_skipped(target):
        return replace(resource, status="")
    if target is None or live is None:
        return resource
    respected = as_it_is(target, live, ignored, resource.key)
    status: SyncCode = "OutOfSync" if differs(respected, live, owner=FIELD_MANAGER) else "Synced"
    return replace(resource, status=status, respected=None if respected is target else respected)


def _place(app: str, manifest: Manifest, is_namespaced: bool | None, destination: str) -> _Placed:  # noqa: FBT001 - a tri-state
    """Set or remove the namespace, and write the annotation by which Argo CD knows its objects."""
    target = {**manifest, "metadata": {**metadata(manifest)}}  # the rest stays shared
    condition = None
    if is_namespaced is False:
        metadata(target).pop("namespace", None)
    elif is_namespaced and not metadata(target).get("namespace"):
        if destination:
            metadata(target)["namespace"] = destination
        else:
            condition = _namespace_missing(target)
    key = ObjectKey.of(target)
    tracking = {TRACKING_ID: tracking_id(app, key, destination)}
    metadata(target)["annotations"] = {**annotations_of(target), **tracking}
    return _Placed(manifest, target, key, condition)


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
