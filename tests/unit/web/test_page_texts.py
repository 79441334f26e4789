"""What a page makes of times, people, addresses and foreign texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from orderkit.web.console.rendering import (
    age,
    ago,
    asset,
    cut,
    html,
    moment,
    person,
    value_text,
    web_address,
    wrong_fields,
)
from orderkit.web.exchange import Refusal

NOW = datetime(2026, 11, 24, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2026-11-24T07:55:00Z", "5 min ago"),
        ("2026-11-24T08:55:00+01:00", "5 min ago"),
        ("2026-11-24T07:55:00", "5 min ago"),
        ("2026-11-24T08:05:00Z", "in 5 min"),
        ("2026-11-24T08:00:00Z", "moments ago"),
        ("yesterday", "yesterday"),
        ("", ""),
        (None, ""),
    ],
)
def test_a_moment_is_told_by_its_distance(text: str | None, told: str) -> None:
    assert ago(text, now=lambda: NOW) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2026-11-24T08:55:00+01:00", "2026-11-24 07:55 UTC"),
        ("2026-11-24T07:55:00", "2026-11-24 07:55 UTC"),
        ("0001-01-01T00:00:00+09:00", "0001-01-01T00:00:00+09:00"),
        ("yesterday", "yesterday"),
        (None, ""),
    ],
)
def test_a_moment_is_told_in_utc(text: str | None, told: str) -> None:
    assert moment(text) == told


def test_how_long_something_lasts_has_no_ago() -> None:
    assert age((datetime.now(UTC) - timedelta(minutes=5, seconds=5)).isoformat()) == "5 min"


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("user:default/eve", "eve"),
        ("group:default/ae86", "ae86"),
        ("user:other/eve", "user:other/eve"),
        (None, ""),
    ],
)
def test_a_person_is_told_by_name(reference: str | None, name: str) -> None:
    assert person(reference) == name


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        ("https://example.com/a", True),
        ("http://example.com", True),
        ("javascript:alert(1)", False),
        ("ftp://example.com", False),
        ("https:///a", False),
        ("https://[::1", False),
        (7, False),
    ],
)
def test_a_page_links_to_addresses_of_the_web_only(text: object, linked: object) -> None:
    assert web_address(text) == (text if linked else "")


def test_a_value_is_told_as_text() -> None:
    values = [value_text(value) for value in (None, "a", "", ["ä"], False)]

    assert values == ["not set", "a", "", '["ä"]', "false"]


def test_a_foreign_text_is_cut_after_its_limit() -> None:
    assert [cut(text, 3) for text in ("abc", "abcd", 1234)] == ["abc", "abc…", "123…"]
    assert len(value_text("x" * 5000)) == 4001


def test_fields_that_are_wrong_are_found_in_groups_too() -> None:
    wrong, right = {"path": "a", "wrong": "no"}, {"path": "b", "wrong": ""}
    group = {"wrong": "", "fields": [right, {"wrong": "", "fields": [wrong]}]}

    assert wrong_fields([right, group, wrong, {**right, "fields": []}]) == [wrong, wrong]


def test_a_file_of_the_console_is_kept_and_others_are_not_there() -> None:
    found, missing = asset("console.css"), asset("../console.py")

    assert (found.status_code, found.media_type) == (200, "text/css;charset=utf-8")
    assert "immutable" in found.headers["cache-control"]
    assert (missing.status_code, missing.headers["cache-control"]) == (404, "no-store")


def test_a_page_shows_characters_that_hide_and_escapes_the_others() -> None:
    page = html(
        "refusal.html",
        title="<b>\u202e",
        session=None,
        is_platform=False,
        done="",
        key="",
        here="",
        docs="",
        refusal=Refusal.saying(403, "<b>", ""),
        request_id="r1",
        back="/",
    )

    assert "<b>" not in page
    assert "\u202e" not in page
