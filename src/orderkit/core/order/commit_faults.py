"""
What is wrong with the files of an order's commit, and what that means for the order's state.

The one place that decides it: ``status``, ``list``, ``repair``, ``doctor`` and the live model all
say what this says, in the sentences of ``orderkit validate``. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal

from ground.names import CommitSha
from kubeschema.validate.findings import Finding, FindingSeverity, Reason
from kubeschema.validate.located_findings import Located, remedy, sentence, to_json
from orderkit.core.order.order_state import OrderState


@dataclass(frozen=True, slots=True)
class CommitCheck:
    """The findings about one commit of an order, errors first, of these hooks; at most 20."""

    commit: CommitSha
    findings: tuple[Located, ...] = ()

    @property
    def errors(self) -> tuple[Located, ...]:
        return tuple(entry for entry in self.findings if _is_error(entry))

    @property
    def hooks(self) -> tuple[Located, ...]:
        """The objects that are hooks of Argo CD."""
        return tuple(entry for entry in self.findings if _reason_of(entry) is Reason.HOOK)

    @property
    def state(self) -> Literal["success", "failure", "warning"]:
        """What the commit status says."""
        if self.errors:
            return "failure"
        return "warning" if self.findings else "success"

    @property
    def summary(self) -> str:
        """Return the first finding on one line."""
        if not self.findings:
            return "valid"
        more, text = len(self.findings) - 1, sentence(self.findings[0])
        return f"{text} (and {more} more)" if more else text

    def to_json(self) -> list[dict[str, Any]]:
        """Return the findings as ``orderkit validate --json`` has them."""
        return [to_json(entry) for entry in self.findings]


_PUSH = "; commit and push"


def weight(entry: Located) -> tuple[bool, bool]:
    """Return what sorts findings: errors first, of these hooks."""
    return not _is_error(entry), _reason_of(entry) is not Reason.HOOK


def _reason_of(entry: Located) -> StrEnum | None:
    return entry.about.reason if isinstance(entry.about, Finding) else None


def _is_error(entry: Located) -> bool:
    about = entry.about
    return isinstance(about, Finding) and about.severity is FindingSeverity.ERROR


def with_faults(state: OrderState, check: CommitCheck | None) -> OrderState:
    """
    Return the state with the faults of the commit that it is about as the reason.

    Argo CD delivers some faulty commits: such an order is Ready, and somebody should look at it.
    """
    if check is None or not check.errors or state.phase in ("Waiting", "Ending", "Ended"):
        return state
    if check.hooks:  # Argo CD calls an order Synced whose hooks it only runs later
        reason, advice = sentence(check.hooks[0]), remedy(check.hooks[0])
        return replace(state, phase="Failing", reason=reason, advice=advice)
    advice = f"{remedy(check.errors[0]).removesuffix(_PUSH)}{_PUSH}"
    if state.phase == "Ready":
        return replace(state, phase="Attention", reason=check.summary, advice=advice)
    if state.ready:  # something else asks for a look already
        return state
    # Argo CD calls it progress when the API server drops an unknown field at each sync.
    is_stuck = state.phase == "Delivering" and state.revision == check.commit
    phase = "Failing" if is_stuck else state.phase
    return replace(state, phase=phase, reason=check.summary, advice=advice)
