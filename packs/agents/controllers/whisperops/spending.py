"""
The meter's records: what an agent spent, as a station reads it, and the odometer behind it.

``spend-<agent>`` changes only when a whole cent, the window or the verdict does. While nothing can
be measured it keeps the last known amount and says ``measured: "false"`` with the reason; it has
no amount at all until a first one was measured. Both ConfigMaps lie in the agent's namespace and
belong to its budget, so they end with it.

Pure; called by ``metering``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from orderkit.core.errors import InvalidInputError
from orderkit.core.names import check_label
from orderkit.core.objects.kube_objects import CONFIG_MAP, Kind, Manifest, ObjectKey, dig, metadata
from whisperops.counting import Odometer

BUDGET = Kind("whisperops.io", "v1alpha1", "XAgentBudget")
METER = "spend-meter"
RECORD = "whisperops.io/record"
"""The label of what the meter writes: ``spend`` or ``tokens``."""
SPEND, TOKENS = "spend", "tokens"
ODOMETER = "odometer"


@dataclass(frozen=True, slots=True)
class Budget:
    """What the meter needs of an XAgentBudget."""

    key: ObjectKey
    uid: str
    agent: str
    window_start: str
    begun_s: float
    prices: tuple[str, str]
    """Namespace and name of the ConfigMap with the price table."""

    def record(self, record: str) -> ObjectKey:
        return ObjectKey(CONFIG_MAP, f"{record}-{self.agent}", self.key.namespace)


def read_budget(manifest: Manifest, *, prices: tuple[str, str]) -> Budget:
    """
    Read a budget; `prices` is the table of those that name none.

    The window begins at ``spec.windowStart`` if there is one, else when the budget was made.

    Raises:
        InvalidInputError: The agent's name or the window is none; nothing of it reaches a query.
    """
    key = ObjectKey.of(manifest)
    agent = check_label(
        f"{key} spec.agentName", str(dig(manifest, "spec", "agentName", default=""))
    )
    said = dig(manifest, "spec", "windowStart") or metadata(manifest).get("creationTimestamp")
    begun = _moment(f"{key} spec.windowStart", said)
    reference = dig(manifest, "spec", "pricingRef", default={})
    named = (str(reference.get("namespace") or prices[0]), str(reference.get("name") or prices[1]))
    uid = str(metadata(manifest).get("uid", ""))
    return Budget(key, uid, agent, str(said), begun.timestamp(), named)


def selector(agent: str, names: tuple[str, ...], range_s: int) -> str:
    """Return the PromQL of an agent's counters; the name was checked when the budget was read."""
    return f'{{__name__=~"{"|".join(names)}",agent_name="{agent}"}}[{range_s}s]'


def measured(spent: Decimal, budget: Budget, odometer: Odometer) -> dict[str, str]:
    """Return the record of a measurement."""
    models = sorted({model for model, _ in odometer.tokens})
    return {
        "spentUsd": f"{spent:.2f}",
        "windowStart": budget.window_start,
        "measured": "true",
        "model": ",".join(models),
        "reason": "" if odometer.last else "no token counters of this agent yet",
    }


def unmeasured(before: Mapping[str, str], budget: Budget, reason: str) -> dict[str, str]:
    """Return the record while nothing can be measured: the last known amount of this window."""
    same = before.get("windowStart") == budget.window_start
    kept = {key: before[key] for key in ("spentUsd", "model") if same and key in before}
    flags = {"windowStart": budget.window_start, "measured": "false", "reason": reason}
    return {"model": "", **kept, **flags}


def manifest(budget: Budget, record: str, data: Mapping[str, str]) -> Manifest:
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


def _moment(field: str, said: object) -> datetime:
    try:
        found = datetime.fromisoformat(str(said))
    except ValueError as error:
        raise InvalidInputError(field, said, "is no RFC 3339 time") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)
