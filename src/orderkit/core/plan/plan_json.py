"""
A plan as data: the JSON that scripts read, and the exit code that CI acts on.

The outer structure is that of crossplane-diff's output (0.6 and later): ``summary``, ``changes``,
``xrs``, ``errors`` with the same names and nesting, so that tools which read its output can read
ours (taken from its documentation, August 2026). Everything else is under our own key ``plan``.
Exit codes are those of every Orderkit command, not crossplane-diff's: 0 nothing changes, 10
something changes, 4 the change would be refused, 1 the plan could not be made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ground import errors
from ground.objects.kube_objects import Kind, Manifest, metadata
from orderkit.core.plan.assembly import Fault
from orderkit.core.plan.comparison import Action, Plan, ResourceChange, shown_manifest
from orderkit.core.plan.cost import costs_json


def exit_code(plan: Plan) -> int:
    """Return the exit code of the command; 1 is for errors, which make no plan."""
    if plan.faults:
        return errors.RefusedError.exit_code
    changes = plan.changes or plan.fields
    return errors.EXIT_DIFFERS if changes else errors.EXIT_DONE


def to_json(plan: Plan) -> dict[str, Any]:
    """Return a plan as data. Deterministic."""
    changes = [entry for change in plan.changes for entry in _entries(change)]
    summary = {
        "added": plan.count(Action.ADDED) + plan.count(Action.REPLACED),
        "modified": plan.count(Action.CHANGED),
        "removed": plan.count(Action.REMOVED) + plan.count(Action.REPLACED),
    }
    errors = [_error(plan, fault) for fault in plan.faults]
    status = "error" if errors else "changed" if changes else "unchanged"
    xr = {"xr": _identity(plan.after.xr), "status": status, "summary": summary, "changes": changes}
    return {
        "summary": summary,
        "changes": changes,
        "xrs": [{**xr, **({"errors": errors} if errors else {})}],
        **({"errors": errors} if errors else {}),
        "plan": plan_json(plan),
    }


def plan_json(plan: Plan) -> dict[str, Any]:
    """Return what crossplane-diff's format cannot express: fields, waves, dangers, unknowns."""
    return {
        "summary": plan.summary,
        "ready": None if plan.readiness == "not known" else plan.readiness == "Ready",
        "approval": plan.approval or None,
        "paused": _sentences(plan.paused),
        "pinned": _sentences(plan.after.pinned),
        "drift": [
            {
                "path": drift.path,
                "message": drift.message,
                "fields": [field.to_json() for field in drift.fields],
            }
            for drift in plan.drift
        ],
        "unchanged": plan.unchanged,
        "kept": [
            {"path": path, **_identity(manifest)} for path, manifest in sorted(plan.kept.items())
        ],
        "fields": [difference.to_json() for difference in plan.fields],
        "status": [difference.to_json() for difference in plan.status],
        "settings": [
            {"path": path, "value": setting.value, "layer": setting.layer}
            for path, setting in plan.after.settings.items()
        ],
        "settingChanges": [
            {**change.field.to_json(), "oldLayer": change.old_layer, "layer": change.layer}
            for change in plan.settings
        ],
        "resources": [
            {
                "path": change.path,
                "action": change.action.value,
                **_identity(change.manifest),
                "fields": [field.to_json() for field in change.fields],
            }
            for change in plan.changes
        ],
        "waves": [list(wave) for wave in plan.waves],
        "dangers": [
            {"path": danger.path, "code": danger.code.value, "message": danger.message}
            for danger in plan.dangers
        ],
        "faults": [_fault(fault) for fault in plan.faults],
        "unknowns": list(plan.unknowns),
        "costs": costs_json(plan.costs) if plan.costs else None,
    }


def _sentences(by_path: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"path": path, "message": text} for path, text in sorted(by_path.items())]


def _fault(fault: Fault) -> dict[str, str]:
    return {
        "path": fault.path,
        "code": str(fault.code),
        "field": fault.field,
        "value": fault.value,
        "rule": fault.rule,
        "message": fault.message,
        "hint": fault.hint,
    }


def _entries(change: ResourceChange) -> Iterator[dict[str, Any]]:
    """Yield a change in crossplane-diff's format. A replacement is a removal and an addition."""
    old, new = change.old, change.new
    if old is not None and new is not None and change.action is Action.CHANGED:
        diff = {"old": shown_manifest(old), "new": shown_manifest(new)}
        yield {"type": "modified", **_identity(new), "diff": diff}
        return
    if old is not None:
        yield {"type": "removed", **_identity(old), "diff": {"spec": shown_manifest(old)}}
    if new is not None:
        yield {"type": "added", **_identity(new), "diff": {"spec": shown_manifest(new)}}


def _error(plan: Plan, fault: Fault) -> dict[str, Any]:
    xr = plan.after.xr
    error: dict[str, Any] = {
        "resourceID": f"{Kind.of(xr).kind}/{metadata(xr).get('name', '')}",
        "message": f"{fault.field}: {fault.message}" if fault.field else fault.message,
    }
    if fault.field:
        about = plan.after.resources.get(fault.path, xr)
        failure = {"type": str(fault.code), "field": fault.field, "message": fault.message}
        error["validationFailures"] = [
            {**_identity(about), "status": "invalid", "errors": [failure]}
        ]
    return error


def _identity(manifest: Manifest) -> dict[str, str]:
    meta, kind = metadata(manifest), Kind.of(manifest)
    identity = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": str(meta.get("name", "")),
    }
    return {**identity, "namespace": meta["namespace"]} if meta.get("namespace") else identity
