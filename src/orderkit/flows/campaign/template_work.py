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

from ground.errors import NotFoundError
from ground.names import BlobSha, CommitSha, blob_sha
from ground.objects.kube_objects import Manifest
from orderkit.core.campaign.definition import TemplateFiles
from orderkit.core.campaign.three_way import merged
from orderkit.core.kit.model import Kit
from orderkit.core.order import order_file
from orderkit.flows.campaign.files_work import FilesDraft, FileStep, judged_manifests
from orderkit.flows.campaign.skeletons import Skeletons
from orderkit.flows.order.live_order import LiveOrder
from orderkit.flows.platform import Platform

_FOLLOWS = FilesDraft(same="it follows the skeleton already")
_UNKNOWN = (
    "nobody knows which pack it followed before, so each file that differs from the skeleton is"
    " taken for a conflict"
)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The three sides of a merge: what was rendered, what is, and what there is at a commit."""

    then: Mapping[PurePosixPath, bytes]
    now: Mapping[PurePosixPath, bytes]
    there: Mapping[PurePosixPath, BlobSha]


@dataclass
class TemplateDrafter:
    """The kind ``template`` (see `files_work.Drafter`)."""

    platform: Platform
    kit: Kit
    files: TemplateFiles | None
    known: Skeletons | None = None

    @cached_property
    def skeletons(self) -> Skeletons:
        """What renders; shared by the copies of this."""
        self.known = self.known or Skeletons(self.platform, self.kit)
        return self.known

    def on(self, platform: Platform) -> TemplateDrafter:
        """See `Drafter`."""
        return TemplateDrafter(platform, self.kit, self.files, self.skeletons)

    def draft(
        self,
        live: LiveOrder,
        head: CommitSha,
        cluster_xr: Manifest | None = None,  # noqa: ARG002 - another kind needs it
    ) -> FilesDraft:
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
            return _FOLLOWS
        now = self.skeletons.now(record, entry.order, entry.team)
        then = self.skeletons.then(record, entry.order, entry.team)
        sides = _Sides(then or {}, now, forge.tree(repo, head))
        steps = []
        for path in sorted({*now, *(then or {})}):
            if self._is_meant(path):
                step = self._step(live, head, path, sides)
                steps += [step] if step else []
        if all(step.path == order_file.PATH for step in steps):
            return _FOLLOWS  # only the pack's commit differs: the skeleton is the same
        count = f"{len(steps)} file{'s' * (len(steps) != 1)}"
        draft = FilesDraft(
            tuple(steps),
            f"{count} follow the pack at {self.skeletons.commit[:8]}",
            note="" if then is not None else _UNKNOWN,
        )
        return judged_manifests(self.platform, live, head, draft)

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
