"""
Station ``validate-dataset``: is the dataset in the registry, and ready?

The record (XDataset) is a required resource, declared before any branch. Without it a new agent is
refused; one that lives keeps the facts of its last good round, which its status holds, and is
rendered from them: a CSV that leaves the bucket must not take 22 parts with it. It is then not
Ready, and the condition ``DatasetFound`` says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderkit.core.crossplane.station import Ready, StationRequest, StationResponse

from .agent import DATASET

_RECORD = "dataset"
_FOUND = "DatasetFound"


def validate_dataset(request: StationRequest) -> StationResponse:
    """Put the dataset's facts into context and status, or refuse a new order for want of it."""
    response = StationResponse.to(request)
    name = request.xr["spec"]["datasetRef"]["name"]
    response.require(_RECORD, "whisperops.io/v1alpha1", "XDataset", match_name=name)
    if not request.is_answered(_RECORD):
        return response
    record = request.required_resource(_RECORD)
    reason, message = _why_not(name, record)
    facts = _facts(name, record or {}) if not reason else _known(request)
    if not facts:
        response.fatal(message, reason=reason)
        return response
    if reason:
        told = message
        if facts["name"] != name:
            told = f"{message}; the agent still serves {facts['name']}"
        response.add_condition(_FOUND, "False", reason, told)
        response.desired.composite.ready = Ready.FALSE
    else:
        response.add_condition(_FOUND, "True", "Found")
    response.context[DATASET] = facts
    response.merge_status({"dataset": facts})
    return response


def _why_not(name: str, record: Mapping[str, Any] | None) -> tuple[str, str]:
    """Say why a dataset cannot be used, as reason and message; empty if it can."""
    if record is None:
        return "DatasetNotFound", f"dataset {name} is not in the registry"
    if not (record.get("status") or {}).get("ready"):
        return "DatasetNotReady", f"dataset {name} is not ready"
    if not (record.get("spec") or {}).get("sizeBytes"):
        return "DatasetNotReady", f"dataset {name} has no size"
    return "", ""


def _facts(name: str, record: Mapping[str, Any]) -> dict[str, Any]:
    spec = record["spec"]
    return {
        "name": name,
        "displayName": str(spec.get("displayName") or name),
        "gcsPath": str(spec["gcsPath"]),
        "sizeBytes": int(spec["sizeBytes"]),
    }


def _known(request: StationRequest) -> dict[str, Any]:
    """Return the facts of the last good round, if there was one."""
    known: dict[str, Any] = (request.xr.get("status") or {}).get("dataset") or {}
    return {**known, "sizeBytes": int(known["sizeBytes"])} if known.get("sizeBytes") else {}
