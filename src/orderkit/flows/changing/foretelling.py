"""
The plan of a change, as the change itself carries it: in its pull request and its answer.

A plan that cannot be made stops no change; why it could not is told in its place. A change that
would delete data is refused until it is said that this is meant.

Called by ``running``.
"""

from __future__ import annotations

from dataclasses import dataclass

from orderkit.core.errors import OrderkitError, RefusedError
from orderkit.core.objects import Manifest
from orderkit.core.plan import Code, Plan
from orderkit.core.plan.markdown import to_markdown
from orderkit.flows.liveorder import LiveOrder
from orderkit.flows.planning import forecast
from orderkit.flows.platform import Platform


@dataclass(frozen=True, slots=True)
class Foretold:
    """What a change will do, or why that is not known."""

    plan: Plan | None
    why_not: str = ""

    @property
    def markdown(self) -> str:
        """The plan for a pull request."""
        if self.plan is None:
            return f"No plan: {self.why_not}"
        return to_markdown(self.plan)


def foretell(platform: Platform, live: LiveOrder, old: Manifest, new: Manifest) -> Foretold:
    """Return what a step does; never raises for what only the plan needs."""
    try:
        return Foretold(forecast(platform, live.kit, old, new))
    except OrderkitError as error:
        return Foretold(None, str(error))


def refuse_losses(live: LiveOrder, told: Foretold) -> None:
    """
    Check that a change deletes no data.

    Raises:
        RefusedError: It does; what is lost is named.
    """
    dangers = told.plan.dangers if told.plan else ()
    lost = [danger.message for danger in dangers if danger.code is Code.DATA_LOSS]
    if lost:
        raise RefusedError(
            f"{live.entry.order}: {'; '.join(lost)}",
            hint="if that is meant, say so: --accept-loss; 'orderkit plan' shows everything",
        )
