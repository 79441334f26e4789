"""Rows of orders: values in words, the part to blame, since when, and what is said instead."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.unit.order.test_order_summary import kit, part, row, xr

from orderkit.core.order.order_state import OrderState, Phase
from orderkit.core.order.order_summary import (
    VALUE_MAX,
    failing_parts,
    filled,
    is_web_address,
    plain,
    with_parts,
)
from orderkit.core.order.order_view import PartState
from orderkit.core.order.part_failures import UNSYNCED
from orderkit.core.secret_values import SecretTexts

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
LONG = "2026-11-02T10:00:00Z"


def shown(value: Any, **fact: Any) -> str | None:
    """Return a fact's value as a row shows it."""
    declared = kit(facts=[{"name": "x", "path": "bytes", **fact}], attention=[])
    (found,) = row(xr(bytes=value), kit=declared).facts
    return found.value


@pytest.mark.parametrize(
    ("value", "fact", "text"),
    [
        (None, {}, None),
        ("", {}, None),
        (True, {}, "yes"),
        (False, {}, "no"),
        ("text", {}, "text"),
        (3.0, {}, "3"),
        (3.25, {}, "3.25"),
        (7, {}, "7"),
        ([1, "é"], {}, '[1, "é"]'),
        (7, {"unit": "GB"}, "7 GB"),
        (True, {"format": "bytes"}, "yes"),
        (0, {"format": "bytes"}, "0 B"),
        (1023, {"format": "bytes"}, "1023 B"),
        (1024, {"format": "bytes"}, "1 KiB"),
        (-2048, {"format": "bytes"}, "-2 KiB"),
        (1536 * 1024, {"format": "bytes"}, "1.5 MiB"),
        (0.1234, {"format": "percent"}, "12.34%"),
        (1.239, {"format": "number", "unit": "USD"}, "1.24 USD"),
        (10**400, {"format": "bytes"}, str(10**400)),
    ],
)
def test_a_value_is_written_as_people_write_it(
    value: Any, fact: dict[str, Any], text: str | None
) -> None:
    assert shown(value, **fact) == text


@pytest.mark.parametrize("fact", [{}, {"format": "number"}])
def test_a_number_with_too_many_digits_is_told_to_be_one(fact: dict[str, Any]) -> None:
    assert shown(10**5000, **fact) == "a number with too many digits"


def test_a_size_beyond_all_units_stays_in_the_largest() -> None:
    assert shown(1024**5, format="bytes") == "1 PiB"
    assert shown(1024**6, format="bytes") == "1024 PiB"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a\nb", "a b"),
        ("x" * VALUE_MAX, "x" * VALUE_MAX),
        ("x" * (VALUE_MAX + 1), "x" * VALUE_MAX + "…"),
        ("a\u202eb", "a\\u202eb"),
    ],
)
def test_a_text_is_one_line_and_bounded(text: str, told: str) -> None:
    assert plain(text) == told


@pytest.mark.parametrize(
    ("address", "is_link"),
    [
        ("https://a.example/x?y=1", True),
        ("http://a.example:80", True),
        ("https://a.example/" + "x" * (VALUE_MAX - 18), True),
        ("https://a.example/" + "x" * (VALUE_MAX - 17), False),
        ("https://u@a.example", False),
        ("https://", False),
        ("https://a b", False),
        ("https://[a", False),
        ("ftp://a.example", False),
    ],
)
def test_an_address_is_a_link_if_its_host_is_plain(address: str, *, is_link: bool) -> None:
    assert is_web_address(address) is is_link


def test_a_place_without_a_value_is_unknown_in_a_sentence() -> None:
    assert filled("{spec.budget} of {status.none} for {metadata.name}", xr()) == (
        "5 of unknown for agent-bot"
    )


UNREADY = part("a", ready="False", reason="it starts")
FAILS = replace(part("b", ready="False", reason="boom"), fails_from=LONG)
OUT_OF_SYNC = replace(part("c", synced="False", reason=f"{UNSYNCED}x"), fails_from=LONG)


@pytest.mark.parametrize(
    ("parts", "ready", "blamed"),
    [
        ((part("a"), part("b", ready="-", synced="True")), 2, None),
        ((part("a"), UNREADY), 1, "a"),
        ((part("a"), part("b", ready="False")), 1, None),
        ((part("a", synced="False", reason="x"),), 0, "a"),
        ((UNREADY, FAILS), 0, "b"),
        ((OUT_OF_SYNC, FAILS, UNREADY), 0, "b"),
        ((UNREADY, OUT_OF_SYNC), 0, "c"),
    ],
)
def test_the_part_that_fails_is_blamed_before_those_that_wait(
    parts: tuple[PartState, ...], ready: int, blamed: str | None
) -> None:
    found = row(parts=parts).parts

    assert (found.ready, found.total) == (ready, len(parts))
    assert (found.failing.name if found.failing else None) == blamed


@pytest.mark.parametrize(
    ("phase", "parts", "expected"),
    [
        ("Assembling", (FAILS,), ("Failing", f"{FAILS.key}: boom")),
        ("Ready", (FAILS,), ("Failing", f"{FAILS.key}: boom")),
        ("Ready", (replace(FAILS, reason=""),), ("Failing", f"{FAILS.key} fails")),
        ("Ready", (OUT_OF_SYNC, FAILS), ("Failing", f"{FAILS.key}: boom")),
        ("Ready", (OUT_OF_SYNC,), ("Failing", f"{OUT_OF_SYNC.key}: {UNSYNCED}x")),
        ("Ready", (UNREADY,), ("Ready", "own")),
        ("Ready", (replace(FAILS, fails_from="2026-11-02T12:00:01Z"),), ("Ready", "own")),
        ("Ready", (), ("Ready", "own")),
        ("Delivering", (FAILS,), ("Delivering", "own")),
        ("Failing", (FAILS,), ("Failing", "own")),
        ("Ending", (FAILS,), ("Ending", "own")),
    ],
)
def test_an_order_fails_with_the_words_of_its_part(
    phase: Phase, parts: tuple[PartState, ...], expected: tuple[str, str]
) -> None:
    found = with_parts(OrderState(phase, "own"), parts, NOW)

    assert (found.phase, found.reason) == expected


def test_an_order_that_is_not_in_sync_because_of_a_part_has_the_parts_words() -> None:
    state = OrderState("Failing", f"{UNSYNCED}: its parts")

    assert with_parts(state, (FAILS,), NOW).reason == f"{FAILS.key}: boom"


def test_an_order_that_is_held_back_is_not_judged_by_its_parts() -> None:
    held = OrderState("Attention", "own", is_held=True)

    assert with_parts(held, (FAILS,), NOW) is held
    assert with_parts(replace(held, is_held=False), (FAILS,), NOW).phase == "Failing"


def test_parts_fail_in_the_order_of_blame() -> None:
    found = list(failing_parts((OUT_OF_SYNC, UNREADY, FAILS), NOW))

    assert [failing.key.name for failing in found] == ["b", "c"]


@pytest.mark.parametrize(
    ("more", "since"),
    [
        ({"live": xr()}, "2026-11-02T10:05:00Z"),
        ({"live": xr("False")}, "2026-11-02T10:05:00Z"),
        ({"live": xr("False"), "parts": (FAILS,)}, "2026-11-02T10:05:00Z"),
    ],
)
def test_a_phase_has_the_time_of_the_condition_that_makes_it(
    more: dict[str, Any], since: str
) -> None:
    assert row(more.pop("live"), **more).since == since


def test_a_row_says_where_the_repository_is() -> None:
    assert row().repository == "https://forge.example/ae86/agent-bot"
    assert row(forge_url="https://public.example").repository == (
        "https://public.example/ae86/agent-bot"
    )


def test_an_order_was_created_with_the_first_of_its_objects() -> None:
    assert row().created == "2026-11-02T09:59:00Z"


def test_secrets_are_masked_in_each_text_of_a_row() -> None:
    secret = "x7Kq2Lm9Zt-hunter"
    live = xr(url=f"https://{secret}.example", spent=secret)
    parts = (part("a", ready="False", reason=f"bad {secret}"),)

    found = row(live, parts=parts, secrets=SecretTexts([secret]))

    assert secret not in str(found.to_json())
    chat = found.outputs[0]
    assert chat.value is not None
    assert "***" in chat.value
    assert not chat.is_link
