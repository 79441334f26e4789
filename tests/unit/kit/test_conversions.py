"""Conversions lose nothing, there and back; what would be lost is named with a way out."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml
from bayversions import bay_kit
from hypothesis import given, settings
from hypothesis import strategies as st

from ground.errors import InvalidInputError, NotFoundError
from ground.names import BlobSha, CommitSha
from orderkit.core.kit.conversion_proof import conversion_problems, round_trip, samples_of
from orderkit.core.kit.converting import converted, converter
from orderkit.flows.campaign.version_work import edited, lost_comments
from orderkit.flows.order.live_order import XrFile

KIT = bay_kit()
WAY = converter(KIT, "v1alpha1", "v1beta1")


def test_a_conversion_is_proved_with_samples_of_both_versions() -> None:
    assert list(conversion_problems(KIT)) == []
    assert len(list(samples_of(WAY))) >= 60
    assert len(list(samples_of(WAY.reverse))) >= 100


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            {"size": 3, "tier": "small", "endpoint": "a.b:80", "megabytes": 4, "note": "x"},
            {
                "storage": {"sizeGb": 3}, "plan": "S", "host": "a.b", "port": 80, "halves": 2,
                "note": "x", "region": "eu",
            },
            "every kind of step",
        ),
        ({}, {"region": "eu"}, "a default that both XRDs fill in is not written"),
        ({"endpoint": "a:b:9"}, {"region": "eu"}, "what may be lost is left out"),
    ],
)  # fmt: skip
def test_values_arrive(old: dict[str, Any], new: dict[str, Any], reason: str) -> None:
    assert WAY.convert(old) == new, reason


def test_another_default_is_written_out() -> None:
    """Whoever relies on the old default keeps it."""
    storage = {"type": "object", "properties": {"sizeGb": {"type": "integer", "default": 50}}}
    way = converter(bay_kit(new={"storage": {**storage, "default": {}}}), "v1alpha1", "v1beta1")
    assert way.convert({})["storage"] == {"sizeGb": 10}


ONE_FOR_BOTH = {"tier": {"to": "plan", "values": [["small", "S"], ["large", "S"]]}}


@pytest.mark.parametrize(
    ("spoilt", "rule"),
    [
        ({"loses": None}, "region is not proved (v1beta1 to v1alpha1 and back)"),
        ({"move": None}, "size is not proved (v1alpha1 to v1beta1 and back)"),
        ({"map": ONE_FOR_BOTH}, "tier is not proved (v1alpha1 to v1beta1 and back): large becomes"),
        ({"compute": {"halves": "spec.megabytes / 3"}}, "megabytes is not proved"),
        ({"computeBack": None}, "megabytes is not proved"),
        ({"compute": {"halves": "spec.bogus"}}, "undefined field 'bogus'"),
        ({"compute": {"halves": "'a'"}}, "halves is not proved"),
        ({"move": {"sise": "storage.sizeGb"}}, "sise is not a field of v1alpha1"),
        ({"move": {"size": "note"}, "default": {"note": "x"}}, "note is named by two steps"),
        ({"to": "v2"}, "v2 is not a served version"),
        ({"to": "v1alpha1"}, "v1alpha1 is converted to itself"),
        ({"strategy": "None"}, "size would be dropped by the cluster: v1beta1 does not declare it"),
        (
            {"old": {"endpoint": {"type": "string", "pattern": "^(a{3}:7){2}$"}}},
            "endpoint is not proved: no valid v1alpha1 with it can be generated",
        ),
    ],
    ids=str,
)
def test_what_would_be_lost_is_named(spoilt: dict[str, Any], rule: str) -> None:
    found = list(conversion_problems(bay_kit(**spoilt)))
    said = [(problem.value, problem.rule.partition(":")[0]) for problem in found]
    assert len(said) == len(set(said)), "each field once for each way"
    assert any(rule in f"{problem.value} {problem.rule}" for problem in found), found
    assert all(problem.hint and problem.steps[:2] == ("spec", "conversions") for problem in found)


def test_an_orders_own_value_without_a_counterpart_is_refused() -> None:
    way = converter(bay_kit(loses=None), "v1beta1", "v1alpha1")
    with pytest.raises(InvalidInputError, match=r"spec\.region: 'us' has no place in v1alpha1"):
        list(round_trip(way, {"region": "us"}))
    with pytest.raises(NotFoundError, match="no conversion from v1alpha1 to v3"):
        converter(KIT, "v1alpha1", "v3")


TEXT = """\
# ordered by Bea
apiVersion: example.org/v1alpha1
kind: Bay
metadata: {name: ae86}
spec:
  # agreed in May
  size: 3   # GiB
  tier: 'small'  # for now
  note: "x # y"
"""


def file(text: str) -> XrFile:
    path = PurePosixPath("manifests/bay.yaml")
    xr = yaml.safe_load(text)
    return XrFile(CommitSha("c"), path, text.encode(), BlobSha("b"), 0, (), xr)


def test_comments_stay_where_values_move() -> None:
    before = file(TEXT)
    after = edited(before, converted(before.xr, WAY), WAY).decode()
    assert after == (
        "# ordered by Bea\napiVersion: example.org/v1beta1\nkind: Bay\nmetadata: {name: ae86}\n"
        "spec:\n  # agreed in May\n  plan: 'S'  # for now\n"
        '  note: "x # y"\n  storage:\n    sizeGb: 3  # GiB\n  region: eu\n'
    )
    assert lost_comments(TEXT.encode(), after.encode()) == []
    assert lost_comments(b"a: 1  # why\n", b"a: 1\n") == ["why"]


def test_the_text_of_each_sample_says_what_was_converted() -> None:
    for way in (WAY, WAY.reverse):
        for spec in samples_of(way):
            head = {"apiVersion": f"example.org/{way.source}", "kind": "Bay"}
            before = file(yaml.safe_dump({**head, "metadata": {"name": "a"}, "spec": spec}))
            xr = converted(before.xr, way)
            assert yaml.safe_load(edited(before, xr, way)) == xr


OLD = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(0, 100_000),
        "tier": st.sampled_from(["small", "large"]),
        "endpoint": st.from_regex(r"[a-z0-9.]{1,20}:[1-9][0-9]{0,3}", fullmatch=True),
        "megabytes": st.integers(0, 512).map(lambda number: 2 * number),
        "note": st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30),
    },
)


@settings(max_examples=100, deadline=None)
@given(OLD)
def test_any_order_comes_back(spec: dict[str, Any]) -> None:
    strict = converter(bay_kit(loses=["host", "port", "region"]), "v1alpha1", "v1beta1")
    assert list(round_trip(strict, spec)) == []
