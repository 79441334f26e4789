"""
Send notifications to mail, Slack, Teams and Matrix through Apprise.

Apprise reaches far more, files and programs of this machine among it: only the schemes of `SCHEMES`
are taken. An address holds secrets; it comes from a file and is in no message. The text is declared
to be plain, and what chats read as markup is taken away before, because Apprise's Slack plug-in
restores mentions that it had escaped.

Needs the extra ``notifications``.
"""

from __future__ import annotations

import logging
from typing import Any

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.secrets import register
from orderkit.core.notify.event_texts import Message, for_chat, to_text
from orderkit.ports.notifier import NotDeliveredError

SCHEMES = frozenset(
    {"mailto", "mailtos", "slack", "msteams", "workflow", "workflows", "matrix", "matrixs"}
)
_ADDRESS_MAX = 4_000


class AppriseNotifier:
    """One receiver that Apprise reaches."""

    def __init__(self, channel: str, address: str) -> None:
        """
        Read the address; contact nobody.

        Raises:
            NotFoundError: Apprise is not installed.
            RefusedError: Its scheme is not allowed. InvalidInputError: Apprise cannot use it.
        """
        field = f"notifications.channels.{channel}.urlFile"
        scheme = address.partition("://")[0].lower()
        register(address)
        if scheme not in SCHEMES:
            raise RefusedError(
                f"{field}: the scheme of the address is not allowed",
                hint=f"one of {', '.join(sorted(SCHEMES))}",
            )
        try:
            import apprise
        except ImportError as error:
            raise NotFoundError(
                "Apprise is not installed", hint="pip install 'orderkit[notifications]'"
            ) from error
        logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)  # its lines show addresses
        asset = apprise.AppriseAsset(secure_logging=True, app_id="Orderkit", app_desc="Orderkit")
        target: Any = apprise.Apprise.instantiate(address, asset=asset)
        if len(address) > _ADDRESS_MAX or not target:
            raise InvalidInputError(
                field,
                "***",
                "holds an address that Apprise cannot use",
                hint="see docs/notifications.md",
            )
        register(target.password or "")
        self._channel, self._target = channel, apprise.Apprise(asset=asset)
        self._target.add(target)
        self._text = apprise.NotifyFormat.TEXT

    def send(self, message: Message) -> None:
        """
        Send the message once.

        Raises:
            NotDeliveredError: Apprise reports no success; it says no more.
        """
        is_sent = self._target.notify(
            title=for_chat(message.title),
            body=for_chat(to_text(message)),
            body_format=self._text,
            interpret_escapes=False,
        )
        if not is_sent:
            raise NotDeliveredError(
                f"{self._channel}: the receiver refused the message or cannot be reached",
                hint=f"try it: orderkit notify test {self._channel}",
            )
