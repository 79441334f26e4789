"""The file of a campaign: what it may hold, and what is said about what it may not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from ground.errors import InvalidInputError
from ground.names import BlobSha
from orderkit.core.campaign.definition import parse
from orderkit.core.campaign.record import (
    CampaignRecord,
    OrderOutcome,
    WaveRecord,
    attempt_of,
    is_back,
    new_id,
    parse_record,
    step_text,
)

WHOLE: dict[str, Any] = {
    "reason": "the old form wrote undefined",
    "what": {"fields": {"set": {"stage": "stage2"}, "remove": ["note"]}},
    "which": {"kit": "garage", "where": "spec.note == 'undefined'", "except": ["garage-x"]},
    "how": "review",
    "waves": [{"name": "canary", "count": 3}, {"share": 25, "pause": "1h"}, {"approve": True}],
    "gates": {"ready": "90s", "soak": "5m", "when": "status.stage == 'stage2'"},
    "stop": {"failed": 2, "then": "takeBack"},
    "windows": [{"days": ["mon"], "from": "09:00", "to": "16:00", "zone": "Europe/Berlin"}],
    "pace": {"perMinute": 60, "inFlight": 10},
}


def text(campaign: str = "mend", **spec: Any) -> str:
    document = {
        "apiVersion": "orderkit.dev/v1alpha1",
        "kind": "Campaign",
        "metadata": {"name": campaign},
        "spec": {**WHOLE, **spec},
    }
    return yaml.safe_dump(document)


def test_a_file_is_read_and_written_without_loss() -> None:
    campaign = parse(text(), name="mend.yaml")
    assert parse(campaign.to_yaml(), name="mend.yaml") == campaign
    assert yaml.safe_load(campaign.to_yaml())["spec"] == WHOLE


@pytest.mark.parametrize(
    ("spec", "message", "hint"),
    [
        (
            {"what": {}},
            "mend.yaml: spec.what is missing one kind",
            "give one of fields, template, version, revision, run",
        ),
        ({"what": {"fields": {}}}, "spec.what.fields is missing a field", "give set, compute"),
        (
            {"what": {"fields": {"set": {"note": "a"}, "remove": ["spec.note"]}}},
            "spec.what.fields: 'note' is named twice",
            "name each field once",
        ),
        (
            {"waves": [{"name": "c", "count": 1, "share": 5}]},
            "spec.waves[0]: 'c' says in two ways which orders it has",
            "give one of orders, count and share",
        ),
        ({"waves": [{"pause": "1h"}]}, "spec.waves[0].pause: '1h' has no wave before", "leave it"),
        ({"waves": [{"share": 101}]}, "spec.waves.0.share: 101 is refused", "1 to 100"),
        ({"gates": {"ready": "soon"}}, "spec.gates.ready: 'soon'", "for example 30s, 10m"),
        ({"which": {"kit": "g", "wher": "true"}}, "'wher' is not a known key", "'where'"),
        (
            {"windows": [{"days": ["mon"], "from": "09:00", "to": "16:00", "zone": "Mars/One"}]},
            "spec.windows[0].zone: 'Mars/One' is not a time zone",
            "for example Europe/Berlin",
        ),
    ],
)
def test_what_is_refused_is_named_with_its_way_out(
    spec: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse(text(**spec), name="mend.yaml")
    assert message in str(refused.value)
    assert hint in f"{refused.value} {refused.value.hint}"


def test_a_name_has_at_most_forty_characters() -> None:
    assert parse(text("m" * 40), name="mend.yaml").name == "m" * 40

    with pytest.raises(InvalidInputError, match="has 41 characters") as refused:
        parse(text("m" * 41), name="mend.yaml")
    assert refused.value.hint == "choose a name of at most 40 characters"


def test_a_record_is_read_as_it_was_written() -> None:
    wave = WaveRecord("canary", ("a", "b"), "2026-11-28T03:00:00Z", {"a": OrderOutcome("ready")})
    record = CampaignRecord(
        "mend", "mend-12", "abc", "running", "2026-11-28T02:00:00Z", (wave, WaveRecord("rest", ()))
    )
    assert parse_record(record.to_text().encode(), name="mend") == record
    assert record.current == 1
    assert list(record.orders) == ["a", "b"]
    for broken in (b"", b"{}", record.to_text().replace("running", "walking").encode()):
        with pytest.raises(InvalidInputError, match="is missing or unreadable") as refused:
            parse_record(broken, name="mend")
        assert "restore it" in refused.value.hint


def test_a_campaign_that_is_started_anew_has_another_id() -> None:
    moments = (datetime(2026, 11, 28, hour, tzinfo=UTC) for hour in (1, 2))
    assert len({new_id("mend", BlobSha("abc"), moment) for moment in moments}) == 2


def test_the_step_of_a_commit_says_wave_attempt_and_direction() -> None:
    assert (step_text(0, 1), step_text(2, 3, back=True)) == ("1.1", "back-3.3")
    assert [attempt_of(step) for step in ("1.12", "back-3.3", "", "x.y")] == [12, 3, 0, 0]
    assert is_back("back-1.1")
    assert not is_back("1.1")
