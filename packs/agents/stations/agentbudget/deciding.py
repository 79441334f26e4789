"""
Station ``decide``: may the agent continue? The status that it writes is the only source for that.

Pure arithmetic on what ``fetch-spend`` put into the context. Money is decimal and compared
unrounded; only the numbers for people are rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from orderkit.stations import StationRequest, StationResponse

from .spending import CONTEXT
from .targets import targets_of

PAUSED = "whisperops.io/paused"
"""The context key of the decision, which ``render`` reads."""
_WITHIN = "WithinBudget"
_CENT, _TEN_THOUSANDTH = Decimal("0.01"), Decimal("0.0001")


@dataclass(frozen=True, slots=True)
class _Account:
    """A budget and what was spent of it."""

    budget: Decimal
    spent: Decimal | None
    """None: nothing was ever measured."""

    @property
    def exhausted(self) -> bool:
        return self.spent is not None and self.spent >= self.budget

    def status(self) -> dict[str, Any]:
        """Return the numbers of the status, without those that are unknown."""
        numbers: dict[str, Any] = {"budget": f"{_rounded(self.budget, _CENT):f}"}
        if self.spent is not None:
            ratio = self.spent / self.budget
            numbers |= {
                "spentUsd": float(_rounded(self.spent, _TEN_THOUSANDTH)),
                "ratio": float(_rounded(ratio, _TEN_THOUSANDTH)),
                "ratioPct": f"{_rounded(ratio * 100, _CENT):f}%",
            }
        return numbers


def decide(request: StationRequest) -> StationResponse:
    """Write spend, ratio, ``paused`` and the cause into the status, and pass the decision on."""
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
    _add_condition(response, account, paused=paused)
    return response


def _cause(request: StationRequest, account: _Account, *, paused: bool) -> str:
    if paused:
        return "budget-exhausted"
    if any(target.unreachable(request) for target in targets_of(request.xr)):
        return "agent-unreachable"
    return "unknown" if account.spent is None else "running"


def _add_condition(response: StationResponse, account: _Account, *, paused: bool) -> None:
    if account.spent is None:
        response.add_condition(_WITHIN, "Unknown", "NotMeasured", "nothing was measured yet")
    elif account.exhausted:
        consequence = "the agent is paused" if paused else "only watched, the agent goes on"
        response.add_condition(_WITHIN, "False", "BudgetExhausted", consequence)
    else:
        response.add_condition(_WITHIN, "True", "WithinBudget")


def _rounded(value: Decimal, unit: Decimal) -> Decimal:
    return value.quantize(unit, rounding=ROUND_HALF_UP)
