"""``orderkit serve`` as a process beside a platform, and ``orderkit access add``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import requests
from commands import Command
from lab.daemons import Daemon
from platformsettings import settings_with

from orderkit.core.platform.service_access import AccessSettings
from orderkit_standins.serve_platform import Running

READY_S = 180.0


@pytest.fixture
def platform_file(platform: Running, tmp_path: Path) -> Path:
    """The platform's own file, with clients."""
    access = AccessSettings(tokens_file=tmp_path / "clients.yaml", requests_per_minute=1)
    path = platform.embedded.state.folder / "served.yaml"
    path.write_text(settings_with(platform.settings, service__access=access).to_yaml())
    return path


def ask(url: str, token: str) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        return session.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=60)


def test_a_client_that_was_added_is_let_in_until_it_asks_too_much(
    orderkit: Command, platform_file: Path, tmp_path: Path
) -> None:
    audit = tmp_path / "audit.jsonl"
    command = [sys.executable, "-m", "orderkit", "serve", "--platform", str(platform_file)]
    options = ["--port", "0", "--audit-log", str(audit)]
    added = orderkit("access", "add", "ci", "--everywhere", "--json", platform_file=platform_file)
    assert added.code == 0, added.err
    with Daemon("orderkit serve", [*command, *options], log=tmp_path / "serve.log") as served:
        served.wait_until(lambda: "Stop with ctrl-C" in served.text(), timeout_s=READY_S)
        url = served.text().split("runs: ")[1].split()[0]

        first = ask(f"{url}/v1/orders", added.json["token"])
        statuses = [ask(f"{url}/v1/orders?kit=none", added.json["token"]) for _ in range(20)]

        assert first.status_code == 200, first.text
        limited = statuses[-1]
        assert limited.status_code == 429
        assert int(limited.headers["Retry-After"]) >= 1
        assert ask(f"{url}/v1/orders", "okt_x").status_code == 401
    entries = [json.loads(line) for line in audit.read_text().splitlines()]
    assert {entry["status"] for entry in entries} == {200, 401, 429}
    assert added.json["token"] not in audit.read_text() + served.text()


def test_tokens_do_not_travel_over_plain_http_to_other_machines(
    orderkit: Command, platform_file: Path
) -> None:
    open_wide = orderkit("serve", "--host", "0.0.0.0", platform_file=platform_file)  # noqa: S104 - refused
    half = orderkit("serve", "--certificate", "x", platform_file=platform_file)
    nowhere = orderkit("serve", "--host", "nowhere", platform_file=platform_file)

    assert (open_wide.code, half.code, nowhere.code) == (4, 2, 2)
    assert "--behind-tls" in open_wide.err


def test_a_client_needs_a_team_and_a_file(orderkit: Command, platform_file: Path) -> None:
    nobody = orderkit("access", "add", "ci", platform_file=platform_file)
    no_file = orderkit("access", "add", "ci", "--team", "ae86")

    assert (nobody.code, no_file.code) == (2, 1)
    assert "tokensFile" in no_file.err
