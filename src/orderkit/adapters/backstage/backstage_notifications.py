"""
Backstage notifications: ``POST /api/notifications/notifications`` as a service.

Only service principals may call it: a static token of ``backend.auth.externalAccess``.
"""

from __future__ import annotations

import json
from typing import Any

from ground.errors import InvalidInputError
from ground.secrets import register
from orderkit.adapters.backstage.backstage_client import send
from orderkit.adapters.http import check_url
from orderkit.core.notify.event_texts import Message
from orderkit.ports.notifier import NotDeliveredError

_ANSWER_S = 10.0
_OK = range(200, 300)


class BackstageNotifier:
    """The notifications of one Backstage backend."""

    def __init__(self, base_url: str, *, token: str) -> None:
        """
        Prepare; nothing is sent.

        Args:
            base_url: The backend, without ``/api``.
            token: A static token of the backend.

        Raises:
            InvalidInputError: `base_url` is not an address.
            RefusedError: Plain HTTP to another machine.
        """
        base = check_url("portal", base_url)
        self._url = f"{base}/api/notifications/notifications"
        register(token)
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json",
        }

    def send(self, message: Message) -> None:
        """
        Notify the owners of the orders.

        Raises:
            InvalidInputError: Nobody owns the order, as far as the catalog could know.
            UnreachableError, NotDeliveredError: It is not known to be stored.
        """
        recipients: dict[str, Any] = {"type": "entity", "entityRef": list(message.recipients)}
        if not message.events:
            recipients = {"type": "broadcast"}
        elif not message.recipients:
            raise InvalidInputError("recipients", message.title, "have no owner in the catalog")
        body = {
            "recipients": recipients,
            "payload": {
                "title": message.title,
                "description": message.sentence,
                "link": message.link,
                "severity": message.severity,
                "topic": message.events[0].kind if message.events else "test",
                # a message with the scope of an earlier one replaces that, and is unread again, so
                # people see the newest state of the order (plugin-notifications-backend 0.6.9)
                "scope": self._scope(message),
            },
        }
        answer = send(
            "POST",
            self._url,
            headers=self._headers,
            body=json.dumps(body).encode(),
            timeout_s=_ANSWER_S,
        )
        if answer.status in _OK:
            return
        hint = {
            401: "portal.tokenFile must hold a token of backend.auth.externalAccess",
            403: "the token is not a service's: see backend.auth.externalAccess",
            404: "install @backstage/plugin-notifications-backend in the portal",
        }.get(answer.status, "")
        raise NotDeliveredError(f"Backstage answered {answer.status}: {answer.text}", hint=hint)

    @staticmethod
    def _scope(message: Message) -> str:
        match message.events:
            case ():
                return "orderkit/test"
            case (event,):
                return f"order/{event.order}"
        return f"orders/{message.events[0].kind}/{message.team}"
