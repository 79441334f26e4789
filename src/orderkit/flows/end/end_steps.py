"""
The steps of an end, each recorded in the ledger before it is taken; ``destroying`` says why these.

Whoever ends the same order at the same time is not in the way: each run goes on where the record
is, and none records a step again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, TypeVar

from ground.errors import NotFoundError
from ground.names import MAIN, BlobSha, CommitSha
from ground.objects.kube_objects import Manifest, annotations_of, dig, metadata
from ground.shapes import ObjectReference, changed
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger, ledger_applications, order_state
from orderkit.core.order.end_record import EndRecord
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_file import MANIFESTS
from orderkit.flows.argocd.commit_pinning import application_at, pinned_commit
from orderkit.flows.argocd.refreshing import (
    StuckOperationEnder,
    application_key,
    knows_retry_refresh,
    obstacle,
    refresh,
)
from orderkit.flows.end.end_request import Ended, EndRequest, OnStep, close_proposals
from orderkit.flows.end.remaining_objects import Absence, Remaining
from orderkit.flows.order import tracing
from orderkit.flows.order.ledger_records import begun_end
from orderkit.flows.order.order_report import report_of
from orderkit.flows.platform import (
    Platform,
    RepositorySnapshot,
    get_object,
    ledger_snapshot,
    published_kit,
    snapshot,
    write_ledger,
)
from orderkit.flows.repeating import in_rounds, until
from orderkit.ports.forge import LINK, FileChange, Operation
from yamlfiles import yaml11

T = TypeVar("T")
_KEEP, _SUBMODULES = MANIFESTS / ledger.KEEP, PurePosixPath(".gitmodules")
_KEEPING = FileChange(_KEEP, b"", None)
_LOOKS = 2
"""How often in a row an object must be absent: one read may come from a stale cache."""


class EndRun:
    """One run through the remaining steps of an end."""

    def __init__(
        self,
        platform: Platform,
        entry: OrderEntry,
        request: EndRequest,
        on_step: OnStep,
        on_wait: Callable[[str], object] | None,
        *,
        tombstones: list[PurePosixPath],
    ) -> None:
        """`tombstones`: the order's, when it was looked at; one more means that it ended since."""
        self._platform, self._entry, self._wanted = platform, entry, request
        self._on_step, self._on_wait = on_step, on_wait
        self._tombstones = tombstones
        self._refreshes = functools.cache(lambda: knows_retry_refresh(platform.cluster))
        self._written: CommitSha | None = None
        """What this run wrote last to the ledger, until it is used."""

    def run(self, record: EndRecord) -> Ended:
        """
        Take the steps that are not behind the record; return the tombstone.

        Raises:
            NotFoundError: Somebody else ended it meanwhile.
            IncompleteError: A part is not gone in time; the message lists what is left.
        """
        record = self._as_asked(record)
        if not record.passed("marked"):
            record = self._mark(record)
        if not record.passed("marked"):
            record = self._note(self._with_new_parts(record).at("emptying"))
        if not record.passed("emptying"):
            record = self._empty(record)
            record = self._note(record.at("removing"))
        if not record.passed("removing"):
            self._remove(record)
            record = self._note(record.at("unregistering"))
        if not record.passed("unregistering"):
            self._unregister()
            record = self._note(record.at("closing"))
        return Ended(self._close(record), self._entry.team, changed=True)

    def _operation(self, record: EndRecord, summary: str) -> Operation:
        digest = f"{record.step}-{record.started_at}-{record.emptied_at[:8]}"
        return Operation(
            f"end-{self._entry.order}-{digest}",
            self._wanted.requester,
            f"{self._entry.order}: {summary}",
            self._wanted.proof,
            self._wanted.notes,
        )

    def _note(self, record: EndRecord) -> EndRecord:
        """Record that a step begins; return the record of whoever is further in the same end."""
        noted = in_rounds(lambda: self._try_note(record))
        return self._as_asked(noted)

    def _as_asked(self, record: EndRecord) -> EndRecord:
        is_delete = self._wanted.repository == "delete"
        return changed(record, repository="delete") if is_delete else record

    def _try_note(self, record: EndRecord) -> EndRecord:
        base, current = self._current(record)
        if current.step == record.step or current.passed(record.step):
            return current
        contents: dict[PurePosixPath, str | None] = {self._entry.end_path: record.to_yaml()}
        self._write(contents, self._operation(record, record.step), base)
        return record

    def _write(
        self,
        contents: dict[PurePosixPath, str | None],
        operation: Operation,
        base: RepositorySnapshot,
    ) -> CommitSha:
        self._written = write_ledger(self._platform, contents, operation, base=base).commit
        return self._written

    def _current(
        self, record: EndRecord, *, is_fresh: bool = False
    ) -> tuple[RepositorySnapshot, EndRecord]:
        """
        Return the ledger, and its record of this end; refuse to go on without.

        The ledger is as this run wrote it last: if others wrote since, a write that begins there is
        a conflict, and the next round reads it again.
        """
        written, self._written = self._written, None
        base = None if is_fresh else snapshot(self._platform.forge, self._platform.ledger, written)
        base = base or ledger_snapshot(self._platform)
        current = begun_end(self._platform, self._entry, base.commit)
        if current is None or current.started_at != record.started_at:
            raise self._ended_by_another()
        return base, current

    def _ended_by_another(self) -> NotFoundError:
        order = self._entry.order
        return NotFoundError(
            f"{order}: somebody else ended it meanwhile",
            hint=f"'orderkit status {order}' says what is there",
        )

    def _mark(self, record: EndRecord) -> EndRecord:
        """
        Commit the end mark, switch self-heal off, wait until the cluster has both.

        Return the record that is in the ledger then: of whoever marked it first.
        """
        record, commit, automated = in_rounds(lambda: self._try_mark(record))
        if commit is None:
            return self._as_asked(record)

        def is_marked(live: Manifest | None) -> bool:
            """Say whether it prunes, and goes itself once its file leaves the ledger."""
            if live is None:
                return True
            is_kept = ledger_applications.KEPT.keys() & annotations_of(live).keys()
            return dig(live, "spec", "syncPolicy", "automated") == automated and not is_kept

        self._until_taken_over(commit, is_marked, goal="Argo CD applying the end mark")
        self._on_step("marked", "self-heal is off, the Application may become empty")
        return self._as_asked(record)

    def _try_mark(self, record: EndRecord) -> tuple[EndRecord, CommitSha | None, Any]:
        """Return the record, the commit of the mark (None: it is long past), and what it sets."""
        base = ledger_snapshot(self._platform)
        record = begun_end(self._platform, self._entry, base.commit) or record
        if record.passed("marked"):
            return record, None, None
        is_there = {self._entry.end_path, self._entry.application_path} & base.blobs.keys()
        if not is_there or self._tombstones != ledger.tombstones(base.blobs, self._entry.order):
            raise self._ended_by_another()  # to mark it now would begin another end
        application = self._ending_application(record, base)
        contents: dict[PurePosixPath, str | None] = {
            self._entry.end_path: record.to_yaml(),
            self._entry.application_path: yaml11.dump(application),
        }
        written = self._write(contents, self._operation(record, "ends"), base)
        return record, written, application["spec"]["syncPolicy"]["automated"]

    def _ending_application(
        self, record: EndRecord, base: RepositorySnapshot, commit: CommitSha | None = None
    ) -> Manifest:
        """Return the Application of the end; it delivers `commit`, or what it delivered before."""
        before = application_at(self._platform, self._entry, base.commit)
        return ledger_applications.order_application(
            self._entry,
            kit=record.kit,
            forge_url=self._platform.forge.base_url,
            commit=commit or ledger.delivered_commit(before),
            stage="ending",
            refreshes=self._refreshes(),
            recorded=before,
        )

    def _with_new_parts(self, record: EndRecord) -> EndRecord:
        """Add what was composed while the mark was delivered, so that its end is verified."""
        report = report_of(self._platform, self._entry, ending=True)
        now = map(ObjectReference.to, tracing.trace_of(self._platform, report).parts())
        return changed(record, must_be_gone=tuple(dict.fromkeys((*record.must_be_gone, *now))))

    def _application(self) -> Manifest | None:
        return get_object(self._platform.cluster, application_key(self._entry.order))

    def _empty(self, record: EndRecord) -> EndRecord:
        """Commit the order without manifests; wait until two looks in a row find nothing."""
        kit = kit_if_published(self._platform, record.kit)
        absence = Absence(self._platform, record.order, record.objects, kit)
        commit = self._emptied_commit(record)
        if commit is not None:
            self._pin(record, commit)
            self._until_delivered(commit, absence)
        self._until_gone(absence)
        self._on_step("emptying", f"{len(record.must_be_gone)} objects verified to be gone, twice")
        return changed(record, emptied_at=commit or "")

    def _emptied_commit(self, record: EndRecord) -> CommitSha | None:
        """Return the emptied commit that the ledger names already, or write one."""
        forge, repo = self._platform.forge, self._entry.repository
        if self._application() is None and forge.head(repo) is None:
            return None  # it was never created, or somebody deleted it; nothing delivers it
        # Argo CD prunes nothing for a repository that it cannot read: one that somebody deleted is
        # made again, empty, and one that somebody archived is opened until it is archived again.
        repository = forge.ensure_repo(
            repo, description=f"ended: {record.order}", private=self._platform.private
        )
        if repository.archived:
            forge.archive(repo, undo=True)
        named = pinned_commit(self._platform, self._entry, self._written or MAIN)
        with suppress(NotFoundError):  # the repository was deleted since
            if named and not self._emptying(named, forge.tree(repo, named)):
                return named
        return in_rounds(lambda: self._try_empty(record))

    def _try_empty(self, record: EndRecord) -> CommitSha | None:
        repo = self._entry.repository
        files = snapshot(self._platform.forge, repo)
        commit = files.commit if files else None
        operation = self._operation(record, "ends, nothing to deliver any more")
        commits = self._emptying(files.commit, files.blobs) if files else [[_KEEPING]]
        for number, changes in enumerate(commits):
            step = replace(operation, id=f"{operation.id}-{number}")
            commit = self._platform.forge.write(repo, changes, step).commit
        return commit

    def _emptying(
        self, commit: CommitSha, blobs: Mapping[PurePosixPath, BlobSha]
    ) -> list[list[FileChange]]:
        """Return the changes, commit by commit, that leave nothing to deliver and to fail on."""
        special = self._platform.forge.special_files(self._entry.repository, commit)
        links = {path for path, file in special.items() if file.mode == LINK}
        kept = {_KEEP} - links
        # Argo CD reads no commit with a link out of the repository, or with submodules that it
        # cannot fetch, wherever they are
        doomed = [
            path
            for path in sorted(blobs)
            if path.is_relative_to(MANIFESTS) or path in links or path == _SUBMODULES
            if path not in kept
        ]
        removed = [FileChange(path, None, blobs[path]) for path in doomed]
        is_blocked = any(path == MANIFESTS or path.is_relative_to(_KEEP) for path in doomed)
        if is_blocked:
            return [removed, [_KEEPING]]  # the place of .gitkeep has to be free first
        changes = removed if _KEEP in blobs else [*removed, _KEEPING]
        return [changes] if changes else []

    def _pin(self, record: EndRecord, commit: CommitSha) -> None:
        """Let the Application name the emptied commit, and wait until the cluster has that."""
        # from then on nothing that is pushed is delivered, and no hook runs when the Application
        # goes: Argo CD reads hooks from the commit that the Application names
        in_ledger = in_rounds(lambda: self._try_pin(record, commit))
        self._until_taken_over(
            in_ledger,
            lambda live: live is None or ledger.delivered_commit(live) == commit,
            goal=f"Argo CD naming {order_state.short(commit)}",
        )

    def _try_pin(self, record: EndRecord, commit: CommitSha) -> CommitSha:
        base, _ = self._current(record)
        application = yaml11.dump(self._ending_application(record, base, commit))
        operation = self._operation(record, f"{order_state.short(commit)} delivers nothing")
        return self._write({self._entry.application_path: application}, operation, base)

    def _until_delivered(self, commit: CommitSha, absence: Absence) -> None:
        refresh(self._platform.cluster, self._entry.order)
        repo = self._entry.repository
        # a retry that takes the newest commit would try what is pushed after this one
        urging = StuckOperationEnder(self._platform, repo, commit, may_be_later=False)

        def missing(application: Manifest | None) -> str:
            return order_state.undelivered(application, commit) if application else ""

        self._until(
            self._application,
            lambda live: not missing(live),
            goal=f"delivery of {order_state.short(commit)}",
            why_not=lambda live: "; ".join(filter(None, (missing(live), absence.describe()))),
            on_look=lambda live: urging.look(live) if live else None,
        )

    def _until_gone(self, absence: Absence) -> None:
        absent_looks = 0

        def look() -> list[Remaining]:
            nonlocal absent_looks
            remaining = absence.remaining()
            absent_looks = 0 if remaining else absent_looks + 1
            return remaining

        self._until(
            look,
            lambda remaining: not remaining and absent_looks >= _LOOKS,
            goal="the removal of every part",
            why_not=lambda _: absence.describe(),
        )

    def _remove(self, record: EndRecord) -> None:
        """Remove the Application from the ledger; wait until it is gone."""
        operation = Operation(
            f"end-{self._entry.order}-application",
            self._wanted.requester,
            f"{self._entry.order}: Application removed",
            self._wanted.proof,
            self._wanted.notes,
        )
        contents: dict[PurePosixPath, str | None] = {self._entry.application_path: None}
        written = in_rounds(lambda: self._write(contents, operation, self._current(record)[0]))
        self._until_taken_over(
            written,
            lambda application: application is None,
            goal="the removal of the Application",
        )
        self._on_step("removing", "the Application is gone")

    def _unregister(self) -> None:
        close_proposals(self._platform, self._entry)
        was_registered = False
        for location in self._platform.catalog.locations():
            prefix = f"{self._platform.forge.base_url}/{self._entry.repository}/"
            if location.target.startswith(prefix):
                was_registered = (
                    self._platform.catalog.unregister(location.target) or was_registered
                )
        note = "removed from the catalog" if was_registered else "was not in the catalog"
        self._on_step("unregistering", note)

    def _close(self, record: EndRecord) -> EndRecord:
        repo = self._entry.repository
        # refuses if somebody else ended it: the repository may be a new order's by now
        self._current(record, is_fresh=True)
        if record.repository == "delete":
            removal = self._platform.forge.delete_repo(repo)
            record = changed(record, removal_scheduled=removal.scheduled_on)
        else:
            try:
                self._platform.forge.archive(repo)
            except NotFoundError:
                record = changed(record, repository="delete")
        ended = changed(record, ended_at=self._platform.clock.now().isoformat(timespec="seconds"))
        write_tombstone(self._platform, self._entry, ended, self._wanted)
        self._on_step("closing", f"repository {repo} {ended.repository_is}, tombstone written")
        return ended

    def _until_taken_over(
        self, commit: CommitSha, is_done: Callable[[Manifest | None], bool], *, goal: str
    ) -> None:
        """Wait until the order's Application is as in a commit of the ledger."""
        team = application_key(ledger.team_application(self._entry.team))
        urging = StuckOperationEnder(self._platform, self._platform.ledger, commit)

        def urge(_: Manifest | None) -> None:
            if parent := get_object(self._platform.cluster, team):
                urging.look(parent)

        def why_not(application: Manifest | None) -> str:
            parent = get_object(self._platform.cluster, team)
            for waiting in filter(None, (parent, application)):
                if why := obstacle(self._platform.cluster, waiting):
                    return f"{metadata(waiting)['name']}: {why.reason}"
            return ""

        refresh(self._platform.cluster, team.name)
        self._until(self._application, is_done, goal=goal, why_not=why_not, on_look=urge)

    def _until(
        self,
        look: Callable[[], T],
        is_done: Callable[[T], bool],
        *,
        goal: str,
        why_not: Callable[[T], str] = lambda _: "",
        on_look: Callable[[T], object] = lambda _: None,
    ) -> None:
        until(
            self._platform.clock,
            look,
            is_done,
            timeout_s=self._wanted.timeout_s,
            goal=f"{self._entry.order}: {goal}",
            why_not=why_not,
            on_look=on_look,
            on_wait=self._on_wait,
        )


def write_tombstone(
    platform: Platform, entry: OrderEntry, record: EndRecord, request: EndRequest
) -> None:
    """Replace the end mark by the tombstone, in one commit."""
    write_ledger(
        platform,
        {entry.tombstone_path(record.started_at): record.to_yaml(), entry.end_path: None},
        Operation(
            f"end-{entry.order}-tombstone-{record.repository}-{record.started_at}",
            request.requester,
            f"{entry.order}: ended, repository {record.repository_is}",
            request.proof,
            request.notes,
        ),
    )


def kit_if_published(
    platform: Platform, name: str, pack: RepositorySnapshot | None = None
) -> Kit | None:
    """Return the kit; None if the pack no longer has it: its orders must still be able to end."""
    try:
        return published_kit(platform, name, pack)
    except NotFoundError:
        return None
