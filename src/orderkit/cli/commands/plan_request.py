"""
What ``orderkit plan`` was asked for, and which of its options go together.

Made by ``cli.commands.plan``; ``planorder``, ``planfleet`` and ``planpulls`` answer it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from orderkit.cli.views.plan_views import Screen, Shape, check_drawable

_PLANS_OF_AN_ORDER, _PLATFORM_S = 3, 60.0
"""Before, after, and as a new order would be; and what asking the platform may take."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The options of one ``orderkit plan``."""

    order: str | None
    assignments: tuple[str, ...]
    file: Path | None
    base: str | None
    head: str | None
    pull: str | None
    """An open pull request, as OWNER/REPO#N."""
    no_post: bool
    offline: bool
    graph: Path | None
    prices_file: Path | None
    full: bool
    color: str
    schemas_folder: Path | None
    function_texts: tuple[str, ...]
    requester: str
    platform_file: str | None
    shape: Shape | None
    kit: str | None
    pack_folder: Path
    orders: tuple[str, ...]
    teams: tuple[str, ...]
    xr_folder: Path | None
    limit_s: float
    lanes: int
    record_file: Path | None
    snapshot_file: Path | None

    def check(self) -> None:
        """
        Refuse options that contradict each other, before anything is read.

        Raises:
            click.UsageError: They do. InvalidInputError: the graph has an ending we cannot draw.
        """
        self._check_sources()
        if self.pull or self.no_post:
            self._check_pull()
        elif self.kit is not None:
            self._check_kit()
        else:
            self._check_order()
        if self.graph:
            check_drawable(self.graph)

    def _check_sources(self) -> None:
        if self.kit is None and (self.orders or self.teams or self.xr_folder):
            raise click.UsageError("--order, --team and --xrs go with --kit")
        if sum(map(bool, (self.snapshot_file, self.xr_folder, self.record_file))) > 1:
            raise click.UsageError("--snapshot, --xrs and --record: one of them")

    def _check_pull(self) -> None:
        excluded_options = (
            *(self.order, self.file, self.base, self.head, self.schemas_folder),
            *(self.kit, self.record_file, self.snapshot_file),
        )
        if not self.pull or any(excluded_options):
            raise click.UsageError("--pull-request stands alone; --no-post goes with it")

    def _check_kit(self) -> None:
        excluded_options = (self.order, self.file, self.head, self.graph, self.schemas_folder)
        if any(excluded_options):
            raise click.UsageError("--kit goes without ORDER and what is for one order")

    def _check_order(self) -> None:
        if self.order is None or sum(map(bool, (self.assignments, self.file, self.head))) != 1:
            raise click.UsageError(
                "give ORDER and FIELD=VALUE, --file FILE or --head COMMIT, one of them; "
                "or --kit KIT, or --pull-request OWNER/REPO#N"
            )
        if self.base and not self.head:
            raise click.UsageError("--base goes with --head")
        if self.snapshot_file and self.head:
            raise click.UsageError("a snapshot has no commits: give FIELD=VALUE or --file FILE")

    @property
    def screen(self) -> Screen:
        return Screen.of(full=self.full, color=self.color)

    @property
    def time_limit_s(self) -> float:
        """How long the plan of one order may take altogether."""
        return _PLATFORM_S + self.limit_s * _PLANS_OF_AN_ORDER
