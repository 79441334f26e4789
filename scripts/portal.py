"""
Run a real Backstage on the embedded platform until ctrl-C.

Uses the platform that runs on the state folder, or starts one (``orderkit up``) and stops it
at the end. Called by ``scripts/portal.sh``, which installs what is needed.
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
from daemons import Daemon, DaemonError
from realbackstage import HOST, Backstage, Wanted, serving

from orderkit.adapters.embedded.state import PLATFORM_FILE
from orderkit.cli.connecting import load_settings
from orderkit.cli.options import state_path
from orderkit.core.errors import NotFoundError, OrderkitError
from orderkit.core.settings import PlatformSettings

_UP_S = 120.0
_PROVE = "to prove them: orderkit up --signed-by {}"
_UP = "Stop with ctrl-C"


def main() -> int:
    parser = argparse.ArgumentParser(prog="portal", description=__doc__)
    parser.add_argument("--front-end", action="store_true", help="serve the forms too")
    parser.add_argument("--state", metavar="DIR", help="the platform's state folder")
    parser.add_argument("--port", type=int, default=7107, help="0: any free one")
    wanted = parser.parse_args()
    serves, stop = threading.Event(), threading.Event()

    def asked_to_stop(*_: object) -> None:
        """End at once what still starts."""
        stop.set()
        if not serves.is_set():
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, asked_to_stop)
    state = state_path(wanted.state)
    try:
        with contextlib.ExitStack() as undo:
            up, settings = undo.enter_context(_platform(state, wanted.port))
            request = Wanted(settings, state / "backstage", wanted.front_end, wanted.port)
            portal = undo.enter_context(serving(request))
            serves.set()
            proved = settings.signed_by == portal.url
            print(_welcome(portal, state, proved=proved, front_end=wanted.front_end), flush=True)
            _watch([portal.daemon, *([up] if up else [])], stop)
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


@contextlib.contextmanager
def _platform(state: Path, port: int) -> Iterator[tuple[Daemon | None, PlatformSettings]]:
    """Yield the platform of a state folder; start one where none runs."""
    with contextlib.suppress(NotFoundError):
        settings = load_settings(str(state / PLATFORM_FILE))
        if _serves(settings.service.url):
            yield None, settings
            return
    print("Starting the embedded platform...", flush=True)
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = state / ".up.log"
    command = [sys.executable, "-m", "orderkit", "up", "--state", str(state)]
    if port:
        command += ["--signed-by", f"http://{HOST}:{port}"]
    with Daemon("orderkit up", command, log=log) as up:
        up.wait_until(lambda: _UP in up.text(), timeout_s=_UP_S)
        yield up, load_settings(str(state / PLATFORM_FILE))


def _serves(url: str) -> bool:
    try:
        return requests.get(f"{url}/healthz", timeout=5).ok
    except requests.RequestException:
        return False


def _welcome(portal: Backstage, state: Path, *, proved: bool, front_end: bool) -> str:
    users = "proved by its signature" if proved else f"claimed; {_PROVE.format(portal.url)}"
    where = f"{portal.url}/create   (sign in as guest)" if front_end else f"{portal.url}/api"
    return f"""
Backstage runs on the embedded platform. State: {state}

  portal    {where}
  kits      {", ".join(portal.templates)}
  users     {users}
  log       {portal.daemon.log}

Orders placed here are orders like any other:

  orderkit list --platform {state / PLATFORM_FILE}

Stop with ctrl-C; nothing is lost.
"""


if __name__ == "__main__":
    sys.exit(main())
