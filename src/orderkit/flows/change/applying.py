"""
Carry out a change, by fields or by a form: rounds until it is committed, proposed or refused.

`change_by_form` changes an order by the values of a form, as a portal sends them. The form was
opened on a commit (`ChangeRequest.base`): a value that is still the same as then is no edit.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ground.errors import AccessError, ConflictError, RefusedError, RemoteError, UsageError
from ground.names import CommitSha, check_requester
from ground.objects.values import ABSENT
from orderkit.core.kit.approval_rules import sentence
from orderkit.core.kit.change_forms import ANY_CHANGE, change_named, form_paths
from orderkit.core.kit.form_values import yaml_roots
from orderkit.core.kit.kit_file import How
from orderkit.core.order.change import (
    ChangeVerdict,
    FieldConflictError,
    differences,
    in_group,
    refuse_unchanged,
)
from orderkit.core.order.change.change_fields import entered_edits
from orderkit.flows.argocd.commit_pinning import deliver
from orderkit.flows.change.edit_draft import ChangeEditor, EditDraft, unified
from orderkit.flows.change.proposing import Proposer
from orderkit.flows.change.request import (
    Changed,
    ChangeRequest,
    plan_change,
    refuse_faults,
    refuse_losses,
    refuse_paused,
    tidied,
)
from orderkit.flows.forge_protection import needs_protection
from orderkit.flows.order import cost_limit
from orderkit.flows.order.approvals import Asking, needs_of_step
from orderkit.flows.order.live_order import LiveOrder, find_commit, find_living, read_xr
from orderkit.flows.platform import Platform
from orderkit.ports.forge import Commit, FileChange, Written

ROUNDS = 12  # on a busy real forge, eight were too few
"""Rounds after lost races. Each round reads and compares again."""
_PAUSE_S = 0.05
_EARLIER = 200
"""How many commits are searched for an operation that was done before."""


def change(platform: Platform, request: ChangeRequest) -> Changed:
    """
    Change an order, propose the change, or find it unchanged. Idempotent by operation.

    Raises:
        NotFoundError: No such order, or no XR in it.
        InvalidInputError: An unknown field, base or change, or a value that the XRD refuses.
        FieldConflictError: Somebody changed one of these fields since `base`.
        RefusedError: The kit's rules forbid it, the order is ending or archived, or the text
            cannot be edited with proof.
        ConflictError: Others won every round.
        UnreachableError, RemoteError: The forge failed; repeat with the same operation.
        IncompleteError: It is committed and not delivered yet; the same again delivers it.
    """
    check_requester(request.requester.ref)
    if not request.edits:
        raise UsageError("nothing to change", hint="for example stage=stage3")
    return change_living(platform, find_living(platform, request.order), request)


def change_living(platform: Platform, live: LiveOrder, request: ChangeRequest) -> Changed:
    """Do what `change` does with an order that was found before; raises what it raises."""
    return _Run(platform, ChangeEditor(platform, live, tidied(request))).run()


@dataclass(frozen=True, slots=True)
class _Run:
    """The rounds of one change."""

    platform: Platform
    editor: ChangeEditor

    def run(self) -> Changed:
        searched: CommitSha | None = None
        if self.editor.request.operation:
            searched = self.editor.head()
        if self.editor.request.operation and searched and not self.editor.request.is_searched:
            repo = self.editor.live.repository
            history = self.platform.forge.commits(repo, ref=searched, limit=_EARLIER)
            earlier = self._repeated_in(history, searched) or Proposer(self.editor).earlier()
            if earlier:
                return earlier
        for number in range(ROUNDS):
            head = self.editor.head()
            try:
                return self._done_since(searched, head) or self._round(head)
            except FieldConflictError:
                # a ConflictError too, but no lost race: whoever asked has to decide
                raise
            except ConflictError:
                if number == ROUNDS - 1:
                    raise
                searched = head
                # random: those who lost a race together must not meet again
                self.platform.clock.sleep(random.uniform(0, _PAUSE_S * (number + 1)))  # noqa: S311 - no secret
        raise AssertionError("unreachable")

    def _done_since(self, searched: CommitSha | None, head: CommitSha) -> Changed | None:
        """
        Look for this operation in the commits since the last search, up to this round's head.

        The forge may carry out a request late whose answer was lost. Up to this head the search
        finds it; after this head our write is a conflict.
        """
        if searched in (None, head):
            return None
        repo = self.editor.live.repository
        return self._repeated_in(self.platform.forge.compare(repo, str(searched), head), head)

    def _round(self, head: CommitSha) -> Changed:
        editor = self.editor
        draft = editor.edit(editor.read(head), editor.targets)
        proposer = Proposer(editor)
        if not draft.edits:
            spec = draft.current.xr.get("spec") or {}
            paths = [target.path for target in editor.targets]
            refuse_unchanged(editor.live.kit, spec, paths=paths, change=editor.request.change)
            if not editor.request.dry_run:
                self._deliver(head)  # an earlier run may have ended before it
            return self._unchanged(draft.current.commit, proposer)
        how = self._how(draft.verdict)
        draft = self._with_needs(self._with_plan(draft, how))
        if how is How.REVIEW or draft.needs:
            return proposer.propose(draft)
        if editor.request.dry_run:
            return replace(
                editor.outcome(draft, state="planned", how=how), other_pulls=proposer.others()
            )
        return self._commit(draft, proposer)

    def _with_plan(self, draft: EditDraft, how: How) -> EditDraft:
        """Add the plan; refuse a change that does harm or nothing, unless accepted."""
        live, request = self.editor.live, self.editor.request
        change_plan = plan_change(self.platform, live, draft.current.xr, draft.xr)
        if not (request.accept_loss or request.dry_run):
            refuse_losses(live, change_plan)
        # who asks for direct by name accepts what these two refuse
        if how is How.DIRECT and request.how is None and not (request.dry_run or request.ends):
            refuse_paused(live, change_plan)
            refuse_faults(self.platform, live, change_plan, draft.current.xr)
        return replace(draft, change_plan=change_plan)

    def _with_needs(self, draft: EditDraft) -> EditDraft:
        """Add who has to agree; a part of a confirmed end needs nobody."""
        editor, request = self.editor, self.editor.request
        if request.ends:
            return draft
        needs = needs_of_step(
            self.platform,
            editor.live,
            draft.xr,
            Asking(request.requester.ref, request.requester.proof),
            current=draft.current,
        )
        if needs and request.how is How.DIRECT:
            raise RefusedError(
                f"{editor.live.entry.order}: the change needs approval by {sentence(needs)},"
                " and cannot be committed directly",
                hint="leave --direct out to open a pull request",
                form_hint="leave 'how: direct' out to open a pull request",
            )
        return replace(draft, needs=needs)

    def _unchanged(self, commit: CommitSha, proposer: Proposer) -> Changed:
        return Changed(
            order=self.editor.live.entry.order,
            state="unchanged",
            operation=self.editor.operation,
            commit=commit,
            other_pulls=proposer.others(),
        )

    def _how(self, verdict: ChangeVerdict) -> How:
        requested = self.editor.request.how
        if self.editor.request.ends:
            return How.DIRECT
        if requested is How.DIRECT and verdict.how is How.REVIEW:
            raise RefusedError(
                f"{self.editor.live.entry.order}: '{verdict.name}' must be reviewed"
                " and cannot be committed directly",
                hint="leave --direct out to open a pull request",
                form_hint="leave 'how: direct' out to open a pull request",
            )
        return requested or verdict.how

    def _commit(self, draft: EditDraft, proposer: Proposer) -> Changed:
        """Write once. If others wrote the same text, the change is done, unless it is a sum."""
        live = self.editor.live
        entry = FileChange(draft.current.path, draft.data, draft.current.sha)
        try:
            commit_result = self.platform.forge.write(
                live.repository, [entry], self.editor.signed(draft)
            )
        except RemoteError as error:
            advice = f"repeat it with --operation {self.editor.operation}"
            if isinstance(error, AccessError) and needs_protection(live.kit):
                advice = "only the platform's account writes to main here: use the portal, or --pr"
            error.hint = f"{error.hint}; {advice}" if error.hint else advice
            raise
        self._deliver(commit_result)
        if not commit_result.changed:
            # to add twice is not to add once, though both wrote the same text
            if any(target.is_sum for target in self.editor.targets):
                raise ConflictError(
                    f"{live.repository}: somebody else wrote the same text at the same time"
                )
            return self._unchanged(commit_result.commit, proposer)
        outcome = self.editor.outcome(draft, state="committed", how=How.DIRECT)
        outcome = replace(outcome, commit=commit_result.commit)
        with suppress(RemoteError):  # the change is committed; failures from here on do not undo it
            if not self.editor.request.is_searched:
                outcome = replace(outcome, other_pulls=proposer.others())
            if excess := cost_limit.change_excess(self.platform, live, draft.current.xr, draft.xr):
                warnings = (*outcome.warnings, f"committed, but {excess}")
                outcome = replace(outcome, warnings=warnings)
        return outcome

    def _deliver(self, written: Written | CommitSha) -> None:
        requester = self.editor.request.requester
        deliver(self.platform, self.editor.live.entry, written, requester.ref, requester.proof)

    def _repeated_in(self, commits: Sequence[Commit], head: CommitSha) -> Changed | None:
        """Return this operation's outcome if one of the commits in `head` is its own."""
        editor = self.editor
        for commit in commits:
            if editor.made(commit, head):
                # an earlier run may have ended before it
                self._deliver(commit.id)
                return self._carried_out(commit.id, commit.parents[0])
        return None

    def _carried_out(self, commit: CommitSha, parent: CommitSha) -> Changed:
        live = self.editor.live
        old, new = (read_xr(self.platform, live, revision) for revision in (parent, commit))
        return Changed(
            order=live.entry.order,
            state="committed",
            operation=self.editor.operation,
            commit=commit,
            diff=unified(old, new.data),
            edits=in_group(differences(old.spec, new.spec), live.kit.unfold),
            repeated=True,
        )


@dataclass(frozen=True, slots=True)
class FormEntry:
    """A form's values by parameter; null removes a field."""

    values: Mapping[str, Any]
    whole_form: bool = False
    """These are all values of the form: a missing one removes its field."""


def change_by_form(
    platform: Platform, live: LiveOrder, entry: FormEntry, template_request: ChangeRequest
) -> Changed:
    """
    Carry out `template_request` with the edits of a form. Idempotent like `change`.

    Raises:
        InvalidInputError: There is no such base or change; and all that `change` raises.
    """
    request = form_request(platform, live, entry, template_request)
    if request.edits:
        check_requester(request.requester.ref)
        return change_living(platform, live, request)
    head = platform.forge.head(live.repository)
    if head is not None and entry.values:
        spec = read_xr(platform, live, head).xr.get("spec") or {}
        change_ = template_request.change if live.kit.changes else None
        refuse_unchanged(live.kit, spec, paths=(), change=change_)
    return Changed(order=live.entry.order, state="unchanged", operation="", commit=head)


def form_request(
    platform: Platform, live: LiveOrder, entry: FormEntry, template_request: ChangeRequest
) -> ChangeRequest:
    """
    Return `template_request` with the edits of a form.

    Raises:
        InvalidInputError: There is no such base or change, or a field cannot have a value.
    """
    base, base_spec = template_request.base, ABSENT
    if base is not None:
        base = find_commit(platform.forge, live, base, field="base").id
        base_spec = read_xr(platform, live, base).spec
    change_name, form, paths = template_request.change, None, None
    if entry.whole_form or (change_name and live.kit.changes):
        kit_change = change_named(live.kit, change_name or ANY_CHANGE)
        paths = kit_change.fields
        form = form_paths(live.kit, kit_change) if entry.whole_form else None
    roots = yaml_roots(live.kit, paths)
    edits = entered_edits(live.kit, entry.values, shown_spec=base_spec, form=form, roots=roots)
    return tidied(
        replace(
            template_request,
            base=base,
            edits=edits,
            change=change_name if live.kit.changes else None,
        )
    )
