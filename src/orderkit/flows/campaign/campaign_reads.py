"""
What a campaign reads: its files in the ledger, its orders, and the forge, each thing once.

`read_campaign` and `write_record` read and write a campaign's files in the ledger. `select` finds
the orders that it is about.

`SharedReads` is a forge for a batch of orders: it asks each thing once, until something is written
there. Many orders need the same of pack and ledger, and one change looks at its repository in
several places. Safe, because every write names the blob that was read: after a write, and after one
that was refused, the repository is read again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal, cast

from ground.errors import InvalidInputError, NotFoundError
from ground.names import MAIN, BlobSha, CommitSha, OrderId, RepoId, TeamName
from ground.objects.kube_objects import Manifest
from ground.shapes import changed
from ground.suggestions import did_you_mean
from orderkit.core.campaign.computing import Computer, Variables
from orderkit.core.campaign.definition import Campaign, names_in, parse, path_of
from orderkit.core.campaign.record import CampaignRecord, State, parse_record, record_path
from orderkit.core.kit.model import Kit
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.plan.fleet_orders import OrderSelection, read_orders
from orderkit.flows.platform import Platform, RepositorySnapshot, ledger_snapshot, published_pack
from orderkit.ports.forge import (
    Commit,
    FileChange,
    FileRevision,
    Forge,
    Operation,
    PullRequest,
    Written,
)
from orderkit.ports.requesters import Requester


@dataclass(frozen=True, slots=True)
class CampaignFiles:
    """A campaign as the ledger has it at one commit."""

    ledger: RepositorySnapshot
    campaign: Campaign
    definition: BlobSha
    record: CampaignRecord | None
    record_sha: BlobSha | None

    @property
    def is_edited(self) -> bool:
        """Whether the file is not the one that was started."""
        return self.record is not None and self.record.definition != self.definition


def read_campaign(
    platform: Platform, name: str, snapshot: RepositorySnapshot | None = None
) -> CampaignFiles:
    """
    Read a campaign and its record.

    Raises:
        NotFoundError: The ledger has no such campaign.
        InvalidInputError: One of its files is refused.
    """
    ledger = snapshot or ledger_snapshot(platform)
    path, at = path_of(name), ledger.commit
    file = platform.forge.read(platform.ledger, path, at) if path in ledger.blobs else None
    if file is None:
        names = names_in(iter(ledger.blobs))
        known = f"campaigns: {', '.join(names) or 'none'}; a proposed one counts once it is merged"
        hint = did_you_mean(name, names, known)
        raise NotFoundError(f"no campaign '{name}' in {platform.ledger}", hint=hint)
    campaign = parse(file.data, name=str(path))
    found = None
    if record_path(name) in ledger.blobs:
        found = platform.forge.read(platform.ledger, record_path(name), at)
    record = parse_record(found.data, name=name) if found else None
    return CampaignFiles(ledger, campaign, file.sha, record, found.sha if found else None)


def reread(platform: Platform, files: CampaignFiles) -> CampaignFiles:
    """
    Return a campaign's files as they are now: one request if nobody wrote to the ledger since.

    Raises:
        OrderkitError: What `read_campaign` raises.
    """
    if platform.forge.head(platform.ledger) == files.ledger.commit:
        return files
    return read_campaign(platform, files.campaign.name)


def write_record(
    platform: Platform,
    files: CampaignFiles,
    record: CampaignRecord,
    summary: str,
    requester: Requester,
    *,
    more: Sequence[FileChange] = (),
) -> None:
    """
    Write a campaign's record if it still is the one that was read.

    Raises:
        ConflictError: Somebody wrote it meanwhile: read again and decide again.
    """
    data = record.to_text().encode()
    change = FileChange(record_path(record.name), data, files.record_sha)
    after = (files.record_sha or files.definition)[:12]
    operation = Operation(
        f"campaign-{record.id}-{record.state}-after-{after}",
        requester.ref,
        f"campaign {record.name}: {summary}"[:200],
        requester.proof,
    )
    platform.forge.write(platform.ledger, [change, *more], operation)


def in_state(record: CampaignRecord, state: State, why: str, by: Requester) -> CampaignRecord:
    """Return a record in another state."""
    return changed(record, state=state, why=why, by=by.ref)


@dataclass(frozen=True, slots=True)
class SelectedOrder:
    """An order of a campaign, as it is now."""

    entry: OrderEntry
    xr: Manifest
    variables: Variables


@dataclass(frozen=True, slots=True)
class Selected:
    """The orders of a campaign; and those of which it cannot be known whether they belong to it."""

    orders: Mapping[str, SelectedOrder]
    unknown: Mapping[str, str]
    notes: tuple[str, ...]


def kit_of(platform: Platform, campaign: Campaign) -> Kit:
    """
    Return the kit of a campaign's orders, as it is published.

    Raises:
        InvalidInputError: The pack has no such kit.
    """
    kits = {kit.name: kit for kit in published_pack(platform).kits()}
    name = campaign.which.kit
    if name not in kits:
        hint = did_you_mean(name, kits, f"kits: {', '.join(sorted(kits))}")
        rule = "is not a kit of this platform"
        raise InvalidInputError("spec.which.kit", name, rule, hint=hint)
    return kits[name]


def select(platform: Platform, campaign: Campaign, computer: Computer) -> Selected:
    """
    Return the orders that a campaign matches now, in one list of the cluster.

    An order is left out if its condition cannot be evaluated: `unknown` says why.

    Raises:
        NotFoundError: It names an order or a team that the ledger does not have.
    """
    which = campaign.which
    selection = OrderSelection(which.orders, which.teams)
    reading = read_orders(platform, computer.kit, selection, platform.cluster)
    orders: dict[str, SelectedOrder] = {}
    unknown: dict[str, str] = {}
    for read in reading.orders:
        if read.order in which.but:
            continue
        entry = OrderEntry(TeamName(read.team), OrderId(read.order))
        if read.xr is None:
            unknown[read.order] = read.why_not
            continue
        values = computer.variables(entry, read.xr, read.xr)
        match = computer.matches(which.where, values)
        if match.holds:
            orders[read.order] = SelectedOrder(entry, read.xr, values)
        elif match.why:
            unknown[read.order] = match.why
    missing = sorted({*which.orders} - {order.order for order in reading.orders})
    if missing:
        raise NotFoundError(
            f"campaign {campaign.name}: {missing[0]} is not an order of kit {which.kit}",
            hint="take it out of spec.which.orders",
        )
    return Selected(orders, unknown, reading.notes)


HISTORY = 200
"""How many commits of an order are read at once: who asks for fewer gets them from these."""


class SharedReads:
    """Remembers `head`, `commits` and reads of branches; passes everything else on."""

    def __init__(self, forge: Forge) -> None:
        self._forge = forge
        self._lock = threading.Lock()
        self._known: dict[RepoId, dict[tuple[Any, ...], Any]] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._forge, name)
        if name in ("tree", "special_files", "read_ahead", "compare", "pull", "statuses"):
            return found
        if not callable(found):
            return found

        def changing(*arguments: Any, **named: Any) -> Any:
            try:
                return found(*arguments, **named)
            finally:
                if arguments and isinstance(arguments[0], RepoId):
                    self._forget(arguments[0])

        return changing

    def head(self, repo: RepoId, branch: str = MAIN) -> CommitSha | None:
        """Return the commit a branch points to: the newest of its history."""
        if branch != MAIN:
            return self._forge.head(repo, branch)
        known = self._known.get(repo, {})
        if history := known.get(("history",)):
            return cast("Sequence[Commit]", history)[0].id
        found = self._once(repo, ("head",), lambda: self._forge.head(repo))
        return cast("CommitSha | None", found)

    def commits(
        self, repo: RepoId, *, ref: str = MAIN, path: PurePosixPath | None = None, limit: int = 50
    ) -> Sequence[Commit]:
        """Return the newest commits first."""
        if path is not None or limit > HISTORY or ref not in (MAIN, self._known_head(repo)):
            return self._forge.commits(repo, ref=ref, path=path, limit=limit)
        key = ("history",)
        found = self._once(repo, key, lambda: self._forge.commits(repo, limit=HISTORY))
        return cast("Sequence[Commit]", found)[:limit]

    def _known_head(self, repo: RepoId) -> str | None:
        known = self._known.get(repo, {})
        history = known.get(("history",))
        return history[0].id if history else known.get(("head",))

    def read(self, repo: RepoId, path: PurePosixPath, ref: str) -> FileRevision | None:
        """Return a file at a branch or full commit id."""
        if ref != MAIN:
            return self._forge.read(repo, path, ref)
        key = ("read", path)
        return cast(
            "FileRevision | None",
            self._once(repo, key, lambda: self._forge.read(repo, path, ref)),
        )

    def pulls(
        self,
        repo: RepoId,
        *,
        state: Literal["open", "closed", "all"] = "open",
        base: str | None = None,
        head: str | None = None,
    ) -> Iterator[PullRequest]:
        """Yield pull requests, newest first."""
        if state == "closed" or base != MAIN or head is not None:
            return self._forge.pulls(repo, state=state, base=base, head=head)
        ask = lambda: list(self._forge.pulls(repo, state="all", base=MAIN))  # noqa: E731
        found = cast("list[PullRequest]", self._once(repo, ("pulls",), ask))
        return (pull for pull in found if state in ("all", pull.state))

    def write(
        self,
        repo: RepoId,
        changes: Sequence[FileChange],
        operation: Operation,
        *,
        branch: str = MAIN,
    ) -> Written:
        """Commit several files at once, or nothing; see the port."""
        try:
            return self._forge.write(repo, changes, operation, branch=branch)
        finally:
            self._forget(repo, [change.path for change in changes])

    def learn(self, repo: RepoId, path: PurePosixPath, file: FileRevision) -> None:
        """Remember a file of ``main`` without asking for it."""
        self._known.setdefault(repo, {})["read", path] = file

    def _once(self, repo: RepoId, key: tuple[Any, ...], ask: Callable[[], Any]) -> Any:
        with self._lock:
            known = self._known.setdefault(repo, {})
            if key in known:
                return known[key]
        found = ask()
        with self._lock:
            self._known.setdefault(repo, {})[key] = found
        return found

    def _forget(self, repo: RepoId, paths: Sequence[PurePosixPath] | None = None) -> None:
        """Forget a repository; if only some files changed, keep what is known of the others."""
        with self._lock:
            known = self._known.pop(repo, {})
            if paths is not None:
                kept = {k: v for k, v in known.items() if k[0] == "read" and k[1] not in paths}
                self._known[repo] = kept


def shared_reads(
    forge: Forge, known: Mapping[tuple[RepoId, PurePosixPath], FileRevision] | None = None
) -> Forge:
    """
    Return a forge that asks each thing once, until something is written there.

    Args:
        known: Files of ``main`` branches that need not be asked for.
    """
    shared = SharedReads(forge)
    for (repo, path), file in (known or {}).items():
        shared.learn(repo, path, file)
    return cast("Forge", shared)
