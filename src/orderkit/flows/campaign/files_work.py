"""
Change files of an order's repository, as a draft says that looked at them.

One commit on ``main``, or a pull request: where the kit wants reviews, or the draft says why people
have to look first. Whoever can push sees nothing of this but commits and pull requests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Protocol, runtime_checkable

from ground.errors import RefusedError
from ground.names import MAIN, BlobSha, CommitSha
from ground.objects.kube_objects import Manifest
from ground.objects.values import same
from orderkit.core.campaign.deciding import OrderPhase
from orderkit.core.campaign.three_way import MergedFile
from orderkit.core.kit.model import Kit
from orderkit.core.order.order_check import check_order_files
from orderkit.core.order.order_file import MANIFESTS
from orderkit.core.plan import Plan
from orderkit.flows.argocd.commit_pinning import deliver
from orderkit.flows.campaign.order_work import Assignment, Worked
from orderkit.flows.forge_protection import needs_protection
from orderkit.flows.order.live_order import LiveOrder, read_xr
from orderkit.flows.platform import Platform
from orderkit.ports.forge import FileChange, Operation, PullDraft, Written

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
class FilesDraft:
    """What becomes of an order's files; without steps: nothing."""

    steps: tuple[FileStep, ...] = ()
    summary: str = ""
    """What the commit says, after the order's name."""
    same: str = ""
    """Why nothing changes."""
    reviews: tuple[str, ...] = ()
    """Why people have to look first: each ends "..., so it cannot be committed directly"."""
    effects: tuple[str, ...] = ()
    """What changes, if more can be said than the names of the files."""
    note: str = ""
    """What whoever plans should know."""
    plan: Plan | None = None
    version: str = ""
    """The version that the order's XR has now, if it was looked at."""

    @property
    def said(self) -> tuple[str, ...]:
        """What changes, in words."""
        return self.effects or tuple(
            f"{step.path} {'is in conflict' if step.merged.conflicts else step.what}"
            for step in self.steps
        )

    @property
    def conflicts(self) -> tuple[FileStep, ...]:
        """The files that people have to decide about."""
        return tuple(step for step in self.steps if step.merged.conflicts)


class Drafter(Protocol):
    """Says what becomes of an order's files: one kind of campaign."""

    def on(self, platform: Platform) -> Drafter:
        """Return the same through other ports."""
        ...

    def draft(self, live: LiveOrder, head: CommitSha, cluster_xr: Manifest | None) -> FilesDraft:
        """
        Say what becomes of an order's files at a commit. Nothing is written.

        Raises:
            OrderkitError: It is refused, or the forge fails.
        """
        ...


@runtime_checkable
class Undoer(Protocol):
    """A drafter that takes back in its own way: not every file may get its old content."""

    def undo(
        self, live: LiveOrder, before: CommitSha, commit: CommitSha, head: CommitSha
    ) -> FilesDraft:
        """
        Say how an order at its head gets back to what it was before a commit.

        Raises:
            OrderkitError: It changed since, or what `draft` raises.
        """
        ...


@dataclass(frozen=True)
class FilesWork:
    """Every kind of campaign that changes files as they are (see `order_work.Work`)."""

    platform: Platform
    kit: Kit
    drafter: Drafter

    def on(self, platform: Platform) -> FilesWork:
        """See `Work`."""
        return replace(self, platform=platform, drafter=self.drafter.on(platform))

    def make(
        self, live: LiveOrder, head: CommitSha, cluster_xr: Manifest | None, to: Assignment
    ) -> Worked:
        """See `Work`."""
        draft = self.drafter.draft(live, head, cluster_xr)
        if not draft.steps:
            return Worked(OrderPhase.SKIPPED, draft.same)
        if is_reviewed(live, draft, to.campaign.how):
            return self._propose(live, head, draft, to)
        written = self._write(live, draft, to)
        requester = to.requester
        deliver(self.platform, live.entry, written, requester.ref, requester.proof)
        return Worked(OrderPhase.MADE, commit=written.commit, base=head)

    def _write(
        self, live: LiveOrder, draft: FilesDraft, to: Assignment, *, branch: str = MAIN
    ) -> Written:
        changes = [FileChange(step.path, step.merged.data, step.sha) for step in draft.steps]
        operation = self._operation(live, draft, to)
        return self.platform.forge.write(live.repository, changes, operation, branch=branch)

    def _operation(self, live: LiveOrder, draft: FilesDraft, to: Assignment) -> Operation:
        order = live.entry.order
        return Operation(
            to.operation(order),
            to.requester.ref,
            f"{order}: {draft.summary}",
            to.requester.proof,
            (("Orderkit-Reason", " ".join(to.campaign.reason.split())), *to.trailers()),
        )

    def _propose(
        self, live: LiveOrder, head: CommitSha, draft: FilesDraft, to: Assignment
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
        changes, kept = self._undone(live, parent, commit, head)
        operation = Operation(
            to.operation(live.entry.order, back=True),
            to.requester.ref,
            f"{live.entry.order}: takes back campaign {to.campaign.name}",
            to.requester.proof,
            to.trailers(back=True),
        )
        if not changes:
            why = f"changed since: {', '.join(kept)}" if kept else "it is as it was already"
            return Worked(OrderPhase.KEPT, why, commit)
        written = forge.write(repo, changes, operation)
        requester = to.requester
        deliver(self.platform, live.entry, written, requester.ref, requester.proof)
        why = f"changed since, and left: {', '.join(kept)}" if kept else ""
        return Worked(OrderPhase.BACK, why, written.commit)

    def _undone(
        self, live: LiveOrder, parent: CommitSha, commit: CommitSha, head: CommitSha
    ) -> tuple[list[FileChange], list[str]]:
        """Return what takes a commit back, and the files that were changed since."""
        if isinstance(self.drafter, Undoer):
            steps = self.drafter.undo(live, parent, commit, head).steps
            return [FileChange(step.path, step.merged.data, step.sha) for step in steps], []
        forge, repo = self.platform.forge, live.repository
        old, new, there = (forge.tree(repo, at) for at in (parent, commit, head))
        changes, kept = [], []
        for path in sorted({*old, *new}):
            if old.get(path) == new.get(path):
                continue
            if there.get(path) != new.get(path):
                # neither as the commit left it nor as it was before: somebody changed it since
                kept += [str(path)] if there.get(path) != old.get(path) else []
                continue
            revision = forge.read(repo, path, parent) if path in old else None
            changes.append(FileChange(path, revision.data if revision else None, there.get(path)))
        return changes, kept


def judged_manifests(
    platform: Platform, live: LiveOrder, head: CommitSha, draft: FilesDraft
) -> FilesDraft:
    """
    Check that an order still is one, and let people look first if the XR's values change.

    Raises:
        InvalidInputError, SeveralProblemsError: The XRD refuses what would come out.
    """
    changed = {step.path: step.merged.data for step in draft.steps}
    if not any(path.is_relative_to(MANIFESTS) for path in changed):
        return draft
    forge, repo = platform.forge, live.repository
    files = dict(changed)
    for path in forge.tree(repo, head):
        if path.is_relative_to(MANIFESTS) and path not in files:
            revision = forge.read(repo, path, head)
            files[path] = revision.data if revision else None
    kept = {path: data for path, data in files.items() if data is not None}
    xr = check_order_files(live.kit, live.entry.order, kept)
    if same(xr.get("spec"), read_xr(platform, live, head).spec):
        return draft
    return replace(draft, reviews=(*draft.reviews, "the XR's values change"))


def is_reviewed(live: LiveOrder, draft: FilesDraft, how: str) -> bool:
    """
    Say whether people look at a draft first.

    Args:
        how: What the campaign says: ``kit``, ``direct`` or ``review``.

    Raises:
        RefusedError: They have to, and the campaign wants to commit directly.
    """
    reasons = [*draft.reviews]
    if draft.conflicts:
        reasons.insert(0, "files are in conflict")
    if needs_protection(live.kit):
        reasons.append(f"kit {live.kit.name} wants reviews")
    if reasons and how == "direct":
        raise RefusedError(
            f"{live.entry.order}: {reasons[0]}, so the files cannot be committed directly",
            hint="how: kit opens a pull request where one is needed",
        )
    return bool(reasons) or how == "review"


def pull_body(draft: FilesDraft, to: Assignment) -> str:
    """Return the description of a pull request: what becomes of each file, and the conflicts."""
    lines = [to.campaign.reason, "", f"Campaign `{to.campaign.name}`."]
    lines += ["", "| File | What |", "|---|---|"]
    lines += [f"| `{step.path}` | {step.what} |" for step in draft.steps]
    for effect in (*draft.effects, *draft.reviews):
        lines += ["", f"- {effect.replace(chr(10), ' ')}"]
    for step in draft.conflicts:
        lines += ["", f"**`{step.path}` is in conflict.** The branch has the skeleton's side."]
        for conflict in step.merged.conflicts:
            fence = "````"
            shown = conflict[:_SHOWN].replace(fence, "' ' '")
            lines += ["", f"{fence}text", shown, fence]
    lines += ["", draft.note] if draft.note else []
    return "\n".join(lines) + "\n"
