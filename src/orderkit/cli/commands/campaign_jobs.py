"""``orderkit campaign carry`` and ``work``: what the Jobs of a campaign run (docs/job.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orderkit.cli.options import (
    connect_to,
    platform_option,
    requester_option,
    shards_option,
    timeout_option,
)

if TYPE_CHECKING:
    from orderkit.flows.campaign.running import Progress

_shards_option = shards_option(required=True)


@click.command("carry")
@click.argument("name")
@requester_option
@_shards_option
@timeout_option("24h")
@platform_option
def carry_command(
    name: str, requester: str, shards: int, timeout_s: float, platform_file: str | None
) -> int:
    """
    Coordinate a campaign in the cluster: start a Job for each wave, judge it, record it.

    'start --in-cluster' starts the Job that runs this. Exit 4 if the campaign stopped.

    Example: orderkit campaign carry fix-notes --shards 4
    """
    from orderkit.cli.connecting import load_settings
    from orderkit.cli.output import say
    from orderkit.core.campaign.cluster_jobs import Crew
    from orderkit.core.portal.runner_job import image_of
    from orderkit.flows.campaign.in_cluster import Coordinator
    from orderkit.ports.requesters import Requester

    told: list[str] = []

    def tell(progress: Progress) -> None:
        if progress.why and progress.why != (told or [""])[-1]:
            told[:] = [progress.why]
            say(f"{name}: {progress.why}")

    crew = Crew(image_of(load_settings(platform_file).registry), requester, shards)
    record = Coordinator(
        connect_to(platform_file),
        name,
        Requester(requester),
        timeout_s,
        tell,
        crew=crew,
    ).run()
    say(f"{name}: {record.state}: {record.why}".removesuffix(": "))
    return 4 if record.state == "stopped" else 0


@click.command("work")
@click.argument("name")
@click.option("--wave", required=True, type=click.IntRange(1), help="Its number, from 1.")
@_shards_option
@click.option(
    "--shard",
    required=True,
    envvar="JOB_COMPLETION_INDEX",
    type=click.IntRange(0),
    help="Which one, from 0. In an Indexed Job, Kubernetes says it.",
)
@requester_option
@timeout_option("24h")
@platform_option
def work_command(
    name: str,
    wave: int,
    shards: int,
    shard: int,
    requester: str,
    timeout_s: float,
    platform_file: str | None,
) -> None:
    """
    Change one shard of a wave's orders, and wait until they are Ready. Exit 4 if one failed.

    The Jobs of 'start --in-cluster' run this.

    Example: orderkit campaign work fix-notes --wave 1 --shards 4 --shard 0
    """
    from orderkit.flows.campaign.in_cluster import Shard, work
    from orderkit.ports.requesters import Requester

    platform, who = connect_to(platform_file), Requester(requester)
    on_progress = lambda _: None  # noqa: E731 - the coordinator reports
    work(
        Shard(
            platform, name, who, timeout_s, on_progress, wave=wave - 1, shard=shard, shards=shards
        )
    )
