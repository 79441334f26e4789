"""
Station ``fetch-spend``: read what the agent has spent from the record that the spend meter keeps.

No query and no clock here: the meter asks Prometheus and writes a ConfigMap ``spend-<agent>``
into the agent's namespace; this station sees it as a required resource. Where nothing can be
measured, the last known amount of the same window stays, from the record or else from the XR's own
status, and the condition ``Measured`` says so: an outage neither pauses an agent nor invents a
zero.
"""

from __future__ import annotations

import re
from typing import Any

from orderkit.core.crossplane.station import StationRequest, StationResponse

CONTEXT = "whisperops.io/spend"
"""What the stations after this one find it under."""
MEASURED = "Measured"
_RECORD = "spend"
_DOLLARS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?\Z")


def fetch_spend(request: StationRequest) -> StationResponse:
    """Put what was spent, and since when, into the context; never refuse for want of a record."""
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
    found = request.required_resource(_RECORD)
    data: dict[str, Any] = (found or {}).get("data") or {}
    reason, message = _why_not(data, missing=found is None)
    if reason:
        response.add_condition(MEASURED, "False", reason, message)
        response.context[CONTEXT] = _last_known(request, data)
    else:
        response.add_condition(MEASURED, "True", "Measured", str(data.get("reason") or ""))
        response.context[CONTEXT] = _of(data)
    return response


def _last_known(request: StationRequest, data: dict[str, Any]) -> dict[str, Any]:
    """Return the amount that the record still holds, else the status's, of the same window."""
    if _DOLLARS.match(str(data.get("spentUsd"))):
        return _of(data)
    status = request.xr.get("status") or {}
    if data.get("windowStart", status.get("windowStart")) != status.get("windowStart"):
        return {"windowStart": data["windowStart"]}
    return _of(status)


def _of(found: dict[str, Any]) -> dict[str, Any]:
    return {key: found[key] for key in ("spentUsd", "windowStart") if found.get(key) is not None}


def _why_not(data: dict[str, Any], *, missing: bool) -> tuple[str, str]:
    """Say why a record tells no spend, as reason and message; empty if it tells one."""
    if missing:
        return "NoRecord", "the spend meter has not written a record yet"
    if data.get("measured") != "true":
        return "NotMeasured", str(data.get("reason") or "the spend meter does not say why")
    if not _DOLLARS.match(str(data.get("spentUsd"))):
        return "RecordBroken", "the record's spentUsd is no amount"
    return "", ""
