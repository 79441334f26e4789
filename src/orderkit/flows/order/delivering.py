"""
Wait until one commit of an order is delivered and Ready, or say why it is not.

A later commit that contains it counts too, because other people continue to commit. An operation of
the Application on an older commit is ended, because it blocks newer commits.
"""

from __future__ import annotations

from collections.abc import Callable

from ground.names import CommitSha
from ground.objects.kube_objects import ObjectKey, dig
from orderkit.core.order import order_state
from orderkit.core.order.order_state import OrderState, short
from orderkit.flows.argocd.refreshing import StuckOperationEnder, application_key
from orderkit.flows.order.live_order import LiveOrder, delivered_xr, find_living, read_xr
from orderkit.flows.order.state_without_secrets import without_secrets
from orderkit.flows.order.tracing import WaitReport
from orderkit.flows.order.window_check import held_by_window
from orderkit.flows.platform import Platform, get_object
from orderkit.flows.waiting import until

OnState = Callable[[OrderState], object]


class _Watch:
    def __init__(
        self,
        platform: Platform,
        live: LiveOrder,
        xr: ObjectKey,
        commit: CommitSha,
        report: WaitReport,
    ) -> None:
        self._report = report
        self._platform, self._live, self._xr, self._commit = platform, live, xr, commit
        self._urging = StuckOperationEnder(platform, live.repository, commit)

    def look(self) -> OrderState:
        application = get_object(self._platform, application_key(self._live.entry.order))
        revision = str(dig(application, "status", "sync", "revision", default="") or "")
        at = CommitSha(revision) if self._urging.reached(revision) else self._commit
        if application is not None:
            self._urging.look(application)
        xr = get_object(self._platform, self._xr)
        state = order_state.judge(application, xr, head=at, ending=False)
        state = without_secrets(self._platform, xr, state)
        state = held_by_window(self._platform, self._live.kit, state)
        return self._report(state, self._xr if xr else None)


def await_commit(
    platform: Platform,
    order: str,
    commit: CommitSha,
    *,
    timeout_s: float,
    on_state: OnState = lambda _: None,
    on_wait: Callable[[str], object] | None = None,
    is_over: Callable[[OrderState], bool] | None = None,
) -> OrderState:
    """
    Wait until the order is Ready at a commit, or at a later one that contains it.

    Args:
        is_over: Says that waiting does not help; then the state is returned as it is. None: that an
            order which is paused or held is an error.
        on_wait: Told again and again what is waited for.

    Raises:
        IncompleteError: It timed out, or the order is paused; the message has the first failing
            reason.
        NotFoundError, RefusedError: The order is gone or ending.
    """
    live = find_living(platform, order)
    xr = ObjectKey.of(delivered_xr(live, read_xr(platform, live, commit).xr))
    watch = _Watch(platform, live, xr, commit, WaitReport(platform, on_wait))
    return until(
        platform.clock,
        watch.look,
        lambda state: state.ready or (is_over is not None and is_over(state)),
        is_hopeless=lambda state: state.paused or state.is_held or state.lacks_function,
        timeout_s=timeout_s,
        goal=f"{order}: becoming Ready at {short(commit)}",
        why_not=lambda state: f"{state.phase}: {state.reason}",
        advice=lambda state: state.advice,
        on_look=on_state,
    )
