"""What a stream of changes sends, when it ends, and how many there may be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from ground.errors import InProgressError
from orderkit.core.order.order_view import OrderRow
from orderkit.flows.live.live_row import ChangeLog, LiveRow
from orderkit.web.event_stream import EventStream, OrderStreams, StreamBounds


def row(number: int) -> LiveRow:
    listed = OrderRow(f"garage-{number}", f"team-{number % 2}", "garage", "Ready")
    return LiveRow.of(listed, None, is_ready=True)


def shown(_row: OrderRow) -> bool:
    return True


def kinds(events: list[bytes]) -> list[str]:
    """Return the names of events; of a sign of life, what it says."""
    lines = [event.decode().splitlines() for event in events]
    return [next((x[7:] for x in each if x.startswith("event: ")), each[0]) for each in lines]


async def take(events: AsyncIterator[bytes], count: int) -> list[bytes]:
    return [await asyncio.wait_for(anext(events), 10) for _ in range(count)]


def test_a_stream_begins_where_its_client_left_off_or_says_to_load_everything() -> None:
    log = ChangeLog()
    log.add((row(number), number == 2) for number in range(3))
    streams = OrderStreams(log, StreamBounds())

    async def followed() -> tuple[list[bytes], list[bytes]]:
        known = await take(streams.events(1, shown, life_s=60), 2)
        return known, await take(streams.events(None, shown, life_s=60), 1)

    known, new = asyncio.run(followed())

    position = log.position(1)
    assert known[0] == f"id: {position}\nevent: ready\ndata: {{}}\n\n".encode()
    assert kinds([*known[:1], *new]) == ["ready", "reload"]
    assert known[1].count(b"\n\n") == 2
    assert b"event: order\ndata: " + row(1).data in known[1]
    gone = b'event: gone\ndata: {"order": "garage-2", "team": "team-0"}'
    assert f"id: {log.position(3)}\n".encode() + gone in known[1]


def test_a_stream_has_rows_that_its_client_may_see_and_names_the_newest_change() -> None:
    log = ChangeLog()
    streams = OrderStreams(log, StreamBounds(heartbeat_s=0.01))

    async def followed() -> list[bytes]:
        events = streams.events(0, lambda one: one.team == "team-1", life_s=60)
        begun = await take(events, 1)
        log.add((row(number), False) for number in range(3))
        return begun + await take(events, 2)

    events = asyncio.run(followed())

    assert kinds(events) == ["ready", "order", ": alive"]
    assert b"garage-1" in events[1]
    assert b"garage-2" not in events[1]
    assert events[2] == f": alive\nid: {log.position(3)}\n\n".encode()


def test_a_change_wakes_a_stream_at_once() -> None:
    log = ChangeLog()
    streams = OrderStreams(log, StreamBounds(heartbeat_s=60))

    async def followed() -> list[bytes]:
        events = streams.events(0, shown, life_s=60)
        begun = await take(events, 1)
        waiting = asyncio.ensure_future(take(events, 1))
        await asyncio.sleep(0.01)
        log.add([(row(1), False)])
        return begun + await waiting

    assert kinds(asyncio.run(followed())) == ["ready", "order"]


def test_a_stream_that_lags_too_far_is_told_to_load_everything_and_goes_on() -> None:
    log = ChangeLog(size=2)
    streams = OrderStreams(log, StreamBounds(heartbeat_s=0.01))

    async def followed() -> list[bytes]:
        events = streams.events(0, shown, life_s=60)
        begun = await take(events, 1)
        log.add((row(number), False) for number in range(5))
        return begun + await take(events, 2)

    events = asyncio.run(followed())

    assert kinds(events) == ["ready", "reload", ": alive"]
    assert f"id: {log.position(5)}\n".encode() in events[1]


@pytest.mark.parametrize(
    ("bounds", "life_s"),
    [(StreamBounds(life_s=0.02), 60.0), (StreamBounds(), 0.02), (StreamBounds(), 0.0)],
)
def test_a_stream_ends_with_its_own_time_or_that_of_its_proof(
    bounds: StreamBounds, life_s: float
) -> None:
    streams = OrderStreams(ChangeLog(), bounds)

    async def followed() -> list[bytes]:
        return [event async for event in streams.events(0, shown, life_s=life_s)]

    first, *others = kinds(asyncio.run(asyncio.wait_for(followed(), 10)))

    assert not streams._waiting  # noqa: SLF001 - else every stream that ended takes memory
    assert first == "ready"
    assert set(others) <= {": alive"}


def test_streams_end_when_the_service_stops() -> None:
    log = ChangeLog()
    streams = OrderStreams(log, StreamBounds())

    async def followed() -> list[bytes]:
        events = streams.events(0, shown, life_s=60)
        begun = await take(events, 1)
        waiting = asyncio.ensure_future(anext(events, b"over"))
        await asyncio.sleep(0.01)
        streams.close()
        return [*begun, await asyncio.wait_for(waiting, 10)]

    assert asyncio.run(followed())[1] == b"over"
    log.add([(row(1), False)])  # nobody is woken any more: the loop has ended


def test_a_person_has_a_bound_of_their_own_and_a_portal_has_that_of_all() -> None:
    streams = OrderStreams(ChangeLog(), StreamBounds(streams=3, of_caller=1))
    streams.reserve("eve", is_person=True)
    with pytest.raises(InProgressError, match="1 of eve, 1 in all"):
        streams.reserve("eve", is_person=True)
    for _ in range(2):
        streams.reserve("portal", is_person=False)
    with pytest.raises(InProgressError, match="0 of zoe, 3 in all"):
        streams.reserve("zoe", is_person=True)

    streams.release("eve")

    assert streams.open == 2
    streams.reserve("zoe", is_person=True)


@pytest.mark.parametrize(("method", "length"), [("HEAD", 0), ("GET", 1)])
def test_a_stream_gives_its_place_back_however_it_ends(method: str, length: int) -> None:
    places: list[str] = []
    sent: list[bytes] = []

    async def events() -> AsyncIterator[bytes]:
        yield b"x"

    async def ask() -> None:
        async def send(message: object) -> None:
            assert isinstance(message, dict)
            sent.append(message.get("body", b""))

        async def receive() -> dict[str, str]:
            await asyncio.sleep(10)
            return {"type": "http.disconnect"}

        scope = {"type": "http", "method": method, "asgi": {"spec_version": "2.4"}}
        await EventStream(events(), lambda: places.append("back"))(scope, receive, send)

    asyncio.run(ask())

    assert len(b"".join(sent)) == length
    assert places == ["back"]
