"""
Which open changes of orders wait for somebody's agreement, as the rows of the live model say.

It costs a request for each team that may have such changes, and several more for a change that
moved.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from ground.errors import InvalidInputError, OrderkitError
from ground.names import BlobSha, TeamName
from orderkit.core.order import team_file
from orderkit.flows.approval.pending import lacking_of
from orderkit.flows.live.forge_records import ForgeRecords
from orderkit.flows.platform import Platform, RepositorySnapshot, ledger_snapshot
from orderkit.flows.team.limit_check import team_of
from orderkit.ports.forge import OpenPullRef

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
        return False
