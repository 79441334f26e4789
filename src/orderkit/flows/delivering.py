"""
Wait until one commit of an order is delivered and Ready, or say why it is not.

A later commit that contains it counts: others go on working. An operation of the Application
that is still busy with an older commit is ended, because it keeps newer ones from being applied.
Called by ``orderkit change`` and ``revert``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from orderkit.core import orderstate
from orderkit.core.names import CommitSha
from orderkit.core.objects import Manifest, ObjectKey, dig
from orderkit.core.orderstate import OrderState, short
from orderkit.flows.liveorder import LiveOrder, find_living, read_xr
from orderkit.flows.platform import Platform, get_object
from orderkit.flows.refreshing import application_key, end_older_operation
from orderkit.flows.waiting import until

_GRACE_S = 2.0
"""How long an operation for another commit may go on while nothing fails."""

OnState = Callable[[OrderState], object]


@dataclass(slots=True)
class _Watch:
    platform: Platform
    live: LiveOrder
    xr: ObjectKey
    commit: CommitSha
    began_s: float
    containing: dict[str, bool] = field(default_factory=dict)

    def look(self) -> OrderState:
        application = get_object(self.platform, application_key(self.live.entry.order))
        revision = str(dig(application, "status", "sync", "revision", default="") or "")
        at = CommitSha(revision) if self._contains(revision) else self.commit
        if application is not None and at != self.commit:
            self._unpin(application, at)
        elif application is not None:
            self._unpin(application, self.commit)
        xr = get_object(self.platform, self.xr)
        return orderstate.judge(application, xr, head=at, ending=False)

    def _unpin(self, application: Manifest, commit: CommitSha) -> None:
        """End an operation that applies neither this commit nor one after it."""
        state = dig(application, "status", "operationState", default={})
        pinned = str(dig(state, "operation", "sync", "revision", default="") or "")
        if not pinned or self._contains(pinned):
            return
        waited_s = self.platform.clock.monotonic_s() - self.began_s
        if state.get("retryCount") or waited_s > _GRACE_S:
            end_older_operation(self.platform, application, commit)

    def _contains(self, revision: str) -> bool:
        """Say whether a revision is the commit or has it among its ancestors."""
        if revision == self.commit:
            return True
        if len(revision) != len(self.commit):
            return False  # a branch name: Argo CD could not resolve it
        if revision not in self.containing:
            missing = self.platform.forge.compare(self.live.repository, revision, self.commit)
            self.containing[revision] = not missing
        return self.containing[revision]


def await_commit(
    platform: Platform,
    order: str,
    commit: CommitSha,
    *,
    timeout_s: float,
    on_state: OnState = lambda _: None,
) -> OrderState:
    """
    Wait until the order is Ready at a commit, or at a later one that contains it.

    Raises:
        IncompleteError: Not in time; the message has the first failing reason.
        NotFoundError, RefusedError: The order is gone or ending.
    """
    live = find_living(platform, order)
    xr = ObjectKey.of(read_xr(platform, live, commit).xr)
    watch = _Watch(platform, live, xr, commit, platform.clock.monotonic_s())
    return until(
        platform.clock,
        watch.look,
        lambda state: state.ready,
        timeout_s=timeout_s,
        what=f"{order}: becoming Ready at {short(commit)}",
        why_not=lambda state: f"{state.phase}: {state.reason}",
        on_look=on_state,
    )
