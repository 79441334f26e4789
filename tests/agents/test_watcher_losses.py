"""What the watcher removes, and what it never removes."""

from __future__ import annotations

from typing import Any

import pytest

from ground.objects.kube_objects import EVENT, annotations_of
from whisperops.comparing import LossRule
from whisperops.confirming import CONFIRM


def fill(shop: Any, count: int) -> Any:
    shop.bucket.sizes = {f"data-{number:03d}.csv": 1 for number in range(count)}
    watcher = shop.watcher()
    assert not watcher.run_pass().failures
    return watcher


def lose(shop: Any, count: int) -> None:
    for path in sorted(shop.bucket.sizes)[:count]:
        del shop.bucket.sizes[path]


def test_a_blob_that_stays_away_takes_record_and_entity_with_it(filled: Any) -> None:
    watcher = filled.watcher()
    del filled.bucket.sizes["Athlete_Recovery.csv"]

    done = filled.passes(watcher, 3)

    assert [each.removed for each in done] == [0, 1, 0]
    assert filled.records().keys() == filled.entities().keys()
    assert "athlete-recovery" not in filled.records()
    assert len(filled.commits()) == 2


def test_a_listing_that_flaps_removes_and_writes_nothing(filled: Any) -> None:
    watcher = filled.watcher()
    whole = dict(filled.bucket.sizes)
    done = []
    for number in range(12):
        filled.bucket.sizes = dict(whole)
        if number % 2 == 0:
            del filled.bucket.sizes["Athlete_Recovery.csv"]
        done.append(watcher.run_pass())

    assert sum(each.writes + each.removed for each in done) == 0
    assert len(filled.commits()) == 1


def test_a_watcher_that_was_just_started_waits_like_any_other(filled: Any) -> None:
    """A restart may cost a pass, and never a record."""
    del filled.bucket.sizes["Athlete_Recovery.csv"]

    assert [filled.watcher().run_pass().removed for _ in range(4)] == [0] * 4


def test_a_bucket_that_does_not_answer_removes_nothing_and_the_catalog_is_mended(
    filled: Any,
) -> None:
    watcher = filled.watcher()
    filled.bucket.failing = True
    entity = filled.forge.tree(filled.repo, filled.forge.head(filled.repo))
    assert len(entity) == 4

    done = filled.passes(watcher, 5)

    assert {tuple(each.failures) for each in done} == {("bucket",)}
    assert len(filled.records()) == len(filled.entities()) == 3
    filled.bucket.failing = False
    assert not watcher.run_pass().failures


def test_a_suddenly_empty_bucket_removes_nothing_until_a_person_says_so(filled: Any) -> None:
    watcher = filled.watcher()
    filled.bucket.sizes = {}

    done = filled.passes(watcher, 6)

    assert all(each.suspicious and not each.removed for each in done)
    assert len(filled.records()) == len(filled.entities()) == 3
    assert filled.question()["data"]["suspicious"] == "true"
    assert len(filled.cluster.list(EVENT, namespace="whisperops").items) == 1
    assert filled.confirm() == "the bucket is empty, and 3 datasets are registered"
    assert watcher.run_pass().removed == 3
    assert filled.records() == {}
    assert filled.entities() == {}


def test_an_answer_is_used_once(filled: Any) -> None:
    watcher = filled.watcher()
    whole = dict(filled.bucket.sizes)
    filled.bucket.sizes = {}
    watcher.run_pass()
    filled.confirm()
    watcher.run_pass()
    filled.bucket.sizes = whole
    filled.passes(watcher, 1)
    assert CONFIRM not in annotations_of(filled.question())
    assert filled.question()["data"] == {"suspicious": "false", "reason": "", "token": ""}

    filled.bucket.sizes = {}

    assert [each.removed for each in filled.passes(watcher, 3)] == [0] * 3
    assert len(filled.records()) == 3


def test_an_answer_to_another_listing_is_none(shop: Any) -> None:
    watcher = fill(shop, 30)
    lose(shop, 20)
    watcher.run_pass()
    shop.confirm()
    lose(shop, 5)

    assert watcher.run_pass().removed == 0
    assert len(shop.records()) == 30


def test_a_confirmed_removal_that_was_cut_short_goes_on_without_asking_again(shop: Any) -> None:
    watcher = fill(shop, 30)
    lose(shop, 20)
    watcher.run_pass()
    shop.confirm()
    writes = iter([True] * 15)  # ten of the blobs that are left are asked for, then removals
    cut = watcher.run_pass(lambda: next(writes, False))

    rest = shop.watcher().run_pass()

    assert (cut.removed, rest.removed) == (5, 15)
    assert len(shop.entities()) == 10


@pytest.mark.parametrize(
    ("registered", "lost", "suspicious"),
    [
        pytest.param(3, 2, False, id="a few of a few"),
        pytest.param(10, 3, False, id="as many as any bucket may lose"),
        pytest.param(10, 4, True, id="one more"),
        pytest.param(100, 10, False, id="a tenth"),
        pytest.param(100, 11, True, id="more than a tenth"),
        pytest.param(1, 1, True, id="the only one: the bucket is empty"),
    ],
)
def test_how_much_may_be_gone_at_once(
    shop: Any,
    registered: int,
    lost: int,
    suspicious: bool,  # noqa: FBT001  a column of the table
) -> None:
    watcher = fill(shop, registered)
    lose(shop, lost)

    done = shop.passes(watcher, 2)

    assert [each.suspicious for each in done] == [suspicious] * 2
    assert len(shop.records()) == registered - (0 if suspicious else lost)


def test_a_bucket_that_was_replaced_loses_nothing_unasked(filled: Any) -> None:
    """New blobs are registered; whether the old ones are gone is for a person to say."""
    filled.rule = LossRule(most=2)
    watcher = filled.watcher()
    filled.bucket.sizes = {"new-1.csv": 1, "new-2.csv": 1}

    done = filled.passes(watcher, 3)

    assert done[-1].suspicious
    assert len(filled.records()) == 5


def test_a_cluster_that_cannot_be_asked_for_the_answer_removes_nothing(filled: Any) -> None:
    """The question lies in a namespace; without it nobody can have answered."""
    watcher = filled.watcher()
    watcher.confirmation._key = type(watcher.confirmation._key)(  # noqa: SLF001  a place that is gone
        watcher.confirmation._key.kind,  # noqa: SLF001
        "x",
        "no-such-namespace",
    )
    filled.bucket.sizes = {}

    done = watcher.run_pass()

    assert tuple(done.failures) == ("registry",)
    assert len(filled.records()) == 3
