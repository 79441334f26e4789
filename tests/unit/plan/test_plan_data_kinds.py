"""Each kind of the table holds data, and nothing that only resembles one does."""

from __future__ import annotations

import pytest

from ground.objects.kube_objects import Kind
from orderkit.core.plan.composed_tree import ANY_GROUP, PackRules
from orderkit.core.plan.dangers.losses import DATA_KINDS, DATA_KINDS_BY_GROUP, holds_data

WITH_GROUP = sorted(
    (kind, group) for kind, groups in DATA_KINDS_BY_GROUP.items() for group in groups
)


@pytest.mark.parametrize("kind", sorted(DATA_KINDS))
def test_a_kind_of_the_table_holds_data_in_every_group(kind: str) -> None:
    assert holds_data(Kind("some.example.org", "v1", kind), PackRules())
    assert holds_data(Kind("", "v1", kind), PackRules())


@pytest.mark.parametrize(("kind", "service"), WITH_GROUP, ids=lambda text: text)
def test_a_kind_with_a_common_name_holds_data_in_its_groups_only(kind: str, service: str) -> None:
    assert holds_data(Kind(f"{service}.aws.upbound.io", "v1", kind), PackRules())
    assert not holds_data(Kind("elsewhere.example.org", "v1", kind), PackRules())
    assert not holds_data(Kind(f"un{service}.example.org", "v1", kind), PackRules())


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("VolumeSnapshotClass", "describes how snapshots are taken"),
        ("VolumeAttachment", "begins like Volume"),
        ("BucketPolicy", "begins like Bucket"),
        ("MyBucket", "ends like Bucket"),
        ("bucket", "kinds are case-sensitive"),
        ("ConfigMap", "is rendered again"),
    ],
)
def test_a_kind_that_resembles_one_of_the_table_holds_none(kind: str, reason: str) -> None:
    assert not holds_data(Kind("s3.aws.upbound.io", "v1", kind), PackRules()), reason


def test_what_a_pack_says_goes_before_the_table() -> None:
    kind = Kind("snapshot.storage.k8s.io", "v1", "VolumeSnapshot")
    assert holds_data(kind, PackRules())
    assert not holds_data(kind, PackRules(data_kinds={(ANY_GROUP, "VolumeSnapshot"): False}))
    assert holds_data(kind, PackRules(data_kinds={(kind.group, "VolumeSnapshot"): True}))
