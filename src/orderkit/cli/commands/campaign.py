"""``orderkit campaign``: one change over many orders, in waves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from orderkit.cli import completion
from orderkit.cli.commands.campaign_jobs import carry_command, work_command
from orderkit.cli.options import (
    connect_to,
    json_option,
    platform_option,
    requester_option,
    shards_option,
    timeout_option,
)

if TYPE_CHECKING:
    from orderkit.core.campaign.definition import Campaign
    from orderkit.core.kit.kit_file import How
    from orderkit.flows.campaign.starting import CampaignText
    from orderkit.flows.platform import Platform
    from orderkit.ports.requesters import Requester

_watch_option = click.option(
    "--watch", "is_live", is_flag=True, help="On a terminal: draw the table of waves anew."
)
_reason_option = click.option("--reason", default="", metavar="TEXT", help="Why; kept in Git.")
_GOOD = ("done", "reverted", "paused")
_shards_option = shards_option(
    default=4,
    show_default=True,
    help="With --in-cluster: how many Pods change the orders of a wave.",
)


class WorkOptions(NamedTuple):
    """Who works on a campaign, where, and how it is shown."""

    requester: str
    is_live: bool
    in_cluster: bool
    shards: int
    timeout_s: float
    platform_file: str | None
    as_json: bool

    def connect(self) -> tuple[Platform, Requester]:
        """Connect to the platform, for whoever asks."""
        from orderkit.ports.requesters import Requester

        return connect_to(self.platform_file), Requester(self.requester)


def _work_options(command: Callable[[str, WorkOptions], int]) -> Callable[..., int]:
    """Give a command the options of `WorkOptions`."""

    @requester_option
    @_watch_option
    @click.option(
        "--in-cluster",
        is_flag=True,
        help="Start Jobs of the cluster that carry it out, and return (docs/job.md).",
    )
    @_shards_option
    @timeout_option("24h")
    @platform_option
    @json_option
    @functools.wraps(command)
    def with_options(name: str, **options: Any) -> int:
        return command(name, WorkOptions(**options))

    return with_options


@click.group("campaign")
def campaign_command() -> None:
    """
    Make one change over many orders, in waves, with a stop rule and a way back.

    NAME is a campaign of the ledger; 'plan', 'start' and 'retry' also take a FILE.

    Example: orderkit campaign plan fix-notes.yaml
    """


campaign_command.add_command(carry_command)
campaign_command.add_command(work_command)


@campaign_command.command("plan")
@click.argument("name", metavar="NAME|FILE")
@requester_option
@platform_option
@json_option
def campaign_plan(name: str, requester: str, platform_file: str | None, as_json: bool) -> int:
    """
    Say what a campaign would do to each of its orders. Nothing is written.

    Every order is checked as its own change would be. Exit 10 if something would change, 4 if an
    order would refuse it.

    Example: orderkit campaign plan fix-notes.yaml
    """
    from orderkit.cli.output import Progress
    from orderkit.cli.views import campaign_views
    from orderkit.flows.campaign.planning import plan_campaign
    from orderkit.ports.requesters import Requester

    platform = connect_to(platform_file)
    progress = Progress(enabled=False if as_json else None)
    campaign = _campaign(platform, name)
    on_wait = progress.on_wait or (lambda _: None)
    plan = plan_campaign(
        platform,
        campaign,
        Requester(requester),
        on_order=lambda done, all_: on_wait(f"{done:,} of {all_:,} orders are planned"),
    )
    campaign_views.show_plan(plan, as_json)
    if plan.counts.get("refused") or plan.counts.get("unknown"):
        return 4
    return 10 if set(plan.counts) & {"direct", "review"} else 0


@campaign_command.command("propose")
@click.argument("file", metavar="FILE")
@requester_option
@platform_option
@json_option
def campaign_propose(file: str, requester: str, platform_file: str | None, as_json: bool) -> None:
    """
    Open a pull request that puts a campaign into the ledger; its description is the plan.

    Example: orderkit campaign propose fix-notes.yaml
    """
    from orderkit.cli.output import emit_json, say
    from orderkit.flows.campaign import starting
    from orderkit.flows.campaign.planning import plan_campaign
    from orderkit.ports.requesters import Requester

    platform, who = connect_to(platform_file), Requester(requester)
    text = _text(file)
    plan = plan_campaign(platform, text.campaign, who)
    pull = starting.propose(platform, text, plan, who)
    if as_json:
        emit_json("orderkit.proposed-campaign/v1", {"number": pull.number, "url": pull.web_url})
    else:
        say(f"{platform.ledger}#{pull.number}: {pull.web_url}")


@campaign_command.command("start")
@click.argument("name", metavar="NAME|FILE")
@_work_options
def campaign_start(name: str, how: WorkOptions) -> int:
    """
    Start a campaign and carry it out. A FILE is written into the ledger first.

    It may be interrupted at any time: 'resume' goes on. Exit 0 if it is done or waits for somebody
    to resume it, 1 if it stopped, 5 if pull requests are open.

    Example: orderkit campaign start fix-notes
    """
    from orderkit.flows.campaign import starting

    platform, who = how.connect()
    name = _put(platform, name, who)
    is_new = not _has_record(platform, name)
    starting.start(platform, name, who)
    return _work(platform, name, who, how, is_new=is_new)


@campaign_command.command("resume")
@click.argument("name", shell_complete=completion.campaigns)
@_work_options
def campaign_resume(name: str, how: WorkOptions) -> int:
    """
    Go on with a campaign that is paused, waits for approval, or lost whoever carried it out.

    Example: orderkit campaign resume fix-notes
    """
    from orderkit.flows.campaign import starting

    platform, who = how.connect()
    starting.resume(platform, name, who)
    return _work(platform, name, who, how)


@campaign_command.command("retry")
@click.argument("name", metavar="NAME|FILE")
@_work_options
def campaign_retry(name: str, how: WorkOptions) -> int:
    """
    Try again what failed, was taken back, or was not begun; with FILE, as it says now.

    Example: orderkit campaign retry fix-notes.yaml
    """
    from orderkit.flows.campaign import starting

    platform, who = how.connect()
    text = _text(name) if _is_file(name) else None
    name = _put(platform, name, who)
    starting.retry(platform, name, who, text=text)
    return _work(platform, name, who, how)


@campaign_command.command("revert")
@click.argument("name", shell_complete=completion.campaigns)
@_work_options
def campaign_revert(name: str, how: WorkOptions) -> int:
    """
    Take back all that a campaign did, where nobody changed it since.

    Example: orderkit campaign revert fix-notes
    """
    from orderkit.flows.campaign import starting

    platform, who = how.connect()
    starting.revert(platform, name, who)
    return _work(platform, name, who, how)


@campaign_command.command("pause")
@click.argument("name", shell_complete=completion.campaigns)
@_reason_option
@requester_option
@platform_option
@json_option
def campaign_pause(
    name: str, reason: str, requester: str, platform_file: str | None, as_json: bool
) -> None:
    """
    Change no further order until somebody resumes the campaign.

    Example: orderkit campaign pause fix-notes --reason "the demo is at noon"
    """
    from orderkit.flows.campaign import starting
    from orderkit.ports.requesters import Requester

    platform = connect_to(platform_file)
    starting.pause(platform, name, Requester(requester), reason)
    _show(platform, name, as_json)


@campaign_command.command("stop")
@click.argument("name", shell_complete=completion.campaigns)
@_reason_option
@requester_option
@platform_option
@json_option
def campaign_stop(
    name: str, reason: str, requester: str, platform_file: str | None, as_json: bool
) -> None:
    """
    End a campaign; what it did stays. 'retry' goes on after all, 'revert' takes it back.

    Example: orderkit campaign stop fix-notes
    """
    from orderkit.flows.campaign import starting
    from orderkit.ports.requesters import Requester

    platform = connect_to(platform_file)
    starting.stop(platform, name, Requester(requester), reason)
    _show(platform, name, as_json)


@campaign_command.command("status")
@click.argument("name", required=False, shell_complete=completion.campaigns)
@platform_option
@json_option
def campaign_status(name: str | None, platform_file: str | None, as_json: bool) -> None:
    """
    Show a campaign and its waves; without NAME, all campaigns.

    Example: orderkit campaign status fix-notes
    """
    from orderkit.cli.views import campaign_views
    from orderkit.flows.campaign import showing

    platform = connect_to(platform_file)
    if name is None:
        campaign_views.show_campaigns(showing.campaigns(platform), as_json)
    else:
        _show(platform, name, as_json)


@campaign_command.command("drift")
@click.option(
    "--kit", "kits", multiple=True, metavar="KIT", shell_complete=completion.kits,
    help="Only orders of this kit; repeatable.",
)  # fmt: skip
@click.option(
    "--team", "teams", multiple=True, metavar="TEAM", shell_complete=completion.teams,
    help="Only orders of this team; repeatable.",
)  # fmt: skip
@platform_option
@json_option
def campaign_drift(
    kits: tuple[str, ...], teams: tuple[str, ...], platform_file: str | None, as_json: bool
) -> int:
    """
    Say which orders differ from the pack's present skeleton, version and Composition. Exit 10 then.

    Example: orderkit campaign drift --kit garage
    """
    from orderkit.cli.output import Progress
    from orderkit.cli.views import campaign_views
    from orderkit.flows.campaign import planning

    platform = connect_to(platform_file, reads_only=True)
    progress = Progress(enabled=False if as_json else None)
    on_wait = progress.on_wait or (lambda _: None)
    orders = planning.drift(
        platform,
        kits,
        teams,
        on_order=lambda done, all_: on_wait(f"{done:,} of {all_:,} orders are compared"),
    )
    campaign_views.show_drift(orders, planning.folded(orders), as_json)
    return 10 if any(order.verdict != "same" for order in orders) else 0


# --- what the commands share


def change_many(
    platform: Platform,
    assignments: tuple[str, ...],
    kit_name: str,
    where: str,
    *,
    how: How | None,
    reason: str,
    operation: str | None,
    requester: str,
    dry_run: bool,
    timeout_s: float,
    as_json: bool,
) -> int:
    """
    Change all orders of a kit as a campaign of one wave, or plan that.

    Raises:
        OrderkitError: An edit or the condition is refused, or what the campaign raises.
    """
    import uuid

    from orderkit.cli import inputs
    from orderkit.cli.views import campaign_views
    from orderkit.core.campaign.definition import Which, campaign_of, parse
    from orderkit.flows.campaign import planning, starting
    from orderkit.flows.platform import published_kit
    from orderkit.ports.requesters import Requester

    name = operation or f"change-{uuid.uuid4().hex[:8]}"
    which, edits = Which(kit=kit_name, where=where), inputs.edits(assignments)
    kit = published_kit(platform, kit_name)
    campaign = campaign_of(name, kit, which, edits, how=how, reason=reason)
    data = campaign.to_yaml().encode()
    campaign, who = parse(data, name="--operation"), Requester(requester)
    if dry_run:
        campaign_views.show_plan(planning.plan_campaign(platform, campaign, who), as_json)
        return 0
    starting.put(platform, starting.CampaignText(campaign, data), who)
    is_new = not _has_record(platform, name)
    starting.start(platform, name, who)
    return _run(platform, name, who, timeout_s, is_live=False, as_json=as_json, is_new=is_new)


def _work(
    platform: Platform, name: str, requester: Requester, how: WorkOptions, *, is_new: bool = False
) -> int:
    """Carry a campaign out here, or have it carried out in the cluster."""
    if not how.in_cluster:
        return _run(
            platform, name, requester, how.timeout_s, how.is_live, how.as_json, is_new=is_new
        )
    from orderkit.cli.connecting import load_settings
    from orderkit.cli.output import say
    from orderkit.core.campaign.cluster_jobs import Crew
    from orderkit.core.platform.installation import PlatformTarget
    from orderkit.core.portal.runner_job import NAMESPACE, image_of
    from orderkit.flows.campaign.in_cluster import start_in_cluster

    settings = load_settings(how.platform_file)
    image = image_of(settings.registry)
    job = start_in_cluster(platform, name, Crew(image, requester.ref, how.shards))
    if how.as_json:
        _show(platform, name, as_json=True)
    else:
        say(f"{name}: Job {job} in namespace {NAMESPACE} carries it out")
        say(f"orderkit campaign status {name}")
        if settings.target is PlatformTarget.EMBEDDED:
            say(f"the embedded platform runs no Pods: orderkit campaign resume {name}")
    return 0


def _run(
    platform: Platform,
    name: str,
    requester: Requester,
    timeout_s: float,
    is_live: bool,
    as_json: bool,
    *,
    is_new: bool = False,
) -> int:
    import contextlib
    import sys

    from orderkit.cli import output
    from orderkit.cli.views import campaign_views
    from orderkit.flows.campaign.campaign_reads import read_campaign
    from orderkit.flows.campaign.running import run

    draws = is_live and not as_json and output.draws_in_place(sys.stdout)
    watch = campaign_views.watcher(read_campaign(platform, name), is_live=draws)
    with output.screen() if draws else contextlib.nullcontext():
        record = run(
            platform,
            name,
            requester,
            timeout_s=timeout_s,
            is_new=is_new,
            on_progress=(lambda _: None) if as_json else watch,
        )
    _show(platform, name, as_json)
    return int(record.state not in _GOOD)


def _show(platform: Platform, name: str, as_json: bool) -> None:
    from orderkit.cli.views import campaign_views
    from orderkit.flows.campaign.showing import campaign_view

    campaign_views.show_campaign(campaign_view(platform, name), as_json)


def _is_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def _text(file: str) -> CampaignText:
    from pathlib import Path

    from ground.errors import NotFoundError
    from orderkit.flows.campaign.starting import CampaignText

    try:
        data = Path(file).read_bytes()
    except OSError as error:
        raise NotFoundError(
            f"{file} cannot be read ({error.strerror})",
            hint="name a file, or a campaign of the ledger without .yaml",
        ) from error
    return CampaignText.read(data, name=file)


def _campaign(platform: Platform, name: str) -> Campaign:
    from orderkit.flows.campaign.campaign_reads import read_campaign

    return _text(name).campaign if _is_file(name) else read_campaign(platform, name).campaign


def _put(platform: Platform, name: str, requester: Requester) -> str:
    """Write a file into the ledger; return the name of its campaign."""
    from orderkit.flows.campaign import starting

    if not _is_file(name):
        return name
    text = _text(name)
    starting.put(platform, text, requester)
    return text.campaign.name


def _has_record(platform: Platform, name: str) -> bool:
    from orderkit.flows.campaign.campaign_reads import read_campaign

    return read_campaign(platform, name).record is not None
