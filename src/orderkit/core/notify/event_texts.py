"""
Each event in words: a title, a sentence, a link. And messages in the markup of each channel.

Reasons, sentences of kits and names may come from strangers. A title is one line without characters
that nobody sees; `to_markdown` writes what strangers wrote as code; `for_chat` takes away what
chats read as links, mentions and markup. Rows have masked the values of Secrets before.

Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

from ground.errors import shorten
from ground.visible_text import visible
from orderkit.core.notify.order_event import OrderEvent
from orderkit.core.order.order_state import short
from orderkit.core.plan.plan_markdown import in_html
from orderkit.core.platform.notification_settings import EventKind

Severity = Literal["low", "normal", "high", "critical"]
"""As Backstage names them."""
TITLE_MAX, DETAIL_MAX = 150, 500
_LISTED = 20
"""Orders that a digest names."""
_ENTITY = re.compile(r"(?:user|group):[a-z0-9-]{1,63}/[A-Za-z0-9._-]{1,63}\Z")
_CHAT = str.maketrans({"<": "\u2039", ">": "\u203a", "`": "'", "|": "\u00a6", "@": "@\u2060"})


@dataclass(frozen=True, slots=True)
class Message:
    """What a channel is given to deliver: one event, or a digest of several."""

    id: str
    title: str
    sentence: str
    link: str
    severity: Severity
    events: tuple[OrderEvent, ...]

    @property
    def team(self) -> str:
        """The team whose events these are; empty: of several teams."""
        teams = {event.team for event in self.events}
        return teams.pop() if len(teams) == 1 else ""

    @property
    def recipients(self) -> tuple[str, ...]:
        """The owning group, and of a single event the person who ordered, as catalog references."""
        owners = {event.owner for event in self.events} if len(self.events) == 1 else set()
        groups = {f"group:default/{event.team}" for event in self.events if event.team}
        return tuple(sorted(ref for ref in owners | groups if _ENTITY.match(ref)))


@dataclass(frozen=True, slots=True)
class _Words:
    """How an event is told; `plural` heads a digest."""

    severity: Severity
    title: str
    plural: str
    sentence: Callable[[OrderEvent], str]


def _ready(event: OrderEvent) -> str:
    commit = f" at commit {short(event.commit)}" if event.commit else ""
    return f"Everything it consists of is ready{commit}."


def _failing(event: OrderEvent) -> str:
    since = f"since {event.when}" if event.when else "for a while"
    return f"It has been failing {since}: {_stop(event.detail or 'the reason is not known')}"


def _decided(event: OrderEvent) -> str:
    return event.detail or f"It has been decided; the order is now: {event.phase or 'gone'}."


def _expiring(event: OrderEvent) -> str:
    return f"Its lease ends at {event.expires}. Extend it if it is still needed."


def _ended(event: OrderEvent) -> str:
    by = f" {event.detail} asked for it." if event.detail else ""
    return f"Nothing of it is left; the ledger keeps the proof.{by}"


_WORDS: Mapping[EventKind, _Words] = {
    "ready": _Words("low", "{order} is Ready", "{count} orders are Ready", _ready),
    "failing": _Words("high", "{order} is failing", "{count} orders are failing", _failing),
    "attention": _Words(
        "high",
        "{order} needs attention",
        "{count} orders need attention",
        lambda event: _stop(event.detail),
    ),
    "approval-wanted": _Words(
        "normal",
        "{order} waits for approval",
        "{count} orders wait for approval",
        lambda event: _stop(event.detail),
    ),
    "approval-decided": _Words(
        "normal",
        "The approval of {order} is decided",
        "The approvals of {count} orders are decided",
        _decided,
    ),
    "expiring": _Words("high", "{order} expires soon", "{count} orders expire soon", _expiring),
    "ended": _Words("normal", "{order} has ended", "{count} orders have ended", _ended),
}


def message_of(event: OrderEvent, *, address: str) -> Message:
    """
    Return the message of one event.

    Args:
        address: The service as a browser reaches it, which has a page for each order.
    """
    words = _WORDS[event.kind]
    title = words.title.format(order=event.order)
    if event.kind == "expiring" and event.stage:
        title = f"{event.order} expires in less than {event.stage}"
    if event.kind == "approval-wanted" and event.phase != "Waiting":
        title = f"A change of {event.order} waits for approval"
    sentence = " ".join(filter(None, (words.sentence(event), _way_out(event))))
    link = address if event.kind == "ended" else f"{address}/orders/{quote(event.order, safe='')}"
    return Message(
        event.id,
        _line(title, TITLE_MAX),
        _line(sentence, DETAIL_MAX),
        link,
        words.severity,
        (event,),
    )


def digest_of(events: Sequence[OrderEvent], *, address: str) -> Message:
    """Return one message for several events of one kind."""
    words = _WORDS[events[0].kind]
    orders = sorted(event.order for event in events)
    more = len(orders) - _LISTED
    listed = ", ".join(orders[:_LISTED]) + (f", and {more} more" if more > 0 else "")
    teams = Counter(event.team for event in events)
    of_teams = ", ".join(f"{team}: {count}" for team, count in sorted(teams.items())[:_LISTED])
    joined = "\0".join(sorted(event.id for event in events)).encode()
    return Message(
        hashlib.sha256(joined).hexdigest()[:32],
        words.plural.format(count=len(events)),
        _line(f"{listed}. By team: {of_teams}.", 2 * DETAIL_MAX),
        address,
        words.severity,
        tuple(events),
    )


def trial_message(channel: str, platform: str, *, address: str) -> Message:
    """Return the message of ``orderkit notify test``."""
    return Message(
        hashlib.sha256(f"test {channel} {platform}".encode()).hexdigest()[:32],
        _line(f"Test of the channel {channel}", TITLE_MAX),
        _line(f"Orderkit's platform {platform} can send messages here.", DETAIL_MAX),
        address,
        "low",
        (),
    )


def to_text(message: Message) -> str:
    """Return what follows the title, as plain text."""
    return f"{message.sentence}\n{message.link}"


def to_markdown(message: Message) -> str:
    """Return a message as the Markdown of a comment: strangers' words cannot link or mention."""
    return f"**{in_html(message.title)}**\n\n{_code(message.sentence)}\n\n{message.link}"


def for_chat(text: str) -> str:
    """Return a text in which Slack, Teams and Matrix read no link, mention or markup."""
    return text.translate(_CHAT).replace("](", "] (")


def to_cloud_event(message: Message, *, source: str) -> dict[str, Any]:
    """
    Return a message as a CloudEvent in structured JSON (CloudEvents 1.0.2).

    Args:
        source: What `id` is unique within: the address of the service.
    """
    content: dict[str, Any] = {
        "specversion": "1.0",
        "id": message.id,
        "source": source,
        "type": "dev.orderkit.notification.test",
        "datacontenttype": "application/json",
        "data": {"title": message.title, "sentence": message.sentence, "link": message.link},
    }
    if not message.events:
        return content
    event = message.events[0]
    content["type"] = f"dev.orderkit.order.{event.kind}"
    content["subject"] = event.order
    if event.when:
        content["time"] = event.when
    content["data"] |= {
        "order": event.order,
        "team": event.team,
        "kit": event.kit,
        "severity": message.severity,
        "phase": event.phase or None,
        "reason": _line(event.detail, DETAIL_MAX) or None,
        "commit": event.commit or None,
        "expires": event.expires or None,
        "repository": event.repository or None,
    }
    return content


def _way_out(event: OrderEvent) -> str:
    return f"What helps: {_stop(event.remedy)}" if event.remedy else ""


def _stop(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _line(text: str, limit: int) -> str:
    return shorten(visible(text), limit=limit)


def _code(text: str) -> str:
    """Return a text as inline code that nothing in it can end."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}"
