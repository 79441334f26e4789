"""
``notifications`` of platform.yaml and of a team's file: channels, routes, quiet hours, digests.

Addresses that hold secrets come from files that platform.yaml names. Teams may use the platform's
channels with `forTeams`, and webhooks of their own on `teamHosts`; a route of a team's file is
about this team's orders only. Pure: read by ``settings`` and by ``core.order.team_file``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from msgspec import Meta, field

from ground.errors import InvalidInputError
from ground.shapes import StrictShape, read_shape

EventKind = Literal[
    "ready", "failing", "attention", "approval-wanted", "approval-decided", "expiring", "ended"
]
"""What orders are notified about; `attention` is what a kit declares, such as a spent budget."""
ChannelType = Literal["backstage", "pullRequest", "webhook", "apprise"]
KINDS: tuple[EventKind, ...] = get_args(EventKind)
FOR_PEOPLE: frozenset[ChannelType] = frozenset({"backstage", "apprise"})
"""Channels that people read: quiet hours and digests are for these."""
NAMESPACE_NAME = "orderkit"
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MINUTES_OF_DAY = 24 * 60

_WEBHOOK_URL = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")
_CHANNELS = Meta(
    max_length=50,
    extra_json_schema={"propertyNames": {"pattern": r"^[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?$"}},
)
_Text = Annotated[str, Meta(min_length=1)]
_Texts = Annotated[tuple[_Text, ...], Meta(min_length=1)]
_Events = Annotated[tuple[EventKind, ...], Meta(min_length=1)]
_Duration = Annotated[str, Meta(pattern=r"^[0-9]{1,6}[smhd]$")]
_Time = Annotated[str, Meta(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$")]
_Day = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
_DAYS: tuple[_Day, ...] = get_args(_Day)
_KEYS: Mapping[ChannelType, tuple[str, frozenset[str]]] = {
    "backstage": ("", frozenset()),
    "pullRequest": ("", frozenset()),
    "webhook": ("url", frozenset({"url", "keyFile"})),
    "apprise": ("urlFile", frozenset({"urlFile"})),
}
"""By type of a channel: the key that it needs, and those that it may have beside forTeams."""


class ChannelSettings(StrictShape, frozen=True):
    """Where messages go."""

    type: ChannelType
    url: _Text = ""
    """Of a webhook."""
    key_file: PurePath | None = None
    """With the key of a webhook's signatures; None: derived from the service's secret."""
    url_file: PurePath | None = None
    """With the address for Apprise, which holds secrets."""
    for_teams: bool = False
    """Teams' files may route to it."""

    @property
    def is_for_people(self) -> bool:
        return self.type in FOR_PEOPLE

    @property
    def keys(self) -> dict[str, object]:
        """What is set, by the keys that only some types take."""
        found = {"url": self.url, "keyFile": self.key_file, "urlFile": self.url_file}
        return {key: value for key, value in found.items() if value}


class TeamRoute(StrictShape, frozen=True):
    """Which events of a team go to which channels; an empty condition holds for all."""

    to: _Texts
    events: _Events = ()
    kits: _Texts = ()

    def matches(self, kind: EventKind, team: str, kit: str) -> bool:  # noqa: ARG002  as a Route
        """Say whether an event of this kind, of an order of this team and kit, goes there."""
        return (not self.events or kind in self.events) and (not self.kits or kit in self.kits)


class Route(TeamRoute, frozen=True):
    """The same for the events of all teams."""

    teams: _Texts = ()

    def matches(self, kind: EventKind, team: str, kit: str) -> bool:
        """Say whether an event of this kind, of an order of this team and kit, goes there."""
        return (not self.teams or team in self.teams) and TeamRoute.matches(self, kind, team, kit)


class QuietTime(StrictShape, frozen=True):
    """A time of day in which nobody is disturbed; past midnight if `end` is before `start`."""

    start: _Time = field(name="from")
    end: _Time = field(name="to")
    zone: str = "UTC"
    days: Annotated[tuple[_Day, ...], Meta(min_length=1)] = _DAYS
    """On which it begins."""

    def ends(self, now: datetime) -> datetime | None:
        """Return when this quiet time ends; None if it is not quiet now."""
        local = now.astimezone(ZoneInfo(self.zone))
        start, end = _minutes(self.start), _minutes(self.end)
        length = (end - start) % _MINUTES_OF_DAY or _MINUTES_OF_DAY
        for days_ago in (0, 1):
            day = local - timedelta(days=days_ago)
            begun = day.replace(hour=0, minute=0, second=0, microsecond=0)
            begun += timedelta(minutes=start)
            over = begun + timedelta(minutes=length)
            if _DAYS[begun.weekday()] in self.days and begun <= local < over:
                return over.astimezone(now.tzinfo)
        return None


_QuietTimes = Annotated[tuple[QuietTime, ...], Meta(max_length=20)]


class TeamChannel(StrictShape, frozen=True):
    """A webhook of a team."""

    url: _Text


class TeamNotifications(StrictShape, frozen=True):
    """What a team's file says."""

    channels: Annotated[Mapping[str, TeamChannel], _CHANNELS] = {}
    routes: Annotated[tuple[TeamRoute, ...], Meta(max_length=50)] = ()
    quiet_hours: _QuietTimes = ()

    def check(self, field_name: str) -> None:
        """Raise InvalidInputError for no address of a webhook, and for an unknown zone."""
        for name, channel in self.channels.items():
            _check_webhook(f"{field_name}.channels.{name}.url", channel.url)
        _check_zones(f"{field_name}.quietHours", self.quiet_hours)


class Digest(StrictShape, frozen=True):
    """When events become one message."""

    from_: Annotated[int, Meta(ge=2)] = field(default=10, name="from")
    """So many events of a kind."""
    within: _Duration = "10s"
    """How long an event for people waits for others."""


class NotificationSettings(StrictShape, frozen=True):
    """What platform.yaml says."""

    channels: Annotated[Mapping[str, ChannelSettings], _CHANNELS] = {}
    routes: Annotated[tuple[Route, ...], Meta(max_length=200)] = ()
    failing_after: _Duration = "10m"
    quiet_hours: _QuietTimes = ()
    urgent: _Events = ()
    """Events that are sent in quiet hours, too."""
    digest: Digest = Digest()
    allowed_networks: _Texts = ()
    """Networks that webhooks may reach although they are not public."""
    team_hosts: _Texts = ()
    """Hosts to which teams may send webhooks of their own."""
    namespace: Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")] = (
        NAMESPACE_NAME
    )
    """Where the cluster keeps what was sent."""

    @property
    def uses_anything(self) -> bool:
        return bool(self.channels or self.team_hosts)

    def check(self) -> None:
        """
        Check what a schema cannot say.

        Raises:
            InvalidInputError: A channel without its address, a route to no channel, an unknown
                zone, no network.
        """
        for name, channel in self.channels.items():
            _check_channel(f"notifications.channels.{name}", channel)
        for number, route in enumerate(self.routes):
            for name in route.to:
                if name not in self.channels:
                    raise InvalidInputError(
                        f"notifications.routes[{number}].to",
                        name,
                        "is not a channel",
                        hint=f"notifications.channels has"
                        f" {', '.join(sorted(self.channels)) or 'none'}",
                    )
        for network in self.allowed_networks:
            try:
                ipaddress.ip_network(network)
            except ValueError as error:
                raise InvalidInputError(
                    "notifications.allowedNetworks", network, "is not a network", hint="10.0.0.0/8"
                ) from error
        _check_zones("notifications.quietHours", self.quiet_hours)


def read_notifications(
    spec: Mapping[str, Any], path_of: Callable[[str], PurePath]
) -> NotificationSettings:
    """Read what the shape's schema accepts; raises InvalidInputError as its `check`."""
    settings = read_shape(NotificationSettings, spec, path_of=path_of)
    settings.check()
    return settings


def _check_channel(field_name: str, channel: ChannelSettings) -> None:
    """Raise InvalidInputError. No message shows an address: it may be one with a password."""
    needed, allowed = _KEYS[channel.type]
    for key in sorted(channel.keys.keys() - allowed):
        hint = f"it takes {', '.join(sorted(allowed)) or 'none but forTeams'}"
        raise InvalidInputError(field_name, channel.type, f"takes no {key}", hint=hint)
    if needed and needed not in channel.keys:
        message = f"is missing; {channel.type} needs it"
        raise InvalidInputError(f"{field_name}.{needed}", None, message)
    if channel.url:
        _check_webhook(f"{field_name}.url", channel.url)


def _check_zones(field_name: str, times: Iterable[QuietTime]) -> None:
    for time in times:
        try:
            ZoneInfo(time.zone)
        except (OSError, ValueError, KeyError) as error:
            # OSError: a folder of zones, such as Europe; ValueError: a path
            raise InvalidInputError(
                f"{field_name}.zone",
                time.zone,
                "is not a time zone",
                hint="for example Europe/Berlin",
            ) from error


def _check_webhook(field_name: str, url: str) -> None:
    if _WEBHOOK_URL.fullmatch(url) is None:
        raise InvalidInputError(
            field_name,
            "***",
            "is not an http(s) address without user, query and fragment",
            hint="for example https://hooks.example.org/orders",
        )
    try:
        port = urlsplit(url).port
    except ValueError:
        port = 0
    if port == 0:
        raise InvalidInputError(
            field_name,
            "***",
            "names no host with a port from 1 to 65535",
            hint="leave the port out, or write it in digits: https://hooks.example.org:8443/orders",
        )


def seconds(text: str) -> float:
    """
    Return the length of a duration such as ``10m``.

    Raises:
        ValueError: It is not one.
    """
    match = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration")
    return float(match[1]) * _UNITS_S[match[2]]


def _minutes(text: str) -> int:
    hours, _, minutes = text.partition(":")
    return int(hours) * 60 + int(minutes)
