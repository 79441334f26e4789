"""
Station ``fetch-spend``: read what the agent has spent from the spend meter's record.

No query and no clock here: the meter queries Prometheus and writes a ConfigMap ``spend-<agent>``
into the agent's namespace; this station reads it as a required resource. While nothing can be
measured, the last known amount of the same window stays, from the record or else from the XR's own
status, and the condition ``Measured`` says so: an outage neither pauses an agent nor resets its
spend to 0.
"""

from __future__ import annotations

import re
from typing import Any

from orderkit.stations import StationRequest, StationResponse

CONTEXT = "whisperops.io/spend"
"""The context key of the spend, which later stations read."""
MEASURED = "Measured"
_RECORD = "spend"
_DOLLARS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?\Z")


def fetch_spend(request: StationRequest) -> StationResponse:
    """Put the spend and its window into the context; a missing record is no reason to refuse."""
    response = StationResponse.to(request)
    response.require(
        _RECORD,
        "v1",
        "ConfigMap",
        match_name=f"spend-{request.xr['spec']['agentName']}",
        namespace=request.xr["metadata"]["namespace"],
    )
    if not request.is_answered(_RECORD):
        return response
    record = request.required_resource(_RECORD)
    data: dict[str, Any] = (record or {}).get("data") or {}
    reason, message = _problem(data, missing=record is None)
    if reason:
        response.add_condition(MEASURED, "False", reason, message)
        response.context[CONTEXT] = _last_known(request, data)
    else:
        response.add_condition(MEASURED, "True", "Measured", str(data.get("reason") or ""))
        response.context[CONTEXT] = _spend(data)
    return response


def _last_known(request: StationRequest, data: dict[str, Any]) -> dict[str, Any]:
    """Return the last amount of the same window, from the record or else from the status."""
    if _DOLLARS.match(str(data.get("spentUsd"))):
        return _spend(data)
    status = request.xr.get("status") or {}
    if data.get("windowStart", status.get("windowStart")) != status.get("windowStart"):
        return {"windowStart": data["windowStart"]}
    return _spend(status)


def _spend(data: dict[str, Any]) -> dict[str, Any]:
    return {key: data[key] for key in ("spentUsd", "windowStart") if data.get(key) is not None}


def _problem(data: dict[str, Any], *, missing: bool) -> tuple[str, str]:
    """Return why a record has no valid spend, as reason and message; empty if it has one."""
    if missing:
        return "NoRecord", "the spend meter has not written a record yet"
    if data.get("measured") != "true":
        return "NotMeasured", str(data.get("reason") or "the spend meter does not say why")
    if not _DOLLARS.match(str(data.get("spentUsd"))):
        return "RecordBroken", "the record's spentUsd is not an amount"
    return "", ""
