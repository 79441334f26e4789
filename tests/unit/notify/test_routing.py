"""Where events go, by platform.yaml and the teams' files."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

import pytest

from ground.errors import InvalidInputError
from ground.names import TeamName
from ground.shapes import changed, read_shape
from orderkit.core.notify.order_event import OrderEvent, Routing, row_events
from orderkit.core.order import team_file
from orderkit.core.order.order_view import OrderRow
from orderkit.core.platform import settings
from orderkit.core.platform.notification_settings import QuietTime

ROW = OrderRow("garage-a", "ae86", "garage", "Ready", delivered="a" * 40)
PLATFORM: dict[str, Any] = {
    "channels": {
        "portal": {"type": "backstage"},
        "audit": {"type": "webhook", "url": "https://audit.example.org/in", "keyFile": "a.key"},
        "chat": {"type": "apprise", "urlFile": "chat.url", "forTeams": True},
    },
    "routes": [{"to": ["portal"]}, {"to": ["audit"], "events": ["ended"], "teams": ["rx7"]}],
    "teamHosts": ["hooks.example.org"],
}
HEAD = """apiVersion: orderkit.dev/v1alpha1
kind: Platform
metadata: {name: lab}
spec:
  forge: {url: "https://forge.example.org", tokenFile: forge}
  cluster: {kubeconfig: kubeconfig}
  portal: {url: "https://portal.example.org", tokenFile: portal}
  service: {url: "https://orders.example.org", tokenFile: service}
"""


def platform(spec: dict[str, Any]) -> settings.PlatformSettings:
    return settings.parse(f"{HEAD}  notifications: {spec!r}\n", folder=PurePath("/etc/orderkit"))


def routing(**teams: dict[str, Any]) -> Routing:
    files = {team: team_notifications(team, spec) for team, spec in teams.items()}
    return Routing(platform(PLATFORM).notifications, files)


def team_notifications(team: str, spec: dict[str, Any]) -> Any:
    text = (
        f"apiVersion: orderkit.dev/v1alpha1\nkind: Team\nmetadata: {{name: {team}}}\n"
        f"spec: {{notifications: {spec!r}}}\n"
    )
    parsed = team_file.parse(text, team=TeamName(team))
    assert team_file.parse(parsed.to_yaml(), team=TeamName(team)) == parsed
    return parsed.notifications


def event(team: str = "ae86", kind: str = "ready") -> OrderEvent:
    (made,) = row_events(changed(ROW, team=team), None)
    return replace(made, kind=kind)  # type: ignore[arg-type]  # one of the kinds


OWN = {
    "channels": {"bot": {"url": "https://hooks.example.org/ae86"}},
    "routes": [{"to": ["bot", "chat"], "events": ["ready"]}],
}


def test_the_platforms_routes_hold_for_everybody_and_a_teams_for_its_own() -> None:
    made = routing(ae86=OWN)
    assert made.destinations(event()) == {"portal", "ae86.bot", "chat"}
    assert made.destinations(event("rx7")) == {"portal"}
    assert made.destinations(event("rx7", "ended")) == {"portal", "audit"}
    assert made.destinations(event(kind="ended")) == {"portal"}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"routes": [{"to": ["audit"]}]}, "'audit' is not a channel that teams may use"),
        ({"routes": [{"to": ["rx7.bot"]}]}, "'rx7.bot' is not a channel that teams may use"),
        (
            {
                "channels": {"bot": {"url": "http://169.254.169.254/latest"}},
                "routes": [{"to": ["bot"]}],
            },
            "channel bot: 169.254.169.254 is not in notifications.teamHosts",
        ),
    ],
)
def test_what_a_team_may_not_use_is_reported_and_left_out(
    spec: dict[str, Any], problem: str
) -> None:
    made = routing(ae86=spec, rx7=OWN)
    assert made.destinations(event()) == {"portal"}
    assert problem in "\n".join(made.problems())
    assert "ae86.bot" not in made.channels()


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ({"routes": [{"to": ["nobody"]}]}, "is not a channel"),
        ({"allowedNetworks": ["here"]}, "is not a network"),
        ({"quietHours": [{"from": "20:00", "to": "07:00", "zone": "Mars"}]}, "time zone"),
        ({"channels": {"a": {"type": "webhook", "url": "https://u:p@example.org"}}}, "channels.a"),
        *(
            ({"channels": {"a": {"type": "webhook", "url": url}}}, "channels.a.url: '***' names no")
            for url in (
                "https://example.org:99999/x",
                "https://example.org:0/",
                "https://example.org:x",
                "http://[::1/",
            )
        ),
        ({"channels": {"a": {"type": "apprise", "url": "mailto://u:p@example.org"}}}, "channels.a"),
        ({"channels": {"a": {"type": "webhok"}}}, "channels.a.type: 'webhok'"),
        ({"channels": {"a": {"type": "webhook"}}}, "channels.a.url is missing"),
        ({"channels": {"a": {"type": "backstage", "url": "https://a.org"}}}, "takes no url"),
        ({"failingAfter": "soon"}, "failingAfter"),
    ],
)
def test_what_cannot_be_meant_is_refused(spec: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        platform(spec)
    assert rule in str(raised.value)
    assert "u:p@" not in f"{raised.value} {raised.value.hint}"


def test_platform_yaml_survives_writing() -> None:
    first = platform(PLATFORM)
    again = settings.parse(first.to_yaml(), folder=PurePath("/elsewhere"))
    assert again.notifications == first.notifications
    assert again.notifications.channels["chat"].url_file == PurePath("/etc/orderkit/chat.url")


@pytest.mark.parametrize(
    ("reason", "quiet", "now", "end"),
    [
        ("before midnight", {"from": "20:00", "to": "07:00"}, "2026-11-23T21:00", "24T07:00"),
        ("after midnight", {"from": "20:00", "to": "07:00"}, "2026-11-24T06:59", "24T07:00"),
        ("it has ended", {"from": "20:00", "to": "07:00"}, "2026-11-24T07:00", None),
        (
            "the night of a day that counts",
            {"from": "20:00", "to": "07:00", "days": ["Mon"]},
            "2026-11-24T06:00",
            "24T07:00",
        ),
        (
            "the night of another day",
            {"from": "20:00", "to": "07:00", "days": ["Tue"]},
            "2026-11-24T06:00",
            None,
        ),
        (
            "a whole day",
            {"from": "00:00", "to": "24:00", "days": ["Sun"]},
            "2026-11-22T12:00",
            "23T00:00",
        ),
        (
            "another zone",
            {"from": "20:00", "to": "21:00", "zone": "Europe/Berlin"},
            "2026-11-23T19:30",
            "23T20:00",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_quiet_hours(reason: str, quiet: dict[str, Any], now: str, end: str | None) -> None:
    time = read_shape(QuietTime, quiet)
    ends = time.ends(datetime.fromisoformat(now).replace(tzinfo=UTC))
    assert (ends and ends.strftime("%dT%H:%M")) == end, reason
