"""
Send notifications: through Apprise, as signed webhooks, or into a Backstage.

`AppriseNotifier` reaches mail, Slack, Teams and Matrix. An address holds secrets; it comes from a
file and is in no message. The text is declared to be plain. Needs the extra ``notifications``.

`WebhookNotifier` sends CloudEvents in structured JSON over HTTP. Redirects are failures. An address
is looked up once per request, every result of it is judged, and the connection goes to one that was
judged: a name that resolves to this machine, the cluster or a metadata service reaches nothing.

`BackstageNotifier` sends ``POST /api/notifications/notifications`` as a service. Only service
principals may call it: a static token of ``backend.auth.externalAccess``.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from ground.errors import InvalidInputError, NotFoundError, RefusedError, shorten
from ground.secrets import redact, register
from orderkit.adapters.backstage.backstage_client import send
from orderkit.adapters.http import Address, check_url, connected, look_up
from orderkit.core.notify.event_texts import Message, for_chat, to_cloud_event, to_text
from orderkit.core.platform.webhook_key import STAMPED_HEADER, TIME_HEADER, stamped_signature
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
        # Apprise reaches far more, files and programs of this machine among it
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
            # without markup: Apprise's Slack plug-in restores mentions that it had escaped
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


MEDIA = "application/cloudevents+json; charset=utf-8"
_CONNECT_S = 5.0
_SHOWN_BYTES = 500
_RETRY_MAX_S = 86_400.0
_OK = range(200, 300)
_GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")
"""The only unicast addresses that IANA has given to the internet (RFC 4291, 2.4)."""
# `is_global` of Python 3.11 is not asked: it takes 192.0.0.192, fec0::/10 and 3fff::/20 for public.
_SPECIAL = [
    ipaddress.ip_network(network)
    for network in (
        # IANA's registries of special-purpose addresses (RFC 6890), and multicast
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
        *("172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3"),
        *("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
        "168.63.129.16/32",  # Azure's platform service: in nobody's private range, but not public
    )
]


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """Where a webhook goes, and how it is signed."""

    url: str
    key: str = field(repr=False)
    source: str
    """The service's address, which the events name."""
    allowed_networks: tuple[str, ...] = ()
    """Networks that are reached although they are not public."""
    answer_s: float = 10.0
    """How long the whole exchange may take."""


class WebhookNotifier:
    """One receiver of webhooks."""

    def __init__(self, target: WebhookTarget) -> None:
        self._target = target

    def send(self, message: Message) -> None:
        """
        Post the message once.

        Raises:
            RefusedError: Its host is not public. NotDeliveredError: anything but a 2xx in time.
        """
        target = self._target
        data = json.dumps(to_cloud_event(message, source=target.source)).encode()
        stamp = str(int(time.time()))
        headers = {
            "Content-Type": MEDIA,
            "User-Agent": "orderkit",
            TIME_HEADER: stamp,
            # with its time, so that a receiver can refuse a recorded request
            STAMPED_HEADER: stamped_signature(target.key, stamp, data),
        }
        host = urlsplit(target.url).hostname or ""
        try:
            status, retry_after, text = _post(target, data, headers)
        except TimeoutError as error:
            raise NotDeliveredError(f"{host} did not answer in time") from error
        except ssl.SSLError as error:
            raise NotDeliveredError(f"no trusted TLS connection to {host}") from error
        except (OSError, UnicodeError, http.client.HTTPException) as error:
            raise NotDeliveredError(f"{host} cannot be reached: {type(error).__name__}") from error
        if status not in _OK:
            reason = shorten(redact(text), limit=200)
            raise NotDeliveredError(
                f"{host} answered {status}: {reason}", retry_after_s=retry_seconds(retry_after)
            )


def retry_seconds(header: str) -> float | None:
    """Return what a Retry-After header asks for, at most a day; None if it asks for nothing."""
    if header.isascii() and header.isdigit() and len(header) < len("1000000000"):
        return min(float(header), _RETRY_MAX_S)
    try:
        moment = parsedate_to_datetime(header).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(moment - time.time(), 0.0), _RETRY_MAX_S)


def judged_addresses(host: str, port: int, allowed: Sequence[str]) -> list[str]:
    """
    Return the addresses of a host.

    Raises:
        RefusedError: One of them is not public and in no allowed network.
        OSError: The name is not known.
    """
    networks = [ipaddress.ip_network(network) for network in allowed]
    addresses = look_up(host, port)
    for address in addresses.values():
        if _is_public(address) or any(address in network for network in networks):
            continue
        raise RefusedError(
            f"{host} is {address}, which is not a public address",
            hint="if it is meant: allow its network in notifications.allowedNetworks",
        )
    # these are connected: a second look-up could lead elsewhere
    return list(addresses)


def _is_public(address: Address) -> bool:
    is_unicast = isinstance(address, ipaddress.IPv4Address) or address in _GLOBAL_IPV6
    return is_unicast and not any(address in network for network in _SPECIAL)


def _post(target: WebhookTarget, data: bytes, headers: dict[str, str]) -> tuple[int, str, str]:
    """Return status, Retry-After and the begin of the body."""
    parts = urlsplit(target.url)
    host, is_tls = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if is_tls else 80)
    sock = connected(judged_addresses(host, port, target.allowed_networks), port, _CONNECT_S)
    sock.settimeout(target.answer_s)
    # A receiver that sends a byte now and then would never time out.
    is_late = threading.Event()
    cut = threading.Timer(target.answer_s, _cut, (sock, is_late))
    connection = http.client.HTTPConnection(host, port)
    try:
        cut.start()
        if is_tls:
            sock = ssl.create_default_context().wrap_socket(sock, server_hostname=host)
        connection.sock = sock
        connection.request("POST", parts.path or "/", data, headers)
        with connection.getresponse() as answer:
            body = answer.read(_SHOWN_BYTES)
            retry_after = answer.headers.get("Retry-After", "")
        if is_late.is_set():
            raise TimeoutError
        return answer.status, retry_after, body.decode(errors="replace")
    finally:
        cut.cancel()
        connection.close()
        sock.close()


def _cut(sock: socket.socket, is_late: threading.Event) -> None:
    is_late.set()
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


_ANSWER_S = 10.0


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
