"""
The story itself, as expectations about a running platform; see ``demo``.

Whatever it prints was seen from outside: in the cluster's API, in the forge, at the gate of the
service. The first expectation that does not hold ends it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orderkit.adapters.embedded.platform import Ports
from orderkit.cli.demo.narration import PATIENCE_S, Story, expect, wait
from orderkit.cli.serving.embedded_platform import Running, RunRequest, running
from orderkit.core.objects.kube_objects import APPLICATION, dig
from orderkit.flows.order import placing
from whisperops.demo import ending, spending
from whisperops.demo.counters import Counters
from whisperops.demo.kagent import Operators
from whisperops.demo.looking import (
    AGENT,
    ORDER,
    REQUESTER,
    TEAM,
    Site,
    parts,
    registry,
    wait_ready,
    xr,
)

FILES = {
    "California_Housing.csv": 2_000,
    "Online Retail II.csv": 9_000,
    "spotify-tracks.csv": 4_000,
}
"""What lies in the bucket, and how many rows it has."""
VALUES = {"BASE_DOMAIN": "apps.example.org:8443", "PROJECT_ID": "whisperops-lab"}
PARTS = 22


@dataclass(frozen=True, slots=True)
class Place:
    """Where the demo works and which pack it runs."""

    folder: Path
    pack: Path


def tell(place: Place, say: Callable[[str], object]) -> None:
    """
    Tell the whole story on a platform of its own.

    Raises:
        OrderkitError: An expectation did not hold; nothing is left running.
    """
    story = Story(place.folder, say)
    story.headline("The agents' pack on an embedded platform, with twins for kagent and the cloud")
    state = place.folder / "state"
    wanted = RunRequest(state, place.pack, Ports(0, 0, 0, 0), (TEAM,), values=VALUES)
    with contextlib.ExitStack() as undo:
        found = undo.enter_context(running(wanted, on_step=lambda *_: None))
        operators, counters = Operators(found.platform.cluster), Counters()
        for part in (operators, counters):
            part.start()
            undo.callback(part.stop)
        site = Site(found, state / "platform.yaml", place.folder / "datasets", counters)
        _healthy(story, found)
        _registered(story, site)
        _ordered(story, site)
        spending.tell(story, site)
        ending.tell(story, site)
    story.end()


def _healthy(story: Story, found: Running) -> None:
    layers = wait(
        "every layer is healthy",
        lambda: found.platform.cluster.list(APPLICATION).items,
        lambda seen: all(dig(each, "status", "health", "status") == "Healthy" for each in seen),
    )
    story.stage("platform", f"{len(layers)} Applications healthy, {found.settings.forge.url}")


def _registered(story: Story, site: Site) -> None:
    site.bucket.mkdir()
    for name, rows in FILES.items():
        text = "".join(f"{n},{n * 7 % 100}\n" for n in range(rows))
        (site.bucket / name).write_text(f"a,b\n{text}")
    first = site.watcher.run_pass()
    expect(not first.failures, f"the watcher has no failures: {first.failures}")
    found = registry(site)
    names = ["california-housing", "online-retail-ii", "spotify-tracks"]
    expect(found == dict.fromkeys(names, True), f"three datasets are ready: {found}")
    again = site.watcher.run_pass()
    expect((again.writes, again.commit) == (0, None), "a second pass writes nothing")
    told = f"{', '.join(names)}; entities in commit {str(first.commit)[:8]}"
    story.stage("registry", f"{told}; a second pass writes nothing")


def _ordered(story: Story, site: Site) -> None:
    values = {
        "agent_name": AGENT,
        "dataset": '{"name": "resource:default/california-housing"}',
        "budget_usd": "5",
        "description": 'Says "hello", costs ${{ money }} 🏡',
        "owner": TEAM,
    }
    wanted = placing.OrderRequest("datasetagent", values, REQUESTER, timeout_s=2 * PATIENCE_S)
    done = placing.order(site.platform, wanted, on_step=lambda *_: None)
    expect(done.created and done.order == ORDER, f"{done.order} is new")
    wait_ready(site)
    story.stage("order", f"template.yaml interpreted, {ORDER} is {done.report.state.phase}")
    found = parts(site)
    expect(len(found) == PARTS, f"{PARTS} parts, not {len(found)}: {sorted(map(str, found))}")
    expect(all(found.values()), f"all exist: {[str(k) for k, m in found.items() if m is None]}")
    description = site.config_map("prompts")["data"]["description"]
    expect(description == values["description"], f"the exact text arrives: {description!r}")
    url = xr(site)["status"]["url"]
    story.stage("22 parts", f"{PARTS} parts exist and are ready; {url}")
