"""
What the live model reads of the forge: orders, campaigns, kits, and changes that wait.

`ForgeRecords` come from the ledger and the pack. Both are read again only if their head moved.

`WaitingChanges` says which open changes of orders wait for somebody's agreement, for the rows of
the live model. It costs a request for each team that may have such changes, and several more for a
change that moved.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from ground.errors import InvalidInputError, OrderkitError, RefusedError
from ground.names import BlobSha, CommitSha, TeamName
from orderkit.core.campaign.definition import names_in
from orderkit.core.campaign.record import CampaignFigures, parse_record, record_path
from orderkit.core.kit.model import Kit
from orderkit.core.order import ledger, team_file
from orderkit.core.order.added_documents import INTACT, Delivered, LedgerFile, suspects
from orderkit.core.order.approval import WaitingOrder
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.approval.pending import lacking_of
from orderkit.flows.order.ledger_records import registered_owners, waiting_order
from orderkit.flows.order.order_report import edited_files
from orderkit.flows.platform import (
    Platform,
    RepositorySnapshot,
    ledger_snapshot,
    pack_snapshot,
    published_pack,
)
from orderkit.flows.team.limit_check import team_of
from orderkit.ports.forge import OpenPullRef

_HISTORY_MAX = 20_000
"""Commits of the ledger that are read once for who ordered before Applications said so."""


@dataclass(frozen=True, slots=True)
class ForgeRecords:
    """The orders, each with whether its end has begun, and the kits by name."""

    ledger_commit: CommitSha | None = None
    orders: Mapping[str, tuple[OrderEntry, bool]] | None = None
    """None: never read."""
    living: frozenset[OrderEntry] | None = None
    """The orders at all places of the ledger, also those of one id in several teams."""
    pack_commit: CommitSha | None = None
    kits: Mapping[str, Kit] | None = None
    """None: never read."""
    waiting: Mapping[str, WaitingOrder] = field(default_factory=dict)
    """The orders that wait for approval."""
    waiting_blobs: Mapping[str, BlobSha] = field(default_factory=dict)
    campaigns: Mapping[str, tuple[BlobSha | None, CampaignFigures]] = field(default_factory=dict)
    """By name: the record, and its figures."""
    campaign_figures: CampaignFigures = field(default_factory=CampaignFigures)
    """Of all campaigns."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """By order: which open changes of it wait for whose agreement."""
    files: Mapping[str, LedgerFile] = field(default_factory=dict)
    """By order: what somebody made of its file in the ledger."""
    files_from: object = None
    """What `files` was read from."""
    owners: Mapping[str, str] = field(default_factory=dict)
    """Who ordered what, as the ledger's history says of orders whose Applications do not."""

    @property
    def is_complete(self) -> bool:
        return self.orders is not None and self.kits is not None

    def file_of(self, order: str) -> LedgerFile:
        """Return what somebody made of an order's file in the ledger."""
        return self.files.get(order, INTACT)


def with_ledger(
    platform: Platform, records: ForgeRecords, delivered: Mapping[str, Delivered]
) -> ForgeRecords:
    """
    Return the records with the ledger as it is now.

    Args:
        delivered: By the name of a team's Application, what it delivers of the ledger.

    Raises:
        NotFoundError: The platform was never bootstrapped. RemoteError: the forge.
    """
    head = platform.forge.head(platform.ledger)
    if head is not None and head == records.ledger_commit:
        return _with_files(platform, records, delivered)
    snapshot = ledger_snapshot(platform)
    orders = _orders(snapshot)
    owners = {order: owner for order, owner in records.owners.items() if order in orders}
    waiting, blobs = _waiting(platform, records, snapshot)
    campaigns = _campaigns(platform, records, snapshot)
    now = replace(
        records,
        ledger_commit=snapshot.commit,
        orders=orders,
        living=frozenset(ledger.entries(snapshot.blobs)),
        owners=owners,
        waiting=waiting,
        waiting_blobs=blobs,
        campaigns=campaigns,
        campaign_figures=CampaignFigures.total(each for _, each in campaigns.values()),
    )
    return _with_files(platform, now, delivered)


def _with_files(
    platform: Platform, records: ForgeRecords, delivered: Mapping[str, Delivered]
) -> ForgeRecords:
    """Read the files of orders that somebody may have edited, once a commit."""
    living = sorted(records.living or (), key=lambda entry: entry.order)
    odd = tuple(suspects(delivered, living, [e for e, _ in (records.orders or {}).values()]))
    source = (records.ledger_commit, odd) if odd else None
    if source == records.files_from:
        return records
    found = edited_files(platform, ledger_snapshot(platform), odd) if odd else {}
    files = {str(entry.order): file for entry, file in found.items()}
    return replace(records, files=files, files_from=source)


def with_owners(
    platform: Platform, records: ForgeRecords, unowned: Collection[str]
) -> ForgeRecords:
    """
    Return the records with who ordered these orders; empty if the ledger's history does not say.

    The first time reads a long history, later ones the newest commits.

    Raises:
        RemoteError: The forge.
    """
    unknown = set(unowned) - records.owners.keys()
    if not unknown:
        return records
    newest = {} if records.owners else {"newest": _HISTORY_MAX}
    history = registered_owners(platform, **newest)
    return replace(
        records, owners={**records.owners, **{order: history.get(order, "") for order in unknown}}
    )


def with_pack(platform: Platform, records: ForgeRecords) -> ForgeRecords:
    """
    Return the records with the published pack as it is now.

    Raises:
        NotFoundError: Nothing is published yet. InvalidInputError: it is not a pack.
    """
    head = platform.forge.head(platform.pack_repo)
    if head is not None and head == records.pack_commit:
        return records
    snapshot = pack_snapshot(platform)
    kits = {kit.name: kit for kit in published_pack(platform, snapshot).kits()}
    return replace(records, pack_commit=snapshot.commit, kits=kits)


def _orders(snapshot: RepositorySnapshot) -> dict[str, tuple[OrderEntry, bool]]:
    orders: dict[str, tuple[OrderEntry, bool]] = {}
    waiting = ledger.waiting_orders(snapshot.blobs)
    for entry in itertools.chain(ledger.entries(snapshot.blobs), waiting):
        orders.setdefault(entry.order, (entry, entry.end_path in snapshot.blobs))
    return orders


def _waiting(
    platform: Platform, records: ForgeRecords, snapshot: RepositorySnapshot
) -> tuple[dict[str, WaitingOrder], dict[str, BlobSha]]:
    """Read the records of waiting orders that changed."""
    waiting: dict[str, WaitingOrder] = {}
    blobs: dict[str, BlobSha] = {}
    for entry in ledger.waiting_orders(snapshot.blobs):
        order, blob = entry.order, snapshot.blobs[entry.waiting_path]
        known = records.waiting.get(order) if records.waiting_blobs.get(order) == blob else None
        record = known or waiting_order(platform, entry, snapshot.commit)
        if record is not None:
            waiting[order], blobs[order] = record, blob
    return waiting, blobs


def _campaigns(
    platform: Platform, records: ForgeRecords, snapshot: RepositorySnapshot
) -> dict[str, tuple[BlobSha | None, CampaignFigures]]:
    """Read the records of campaigns that changed."""
    found = {}
    for name in names_in(iter(snapshot.blobs)):
        blob = snapshot.blobs.get(record_path(name))
        known = records.campaigns.get(name)
        if known is None or known[0] != blob:
            known = (blob, _figures(platform, name, snapshot))
        found[name] = known
    return found


def _figures(platform: Platform, name: str, snapshot: RepositorySnapshot) -> CampaignFigures:
    file = None
    if record_path(name) in snapshot.blobs:
        file = platform.forge.read(platform.ledger, record_path(name), snapshot.commit)
    try:
        return CampaignFigures.of(parse_record(file.data, name=name) if file else None)
    except (InvalidInputError, RefusedError):  # a newer release may have written it
        return CampaignFigures.unreadable()


_UNSETTLED = timedelta(minutes=2)
"""A pull request that moved this lately is judged again: the forge's times are whole seconds."""

logger = logging.getLogger(__name__)


class WaitingChanges:
    """The changes that wait, judged again only after something moved that counts."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._judged: dict[tuple[OpenPullRef, str, str], str] = {}
        """By pull request, and the commits of ledger and pack."""
        self._asks: dict[BlobSha, bool] = {}
        """By version of a team's file: whether the team may ask for more than its limits."""

    def read(self, records: ForgeRecords) -> dict[str, str]:
        """
        Return by order which agreement its open changes lack.

        Raises:
            RemoteError: The forge.
        """
        snapshot, now = ledger_snapshot(self._platform), self._platform.clock.now()
        judged: dict[tuple[OpenPullRef, str, str], str] = {}
        approvals: dict[str, str] = {}
        for ref in self._open_pulls(records, snapshot):
            key = (ref, snapshot.commit, records.pack_commit or "")
            lacking = self._judged.get(key) if _moved_long_ago(ref, now) else None
            if lacking is None:
                try:
                    lacking = lacking_of(self._platform, snapshot, ref)
                except OrderkitError as error:
                    logger.warning("%s#%d cannot be judged now: %s", ref.repo, ref.number, error)
                    continue
            judged[key] = lacking
            if lacking:
                order = ref.repo.name
                approvals[order] = "; ".join(filter(None, (approvals.get(order), lacking)))
        self._judged = judged
        return approvals

    def _open_pulls(
        self, records: ForgeRecords, snapshot: RepositorySnapshot
    ) -> Iterator[OpenPullRef]:
        teams = sorted({entry.team for entry, _ in (records.orders or {}).values()})
        if not any(kit.approval.rules for kit in (records.kits or {}).values()):
            teams = list(self._asking(teams, snapshot))
        for team in teams:
            yield from sorted(self._platform.forge.open_pulls(team), key=lambda ref: ref.number)

    def _asking(
        self, teams: Iterable[TeamName], snapshot: RepositorySnapshot
    ) -> Iterator[TeamName]:
        for team in teams:
            blob = snapshot.blobs.get(team_file.path_of(team))
            if blob is not None and blob not in self._asks:
                self._asks[blob] = False
                with suppress(InvalidInputError):  # 'orderkit team show' reports it
                    file = team_of(self._platform, team, snapshot)
                    self._asks[blob] = file.limits.over == "ask"
            if blob is not None and self._asks[blob]:
                yield team


def _moved_long_ago(ref: OpenPullRef, now: datetime) -> bool:
    try:
        return now - datetime.fromisoformat(ref.updated) > _UNSETTLED
    except (ValueError, TypeError):
        return False  # the forge does not say when: judged again
