"""
Run one step of a sync operation: apply and prune wave by wave until a wave must wait.

Level-based: earlier work is in the operation's results, everything else is read again, so a step
may be repeated after a crash. Applies are always server-side with force (a real Argo CD does so
only with ``ServerSideApply=true``; without it, fields that a CRD does not declare are left out, as
a client-side apply loses them) and carry the tracking annotation. A wave waits for the health of
the one before only when there is more than one, Progressing without limit, and Degraded fails the
operation; the last is not waited for. Objects that the comparison just found in sync are not
applied again: it would change nothing.

Better than Argo CD, on purpose: no pause of 2 s between waves, and an object that vanishes
while its wave is waited for is applied again.

Not supported: dry runs, Replace, Force; of hooks only what ``targets`` says.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ground.argocd.health import Health, HealthStatus
from ground.argocd.sync_rules import (
    SyncStep,
    apply_step,
    prune_step,
    sync_options,
    sync_order,
    waves,
)
from ground.errors import OrderkitError
from ground.objects.kube_objects import CRD, NAMESPACE, Kind, Manifest, ObjectKey, dig, metadata
from ground.objects.values import clone
from kubeschema.pruning import prune
from orderkit.ports.cluster import Cluster
from orderkit_standins.argocd.compare import (
    FIELD_MANAGER,
    ComparedResource,
    Comparer,
    Comparison,
    Identity,
    identity,
)
from orderkit_standins.argocd.projects import Project
from orderkit_standins.argocd.prune import Code, PruneResult, prune_object
from orderkit_standins.argocd.spec import is_deleting
from orderkit_standins.argocd.status import IsComposite, live_health
from orderkit_standins.argocd.targets import phases_of
from orderkit_standins.cluster.field_ownership import read
from orderkit_standins.cluster.typed_documents import FieldSet, union

Phase = Literal["Running", "Terminating", "Succeeded", "Failed", "Error"]

SKIP_MISSING = "SkipDryRunOnMissingResource=true"
SERVER_SIDE = "ServerSideApply=true"
RESPECT = "RespectIgnoreDifferences=true"
_CRD_WAIT_S = 20.0
_SERVER_SET = ("managedFields", "creationTimestamp")
_PHASES: dict[Code, str] = {
    "Synced": "Running",
    "SyncFailed": "Failed",
    "Pruned": "Succeeded",
    "PruneSkipped": "Succeeded",
}


@dataclass(frozen=True, slots=True)
class SyncTask:
    """A task of the sync: its object, and the result so far."""

    step: SyncStep
    resource: ComparedResource
    result: PruneResult | None = None
    phase: str = ""
    """Empty (not begun), Running, Succeeded or Failed."""

    @property
    def key(self) -> ObjectKey:
        return self.step.key

    def __str__(self) -> str:
        return f"{self.key.kind.group}/{self.key.kind.kind}/{self.key.name}"


@dataclass(frozen=True, slots=True)
class SyncOperation:
    """One operation: its targets, and the results so far."""

    comparison: Comparison
    destination: str
    options: frozenset[str]
    prune: bool
    project: Project
    only: frozenset[Identity] | None = None
    """Just these objects (self-heal); an empty namespace stands for any."""
    results: Sequence[dict[str, Any]] = ()
    namespace_metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def hooks(self) -> tuple[ComparedResource, ...]:
        """The hooks that may run: none if only some objects are synced."""
        return () if self.only is not None else self.comparison.hooks


@dataclass(frozen=True, slots=True)
class SyncOutcome:
    """Where the operation stands after the step."""

    phase: Phase
    message: str
    results: list[dict[str, Any]]


class Syncer:
    """Runs steps of operations on one cluster."""

    def __init__(self, cluster: Cluster, comparer: Comparer, is_composite: IsComposite) -> None:
        self._cluster, self._comparer, self._is_composite = cluster, comparer, is_composite

    def step(self, work: SyncOperation) -> SyncOutcome:
        """Advance the operation as far as possible now. Idempotent; does not block on health."""
        refused = _refusal(work)
        if refused is not None:
            return refused
        tasks = _tasks(work)
        namespace = self._missing_namespace(work)
        hooks = [
            SyncTask(apply_step(hook.target or {}), hook)
            for hook in work.hooks
            if phases_of(hook.target or {})
        ]
        invalid = [
            invalid_task
            for task in (*hooks, *tasks)
            if (invalid_task := self._invalid(task, tasks, work))
        ]
        if namespace and (refusal := work.project.refusal(NAMESPACE, None)):
            resource = ComparedResource(ObjectKey.of(namespace), namespace, None, "OutOfSync")
            invalid.append(_unfit(SyncTask(apply_step(namespace), resource), refusal))
        if invalid:
            why = "; ".join(sorted({_why_invalid(task) for task in invalid}))
            text = f"one or more synchronization tasks are not valid: {why}"
            return _outcome("Failed", text, invalid)
        namespace_result = self._apply(namespace) if namespace else PruneResult("Synced", "")
        if namespace_result.code == "SyncFailed":
            text = f"the namespace failed to apply, reason: {namespace_result.message}"
            return SyncOutcome("Failed", text, [])
        outcome = self._with_hooks(tasks, work)
        return replace(outcome, results=_with_finished(work.results, tasks, outcome.results))

    def _with_hooks(self, tasks: list[SyncTask], work: SyncOperation) -> SyncOutcome:
        """Run the tasks, and the hooks before and after them."""
        # with results, the hooks before the tasks have run already
        failed = [] if work.results else self._run_hooks(work, "PreSync", "Sync")
        if failed:
            outcome = _failed("one or more objects failed to apply", failed, [*failed, *tasks])
        else:
            outcome = self._run(tasks, work)
        if outcome.phase == "Succeeded" and (failed := self._run_hooks(work, "PostSync")):
            return _failed("one or more objects failed to apply", failed, [*failed, *tasks])
        if outcome.phase == "Failed":
            self._run_hooks(work, "SyncFail")
        return outcome

    def _run_hooks(self, work: SyncOperation, *phases: str) -> list[SyncTask]:
        """Make the hooks of some phases again, one by one; return the first that fails."""
        for hook in work.hooks:
            if not phases_of(hook.target or {}).isdisjoint(phases):
                result = self.make_again(hook)
                if result.code == "SyncFailed":
                    task = SyncTask(apply_step(hook.target or {}), hook)
                    return [replace(task, result=result, phase="Failed")]
        return []

    def make_again(self, hook: ComparedResource) -> PruneResult:
        """Make the object of a hook; one that has its name is deleted first."""
        try:
            if self._comparer.live(hook.key) is not None:
                self._cluster.delete(hook.key)
        except OrderkitError as error:
            return PruneResult("SyncFailed", str(error))
        return self._apply(hook.target or {})

    def _run(self, tasks: list[SyncTask], work: SyncOperation) -> SyncOutcome:
        groups = len(waves(task.step for task in tasks))
        while True:
            tasks = [self._observed(task) for task in tasks]
            waiting = [task for task in tasks if task.phase == "Running"]
            if groups > 1 and waiting:
                return _outcome("Running", _waiting("healthy state of", waiting), tasks)
            leaving = [task for task in tasks if self._is_leaving(task)]
            if leaving:
                return _outcome("Running", _waiting("deletion of", leaving), tasks)
            failed = [task for task in tasks if task.phase == "Failed"]
            if failed:
                text = "one or more synchronization tasks completed unsuccessfully"
                return _failed(text, failed, tasks)
            pending = [task for task in tasks if not task.phase]
            if not pending:
                return _outcome("Succeeded", "successfully synced (no more tasks)", tasks)
            wave = pending[0].step.wave
            tasks = self._run_wave(tasks, wave, work)
            failed = [task for task in tasks if task.phase == "Failed"]
            if failed and any(task.phase == "Running" for task in tasks):
                continue  # as since Argo CD 3.6: what was applied beside it is looked at first
            if failed:
                return _failed("one or more objects failed to apply", failed, tasks)
            if all(task.phase for task in tasks):
                return _outcome("Succeeded", "successfully synced (all tasks run)", tasks)

    def _run_wave(self, tasks: list[SyncTask], wave: int, work: SyncOperation) -> list[SyncTask]:
        """Prune first, then apply kind by kind; a failure stops after its kind."""
        results: dict[ObjectKey, SyncTask] = {}
        failed: Kind | None = None
        mine = [task for task in tasks if task.step.wave == wave and not task.phase]
        for task in sorted(mine, key=lambda task: not task.step.prune):
            if failed not in (None, task.key.kind):
                break
            result = self._do(task, work)
            done = results[task.key] = replace(task, result=result, phase=_PHASES[result.code])
            failed = task.key.kind if done.phase == "Failed" else failed
        return [results.get(task.key, task) for task in tasks]

    def _do(self, task: SyncTask, work: SyncOperation) -> PruneResult:
        if task.step.prune:
            live = task.resource.live or {}
            return prune_object(self._cluster, live, is_allowed=work.prune, options=work.options)
        respected = task.resource.respected if RESPECT in work.options else None
        if task.resource.status == "Synced" and (respected or not task.resource.respected):
            return PruneResult("Synced", f"{_object_text(task.key)} unchanged")
        target = respected or task.resource.target or {}
        if SERVER_SIDE not in work.options | sync_options(target):
            target = self._declared(target)
            try:
                self._forget_unsaid(task.resource.live or {}, target)
            except OrderkitError as error:
                return PruneResult("SyncFailed", str(error))
        return self._apply(target)

    def _declared(self, target: Manifest) -> Manifest:
        """Leave out what a CRD does not declare."""
        kind = Kind.of(target)
        name = f"{self._cluster.plural(kind)}.{kind.group}"
        crd = self._comparer.live(ObjectKey(CRD, name)) or {}
        for version in dig(crd, "spec", "versions", default=()):
            if version["name"] == kind.version and not dig(crd, "spec", "preserveUnknownFields"):
                schema = dig(version, "schema", "openAPIV3Schema", default={})
                # a client-side apply loses it without a word
                return {**prune(schema, target)[0], "metadata": target["metadata"]}
        return target

    def _forget_unsaid(self, live: Manifest, target: Manifest) -> None:
        """Remove what was applied before and is not said any more, and what others wrote below."""
        own: FieldSet = {}
        others: FieldSet = {}
        for manager, entry in read(live).items():
            if manager.name == FIELD_MANAGER and manager.operation == "Apply":
                own = entry.fields.get("f:spec", {})
            else:
                others = union(others, entry.fields.get("f:spec", {}))
        # as the patch of a client-side apply does (jsonmergepatch); a server-side one would keep
        # what others own, and an empty map around it
        if patch := _unsaid(own, others, target.get("spec")):
            self._cluster.patch(ObjectKey.of(target), {"spec": patch}, owner=FIELD_MANAGER)

    def _apply(self, target: Manifest) -> PruneResult:
        manifest = clone(target)
        for server_set in _SERVER_SET:
            metadata(manifest).pop(server_set, None)
        try:
            self._cluster.apply(manifest, owner=FIELD_MANAGER, force=True)
        except OrderkitError as error:
            return PruneResult("SyncFailed", str(error))
        key = ObjectKey.of(manifest)
        if (key.kind.group, key.kind.kind) == (CRD.group, CRD.kind):
            self._await_served(manifest)
        return PruneResult("Synced", f"{_object_text(key)} serverside-applied")

    def _await_served(self, crd: Manifest) -> None:
        """Wait until a new kind is served, as Argo CD does, so that its objects can follow."""
        kinds = [
            Kind(dig(crd, "spec", "group"), version["name"], dig(crd, "spec", "names", "kind"))
            for version in dig(crd, "spec", "versions", default=())
            if version.get("served")
        ]
        deadline = time.monotonic() + _CRD_WAIT_S
        while not all(map(self._cluster.serves, kinds)) and time.monotonic() < deadline:
            time.sleep(0.02)

    def _observed(self, task: SyncTask) -> SyncTask:
        """Look at the health of an applied object; one that vanished is to be applied again."""
        if task.phase != "Running" or task.result is None:
            return task
        live = self._comparer.live(task.key)
        if live is None:
            return replace(task, result=None, phase="")
        verdict = live_health(live, self._is_composite)
        if verdict is None or verdict.status is HealthStatus.HEALTHY:
            return replace(task, phase="Succeeded", result=_with_message(task.result, verdict))
        if verdict.status is HealthStatus.DEGRADED:
            return replace(task, phase="Failed", result=_with_message(task.result, verdict))
        return task

    def _is_leaving(self, task: SyncTask) -> bool:
        if task.result is None or task.result.code != "Pruned":
            return False
        live = self._comparer.live(task.key)
        return live is not None and is_deleting(live)

    def _invalid(
        self, task: SyncTask, tasks: Iterable[SyncTask], work: SyncOperation
    ) -> SyncTask | None:
        """Return a task that cannot be tried, with the reason; None if it can."""
        if task.resource.refusal:
            return _unfit(task, task.resource.refusal)
        if self._may_try(task, tasks, work):
            return None
        return _unserved(task, work.destination)

    def _may_try(self, task: SyncTask, tasks: Iterable[SyncTask], work: SyncOperation) -> bool:
        """Say whether a task's kind is served, or is allowed to appear during this sync."""
        if task.resource.is_served or self._cluster.serves(task.key.kind):
            return True
        options = work.options | sync_options(task.resource.target or {})
        kind = task.key.kind
        return SKIP_MISSING in options or any(
            other.step.creates == ("kind", kind.group, kind.kind) for other in tasks
        )

    def _missing_namespace(self, work: SyncOperation) -> Manifest | None:
        """
        Return the destination to be made for ``CreateNamespace=true``, if it is to be made.

        It is neither tracked nor pruned.
        """
        namespace = work.destination
        if "CreateNamespace=true" not in work.options or not namespace:
            return None
        key = ObjectKey(NAMESPACE, namespace)
        if any(identity(resource.key) == identity(key) for resource in work.comparison.resources):
            return None
        if self._comparer.live(key) is not None and not work.namespace_metadata:
            return None
        return {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {**work.namespace_metadata, "name": namespace},
        }


def _object_text(key: ObjectKey) -> str:
    """Name an object as kubectl does."""
    return f"{str(key.kind).lower()}/{key.name}"


def _unsaid(own: FieldSet, others: FieldSet, said: Any) -> Manifest:
    """Return the patch that removes fields of `own` that are not said, where others have a part."""
    patch: Manifest = {}
    for step in own.keys() & others.keys() if isinstance(said, dict) else ():
        name = step.removeprefix("f:")
        if step == name:
            continue  # an item of a list
        if name not in said:
            patch[name] = None
        elif inner := _unsaid(own[step], others[step], said[name]):
            patch[name] = inner
    return patch


def _refusal(work: SyncOperation) -> SyncOutcome | None:
    errors = work.comparison.errors
    if errors:
        text = ";".join(f"{error.type}: {error.message}" for error in errors)
        return SyncOutcome("Error", text, list(work.results))
    shared = [each for each in work.comparison.conditions if each.type == "SharedResourceWarning"]
    if shared and "FailOnSharedResource=true" in work.options:
        return SyncOutcome("Failed", f"Shared resource found: {shared[0].message}", [])
    return None


def _tasks(work: SyncOperation) -> list[SyncTask]:
    """Order what the operation has to do and add what it did before."""
    resources = {
        resource.key: resource
        for resource in work.comparison.resources
        if _is_selected(resource, work.only) and (resource.status or resource.needs_pruning)
    }
    steps = [
        apply_step(resource.target)
        if resource.target is not None
        else prune_step(resource.live or {})
        for resource in resources.values()
    ]
    last = {
        key
        for key, resource in resources.items()
        if "PruneLast=true" in work.options | sync_options(resource.live or {})
    }
    before = {_result_identity(result): result for result in work.results}
    return [
        _with_result(SyncTask(step, resources[step.key]), before.get(identity(step.key)))
        for step in sync_order(steps, prune_last=last)
    ]


def _is_selected(resource: ComparedResource, only: frozenset[Identity] | None) -> bool:
    if only is None:
        return True
    group, kind, _, name = resource_id = identity(resource.key)
    return resource_id in only or (group, kind, "", name) in only


def _result_identity(result: dict[str, Any]) -> Identity:
    return (
        result.get("group", ""),
        result.get("kind", ""),
        result.get("namespace", ""),
        result.get("name", ""),
    )


def _with_result(task: SyncTask, before: dict[str, Any] | None) -> SyncTask:
    if before is None or before.get("status") not in _PHASES:
        return task
    result = PruneResult(before["status"], str(before.get("message", "")))
    return replace(task, result=result, phase=str(before.get("hookPhase", "")))


def _with_finished(
    before: Sequence[dict[str, Any]], tasks: Iterable[SyncTask], now: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Keep the results of objects that are gone since (pruned in an earlier wave)."""
    present = {identity(task.key) for task in tasks}
    return [result for result in before if _result_identity(result) not in present] + now


def _with_message(result: PruneResult, verdict: Health | None) -> PruneResult:
    return replace(result, message=verdict.message) if verdict and verdict.message else result


def _unserved(task: SyncTask, destination: str) -> SyncTask:
    kind = task.key.kind
    namespaced_name = f"{task.key.namespace or destination}/{task.key.name}"
    text = (
        f"The Kubernetes API could not find {kind.group}/{kind.kind} for requested resource "
        f'{namespaced_name}. Make sure the "{kind.kind}" CRD is installed on the destination '
        "cluster."
    )
    return _unfit(task, text)


def _why_invalid(task: SyncTask) -> str:
    """Return why a task was found unfit, in the words of an operation."""
    text = task.result.message if task.result else ""
    if task.resource.refusal or "CRD is installed" not in text:
        return text
    return (
        f"failed to discover server resources for group version {task.key.kind.api_version}: the"
        " server could not find the requested resource"
    )


def _unfit(task: SyncTask, text: str) -> SyncTask:
    """Return a task that was found unfit before anything was tried; it has no phase."""
    return replace(task, result=PruneResult("SyncFailed", text), phase="")


def _waiting(phase: str, tasks: Sequence[SyncTask]) -> str:
    rest_note = f" and {len(tasks) - 1} more resources" if len(tasks) > 1 else ""
    return f"waiting for {phase} {tasks[0]}{rest_note}"


def _failed(text: str, failed: Sequence[SyncTask], tasks: Sequence[SyncTask]) -> SyncOutcome:
    results = [task.result for task in failed if task.result]
    reasons = sorted({result.message for result in results if result.code == "SyncFailed"})
    reason = f", reason: {','.join(reasons)}" if reasons else ""  # an unhealthy object has none
    return _outcome("Failed", f"{text}{reason}", tasks)


def _outcome(phase: Phase, message: str, tasks: Sequence[SyncTask]) -> SyncOutcome:
    return SyncOutcome(phase, message, [_entry(task) for task in tasks if task.result is not None])


def _entry(task: SyncTask) -> dict[str, Any]:
    key, result = task.key, task.result
    return {
        "group": key.kind.group,
        "version": key.kind.version,
        "kind": key.kind.kind,
        "namespace": key.namespace,
        "name": key.name,
        "status": result.code if result else "",
        "message": result.message if result else "",
        "hookPhase": task.phase,
        "syncPhase": "Sync",
    }
