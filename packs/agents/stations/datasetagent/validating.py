"""
Station ``validate-dataset``: is the dataset in the registry, and ready?

The record (XDataset) is a required resource, declared before any branch. Without it, a new agent
is refused. An existing agent is rendered from the facts of its last good round, which are in its
status: a CSV that disappears from the bucket must not delete 22 parts. The agent is then not Ready,
and the condition ``DatasetFound`` says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orderkit.stations import Ready, StationRequest, StationResponse

from .agent import DATASET

_RECORD = "dataset"
_FOUND = "DatasetFound"


def validate_dataset(request: StationRequest) -> StationResponse:
    """Put the dataset's facts into context and status, or refuse a new order without a dataset."""
    response = StationResponse.to(request)
    name = request.xr["spec"]["datasetRef"]["name"]
    response.require(_RECORD, "whisperops.io/v1alpha1", "XDataset", match_name=name)
    if not request.is_answered(_RECORD):
        return response
    record = request.required_resource(_RECORD)
    reason, message = _problem(name, record)
    facts = _facts(name, record or {}) if not reason else _last_facts(request)
    if not facts:
        response.fatal(message, reason=reason)
        return response
    if reason:
        if facts["name"] != name:
            message = f"{message}; the agent still serves {facts['name']}"
        response.add_condition(_FOUND, "False", reason, message)
        response.desired.composite.ready = Ready.FALSE
    else:
        response.add_condition(_FOUND, "True", "Found")
    response.context[DATASET] = facts
    response.merge_status({"dataset": facts})
    return response


def _problem(name: str, record: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return why a dataset cannot be used, as reason and message; empty if it can."""
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


def _last_facts(request: StationRequest) -> dict[str, Any]:
    """Return the facts of the last good round; empty if there was none."""
    facts: dict[str, Any] = (request.xr.get("status") or {}).get("dataset") or {}
    return {**facts, "sizeBytes": int(facts["sizeBytes"])} if facts.get("sizeBytes") else {}
