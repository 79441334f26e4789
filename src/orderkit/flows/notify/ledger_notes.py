"""
What notifications need of the ledger: the teams' own rules, and the orders that ended lately.

Files are read once for each version of them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from pathlib import PurePosixPath

from ground.errors import InvalidInputError
from ground.names import BlobSha, CommitSha, TeamName
from orderkit.core.notify.order_event import OrderEvent, ended
from orderkit.core.order import end_record, team_file
from orderkit.core.platform.notification_settings import TeamNotifications
from orderkit.flows.platform import Platform, ledger_snapshot, read_text

ENDS_FOR = timedelta(days=7)
"""How long after its beginning an end is still told."""
_ENDS_MAX = 2_000
_TOMBSTONE, _TEAM_FILE = "tombstone-", "team.yaml"
_STAMP = len("20261123T055124")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LedgerNotes:
    """The ledger at one commit, as far as notifications need it."""

    commit: CommitSha | None = None
    teams: Mapping[str, TeamNotifications] = field(default_factory=dict)
    ends: tuple[OrderEvent, ...] = ()


class LedgerReader:
    """Reads the ledger again if it moved."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._notes = LedgerNotes()
        self._team_files: dict[tuple[PurePosixPath, BlobSha], TeamNotifications] = {}
        self._tombstones: dict[tuple[PurePosixPath, BlobSha], OrderEvent | None] = {}

    def read(self) -> LedgerNotes:
        """
        Return the ledger as it is now.

        Raises:
            OrderkitError: The forge cannot be asked, or the platform has no ledger.
        """
        head = self._platform.forge.head(self._platform.ledger)
        if head is not None and head == self._notes.commit:
            return self._notes
        snapshot = ledger_snapshot(self._platform)
        teams, ends = {}, []
        oldest = (self._platform.clock.now() - ENDS_FOR).astimezone(UTC).strftime("%Y%m%dT%H%M%S")
        for path, blob in snapshot.blobs.items():
            match path.parts:
                case ("data", team, name) if name == _TEAM_FILE:
                    teams[team] = self._team(TeamName(team), path, blob, snapshot.commit)
                case ("data", team, _, name) if name.startswith(_TOMBSTONE):
                    if name.removeprefix(_TOMBSTONE)[:_STAMP] >= oldest:
                        ends.append((team, path, blob))
        newest = sorted(ends, key=lambda end: end[1].name)[-_ENDS_MAX:]
        events: dict[str, OrderEvent] = {}
        for team, path, blob in newest:
            event = self._end(team, path, blob, snapshot.commit)
            if event is not None:
                events[event.order] = event  # of several ends of one id the last
        self._notes = LedgerNotes(snapshot.commit, teams, tuple(events.values()))
        return self._notes

    def _team(
        self, team: TeamName, path: PurePosixPath, blob: BlobSha, commit: CommitSha
    ) -> TeamNotifications:
        key = (path, blob)
        if key not in self._team_files:
            text = read_text(self._platform, self._platform.ledger, path, commit)
            try:
                own = team_file.parse(text or "", team=team).notifications
            except InvalidInputError as error:
                logger.warning("no notifications by the file of team %s: %s", team, error)
                own = TeamNotifications()
            self._team_files[key] = own
        return self._team_files[key]

    def _end(
        self, team: str, path: PurePosixPath, blob: BlobSha, commit: CommitSha
    ) -> OrderEvent | None:
        key = (path, blob)
        if key not in self._tombstones:
            text = read_text(self._platform, self._platform.ledger, path, commit)
            try:
                record = end_record.parse(text or "", name=str(path))
                event = ended(path.parts[2], team, record) if record.ended_at else None
            except InvalidInputError as error:
                logger.warning("a tombstone cannot be read: %s", error)
                event = None
            self._tombstones[key] = event
        return self._tombstones[key]
