"""
A channel on which people or programs are notified.

Adapters exist for Backstage (``adapters.backstage``), signed webhooks and Apprise
(``adapters.notify``); ``flows.notify.pull_comments`` comments on pull requests through the forge.
"""

from __future__ import annotations

from typing import Protocol

from ground.errors import RemoteError
from orderkit.core.notify.event_texts import Message


class NotDeliveredError(RemoteError):
    """The receiver did not take a message; it may have. Sending it again later can help."""

    retryable = True

    def __init__(self, message: str, *, hint: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s
        """How long the receiver wants nothing; None: it did not say."""


class Notifier(Protocol):
    """One receiver. Each call takes seconds at most."""

    def send(self, message: Message) -> None:
        """
        Deliver a message. A receiver recognises a repetition by the message's id.

        Raises:
            OrderkitError: It is not known to be delivered; `NotDeliveredError` may say when to
                try again.
        """
        ...
