"""
Wait for an order on behalf of a program, which wants to know exactly why waiting is over.

Each way in which an order does not get where it should is an error with an exit code of its own
(``ground.errors``), so that a pipeline can branch on it. `order` and `change` wait in ``placing``
and `until_ready`, for people.

`await_commit` waits until one commit of an order is delivered and Ready, or says why it is not. A
later commit that contains it counts too, because other people continue to commit. An operation of
the Application on an older commit is ended, because it blocks newer commits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

from ground.errors import (
    AccessError,
    ApprovalError,
    EndedError,
    InvalidInputError,
    NotFoundError,
    NotReadyError,
    OrderkitError,
    StuckOrderError,
    UnknownOrderError,
)
from ground.names import CommitSha
from ground.objects.kube_objects import ObjectKey, dig
from orderkit.core.order import ledger, order_state
from orderkit.core.order.order_state import OrderState, short
from orderkit.flows.argocd.commit_pinning import pinned_commit
from orderkit.flows.argocd.refreshing import RepeatedRefresh, StuckOperationEnder, application_key
from orderkit.flows.order import order_report
from orderkit.flows.order.closer_look import without_secrets
from orderkit.flows.order.ledger_records import begun_end
from orderkit.flows.order.live_order import (
    LiveOrder,
    delivered_xr,
    find_commit,
    find_living,
    read_xr,
)
from orderkit.flows.order.order_report import OrderReport, held_by_window
from orderkit.flows.order.tracing import WaitReport
from orderkit.flows.platform import Platform, get_object, ledger_snapshot
from orderkit.flows.repeating import until
from orderkit.ports.clock import Clock

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
        application = get_object(self._platform.cluster, application_key(self._live.entry.order))
        revision = str(dig(application, "status", "sync", "revision", default="") or "")
        at = CommitSha(revision) if self._urging.reached(revision) else self._commit
        if application is not None:
            self._urging.look(application)
        xr = get_object(self._platform.cluster, self._xr)
        state = order_state.judge(application, xr, head=at, ending=False)
        state = without_secrets(self._platform, xr, state)
        state = held_by_window(self._platform.clock, self._live.kit, state)
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


Goal = Literal["ready", "gone", "commit"]
FAILING_S = 60.0
"""How long waiting goes on while an order fails: some failures pass."""
OnWait = Callable[[str], object] | None


@dataclass(frozen=True, slots=True)
class WaitRequest:
    """What to wait for, and how long."""

    order: str
    goal: Goal = "ready"
    commit: str = ""
    """For the goal ``commit``: its id, whole or shortened."""
    timeout_s: float = 1_200.0
    failing_s: float = FAILING_S
    """Give up once the order was Failing for so long without a break."""


@dataclass(frozen=True, slots=True)
class Waited:
    """What was reached; `state` is None if the order is gone."""

    order: str
    goal: Goal
    state: OrderState | None
    tombstone: str = ""
    """Its path in the ledger, if the order is gone."""


def wait_request(order: str, goal: str, *, timeout_s: float, failing_s: float) -> WaitRequest:
    """
    Read what to wait for: ``ready``, ``gone`` or ``commit=SHA``.

    Raises:
        InvalidInputError: It is something else.
    """
    word, _, commit = goal.partition("=")
    match word, commit:
        case ("ready" | "gone" | "commit") as known_word, _ if (known_word == "commit") == bool(
            commit
        ):
            return WaitRequest(order, known_word, commit, timeout_s, failing_s)
    raise InvalidInputError("--for", goal, "is not ready, gone or commit=SHA", hint="--for ready")


def wait(platform: Platform, request: WaitRequest, *, on_wait: OnWait = None) -> Waited:
    """
    Wait until an order is where the request wants it. Writes nothing, but may refresh Argo CD.

    Raises:
        IncompleteError: Not within `timeout_s`.
        StuckOrderError: It fails, is paused, or is held back by a maintenance window.
        ApprovalError: Somebody has to agree first.
        EndedError: It has ended, or its end has begun; not for the goal ``gone``.
        UnknownOrderError: There is no such order.
        InvalidInputError: Its ``main`` has no such commit.
    """
    if request.goal == "gone":
        return _gone(platform, request, on_wait)
    if request.goal == "commit":
        return _delivered(platform, request, on_wait)
    is_over = FailsTooLong(platform.clock, request.failing_s)
    report = until_ready(
        platform, request.order, timeout_s=request.timeout_s, is_over=is_over, on_wait=on_wait
    )
    check_ready(report)
    return Waited(request.order, "ready", report.state)


def report_of(platform: Platform, order: str) -> OrderReport:
    """
    Report an order. One whose end has begun is reported, too.

    Raises:
        EndedError, UnknownOrderError: The ledger has none.
    """
    try:
        return order_report.status(platform, order)
    except NotFoundError:
        paths = ledger_snapshot(platform).blobs
        if not ledger.ending_order(paths, order):
            _check_living(paths, order)
        raise


def _check_living(paths: Collection[PurePosixPath], order: str) -> None:
    try:
        order_report.find(order, paths)
    except NotFoundError as error:
        missing = EndedError if ledger.tombstones(paths, order) else UnknownOrderError
        raise missing(str(error), hint=error.hint) from error


def check_ready(report: OrderReport) -> None:
    """
    Check that an order is Ready.

    Raises:
        StuckOrderError, ApprovalError, EndedError, NotReadyError: It is not, for this reason.
    """
    if not report.state.ready:
        raise state_error(report.entry.order, report.state, report.row().remedy)


def state_error(order: str, state: OrderState, remedy: str = "") -> OrderkitError:
    """Return the error that says why an order is not Ready."""
    advice = remedy or state.advice or f"see 'orderkit trace {order}'"
    text = f"{order} is not Ready: {state.phase}" + (f": {state.reason}" if state.reason else "")
    if state.phase == "Waiting":
        return ApprovalError(f"{order} {state.reason}", hint=advice)
    if state.phase in ("Ending", "Ended"):
        return EndedError(f"{order} is ending", hint=advice)
    if _is_stuck(state) or state.phase == "Failing":
        return StuckOrderError(text, hint=advice)
    return NotReadyError(text, hint=f"wait for it: orderkit wait {order} --for ready")


def _is_stuck(state: OrderState) -> bool:
    return state.paused or state.is_held


@dataclass(slots=True)
class FailsTooLong:
    """Says when waiting does not help any more. Failing may pass, so it gets a while."""

    clock: Clock
    failing_s: float = FAILING_S
    _since_s: float | None = None

    def __call__(self, state: OrderState) -> bool:
        if state.lacks_function:
            return True
        if state.phase != "Failing":
            self._since_s = None
            return state.phase in ("Waiting", "Ending") or _is_stuck(state)
        now_s = self.clock.monotonic_s()
        if self._since_s is None:
            self._since_s = now_s
        return now_s - self._since_s >= self.failing_s


def until_ready(
    platform: Platform,
    order: str,
    *,
    timeout_s: float,
    is_over: Callable[[OrderState], bool] = lambda _: False,
    is_hopeless: Callable[[OrderState], bool] = lambda _: False,
    on_wait: OnWait,
) -> OrderReport:
    """
    Look at an order until it is Ready, or until `is_over`; return what was seen last.

    Raises:
        IncompleteError: `timeout_s` passed, or waiting `is_hopeless`.
        EndedError, UnknownOrderError: See `report_of`.
    """
    asking, tell = RepeatedRefresh(platform.cluster, platform.clock), WaitReport(platform, on_wait)

    def look() -> OrderReport:
        report = report_of(platform, order)
        if asking.is_due() and (behind := _behind(platform, report)):
            with suppress(AccessError):  # whoever only waits may not be allowed to
                asking.look(behind)
        return replace(report, state=tell(report.state, report.xr))

    return until(
        platform.clock,
        look,
        lambda report: report.state.ready or is_over(report.state),
        is_hopeless=lambda report: is_hopeless(report.state),
        timeout_s=timeout_s,
        goal=f"{order}: becoming Ready",
        why_not=lambda report: f"{report.state.phase}: {report.state.reason}",
        advice=lambda report: report.row().remedy,
    )


def _behind(platform: Platform, report: OrderReport) -> str:
    """Name the Application that has not taken up what Git has: its refresh may have been lost."""
    state, entry = report.state, report.entry
    team = ledger.team_application(entry.team)
    if state.phase == "Written":
        return team
    if state.phase != "Delivering" or state.revision == state.head:
        return ""
    pinned = ledger.delivered_commit(report.sources.application)
    if pinned in (None, state.head):
        return entry.order
    return team if pinned_commit(platform, entry) != pinned else ""


def _delivered(platform: Platform, request: WaitRequest, on_wait: OnWait) -> Waited:
    """Wait until a commit, or one that contains it, is Ready."""
    is_stuck = FailsTooLong(platform.clock, request.failing_s)
    before = report_of(platform, request.order)
    if before.state.phase in ("Waiting", "Ending"):
        check_ready(before)
    live = find_living(platform, request.order)
    commit = CommitSha(find_commit(platform.forge, live, request.commit, field="--for commit").id)

    def is_over(state: OrderState) -> bool:
        if not state.ready:  # has its end begun, or come, meanwhile?
            paths = ledger_snapshot(platform).blobs
            if state.phase == "Written" or ledger.ending_order(paths, request.order):
                report = report_of(platform, request.order)
                if report.state.phase == "Ending":
                    check_ready(report)
        return is_stuck(state)

    state = await_commit(
        platform,
        request.order,
        commit,
        timeout_s=request.timeout_s,
        on_wait=on_wait,
        is_over=is_over,
    )
    if not state.ready:
        raise state_error(f"{request.order} at {short(commit)}", state)
    return Waited(request.order, "commit", state)


# --- gone


@dataclass(frozen=True, slots=True)
class _End:
    """How far the end of an order is; `tombstone` is empty until it has ended."""

    tombstone: str = ""
    why_not: str = ""


def _gone(platform: Platform, request: WaitRequest, on_wait: OnWait) -> Waited:
    """Wait until the ledger has the tombstone of an order, and nothing else of it."""
    last: tuple[CommitSha | None, _End] | None = None

    def look() -> _End:
        """Read the ledger again only if it moved: it may have ten thousand orders."""
        nonlocal last
        head = platform.forge.head(platform.ledger)
        if last is None or last[0] != head:
            last = head, _end_of(platform, request.order)
        return last[1]

    end = until(
        platform.clock,
        look,
        lambda end: bool(end.tombstone),
        timeout_s=request.timeout_s,
        goal=f"{request.order}: being gone",
        why_not=lambda end: end.why_not,
        on_wait=on_wait,
    )
    return Waited(request.order, "gone", None, end.tombstone)


def _end_of(platform: Platform, order: str) -> _End:
    paths = ledger_snapshot(platform).blobs
    ending = ledger.ending_order(paths, order)
    if ending:
        end = begun_end(platform, ending)
        step = end.step if end else "closing"
        return _End(why_not=f"its end is at the step '{step}'")
    if ledger.living_order(paths, order):
        return _End(why_not=f"nobody has ended it; 'orderkit destroy {order}' does")
    ended = ledger.tombstones(paths, order)
    if not ended:
        _check_living(paths, order)
    return _End(str(ended[-1]))
