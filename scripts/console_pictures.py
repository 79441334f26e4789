"""
Take docs/console-orders.png: the environments of a shop, as the console lists them.

Starts an embedded platform with the pack of environments and twins of the clouds, orders a dozen,
and pauses one. Needs Debian's Chromium (``scripts/browser.sh``). Takes about a minute.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from orderkit.cli.commands.console import console_link
from orderkit.cli.connecting import load_settings
from orderkit.controllers import Kind, ObjectKey
from orderkit_standins.testing import TrialPlatform, trial_platform

ROOT = Path(__file__).parents[1]
PLATFORM_VALUES = {"PROJECT_ID": "acme-lab", "BUCKET_PREFIX": "acme"}
OWNERS = {"catalog": "frank", "checkout": "grace", "payments": "heidi", "search": "ivan"}
"""By team: who orders for it."""
STAGES = (("dev", "small"), ("staging", "small"), ("prod", "large"))
PAUSED = ObjectKey(
    Kind("platform.acme.io", "v1alpha1", "ApplicationEnvironment"),
    "appenvironment-checkout-staging",
    "team-checkout",
)
SIZE_PX = (1280, 800)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="orderkit-pictures-") as folder:
        started = trial_platform(
            Path(folder) / "state",
            ROOT / "packs/environments",
            teams=tuple(OWNERS),
            values=PLATFORM_VALUES,
        )
        with started as platform:
            for name in _ordered(platform):
                print(f"{name} is Ready", flush=True)
            pause = {"metadata": {"annotations": {"crossplane.io/paused": "true"}}}
            platform.cluster.patch(PAUSED, pause, owner="kubectl")
            _take(platform, "/", ROOT / "docs/console-orders.png")
    return 0


def _ordered(platform: TrialPlatform) -> Iterator[str]:
    for team, owner in OWNERS.items():
        theirs = replace(platform, requester=f"user:default/{owner}")
        for stage, size in STAGES:
            values = {"name": f"{team}-{stage}", "team": team, "nodeSize": size}
            yield theirs.order("appenvironment", values).id


def _take(platform: TrialPlatform, page: str, picture: Path) -> None:
    """Sign in by a link, as `orderkit console` prints it, and write the picture of a window."""
    link = console_link(load_settings(str(platform.file)), "user:default/grace")
    with tempfile.TemporaryDirectory() as profile:
        options = (
            "--headless=new",
            "--no-sandbox",
            "--hide-scrollbars",
            "--no-proxy-server",
            f"--user-data-dir={profile}",
            f"--window-size={SIZE_PX[0]},{SIZE_PX[1]}",
            "--timeout=8000",
            f"--screenshot={picture}",
        )
        command = ("chromium", *options, f"{link}&onward={page}")
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own link


if __name__ == "__main__":
    sys.exit(main())
