"""
Find what was done to an order's repository past Orderkit: moved, deleted, rewritten, its record.

Only reads.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ground.errors import (
    InvalidInputError,
    MovedError,
    NotFoundError,
    RefusedError,
    shorten,
)
from ground.names import MAIN, CommitSha, RepoId
from ground.objects.kube_objects import Manifest
from orderkit.core.order import order_file
from orderkit.core.order.damage import Damage, DamageKind, delivered_commits
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_state import short
from orderkit.flows.argocd.refreshing import Ancestry
from orderkit.flows.order.commit_judging import CommitJudge
from orderkit.flows.order.order_report import OrderReport
from orderkit.flows.platform import Platform
from orderkit.ports.forge import Commit, Forge, Repository

NEWEST = 50
"""Commits of a history that are looked at."""


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


def on_forge(platform: Platform, entry: OrderEntry, report: OrderReport) -> Iterator[Damage]:
    """Yield what was done to an order's repository on the forge, and to its branch main."""
    repo, application = entry.repository, report.sources.application
    try:
        repository = platform.forge.repo(repo)
    except MovedError as error:
        yield _moved(platform.forge, entry, error)
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
        lost = without_main(platform.forge, repo, application)
        yield lost
        if lost.place:  # then 'orderkit repair' makes it again, and it can be the default branch
            yield from on_default_branch(repository)
        return
    yield from on_default_branch(repository)
    try:
        yield from _on_main(platform, entry, report, head, repository.clone_url)
    except RefusedError as error:  # somebody pushed a commit that the forge cannot show
        yield Damage(DamageKind.HIDDEN, str(error), error.hint)


def on_default_branch(repository: Repository) -> Iterator[Damage]:
    """Yield that people edit another branch than the one that is delivered."""
    if repository.default_branch != MAIN:
        yield Damage(
            DamageKind.DEFAULT_BRANCH,
            f"the default branch of {repository.id} is {shorten(repr(repository.default_branch))},"
            f" not {MAIN}: clones and web forms edit a branch that is not delivered",
            place=repository.default_branch,
        )


def _on_main(
    platform: Platform, entry: OrderEntry, report: OrderReport, head: CommitSha, clone_url: str
) -> Iterator[Damage]:
    repo = entry.repository
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
            f"git push {clone_url} {deletions}",
        )
    yield from _record(platform, entry, head)
    yield from _rewritten(platform.forge, entry, report.sources.application, head)


def _moved(forge: Forge, entry: OrderEntry, error: MovedError) -> Damage:
    owner, _, name = error.place.rpartition("/")
    what = f"the repository {entry.repository} was"
    if owner == entry.repository.owner and name:
        return Damage(DamageKind.MOVED, f"{what} renamed to {error.place}", place=name)
    return Damage(
        DamageKind.MOVED,
        f"{what} transferred to {error.place or 'another address'}",
        f"transfer it back to {entry.team} on {forge.base_url}: an order lives in its"
        " team's organisation",
    )


def without_main(forge: Forge, repo: RepoId, application: Manifest | None) -> Damage:
    """
    Return the damage of an order whose repository has no main.

    It names the newest delivered commit that the repository has, which may have been made again.
    """
    what = f"{repo} has no branch main any more"
    for revision in reversed(delivered_commits(application)):
        if _has(forge, repo, CommitSha(revision)):
            text = f"{what}; {short(revision)} was delivered last"
            return Damage(DamageKind.NO_MAIN, text, place=revision)
    return Damage(DamageKind.NO_MAIN, what, "push main again")


def _record(platform: Platform, entry: OrderEntry, head: CommitSha) -> Iterator[Damage]:
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
            if len(commits) <= 1:
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
    # only a signature proves what Orderkit wrote: without a key the oldest comes first
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
    forge: Forge, entry: OrderEntry, application: Manifest | None, head: CommitSha
) -> Iterator[Damage]:
    """Report a delivered commit that main no longer contains, unless somebody decided about it."""
    repo = entry.repository
    ancestry = Ancestry(forge, repo)
    recent = {commit.id for commit in forge.commits(repo, ref=head, limit=NEWEST)}
    for revision in reversed(delivered_commits(application)):
        lost = CommitSha(revision)
        if revision in recent or not _is_lost(forge, repo, ancestry, lost, head):
            continue
        branch = restoring_branch(revision)
        if any(pull.state != "open" for pull in forge.pulls(repo, state="all", head=branch)):
            return  # merged: restored; closed: nobody wants it back
        files, those_lost = (dict(forge.tree(repo, each)) for each in (head, lost))
        if files == those_lost and ancestry.are_unrelated(lost, head):
            return  # only the history is another one
        what = (
            f"main of {repo} was moved to {short(head)} by a forced push, and {short(revision)},"
            " which was delivered before, is not part of it any more"
        )
        yield Damage(DamageKind.REWRITTEN, what, place=revision)
        return


def _is_lost(
    forge: Forge, repo: RepoId, ancestry: Ancestry, commit: CommitSha, head: CommitSha
) -> bool:
    """Say whether the forge has a commit that `head` does not contain."""
    if has_more := ancestry.has_more(commit, head):
        return True
    if has_more is None and not _has(forge, repo, commit):
        return False  # of a repository that was deleted, or collected: nothing to go back to
    return ancestry.are_unrelated(commit, head)


def _has(forge: Forge, repo: RepoId, commit: CommitSha) -> bool:
    try:
        forge.compare(repo, commit, commit)
    except NotFoundError:
        return False
    return True


def restoring_branch(revision: str) -> str:
    """Return the branch whose pull request brings a lost commit back."""
    return f"orderkit/restore-{short(revision)}"
