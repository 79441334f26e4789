"""The file of a campaign: what it may hold, and what is said about what it may not."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from ground.errors import InvalidInputError
from ground.names import BlobSha
from orderkit.core.campaign import cluster_jobs
from orderkit.core.campaign.definition import (
    Which,
    campaign_of,
    duration,
    names_in,
    parse,
    path_of,
)
from orderkit.core.campaign.record import (
    NOT_STARTED,
    UNREADABLE,
    CampaignFigures,
    CampaignRecord,
    OrderOutcome,
    WaveRecord,
    attempt_of,
    is_back,
    new_id,
    parse_record,
    step_text,
)
from orderkit.core.kit.kit_file import How
from orderkit.core.kit.model import Kit
from orderkit.core.order.change import FieldEdit

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
        (
            {"which": {"kit": "garage", "orders": ["garage-a"], "share": 5}},
            "spec.which.share: 5 has no meaning beside orders",
            "leave one of the two out",
        ),
        ({"waves": [{"approve": True}]}, "spec.waves[0].approve: True has no wave before", "leave"),
        (
            {"waves": [{"name": "c", "orders": ["a"], "count": 1}]},
            "spec.waves[0]: 'c' says in two ways",
            "give one of orders, count and share",
        ),
        (
            {"what": {"fields": {"set": {"a": 1}}, "template": {}}},
            "spec.what: [",
            "give one of fields, template",
        ),
        (
            {"what": {"run": {"program": "def edit(:" + "x" * 50}}},
            "spec.what.run.program: 'def edit(:" + "x" * 30 + "' is no Python (line 1): ",
            "py_compile",
        ),
        (
            {"what": {"run": {"program": "def other():\n  pass\nedit = 1\n"}}},
            "spec.what.run.program: ['other'] is missing a function edit(order)",
            "write: def edit(order)",
        ),
        (
            {"what": {"run": {"program": "1"}}},
            "spec.what.run.program is missing a function edit(order)",
            "write: def edit(order)",
        ),
        (
            {"what": {"revision": {"to": "current", "minAge": "1d"}}},
            "spec.what.revision.minAge: '1d' has no meaning with to: current",
            "leave it out",
        ),
    ],
)
def test_what_is_refused_is_named_with_its_way_out(
    spec: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse(text(**spec), name="mend.yaml")
    assert f" {message}" in f" {refused.value}"
    assert hint in f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize(
    "spec",
    [
        {"which": {"kit": "garage", "share": 5}},
        {"which": {"kit": "garage", "orders": ["garage-a"]}},
        {"waves": [{"count": 1}, {"share": 5, "pause": "1h", "approve": True}, {"orders": ["a"]}]},
        {"what": {"run": {"program": "import os\ndef edit(order):\n  return {}\n"}}},
        {"what": {"template": {}}},
        {"windows": []},
    ],
)
def test_what_fits_together_is_read(spec: dict[str, Any]) -> None:
    assert parse(text(**spec), name="mend.yaml").name == "mend"


def test_campaigns_are_the_files_of_their_folder() -> None:
    paths = map(
        PurePosixPath,
        ["campaigns/b.yaml", "campaigns/a.yaml", "campaigns/a.json", "campaigns/x/c.yaml"],
    )

    assert names_in(paths) == ["a", "b"]
    assert path_of("a") == PurePosixPath("campaigns/a.yaml")


@pytest.mark.parametrize(
    ("length", "seconds_"), [("90s", 90), ("5m", 300), ("1h", 3600), (None, 0), ("", 0)]
)
def test_a_duration_of_a_campaign_has_seconds_too(length: str | None, seconds_: float) -> None:
    assert duration(length).total_seconds() == seconds_


GARAGE = Kit(
    name="garage",
    xrd={
        "spec": {
            "group": "x.io",
            "names": {"kind": "XGarage", "plural": "xgarages"},
            "versions": [
                {
                    "name": "v1",
                    "referenceable": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "properties": {
                                "spec": {
                                    "properties": {
                                        "stage": {"type": "string"},
                                        "size": {"type": "integer"},
                                        "a-b": {"type": "integer"},
                                        "tags": {"type": "array", "items": {"type": "string"}},
                                    }
                                }
                            }
                        }
                    },
                }
            ],
        }
    },
)


def edits_of(*texts: str) -> list[FieldEdit]:
    """Return edits of ``path op value``."""
    parts = [text.split(" ") for text in texts]
    return [FieldEdit(path, op, value, typed=True) for path, op, value in parts]  # type: ignore[arg-type]  # one of the operations


def test_a_campaign_is_made_of_edits() -> None:
    edits = edits_of("stage set b", "size add 2", "tags add x", "tags add y")

    made = campaign_of("mend", GARAGE, Which(kit="garage"), edits, how=How.REVIEW)
    reason = campaign_of("mend", GARAGE, Which(kit="garage"), edits_of("stage unset "), reason="so")

    fields = made.what.fields
    assert fields is not None
    assert (fields.set, fields.compute, fields.grow, fields.remove) == (
        {"stage": "b"},
        {"size": "spec.size + 2"},
        {"tags": ["x", "y"]},
        (),
    )
    assert made.reason == "stage, size, tags of all orders of garage"
    assert (made.how, reason.how, reason.reason) == ("review", "kit", "so")
    assert reason.what.fields is not None
    assert reason.what.fields.remove == ("stage",)
    (less,) = edits_of("size remove 3")
    computed = campaign_of("mend", GARAGE, Which(kit="garage"), [less]).what.fields
    assert computed is not None
    assert computed.compute == {"size": "spec.size - 3"}


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        ("tags remove x", "tags: 'x' cannot be taken out of the lists of many orders"),
        ("a-b add 1", "is no plain field to add to"),
    ],
)
def test_an_edit_of_one_order_only_is_no_campaign(edit: str, told: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        campaign_of("mend", GARAGE, Which(kit="garage"), edits_of(edit))
    assert f" {told}" in f" {refused.value}"


def test_a_wave_is_replaced_at_its_number() -> None:
    waves = tuple(WaveRecord(name, ()) for name in "abc")
    record = CampaignRecord("mend", "mend-1", "abc", "running", "2026-11-28T02:00:00Z", waves)

    changed_ = record.with_wave(1, WaveRecord("x", ()))

    assert [wave.name for wave in changed_.waves] == ["a", "x", "c"]


def test_figures_of_campaigns_add_up() -> None:
    outcomes = {"a": OrderOutcome("ready"), "b": OrderOutcome("odd")}
    wave = WaveRecord("w", ("a", "b", "c"), "2026-11-28T03:00:00Z", outcomes)
    record = CampaignRecord(
        "mend", "mend-1", "abc", "running", "2026-11-28T02:00:00Z", (wave, WaveRecord("x", ()))
    )
    one = CampaignFigures.of(record)

    total = CampaignFigures.total(
        [one, one, CampaignFigures.of(None), CampaignFigures.unreadable()]
    )

    assert one.waves == {("running", "over"): 1, ("running", "open"): 1}
    assert one.orders == {("running", "ready"): 1, ("running", "other"): 1, ("running", "open"): 1}
    assert total.states == {"running": 2, NOT_STARTED: 1, UNREADABLE: 1}
    assert total.waves[("running", "over")] == 2
    assert total.orders[("running", "open")] == 2


CAMPAIGN = parse(text(), name="mend.yaml")


@pytest.mark.parametrize(
    ("wanted", "orders", "count"), [(1, 9, 1), (9, 3, 3), (0, 9, 1), (99, 99, 10), (5, 0, 1)]
)
def test_each_shard_has_an_order_and_a_part_of_the_pace(
    wanted: int, orders: int, count: int
) -> None:
    assert cluster_jobs.shard_count(CAMPAIGN, orders, wanted) == count


def test_a_shard_keeps_its_part_of_the_pace_and_never_stops_the_campaign() -> None:
    shard = cluster_jobs.of_shard(CAMPAIGN, 4)

    assert (shard.pace.per_minute, shard.pace.in_flight) == (15, 2)
    assert (shard.gates.soak, shard.gates.when) == (None, CAMPAIGN.gates.when)
    assert shard.stop.failed > 10_000
    least = cluster_jobs.of_shard(CAMPAIGN, 100)
    assert (least.pace.per_minute, least.pace.in_flight) == (1, 1)


def test_orders_are_spread_over_shards_alike_in_every_process() -> None:
    orders = [f"garage-{number}" for number in range(300)]

    found = Counter(cluster_jobs.shard_of(order, 3) for order in orders)

    assert found.keys() == {0, 1, 2}
    assert min(found.values()) > 60
    assert [cluster_jobs.shard_of(f"garage-{n}", 50) for n in range(4)] == [47, 45, 49, 31]


@pytest.mark.parametrize(
    ("rule", "failed"),
    [
        ({"failed": 2}, 1), ({"failed": 99}, 4), ({"share": 10}, 2), ({"share": 100}, 4),
        ({"share": 4}, 0),
    ],
)  # fmt: skip
def test_so_many_shards_may_fail_as_orders(rule: dict[str, Any], failed: int) -> None:
    stop = parse(text(stop=rule), name="mend.yaml").stop

    assert cluster_jobs.failed_indexes(stop, 20, 4) == failed


def test_more_shards_than_the_cluster_allows_are_refused() -> None:
    assert cluster_jobs.checked_shards(50) == 50
    with pytest.raises(InvalidInputError, match="--shards: 51 is more than the cluster's policy"):
        cluster_jobs.checked_shards(51)


def test_a_job_of_a_wave_is_named_by_its_attempt_and_turn() -> None:
    wave = WaveRecord("w", tuple("abcde"))
    record = CampaignRecord(
        "m" * 23 + "-x", "mend-12345678", "abc", "running", "2026-11-28T02:00:00Z", (wave,)
    )
    crew = cluster_jobs.Crew("image:1", "user:default/eve", 3)

    first = cluster_jobs.wave_job(CAMPAIGN, record, 0, crew)
    again = cluster_jobs.wave_job(CAMPAIGN, record, 0, crew, turn=2)
    coordinators = [cluster_jobs.coordinator_job(record, crew, number) for number in (1, 1, 2)]

    assert first["metadata"]["name"] == f"campaign-{'m' * 23}-12345678-w1-1"
    assert again["metadata"]["name"] == f"campaign-{'m' * 23}-12345678-w1-1-2"
    assert (first["spec"]["completions"], first["spec"]["parallelism"]) == (3, 3)
    assert "backoffLimit" not in first["spec"]
    names = [job["metadata"]["name"] for job in coordinators]
    assert names[0] == names[1] != names[2]
    assert len(names[0].rpartition("-c-")[2]) == 8


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
