"""
Propose a change as a pull request: at most one open per person and fields of an order.

The fields of an open pull request are read from its texts, so pull requests made by hand count too.
If a person asks again for the same fields, their pull request is updated by another commit on its
branch. If the file on main has changed since, a new pull request from main replaces it, because the
old branch would not merge. Pull requests of other people or for other fields stay, and are listed.

People merge on the forge.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from ground.errors import AccessError, ConflictError, NotFoundError, OrderkitError, RefusedError
from ground.names import MAIN, CommitSha, RepoId
from orderkit.core.kit.approval_rules import Need, sentence
from orderkit.core.kit.kit_file import How
from orderkit.core.order.change import (
    ABSENT,
    EditTarget,
    FieldDifference,
    FieldEdit,
    Steps,
    differences,
    in_group,
    resolve,
    same,
    value_at,
)
from orderkit.core.plan.plan_markdown import cell, plain_line
from orderkit.flows.change.edit_draft import ChangeEditor, EditDraft, unified
from orderkit.flows.change.request import Changed, ChangePlan, State, plan_change
from orderkit.flows.forge_protection import protect_main
from orderkit.flows.order.agreements import (
    NOT_ON_THE_FORGE,
    UNKNOWN_HINT,
    forge_user,
    set_approval_status,
)
from orderkit.flows.order.commit_judging import branch_of
from orderkit.flows.order.live_order import XrFile, read_xr
from orderkit.flows.plan.pull_requests import ACCEPT_LOSS, CONTEXT, JudgedPlan, set_plan_status
from orderkit.ports.forge import Commit, FileChange, Forge, Operation, PullDraft, PullRequest

PREFIX = "orderkit/"
"""Prefix of our branches; other branches are never touched."""
_SLUG_MAX = 40
_NO_SLUG = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class OpenPull:
    """An open pull request, its commits, and the fields it would change."""

    pull: PullRequest
    commits: tuple[Commit, ...]
    before: XrFile | None
    after: XrFile | None
    fields: tuple[FieldDifference, ...]
    """Empty also if the order's XR cannot be read there."""

    def touches(self, paths: set[str]) -> bool:
        return any(edit.path in paths for edit in self.fields)


@dataclass(slots=True)
class Proposer:
    """Opens, updates and replaces the pull requests of one change."""

    editor: ChangeEditor
    _all_pulls: list[PullRequest] | None = field(default=None, init=False)
    _open_pulls: list[OpenPull] | None = field(default=None, init=False)
    _is_known: bool = field(default=True, init=False)
    """The forge knows the requester, so it can be told whose approval is somebody else's."""

    def propose(self, draft: EditDraft) -> Changed:
        """
        Make sure that a pull request proposes the draft. Idempotent by operation.

        Raises:
            ConflictError: The branch or main changed meanwhile; draft the edit again.
            What `flows.change.change` raises.
        """
        own_pull = self._own_pull(draft)
        if not self.editor.request.dry_run:
            with suppress(AccessError):  # a person's own credentials; 'orderkit doctor' reports it
                protect_main(self._forge, self._repo, self.editor.live.kit)
        if own_pull is not None:
            draft = self._with_rest(draft, own_pull)
        if self.editor.request.dry_run:
            return self._outcome(draft, own_pull.pull if own_pull else None, state="planned")
        if own_pull is not None and self._is_current(own_pull, draft.current):
            return self._update(draft, own_pull)
        # no branch, or one that would not merge: the file on main has changed since
        return self._open_new(draft, own_pull)

    def others(self, but: int | None = None) -> tuple[PullRequest, ...]:
        """Return the open pull requests of the order without one of them."""
        return tuple(
            replace(pull, requester=self._proved_requester(pull))
            for pull in self._list()
            if pull.number != but
        )

    def _proved_requester(self, pull: PullRequest) -> str:
        """Return who asked for a pull request, if its commits prove it: its text may be forged."""
        if not pull.requester:
            return ""
        commits, judge = self._commits(pull), self.editor.judge(pull.head_commit)
        is_proved = commits and all(judge.requester(c) == pull.requester for c in commits)
        return pull.requester if is_proved else ""

    def earlier(self) -> Changed | None:
        """
        Return what this operation proposed before, in whatever state it is.

        Also None if it stopped between its commit and the pull request's description.
        """
        operation = self.editor.operation
        for pull in self._forge.pulls(self._repo, state="all", base=MAIN):
            is_candidate = pull.state == "open" or pull.operation == operation
            commits = self._commits(pull) if is_candidate else ()
            own_commits = [c for c in commits if self.editor.made(c, pull.head_commit)]
            if own_commits and own_commits[0] is commits[0] and pull.operation != operation:
                return None  # interrupted after its newest commit: continue from there
            if own_commits:
                return self._repeated(pull)
        return None

    # --- looking

    @property
    def _forge(self) -> Forge:
        return self.editor.platform.forge

    @property
    def _repo(self) -> RepoId:
        return self.editor.live.repository

    def _list(self) -> list[PullRequest]:
        if self._all_pulls is None:
            self._all_pulls = list(self._forge.pulls(self._repo, base=MAIN))
        return self._all_pulls

    def _pulls(self) -> list[OpenPull]:
        if self._open_pulls is None:
            self._open_pulls = [self._read_pull(pull) for pull in self._list()]
        return self._open_pulls

    def _commits(self, pull: PullRequest) -> tuple[Commit, ...]:
        return self._forge.compare(self._repo, MAIN, pull.head_commit)

    def _read_pull(self, pull: PullRequest) -> OpenPull:
        try:
            commits = self._commits(pull)
            if not commits or not commits[-1].parents:
                return OpenPull(pull, commits, None, None, ())
            before, after = (
                read_xr(self.editor.platform, self.editor.live, commit)
                for commit in (commits[-1].parents[0], pull.head_commit)
            )
        except OrderkitError as error:
            if error.retryable:
                raise
            return OpenPull(
                pull, (), None, None, ()
            )  # a fork, or a branch without an XR: not comparable
        edits = in_group(differences(before.spec, after.spec), self.editor.live.kit.unfold)
        return OpenPull(pull, commits, before, after, edits)

    def _own_pull(self, draft: EditDraft) -> OpenPull | None:
        """Return the newest pull request of this person and of ours for one of these fields."""
        paths = {edit.path for edit in draft.edits}
        for open_pull in self._pulls():
            if open_pull.touches(paths) and self._is_own(open_pull):
                return open_pull
        return None

    def _is_own(self, open_pull: OpenPull) -> bool:
        """Say whether this person asked for a pull request and for all its commits."""
        pull = open_pull.pull
        if not pull.head.startswith(PREFIX) or pull.requester != self.editor.request.requester.ref:
            return False
        # its other fields are taken over, so its text does not decide: anybody may have written it
        return self._are_own(open_pull.commits, pull.head, pull.head_commit)

    def _are_own(self, commits: Sequence[Commit], branch: str, head: CommitSha) -> bool:
        """Say whether this person asked for each of a branch's commits."""
        person, judge = self.editor.request.requester.ref, self.editor.judge(head)
        if not self.editor.platform.signatures.can_sign:
            return all(commit.requester == person for commit in commits)
        # signed for this branch: anybody may push such a commit to another one
        return all(
            judge.requester(commit) == person and branch_of(commit) == branch for commit in commits
        )

    def _is_current(self, own_pull: OpenPull, current: XrFile) -> bool:
        """Say whether the file on main is still the one the branch started from."""
        return own_pull.before is not None and (own_pull.before.path, own_pull.before.sha) == (
            current.path,
            current.sha,
        )

    def _with_rest(self, draft: EditDraft, own_pull: OpenPull) -> EditDraft:
        """Add the open pull request's other fields, unless they changed on main."""
        requested_steps = [target.steps for target in self.editor.targets]
        kept_targets = [
            self._as_target(edit)
            for edit in own_pull.fields
            if not any(_overlap(edit.steps, steps) for steps in requested_steps)
            and same(value_at(draft.current.spec, edit.steps), edit.old)
        ]
        return (
            self.editor.edit(draft.current, [*kept_targets, *self.editor.targets])
            if kept_targets
            else draft
        )

    def _as_target(self, difference: FieldDifference) -> EditTarget:
        unset = difference.new is ABSENT
        edit = FieldEdit(
            difference.path, "unset" if unset else "set", None if unset else difference.new
        )
        return resolve(self.editor.live.kit, edit)

    # --- writing

    def _update(self, draft: EditDraft, own_pull: OpenPull) -> Changed:
        """Add a commit with the draft to the branch of an open pull request."""
        operation, head = self._signed(draft), own_pull.pull.head_commit
        if own_pull.after is not None and own_pull.after.data != draft.data:
            entry = FileChange(own_pull.after.path, draft.data, own_pull.after.sha)
            try:
                head = self._forge.write(
                    self._repo, [entry], operation, branch=own_pull.pull.head
                ).commit
            except NotFoundError as error:
                raise ConflictError(f"{own_pull.pull.head} of {self._repo} is gone") from error
        pull = self._forge.update_pull(
            self._repo,
            own_pull.pull.number,
            operation,
            title=self._title(draft),
            body=self._body(draft, None),
        )
        if pull.state != "open":
            raise ConflictError(f"{self._repo}#{pull.number} was {pull.state} meanwhile")
        self._say(draft.change_plan, pull, head, draft.needs)
        return self._outcome(draft, pull, state="proposed")

    def _open_new(self, draft: EditDraft, replaced: OpenPull | None) -> Changed:
        branch, operation = self._branch(draft), self._signed(draft)
        entry = FileChange(draft.current.path, draft.data, draft.current.sha)
        head = self._forge.write(self._repo, [entry], operation, branch=branch).commit
        body = self._body(draft, replaced.pull if replaced else None)
        pull_draft = PullDraft(self._title(draft), body, branch, MAIN)
        pull = self._forge.open_pull(self._repo, pull_draft, operation)
        self._say(draft.change_plan, pull, head, draft.needs)
        if replaced is not None:
            self._replace(replaced.pull, pull)
        return self._outcome(draft, pull, state="proposed")

    def _signed(self, draft: EditDraft) -> Operation:
        """Return the operation of a proposal; it names the requester's account, if we may know."""
        editor, person = self.editor, None
        with suppress(OrderkitError):  # it is not merged then, and says why
            person = forge_user(editor.platform, self._repo, editor.request.requester.ref)
            self._is_known = person is not None
        return editor.signed(draft, person.id if person else None)

    def _replace(self, old: PullRequest, new: PullRequest) -> None:
        text = f"Replaced by #{new.number}, which begins at today's main."
        self._forge.comment(self._repo, old.number, text, marker="orderkit/replaced")
        self._forge.close_pull(self._repo, old.number)
        with suppress(RefusedError):  # protected: whoever did that may remove it
            self._forge.delete_branch(self._repo, old.head)

    def _branch(self, draft: EditDraft) -> str:
        """Make sure that there is a branch for the draft; return its name."""
        last = self._forge.commits(self._repo, path=draft.current.path, limit=1)
        state = last[0].id if last else draft.current.commit
        key = (self.editor.request.requester.ref, state, self.editor.request.operation or "")
        # with the file's last commit: after a kill the same draft continues on its branch; after a
        # merge, even a reverted one, the name differs
        digest = hashlib.sha256("\0".join(key).encode() + draft.data).hexdigest()[:10]
        paths = "-".join(edit.path for edit in draft.edits)
        slug = _NO_SLUG.sub("-", paths).strip("-")[:_SLUG_MAX].strip("-")
        name = f"{PREFIX}{slug or 'change'}-{digest}"
        for number in itertools.count(2):
            head = self._forge.head(self._repo, name)
            if head is None:
                self._forge.ensure_branch(self._repo, name, draft.current.commit)
                return name
            on_branch = self._forge.read(self._repo, draft.current.path, name)
            is_draft = on_branch and (
                on_branch.sha == draft.current.sha or on_branch.data == draft.data
            )
            commits = self._forge.compare(self._repo, MAIN, head) if is_draft else ()
            if is_draft and self._are_own(commits, name, head):
                return name
            name = f"{name.rpartition('.')[0] or name}.{number}"  # somebody pushed to it
        raise AssertionError("unreachable")

    # --- reporting

    def _say(
        self,
        change_plan: ChangePlan | None,
        pull: PullRequest,
        head: CommitSha,
        needs: Sequence[Need] = (),
    ) -> None:
        """Set the statuses of the proposed commit; the description has the plan itself."""
        if needs:
            with suppress(OrderkitError):
                set_approval_status(
                    self.editor.platform.forge, self._repo, head, pull, sentence(needs)
                )
        if change_plan is not None:
            judged = JudgedPlan(change_plan.plan, failed=change_plan.why_not)
            with suppress(OrderkitError):  # a missing status does not undo the proposal
                set_plan_status(self.editor.platform.forge, self._repo, head, judged, pull.web_url)

    def _finish_saying(self, open_pull: OpenPull) -> None:
        """Set the status that an interrupted run did not set."""
        if open_pull.before is None or open_pull.after is None:
            return
        head = open_pull.pull.head_commit
        with suppress(OrderkitError):
            contexts = {status.context for status in self._forge.statuses(self._repo, head)}
            if CONTEXT not in contexts:
                editor, (old, new) = self.editor, (open_pull.before.xr, open_pull.after.xr)
                self._say(plan_change(editor.platform, editor.live, old, new), open_pull.pull, head)

    def _title(self, draft: EditDraft) -> str:
        return f"{self.editor.live.entry.order}: {draft.summary}"

    def _body(self, draft: EditDraft, replaced: PullRequest | None) -> str:
        request = self.editor.request
        rows = [f"| `{edit.path}` | {cell(edit.old)} | {cell(edit.new)} |" for edit in draft.edits]
        proved = "" if request.requester.proof else " (not proved)"
        lines = [f"Asked for by {request.requester.ref}{proved}."]
        lines += [f"Reason: {request.reason}"] if request.reason else []
        lines += [f"**{warning}**" for warning in draft.verdict.warnings]
        lines += [f"Replaces #{replaced.number}."] if replaced else []
        lines.append("\n".join(["| Field | From | To |", "|---|---|---|", *rows]))
        # four backticks, as the diff may have three
        lines.append(f"````diff\n{draft.diff}````")
        lines += [_agreements(draft.needs)] if draft.needs else []
        lines += [draft.change_plan.markdown] if draft.change_plan else []
        lines += [ACCEPT_LOSS] if self.editor.request.accept_loss else []
        lines.append(
            f"'orderkit merge {self.editor.live.entry.order} NUMBER' delivers it once somebody else"
            " has approved it. Closing it drops it."
        )
        return "\n\n".join(lines)

    def _outcome(self, draft: EditDraft, pull: PullRequest | None, *, state: State) -> Changed:
        outcome = self.editor.outcome(draft, state=state, how=How.REVIEW)
        approvers = "somebody else of the team" if draft.verdict.how is How.REVIEW else ""
        approvers = " and ".join(
            filter(None, (approvers, "those named in the pull request" if draft.needs else ""))
        )
        warnings = outcome.warnings
        if approvers and not self._is_known:
            ref = self.editor.request.requester.ref
            warnings = (*warnings, f"'{ref}' {NOT_ON_THE_FORGE}; {UNKNOWN_HINT}")
        return replace(
            outcome,
            pull=pull,
            other_pulls=self.others(pull.number if pull else None),
            approvers=approvers,
            warnings=warnings,
        )

    def _repeated(self, pull: PullRequest) -> Changed:
        self._finish_replacing(pull)
        open_pull = self._read_pull(pull) if pull.state == "open" else None
        if open_pull:
            self._finish_saying(open_pull)
        before, after = (open_pull.before, open_pull.after) if open_pull else (None, None)
        merged = pull.merge_commit
        return Changed(
            order=self.editor.live.entry.order,
            state="committed" if merged else "proposed",
            operation=self.editor.operation,
            commit=merged,
            pull=pull,
            diff=unified(before, after.data) if before and after else "",
            edits=open_pull.fields if open_pull else (),
            how=How.REVIEW,
            other_pulls=self.others(pull.number),
            repeated=True,
        )

    def _finish_replacing(self, pull: PullRequest) -> None:
        """Close the pull request that an interrupted run did not close."""
        replaces = re.search(r"^Replaces #(\d+)\.$", pull.body, re.MULTILINE)
        old = self._forge.pull(self._repo, int(replaces[1])) if replaces else None
        if old is None or (old.state, pull.state) != ("open", "open"):
            return
        if old.head.startswith(PREFIX) and old.requester == pull.requester:
            self._replace(old, pull)


def _agreements(needs: Sequence[Need]) -> str:
    rows = "\n".join(f"- {plain_line(str(need))}" for need in needs)
    return f"Who has to approve its newest commit, on the forge or in the console:\n\n{rows}"


def _overlap(steps: Steps, other_steps: Steps) -> bool:
    """Say whether one field contains the other."""
    return all(a == b for a, b in zip(steps, other_steps, strict=False))
