"""``orderkit notify``: try a channel, and see what goes where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orderkit.cli.options import json_option, platform_option

if TYPE_CHECKING:
    from orderkit.core.notify.order_event import Channel
    from orderkit.core.platform.settings import PlatformSettings
    from orderkit.flows.platform import Platform


@click.group("notify")
def notify_command() -> None:
    """See what people and programs are notified of, and try channels."""


@notify_command.command("show")
@platform_option
@json_option
def notify_show(platform_file: str | None, as_json: bool) -> None:
    """
    Show the events that are so now, where they go, and which are due. Nothing is sent.

    'orderkit serve' and 'orderkit up' send what is due.

    Example: orderkit notify show
    """
    from orderkit.cli.connecting import connect, load_settings
    from orderkit.cli.output import emit_json, emit_table, say
    from orderkit.flows.live.order_model import OrderModel
    from orderkit.flows.notify.due_events import notifications_view

    settings = load_settings(platform_file)
    platform = connect(settings)
    model = OrderModel(platform)
    model.start()
    try:
        model.wait_complete(60)
        view = notifications_view(
            platform, model, settings.notifications, address=settings.service_address
        )
    finally:
        model.close()
    if as_json:
        events = [
            {
                "order": entry.event.order,
                "team": entry.event.team,
                "event": entry.event.kind,
                "channel": entry.channel,
                "due": entry.is_due,
                "title": entry.message.title,
                "sentence": entry.message.sentence,
            }
            for entry in view.events
        ]
        content = {"channels": view.channels, "events": events, "problems": view.problems}
        emit_json("orderkit.notifications/v1", content)
        return
    if not view.channels:
        say("no channels: platform.yaml has no notifications (docs/notifications.md)")
        return
    emit_table(
        ("ORDER", "EVENT", "CHANNEL", "DUE"),
        [
            (entry.event.order, entry.event.kind, entry.channel, "yes" if entry.is_due else "told")
            for entry in view.events
        ],
    )
    for problem in view.problems:
        say(f"left out: {problem}", err=True)


@notify_command.command("test")
@click.argument("channel")
@platform_option
@json_option
def notify_test(channel: str, platform_file: str | None, as_json: bool) -> None:
    """
    Send one message to a channel of platform.yaml, or of a team: TEAM.NAME.

    Example: orderkit notify test portal
    """
    from orderkit.cli.connecting import notifier
    from orderkit.cli.output import emit_json, say
    from orderkit.core.notify.event_texts import trial_message

    settings, platform, declared = _channel(channel, platform_file)
    message = trial_message(channel, settings.name, address=settings.service_address)
    notifier(settings, platform, declared).send(message)
    if as_json:
        emit_json(
            "orderkit.notify/v1", {"channel": channel, "type": declared.settings.type, "sent": True}
        )
        return
    outcome = "can be used" if declared.settings.type == "pullRequest" else "took the message"
    say(f"{channel} ({declared.settings.type}) {outcome}")


@notify_command.command("key")
@click.argument("channel")
@platform_option
@json_option
def notify_key(channel: str, platform_file: str | None, as_json: bool) -> None:
    """
    Print the key that signs a channel's webhooks, for the receiver. It is a secret.

    Example: orderkit notify key audit
    """
    from ground.errors import InvalidInputError
    from orderkit.cli.connecting import webhook_key
    from orderkit.cli.output import emit_json, say

    settings, _, declared = _channel(channel, platform_file)
    if declared.settings.type != "webhook":
        raise InvalidInputError(
            "CHANNEL",
            channel,
            f"is of type {declared.settings.type}",
            hint="only webhooks are signed",
        )
    key = webhook_key(settings, declared)
    if as_json:
        emit_json("orderkit.notify-key/v1", {"channel": channel, "key": key})
        return
    say(key)


def _channel(name: str, platform_file: str | None) -> tuple[PlatformSettings, Platform, Channel]:
    """Return a channel. Raises NotFoundError if there is none."""
    from ground.errors import NotFoundError
    from orderkit.cli.connecting import connect, load_settings
    from orderkit.core.notify.order_event import Routing, platform_channels
    from orderkit.flows.notify.due_events import LedgerReader

    settings = load_settings(platform_file)
    platform = connect(settings)
    channels = platform_channels(settings.notifications)
    if name not in channels:
        notes = LedgerReader(platform).read()
        channels = Routing(settings.notifications, notes.teams).channels()
    if name not in channels:
        raise NotFoundError(
            f"no channel '{name}'",
            hint=f"there are: {', '.join(sorted(channels)) or 'none (docs/notifications.md)'}",
        )
    return settings, platform, channels[name]
