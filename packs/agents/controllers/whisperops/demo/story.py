"""
All stages of the demo, as expectations about a running platform; see ``demo``.

Everything it prints was checked from outside: in the cluster's API, in the forge, at the gate of
the service. The first expectation that does not hold ends it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orderkit.controllers import Kind, dig
from orderkit_standins.testing import Story, TrialOrder, TrialPlatform, expect, trial_platform, wait
from whisperops.demo import budgetstages, datasetstages
from whisperops.demo.counters import Counters
from whisperops.demo.kagent import Operators
from whisperops.demo.site import (
    AGENT,
    ORDER,
    REQUESTER,
    TEAM,
    Site,
    agent_xr,
    parts,
    registered_datasets,
    wait_ready,
)

APPLICATION = Kind("argoproj.io", "v1alpha1", "Application")
CSV_ROWS = {
    "California_Housing.csv": 2_000,
    "Online Retail II.csv": 9_000,
    "spotify-tracks.csv": 4_000,
}
"""The files of the bucket, and how many rows each has."""
VALUES = {"BASE_DOMAIN": "apps.example.org:8443", "PROJECT_ID": "whisperops-lab"}
PARTS = 22


@dataclass(frozen=True, slots=True)
class DemoFolders:
    """Where the demo keeps its files, and the pack it runs."""

    work: Path
    pack: Path


def tell(folders: DemoFolders, say: Callable[[str], object]) -> None:
    """
    Run the whole demo on a platform of its own.

    Raises:
        OrderkitError: An expectation did not hold; nothing is left running.
    """
    story = Story(folders.work, say)
    story.headline("The agents' pack on an embedded platform, with twins for kagent and the cloud")
    with contextlib.ExitStack() as undo:
        platform = undo.enter_context(
            trial_platform(
                folders.work / "state",
                folders.pack,
                teams=(TEAM,),
                requester=REQUESTER,
                values=VALUES,
            )
        )
        operators, counters = Operators(platform.cluster), Counters()
        for server in (operators, counters):
            server.start()
            undo.callback(server.stop)
        site = Site(platform, folders.work / "datasets", counters)
        _platform_is_healthy(story, platform)
        _datasets_are_registered(story, site)
        order = _agent_is_ordered(story, site)
        budgetstages.tell(story, site, order)
        datasetstages.tell(story, site, order)
    story.end()


def _platform_is_healthy(story: Story, platform: TrialPlatform) -> None:
    applications = wait(
        "every layer is healthy",
        lambda: platform.cluster.list(APPLICATION).items,
        lambda layers: all(dig(m, "status", "health", "status") == "Healthy" for m in layers),
    )
    story.stage("platform", f"{len(applications)} Applications healthy, {platform.forge.base_url}")


def _datasets_are_registered(story: Story, site: Site) -> None:
    site.bucket.mkdir()
    for name, rows in CSV_ROWS.items():
        text = "".join(f"{n},{n * 7 % 100}\n" for n in range(rows))
        (site.bucket / name).write_text(f"a,b\n{text}")
    first = site.watcher.run_pass()
    expect(not first.failures, f"the watcher has no failures: {first.failures}")
    datasets = registered_datasets(site)
    names = ["california-housing", "online-retail-ii", "spotify-tracks"]
    expect(datasets == dict.fromkeys(names, True), f"three datasets are ready: {datasets}")
    second = site.watcher.run_pass()
    expect((second.writes, second.commit) == (0, None), "a second pass writes nothing")
    entities = f"{', '.join(names)}; entities in commit {str(first.commit)[:8]}"
    story.stage("registry", f"{entities}; a second pass writes nothing")


def _agent_is_ordered(story: Story, site: Site) -> TrialOrder:
    form_values = {
        "agent_name": AGENT,
        "dataset": '{"name": "resource:default/california-housing"}',
        "budget_usd": "5",
        "description": 'Says "hello", costs ${{ money }} 🏡',
        "owner": TEAM,
    }
    order = site.platform.order("datasetagent", form_values)
    expect(order.created and order.id == ORDER, f"{order.id} is new")
    wait_ready(site)
    story.stage("order", f"template.yaml interpreted, {ORDER} is {order.phase}")
    agent_parts = parts(site)
    keys = sorted(map(str, agent_parts))
    expect(len(agent_parts) == PARTS, f"{PARTS} parts, not {len(agent_parts)}: {keys}")
    missing = [str(key) for key, manifest in agent_parts.items() if manifest is None]
    expect(not missing, f"all exist: {missing}")
    description = site.config_map("prompts")["data"]["description"]
    expect(description == form_values["description"], f"the exact text arrives: {description!r}")
    url = agent_xr(site)["status"]["url"]
    story.stage("22 parts", f"{PARTS} parts exist and are ready; {url}")
    return order
