"""
Bring the generated files of an order's repository to the pack's present skeleton.

What people added or changed stays (``core.campaign.three_way``). Clean merges are one commit;
conflicts, and what would change the XR's ``spec``, are a pull request that shows them. Where a kit
wants reviews, everything is a pull request.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from ground.errors import NotFoundError, RefusedError
from ground.names import MAIN, BlobSha, CommitSha, blob_sha
from ground.objects.kube_objects import Manifest
from ground.objects.values import same
from orderkit.core.campaign.deciding import OrderPhase
from orderkit.core.campaign.definition import TemplateFiles
from orderkit.core.campaign.three_way import MergedFile, merged
from orderkit.core.kit.model import Kit
from orderkit.core.order import order_file
from orderkit.core.order.order_check import check_order_files
from orderkit.core.order.order_file import MANIFESTS
from orderkit.flows.argocd.commit_pinning import deliver
from orderkit.flows.campaign.order_work import Assignment, Worked
from orderkit.flows.campaign.skeletons import Skeletons
from orderkit.flows.main_protection import needs_protection
from orderkit.flows.order.live_order import LiveOrder, read_xr
from orderkit.flows.platform import Platform
from orderkit.ports.forge import FileChange, Operation, PullDraft

_SHOWN = 4_000
"""Most letters of a conflict in the text of a pull request."""


@dataclass(frozen=True, slots=True)
class FileStep:
    """What becomes of one file."""

    path: PurePosixPath
    merged: MergedFile
    sha: BlobSha | None
    """Blob id of the file that is there; None: there is none."""

    @property
    def what(self) -> str:
        """One word."""
        if self.merged.conflicts:
            return "conflict"
        if self.merged.data is None:
            return "removed"
        return "added" if self.sha is None else "changed"


@dataclass(frozen=True, slots=True)
class _Sides:
    """The three sides of a merge: what was rendered, what is, and what there is at a commit."""

    then: Mapping[PurePosixPath, bytes]
    now: Mapping[PurePosixPath, bytes]
    there: Mapping[PurePosixPath, BlobSha]


@dataclass(frozen=True, slots=True)
class TemplateDraft:
    """How far an order's files are from the skeleton, and what brings them to it."""

    steps: tuple[FileStep, ...]
    is_known: bool
    """Whether the commit of the pack is known that the order followed last."""
    pack_commit: str
    changes_spec: bool = False

    @property
    def conflicts(self) -> tuple[FileStep, ...]:
        """The files that people have to decide about."""
        return tuple(step for step in self.steps if step.merged.conflicts)


@dataclass
class TemplateWork:
    """The kind ``template`` (see `order_work.Work`)."""

    platform: Platform
    kit: Kit
    files: TemplateFiles | None
    known: Skeletons | None = None

    @cached_property
    def skeletons(self) -> Skeletons:
        """What renders; shared by the copies of this."""
        self.known = self.known or Skeletons(self.platform, self.kit)
        return self.known

    def on(self, platform: Platform) -> TemplateWork:
        """See `Work`."""
        return TemplateWork(platform, self.kit, self.files, self.skeletons)

    def draft(self, live: LiveOrder, head: CommitSha) -> TemplateDraft:
        """
        Compare an order's files at a commit with the skeleton. Nothing is written.

        Raises:
            InvalidInputError: The present form refuses the order's values, or the XRD what would
                come out.
            NotFoundError: It has no record.
        """
        forge, repo = self.platform.forge, live.repository
        revision = forge.read(repo, order_file.PATH, head)
        if revision is None:
            raise NotFoundError(f"{repo} has no {order_file.PATH}")
        record = order_file.parse(revision.data, name=f"{repo}/{order_file.PATH}")
        entry = live.entry
        if record.pack_commit and record.pack_commit == self.skeletons.commit:
            return TemplateDraft((), is_known=True, pack_commit=record.pack_commit)
        now = self.skeletons.now(record, entry.order, entry.team)
        then = self.skeletons.then(record, entry.order, entry.team)
        sides = _Sides(then or {}, now, forge.tree(repo, head))
        steps = []
        for path in sorted({*now, *(then or {})}):
            if self._is_meant(path):
                step = self._step(live, head, path, sides)
                steps += [step] if step else []
        if all(step.path == order_file.PATH for step in steps):
            steps = []  # only the pack's commit differs: the skeleton is the same
        draft = TemplateDraft(tuple(steps), then is not None, self.skeletons.commit)
        return self._checked(live, head, draft)

    def _is_meant(self, path: PurePosixPath) -> bool:
        paths = self.files.paths if self.files else ()
        # Without all files, the record must not say that the order follows the new pack.
        return not paths or any(fnmatch.fnmatchcase(str(path), pattern) for pattern in paths)

    def _step(
        self, live: LiveOrder, head: CommitSha, path: PurePosixPath, sides: _Sides
    ) -> FileStep | None:
        sha, old, new = sides.there.get(path), sides.then.get(path), sides.now.get(path)
        if old == new or (new is not None and sha == blob_sha(new, sha or "")):
            return None
        if sha is None or (old is not None and sha == blob_sha(old, sha)):
            own = None if sha is None else old
        else:
            revision = self.platform.forge.read(live.repository, path, head)
            own = revision.data if revision else None
        outcome = merged(path, old, new, own)
        return FileStep(path, outcome, sha) if outcome else None

    def _checked(self, live: LiveOrder, head: CommitSha, draft: TemplateDraft) -> TemplateDraft:
        """Check that the order still is one, and say whether the XR's values would change."""
        changed = {step.path: step.merged.data for step in draft.steps}
        if not any(path.is_relative_to(MANIFESTS) for path in changed):
            return draft
        forge, repo = self.platform.forge, live.repository
        files = dict(changed)
        for path in forge.tree(repo, head):
            if path.is_relative_to(MANIFESTS) and path not in files:
                revision = forge.read(repo, path, head)
                files[path] = revision.data if revision else None
        kept = {path: data for path, data in files.items() if data is not None}
        xr = check_order_files(live.kit, live.entry.order, kept)
        before = read_xr(self.platform, live, head).spec
        changes_spec = not same(xr.get("spec"), before)
        return TemplateDraft(draft.steps, draft.is_known, draft.pack_commit, changes_spec)

    def make(
        self,
        live: LiveOrder,
        head: CommitSha,
        cluster_xr: Manifest | None,  # noqa: ARG002 - another kind needs it
        to: Assignment,
    ) -> Worked:
        """See `Work`."""
        draft = self.draft(live, head)
        if not draft.steps:
            return Worked(OrderPhase.SKIPPED, "it follows the skeleton already")
        if self._is_reviewed(live, draft, to):
            return self._propose(live, head, draft, to)
        commit = self._write(live, draft, to)
        requester = to.requester
        deliver(self.platform, live.entry, commit, requester.ref, requester.proof)
        return Worked(OrderPhase.MADE, commit=commit, base=head)

    def _is_reviewed(self, live: LiveOrder, draft: TemplateDraft, to: Assignment) -> bool:
        """
        Say whether people look at it first.

        Raises:
            RefusedError: They have to, and the campaign wants to commit directly.
        """
        reasons = {
            "files are in conflict": bool(draft.conflicts),
            "the XR's values change": draft.changes_spec,
            f"kit {live.kit.name} wants reviews": needs_protection(live.kit),
        }
        why = next((reason for reason, holds in reasons.items() if holds), "")
        if why and to.campaign.how == "direct":
            raise RefusedError(
                f"{live.entry.order}: {why}, so the files cannot be committed directly",
                hint="how: kit opens a pull request where one is needed",
            )
        return bool(why) or to.campaign.how == "review"

    def _write(
        self, live: LiveOrder, draft: TemplateDraft, to: Assignment, *, branch: str = MAIN
    ) -> CommitSha:
        changes = [FileChange(step.path, step.merged.data, step.sha) for step in draft.steps]
        operation = self._operation(live, draft, to)
        written = self.platform.forge.write(live.repository, changes, operation, branch=branch)
        return written.commit

    def _operation(self, live: LiveOrder, draft: TemplateDraft, to: Assignment) -> Operation:
        order = live.entry.order
        count = f"{len(draft.steps)} file{'s' * (len(draft.steps) != 1)}"
        return Operation(
            to.operation(order),
            to.requester.ref,
            f"{order}: {count} follow the pack at {draft.pack_commit[:8]}",
            to.requester.proof,
            (("Orderkit-Reason", " ".join(to.campaign.reason.split())), *to.trailers()),
        )

    def _propose(
        self, live: LiveOrder, head: CommitSha, draft: TemplateDraft, to: Assignment
    ) -> Worked:
        forge, repo = self.platform.forge, live.repository
        branch = f"orderkit/{to.record.id}-{to.record.attempt}-{head[:8]}"
        forge.ensure_branch(repo, branch, head)
        self._write(live, draft, to, branch=branch)
        operation = self._operation(live, draft, to)
        title = f"{to.campaign.reason.splitlines()[0][:60]} ({to.campaign.name})"
        pull = forge.open_pull(
            repo, PullDraft(title, pull_body(draft, to), branch, MAIN), operation
        )
        why = f"pull request #{pull.number} is open"
        return Worked(OrderPhase.PROPOSED, why, pull=pull.number)

    def take_back(self, live: LiveOrder, commit: CommitSha, to: Assignment) -> Worked:
        """Give each file that the commit changed its old content, unless it changed since."""
        forge, repo = self.platform.forge, live.repository
        history = forge.commits(repo, ref=commit, limit=1)
        head = forge.head(repo)
        if not history or not history[0].parents or head is None:
            raise RefusedError(f"{repo} has no commit before {commit[:8]}")
        if needs_protection(live.kit):
            raise RefusedError(
                f"{live.entry.order}: kit {live.kit.name} wants reviews",
                hint=f"revert {commit[:8]} in a pull request",
            )
        parent = history[0].parents[0]
        old, new, there = (forge.tree(repo, at) for at in (parent, commit, head))
        changes, kept = [], []
        for path in sorted({*old, *new}):
            if old.get(path) == new.get(path):
                continue
            if there.get(path) != new.get(path):
                kept += [str(path)] if there.get(path) != old.get(path) else []
                continue
            revision = forge.read(repo, path, parent) if path in old else None
            data = revision.data if revision else None
            changes.append(FileChange(path, data, there.get(path)))
        operation = Operation(
            to.operation(live.entry.order, back=True),
            to.requester.ref,
            f"{live.entry.order}: takes back campaign {to.campaign.name}",
            to.requester.proof,
            to.trailers(back=True),
        )
        if not changes:
            return Worked(OrderPhase.KEPT, f"changed since: {', '.join(kept)}", commit)
        written = forge.write(repo, changes, operation).commit
        requester = to.requester
        deliver(self.platform, live.entry, written, requester.ref, requester.proof)
        why = f"changed since, and left: {', '.join(kept)}" if kept else ""
        return Worked(OrderPhase.BACK, why, written)


def pull_body(draft: TemplateDraft, to: Assignment) -> str:
    """Return the description of a pull request: what becomes of each file, and the conflicts."""
    lines = [to.campaign.reason, "", f"Campaign `{to.campaign.name}`."]
    lines += ["", "| File | What |", "|---|---|"]
    lines += [f"| `{step.path}` | {step.what} |" for step in draft.steps]
    if draft.changes_spec:
        lines += ["", "The values of the order change. Look at the plan."]
    for step in draft.conflicts:
        lines += ["", f"**`{step.path}` is in conflict.** The branch has the skeleton's side."]
        for conflict in step.merged.conflicts:
            fence = "````"
            shown = conflict[:_SHOWN].replace(fence, "' ' '")
            lines += ["", f"{fence}text", shown, fence]
    if not draft.is_known:
        lines += ["", "Nobody knows which pack this order followed before, so each file that"]
        lines += ["differs from the skeleton is taken for a conflict."]
    return "\n".join(lines) + "\n"
