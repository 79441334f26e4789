"""
The kinds of campaigns that change files, and the work of two: programs and templates.

`drafter_of` returns what does a kind's work, `check_kind` checks what the kind needs first.

`RunDrafter` lets somebody's own program edit the files of an order. It runs confined and sees only
the text files of this order's repository. Its answer is judged as a change by hand would be: paths
that Orderkit keeps are refused, the XR has to fit its XRD, and where its values change people look
first.

`TemplateDrafter` brings the generated files of an order's repository to the pack's present
skeleton. What people added or changed stays (``core.campaign.three_way``). Clean merges are one
commit; conflicts, and what would change the XR's ``spec``, are a pull request that shows them.
Where a kit wants reviews, everything is a pull request.

`Skeletons` renders a kit's skeleton for an order, with the pack as it is, and as it was at a
commit. An order's record names the commit of the pack that it was placed from, or brought to later.
That is a commit of the pack's own repository, so the platform's copy is searched for the one that
was published from it.
"""

from __future__ import annotations

import fnmatch
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import PurePosixPath

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import BlobSha, CommitSha, OrderId, TeamName, blob_sha
from ground.objects.kube_objects import Manifest
from orderkit.core.campaign.definition import Campaign, RunProgram, TemplateFiles
from orderkit.core.campaign.three_way import MergedFile, merged
from orderkit.core.kit.change_forms import order_data
from orderkit.core.kit.literals import PACK_COMMIT
from orderkit.core.kit.model import Kit
from orderkit.core.order import order_file
from orderkit.core.order.order_file import OrderFile
from orderkit.flows.campaign.files_work import Drafter, FilesDraft, FileStep, judged_manifests
from orderkit.flows.campaign.revision_work import RevisionDrafter, choose_revision
from orderkit.flows.campaign.version_work import VersionDrafter, check_version
from orderkit.flows.order.live_order import LiveOrder
from orderkit.flows.platform import Platform, RepositorySnapshot, pack_snapshot
from orderkit.flows.template import scaffolder
from orderkit.flows.template.published_templates import TemplateSource, template_at

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


_PUBLICATIONS = 500
"""How many publications of the pack are searched for a commit."""
Files = Mapping[PurePosixPath, bytes]


@dataclass
class Skeletons:
    """Renders the skeleton of one kit; reads each version of the pack once."""

    platform: Platform
    kit: Kit
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _by_commit: dict[str, TemplateSource | None] = field(default_factory=dict)
    _present: TemplateSource | None = None

    def now(self, record: OrderFile, order: OrderId, team: TeamName) -> dict[PurePosixPath, bytes]:
        """
        Return the files that the skeleton renders now.

        Raises:
            InvalidInputError: The form refuses the values that the order was placed with.
            NotFoundError: The pack has no template of the kit.
        """
        return self._rendered(self._published(), record, order, team)

    def _published(self) -> TemplateSource | None:
        with self._lock:
            if self._present is None:
                files = pack_snapshot(self.platform)
                self._present = template_at(self.platform, files, self.kit.name)
            return self._present

    def then(
        self, record: OrderFile, order: OrderId, team: TeamName
    ) -> dict[PurePosixPath, bytes] | None:
        """
        Return the files that it rendered at the record's commit; None: nobody knows that commit.

        Raises:
            InvalidInputError: The form refused the values then, too.
        """
        with self._lock:
            if record.pack_commit not in self._by_commit:
                source = self._published_from(record.pack_commit) if record.pack_commit else None
                self._by_commit[record.pack_commit] = source
            source = self._by_commit[record.pack_commit]
        return self._rendered(source, record, order, team) if source else None

    @property
    def commit(self) -> str:
        """The commit of the pack's own repository that is published; empty: not known."""
        return _commit_of(self._published())

    def _published_from(self, commit: str) -> TemplateSource | None:
        forge, repo = self.platform.forge, self.platform.pack_repo
        path = PurePosixPath("templates", self.kit.name, "template.yaml")
        for publication in forge.commits(repo, path=path, limit=_PUBLICATIONS):
            files = RepositorySnapshot(publication.id, forge.tree(repo, publication.id))
            source = template_at(self.platform, files, self.kit.name)
            if _commit_of(source) == commit:
                return source
        return None

    def _rendered(
        self, source: TemplateSource | None, record: OrderFile, order: OrderId, team: TeamName
    ) -> dict[PurePosixPath, bytes]:
        if source is None:
            return {}
        values = order_data(self.kit, record.ordered, order=order, team=team)
        result = scaffolder.run(
            source.template,
            source.template.validate(values),
            files=source.folder,
            services=None,
            user=scaffolder.User(record.requester),
            task_id=f"order-{order}",
            on_step=lambda _: None,
            options=scaffolder.TaskOptions(dry_run=True),
        )
        return {path: file.data for path, file in result.workspace.items()}


def _commit_of(source: TemplateSource | None) -> str:
    """Return the commit that a template was published from."""
    schema = source.template.properties.get(PACK_COMMIT) if source else None
    return str((schema or {}).get("default") or "")


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


@dataclass(frozen=True, slots=True)
class KindCheck:
    """What is found when a campaign is planned or started."""

    notes: tuple[str, ...] = ()
    revision: str = ""
    """What orders are pinned to."""


def check_kind(platform: Platform, campaign: Campaign, kit: Kit) -> KindCheck:
    """
    Check what a kind of campaign needs beyond its file.

    Raises:
        InvalidInputError, NotFoundError, RefusedError: Something is missing.
        RemoteError: The cluster does not answer.
    """
    what = campaign.what
    if what.version is not None:
        return KindCheck(check_version(platform.cluster, kit, what.version.to))
    if what.revision is not None:
        chosen = choose_revision(platform, kit, what.revision)
        return KindCheck(chosen.notes, chosen.name)
    return KindCheck()


def drafter_of(platform: Platform, campaign: Campaign, kit: Kit, revision: str) -> Drafter:
    """
    Return what says what becomes of an order's files.

    Args:
        revision: What orders are pinned to, as the campaign's start or plan found it.
    """
    what = campaign.what
    if what.version is not None:
        return VersionDrafter(platform, kit)
    if what.revision is not None:
        return RevisionDrafter(platform, kit, revision)
    if what.run is not None:
        return RunDrafter(platform, what.run)
    return TemplateDrafter(platform, kit, what.template)
