"""What the live model keeps of the cluster, and whose it takes it to be."""

from __future__ import annotations

from typing import Any

import pytest

from ground.objects.kube_objects import TRACKING_ID, Kind, Manifest, ObjectKey
from orderkit.core.order.part_failures import MISSING
from orderkit.core.secret_values import APPLIED
from orderkit.flows.live.cluster_objects import KEPT_BYTES_MAX, ClusterObjects, application_text

XR = Kind("lab.example.org", "v1", "App")
PART = Kind("cloud.example.org", "v1", "Bucket")
READY = [{"type": kind, "status": "True"} for kind in ("Synced", "Ready")]
PASSWORD = "hunter2-hunter2"


def xr(name: str, *parts: ObjectKey, uid: str = "", owner: str = "", **status: Any) -> Manifest:
    meta: dict[str, Any] = {"name": name, "uid": uid or f"uid-{name}"}
    if owner:
        meta |= {"labels": {"crossplane.io/composite": owner}, "ownerReferences": by(owner)}
    else:
        meta["annotations"] = {TRACKING_ID: f"{name}:{XR.group}/{XR.kind}:/{name}"}
    references = [key.to_json() for key in parts]
    return {
        "apiVersion": XR.api_version,
        "kind": XR.kind,
        "metadata": meta,
        "spec": {"crossplane": {"resourceRefs": references}},
        "status": {"conditions": READY, **status},
    }


def by(owner: str) -> list[dict[str, Any]]:
    return [{"kind": XR.kind, "name": owner, "uid": f"uid-{owner}", "controller": True}]


def part(name: str, owner: str, kind: Kind = PART, **more: Any) -> Manifest:
    meta = {
        "name": name,
        "labels": {"crossplane.io/composite": owner},
        "ownerReferences": by(owner),
    }
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **more}


def key(name: str, kind: Kind = PART) -> ObjectKey:
    return ObjectKey(kind, name)


class Model:
    """Objects, and the orders that were said to have changed since somebody asked."""

    def __init__(self) -> None:
        self._changed: set[str] = set()
        self.objects = ClusterObjects(self._changed.add)

    def put(self, *manifests: Manifest) -> None:
        for manifest in manifests:
            self.objects.put(manifest, is_kits=manifest["kind"] == XR.kind)

    def changed(self) -> set[str]:
        changed = set(self._changed)
        self._changed.clear()
        return changed

    def parts(self, name: str) -> dict[str, str]:
        found = self.objects.parts(key(name, XR), lambda _: None)
        return {part.key.name: part.reason or part.ready for part in found}


def test_a_part_changes_the_order_above_it_also_through_a_nested_xr() -> None:
    model = Model()
    nested = xr("inner", key("b"), owner="app")
    model.put(xr("app", key("a"), key("inner", XR)), nested, part("a", "app"), part("b", "inner"))
    assert model.changed() == {"app"}

    model.put(part("b", "inner", status={"conditions": [{"type": "Ready", "status": "False"}]}))

    assert model.changed() == {"app"}
    assert model.parts("app") == {"a": "-", "inner": "True", "b": "Ready is not True"}


def test_what_stays_as_it_was_changes_nothing() -> None:
    model = Model()
    model.put(xr("app", key("a")), part("a", "app", spec={"size": 1}))
    model.changed()

    model.put(xr("app", key("a")), part("a", "app", spec={"size": 2}))

    assert model.changed() == set()


def test_a_part_that_is_not_there_is_missing_until_it_comes_and_after_it_went() -> None:
    model = Model()
    model.put(xr("app", key("a")))
    assert model.parts("app") == {"a": MISSING}
    model.put(part("a", "app"))
    assert model.parts("app") == {"a": "-"}
    model.changed()

    model.objects.remove(key("a"))

    assert (model.parts("app"), model.changed()) == ({"a": MISSING}, {"app"})


def test_references_to_objects_of_another_order_show_nothing_of_them() -> None:
    model = Model()
    secret_reason = {"conditions": [{"type": "Ready", "status": "False", "message": PASSWORD}]}
    model.put(xr("theirs", key("vault")), part("vault", "theirs", status=secret_reason))
    model.put(xr("rogue", key("vault"), key("theirs", XR)))

    assert model.parts("rogue") == {}
    model.changed()
    model.put(part("vault", "theirs"))
    assert model.changed() == {"theirs"}


def test_xrs_that_refer_to_each_other_come_to_an_end() -> None:
    model = Model()
    model.put(xr("a", key("b", XR), owner="b"), xr("b", key("a", XR), owner="a"))

    assert set(model.parts("a")) == {"a", "b"}


def test_only_what_crossplane_composed_is_kept() -> None:
    model = Model()
    stranger = part("stranger", "app")
    stranger["metadata"]["labels"] = {}
    model.put(stranger)

    assert model.objects.keys(PART) == set()


def test_no_value_of_a_secret_is_kept() -> None:
    model = Model()
    secret = Kind("", "v1", "Secret")
    model.put(xr("app", key("login", secret)))
    model.put(part("login", "app", secret, data={"password": PASSWORD}))

    assert model.parts("app") == {"login": "-"}
    assert PASSWORD not in repr(vars(model.objects))


def test_a_large_object_is_cut_down_to_what_judges_it() -> None:
    model = Model()
    huge = xr("app", text="x" * KEPT_BYTES_MAX)
    huge["metadata"]["annotations"]["long"] = "y" * KEPT_BYTES_MAX
    model.put(huge)
    kept = model.objects.xr(key("app", XR))

    assert kept is not None
    assert len(repr(kept)) < KEPT_BYTES_MAX
    assert kept["metadata"]["annotations"].keys() == {TRACKING_ID}
    assert [entry["type"] for entry in kept["status"]["conditions"]] == ["Synced", "Ready"]


def test_an_application_with_very_many_resources_is_bounded() -> None:
    resources = [{"group": "", "kind": "ConfigMap", "name": f"c{n}"} for n in range(20_000)]
    failed = {"kind": "Bad", "name": "bad", "status": "SyncFailed", "message": "no"}
    results = [{**entry, "status": "Synced"} for entry in resources]
    text = application_text(
        {
            "metadata": {"name": "app", "annotations": {"a": "b" * 1_000_000, "c": "d"}},
            "status": {
                "sync": {"status": "Synced", "revision": "1" * 40},
                "resources": resources,
                "operationState": {"syncResult": {"resources": [*results, failed]}},
            },
        }
    )

    assert len(text) < KEPT_BYTES_MAX
    assert b"Synced" in text
    assert b'"c":"d"' in text


@pytest.mark.parametrize("references", ["x", ["x"], [{"name": "b"}], {"name": "b"}, [None]])
def test_references_that_are_none_compose_nothing(references: Any) -> None:
    model, odd = Model(), xr("app")
    odd["spec"]["crossplane"]["resourceRefs"] = references

    model.put(odd)

    assert model.parts("app") == {}
    assert model.changed() == {"app"}


def test_what_kubectl_keeps_of_an_object_is_not_kept_twice() -> None:
    odd = part("a", "app")
    odd["metadata"]["annotations"] = {APPLIED: PASSWORD, "note": "kept"}

    text = application_text(odd).decode()

    assert (PASSWORD in text, "kept" in text) == (False, True)
