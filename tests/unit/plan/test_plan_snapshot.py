"""What a plan was made from, as a file: the same bytes for the same state, and no secrets."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from bayversions import bay_kit
from hypothesis import given
from hypothesis import strategies as st

from ground.errors import InvalidInputError, OrderkitError
from ground.objects.kube_objects import Kind, Manifest, ObjectKey
from orderkit.core.plan.snapshot import PlanSnapshot, RecordedOrder, cleaned, from_text, to_text
from orderkit.flows.composing.recording import PlanRecorder, Replay, check_one, differs
from orderkit.ports.cluster import NoSuchKindError, ObjectList
from orderkit_standins.cluster import EmbeddedCluster

CONFIG, SECRET = Kind("", "v1", "ConfigMap"), Kind("", "v1", "Secret")


def an_object(name: str, kind: str = "ConfigMap", **more: Any) -> Manifest:
    meta = {"name": name, "namespace": "home", "resourceVersion": "17", "uid": f"u-{name}"}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, **more}


XR = {"apiVersion": "e.org/v1", "kind": "XThing", "metadata": {"name": "a"}, "spec": {"size": 1}}
ORDERS = (RecordedOrder("b", "thing", XR, "crew"), RecordedOrder("a", "thing", XR))


def a_snapshot(*objects: Manifest, **more: Any) -> PlanSnapshot:
    asked = tuple(ObjectKey.of(each) for each in objects)
    return PlanSnapshot(
        ORDERS, "c0ffee", {"XThing.e.org": "sha256:1"}, asked, objects=objects, **more
    )


@given(st.permutations([an_object(name, data={"k": name}) for name in "abcd"]))
def test_the_same_state_gives_the_same_bytes(objects: list[Manifest]) -> None:
    ordered = [an_object(name, data={"k": name}) for name in "abcd"]

    assert to_text(a_snapshot(*objects)) == to_text(a_snapshot(*ordered))


def test_what_is_read_is_what_was_written_but_for_what_the_server_counts() -> None:
    written = a_snapshot(an_object("m", data={"k": "v"}), listings=((CONFIG, "home"),))

    found = from_text(to_text(written), name="x.json")

    assert to_text(found) == to_text(written)
    assert found.order("b").team == "crew"
    assert found.listings == ((CONFIG, "home"),)
    assert "resourceVersion" not in found.objects[0]["metadata"]
    assert found.objects[0]["metadata"]["uid"] == "u-m"


def test_no_value_of_a_secret_is_written_wherever_it_stands() -> None:
    note = {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"key":"hush"}}'}
    plain = an_object("s", "Secret", data={"key": "hush"}, stringData={"other": "hush"})
    plain["metadata"]["annotations"] = note
    wrapped = {
        "apiVersion": "kubernetes.crossplane.io/v1alpha2",
        "kind": "Object",
        "metadata": {"name": "o"},
        "spec": {"forProvider": {"manifest": an_object("s", "Secret", data={"key": "hush"})}},
        "status": {"atProvider": {"manifest": an_object("s", "Secret", data={"key": "hush"})}},
    }

    text = to_text(a_snapshot(plain, wrapped))

    assert "hush" not in text
    assert cleaned(plain)["data"] == {"key": ""}
    assert cleaned(plain)["stringData"] == {"other": ""}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda found: found.update(kind="Order"), "is not a PlanSnapshot"),
        (lambda found: found.update(format=99), "has format 99 of .orderkit.dev/v1alpha1.; this"),
        (lambda found: found.pop("orders"), "is damaged: KeyError"),
        (lambda found: found["objects"].append({}), "is damaged: ValueError"),
    ],
)
def test_what_is_no_snapshot_of_this_format_is_refused(change: Any, told: str) -> None:
    found = json.loads(to_text(a_snapshot()))
    change(found)

    with pytest.raises(InvalidInputError, match=told):
        from_text(json.dumps(found), name="x.json")


def test_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="is not JSON"):
        from_text("kind: PlanSnapshot", name="x.json")


def test_a_snapshot_of_other_orders_names_them() -> None:
    with pytest.raises(InvalidInputError, match="'c' is not in it: it is of b, a"):
        a_snapshot().order("c")


class _Place:
    """A place with a few objects."""

    def __init__(self, *objects: Manifest) -> None:
        self._objects = {ObjectKey.of(each): each for each in objects}

    def get(self, key: ObjectKey) -> Manifest | None:
        return self._objects.get(key)

    def list(self, kind: Kind, *, namespace: str | None = None) -> ObjectList:
        items = (
            m
            for k, m in self._objects.items()
            if k.kind == kind and namespace in {None, k.namespace}
        )
        return ObjectList(tuple(items), "1")

    def plural(self, kind: Kind) -> str | None:
        return "configmaps" if kind == CONFIG else None

    def serves(self, kind: Kind) -> bool:
        return self.plural(kind) is not None

    def openapi(self, group: str, version: str) -> None:  # noqa: ARG002 - the port's names
        return None


def key(name: str, kind: Kind = CONFIG) -> ObjectKey:
    return ObjectKey(kind, name, "home")


def test_a_replay_answers_as_the_place_did_and_tells_what_nobody_asked() -> None:
    recorder = PlanRecorder("a")
    place = recorder.wrap(
        _Place(an_object("m"), an_object("n"), an_object("s", "Secret", data={"k": "v"}))
    )
    assert place is not None
    assert (place.serves(CONFIG), place.serves(SECRET)) == (True, False)
    asked = [place.get(key("m")), place.get(key("missing")), place.get(key("s", SECRET))]

    replay = Replay(from_text(to_text(recorder.snapshot()), name="x.json"))

    assert replay.get(key("m")) == cleaned(asked[0] or {})
    assert replay.get(key("missing")) is None
    assert (replay.plural(CONFIG), replay.serves(SECRET)) == ("configmaps", False)
    assert not replay.missed
    assert replay.get(key("n")) is None
    assert replay.get(key("s", SECRET)) is not None
    assert replay.missed == [
        "ConfigMap home/n was not asked for when the snapshot was recorded",
        "Secret home/s is in the snapshot without its values",
    ]


def test_a_replay_lists_what_was_listed() -> None:
    recorder = PlanRecorder("a")
    place = recorder.wrap(_Place(an_object("m"), an_object("n")))
    assert place is not None
    place.list(CONFIG, namespace="home")

    replay = Replay(from_text(to_text(recorder.snapshot()), name="x.json"))

    assert [m["metadata"]["name"] for m in replay.list(CONFIG, namespace="home").items] == [
        "m",
        "n",
    ]
    assert replay.get(key("other")) is None
    assert not replay.missed
    assert replay.list(SECRET).items == ()
    assert replay.missed == ["Secret was not listed when the snapshot was recorded"]


def test_a_replay_tells_which_kind_nobody_asked_about() -> None:
    replay = Replay(a_snapshot(plurals={CONFIG: "configmaps"}))

    assert (replay.serves(CONFIG), replay.serves(SECRET)) == (True, True)
    assert replay.missed == [
        "whether Secret is served was not asked when the snapshot was recorded"
    ]


def test_a_recorded_object_lacks_the_fields_that_come_from_secrets() -> None:
    recorder = PlanRecorder("a")
    place = recorder.wrap(_Place(an_object("m", data={"k": "hush", "other": "v"})))
    assert place is not None
    found = place.get(key("m"))
    assert found is not None
    recorder.leave_out({"m": found}, [("m", ("data", "k")), ("gone", ("data", "k"))])

    text = to_text(recorder.snapshot())

    assert "hush" not in text
    assert '"other"' in text


def test_an_order_without_a_name_cannot_be_planned_from_a_snapshot() -> None:
    nameless = RecordedOrder("a", "thing", {**XR, "metadata": {}})

    with pytest.raises(OrderkitError, match="the snapshot's XR of a has no name"):
        check_one(PlanSnapshot((nameless,), "", {}, ()), "a")


def test_what_a_cluster_does_not_serve_is_recorded_as_absent(tmp_path: Path) -> None:
    absent = Kind("absent.example.org", "v1", "Absent")
    recorder = PlanRecorder()
    with closing(EmbeddedCluster(tmp_path / "cluster.sqlite")) as cluster:
        recorded = recorder.wrap(cluster)
        assert recorded is not None
        with pytest.raises(NoSuchKindError):
            recorded.get(ObjectKey(absent, "a"))
        with pytest.raises(NoSuchKindError):
            recorded.list(absent)

    found = recorder.snapshot()

    assert (found.requested, found.listings, found.objects) == (
        (ObjectKey(absent, "a"),), ((absent, ""),), (),
    )  # fmt: skip


def test_a_snapshot_of_another_xrd_is_told() -> None:
    kit, recorder = bay_kit(), PlanRecorder()
    recorder.note(ORDERS[0], kit)
    snapshot = recorder.snapshot()

    assert differs(snapshot, [kit]) == ()
    assert differs(snapshot, [bay_kit(strategy="None")]) == (
        f"the XRD of {kit.kind} is not the one that the snapshot was recorded with",
    )
