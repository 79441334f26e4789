"""
Think a change through: the base, the new XR, the rules, the edited text. Writes nothing.

Called by the other modules of this package, once per round; what rounds share is kept.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from orderkit.core.errors import InvalidInputError, NotFoundError, RefusedError, UsageError
from orderkit.core.kit.model import How
from orderkit.core.names import CommitSha
from orderkit.core.objects.kube_objects import Manifest
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
    judge_rules,
    judge_who,
    resolve,
    same,
    value_at,
)
from orderkit.core.schema.validate import Finding, Validator, hints
from orderkit.core.yaml import edit as yamledit
from orderkit.core.yaml.manifests import parse_documents
from orderkit.flows.change.change_plan import Foretold
from orderkit.flows.change.request import Changed, ChangeRequest, State
from orderkit.flows.order.live_order import LiveOrder, XrFile, check_name, find_commit, read_xr
from orderkit.flows.order.order_history import last_change_of
from orderkit.flows.order.reference_check import check_references
from orderkit.flows.platform import Platform
from orderkit.ports.forge import CHANGE_TRAILER, REASON_TRAILER, REQUEST_TRAILER, Operation

_SUMMARY_MAX = 72
_FULL_ID = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class EditDraft:
    """A change thought through against one commit; nothing is written yet."""

    seen: XrFile
    data: bytes
    xr: Manifest
    """The XR as `data` has it."""
    edits: tuple[FieldDifference, ...]
    verdict: ChangeVerdict
    foretold: Foretold | None = None
    """What it does, where that was asked for."""

    @property
    def diff(self) -> str:
        """The file's unified diff."""
        return unified(self.seen, self.data)

    @property
    def summary(self) -> str:
        """The edits on one line, as a commit's first line has room for."""
        told = ", ".join(map(str, self.edits))
        if len(told) <= _SUMMARY_MAX:
            return told
        return ", ".join(edit.path for edit in self.edits)[:_SUMMARY_MAX]


def unified(seen: XrFile, data: bytes) -> str:
    """Return the unified diff of an XR's file."""
    old, new = (text.decode(errors="replace").splitlines() for text in (seen.data, data))
    lines = difflib.unified_diff(old, new, f"a/{seen.path}", f"b/{seen.path}", lineterm="")
    return "".join(f"{line}\n" for line in lines)


@dataclass(slots=True)
class Planner:
    """One request against one order, with what its rounds share."""

    platform: Platform
    live: LiveOrder
    wanted: ChangeRequest
    operation: str = field(init=False)
    targets: tuple[EditTarget, ...] = field(init=False)
    _base: XrFile | None = field(default=None, init=False)
    _validator: Validator = field(init=False)

    def __post_init__(self) -> None:
        self.operation = self.wanted.operation or f"change-{uuid.uuid4().hex[:12]}"
        self.targets = tuple(resolve(self.live.kit, edit) for edit in self.wanted.edits)
        _refuse_doubles(self.targets)
        self._validator = Validator(self.live.kit.xrd)

    def told(self, plan: EditDraft, *, state: State, how: How) -> Changed:
        """Return the result of a plan, without what its write came to."""
        return Changed(
            order=self.live.entry.order,
            state=state,
            operation=self.operation,
            diff=plan.diff,
            edits=plan.edits,
            change=plan.verdict.name,
            how=how,
            warnings=plan.verdict.warnings,
            foretold=plan.foretold,
        )

    # --- reading

    def head(self) -> CommitSha:
        """
        Return the head of main.

        Raises:
            RefusedError: The repository is empty.
        """
        found = self.platform.forge.head(self.live.repository)
        if found is None:
            raise RefusedError(f"{self.live.repository} has no commit: nothing to change")
        return found

    def read(self, commit: CommitSha) -> XrFile:
        """Read the XR at a commit; raises like `read_xr` and `check_name`."""
        seen = read_xr(self.platform, self.live, commit)
        check_name(self.live, seen)
        return seen

    def base(self, seen: XrFile) -> XrFile:
        """Return the XR that the person looked at; without one, as this change saw it first."""
        if self._base is None:
            if self.wanted.base is None:
                self._base = seen
            else:
                self._base = self._named_base(self.wanted.base)
        return self._base

    def _named_base(self, name: str) -> XrFile:
        """Read the XR at a commit; one that is named in full need not be looked for."""
        if not _FULL_ID.fullmatch(name):
            name = find_commit(self.platform, self.live, name, field="base").id
        try:
            return read_xr(self.platform, self.live, CommitSha(name))
        except NotFoundError as error:
            raise InvalidInputError(
                "base", name, f"holds no XR of {self.live.repository}: {error}", hint=error.hint
            ) from error

    # --- judging

    def plan(self, seen: XrFile, targets: Sequence[EditTarget]) -> EditDraft:
        """
        Think a change through against what was read.

        Raises:
            Everything that `change` says about requests that are not carried out.
        """
        base = self.base(seen)
        old = seen.xr.get("spec") or {}
        spec = apply(old, targets)
        self._refuse_conflicts(base, seen, spec)
        new = {**seen.xr, "spec": spec}
        found = differences(old, spec)
        if not found:
            return EditDraft(seen, seen.data, new, (), ChangeVerdict(()))
        self._validate(seen, new)
        verdict = judge_rules(self.live.kit, found, change=self.wanted.change)
        team_limits.check_values(self.live.team, self.live.kit, spec, before=old)
        self._check_who(verdict)
        check_references(self.platform, self.live.kit, spec, changed=[each.path for each in found])
        return EditDraft(seen, self._edited(seen, targets, new), new, found, verdict)

    def _refuse_conflicts(self, base: XrFile, seen: XrFile, spec: Any) -> None:
        conflicts = []
        for target in self.targets:
            was, now = (value_at(each.spec, target.steps) for each in (base, seen))
            wanted = value_at(spec, target.steps)
            if same(was, now) or same(now, wanted) or self._may_pass(target):
                continue
            by = last_change_of(self.platform, self.live, target.steps, since=base.commit)
            conflicts.append(
                FieldConflict(
                    target.path, was, now, wanted,
                    by.id if by else None,
                    by.author if by else "",
                    by.requester if by else "",
                )
            )  # fmt: skip
        if conflicts:
            raise FieldConflictError(self.live.entry.order, conflicts, seen.commit)

    def _may_pass(self, target: EditTarget) -> bool:
        """An element of a list does not mind the others; nor a sum that nobody had seen."""
        return target.is_element or (target.is_sum and self.wanted.base is None)

    def _validate(self, seen: XrFile, new: Manifest) -> None:
        """Judge the new XR, then the step from the old one; the first finding is the error."""
        findings = self._validator.check(new, seen.xr).findings
        if not findings:
            return
        old = set(self._validator.check(seen.xr).findings)
        caused = [finding for finding in findings if finding not in old]
        if caused:
            raise _refusal(self.live, caused[0], new)
        finding = findings[0]
        raise InvalidInputError(
            finding.path,
            finding.value,
            f"was refused before this change already: {finding.message}",
            hint=f"{finding.hint}; correct it in the same change, or by hand in {seen.path}",
        )

    def _check_who(self, verdict: ChangeVerdict) -> None:
        """Hold the kit's `who` against a proved requester; a claim is worth nothing either way."""
        asked = self.wanted.requester
        if not asked.proof:
            return
        record = self.live.record
        asking = ChangeRequester(
            asked.ref, asked.groups, record.requester, record.team, self.live.kit.owner
        )
        judge_who(verdict, asking)

    def _edited(self, seen: XrFile, targets: Sequence[EditTarget], new: Manifest) -> bytes:
        """Edit the text, and read again what became of it."""
        edits = _text_edits(seen, targets)
        data = yamledit.edit(seen.data, edits, name=str(seen.path))
        document = parse_documents(str(seen.path), data)[seen.document][0]
        if not same(value_at(document, seen.place), new):
            raise RefusedError(
                f"{seen.path}: the edited text does not say what was asked for",
                hint="edit the file by hand, and please report it",
            )
        return data

    # --- writing

    def signed(self, plan: EditDraft) -> Operation:
        """Return the operation that the commit carries."""
        asked, order = self.wanted.requester, self.live.entry.order
        notes = [
            (CHANGE_TRAILER, plan.verdict.name),
            (REASON_TRAILER, self.wanted.reason),
            (REQUEST_TRAILER, self.digest),
        ]
        return Operation(
            self.operation,
            asked.ref,
            f"{order}: {plan.summary}",
            asked.proof,
            tuple((key, text) for key, text in notes if text),
        )

    @property
    def digest(self) -> str:
        """A short digest of what is asked for: the same operation must ask for the same."""
        asked = [[target.path, target.op, target.value] for target in self.targets]
        text = json.dumps(asked, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def check_digest(self, digest: str) -> None:
        """
        Check that an operation found is this request's.

        Raises:
            InvalidInputError: The id belongs to a request for something else.
        """
        if digest and digest != self.digest:
            raise InvalidInputError(
                "operation", self.operation, "is the id of another change of this order",
                hint="give each change an id of its own, or none",
            )  # fmt: skip


def _refuse_doubles(targets: Sequence[EditTarget]) -> None:
    """Two edits of one field are a mistake, unless they add and remove elements."""
    for number, target in enumerate(targets):
        for other in targets[:number]:
            shorter = min(len(target.steps), len(other.steps))
            overlap = target.steps[:shorter] == other.steps[:shorter]
            if overlap and not (target.is_element and other.is_element):
                raise UsageError(
                    f"{target.path} and {other.path} are the same field, given twice"
                    if target.path != other.path
                    else f"{target.path} is given twice"
                )


def _refusal(live: LiveOrder, finding: Finding, new: Manifest) -> InvalidInputError:
    path = finding.path.removeprefix("spec.")
    return InvalidInputError(
        live.kit.parameter(path) if path in live.kit.aliases else finding.path,
        hints.value_at(new, finding.path),
        f"is refused: {finding.message}",
        hint=finding.hint,
    )


def _text_edits(seen: XrFile, targets: Sequence[EditTarget]) -> list[yamledit.Edit]:
    """Turn field edits into edits of the text; sums are set, what is so already is left out."""
    edits, spec = [], seen.xr.get("spec") or {}
    for target in targets:
        old = value_at(spec, target.steps)
        new = target.result(old)
        spec = apply(spec, [target])
        if same(old, new):
            continue
        path = (*seen.place, "spec", *target.steps)
        if target.is_element:
            edit = yamledit.Edit(path, yamledit.Op(target.op), target.value, seen.document)
        elif new is ABSENT:
            edit = yamledit.Edit(path, yamledit.Op.UNSET, document=seen.document)
        else:
            edit = yamledit.Edit(path, yamledit.Op.SET, new, seen.document)
        edits.append(edit)
    return edits
