"""
Run a real Backstage on the embedded platform until ctrl-C.

Uses the platform that runs on the state folder, or starts one (``orderkit up``) and stops it
at the end. With ``--agents`` it serves the agents' pack, and beside it runs what a cluster would
(``python -m whisperops play``). The profile is ``plugin``, with Orderkit's packages in Backstage;
on a platform that runs already they are, if that is its profile. Called by ``scripts/portal.sh``,
which installs what is needed.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import requests
from lab.daemons import Daemon, DaemonError
from lab.realbackstage import GUEST, HOST, PACKAGES, Backstage, Wanted, serving

from ground.errors import NotFoundError, OrderkitError
from ground.shapes import changed
from orderkit.adapters.state_folder import PLATFORM_FILE
from orderkit.cli.commands.console import console_link
from orderkit.cli.connecting import load_settings
from orderkit.cli.options import state_path
from orderkit.cli.signals import set_by_signal
from orderkit.core.platform.settings import PlatformSettings
from orderkit.core.portal.profile import Profile

_UP_S = 120.0
_PORT = 7107
PLATFORM_GROUP = "group:default/platform"
"""The guest's group (``realbackstage``), whose members order for every team."""
_PROVE = "to prove them: orderkit up --signed-by {0} --catalog {0}"
_UP = "Stop with ctrl-C"
_ROOT = Path(__file__).parents[1]
_AGENTS = (
    f"--pack={_ROOT / 'packs' / 'agents'}",
    "--value=BASE_DOMAIN=apps.example.org",
    "--value=PROJECT_ID=whisperops-lab",
)
_TOKENS_PER_MINUTE = 200_000
"""What an agent spends while somebody looks: half a dollar a minute."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="portal", description=__doc__)
    parser.add_argument("--front-end", action="store_true", help="serve the forms too")
    parser.add_argument("--state", metavar="DIR", help="the platform's state folder")
    parser.add_argument(
        "--port", type=int, default=_PORT, help="0: any free one; the platform's are free ones too"
    )
    parser.add_argument("--agents", action="store_true", help="serve the agents' pack")
    wanted = parser.parse_args()
    serves, stop = threading.Event(), threading.Event()

    def asked_to_stop(*_: object) -> None:
        """End at once what still starts."""
        set_by_signal(stop)
        if not serves.is_set():
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, asked_to_stop)
    apart = str(_ROOT / ".cache" / "portal-agents") if wanted.agents else None
    state = state_path(wanted.state or apart)
    try:
        with contextlib.ExitStack() as undo:
            more = _AGENTS if wanted.agents else ()
            up, settings = undo.enter_context(_platform(state, wanted.port, more))
            request = Wanted(
                settings,
                state / "backstage",
                wanted.front_end,
                cards=wanted.front_end,
                port=wanted.port,
                reread_s=20,
                packages=PACKAGES if settings.portal.profile is Profile.PLUGIN else (),
            )
            portal = undo.enter_context(serving(request))
            parts = [portal.daemon, *([up] if up else [])]
            if wanted.agents:
                parts.append(undo.enter_context(_playing(state, settings, portal)))
            serves.set()
            proved = settings.portal.signed_by == portal.url
            print(
                _welcome(portal, state, settings, proved=proved, front_end=wanted.front_end),
                flush=True,
            )
            if wanted.agents:
                print(_DATASETS.format(state / "datasets"), flush=True)
            _watch(parts, stop)
    except (DaemonError, OrderkitError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _watch(parts: Sequence[Daemon], stop: threading.Event) -> None:
    """
    Return when asked to stop.

    Raises:
        DaemonError: One of the parts ended.
    """
    while not stop.wait(0.5):
        for part in parts:
            if part.ended():
                raise DaemonError(f"{part.name} ended; its log: {part.log}")


def _playing(state: Path, settings: PlatformSettings, portal: Backstage) -> Daemon:
    """Start what a cluster would run beside the agents' pack; its datasets go to this portal."""
    seen = changed(settings, portal=changed(settings.portal, url=portal.url))
    described = state / "with-backstage.yaml"
    described.write_text(seen.to_yaml())
    bucket = state / "datasets"
    bucket.mkdir(exist_ok=True)
    example = bucket / "California_Housing.csv"
    if not any(bucket.iterdir()):
        example.write_text("rooms,price\n" + "".join(f"{n},{n * 90}\n" for n in range(1, 9)))
    command = [sys.executable, "-m", "whisperops", "play", "--register"]
    command += [f"--platform={described}", f"--bucket={bucket}"]
    command += [f"--tokens-per-minute={_TOKENS_PER_MINUTE}"]
    play = Daemon("whisperops play", command, log=state / ".play.log")
    try:
        play.wait_until(lambda: _UP in play.text(), timeout_s=_UP_S)
    except BaseException:
        play.stop()
        raise
    return play


@contextlib.contextmanager
def _platform(
    state: Path, port: int, more: Sequence[str]
) -> Iterator[tuple[Daemon | None, PlatformSettings]]:
    """Yield the platform of a state folder; start one where none runs."""
    with contextlib.suppress(NotFoundError):
        settings = load_settings(str(state / PLATFORM_FILE))
        if _serves(settings.service.url):
            yield None, settings
            return
    print("Starting the embedded platform...", flush=True)
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = state / ".up.log"
    command = [sys.executable, "-m", "orderkit", "up", "--state", str(state), *more]
    if port != _PORT:
        command += [f"--{part}-port=0" for part in ("forge", "cluster", "portal", "service")]
    if port:
        backstage = f"http://{HOST}:{port}"
        command += ["--signed-by", backstage, "--catalog", backstage]
        command += ["--platform-group", PLATFORM_GROUP, "--profile", Profile.PLUGIN.value]
    with Daemon("orderkit up", command, log=log) as up:
        up.wait_until(lambda: _UP in up.text(), timeout_s=_UP_S)
        yield up, load_settings(str(state / PLATFORM_FILE))


def _serves(url: str) -> bool:
    try:
        return requests.get(f"{url}/healthz", timeout=5).ok
    except requests.RequestException:
        return False


def _welcome(
    portal: Backstage, state: Path, settings: PlatformSettings, *, proved: bool, front_end: bool
) -> str:
    users = "proved by its signature" if proved else f"claimed; {_PROVE.format(portal.url)}"
    where = f"{portal.url}/create   (sign in as guest)" if front_end else f"{portal.url}/api"
    return f"""
Backstage runs on the embedded platform. State: {state}

  portal    {where}
  kits      {", ".join(portal.templates)}
  users     {users}
  console   {console_link(settings, GUEST)}
            (signs you in once, within ten minutes; for another link:
            orderkit console --requester {GUEST} --platform {state / PLATFORM_FILE})
  log       {portal.daemon.log}

Orders placed here are orders like any other:

  orderkit list --platform {state / PLATFORM_FILE}

Stop with ctrl-C; nothing is lost.
"""


_DATASETS = """Every CSV in {} is a dataset that an agent may be ordered for, half a minute later
at most; one that is empty is not offered. Agents spend half a dollar a minute.
"""


if __name__ == "__main__":
    sys.exit(main())
