"""
Reconcile one Application: compare, decide, sync, report.

Level-based: each pass reads the Application, Git and the cluster, takes what steps it can,
and writes one status (two when an operation begins, so that a restart resumes it). A write
carries the resourceVersion that was read; after a conflict the pass is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ground.argocd.delivery_obstacles import tracker
from ground.argocd.sync_rules import FINALIZERS
from ground.errors import ConflictError, NotFoundError
from ground.objects.kube_objects import (
    APP_PROJECT,
    ARGOCD_NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
    metadata,
)
from orderkit.ports.clock import Clock
from orderkit.ports.cluster import Cluster
from orderkit_standins.argocd import operations
from orderkit_standins.argocd.affected_applications import Followed, Index
from orderkit_standins.argocd.compare import (
    ApplicationCondition,
    ComparedResource,
    Comparer,
    Comparison,
    DeliveryDestination,
    Look,
    identity,
)
from orderkit_standins.argocd.projects import Project, check_project, is_held, read_project
from orderkit_standins.argocd.prune import delete_next_wave
from orderkit_standins.argocd.spec import (
    ApplicationSource,
    AppSpec,
    InvalidSpecError,
    is_deleting,
    is_owned,
    read_source,
    read_spec,
    scope,
)
from orderkit_standins.argocd.status import (
    IsComposite,
    Status,
    application_health,
    compared,
    invalid,
    listed,
    merge_patch,
    precise_stamp,
    stamp,
    status_of,
)
from orderkit_standins.argocd.sync import Syncer, SyncOperation, SyncOutcome
from orderkit_standins.argocd.targets import (
    TargetLoader,
    deletion_types,
    finalizers_for,
    finalizers_of_hooks,
)

STATUS_WRITER = "argocd-application-controller"
REFRESH = "argocd.argoproj.io/refresh"
SKIP = "argocd.argoproj.io/skip-reconcile"
FINALIZER = "resources-finalizer.argocd.argoproj.io"
_FINALIZERS = (FINALIZER, f"{FINALIZER}/foreground", f"{FINALIZER}/background")
_LOOK_AGAIN_S = 2.0
"""Interval for polling objects that are being deleted."""
_WINDOW_S = 20.0
"""How often it looks whether a sync window opened."""


@dataclass(slots=True)
class _Pass:
    """One pass over one Application."""

    app: Manifest
    spec: AppSpec
    project: Project
    now: datetime

    @property
    def name(self) -> str:
        return str(metadata(self.app)["name"])

    @property
    def key(self) -> ObjectKey:
        return ObjectKey.of(self.app)


class Reconciler:
    """Reconciles Applications; keeps no state but the index of links and what it reported last."""

    def __init__(
        self,
        cluster: Cluster,
        loader: TargetLoader,
        index: Index,
        clock: Clock,
        *,
        look: Look,
        is_composite: IsComposite,
        follow: Callable[[Kind], None],
    ) -> None:
        self._cluster, self._loader, self._index, self._clock = cluster, loader, index, clock
        self._is_composite, self._follow = is_composite, follow
        self._comparer = Comparer(cluster, loader, look)
        self._syncer = Syncer(cluster, self._comparer, is_composite)
        self._reported: dict[str, str] = {}
        """By Application: the version of it after a pass that only reported."""

    def has_reported(self, _: Manifest, app: Manifest) -> bool:
        """Say whether a change of an Application is a report of ours: nothing follows from it."""
        meta = metadata(app)
        return self._reported.get(str(meta["name"])) == str(meta["resourceVersion"])

    def reconcile(self, key: ObjectKey) -> float | None:
        """Do one pass for an Application; return when to look again."""
        if key.namespace != ARGOCD_NAMESPACE:
            return None
        app = self._cluster.get(key)
        if app is None:
            self._forget(key.name)
            return None
        if annotations_of(app).get(SKIP) == "true":
            return None
        try:
            if is_deleting(app) and not operations.is_unfinished(app):
                return self._end(app)
            return self._advance(app)
        # a write carries the resourceVersion that was read: the pass is repeated
        except (ConflictError, NotFoundError):
            return 0.0

    def _forget(self, name: str) -> None:
        """Remember what an Application without finalizer left behind, in case it comes back."""
        tracked = self._index.tracked(name)
        self._reported.pop(name, None)
        self._comparer.forget(name)
        self._index.forget(name, [key for key in tracked if self._owned(name, key) is not None])

    def _advance(self, app: Manifest) -> float | None:
        now = self._clock.now()
        try:
            spec = read_spec(app)
            project = check_project(spec, self._project(spec.project))
            return self._compare_and_operate(_Pass(app, spec, project, now))
        except InvalidSpecError as error:
            self._report_invalid(app, error, now)
            return None

    def _project(self, name: str) -> Manifest | None:
        return self._cluster.get(ObjectKey(APP_PROJECT, name, ARGOCD_NAMESPACE))

    def _report_invalid(self, app: Manifest, error: InvalidSpecError, now: datetime) -> None:
        status = invalid(app, ApplicationCondition("InvalidSpecError", str(error)), now)
        changes: dict[str, Any] = {}
        if operations.is_unfinished(app) or app.get("operation"):
            state = dict(status.get("operationState") or {})
            state |= {"phase": "Error", "message": str(error), "finishedAt": precise_stamp(now)}
            status["operationState"], changes["operation"] = state, None
        self._write(app, status, now, **changes)

    def _compare_and_operate(self, current: _Pass) -> float | None:
        if annotations_of(current.app).get(REFRESH) == "hard":
            self._loader.forget(current.spec.source.repo_url)
        latest = self._compare(current, current.spec.source, current.spec.source.revision)
        current.app = self._with_finalizers(current.app, latest)
        self._index.follows(
            current.name,
            Followed(current.spec.source.repo_url, current.spec.source.revision),
            latest.revision,
            scope(current.app, current.spec.source.path),
        )
        if operations.is_unfinished(current.app):
            return self._operate(current, latest)
        requested = current.app.get("operation")
        decision = operations.Decision(operation=requested)
        if not requested and self._is_held(current):
            decision = operations.Decision(again_s=_WINDOW_S)
        elif not requested:
            decision = operations.automatic(current.app, current.spec, latest, current.now)
        status = self._compared(current, latest, decision.condition)
        if decision.operation is None:
            app = self._write(current.app, status, current.now)
            self._reported[current.name] = str(metadata(app)["resourceVersion"])
            return decision.again_s
        status["operationState"] = operations.begin(current.app, decision.operation, current.now)
        # written before the first step, so that a restart resumes the operation
        current.app = self._write(current.app, status, current.now, operation=decision.operation)
        return self._operate(current, latest)

    def _with_finalizers(self, app: Manifest, comparison: Comparison) -> Manifest:
        """Let the deletion of an Application wait for its hooks, while it has some."""
        if is_deleting(app):
            return app
        before = metadata(app).get("finalizers") or []
        types = {t for hook in comparison.hooks for t in deletion_types(hook.target or {})}
        others = [finalizer for finalizer in before if finalizer not in finalizers_of_hooks()]
        wanted = [*others, *finalizers_for(types)]
        return app if set(wanted) == set(before) else self._set_finalizers(app, wanted)

    def _set_finalizers(self, app: Manifest, finalizers: list[str]) -> Manifest:
        version = metadata(app).get("resourceVersion")
        patch = {"metadata": {"finalizers": finalizers, "resourceVersion": version}}
        return self._cluster.patch(ObjectKey.of(app), patch, owner=STATUS_WRITER)

    def _is_held(self, current: _Pass) -> bool:
        """Say whether a sync window holds automated sync back."""
        project = self._project(current.spec.project) or {}
        return is_held(project, current.name, current.spec.destination_namespace, current.now)

    def _compare(
        self,
        current: _Pass,
        source: ApplicationSource,
        revision: str,
        *,
        touched: Iterable[ObjectKey] = (),
    ) -> Comparison:
        candidates = {*listed(current.app), *self._index.tracked(current.name), *touched}
        comparison = self._comparer.compare(
            current.name,
            source,
            revision,
            DeliveryDestination(
                current.spec.destination_namespace, current.project, current.spec.ignored
            ),
            candidates=candidates,
        )
        keys = [resource.key for resource in comparison.resources]
        self._index.compared(current.name, keys, candidates)
        for kind in {key.kind for key in keys}:
            self._follow(kind)
        return comparison

    def _compared(
        self, current: _Pass, comparison: Comparison, extra: ApplicationCondition | None = None
    ) -> Status:
        health = application_health(current.key, comparison.resources, self._is_composite)
        conditions = [extra] if extra else []
        return compared(current.app, comparison, health, conditions, current.now)

    def _operate(self, current: _Pass, latest: Comparison) -> float | None:
        """Take the operation one step further and report both it and the comparison after it."""
        state = dig(current.app, "status", "operationState")
        wait_s = operations.retry_wait_s(state, current.now)
        if wait_s:
            self._write(current.app, self._compared(current, latest), current.now)
            return wait_s
        state = operations.retried(current.app, state)
        comparison, outcome = self._step(current, state, latest)
        state = operations.after(state, outcome, comparison.revision, self._clock.now())
        touched = [resource.key for resource in comparison.resources]
        source = current.spec.source
        latest = self._compare(current, source, source.revision, touched=touched)
        status = {**self._compared(current, latest), "operationState": state}
        changes: dict[str, Any] = {}
        if state["phase"] not in ("Running", "Terminating"):
            changes["operation"] = None
            is_whole = not dig(state, "operation", "sync", "resources")
            if state["phase"] == "Succeeded" and is_whole:
                status["history"] = operations.with_history(
                    status, current.spec.history_limit, self._clock.now()
                )
        self._write(current.app, status, current.now, **changes)
        wait_s = operations.retry_wait_s(state, current.now)
        return wait_s or (_LOOK_AGAIN_S if state["phase"] == "Running" else None)

    def _step(
        self, current: _Pass, state: Status, latest: Comparison
    ) -> tuple[Comparison, SyncOutcome]:
        """Take one step of the operation at its own revision, which may not be the latest."""
        result = state["syncResult"]
        results = result.get("resources") or []
        pinned = Comparison(result["revision"], latest.resources, ())
        if state["phase"] == "Terminating":
            return pinned, SyncOutcome("Failed", "Operation terminated", results)
        sync = dig(state, "operation", "sync")
        if not sync:
            text = "Invalid operation request: no operation specified"
            return pinned, SyncOutcome("Error", text, results)
        if sync.get("dryRun"):
            return pinned, SyncOutcome("Error", "dry runs are not supported here", results)
        source = read_source(result["source"])
        is_latest = result["revision"] in (latest.revision, source.revision)
        comparison = latest
        if source != current.spec.source or not is_latest:
            comparison = self._compare(current, source, result["revision"])
        return comparison, self._syncer.step(_work(current, sync, comparison, results))

    def _end(self, app: Manifest) -> float | None:
        """Delete what the Application delivered, its hooks before and after; free it."""
        finalizers = metadata(app).get("finalizers") or []
        ours = [finalizer for finalizer in finalizers if finalizer in _FINALIZERS]
        steps = (("PreDelete", ()), ("", ours), ("PostDelete", sorted(finalizers_of_hooks())))
        for type_, step in steps:
            gone = [FINALIZERS[type_], *step] if type_ else ours
            if not set(gone) & set(finalizers):
                continue
            waits_s = self._end_hooks(app, type_) if type_ else self._end_objects(app, ours)
            if waits_s is None:
                self._set_finalizers(app, [each for each in finalizers if each not in gone])
            return waits_s
        return None

    def _end_hooks(self, app: Manifest, type_: str) -> float | None:
        """Run the hooks of a deletion; return when to try again, None if that is done."""
        now = self._clock.now()
        try:
            spec = read_spec(app)
            project = check_project(spec, self._project(spec.project))
        except InvalidSpecError:
            return _LOOK_AGAIN_S
        latest = self._compare(_Pass(app, spec, project, now), spec.source, spec.source.revision)
        mine = [hook for hook in latest.hooks if type_ in deletion_types(hook.target or {})]
        why = next((_not_permitted(hook, type_) for hook in mine if hook.refusal), "")
        results = [] if why else [self._syncer.make_again(hook) for hook in mine]
        why = why or next((r.message for r in results if r.code == "SyncFailed"), "")
        if why:
            text = f"error executing {type_.replace('D', '-d', 1).lower()} hooks: {why}"
            condition = ApplicationCondition("DeletionError", text)
            status = {**status_of(app), "conditions": invalid(app, condition, now)["conditions"]}
            self._write(app, status, now)
        return _LOOK_AGAIN_S if why or not latest.is_loaded else None

    def _end_objects(self, app: Manifest, ours: list[str]) -> float | None:
        """Delete what the Application delivered; return when to look again, None if all is gone."""
        name = str(metadata(app)["name"])
        project = self._project(dig(app, "spec", "project") or "default")
        if project is None:
            return _LOOK_AGAIN_S  # as in Argo CD: nothing is deleted without a project
        keys = {identity(key): key for key in (*listed(app), *self._index.tracked(name))}
        keys.pop(identity(ObjectKey.of(app)), None)
        permits = read_project(project).permits
        owned = (self._owned(name, key) for key in keys.values())
        live = [
            manifest
            for manifest in owned
            if manifest is not None and permits(ObjectKey.of(manifest))
        ]
        remaining = delete_next_wave(
            self._cluster,
            live,
            policy="Background" if f"{FINALIZER}/background" in ours else "Foreground",
            options=frozenset(map(str, dig(app, "spec", "syncPolicy", "syncOptions", default=()))),
        )
        if any(self._owned(name, key) is not None for key in remaining):
            for key in remaining:
                self._follow(key.kind)
            return 0.0 if self._has_vanished(name, remaining) else _LOOK_AGAIN_S
        return None

    def _has_vanished(self, name: str, remaining: list[ObjectKey]) -> bool:
        """Say whether some objects are gone already, so that the next wave can go at once."""
        return any(self._owned(name, key) is None for key in remaining)

    def _owned(self, name: str, key: ObjectKey) -> Manifest | None:
        """Return an object if it is there and this Application delivered it."""
        live = self._comparer.live(key)
        if live is None or tracker(live) != name or is_owned(live):
            return None
        return live

    def _write(self, app: Manifest, status: Status, now: datetime, **changes: Any) -> Manifest:
        """Write the differences from the Application as it was read; without one, write nothing."""
        is_refresh = REFRESH in annotations_of(app)
        patch = {key: value for key, value in changes.items() if app.get(key) != value}
        status_patch = merge_patch(status_of(app), status)
        if status_patch or is_refresh:
            patch["status"] = {**status_patch, "reconciledAt": stamp(now)}
        if not patch:
            return app
        patch["metadata"] = {"resourceVersion": metadata(app).get("resourceVersion")}
        if is_refresh:
            patch["metadata"]["annotations"] = {REFRESH: None}
        return self._cluster.patch(ObjectKey.of(app), patch, owner=STATUS_WRITER)


def _not_permitted(hook: ComparedResource, type_: str) -> str:
    """Say why a hook of a deletion may not run, in Argo CD's words."""
    kind, name = hook.key.kind, hook.key.name
    place = f"{kind.group}/{kind.kind}/{hook.key.namespace}/{name}"
    return f"{type_} hook {place} is not permitted: {hook.refusal}"


def _work(
    current: _Pass, sync: dict[str, Any], comparison: Comparison, results: list[dict[str, Any]]
) -> SyncOperation:
    selected = sync.get("resources") or []
    only = frozenset(
        (
            entry.get("group", ""),
            entry.get("kind", ""),
            entry.get("namespace", ""),
            entry.get("name", ""),
        )
        for entry in selected
    )
    options = sync.get("syncOptions")
    policy = dig(current.app, "spec", "syncPolicy", default={}) or {}
    return SyncOperation(
        comparison=comparison,
        destination=current.spec.destination_namespace,
        options=current.spec.options if options is None else frozenset(options),
        prune=bool(sync.get("prune")),
        project=current.project,
        only=only or None,
        results=results,
        namespace_metadata=dig(policy, "managedNamespaceMetadata", default={}) or {},
    )
