"""Names of datasets: labels for any path, never two alike, never one that moves."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ground.names import LABEL, LABEL_MAX
from ground.objects.kube_objects import Manifest
from whisperops.buckets import Blob
from whisperops.comparing import compare
from whisperops.entities import Dataset, Entities, entity
from whisperops.naming import TITLE_MAX, allot, label, refusal, title
from whisperops.records import Origin, desired_record

ORIGIN = Origin("gs://bucket", "datasets")
paths = st.text(min_size=1, max_size=80).map(lambda text: f"{text}.csv")
alike = st.lists(st.sampled_from("aA_- .é/1"), min_size=1, max_size=5).map(
    lambda chars: "".join(chars) + ".csv"
)


@pytest.mark.parametrize(
    ("path", "name", "shown"),
    [
        ("Athlete_Recovery.csv", "athlete-recovery", "Athlete Recovery"),
        ("california-housing.csv", "california-housing", "California Housing"),
        ("online retail II.csv", "online-retail-ii", "Online Retail II"),
        ("2024/Q1/sales.csv", "2024-q1-sales", "2024 / Q1 / Sales"),
        ("Zürich Straße.csv", "zurich-strasse", "Zürich Straße"),
        ("_-_.csv", "dataset-09c9b1f7", "dataset-09c9b1f7"),
        ("数据.csv", "dataset-e17c7bed", "数据"),
    ],
)
def test_a_path_gives_a_label_and_a_title(path: str, name: str, shown: str) -> None:
    found = label(path)

    assert found == name
    assert title(path) == shown


@given(paths)
def test_every_path_gives_a_label(path: str) -> None:
    assert LABEL.match(label(path))
    assert len(label(path)) <= LABEL_MAX
    assert 0 < len(title(path)) <= TITLE_MAX


@given(st.sets(alike, max_size=30), st.sets(alike.map(label), max_size=5))
def test_names_are_all_different(found: set[str], taken: set[str]) -> None:
    names = allot(found, taken)

    assert names.keys() == found
    assert len({*names.values()} | taken) == len(found) + len(taken)
    assert all(LABEL.match(name) and len(name) <= LABEL_MAX for name in names.values())
    assert names == allot(sorted(found, reverse=True), taken), "order does not matter"


@given(st.lists(st.sets(alike, max_size=12), min_size=1, max_size=6))
def test_no_listing_ever_renames_a_record(listings: list[set[str]]) -> None:
    """Whatever comes and goes, a path keeps the name of its record as long as there is one."""
    living: dict[str, Manifest] = {}
    for listing in listings:
        before = {record["spec"]["gcsPath"]: name for name, record in living.items()}
        blobs = [Blob(path, 1, "v") for path in sorted(listing)]

        found = compare(blobs, list(living.values()), ORIGIN)

        for name, blob in found.blobs_by_name.items():
            assert before.get(f"gs://bucket/{blob.path}", name) == name
            living[name] = desired_record(name, blob, ORIGIN)
        registrable = {path for path in listing if not refusal(path)}
        assert {blob.path for blob in found.blobs_by_name.values()} == registrable
        for name in sorted(found.missing)[::2]:  # some of what is missing is removed
            del living[name]


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60))
def test_two_dialects_of_yaml_read_an_entity_as_it_is(text: str) -> None:
    from ruamel.yaml import YAML

    dataset = Dataset("name", title(f"{text}.csv"), f"gs://b/{text}.csv", 12, ready=True)

    files = Entities("datasets", "group:default/platform").files([dataset])

    (data,) = (data for path, data in files.items() if path.parent.name == "entities")
    expected = entity(dataset, source="datasets", owner="group:default/platform")
    assert yaml.safe_load(data) == expected
    assert YAML(typ="safe", pure=True).load(data.decode()) == expected
