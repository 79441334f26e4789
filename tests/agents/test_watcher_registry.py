"""What a pass makes of a listing: records, their status, entities, and nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from ground.objects.kube_objects import Manifest, condition
from whisperops.records import MANAGED_BY, SOURCE, XDATASET

TERABYTE = 10**12


def versions(shop: Any) -> dict[str, str]:
    return {name: each["metadata"]["resourceVersion"] for name, each in shop.records().items()}


def test_every_csv_becomes_a_record_and_an_entity_of_the_same_name(filled: Any) -> None:
    records, entities = filled.records(), filled.entities()

    names = {"california-housing", "athlete-recovery", "spotify-tracks"}
    assert records.keys() == entities.keys() == names
    found = records["athlete-recovery"]
    assert found["spec"] == {
        "gcsPath": "gs://whisperops-datasets/Athlete_Recovery.csv",
        "displayName": "Athlete Recovery",
        "sizeBytes": 4096,
    }
    assert found["status"]["ready"] is True
    assert found["status"]["sizeHuman"] == "4.0 KiB"
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    entity = entities["athlete-recovery"]
    assert entity["spec"] == {"type": "dataset", "owner": "group:default/platform"}
    assert entity["metadata"]["annotations"]["whisperops.io/gcs-path"] == found["spec"]["gcsPath"]
    assert entity["metadata"]["labels"]["whisperops.io/ready"] == "true"


def test_a_pass_over_what_did_not_change_writes_nothing(filled: Any) -> None:
    before, commits = versions(filled), len(filled.commits())
    watcher = filled.watcher()

    done = filled.passes(watcher, 3)

    assert [(each.writes, each.removed, each.commit) for each in done] == [(0, 0, None)] * 3
    assert versions(filled) == before
    assert len(filled.commits()) == commits == 1


def test_a_clock_that_goes_on_changes_no_record(filled: Any) -> None:
    before = versions(filled)
    filled.clock.sleep(86_400)

    assert filled.watcher().run_pass().writes == 0
    assert versions(filled) == before


def test_a_blob_that_changed_changes_its_record_and_one_file(filled: Any) -> None:
    before = filled.records()["athlete-recovery"]
    filled.bucket.sizes["Athlete_Recovery.csv"] = 9_999_999
    filled.clock.sleep(60)

    done = filled.watcher().run_pass()

    found = filled.records()["athlete-recovery"]
    assert found["spec"]["sizeBytes"] == 9_999_999
    assert found["status"]["lastSeen"] != before["status"]["lastSeen"]
    ready = "lastTransitionTime"
    assert condition(found, "Ready")[ready] == condition(before, "Ready")[ready]  # type: ignore[index]  # there is one
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"] == 2
    assert done.writes == 2
    assert len(filled.commits()) == 2


@pytest.mark.parametrize(
    ("size", "reason", "human"),
    [
        pytest.param(0, "Empty", "0 B", id="nothing in it"),
        pytest.param(5 * TERABYTE, "TooLarge", "4.5 TiB", id="the largest that S3 takes"),
    ],
)
def test_a_blob_nobody_can_analyse_is_registered_and_not_ready(
    shop: Any, size: int, reason: str, human: str
) -> None:
    shop.bucket.sizes = {"good.csv": 1, "bad.csv": size}

    done = shop.watcher().run_pass()

    found = shop.records()["bad"]
    assert (done.registered, done.ready) == (2, 1)
    assert found["status"]["ready"] is False
    assert found["status"]["sizeHuman"] == human
    assert condition(found, "Ready")["reason"] == reason  # type: ignore[index]  # there is one
    assert found["spec"].get("sizeBytes") == (size or None)
    assert shop.entities()["bad"]["metadata"]["labels"]["whisperops.io/ready"] == "false"


def test_a_dataset_that_was_emptied_is_not_ready_until_it_is_filled(filled: Any) -> None:
    watcher = filled.watcher()
    seen = []
    for size in (0, 4096):
        filled.bucket.sizes["Athlete_Recovery.csv"] = size
        watcher.run_pass()
        seen.append(filled.records()["athlete-recovery"]["status"]["ready"])

    assert seen == [False, True]


def test_names_that_collide_stay_apart_and_none_is_renamed(shop: Any) -> None:
    watcher = shop.watcher()
    shop.bucket.sizes = {"b_c.csv": 1}
    watcher.run_pass()
    shop.bucket.sizes |= {"B C.csv": 2, "b-c.csv": 3}  # both would come first in the alphabet
    watcher.run_pass()

    found = {each["spec"]["gcsPath"]: name for name, each in shop.records().items()}
    assert found["gs://whisperops-datasets/b_c.csv"] == "b-c"
    assert len(set(found.values())) == 3
    assert shop.entities().keys() == set(found.values())
    assert shop.watcher().run_pass().writes == 0


def test_a_record_of_somebody_else_is_not_touched(shop: Any) -> None:
    hand_made: Manifest = {
        "apiVersion": XDATASET.api_version,
        "kind": XDATASET.kind,
        "metadata": {"name": "sales"},
        "spec": {"gcsPath": "gs://elsewhere/sales.csv", "displayName": "Mine", "sizeBytes": 5},
    }
    shop.cluster.apply(hand_made, owner="person")
    shop.bucket.sizes = {"sales.csv": 10}

    shop.watcher().run_pass()
    shop.bucket.sizes = {"other.csv": 1}
    shop.passes(shop.watcher(), 3)

    records = shop.records()
    assert records["sales"]["spec"] == hand_made["spec"]
    assert "status" not in records["sales"]
    assert records.keys() == {"sales", "other"}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("données 2024/Zürich & Söhne.csv", id="accents, spaces and a folder"),
        pytest.param("数据.csv", id="no letter of ASCII"),
        pytest.param('it\'s "quoted": ${{ x }} #1 - 😀.csv', id="what YAML and templates read"),
        pytest.param("x" * 1000 + ".csv", id="longer than any label"),
        pytest.param("true.csv", id="a boolean"),
        pytest.param("..csv", id="a dot alone"),
    ],
)
def test_any_name_a_bucket_takes_is_kept_as_it_is(shop: Any, path: str) -> None:
    shop.bucket.sizes = {path: 7}

    done = shop.watcher().run_pass()

    assert not done.failures
    (record,) = shop.records().values()
    (entity,) = shop.entities().values()
    assert record["spec"]["gcsPath"] == f"gs://whisperops-datasets/{path}"
    assert entity["metadata"]["annotations"]["whisperops.io/gcs-path"].endswith(path)
    assert entity["metadata"]["title"] == record["spec"]["displayName"]
    assert shop.watcher().run_pass().writes == 0


def test_a_name_that_cannot_be_registered_stops_no_other(shop: Any) -> None:
    shop.bucket.sizes = {"a\nb.csv": 1, "caf\udce9.csv": 1, ".csv": 1, "good.csv": 1}

    done = shop.watcher().run_pass()

    assert shop.records().keys() == {"good"}
    assert done.refusals == {
        "a\nb.csv": "its name contains control characters",
        "caf\udce9.csv": "its name is not UTF-8",
        ".csv": "its name is only an ending",
    }
    assert not done.failures


def test_a_record_changed_by_hand_is_mended(filled: Any) -> None:
    key = {"apiVersion": XDATASET.api_version, "kind": XDATASET.kind}
    path = "gs://whisperops-datasets/Athlete_Recovery.csv"
    forged = {**key, "metadata": {"name": "athlete-recovery"}}
    forged["spec"] = {"gcsPath": path, "displayName": "Forged", "sizeBytes": 1}
    filled.cluster.apply(forged, owner="person")

    filled.watcher().run_pass()

    found = filled.records()["athlete-recovery"]
    assert found["spec"]["displayName"] == "Athlete Recovery"
    assert found["spec"]["sizeBytes"] == 4096
    assert found["metadata"]["labels"] == {MANAGED_BY: "dataset-watcher", SOURCE: "datasets"}
    assert filled.watcher().run_pass().writes == 0


def test_a_pass_that_is_told_to_stop_is_finished_by_the_next(shop: Any) -> None:
    shop.bucket.sizes = {f"data-{number}.csv": 1 for number in range(6)}
    answers = iter([True] * 3)

    cut = shop.watcher().run_pass(lambda: next(answers, False))
    whole = shop.watcher().run_pass()

    assert (cut.complete, cut.writes, cut.commit) == (False, 6, None)
    assert (whole.complete, whole.writes) == (True, 6)
    assert len(shop.entities()) == 6
    assert len(shop.commits()) == 1
