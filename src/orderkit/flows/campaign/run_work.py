"""
Let somebody's own program edit the files of an order.

It runs confined and sees only the text files of this order's repository. Its answer is judged as a
change by hand would be: paths that Orderkit keeps are refused, the XR has to fit its XRD, and where
its values change people look first.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from ground.errors import InvalidInputError, RefusedError
from ground.names import BlobSha, CommitSha
from ground.objects.kube_objects import Manifest
from orderkit.core.campaign.definition import RunProgram
from orderkit.core.campaign.three_way import MergedFile
from orderkit.flows.campaign.files_work import FilesDraft, FileStep, judged_manifests
from orderkit.flows.order.live_order import LiveOrder
from orderkit.flows.platform import Platform

_FILES_MAX, _BYTES_MAX = 200, 2 << 20
_KEPT = (".orderkit", ".git")


@dataclass(frozen=True)
class RunDrafter:
    """The kind ``run`` (see `files_work.Drafter`)."""

    platform: Platform
    run: RunProgram

    def on(self, platform: Platform) -> RunDrafter:
        """See `Drafter`."""
        return replace(self, platform=platform)

    def draft(
        self,
        live: LiveOrder,
        head: CommitSha,
        cluster_xr: Manifest | None,  # noqa: ARG002 - another kind needs it
    ) -> FilesDraft:
        """
        Say what the program makes of an order's files.

        Raises:
            RefusedError: It failed, was stopped, or wants what it may not.
            InvalidInputError: The XRD refuses what it makes of the XR.
        """
        tree = self.platform.forge.tree(live.repository, head)
        texts = self._texts(live, head, tree)
        entry = live.entry
        order = {
            "order": entry.order,
            "team": entry.team,
            "kit": live.kit.name,
            "files": {str(path): text for path, text in texts.items()},
        }
        said = self.platform.run_program(self.run.program, order)
        steps = []
        for name, text in sorted(said.items()):
            path = _checked_path(name, tree, texts)
            if text != texts.get(path):
                data = None if text is None else text.encode("utf-8", "strict")
                steps.append(FileStep(path, MergedFile(data), tree.get(path)))
        if not steps:
            return FilesDraft(same="the program changes nothing")
        count = f"{len(steps)} file{'s' * (len(steps) != 1)}"
        draft = FilesDraft(tuple(steps), f"the campaign's program changes {count}")
        return judged_manifests(self.platform, live, head, draft)

    def _texts(
        self, live: LiveOrder, head: CommitSha, tree: Mapping[PurePosixPath, BlobSha]
    ) -> dict[PurePosixPath, str]:
        """Return the text files that the program may see."""
        patterns = self.run.files or ("*",)
        wanted = [
            path
            for path in sorted(tree)
            if path.parts[0] not in _KEPT
            and any(fnmatch.fnmatchcase(str(path), pattern) for pattern in patterns)
        ]
        texts: dict[PurePosixPath, str] = {}
        size = 0
        for path in wanted:
            revision = self.platform.forge.read(live.repository, path, head)
            if revision is None:
                continue
            size += len(revision.data)
            if len(wanted) > _FILES_MAX or size > _BYTES_MAX:
                raise RefusedError(
                    f"{live.repository}: {len(wanted)} files are more than a program gets"
                    f" ({_FILES_MAX} files, {_BYTES_MAX >> 20} MiB)",
                    hint="name the files that it needs: spec.what.run.files",
                )
            try:
                texts[path] = revision.data.decode()
            except UnicodeDecodeError:
                continue  # it is no text, and stays as it is
        return texts


def _checked_path(
    name: str,
    tree: Mapping[PurePosixPath, BlobSha],
    texts: Mapping[PurePosixPath, str],
) -> PurePosixPath:
    """
    Return the path that a program names.

    Raises:
        InvalidInputError: It leads out of the repository, or to what is not the program's.
    """
    path = PurePosixPath(name)
    rule = ""
    if path.is_absolute() or ".." in path.parts or not path.parts or str(path) != name:
        rule = "is no path inside the repository"
    elif path.parts[0] in _KEPT:
        rule = f"is below {path.parts[0]}/, which no program may change"
    elif path in tree and path not in texts:
        rule = "is a file that the program was not given"
    if rule:
        hint = "return paths such as README.md; name what it may see in spec.what.run.files"
        raise InvalidInputError("spec.what.run.program", name, rule, hint=hint)
    return path
