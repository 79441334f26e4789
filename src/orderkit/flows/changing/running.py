"""
Carry a change out: rounds until it is written, offered, refused, or found done before.

Called through ``flows.changing.change``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from orderkit.core.change import FieldConflictError, Verdict, differences
from orderkit.core.errors import ConflictError, RefusedError, RemoteError, UsageError
from orderkit.core.kit.model import How
from orderkit.core.names import CommitSha, check_requester
from orderkit.flows.changing.planning import Plan, Planner, unified
from orderkit.flows.changing.proposing import Proposing
from orderkit.flows.changing.request import Changed, ChangeRequest, tidied
from orderkit.flows.liveorder import find_living, read_xr
from orderkit.flows.platform import Platform
from orderkit.flows.refreshing import nudge
from orderkit.ports.forge import REQUEST_TRAILER, FileChange

ROUNDS = 12
"""How often a lost race is repeated. Each round reads again and compares again."""
_PAUSE_S = 0.05
_EARLIER = 200
"""How many commits are searched for an operation that was done before."""


def change(platform: Platform, wanted: ChangeRequest) -> Changed:
    """
    Change an order, or propose to, or find that nothing is to be done. Idempotent by operation.

    Raises:
        NotFoundError: No such order, or no XR in it.
        InvalidInputError: An unknown field, base or change, or a value that the XRD refuses.
        FieldConflictError: Somebody changed one of these fields since `base`; both values told.
        RefusedError: The kit's rules forbid it, the order is ending or archived, or the text
            cannot be edited with proof.
        ConflictError: Others won every round.
        UnreachableError, RemoteError: The forge; with the same operation it can be repeated.
    """
    check_requester(wanted.requester.ref)
    if not wanted.edits:
        raise UsageError("nothing to change", hint="for example stage=stage3")
    live = find_living(platform, wanted.order)
    return _Run(platform, Planner(platform, live, tidied(wanted))).run()


@dataclass(frozen=True, slots=True)
class _Run:
    """The rounds of one change."""

    platform: Platform
    planner: Planner

    def run(self) -> Changed:
        for number in range(ROUNDS):
            try:
                return self._round(repeated=number > 0)
            except FieldConflictError:
                raise
            except ConflictError:
                if number == ROUNDS - 1:
                    raise
                self.platform.clock.sleep(_PAUSE_S * (number + 1))
        raise AssertionError("unreachable")

    def _round(self, *, repeated: bool) -> Changed:
        planner = self.planner
        head = planner.head()
        if repeated or planner.wanted.operation:
            # In the history of this very head: what lands later makes our write a conflict.
            earlier = self._earlier(head)
            if earlier:
                return earlier
        plan = planner.plan(planner.read(head), planner.targets)
        proposing = Proposing(planner)
        if not plan.edits:
            return self._unchanged(plan.seen.commit, proposing)
        how = self._how(plan.verdict)
        if how is How.REVIEW:
            return proposing.propose(plan)
        if planner.wanted.dry_run:
            return replace(planner.told(plan, state="planned", how=how), others=proposing.others())
        return self._commit(plan, proposing)

    def _unchanged(self, commit: CommitSha, proposing: Proposing) -> Changed:
        return Changed(
            order=self.planner.live.entry.order,
            state="unchanged",
            operation=self.planner.operation,
            commit=commit,
            others=proposing.others(),
        )

    def _how(self, verdict: Verdict) -> How:
        wanted = self.planner.wanted.how
        if wanted is How.DIRECT and verdict.how is How.REVIEW:
            raise RefusedError(
                f"{self.planner.live.entry.order}: '{verdict.name}' is reviewed, not committed"
                " directly",
                hint="leave --direct out: it becomes a pull request",
            )
        return wanted or verdict.how

    def _commit(self, plan: Plan, proposing: Proposing) -> Changed:
        """Write once. Somebody else's same text is this change done, but not a sum's."""
        live = self.planner.live
        entry = FileChange(plan.seen.path, plan.data, plan.seen.sha)
        try:
            written = self.platform.forge.write(live.repository, [entry], self.planner.signed(plan))
        except RemoteError as error:
            told = f"repeat it with --operation {self.planner.operation}"
            error.hint = f"{error.hint}; {told}" if error.hint else told
            raise
        if not written.changed:
            if any(target.is_sum for target in self.planner.targets):
                raise ConflictError(f"{live.repository}: somebody else was faster")
            return self._unchanged(written.commit, proposing)
        nudge(self.platform, live.entry.order, written.commit)
        done = self.planner.told(plan, state="committed", how=How.DIRECT)
        return replace(done, commit=written.commit, others=proposing.others())

    def _earlier(self, head: CommitSha) -> Changed | None:
        """Return what this operation came to if it was carried out before."""
        planner, repo = self.planner, self.planner.live.repository
        for commit in self.platform.forge.commits(repo, ref=head, limit=_EARLIER):
            if commit.operation == planner.operation:
                planner.check_digest(commit.trailers.get(REQUEST_TRAILER, ""))
                nudge(self.platform, planner.live.entry.order, commit.id)
                return self._carried_out(commit.id, commit.parents[0])
        return Proposing(planner).earlier()

    def _carried_out(self, commit: CommitSha, parent: CommitSha) -> Changed:
        live = self.planner.live
        old, new = (read_xr(self.platform, live, each) for each in (parent, commit))
        return Changed(
            order=live.entry.order,
            state="committed",
            operation=self.planner.operation,
            commit=commit,
            diff=unified(old, new.data),
            edits=differences(old.spec, new.spec),
            repeated=True,
        )
