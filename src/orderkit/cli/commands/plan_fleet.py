"""
Options of ``orderkit plan`` for many orders and for snapshots, and what they do.

`fleet_options` adds them to the command; what was given comes back as one `FleetOptions`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

if TYPE_CHECKING:
    from orderkit.cli.views.plan_views import Screen
    from orderkit.core.plan import Plan
    from orderkit.core.plan.fleet_plan import FleetPlan
    from orderkit.core.plan.price_table import PriceTable
    from orderkit.core.schema.known import Layer
    from orderkit.flows.plan.fleet_planning import FleetPack
    from orderkit.flows.plan.recording import Recorder

F = TypeVar("F", bound=Callable[..., Any])
_KEY = "orderkit.plan.fleet"


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """What was given of these options."""

    kit: str | None
    pack_folder: str
    orders: tuple[str, ...]
    teams: tuple[str, ...]
    xrs: Path | None
    limit_s: float
    lanes: int
    record: Path | None
    snapshot: Path | None

    @classmethod
    def of(cls, ctx: click.Context) -> FleetOptions:
        """Return what was given; raises UsageError for what does not go together."""
        found = cls(**ctx.meta[_KEY])
        if found.kit is None and (found.orders or found.teams or found.xrs):
            raise click.UsageError("--order, --team and --xrs go with --kit")
        if sum(map(bool, (found.snapshot, found.xrs, found.record))) > 1:
            raise click.UsageError("--snapshot, --xrs and --record: one of them")
        return found

    def recorder(self, order: str) -> Recorder | None:
        """Return what takes a plan of this order down, if that is wanted."""
        from orderkit.flows.plan.recording import Recorder

        return Recorder(order) if self.record else None


def fleet_options(function: F) -> F:
    """Add the options."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def _kept(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    ctx.meta.setdefault(_KEY, {})[param.name] = value


def _option(*names: str, **attributes: Any) -> Callable[[F], F]:
    return click.option(*names, **attributes, expose_value=False, callback=_kept)


_file = click.Path(dir_okay=False, path_type=Path)
_OPTIONS = (
    _option(
        "--kit",
        metavar="KIT",
        help="Instead of ORDER: what another pack does to all living orders of this kit. "
        "--base: a branch or commit of the platform's pack, with --xrs and --snapshot of the "
        "pack folder's git repository.",
    ),
    _option(
        "--pack",
        "pack_folder",
        metavar="DIR",
        default=".",
        help="With --kit and --snapshot: the other pack's folder. Default: the current folder.",
    ),
    _option(
        "--order", "orders", metavar="ORDER", multiple=True, help="With --kit: only this order."
    ),
    _option("--team", "teams", metavar="TEAM", multiple=True, help="With --kit: only this team's."),
    _option(
        "--xrs",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        metavar="DIR",
        help="With --kit: XRs from the files of a folder; no platform is needed.",
    ),
    _option(
        "--limit",
        "limit_s",
        type=click.FloatRange(min=0.1),
        default=10.0,
        show_default=True,
        metavar="SECONDS",
        help="How long the stations may take for one order, in seconds.",
    ),
    _option(
        "--lanes",
        type=click.IntRange(min=0),
        default=0,
        metavar="NUMBER",
        help="With --kit: orders planned at the same time. Default: one for each processor.",
    ),
    _option("--record", type=_file, metavar="FILE", help="Write down what the plan is made from."),
    _option(
        "--snapshot",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Plan from what --record wrote, by the pack of --pack; nothing is contacted.",
    ),
)


def plan_kit(
    given: FleetOptions,
    platform_file: str | None,
    base: str | None,
    prices: PriceTable | None,
    *,
    offline: bool,
    show: tuple[Literal["json", "markdown"] | None, Screen],
) -> int:
    """Plan for many orders, print it, and return the exit code."""
    from orderkit.cli.views import fleet_views
    from orderkit.core.plan.fleet_json import fleet_exit_code
    from orderkit.flows.plan.recording import Recorder, save

    recorder = Recorder() if given.record else None
    found = _planned(given, platform_file, base, (prices, recorder), offline=offline)
    if given.record and recorder:
        save(recorder.snapshot(pack=found.base.commit), given.record)
    fleet_views.show(found, *show)
    return fleet_exit_code(found)


def _planned(
    given: FleetOptions,
    platform_file: str | None,
    base: str | None,
    by: tuple[PriceTable | None, Recorder | None],
    *,
    offline: bool,
) -> FleetPlan:
    from orderkit.core.plan.fleet_plan import Side
    from orderkit.flows.plan import fleet_planning
    from orderkit.flows.plan.fleet_orders import OrderSelection
    from orderkit.flows.plan.lanes import Limits

    wanted, limits = OrderSelection(given.orders, given.teams), Limits(given.lanes, given.limit_s)
    kit, (prices, recorder) = given.kit or "", by
    if given.xrs or given.snapshot:
        packs = _local(Path(given.pack_folder), base or "HEAD")
        request = fleet_planning.FleetRequest(kit, *packs, wanted, limits, prices)
        if given.xrs:
            return fleet_planning.plan_folder(request, given.xrs)
        return fleet_planning.plan_recorded(request, _snapshot(given))
    from orderkit.cli.commands.platform import rendered_for
    from orderkit.cli.connecting import connect, load_settings

    settings = load_settings(platform_file)
    platform = connect(settings)
    folder = Path(given.pack_folder)
    candidate = fleet_planning.FleetPack(
        Side(str(folder.resolve())), rendered_for(settings, folder)
    )
    request = fleet_planning.FleetRequest(
        kit, fleet_planning.published(platform, base or ""), candidate, wanted, limits, prices
    )
    return fleet_planning.plan_living(platform, request, offline=offline, recorder=recorder)


def _local(folder: Path, ref: str) -> tuple[FleetPack, FleetPack]:
    """Return the pack as a commit of its repository has it, and as it lies there."""
    from orderkit.adapters.packfolder import read_commit, read_folder
    from orderkit.core.plan.fleet_plan import Side
    from orderkit.flows.plan.fleet_planning import FleetPack
    from orderkit.flows.plan.recording import digest_of

    base, files = read_commit(folder, ref), read_folder(folder)
    return (
        FleetPack(Side(f"{folder} at {ref}", digest_of(base)), base),
        FleetPack(Side(str(folder), digest_of(files)), files),
    )


def _snapshot(given: FleetOptions) -> Any:
    from orderkit.flows.plan.recording import load

    assert given.snapshot is not None  # noqa: S101 - the caller has looked
    return load(given.snapshot)


def plan_replayed(
    given: FleetOptions,
    order: str,
    assignments: tuple[str, ...],
    file: Path | None,
    by: tuple[PriceTable | None, Layer | None],
) -> Plan:
    """Plan one order from a snapshot, by prices and schemas."""
    from orderkit.adapters.packfolder import read_folder
    from orderkit.cli.inputs import edits, read_one
    from orderkit.flows.plan.replaying import plan_replayed as replayed

    if not (assignments or file):
        raise click.UsageError("a snapshot has no commits: give FIELD=VALUE or --file FILE")
    wanted = read_one(file) if file else edits(assignments)
    return replayed(_snapshot(given), order, read_folder(Path(given.pack_folder)), wanted, by)
