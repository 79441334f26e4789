"""
Offer a change as a pull request: one open one per person and fields of an order, never two.

Which fields an open pull request touches is read from its texts, so that those made by hand
count too. Whoever asks again for the same fields gets their own pull request brought up to date:
by another commit on its branch, or, where the file on main has changed since, by a new one from
there that replaces it (a branch that others merged past would not merge). Pull requests of other
people, or for other fields, are left alone and named.

Called by ``applying``. Merging is for people, on the forge.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from contextlib import suppress
from dataclasses import dataclass, field, replace

from orderkit.core.errors import ConflictError, NotFoundError, OrderkitError, RefusedError
from orderkit.core.kit.model import How
from orderkit.core.names import CommitSha, RepoId
from orderkit.core.order.change import (
    ABSENT,
    EditTarget,
    FieldDifference,
    FieldEdit,
    Steps,
    differences,
    resolve,
    same,
    value_at,
)
from orderkit.core.plan.plan_markdown import cell
from orderkit.flows.change.change_plan import Foretold, foretell
from orderkit.flows.change.edit_draft import EditDraft, Planner, unified
from orderkit.flows.change.request import Changed, State
from orderkit.flows.order.live_order import XrFile, read_xr
from orderkit.flows.plan.announcing import ACCEPT_LOSS, CONTEXT, JudgedPlan, set_plan_status
from orderkit.ports.forge import (
    REQUEST_TRAILER,
    Commit,
    FileChange,
    Forge,
    PullDraft,
    PullRequest,
)

PREFIX = "orderkit/"
"""What our branches begin with; others are left alone."""
MAIN = "main"
_SLUG_MAX = 40
_NO_SLUG = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class OpenPull:
    """An open pull request, what it would change, and since when it stands beside main."""

    pull: PullRequest
    commits: tuple[Commit, ...]
    before: XrFile | None
    after: XrFile | None
    fields: tuple[FieldDifference, ...]
    """Empty also if the order's XR cannot be read there."""

    def touches(self, paths: set[str]) -> bool:
        return any(found.path in paths for found in self.fields)


@dataclass(slots=True)
class Proposing:
    """The pull requests of one order, as one change looks at them."""

    planner: Planner
    _listed: list[PullRequest] | None = field(default=None, init=False)
    _looked: list[OpenPull] | None = field(default=None, init=False)

    def propose(self, plan: EditDraft) -> Changed:
        """
        Make sure that a pull request offers a plan. Idempotent by operation.

        Raises:
            ConflictError: The branch or main was changed meanwhile; plan again.
            What `flows.change.change` says.
        """
        own = self._own(plan)
        if own is not None:
            plan = self._with_rest(plan, own)
        if self.planner.wanted.dry_run:
            return self._told(plan, own.pull if own else None, state="planned")
        if own is not None and self._is_current(own, plan.seen):
            return self._update(plan, own)
        return self._open_new(plan, own)

    def others(self, but: int | None = None) -> tuple[PullRequest, ...]:
        """Return the open pull requests of the order without one of them."""
        return tuple(pull for pull in self._list() if pull.number != but)

    def earlier(self) -> Changed | None:
        """
        Return what this operation proposed before, whatever became of it.

        None also if it stopped between its commit and the pull request's description.
        """
        operation = self.planner.operation
        for pull in self._forge.pulls(self._repo, state="all", base=MAIN):
            commits = self._commits(pull) if pull.state == "open" else ()
            made = [commit for commit in commits if commit.operation == operation]
            for commit in made:
                self.planner.check_digest(commit.trailers.get(REQUEST_TRAILER, ""))
            if made and made[0] is commits[0] and pull.operation != operation:
                return None  # it wrote the newest commit and was interrupted: it goes on from there
            if made or pull.operation == operation:
                return self._found_again(pull)
        return None

    # --- looking

    @property
    def _forge(self) -> Forge:
        return self.planner.platform.forge

    @property
    def _repo(self) -> RepoId:
        return self.planner.live.repository

    def _list(self) -> list[PullRequest]:
        if self._listed is None:
            self._listed = list(self._forge.pulls(self._repo, base=MAIN))
        return self._listed

    def _pulls(self) -> list[OpenPull]:
        if self._looked is None:
            self._looked = [self._looked_at(pull) for pull in self._list()]
        return self._looked

    def _commits(self, pull: PullRequest) -> tuple[Commit, ...]:
        return self._forge.compare(self._repo, MAIN, pull.head_commit)

    def _looked_at(self, pull: PullRequest) -> OpenPull:
        try:
            commits = self._commits(pull)
            if not commits or not commits[-1].parents:
                return OpenPull(pull, commits, None, None, ())
            before, after = (
                read_xr(self.planner.platform, self.planner.live, commit)
                for commit in (commits[-1].parents[0], pull.head_commit)
            )
        except OrderkitError as error:
            if error.retryable:
                raise
            return OpenPull(pull, (), None, None, ())  # a fork, or no XR there: not ours to judge
        found = differences(before.spec, after.spec)
        return OpenPull(pull, commits, before, after, found)

    def _own(self, plan: EditDraft) -> OpenPull | None:
        """Return the newest one of ours that this person opened for one of these fields."""
        paths = {edit.path for edit in plan.edits}
        person = self.planner.wanted.requester.ref
        for each in self._pulls():
            ours = each.pull.head.startswith(PREFIX) and each.pull.requester == person
            if ours and each.touches(paths):
                return each
        return None

    def _is_current(self, own: OpenPull, seen: XrFile) -> bool:
        """Say whether the file on main is still the one that the branch began with."""
        return own.before is not None and (own.before.path, own.before.sha) == (seen.path, seen.sha)

    def _with_rest(self, plan: EditDraft, own: OpenPull) -> EditDraft:
        """Add the fields that the open one has, this request does not name, nobody changed."""
        named = [target.steps for target in self.planner.targets]
        rest = [
            self._as_target(found)
            for found in own.fields
            if not any(_overlap(found.steps, steps) for steps in named)
            and same(value_at(plan.seen.spec, found.steps), found.old)
        ]
        return self.planner.plan(plan.seen, [*rest, *self.planner.targets]) if rest else plan

    def _as_target(self, found: FieldDifference) -> EditTarget:
        unset = found.new is ABSENT
        edit = FieldEdit(found.path, "unset" if unset else "set", None if unset else found.new)
        return resolve(self.planner.live.kit, edit)

    # --- writing

    def _update(self, plan: EditDraft, own: OpenPull) -> Changed:
        """Put the plan on the branch of an open one, in one more commit."""
        operation, head = self.planner.signed(plan), own.pull.head_commit
        if own.after is not None and own.after.data != plan.data:
            entry = FileChange(own.after.path, plan.data, own.after.sha)
            try:
                head = self._forge.write(
                    self._repo, [entry], operation, branch=own.pull.head
                ).commit
            except NotFoundError as error:
                raise ConflictError(f"{own.pull.head} of {self._repo} is gone") from error
        pull = self._forge.update_pull(
            self._repo,
            own.pull.number,
            operation,
            title=self._title(plan),
            body=self._body(plan, None),
        )
        if pull.state != "open":
            raise ConflictError(f"{self._repo}#{pull.number} was {pull.state} meanwhile")
        self._say(plan.foretold, pull, head)
        return self._told(plan, pull, state="proposed")

    def _open_new(self, plan: EditDraft, replaced: OpenPull | None) -> Changed:
        branch, operation = self._branch(plan), self.planner.signed(plan)
        entry = FileChange(plan.seen.path, plan.data, plan.seen.sha)
        head = self._forge.write(self._repo, [entry], operation, branch=branch).commit
        body = self._body(plan, replaced.pull if replaced else None)
        draft = PullDraft(self._title(plan), body, branch, MAIN)
        pull = self._forge.open_pull(self._repo, draft, operation)
        self._say(plan.foretold, pull, head)
        if replaced is not None:
            self._replace(replaced.pull, pull)
        return self._told(plan, pull, state="proposed")

    def _replace(self, old: PullRequest, new: PullRequest) -> None:
        text = f"Replaced by #{new.number}, which begins at today's main."
        self._forge.comment(self._repo, old.number, text, marker="orderkit/replaced")
        self._forge.close_pull(self._repo, old.number)
        with suppress(RefusedError):  # protected: whoever did that may remove it
            self._forge.delete_branch(self._repo, old.head)

    def _branch(self, plan: EditDraft) -> str:
        """
        Make sure of a branch that the plan can be written to; return its name.

        It is named after the plan and the last commit of the file. The same plan on the same
        state gives the same name, so that a repetition after a kill goes on where it was;
        after a merge, even one that was reverted, it is another.
        """
        last = self._forge.commits(self._repo, path=plan.seen.path, limit=1)
        state = last[0].id if last else plan.seen.commit
        asked = (self.planner.wanted.requester.ref, state, self.planner.wanted.operation or "")
        digest = hashlib.sha256("\0".join(asked).encode() + plan.data).hexdigest()[:10]
        paths = "-".join(edit.path for edit in plan.edits)
        slug = _NO_SLUG.sub("-", paths).strip("-")[:_SLUG_MAX].strip("-")
        name = f"{PREFIX}{slug or 'change'}-{digest}"
        for number in itertools.count(2):
            if self._forge.head(self._repo, name) is None:
                self._forge.ensure_branch(self._repo, name, plan.seen.commit)
                return name
            there = self._forge.read(self._repo, plan.seen.path, name)
            if there and (there.sha == plan.seen.sha or there.data == plan.data):
                return name
            name = f"{name.rpartition('.')[0] or name}.{number}"  # somebody pushed to it
        raise AssertionError("unreachable")

    # --- telling

    def _say(self, told: Foretold | None, pull: PullRequest, head: CommitSha) -> None:
        """Set the status of the proposed commit; the plan itself stands in the description."""
        if told is not None:
            judged = JudgedPlan(told.plan, failed=told.why_not)
            with suppress(OrderkitError):  # it is proposed, whatever the status says
                set_plan_status(self.planner.platform, self._repo, head, judged, pull.web_url)

    def _finish_saying(self, found: OpenPull) -> None:
        """Set the status that an interrupted run meant to set."""
        if found.before is None or found.after is None:
            return
        head = found.pull.head_commit
        with suppress(OrderkitError):
            known = {status.context for status in self._forge.statuses(self._repo, head)}
            if CONTEXT not in known:
                planner, (old, new) = self.planner, (found.before.xr, found.after.xr)
                self._say(foretell(planner.platform, planner.live, old, new), found.pull, head)

    def _title(self, plan: EditDraft) -> str:
        return f"{self.planner.live.entry.order}: {plan.summary}"

    def _body(self, plan: EditDraft, replaced: PullRequest | None) -> str:
        wanted = self.planner.wanted
        rows = [f"| `{edit.path}` | {cell(edit.old)} | {cell(edit.new)} |" for edit in plan.edits]
        proved = "" if wanted.requester.proof else " (not proved)"
        lines = [f"Asked for by {wanted.requester.ref}{proved}."]
        lines += [f"Reason: {wanted.reason}"] if wanted.reason else []
        lines += [f"**{warning}**" for warning in plan.verdict.warnings]
        lines += [f"Replaces #{replaced.number}."] if replaced else []
        lines.append("\n".join(["| Field | From | To |", "|---|---|---|", *rows]))
        lines.append(f"````diff\n{plan.diff}````")
        lines += [plan.foretold.markdown] if plan.foretold else []
        lines += [ACCEPT_LOSS] if self.planner.wanted.accept_loss else []
        lines.append("Merging delivers it. Closing it drops it.")
        return "\n\n".join(lines)

    def _told(self, plan: EditDraft, pull: PullRequest | None, *, state: State) -> Changed:
        done = self.planner.told(plan, state=state, how=How.REVIEW)
        return replace(done, pull=pull, others=self.others(pull.number if pull else None))

    def _found_again(self, pull: PullRequest) -> Changed:
        self._finish_replacing(pull)
        found = self._looked_at(pull) if pull.state == "open" else None
        if found:
            self._finish_saying(found)
        before, after = (found.before, found.after) if found else (None, None)
        merged = pull.merge_commit
        return Changed(
            order=self.planner.live.entry.order,
            state="committed" if merged else "proposed",
            operation=self.planner.operation,
            commit=merged,
            pull=pull,
            diff=unified(before, after.data) if before and after else "",
            edits=found.fields if found else (),
            how=How.REVIEW,
            others=self.others(pull.number),
            repeated=True,
        )

    def _finish_replacing(self, pull: PullRequest) -> None:
        """Close what an interrupted run meant to replace."""
        found = re.search(r"^Replaces #(\d+)\.$", pull.body, re.MULTILINE)
        old = self._forge.pull(self._repo, int(found[1])) if found else None
        if old is None or (old.state, pull.state) != ("open", "open"):
            return
        if old.head.startswith(PREFIX) and old.requester == pull.requester:
            self._replace(old, pull)


def _overlap(one: Steps, other: Steps) -> bool:
    """Say whether one field holds the other."""
    return all(a == b for a, b in zip(one, other, strict=False))
