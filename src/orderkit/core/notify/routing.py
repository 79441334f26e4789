"""
Which channels an event goes to, by platform.yaml and the teams' files.

A team's file reaches the team's own events only, on channels that the platform offers to teams, or
webhooks to hosts that it allows. What a team's file wants beyond that is left out and reported.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from orderkit.core.notify.order_event import OrderEvent
from orderkit.core.platform.notification_settings import (
    ChannelSettings,
    NotificationSettings,
    TeamChannel,
    TeamNotifications,
)


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of the platform or of a team."""

    id: str
    """Its name; that of a team's own is ``<team>.<name>``."""
    settings: ChannelSettings
    team: str = ""
    """Whose it is; empty: the platform's."""


def platform_channels(settings: NotificationSettings) -> dict[str, Channel]:
    """Return the platform's channels by id."""
    return {name: Channel(name, channel) for name, channel in settings.channels.items()}


@dataclass(frozen=True, slots=True)
class Routing:
    """The rules of platform and teams."""

    settings: NotificationSettings
    teams: Mapping[str, TeamNotifications] = field(default_factory=dict)
    _known: dict[tuple[str, str, str], frozenset[str]] = field(default_factory=dict, compare=False)

    def channels(self) -> dict[str, Channel]:
        """Return all usable channels by id: the platform's, and those of teams."""
        channels = platform_channels(self.settings)
        for team, own in sorted(self.teams.items()):
            for name, channel in sorted(own.channels.items()):
                if not self._refusal(channel):
                    id_ = team_channel(team, name)
                    channels[id_] = Channel(id_, ChannelSettings("webhook", channel.url), team)
        return channels

    def problems(self) -> Iterator[str]:
        """Yield what teams' files want and do not get."""
        for team, own in sorted(self.teams.items()):
            for name, channel in sorted(own.channels.items()):
                if why := self._refusal(channel):
                    yield f"team {team}: channel {name}: {why}"
            names = {name for route in own.routes for name in route.to}
            for name in sorted(names - own.channels.keys()):
                offered = self.settings.channels.get(name)
                if offered is None or not offered.for_teams:
                    yield f"team {team}: '{name}' is not a channel that teams may use"

    def destinations(self, event: OrderEvent) -> frozenset[str]:
        """Return the ids of the channels that an event goes to."""
        key = (event.kind, event.team, event.kit)
        if key not in self._known:
            self._known[key] = frozenset(self._destinations(event))
        return self._known[key]

    def _destinations(self, event: OrderEvent) -> Iterator[str]:
        for general in self.settings.routes:
            if general.matches(event.kind, event.team, event.kit):
                yield from general.to
        own = self.teams.get(event.team)
        for route in own.routes if own else ():
            if not route.matches(event.kind, event.team, event.kit):
                continue
            for name in route.to:
                if own and name in own.channels:
                    if not self._refusal(own.channels[name]):
                        yield team_channel(event.team, name)
                elif name in self.settings.channels and self.settings.channels[name].for_teams:
                    yield name

    def _refusal(self, channel: TeamChannel) -> str:
        try:
            host = (urlsplit(channel.url).hostname or "").lower()
        except ValueError:
            host = ""
        if host in map(str.lower, self.settings.team_hosts):
            return ""
        return f"{host or 'the address'} is not in notifications.teamHosts of platform.yaml"


def team_channel(team: str, name: str) -> str:
    """Return the id of a team's own channel: no name of the platform's has a dot."""
    return f"{team}.{name}"
