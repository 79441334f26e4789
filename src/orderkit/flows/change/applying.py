"""
Carry a change out: rounds until it is written, offered, refused, or found done before.

Called through ``flows.change.change``.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from orderkit.core.errors import ConflictError, RefusedError, RemoteError, UsageError
from orderkit.core.kit.model import How
from orderkit.core.names import CommitSha, check_requester
from orderkit.core.order.change import (
    ChangeVerdict,
    FieldConflictError,
    differences,
    refuse_unchanged,
)
from orderkit.flows.argocd.refreshing import nudge
from orderkit.flows.change.change_plan import foretell, refuse_faults, refuse_losses
from orderkit.flows.change.edit_draft import EditDraft, Planner, unified
from orderkit.flows.change.proposing import Proposing
from orderkit.flows.change.request import Changed, ChangeRequest, tidied
from orderkit.flows.order.live_order import find_living, read_xr
from orderkit.flows.platform import Platform
from orderkit.ports.forge import REQUEST_TRAILER, Commit, FileChange

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
        searched: CommitSha | None = None
        if self.planner.wanted.operation:
            searched = self.planner.head()
            repo = self.planner.live.repository
            history = self.platform.forge.commits(repo, ref=searched, limit=_EARLIER)
            earlier = self._among(history) or Proposing(self.planner).earlier()
            if earlier:
                return earlier
        for number in range(ROUNDS):
            head = self.planner.head()
            try:
                return self._done_since(searched, head) or self._round(head)
            except FieldConflictError:
                raise
            except ConflictError:
                if number == ROUNDS - 1:
                    raise
                searched = head
                self.platform.clock.sleep(random.uniform(0, _PAUSE_S * (number + 1)))  # noqa: S311 - no secret
        raise AssertionError("unreachable")

    def _done_since(self, searched: CommitSha | None, head: CommitSha) -> Changed | None:
        """
        Look for this operation in what came since the last look, up to the head to be planned on.

        A request whose answer was lost may be carried out late: up to this head it is found,
        after it our write is a conflict.
        """
        if searched in (None, head):
            return None
        repo = self.planner.live.repository
        return self._among(self.platform.forge.compare(repo, str(searched), head))

    def _round(self, head: CommitSha) -> Changed:
        planner = self.planner
        plan = planner.plan(planner.read(head), planner.targets)
        proposing = Proposing(planner)
        if not plan.edits:
            held = plan.seen.xr.get("spec") or {}
            paths = [target.path for target in planner.targets]
            refuse_unchanged(planner.live.kit, held, paths=paths, change=planner.wanted.change)
            return self._unchanged(plan.seen.commit, proposing)
        how = self._how(plan.verdict)
        plan = self._foretold(plan, how)
        if how is How.REVIEW:
            return proposing.propose(plan)
        if planner.wanted.dry_run:
            return replace(planner.told(plan, state="planned", how=how), others=proposing.others())
        return self._commit(plan, proposing)

    def _foretold(self, plan: EditDraft, how: How) -> EditDraft:
        """Add what the change does; refuse what deletes data or breaks it, unless that is meant."""
        live, wanted = self.planner.live, self.planner.wanted
        told = foretell(self.platform, live, plan.seen.xr, plan.xr)
        if not (wanted.accept_loss or wanted.dry_run):
            refuse_losses(live, told)
        if how is How.DIRECT and wanted.how is None and not (wanted.dry_run or wanted.ends):
            refuse_faults(self.platform, live, told, plan.seen.xr)
        return replace(plan, foretold=told)

    def _unchanged(self, commit: CommitSha, proposing: Proposing) -> Changed:
        return Changed(
            order=self.planner.live.entry.order,
            state="unchanged",
            operation=self.planner.operation,
            commit=commit,
            others=proposing.others(),
        )

    def _how(self, verdict: ChangeVerdict) -> How:
        wanted = self.planner.wanted.how
        if self.planner.wanted.ends:
            return How.DIRECT
        if wanted is How.DIRECT and verdict.how is How.REVIEW:
            raise RefusedError(
                f"{self.planner.live.entry.order}: '{verdict.name}' is reviewed, not committed"
                " directly",
                hint="leave --direct out: it becomes a pull request",
            )
        return wanted or verdict.how

    def _commit(self, plan: EditDraft, proposing: Proposing) -> Changed:
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
        done = self.planner.told(plan, state="committed", how=How.DIRECT)
        done = replace(done, commit=written.commit)
        with suppress(RemoteError):  # it is written: what fails from here on does not undo it
            nudge(self.platform, live.entry.order, written.commit)
            done = replace(done, others=proposing.others())
        return done

    def _among(self, commits: Sequence[Commit]) -> Changed | None:
        """Return what this operation came to if one of the commits is its own."""
        planner = self.planner
        for commit in commits:
            if commit.operation == planner.operation:
                planner.check_digest(commit.trailers.get(REQUEST_TRAILER, ""))
                with suppress(RemoteError):
                    nudge(self.platform, planner.live.entry.order, commit.id)
                return self._carried_out(commit.id, commit.parents[0])
        return None

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
