"""Conversions lose nothing, there and back; what would be lost is named with a way out."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from bayversions import bay_kit
from hypothesis import given, settings
from hypothesis import strategies as st

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import BlobSha, CommitSha, OrderId
from ground.objects.kube_objects import Kind
from orderkit.core.kit.conversion_proof import conversion_problems, round_trip, samples_of
from orderkit.core.kit.converting import converted, converter, is_below, without
from orderkit.flows.campaign.version_work import check_version, edited, lost_comments, moved
from orderkit.flows.order.live_order import XrFile
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.testing import permissive_crd

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


def test_an_orders_own_value_that_would_not_come_back_is_refused() -> None:
    way = converter(bay_kit(compute={"halves": "spec.megabytes / 3"}), "v1alpha1", "v1beta1")
    text = TEXT.replace("size: 3", "megabytes: 4")

    with pytest.raises(InvalidInputError, match="would not come back from v1beta1") as refused:
        moved(way, OrderId("bay-ae86"), file(text))

    assert (refused.value.field, refused.value.value) == ("bay-ae86: spec.megabytes", 4)
    assert refused.value.hint.startswith("loses: [megabytes] in spec.conversions of kit bay")


def test_a_kit_whose_conversions_lose_something_moves_no_order(tmp_path: Path) -> None:
    with (
        closing(EmbeddedCluster(tmp_path / "cluster.sqlite")) as cluster,
        pytest.raises(InvalidInputError, match=r"kit bay: spec\.conversions\.0: 'host'"),
    ):
        check_version(cluster, bay_kit(loses=None), "v1beta1")


def test_a_cluster_that_only_renames_the_version_moves_no_order_that_loses_a_field(
    tmp_path: Path,
) -> None:
    """The pack has a webhook, and the cluster has not taken the pack yet."""
    crd = permissive_crd(Kind("example.org", "v1beta1", "Bay"), namespaced=False)
    (stored,) = crd["spec"]["versions"]
    crd["spec"]["versions"] = [{**stored, "name": "v1alpha1", "storage": False}, stored]
    told = "strategy is None, which drops spec.megabytes of v1alpha1: v1beta1 does not declare it"
    with closing(EmbeddedCluster(tmp_path / "cluster.sqlite")) as cluster:
        cluster.create(crd, owner="x")

        with pytest.raises(RefusedError, match=told):
            check_version(cluster, KIT, "v1beta1")


STRICT = bay_kit(loses=None)


@pytest.mark.parametrize(
    ("source", "spec", "told"),
    [
        ("v1alpha1", {"tier": "huge"}, "spec.tier: 'huge' has no counterpart in v1beta1"),
        ("v1beta1", {"plan": "XL"}, "spec.plan: 'XL' has no counterpart in v1alpha1"),
        (
            "v1alpha1",
            {"endpoint": "a"},
            "spec.endpoint: 'a' does not have 2 parts with ':' between",
        ),
        (
            "v1alpha1",
            {"endpoint": "a:b"},
            "spec.endpoint: 'a:b' has 'b' for port, which is a whole",
        ),
        (
            "v1alpha1",
            {"endpoint": "a:07"},
            "spec.endpoint: 'a:07' has '07' for port, which is a wh",
        ),
        ("v1beta1", {"host": "a"}, "spec.host: 'a' stands alone, and endpoint has 2 parts"),
        ("v1beta1", {"port": 7}, "spec.port: 7 stands alone, and endpoint has 2 parts"),
        (
            "v1beta1",
            {"host": "a:b", "port": 7},
            "spec.host: 'a:b' has ':', which separates endpoint",
        ),
        ("v1beta1", {"region": "us"}, "spec.region: 'us' has no place in v1alpha1"),
        ("v1alpha1", {"extra": 1}, "spec.extra: 1 has no place in v1beta1"),
        ("v1alpha1", {"megabytes": "x"}, "spec.halves: None cannot be computed: a value"),
    ],
)
def test_a_value_that_cannot_be_kept_is_refused_by_name(
    source: str, spec: dict[str, Any], told: str
) -> None:
    target = "v1beta1" if source == "v1alpha1" else "v1alpha1"

    with pytest.raises(InvalidInputError) as refused:
        converter(STRICT, source, target).convert(spec)

    assert str(refused.value).startswith(f"{source}: {told}"), refused.value
    assert refused.value.hint.startswith("say in spec.conversions of kit bay what becomes of it;")


@pytest.mark.parametrize(
    ("source", "spec", "result"),
    [
        ("v1beta1", {"region": "eu"}, {}),
        ("v1beta1", {"host": "a", "port": 7}, {"endpoint": "a:7"}),
        ("v1alpha1", {"endpoint": "a:-7"}, {"host": "a", "port": -7, "region": "eu"}),
        ("v1beta1", {"plan": "L"}, {"tier": "large"}),
        ("v1beta1", {"storage": {"sizeGb": 5}}, {"size": 5}),
        ("v1beta1", {"storage": {}}, {}),
    ],
)
def test_a_value_that_can_be_kept_is(
    source: str, spec: dict[str, Any], result: dict[str, Any]
) -> None:
    target = "v1beta1" if source == "v1alpha1" else "v1alpha1"

    assert converter(STRICT, source, target).convert(spec) == result


def test_groups_that_are_empty_go_with_their_last_field() -> None:
    spec = {"a": {"b": {"c": 1}}, "d": {"e": 1, "f": 2}}

    assert without(spec, "a.b.c") == {"d": {"e": 1, "f": 2}}
    assert without(spec, "d.e") == {"a": {"b": {"c": 1}}, "d": {"f": 2}}
    assert without(spec, "a.x") is spec
    assert without({"a": {}}, "a.b") == {"a": {}}


@pytest.mark.parametrize(
    ("path", "is_within"),
    [("a", True), ("a.b", True), ("a[0]", True), ("ab", False), ("b", False), ("c.d", True)],
)
def test_a_field_is_below_another_by_whole_steps(path: str, *, is_within: bool) -> None:
    assert is_below(path, ("a", "c.d")) is is_within


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
