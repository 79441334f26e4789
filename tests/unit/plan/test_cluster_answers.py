"""What a plan asks the cluster, and what it says of answers that it did not get."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from refusedreads import RefusedReads, forbidden

from compositions.composed import RESOURCE_NAME_ANNOTATION
from compositions.station import Selector
from ground.errors import AccessError
from ground.objects.kube_objects import CONFIG_MAP, Kind, Manifest, ObjectKey
from orderkit.flows.composing.cluster_questions import (
    NOT_ASKED,
    AnsweredQuestions,
    get,
    living,
    looked_up,
    observed_of,
)
from orderkit_standins.cluster import EmbeddedCluster

ABSENT = Kind("absent.example.org", "v1", "Absent")


def config(name: str, composed: str = "", **meta: Any) -> Manifest:
    notes = {RESOURCE_NAME_ANNOTATION: composed} if composed else {}
    whole = {"name": name, "namespace": "default", "annotations": notes, **meta}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": whole}


def owned_by(name: str, uid: str) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}
    return {"ownerReferences": [{**owner, "controller": True}]}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    found = EmbeddedCluster(tmp_path_factory.mktemp("cluster") / "cluster.sqlite")
    x, y = (str(found.create(config(name), owner="x")["metadata"]["uid"]) for name in ("x", "y"))
    for made in (
        config("here", labels={"app": "shop"}),
        config("part", "disk", **owned_by("x", x)),
        config("inner", "a/b"),
        config("nameless"),
        config("foreign", "cache", **owned_by("y", y)),
        config("orphan", "net"),
    ):
        found.create(made, owner="x")
    yield found
    found.close()


def test_an_order_is_looked_for_and_its_absence_is_told_apart(
    cluster: EmbeddedCluster, refused: RefusedReads
) -> None:
    there, gone = config("here"), config("gone")
    silent = refused.of(cluster, {"ConfigMap"}, silent=True)
    absent = {"apiVersion": ABSENT.api_version, "kind": ABSENT.kind, "metadata": {"name": "a"}}

    found, unknowns = living(cluster, there)

    assert (found and found["metadata"]["name"], unknowns) == ("here", ())
    missing = ("the cluster does not have this order yet",)
    assert living(cluster, gone) == living(cluster, absent) == (None, missing)
    assert living(None, there) == (None, (NOT_ASKED,))
    silence = f"no answer from the API server at {refused.proxy.url}: connection broken"
    assert living(silent, there) == (None, (f"the cluster could not be asked: {silence}",))


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        (Selector("v1", "ConfigMap", "here", namespace="default"), ["here"]),
        (Selector("v1", "ConfigMap", "gone", namespace="default"), []),
        (Selector("v1", "ConfigMap", labels={"app": "shop"}), ["here"]),
        (Selector("v1", "ConfigMap", labels={"app": "shop"}, namespace="kube-system"), []),
        (Selector(ABSENT.api_version, ABSENT.kind, labels={"a": "b"}), []),
        (Selector(ABSENT.api_version, ABSENT.kind, "a"), []),
    ],
)
def test_a_station_gets_the_objects_that_it_asks_for(
    selector: Selector, names: list[str], cluster: EmbeddedCluster
) -> None:
    assert [found["metadata"]["name"] for found in looked_up(cluster, selector)] == names
    assert looked_up(None, selector) == []


def test_a_station_sees_no_failure_and_the_plan_does(
    cluster: EmbeddedCluster, refused: RefusedReads
) -> None:
    here = Selector("v1", "ConfigMap", "here", namespace="default")
    secret = Selector("v1", "Secret", "s", namespace="default")
    questions = AnsweredQuestions(refused.of(cluster, {"Secret"}))

    answers = [questions.look(here), questions.look(secret), questions.look(here)]

    assert [len(found) for found in answers] == [1, 0, 1]
    assert answers[2] is answers[0]
    assert [found["metadata"]["name"] for found in questions.objects] == ["here"]
    with pytest.raises(AccessError, match=forbidden("secrets")):
        questions.check()
    AnsweredQuestions(cluster).check()


def test_an_object_of_a_kind_that_is_not_served_is_none(
    cluster: EmbeddedCluster, refused: RefusedReads
) -> None:
    assert get(cluster, ObjectKey(ABSENT, "a")) is None
    assert get(None, ObjectKey(CONFIG_MAP, "here", "default")) is None
    with pytest.raises(AccessError):
        get(refused.of(cluster, {"ConfigMap"}), ObjectKey(CONFIG_MAP, "here", "default"))


def test_what_an_xr_composes_is_found_by_name_without_what_others_own(
    cluster: EmbeddedCluster,
) -> None:
    names = ("part", "inner", "nameless", "foreign", "orphan", "gone")
    references = [{"apiVersion": "v1", "kind": "ConfigMap", "name": name} for name in names]
    owner = cluster.get(ObjectKey(CONFIG_MAP, "x", "default"))
    assert owner
    xr = {
        "apiVersion": "lab.example.org/v1",
        "kind": "App",
        "metadata": {"name": "x", "namespace": "default", "uid": owner["metadata"]["uid"]},
        "spec": {"crossplane": {"resourceRefs": references}},
    }

    found = dict(observed_of(cluster, xr, lambda _: False))
    nested = dict(observed_of(cluster, xr, lambda part: part["metadata"]["name"] == "part"))

    assert list(found) == list(nested) == ["disk", "net"]
    assert found["disk"]["metadata"]["name"] == "part"
    anonymous = {**xr, "metadata": {"name": "x", "namespace": "default"}}
    assert list(dict(observed_of(cluster, anonymous, lambda _: False))) == ["disk", "cache", "net"]
