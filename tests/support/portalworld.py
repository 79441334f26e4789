"""An embedded platform as a process, and a real Backstage on it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.binaries import keep_log
from lab.daemons import Daemon
from lab.loopback import free_ports
from lab.portal import PLATFORM_GROUP
from lab.realbackstage import HOST, Backstage, Wanted, serving
from published import Up

from ground.shapes import changed
from orderkit.cli.connecting import connect, load_settings

SYSTEM = "paddock"
"""A system in the catalog of every portal."""
_UP_S = 300.0


@dataclass(frozen=True)
class World:
    """A platform and a Backstage on it that runs templates by one profile."""

    up: Up
    backstage: Backstage
    wanted: Wanted
    """How that Backstage was started."""


@contextlib.contextmanager
def portal_world(
    folder: Path,
    profile: str,
    *,
    front_end: bool,
    pack: Path | None = None,
    more: tuple[str, ...] = (),
    reread_s: int = 0,
    cards: bool = False,
    service_url: str = "",
    packages: tuple[str, ...] = (),
) -> Iterator[World]:
    """
    Start both, yield when Backstage shows the kits, stop them at the end.

    Args:
        more: Further arguments of ``orderkit up``.
        cards: Orderkit's plugin is in the front end.
        service_url: Where Backstage's proxy leads; empty: to the platform's service.
        packages: Orderkit's packages for Backstage to load.
    """
    state = folder / "state"
    ports = [f"--{part}-port=0" for part in ("forge", "cluster", "portal", "service")]
    (portal,) = free_ports(1)  # the platform's service must know whose signatures it checks
    backstage_url = f"http://{HOST}:{portal}"
    options = ["--profile", profile, "--signed-by", backstage_url, "--catalog", backstage_url]
    options += ["--platform-group", PLATFORM_GROUP]
    options += ["--pack", str(pack)] if pack else []
    options += more
    command = [sys.executable, "-m", "orderkit", "up", "--state", str(state), *ports, *options]
    with Daemon("orderkit up", command, log=folder / "up.log") as daemon:
        daemon.wait_until(lambda: "Stop with ctrl-C" in daemon.text(), timeout_s=_UP_S)
        settings = load_settings(str(state / "platform.yaml"))
        service = changed(settings.service, url=service_url or settings.service.url)
        wanted = Wanted(
            changed(settings, service=service),
            state / "backstage",
            front_end=front_end,
            port=portal,
            systems=(SYSTEM,),
            reread_s=reread_s,
            packages=packages,
            recovers=bool(packages),
            cards=cards,
        )
        try:
            with serving(wanted) as backstage:
                yield World(Up(state, settings, connect(settings)), backstage, wanted)
        finally:
            keep_log(wanted.folder / "backstage.log", as_name=f"backstage-{folder.name}.log")
