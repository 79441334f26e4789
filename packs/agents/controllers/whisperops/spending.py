"""
The meter's records: what an agent spent, which a station reads, and the odometer behind it.

``spend-<agent>`` changes only when a whole cent, the window, or whether it is measured changes.
While nothing can be measured, it keeps the last known amount with ``measured: "false"`` and the
reason; before the first measurement it has no amount. Both ConfigMaps are in the agent's namespace
and owned by its budget, so they are deleted with it.

Pure; called by ``metering``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from orderkit.controllers import (
    CONFIG_MAP,
    InvalidInputError,
    Kind,
    Manifest,
    ObjectKey,
    check_label,
    dig,
    metadata,
)
from whisperops.counting import Odometer

BUDGET = Kind("whisperops.io", "v1alpha1", "XAgentBudget")
METER = "spend-meter"
RECORD = "whisperops.io/record"
"""The label of the meter's records: ``spend`` or ``tokens``."""
SPEND, TOKENS = "spend", "tokens"
ODOMETER = "odometer"


@dataclass(frozen=True, slots=True)
class Budget:
    """What the meter reads of an XAgentBudget."""

    key: ObjectKey
    uid: str
    agent: str
    window_start: str
    window_start_s: float
    prices: tuple[str, str]
    """Namespace and name of the price table's ConfigMap."""

    def record(self, record: str) -> ObjectKey:
        return ObjectKey(CONFIG_MAP, f"{record}-{self.agent}", self.key.namespace)


def read_budget(manifest: Manifest, *, prices: tuple[str, str]) -> Budget:
    """
    Read a budget.

    The window begins at ``spec.windowStart``, or when the budget was created.

    Args:
        prices: The price table of a budget that names none.

    Raises:
        InvalidInputError: The agent's name or the window is invalid; neither reaches a query.
    """
    key = ObjectKey.of(manifest)
    agent = check_label(
        f"{key} spec.agentName", str(dig(manifest, "spec", "agentName", default=""))
    )
    start = dig(manifest, "spec", "windowStart") or metadata(manifest).get("creationTimestamp")
    start_s = _parse_time(f"{key} spec.windowStart", start).timestamp()
    reference = dig(manifest, "spec", "pricingRef", default={})
    table = (str(reference.get("namespace") or prices[0]), str(reference.get("name") or prices[1]))
    uid = str(metadata(manifest).get("uid", ""))
    return Budget(key, uid, agent, str(start), start_s, table)


def selector(agent: str, names: tuple[str, ...], range_s: int) -> str:
    """Return the PromQL of an agent's counters. `read_budget` has checked the agent's name."""
    return f'{{__name__=~"{"|".join(names)}",agent_name="{agent}"}}[{range_s}s]'


def measured_record(spent: Decimal, budget: Budget, odometer: Odometer) -> dict[str, str]:
    """Return the record of a measurement."""
    models = sorted({model for model, _ in odometer.tokens})
    return {
        "spentUsd": f"{spent:.2f}",
        "windowStart": budget.window_start,
        "measured": "true",
        "model": ",".join(models),
        "reason": "" if odometer.last else "no token counters of this agent yet",
    }


def unmeasured_record(before: Mapping[str, str], budget: Budget, reason: str) -> dict[str, str]:
    """Return the record while nothing can be measured: the last known amount of this window."""
    same_window = before.get("windowStart") == budget.window_start
    kept = {key: before[key] for key in ("spentUsd", "model") if same_window and key in before}
    flags = {"windowStart": budget.window_start, "measured": "false", "reason": reason}
    return {"model": "", **kept, **flags}


def record_manifest(budget: Budget, record: str, data: Mapping[str, str]) -> Manifest:
    """Return the ConfigMap of a record."""
    key = budget.record(record)
    owner = {**budget.key.to_json(), "uid": budget.uid}
    owner.pop("namespace", None)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {RECORD: record, "app.kubernetes.io/managed-by": METER},
            "ownerReferences": [owner],
        },
        "data": dict(data),
    }


def _parse_time(field: str, text: object) -> datetime:
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError as error:
        raise InvalidInputError(field, text, "is not an RFC 3339 time") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)
