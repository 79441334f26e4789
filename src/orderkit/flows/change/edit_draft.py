"""
Draft the edit of a change: base, new XR, rules, new text. Writes nothing.

Caches what rounds share.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ground.argocd.sync_rules import steering_annotations
from ground.errors import (
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    UsageError,
    every,
    raise_problems,
)
from ground.names import CommitSha
from ground.objects.kube_objects import Manifest
from kubeschema import field_paths
from kubeschema.validate import Finding, Validator
from orderkit.core.kit.approval_rules import Need
from orderkit.core.kit.compositions import choice_findings
from orderkit.core.kit.kit_file import How
from orderkit.core.order import team_limits
from orderkit.core.order.change import (
    ABSENT,
    ChangeRequester,
    ChangeVerdict,
    EditTarget,
    FieldConflict,
    FieldConflictError,
    FieldDifference,
    apply,
    differences,
    in_group,
    judge_rules,
    judge_who,
    resolve,
    same,
    value_at,
)
from orderkit.flows.change.request import (
    Changed,
    ChangePlan,
    ChangeRequest,
    State,
    check_least_values,
)
from orderkit.flows.order import cost_limit
from orderkit.flows.order.commit_judging import CommitJudge
from orderkit.flows.order.ledger_records import registered_by
from orderkit.flows.order.live_order import (
    LiveOrder,
    XrFile,
    check_delivers,
    check_name,
    find_commit,
    main_head,
    read_xr,
)
from orderkit.flows.order.order_history import last_change_of
from orderkit.flows.order.registration_check import check_references
from orderkit.flows.platform import Platform
from orderkit.ports.forge import (
    CHANGE_TRAILER,
    REASON_TRAILER,
    REQUEST_TRAILER,
    REQUESTER_ACCOUNT_TRAILER,
    Commit,
    Operation,
)
from yamlfiles import edit as yamledit
from yamlfiles.manifests import parse_documents

_SUMMARY_MAX = 72
_FULL_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class EditDraft:
    """The new text of an XR's file against one commit; not written yet."""

    current: XrFile
    data: bytes
    xr: Manifest
    """The XR as `data` has it."""
    edits: tuple[FieldDifference, ...]
    verdict: ChangeVerdict
    change_plan: ChangePlan | None = None
    """What the edit will do; None before it is planned."""
    needs: tuple[Need, ...] = ()
    """Who has to agree before it is delivered."""

    @property
    def diff(self) -> str:
        """The file's unified diff."""
        return unified(self.current, self.data)

    @property
    def summary(self) -> str:
        """The edits on one line, as a commit's first line has room for."""
        text = ", ".join(map(str, self.edits))
        if len(text) <= _SUMMARY_MAX:
            return text
        return ", ".join(edit.path for edit in self.edits)[:_SUMMARY_MAX]


def unified(before: XrFile, data: bytes) -> str:
    """Return the unified diff of an XR's file."""
    old, new = (text.decode(errors="replace").splitlines() for text in (before.data, data))
    lines = difflib.unified_diff(old, new, f"a/{before.path}", f"b/{before.path}", lineterm="")
    return "".join(f"{line}\n" for line in lines)


@dataclass(slots=True)
class ChangeEditor:
    """Drafts the edit of one request to one order; keeps what its rounds share."""

    platform: Platform
    live: LiveOrder
    request: ChangeRequest
    operation: str = field(init=False)
    targets: tuple[EditTarget, ...] = field(init=False)
    _unresolved: list[OrderkitError] = field(init=False)
    """What is wrong with edits that are not among the targets; `edit` raises it."""
    _base: XrFile | None = field(default=None, init=False)
    _judge: CommitJudge | None = field(default=None, init=False)
    _validator: Validator = field(init=False)

    def __post_init__(self) -> None:
        self.operation = self.request.operation or f"change-{uuid.uuid4().hex[:12]}"
        self._unresolved, targets = [], []
        for edit in self.request.edits:
            try:
                targets.append(resolve(self.live.kit, edit))
            except UsageError as problem:
                self._unresolved.append(problem)
        self.targets = tuple(targets)
        _refuse_doubles(self.targets)
        self._validator = Validator(self.live.kit.xrd)

    def outcome(self, draft: EditDraft, *, state: State, how: How) -> Changed:
        """Return the outcome of a draft, without the commit or pull request of its write."""
        order = self.live.entry.order
        return Changed(
            order=order,
            state=state,
            operation=self.operation,
            diff=draft.diff,
            edits=draft.edits,
            change=draft.verdict.name,
            how=how,
            warnings=(
                *draft.verdict.warnings,
                *map(str, steering_annotations(draft.xr)),
                *(f"{found.what}: {found.advice(order)}" for found in self.live.remarks),
            ),
            change_plan=draft.change_plan,
        )

    # --- reading

    def head(self) -> CommitSha:
        """Return the head of main; raises like `main_head`."""
        return main_head(self.platform, self.live.repository)

    def read(self, commit: CommitSha) -> XrFile:
        """Read the XR at a commit; raises like `read_xr`, `check_name` and `check_delivers`."""
        xr_file = read_xr(self.platform, self.live, commit)
        check_name(self.live, xr_file)
        check_delivers(self.platform, self.live, xr_file)
        return xr_file

    def base(self, current: XrFile) -> XrFile:
        """Return the XR at the base commit; without a base, as the first round read it."""
        if self._base is None:
            if self.request.base is None:
                self._base = current
            else:
                self._base = self._named_base(self.request.base)
        return self._base

    def _named_base(self, name: str) -> XrFile:
        """Read the XR at a commit; a full commit id needs no search."""
        if not _FULL_ID.fullmatch(name):
            name = find_commit(self.platform.forge, self.live, name, field="base").id
        try:
            return read_xr(self.platform, self.live, CommitSha(name))
        except NotFoundError as error:
            raise InvalidInputError(
                "base", name, f"holds no XR of {self.live.repository}: {error}", hint=error.hint
            ) from error

    # --- judging

    def judge(self, head: CommitSha) -> CommitJudge:
        """Return what judges the commits that `head` contains."""
        if self._judge is None or self._judge.head != head:
            self._judge = CommitJudge(self.platform, self.live.repository, head)
        return self._judge

    def made(self, commit: Commit, head: CommitSha) -> bool:
        """
        Say whether this operation made a commit that `head` contains.

        Raises:
            InvalidInputError: The id belongs to a request for something else.
        """
        if commit.operation != self.operation:
            return False
        # whoever can push can write the operation's id into a commit of their own
        if self.judge(head).is_proved(commit):
            self.check_digest(commit.trailers.get(REQUEST_TRAILER, ""))
            return True
        # a machine without a signing key looks at the values of the requested fields
        return not self.platform.signatures.can_sign and self._has_values(commit)

    def _has_values(self, commit: Commit) -> bool:
        """Say whether a commit gave the requested fields the requested values."""
        try:
            old, new = (
                read_xr(self.platform, self.live, revision).spec
                for revision in (*commit.parents[:1], commit.id)
            )
        except (OrderkitError, ValueError) as error:
            if isinstance(error, OrderkitError) and error.retryable:
                # what passes says nothing about the commit
                raise
            return False
        requested = apply(old, self.targets)
        steps = (target.steps for target in self.targets)
        return all(same(value_at(new, path), value_at(requested, path)) for path in steps)

    def edit(self, current: XrFile, targets: Sequence[EditTarget]) -> EditDraft:
        """
        Draft the edit against the current file.

        Raises:
            What `change` raises for requests that are refused.
        """
        base = self.base(current)
        old = current.xr.get("spec") or {}
        spec = self._applied(old, targets)
        read_to = self.request.read_to
        self._refuse_conflicts(self._named_base(read_to) if read_to else base, current, spec)
        new = {**current.xr, "spec": spec}
        edits = in_group(differences(old, spec), self.live.kit.unfold)
        if not edits:
            raise_problems(self._unresolved)
            return EditDraft(current, current.data, new, (), ChangeVerdict(()))
        verdict = self._judged(current, new, edits)
        self._check_who(verdict)
        return EditDraft(current, self._edited(current, targets, new), new, edits, verdict)

    def _applied(self, old: Any, targets: Sequence[EditTarget]) -> Any:
        try:
            return apply(old, targets)
        except UsageError as error:
            raise_problems([*self._unresolved, *error.problems])
            raise

    def _refuse_conflicts(self, base: XrFile, current: XrFile, spec: Any) -> None:
        conflicts = []
        for target in self.targets:
            was, now = (value_at(revision.spec, target.steps) for revision in (base, current))
            new = value_at(spec, target.steps)
            if same(was, now) or same(now, new) or self._may_pass(target):
                continue
            by = last_change_of(self.platform, self.live, target.steps, since=base.commit)
            conflicts.append(
                FieldConflict(
                    target.path, was, now, new,
                    by.id if by else None,
                    by.author if by else "",
                    self.judge(current.commit).requester(by) if by else "",
                )
            )  # fmt: skip
        if conflicts:
            raise FieldConflictError(self.live.entry.order, conflicts, current.commit)

    def _may_pass(self, target: EditTarget) -> bool:
        """Say whether a target cannot conflict: a list element, or a sum without a base commit."""
        return target.is_element or (target.is_sum and self.request.base is None)

    def _judged(
        self, current: XrFile, new: Manifest, edits: tuple[FieldDifference, ...]
    ) -> ChangeVerdict:
        """Return the verdict; raise all that XRD, kit, limits and the cluster refuse at once."""
        live, spec = self.live, new["spec"]
        problems = self._invalid(current, new)
        wrong = {problem.field.removeprefix("spec.") for problem in problems}
        sound = [edit for edit in edits if live.kit.parameter(edit.path) not in wrong]
        sound = [edit for edit in sound if edit.path not in wrong]
        sound_paths = [edit.path for edit in sound]

        def check_limits() -> None:
            team_limits.check_values(live.team, live.kit, spec, before=current.xr.get("spec") or {})

        def check_cost() -> None:
            if not problems:  # what the XRD refuses has no cost
                cost_limit.check_change(self.platform, live, current.xr, new)

        def check_objects() -> None:
            check_references(self.platform.cluster, live.kit, spec, changed=sound_paths)

        def check_least() -> None:
            check_least_values(self.platform.cluster, live, current.xr, sound)

        verdict: list[ChangeVerdict] = []
        rules = partial(judge_rules, live.kit, sound, change=self.request.change)
        checks = (
            lambda: verdict.append(rules()),
            check_limits,
            check_cost,
            check_objects,
            check_least,
        )
        every(checks, [*self._unresolved, *problems])
        return verdict[0]

    def _invalid(self, current: XrFile, new: Manifest) -> list[InvalidInputError]:
        """Judge the new XR and the step from the old one; what was invalid before comes last."""
        kit, check = self.live.kit, self._validator.check
        findings = (*check(new, current.xr).findings, *choice_findings(kit, new, current.xr))
        if not findings:
            return []
        old = {*check(current.xr).findings, *choice_findings(kit, current.xr)}
        caused = [finding for finding in findings if finding not in old]
        if caused:
            return [_refusal(self.live, finding, new) for finding in caused]
        finding = findings[0]
        problem = InvalidInputError(
            finding.path,
            finding.value,
            f"was already invalid before this change: {finding.message}",
            hint=f"{finding.hint}; correct it in the same change, or by hand in {current.path}",
        )
        return [problem]

    def _check_who(self, verdict: ChangeVerdict) -> None:
        """Check the kit's `who` against a proved requester; a claim proves nothing, so skip it."""
        requester = self.request.requester
        if not requester.proof:
            return
        entry = self.live.entry
        asking = ChangeRequester(
            requester.ref,
            requester.groups,
            registered_by(self.platform, entry),
            entry.team,
            self.live.kit.owner,
        )
        judge_who(verdict, asking)

    def _edited(self, current: XrFile, targets: Sequence[EditTarget], new: Manifest) -> bytes:
        """Edit the text, parse it again and compare."""
        edits = _text_edits(current, targets)
        data = yamledit.edit(current.data, edits, name=str(current.path))
        document = parse_documents(str(current.path), data)[current.document][0]
        if not same(value_at(document, current.steps), new):
            raise RefusedError(
                f"{current.path}: the edited text does not have the requested values",
                hint="edit the file by hand, and please report it",
            )
        return data

    # --- writing

    def signed(self, draft: EditDraft, account: int | None = None) -> Operation:
        """
        Return the operation that the commit carries.

        Args:
            account: The forge's id of the requester, for a proposal.
        """
        requester, order = self.request.requester, self.live.entry.order
        notes = [
            (CHANGE_TRAILER, draft.verdict.name),
            (REASON_TRAILER, self.request.reason),
            (REQUEST_TRAILER, self.digest),
            (REQUESTER_ACCOUNT_TRAILER, str(account or "")),
            *self.request.trailers,
        ]
        return Operation(
            self.operation,
            requester.ref,
            f"{order}: {draft.summary}",
            requester.proof,
            tuple((key, text) for key, text in notes if text),
        )

    @property
    def digest(self) -> str:
        """A short digest of the request: a repeated operation must request the same."""
        edits = [[target.path, target.op, target.value] for target in self.targets]
        text = json.dumps(edits, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def check_digest(self, digest: str) -> None:
        """
        Check that an operation in the history belongs to this request.

        Raises:
            InvalidInputError: The id belongs to a request for something else.
        """
        if digest and digest != self.digest:
            raise InvalidInputError(
                "operation", self.operation, "is the id of another change of this order",
                hint="give each change its own id, or none",
            )  # fmt: skip


def _refuse_doubles(targets: Sequence[EditTarget]) -> None:
    """Refuse two edits of one field, unless they add and remove elements."""
    for number, target in enumerate(targets):
        for other in targets[:number]:
            shorter = min(len(target.steps), len(other.steps))
            overlap = target.steps[:shorter] == other.steps[:shorter]
            if overlap and not (target.is_element and other.is_element):
                raise UsageError(
                    f"{target.path} and {other.path} are the same field, which is given twice"
                    if target.path != other.path
                    else f"{target.path} is given twice"
                )


def _refusal(live: LiveOrder, finding: Finding, new: Manifest) -> InvalidInputError:
    path = finding.path.removeprefix("spec.")
    return InvalidInputError(
        finding.path if path == finding.path else live.kit.parameter(path),
        field_paths.value_at(new, finding.path),
        f"is refused: {finding.message}",
        hint=finding.hint,
    )


def _text_edits(current: XrFile, targets: Sequence[EditTarget]) -> list[yamledit.Edit]:
    """Turn field edits into edits of the text; skip those that change nothing."""
    edits, spec = [], current.xr.get("spec") or {}
    for target in targets:
        old = value_at(spec, target.steps)
        new = target.result(old)
        spec = apply(spec, [target])
        if same(old, new):
            continue
        path = (*current.steps, "spec", *target.steps)
        if target.is_element:
            edit = yamledit.Edit(path, yamledit.Op(target.op), target.value, current.document)
        elif new is ABSENT:
            edit = yamledit.Edit(path, yamledit.Op.UNSET, document=current.document)
        else:
            edit = yamledit.Edit(path, yamledit.Op.SET, new, current.document)
        edits.append(edit)
    return edits
