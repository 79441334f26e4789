"""
What was decided about a campaign, as the ledger records it, and what people see of it.

``campaigns/<name>/record.json`` is written when a campaign starts, when a wave is over, and when
somebody pauses, stops, resumes or reverts it. What is done to an order is read from the order's
repository. It is JSON, because with ten thousand orders reading it as YAML takes seconds.

Orders are taken in the order of a hash of campaign and order, so that a share has orders of every
team, and that the same campaign has the same waves wherever they are worked out.

A `CampaignView` is the same on the command line and in the service; `CampaignFigures` are for
monitoring. Pure.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Literal, get_args

import msgspec

from ground.errors import InvalidInputError
from ground.names import BlobSha
from ground.shapes import Answer, Known, Shape, changed, plain, read_shape
from orderkit.core.campaign.deciding import OrderFact, OrderPhase
from orderkit.core.campaign.definition import FOLDER, Campaign, Wave
from orderkit.core.documents import record
from yamlfiles.format_versions import refuse_newer

State = Literal["running", "paused", "stopped", "takingBack", "done", "reverting", "reverted"]
KIND = "CampaignRecord"
WORKING: tuple[State, ...] = ("running", "takingBack", "reverting")
"""States in which whoever runs the campaign has something to do."""


class OrderOutcome(Shape, frozen=True):
    """What became of one order."""

    result: str
    """``ready``, ``skipped``, ``failed``, ``waiting`` (for a merge), ``takenBack``, ``kept``."""
    commit: str = ""
    why: str = ""


class WaveRecord(Shape, frozen=True):
    """One wave: which orders are in it, and what became of them."""

    name: str
    orders: tuple[str, ...]
    closed: str = ""
    """When it was over, RFC 3339; empty: not yet."""
    outcomes: Mapping[str, OrderOutcome] = {}


class CampaignRecord(Shape, frozen=True):
    """A campaign that was started."""

    name: str
    id: str
    """What commits of orders carry; another one if a campaign of the name is started anew."""
    definition: str
    """Blob id of the file that was started. Another file is another campaign."""
    state: State
    started: str
    waves: tuple[WaveRecord, ...]
    why: str = ""
    """Why it is in that state."""
    by: str = ""
    """Who brought it there; a note that gives no rights."""
    attempt: int = 1
    """How often failed orders were tried."""
    revision: str = ""
    """What a campaign of the kind ``revision`` pins orders to, as it was when it started."""
    unready: Mapping[str, str] = {}
    """Orders that were not Ready before it, and why: they are not its failures."""

    @property
    def current(self) -> int | None:
        """The number of the first wave that is not over; None: all are over."""
        return next((n for n, wave in enumerate(self.waves) if not wave.closed), None)

    @property
    def orders(self) -> Iterator[str]:
        """All orders."""
        return (order for wave in self.waves for order in wave.orders)

    def with_wave(self, number: int, wave: WaveRecord) -> CampaignRecord:
        """Return the record with another wave at a number."""
        waves = (*self.waves[:number], wave, *self.waves[number + 1 :])
        return changed(self, waves=waves)

    def to_text(self) -> str:
        """Write the file."""
        spec = plain(self)
        name = spec.pop("name")
        return json.dumps(record(KIND, name, spec), indent=1) + "\n"


def record_path(name: str) -> PurePosixPath:
    """Return the path of a campaign's record in the ledger."""
    return FOLDER / name / "record.json"


def parse_record(data: bytes, *, name: str) -> CampaignRecord:
    """
    Read the file.

    Raises:
        InvalidInputError: It is unreadable or incomplete.
        RefusedError: A newer Orderkit wrote it.
    """
    try:
        document = json.loads(data)
        refuse_newer(document["apiVersion"], str(record_path(name)))
        values = {**document["spec"], "name": document["metadata"]["name"]}
        return read_shape(CampaignRecord, values)
    except (ValueError, KeyError, TypeError, msgspec.ValidationError) as error:
        raise InvalidInputError(
            str(record_path(name)),
            None,
            f"is missing or unreadable: {error}",
            hint="restore it from the ledger's history; orders' commits are not affected",
        ) from error


def new_id(name: str, definition: BlobSha, started: datetime) -> str:
    """Return the id of a campaign that starts now."""
    text = f"{definition} {started.isoformat()}"
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def step_text(wave: int, attempt: int, *, back: bool = False) -> str:
    """Return what the trailer of a commit says: ``1.1``, or ``back-1.1``."""
    return f"{'back-' if back else ''}{wave + 1}.{attempt}"


def is_back(step: str) -> bool:
    """Say whether a commit's trailer is that of taking back."""
    return step.startswith("back-")


def attempt_of(step: str) -> int:
    """Return the attempt that a commit's trailer names; 0 if it names none."""
    number = step.rpartition(".")[2]
    return int(number) if number.isdecimal() else 0


LATE = "late"
"""The wave of orders that were placed, or came to match, while the campaign ran."""
_REST = "rest"


def sampled(campaign: Campaign, orders: Collection[str]) -> list[str]:
    """Return the campaign's share of the orders, in the order in which waves take them."""
    mixed = sorted(orders, key=lambda order: (_hash(campaign.name, order), order))
    share = campaign.which.share
    return mixed if share is None else mixed[: _part(share, len(mixed))]


def assigned(campaign: Campaign, orders: Collection[str]) -> tuple[WaveRecord, ...]:
    """
    Distribute all orders over the waves; each is in exactly one.

    Raises:
        InvalidInputError: A wave names an order that the campaign does not have.
    """
    mixed = sampled(campaign, orders)
    named = {order for wave in campaign.waves for order in wave.orders}
    unknown = sorted(named - set(mixed))
    if unknown:
        raise InvalidInputError(
            "spec.waves", unknown[0], "is named by a wave, and is no order of this campaign",
            hint="compare with spec.which: 'orderkit campaign plan' lists the orders",
        )  # fmt: skip
    left = [order for order in mixed if order not in named]
    waves = []
    for number, wave in enumerate(campaign.waves):
        orders_of, left = _taken(wave, left, len(mixed))
        waves.append(WaveRecord(wave.name or f"wave {number + 1}", orders_of))
    if left:
        waves.append(WaveRecord(_REST if campaign.waves else "all", tuple(left)))
    return tuple(waves)


def _taken(wave: Wave, left: list[str], total: int) -> tuple[tuple[str, ...], list[str]]:
    if wave.orders:
        return wave.orders, left
    count = len(left)
    if wave.count is not None:
        count = wave.count
    elif wave.share is not None:
        count = _part(wave.share, total)
    return tuple(left[:count]), left[count:]


def late(campaign: Campaign, matching: Collection[str], waves: Sequence[WaveRecord]) -> list[str]:
    """Return the orders that match now and are in no wave, if the campaign is open for them."""
    if not campaign.which.is_open:
        return []
    known = set(_all(waves))
    return [order for order in sampled(campaign, matching) if order not in known]


def _all(waves: Sequence[WaveRecord]) -> Iterator[str]:
    return (order for wave in waves for order in wave.orders)


def _part(percent: int, total: int) -> int:
    """Return a share of a number, rounded up: a share of one order is one."""
    return -(-percent * total // 100)


def _hash(campaign: str, order: str) -> bytes:
    return hashlib.sha256(f"{campaign}\0{order}".encode()).digest()


NOT_STARTED = "not started"
_REASONS_MAX = 20


class ReasonView(Answer, frozen=True):
    """Why orders failed, or were left as they are: each reason once."""

    result: str
    why: str
    orders: tuple[str, ...]


class WaveView(Answer, frozen=True):
    """One wave."""

    name: str
    orders: int
    closed: Known
    """When it was over; empty: it is not."""
    counts: Mapping[str, int]
    """How many orders came to what; those that are missing are not begun."""
    reasons: tuple[ReasonView, ...]


class CampaignView(Answer, frozen=True):
    """A campaign, as the ledger's record says."""

    name: str
    reason: str
    kit: str
    kind: str
    """``fields``, ``template``, ``version``, ..."""
    state: str
    why: Known
    by: Known
    """Who brought it into this state."""
    started: Known
    attempt: int
    waves: tuple[WaveView, ...]

    @property
    def orders(self) -> int:
        """How many orders it has."""
        return sum(wave.orders for wave in self.waves)


def view_of(
    campaign: Campaign, record: CampaignRecord | None, facts: Sequence[OrderFact] = ()
) -> CampaignView:
    """
    Return what is seen of a campaign.

    Args:
        facts: What is known of the orders of its present wave, if somebody looked.
    """
    waves = record.waves if record else ()
    current = record.current if record else None
    return CampaignView(
        name=campaign.name,
        reason=campaign.reason,
        kit=campaign.which.kit,
        kind=campaign.what.kind,
        state=record.state if record else NOT_STARTED,
        why=record.why if record else "",
        by=record.by if record else "",
        started=record.started if record else "",
        attempt=record.attempt if record else 1,
        waves=tuple(
            _wave(wave, facts if number == current else ()) for number, wave in enumerate(waves)
        ),
    )


def _wave(wave: WaveRecord, facts: Sequence[OrderFact]) -> WaveView:
    results = {order: (outcome.result, outcome.why) for order, outcome in wave.outcomes.items()}
    results |= {fact.order: (str(fact.phase), fact.why) for fact in facts}
    names = [result for result, _ in results.values()]
    grouped: dict[tuple[str, str], list[str]] = {}
    for order, (result, why) in sorted(results.items()):
        if why:
            grouped.setdefault((result, why.replace(order, "<order>")), []).append(order)
    reasons = sorted(grouped.items(), key=lambda pair: (pair[0][0] != "failed", -len(pair[1])))
    return WaveView(
        wave.name,
        len(wave.orders),
        wave.closed,
        {name: names.count(name) for name in sorted(set(names))},
        tuple(ReasonView(*key, tuple(orders)) for key, orders in reasons[:_REASONS_MAX]),
    )


UNREADABLE = "unreadable"
STATES = (NOT_STARTED, *get_args(State), UNREADABLE)
_OUTCOMES = frozenset(map(str, OrderPhase))


@dataclass(frozen=True, slots=True)
class CampaignFigures:
    """How many of what there are."""

    states: Counter[str] = field(default_factory=Counter)
    """Campaigns by state."""
    waves: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By the campaign's state, and ``over`` or ``open``."""
    orders: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By the campaign's state and the order's outcome; ``open``: none is recorded."""

    @classmethod
    def of(cls, record: CampaignRecord | None) -> CampaignFigures:
        """Return the figures of one campaign; without a record it was not started."""
        if record is None:
            return cls(Counter([NOT_STARTED]))
        state, found = record.state, cls(Counter([record.state]))
        for wave in record.waves:
            found.waves[state, "over" if wave.closed else "open"] += 1
            for order in wave.orders:
                outcome = wave.outcomes.get(order)
                result = "open" if outcome is None else outcome.result
                # a record is a file: another word in it must not become a label
                known = result if result in _OUTCOMES or result == "open" else "other"
                found.orders[state, known] += 1
        return found

    @classmethod
    def unreadable(cls) -> CampaignFigures:
        """Return the figures of a campaign whose record cannot be read."""
        return cls(Counter([UNREADABLE]))

    @classmethod
    def total(cls, each: Iterable[CampaignFigures]) -> CampaignFigures:
        """Return the sums."""
        found = cls()
        for one in each:
            found.states.update(one.states)
            found.waves.update(one.waves)
            found.orders.update(one.orders)
        return found
