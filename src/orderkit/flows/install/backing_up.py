"""
Copy the platform's repositories: the pack, the ledger, and every order's, ended ones too.

The ledger is copied first, so that the copies of the orders have every commit that it names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ground.errors import IncompleteError, OrderkitError, RefusedError
from ground.names import CommitSha, OrderId, RepoId, TeamName, check_label
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.order import ledger
from orderkit.core.order.lease import time_text
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.platform.backup_file import Backup, MirroredRepository, parse
from orderkit.flows.platform import Platform, RepositorySnapshot, ledger_snapshot
from orderkit.ports.forge import Forge
from orderkit.ports.mirrors import Mirrors

_NAMED = 3
"""How many repositories that could not be copied are named."""


@dataclass(frozen=True, slots=True)
class BackedUp:
    """What the backup has now, and why repositories of the platform are not in it."""

    backup: Backup
    failures: tuple[str, ...]

    def check(self) -> None:
        """
        Refuse to call an incomplete backup one.

        Raises:
            IncompleteError: Repositories could not be copied.
        """
        if self.failures:
            more = len(self.failures) - _NAMED
            raise IncompleteError(
                f"{len(self.failures)} repositories could not be copied:"
                f" {'; '.join(self.failures[:_NAMED])}{f'; and {more} more' if more > 0 else ''}",
                hint="repeat the command: it copies what is missing or new",
            )


def read_backup(platform: Platform, mirrors: Mirrors) -> Backup | None:
    """
    Return the record of a backup of this platform; None: there is none yet.

    Raises:
        RefusedError: It is another platform's, or a newer Orderkit's.
        InvalidInputError: It is broken.
    """
    text = mirrors.record()
    if text is None:
        return None
    backup = parse(text)
    for field, theirs, ours in (
        ("metadata.name", backup.platform, platform.name),
        ("spec.forge", backup.forge, platform.forge.base_url),
    ):
        if theirs != ours:
            raise RefusedError(
                f"backup.yaml: {field} is {theirs}, but platform.yaml names {ours}",
                hint="name the folder of this platform's backup",
            )
    return backup


def back_up(platform: Platform, mirrors: Mirrors, *, release: str) -> BackedUp:
    """
    Bring the copies up to date. Idempotent, resumable; writes nothing to the platform.

    A repository that cannot be copied keeps its older copy.

    Raises:
        RefusedError: The folder has another platform's backup.
    """
    before = read_backup(platform, mirrors)
    taken = time_text(platform.clock.now())
    # the ledger first, so that the copies of the orders have every commit that it names
    repos = [platform.ledger, platform.pack_repo]
    # both, or there is no backup
    copied = [_copied(platform.forge, mirrors, repo) for repo in repos]
    repos += _of_orders(ledger_snapshot(platform))
    known = {repository.name: repository for repository in before.repositories} if before else {}
    failures = []
    with InheritingThreads(thread_name_prefix="backup") as pool:
        for repo, outcome in zip(
            repos[2:],
            pool.map(lambda r: _tried(platform.forge, mirrors, r), repos[2:]),
            strict=True,
        ):
            if isinstance(outcome, OrderkitError):
                failures.append(f"{repo}: {outcome}")
            else:
                copied.append(outcome)
    known |= {repository.name: repository for repository in copied if repository}
    backup = Backup(
        platform=platform.name,
        taken=taken,
        release=release,
        forge=platform.forge.base_url,
        repositories=tuple(known[name] for name in sorted(known)),
    )
    mirrors.write_record(backup.to_yaml())
    return BackedUp(backup, tuple(failures))


def _of_orders(files: RepositorySnapshot) -> list[RepoId]:
    entries = {*ledger.entries(files.blobs), *ledger.waiting_orders(files.blobs)}
    for path in files.blobs:  # those that end and ended
        match path.parts:
            case ("data", team, order, _):
                entries.add(OrderEntry(TeamName(team), OrderId(order)))
    for entry in entries:  # they become names of folders
        check_label("team", entry.team)
        check_label("order", entry.order)
    return sorted((entry.repository for entry in entries), key=str)


def _tried(
    forge: Forge, mirrors: Mirrors, repo: RepoId
) -> MirroredRepository | OrderkitError | None:
    try:
        return _copied(forge, mirrors, repo)
    except OrderkitError as error:
        # whoever may push to one repository could otherwise prevent the backup of all
        return error


def _copied(forge: Forge, mirrors: Mirrors, repo: RepoId) -> MirroredRepository | None:
    """Copy a repository; None if the forge does not have it, as that of an ended order."""
    found = forge.repo(repo)
    if found is None:
        return None
    if not found.empty:
        mirrors.fetch(repo, address(forge, repo))
    return MirroredRepository(
        str(repo),
        head=mirrors.head(repo) or CommitSha(""),
        description=found.description,
        private=found.private,
        archived=found.archived,
    )


def repositories(backup: Backup, platform: Platform) -> Iterator[MirroredRepository]:
    """Yield what a backup has: the ledger and the pack first."""
    first = (str(platform.ledger), str(platform.pack_repo))
    yield from (r for r in backup.repositories if r.name in first)
    yield from (r for r in backup.repositories if r.name not in first)


def address(forge: Forge, repo: RepoId) -> str:
    """Return where git finds a repository: where we know the forge, not where it says it is."""
    return f"{forge.base_url}/{repo}.git"
