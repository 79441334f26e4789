"""
Station ``decide``: may the agent go on? The status it writes is the only truth about that.

Pure arithmetic on what ``fetch-spend`` put into the context. Money is decimal, and compared
unrounded; ratios are rounded for people only.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from orderkit.core.crossplane.station import StationRequest, StationResponse

from .spending import CONTEXT
from .targets import targets_of

PAUSED = "whisperops.io/paused"
"""What ``render`` finds the decision under."""
_WITHIN = "WithinBudget"
_CENT, _FINE = Decimal("0.01"), Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class _Account:
    """What was spent of what."""

    budget: Decimal
    spent: Decimal | None
    """None: nothing was ever measured."""

    @property
    def exhausted(self) -> bool:
        return self.spent is not None and self.spent >= self.budget

    def status(self) -> dict[str, Any]:
        """Return the numbers of the status; what is not known is not written."""
        found: dict[str, Any] = {"budget": f"{_rounded(self.budget, _CENT):f}"}
        if self.spent is not None:
            ratio = self.spent / self.budget
            found |= {
                "spentUsd": float(_rounded(self.spent, _FINE)),
                "ratio": float(_rounded(ratio, _FINE)),
                "ratioPct": f"{_rounded(ratio * 100, _CENT):f}%",
            }
        return found


def decide(request: StationRequest) -> StationResponse:
    """Write spend, ratio, ``paused`` and its cause into the status, and hand the decision on."""
    response = StationResponse.to(request)
    spend = request.context.get(CONTEXT)
    if spend is None:
        response.fatal("no spend in the context: step fetch-spend must come before this one")
        return response
    spec = request.xr["spec"]
    account = _Account(
        Decimal(str(spec["budgetUsd"])),
        Decimal(str(spend["spentUsd"])) if "spentUsd" in spend else None,
    )
    paused = account.exhausted and spec.get("enforcement") != "monitor-only"
    window = {key: spend[key] for key in ("windowStart",) if key in spend}
    cause = _cause(request, account, paused=paused)
    response.merge_status({**account.status(), **window, "paused": paused, "cause": cause})
    response.context[PAUSED] = paused
    _tell(response, account, paused=paused)
    return response


def _cause(request: StationRequest, account: _Account, *, paused: bool) -> str:
    if paused:
        return "budget-exhausted"
    if any(target.unreachable(request) for target in targets_of(request.xr)):
        return "agent-unreachable"
    return "unknown" if account.spent is None else "running"


def _tell(response: StationResponse, account: _Account, *, paused: bool) -> None:
    if account.spent is None:
        response.add_condition(_WITHIN, "Unknown", "NotMeasured", "nothing was measured yet")
    elif account.exhausted:
        done = "the agent is paused" if paused else "only watched, the agent goes on"
        response.add_condition(_WITHIN, "False", "BudgetExhausted", done)
    else:
        response.add_condition(_WITHIN, "True", "WithinBudget")


def _rounded(value: Decimal, to: Decimal) -> Decimal:
    return value.quantize(to, rounding=ROUND_HALF_UP)
