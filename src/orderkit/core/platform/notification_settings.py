"""
``notifications`` of platform.yaml and of a team's file: channels, routes, quiet hours, digests.

Addresses that hold secrets come from files that platform.yaml names. Teams may use the platform's
channels with `forTeams`, and webhooks of their own on `teamHosts`; a route of a team's file is
about this team's orders only. Pure: read by ``settings`` and by ``core.order.team_file``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import Any, Literal, get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from ground.errors import InvalidInputError

EventKind = Literal[
    "ready", "failing", "attention", "approval-wanted", "approval-decided", "expiring", "ended"
]
"""What orders are notified about; `attention` is what a kit declares, such as a spent budget."""
ChannelType = Literal["backstage", "pullRequest", "webhook", "apprise"]
KINDS: tuple[EventKind, ...] = get_args(EventKind)
FOR_PEOPLE: frozenset[ChannelType] = frozenset({"backstage", "apprise"})
"""Channels that people read: quiet hours and digests are for these."""
NAMESPACE_NAME = "orderkit"
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MINUTES_OF_DAY = 24 * 60

_NAME = r"^[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?$"
_WEBHOOK_URL = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")
_TEXTS = {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}
_EVENTS = {"type": "array", "minItems": 1, "items": {"enum": list(KINDS)}}
_DURATION = {"type": "string", "pattern": r"^[0-9]{1,6}[smhd]$"}
_TIME = {"type": "string", "pattern": r"^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$"}


def _object(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": properties,
    }


def _channels(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "propertyNames": {"pattern": _NAME},
        "additionalProperties": entry,
        "maxProperties": 50,
    }


_ROUTE = {"to": _TEXTS, "events": _EVENTS, "kits": _TEXTS}
_QUIET = {
    "type": "array",
    "maxItems": 20,
    "items": _object(
        ("from", "to"),
        **{"from": _TIME, "to": _TIME, "zone": {"type": "string"}},
        days={"type": "array", "minItems": 1, "items": {"enum": list(_DAYS)}},
    ),
}
_FILE = {"type": "string", "minLength": 1}
_KEYS: Mapping[str, tuple[str, frozenset[str]]] = {
    "backstage": ("", frozenset()),
    "pullRequest": ("", frozenset()),
    "webhook": ("url", frozenset({"url", "keyFile"})),
    "apprise": ("urlFile", frozenset({"urlFile"})),
}
"""By type of a channel: the key that it needs, and those that it may have beside forTeams."""
SCHEMA = _object(
    (),
    channels=_channels(
        _object(
            ("type",),
            type={"enum": list(get_args(ChannelType))},
            url=_FILE,
            keyFile=_FILE,
            urlFile=_FILE,
            forTeams={"type": "boolean"},
        )
    ),
    routes={"type": "array", "maxItems": 200, "items": _object(("to",), **_ROUTE, teams=_TEXTS)},
    failingAfter=_DURATION,
    quietHours=_QUIET,
    urgent=_EVENTS,
    digest=_object((), **{"from": {"type": "integer", "minimum": 2}, "within": _DURATION}),
    allowedNetworks=_TEXTS,
    teamHosts=_TEXTS,
    namespace={"type": "string", "pattern": r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"},
)
TEAM_SCHEMA = _object(
    (),
    channels=_channels(_object(("url",), url=_FILE)),
    routes={"type": "array", "maxItems": 50, "items": _object(("to",), **_ROUTE)},
    quietHours=_QUIET,
)


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """Where messages go."""

    id: str
    """Its name; that of a team's own is ``<team>.<name>``."""
    type: ChannelType
    url: str = ""
    """Of a webhook."""
    key_file: PurePath | None = None
    """With the key of a webhook's signatures; None: derived from the service's secret."""
    url_file: PurePath | None = None
    """With the address for Apprise, which holds secrets."""
    for_teams: bool = False
    """Teams' files may route to it."""
    team: str = ""
    """Whose it is; empty: the platform's."""

    @property
    def is_for_people(self) -> bool:
        return self.type in FOR_PEOPLE


@dataclass(frozen=True, slots=True)
class Route:
    """Which events go to which channels; an empty condition holds for all."""

    to: tuple[str, ...]
    events: frozenset[str] = frozenset()
    teams: frozenset[str] = frozenset()
    kits: frozenset[str] = frozenset()

    def matches(self, kind: EventKind, team: str, kit: str) -> bool:
        """Say whether an event of this kind, of an order of this team and kit, goes there."""
        pairs = ((kind, self.events), (team, self.teams), (kit, self.kits))
        return all(not accepted or value in accepted for value, accepted in pairs)


@dataclass(frozen=True, slots=True)
class QuietTime:
    """A time of day in which nobody is disturbed; past midnight if `end` is before `start`."""

    start: int
    end: int
    """Minutes of the day."""
    days: frozenset[int] = frozenset(range(7))
    """On which it begins, Monday is 0."""
    zone: str = "UTC"

    def ends(self, now: datetime) -> datetime | None:
        """Return when this quiet time ends; None if it is not quiet now."""
        local = now.astimezone(ZoneInfo(self.zone))
        length = (self.end - self.start) % _MINUTES_OF_DAY or _MINUTES_OF_DAY
        for days_ago in (0, 1):
            day = local - timedelta(days=days_ago)
            start = day.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(
                minutes=self.start
            )
            end = start + timedelta(minutes=length)
            if start.weekday() in self.days and start <= local < end:
                return end.astimezone(now.tzinfo)
        return None


@dataclass(frozen=True, slots=True)
class TeamNotifications:
    """What a team's file says."""

    channels: Mapping[str, str] = field(default_factory=dict)
    """By name: the address of a webhook."""
    routes: tuple[Route, ...] = ()
    quiet: tuple[QuietTime, ...] = ()
    spec: Mapping[str, Any] = field(default_factory=dict)
    """As in the file."""


@dataclass(frozen=True, slots=True)
class NotificationSettings:
    """What platform.yaml says."""

    channels: Mapping[str, ChannelSettings] = field(default_factory=dict)
    routes: tuple[Route, ...] = ()
    failing_after_s: float = 600.0
    quiet: tuple[QuietTime, ...] = ()
    urgent: frozenset[str] = frozenset()
    """Events that are sent in quiet hours, too."""
    digest_from: int = 10
    """So many events of a kind become one message."""
    gather_s: float = 10.0
    """How long an event for people waits for others."""
    allowed_networks: tuple[str, ...] = ()
    """Networks that webhooks may reach although they are not public."""
    team_hosts: frozenset[str] = frozenset()
    """Hosts to which teams may send webhooks of their own."""
    namespace: str = NAMESPACE_NAME
    """Where the cluster keeps what was sent."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """As in the file; files with absolute paths."""

    @property
    def uses_anything(self) -> bool:
        return bool(self.channels or self.team_hosts)


def read_notifications(
    spec: Mapping[str, Any], path_of: Callable[[str], PurePath]
) -> NotificationSettings:
    """
    Read ``notifications`` of platform.yaml, which `SCHEMA` has checked.

    Raises:
        InvalidInputError: A channel without its address, a route to no channel, an unknown zone,
            no network.
    """
    channels = {
        name: _channel(name, entry, path_of) for name, entry in spec.get("channels", {}).items()
    }
    routes = read_routes(spec.get("routes", ()))
    for number, route in enumerate(routes):
        for name in route.to:
            if name not in channels:
                raise InvalidInputError(
                    f"notifications.routes[{number}].to",
                    name,
                    "is not a channel",
                    hint=f"notifications.channels has {', '.join(sorted(channels)) or 'none'}",
                )
    networks = tuple(spec.get("allowedNetworks", ()))
    for network in networks:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise InvalidInputError(
                "notifications.allowedNetworks", network, "is not a network", hint="10.0.0.0/8"
            ) from error
    digest = spec.get("digest", {})
    default = NotificationSettings()
    return NotificationSettings(
        channels,
        routes,
        seconds(spec["failingAfter"]) if "failingAfter" in spec else default.failing_after_s,
        read_quiet("notifications.quietHours", spec.get("quietHours", ())),
        frozenset(spec.get("urgent", ())),
        digest.get("from", default.digest_from),
        seconds(digest["within"]) if "within" in digest else default.gather_s,
        networks,
        frozenset(host.lower() for host in spec.get("teamHosts", ())),
        spec.get("namespace", NAMESPACE_NAME),
        _with_paths(spec, path_of),
    )


def _channel(
    name: str, entry: Mapping[str, Any], path_of: Callable[[str], PurePath]
) -> ChannelSettings:
    """Raises InvalidInputError. No message shows an address: it may be one with a password."""
    field_name, type_ = f"notifications.channels.{name}", entry["type"]
    needed, allowed = _KEYS[type_]
    for key in sorted(entry.keys() - allowed - {"type", "forTeams"}):
        hint = f"it takes {', '.join(sorted(allowed)) or 'none but forTeams'}"
        raise InvalidInputError(field_name, type_, f"takes no {key}", hint=hint)
    if needed and needed not in entry:
        raise InvalidInputError(f"{field_name}.{needed}", None, f"is missing; {type_} needs it")
    if "url" in entry:
        _check_webhook(f"{field_name}.url", entry["url"])
    return ChannelSettings(
        name,
        type_,
        entry.get("url", ""),
        path_of(entry["keyFile"]) if "keyFile" in entry else None,
        path_of(entry["urlFile"]) if "urlFile" in entry else None,
        entry.get("forTeams", False),
    )


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


def read_team_notifications(spec: Mapping[str, Any], *, field_name: str) -> TeamNotifications:
    """
    Read ``notifications`` of a team's file, which `TEAM_SCHEMA` has checked.

    Raises:
        InvalidInputError: No address of a webhook, an unknown zone.
    """
    for name, entry in spec.get("channels", {}).items():
        _check_webhook(f"{field_name}.channels.{name}.url", entry["url"])
    return TeamNotifications(
        {name: entry["url"] for name, entry in spec.get("channels", {}).items()},
        read_routes(spec.get("routes", ())),
        read_quiet(f"{field_name}.quietHours", spec.get("quietHours", ())),
        spec,
    )


def read_routes(entries: Sequence[Mapping[str, Any]]) -> tuple[Route, ...]:
    """Read routes that a schema has checked."""
    return tuple(
        Route(
            tuple(entry["to"]),
            *(frozenset(entry.get(key, ())) for key in ("events", "teams", "kits")),
        )
        for entry in entries
    )


def read_quiet(field_name: str, entries: Sequence[Mapping[str, Any]]) -> tuple[QuietTime, ...]:
    """
    Read quiet hours that a schema has checked.

    Raises:
        InvalidInputError: An unknown zone.
    """
    times = []
    for entry in entries:
        zone = entry.get("zone", "UTC")
        try:
            ZoneInfo(zone)
        except (OSError, ValueError, KeyError) as error:
            raise InvalidInputError(
                f"{field_name}.zone", zone, "is not a time zone", hint="for example Europe/Berlin"
            ) from error
        days = frozenset(_DAYS.index(day) for day in entry.get("days", _DAYS))
        times.append(QuietTime(_minutes(entry["from"]), _minutes(entry["to"]), days, zone))
    return tuple(times)


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


def _with_paths(spec: Mapping[str, Any], path_of: Callable[[str], PurePath]) -> dict[str, Any]:
    """Return the section so that it means the same in another folder."""
    if "channels" not in spec:
        return dict(spec)
    channels = {
        name: {
            key: str(path_of(value)) if key in ("keyFile", "urlFile") else value
            for key, value in entry.items()
        }
        for name, entry in spec["channels"].items()
    }
    return {**spec, "channels": channels}
