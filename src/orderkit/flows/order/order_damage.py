"""
Find what was done to an order past Orderkit: in the ledger, on the forge, in the cluster.

Most of it Argo CD and Crossplane show as a symptom elsewhere, or not at all: an order whose file
left the ledger lives on, one whose ``main`` was moved back is Ready. Each finding says what
happened, who did it as far as Git knows, and which command helps. Called by ``orderkit status`` and
``doctor``; ``flows.order.repairing`` mends what it safely can. Only reads.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import PurePosixPath

from orderkit.core.argocd.application import hindrance, pinned
from orderkit.core.errors import InvalidInputError, MovedError, NotFoundError, OrderkitError
from orderkit.core.names import LABEL, MAIN, CommitSha, OrderId, RepoId, TeamName
from orderkit.core.objects.kube_objects import (
    Manifest,
    dig,
    labels_of,
    metadata,
)
from orderkit.core.order import ledger, order_file
from orderkit.core.order.lease import lease_annotations, read_record, time_text
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_state import short
from orderkit.flows.argocd.commit_pinning import application_at
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.order import order_report
from orderkit.flows.order.commit_judging import CommitJudge
from orderkit.flows.order.expiry_note import noted_expiry
from orderkit.flows.order.order_report import OrderReport
from orderkit.flows.platform import (
    Platform,
    RepositorySnapshot,
    get_object,
)
from orderkit.ports.forge import Commit

NEWEST = 50
"""Commits of a history that are looked at."""
_CLOCKS_DIFFER = timedelta(seconds=3)
"""How much the clocks of API server and Argo CD may differ."""


class DamageKind(StrEnum):
    """What was damaged."""

    TEAM = "team"
    LEDGER = "ledger"
    MOVED = "moved"
    DELETED = "deleted"
    ARCHIVED = "archived"
    NO_MAIN = "no main"
    PROTECTED = "protected"
    RECORD = "record"
    REWRITTEN = "rewritten"
    STUCK = "stuck"
    RECREATED = "recreated"
    LEASE = "lease"
    MISLEADING = "misleading"
    FINALIZER = "finalizer"


_REMARKS = (
    *(DamageKind.REWRITTEN, DamageKind.RECREATED, DamageKind.STUCK),
    *(DamageKind.MISLEADING, DamageKind.FINALIZER, DamageKind.LEASE),
)
"""The order's state says how it is; these only add to it."""
_CAUSES = (DamageKind.TEAM, DamageKind.MOVED, DamageKind.DELETED, DamageKind.NO_MAIN)
"""What explains whatever Argo CD says besides."""


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that was done to an order, in words, and what helps."""

    kind: DamageKind
    what: str
    remedy: str = ""
    """What a person does; empty if ``orderkit repair`` does it."""
    place: str = ""
    """Where the repository is now, or the commit to go back to."""

    @property
    def is_remark(self) -> bool:
        """Whether the order works nevertheless."""
        return self.kind in _REMARKS

    def advice(self, order: str) -> str:
        """Return what to do."""
        return self.remedy or f"orderkit repair {order}"


@dataclass(frozen=True, slots=True)
class DamagedOrder:
    """An order with everything that was found, and what the cluster has of it."""

    entry: OrderEntry
    kit: str
    application: Manifest | None
    damages: tuple[Damage, ...]


IsListed = Callable[[PurePosixPath], bool]
"""Says whether the ledger has a file."""


def status(
    platform: Platform, order: str, ledger_files: RepositorySnapshot | None = None
) -> OrderReport:
    """
    Report one order like `order_report.status`, and what was done to it past Orderkit.

    Args:
        ledger_files: The ledger's files, if they were read already.

    Raises:
        NotFoundError: Neither ledger nor Argo CD has such an order.
    """
    is_listed = ledger_files.blobs.__contains__ if ledger_files else _reads_of(platform)
    try:
        report = order_report.status(platform, order, ledger_files)
    except NotFoundError:
        entry = unlisted_entry(platform, order)
        if entry is None:
            raise
        report = order_report.report_of(platform, entry, ending=False)
    else:
        path = report.entry.application_path  # read just now
        is_listed = partial(_is_either, path, is_listed)
    if report.state.phase == "Ending":
        return report
    return with_damages(report, look(platform, report.entry, report, is_listed).damages)


def _reads_of(platform: Platform) -> IsListed:
    return lambda path: platform.forge.read(platform.ledger, path, MAIN) is not None


def _is_either(known: PurePosixPath, is_listed: IsListed, path: PurePosixPath) -> bool:
    return path == known or is_listed(path)


def with_damages(report: OrderReport, damages: tuple[Damage, ...]) -> OrderReport:
    """Return a report whose reason and advice begin with the damages."""
    if not damages:
        return report
    state, order = report.state, report.entry.order
    blocking = [damage for damage in damages if not damage.is_remark]
    is_cause = any(damage.kind in _CAUSES for damage in damages)
    own_reason = "" if is_cause or (blocking and state.phase != "Failing") else state.reason
    words = [damage.what for damage in damages]
    reason = "; ".join(filter(None, (*words, own_reason) if blocking else (own_reason, *words)))
    advice = blocking[0].advice(order) if blocking else state.advice or damages[0].advice(order)
    phase = "Failing" if blocking else state.phase
    return replace(report, state=replace(state, phase=phase, reason=reason, advice=advice))


def unlisted_entry(platform: Platform, order: str) -> OrderEntry | None:
    """Return an order that Argo CD still delivers although the ledger has no file of it."""
    if not LABEL.match(order):
        return None
    application = get_object(platform, application_key(OrderId(order)))
    return entry_of(application) if application else None


def entry_of(application: Manifest) -> OrderEntry | None:
    """Return the order of an Application; None if it is not an order's, or about to go."""
    meta, labels = metadata(application), labels_of(application)
    team, order = labels.get(ledger.TEAM_LABEL), labels.get(ledger.ORDER_LABEL)
    if not team or not order or order != meta.get("name") or meta.get("deletionTimestamp"):
        return None
    if dig(application, "spec", "syncPolicy", "automated", "allowEmpty"):
        return None  # its end has begun
    return OrderEntry(TeamName(team), OrderId(order))


def look(
    platform: Platform,
    entry: OrderEntry,
    report: OrderReport,
    is_listed: IsListed | None = None,
) -> DamagedOrder:
    """
    Look at everything that belongs to an order; about seven requests to the forge if all is well.

    Args:
        is_listed: Says whether the ledger has a file; None: two more say it.
    """
    application, xr = report.sources.application, report.sources.xr
    damages = [
        *_in_ledger(platform, entry, is_listed or _reads_of(platform)),
        *_on_forge(platform, entry, report),
        *in_cluster(application, xr, report.state.head),
        *_lease(platform, entry, application),
    ]
    return DamagedOrder(entry, report.kit, application, tuple(damages))


def _in_ledger(platform: Platform, entry: OrderEntry, is_listed: IsListed) -> Iterator[Damage]:
    team_path = ledger.team_path(entry.team)
    if not is_listed(team_path):
        yield Damage(
            DamageKind.TEAM,
            f"team {entry.team} is not in the ledger any more:"
            f" {_who_removed(platform, platform.ledger, team_path)}",
        )
    path = entry.application_path
    if not is_listed(path):
        yield Damage(
            DamageKind.LEDGER,
            f"{platform.ledger} has no {path} any more:"
            f" {_who_removed(platform, platform.ledger, path)};"
            " nothing was deleted, because only 'orderkit destroy' ends an order",
        )


def _who_removed(platform: Platform, repo: RepoId, path: PurePosixPath) -> str:
    commits = platform.forge.commits(repo, path=path, limit=1)
    return f"removed {by_whom(platform, repo, commits[0])}" if commits else "removed"


def by_whom(platform: Platform, repo: RepoId, commit: Commit) -> str:
    """Name a commit and its author, or its proved requester: an author is only a claim."""
    head = platform.forge.head(repo) or commit.id
    try:
        requester = CommitJudge(platform, repo, head).requester(commit)
    except InvalidInputError:
        requester = ""  # the ledger's keys are broken, which 'doctor' reports
    author = requester or f"{commit.author or 'nobody'} (as the commit claims: it is not signed)"
    when = f" at {commit.when}" if commit.when else ""
    return f"in {short(commit.id)} by {author}{when}"


def _on_forge(platform: Platform, entry: OrderEntry, report: OrderReport) -> Iterator[Damage]:
    repo, application = entry.repository, report.sources.application
    try:
        repository = platform.forge.repo(repo)
    except MovedError as error:
        yield _moved(platform, entry, error)
        return
    if repository is None:
        yield Damage(
            DamageKind.DELETED,
            f"the repository {repo} does not exist any more, or we may not read it;"
            " Git does not record who deleted it",
        )
        return
    if repository.archived:
        yield Damage(
            DamageKind.ARCHIVED, f"the repository {repo} is archived: nobody can change it"
        )
    head = report.state.head or platform.forge.head(repo)
    if head is None:
        yield _without_main(platform, repo, application)
        return
    if rule := platform.forge.blocking_rule(repo, MAIN):
        yield Damage(
            DamageKind.PROTECTED,
            f"main of {repo} is protected on the forge by the rule '{rule}',"
            " which does not let Orderkit's account push",
            "remove that rule on the forge, or add the account to those who may push",
        )
    if names := platform.forge.names_like(repo, MAIN):
        deletions = " ".join(shlex.quote(f":{name}") for name in names)
        yield Damage(
            DamageKind.MISLEADING,
            f"{repo} has {' and '.join(map(repr, names))}, which can be taken for its branch main:"
            " changes may fail, or another commit may be delivered",
            f"git push {repository.clone_url} {deletions}",
        )
    yield from _record(platform, entry, report.kit, head)
    yield from _rewritten(platform, entry, application, head)


def _moved(platform: Platform, entry: OrderEntry, error: MovedError) -> Damage:
    owner, _, name = error.place.partition("/")
    what = f"the repository {entry.repository} was"
    if owner == entry.repository.owner and name:
        return Damage(DamageKind.MOVED, f"{what} renamed to {error.place}", place=name)
    return Damage(
        DamageKind.MOVED,
        f"{what} transferred to {error.place or 'another address'}",
        f"transfer it back to {entry.team} on {platform.forge.base_url}: an order lives in its"
        " team's organisation",
    )


def _without_main(platform: Platform, repo: RepoId, application: Manifest | None) -> Damage:
    """Name the newest delivered commit that the repository has; it may have been made again."""
    what = f"{repo} has no branch main any more"
    for revision in reversed(delivered_commits(application)):
        if _has(platform, repo, CommitSha(revision)):
            text = f"{what}; {short(revision)} was delivered last"
            return Damage(DamageKind.NO_MAIN, text, place=revision)
    return Damage(DamageKind.NO_MAIN, what, "push main again")


def delivered_commits(application: Manifest | None) -> list[str]:
    """Return the commits that Argo CD delivered, oldest first; it keeps ten."""
    entries = dig(application or {}, "status", "history", default=()) or ()
    return [str(entry["revision"]) for entry in entries if entry.get("revision")]


def _record(platform: Platform, entry: OrderEntry, kit: str, head: CommitSha) -> Iterator[Damage]:
    """Compare the record with what the order was placed with; nobody has a reason to edit it."""
    repo, path = entry.repository, order_file.PATH
    now = platform.forge.read(repo, path, head)
    why = "is gone"
    if now is not None:
        try:
            record = order_file.parse(now.data, name=f"{repo}/{path}")
        except InvalidInputError as error:
            why = f"cannot be read: {error}"
        else:
            commits = platform.forge.commits(repo, path=path)
            if len(commits) <= 1 and (record.kit, record.team) == (kit or record.kit, entry.team):
                return
            good = good_record(platform, entry)
            if good is None or good[1].same_order(record):
                return
            why = _differences(good[1], record)
    commits = platform.forge.commits(repo, path=path, limit=1)
    who = f" ({by_whom(platform, repo, commits[0])})" if commits else ""
    yield Damage(DamageKind.RECORD, f"{repo}/{path} {why}{who}")


def _differences(good: order_file.OrderFile, record: order_file.OrderFile) -> str:
    pairs = {
        "metadata.name": (good.order, record.order),
        "spec.kit": (good.kit, record.kit),
        "spec.team": (good.team, record.team),
        "spec.ordered": (good.ordered, record.ordered),
    }
    words = [
        f"{field} was {old!r} and is {new!r}" for field, (old, new) in pairs.items() if old != new
    ]
    return f"was changed: {'; '.join(words)}"


def good_record(platform: Platform, entry: OrderEntry) -> tuple[bytes, order_file.OrderFile] | None:
    """
    Return the record as Orderkit wrote it last, else as it was first; None if no commit has it.

    Only a signature proves the former, so a platform without a key goes back to the beginning.
    """
    repo, path = entry.repository, order_file.PATH
    head = platform.forge.head(repo)
    if head is None:
        return None
    judge = CommitJudge(platform, repo, head)
    commits = platform.forge.commits(repo, path=path, limit=NEWEST)
    proved = [commit for commit in commits if judge.is_proved(commit)]
    for commit in (*proved, *reversed(commits)):
        revision = platform.forge.read(repo, path, commit.id)
        if revision is None:
            continue
        try:
            record = order_file.parse(revision.data, name=f"{repo}/{path}")
        except InvalidInputError:
            continue
        if (record.order, record.team) == (entry.order, entry.team):
            return revision.data, record
    return None


def _rewritten(
    platform: Platform, entry: OrderEntry, application: Manifest | None, head: CommitSha
) -> Iterator[Damage]:
    """Report a delivered commit that main no longer contains, unless somebody decided about it."""
    repo = entry.repository
    recent = {commit.id for commit in platform.forge.commits(repo, ref=head, limit=NEWEST)}
    for revision in reversed(delivered_commits(application)):
        if revision in recent or not _is_lost(platform, repo, CommitSha(revision), head):
            continue
        branch = restoring_branch(revision)
        if any(
            pull.state != "open" for pull in platform.forge.pulls(repo, state="all", head=branch)
        ):
            return  # merged: restored; closed: nobody wants it back
        what = (
            f"main of {repo} was moved to {short(head)} by a forced push, and {short(revision)},"
            " which was delivered before, is not part of it any more"
        )
        yield Damage(DamageKind.REWRITTEN, what, place=revision)
        return


def _is_lost(platform: Platform, repo: RepoId, commit: CommitSha, head: CommitSha) -> bool:
    """Say whether the forge has a commit that `head` does not contain."""
    try:
        return bool(platform.forge.compare(repo, head, commit))
    except NotFoundError:
        return False  # of a repository that was deleted, or collected: nothing to go back to


def _has(platform: Platform, repo: RepoId, commit: CommitSha) -> bool:
    try:
        platform.forge.compare(repo, commit, commit)
    except NotFoundError:
        return False
    return True


def restoring_branch(revision: str) -> str:
    """Return the branch whose pull request brings a lost commit back."""
    return f"orderkit/restore-{short(revision)}"


def _lease(platform: Platform, entry: OrderEntry, application: Manifest | None) -> Iterator[Damage]:
    """Compare what the order's file says about its expiry with the ledger, which counts."""
    if not lease_annotations(application):
        return
    try:
        granted = application_at(platform, entry)
        record = read_record(granted)
        noted = noted_expiry(platform, entry.order) if record else None
    except InvalidInputError as error:
        remedy = f"orderkit lease extend {entry.order} 1d --reason 'its record was broken'"
        yield Damage(DamageKind.LEASE, f"its lease in the ledger cannot be read: {error}", remedy)
        return
    except OrderkitError as error:
        if error.retryable:
            raise
        return  # its repository, its XR or the ledger's file is damaged: that is reported
    if record and noted != time_text(record.expires):
        says = f"says that it expires at {noted}" if noted else "does not say when it expires"
        yield Damage(
            DamageKind.LEASE,
            f"its file {says}; the ledger counts: {time_text(record.expires)}",
        )


def in_cluster(
    application: Manifest | None, xr: Manifest | None, head: CommitSha | None
) -> Iterator[Damage]:
    """Yield what Application and XR show by themselves."""
    if application is None:
        return
    commit = ledger.delivered_commit(application) or head
    if (commit and pinned(application) not in ("", commit)) or _gave_up(application):
        obstacle = hindrance(application, commit)
        if obstacle and (obstacle.failing or obstacle.waits_for):
            yield Damage(DamageKind.STUCK, "")
    yield from _recreated(application, xr)
    if finalizers := _delivered_finalizers(xr or {}):
        yield Damage(
            DamageKind.FINALIZER,
            f"Git gives its XR the finalizer {', '.join(finalizers)}: 'orderkit destroy' would wait"
            " until somebody removes it",
            "take metadata.finalizers out of the XR's file, unless something removes it at the end",
        )


def _delivered_finalizers(xr: Manifest) -> list[str]:
    """Return the finalizers that Argo CD wrote: those of controllers are not in Git."""
    return sorted(
        key.removeprefix("v:").strip('"')
        for fields in metadata(xr).get("managedFields") or ()
        if str(fields.get("manager", "")).startswith("argocd")
        for key in dig(fields, "fieldsV1", "f:metadata", "f:finalizers", default={})
        if key != "."
    )


def _gave_up(application: Manifest) -> bool:
    """Say whether Argo CD tried a commit as often as it may, and never will again."""
    return dig(application, "status", "operationState", "phase") in ("Failed", "Error")


def _recreated(application: Manifest, xr: Manifest | None) -> Iterator[Damage]:
    """Report an XR that is younger than the delivery of its commit: the one before was deleted."""
    history = dig(application, "status", "history", default=()) or ()
    born = metadata(xr or {}).get("creationTimestamp")
    if not born:
        return
    newest_before_it = datetime.fromisoformat(born) - _CLOCKS_DIFFER
    delivered_before = [
        entry["revision"]
        for entry in history
        if datetime.fromisoformat(entry["deployedAt"]) < newest_before_it
    ]
    if delivered_before[-1:] == [dig(application, "status", "sync", "revision")]:
        yield Damage(
            DamageKind.RECREATED,
            f"its XR was deleted in the cluster, and Argo CD made it again at {born}: what it held"
            " is not restored, and Git does not know who deleted it",
            "see whether something is missing; 'orderkit events' shows the last hour",
        )
