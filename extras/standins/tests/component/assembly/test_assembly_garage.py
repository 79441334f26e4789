"""The kit garage, assembled on the embedded cluster from the files of the pack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, Kind, Manifest, ObjectKey, metadata

if TYPE_CHECKING:
    from extras.standins.tests.component.assembly.conftest import Lab

XGARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")


@pytest.fixture(scope="module", autouse=True)
def kit(lab: Lab) -> None:
    for path in (
        "gitops/functions/functions.yaml",
        "gitops/apis/garage/definition.yaml",
        "gitops/apis/garage/composition.yaml",
    ):
        lab.deliver(path)
    lab.wait("kind XGarage", lambda: lab.cluster.serves(XGARAGE))


def order(lab: Lab, team: str, stage: str = "stage2") -> Manifest:
    lab.apply(
        {
            "apiVersion": XGARAGE.api_version,
            "kind": XGARAGE.kind,
            "metadata": {"name": f"garage-{team}"},
            "spec": {"teamName": team, "stage": stage},
        }
    )
    return lab.wait_ready(f"garage-{team}", kind=XGARAGE)


def sheet(lab: Lab, team: str) -> Manifest:
    return lab.wait(
        "the spec sheet", lambda: lab.get(CONFIG_MAP, "spec-sheet", f"garage-{team}") or {}
    )


@pytest.mark.parametrize("team", ["ae86", "yes", "null", "off"])
def test_an_order_becomes_a_bay_with_a_spec_sheet_of_texts(lab: Lab, team: str) -> None:
    xr = order(lab, team)

    assert sheet(lab, team)["data"] == {"stage": "stage2", "team": team}
    assert xr["status"]["namespace"] == f"garage-{team}"
    assert [r["kind"] for r in xr["spec"]["crossplane"]["resourceRefs"]] == [
        "ConfigMap",
        "Namespace",
    ]


def test_composed_objects_name_their_order(lab: Lab) -> None:
    xr = order(lab, "rx7")

    meta = metadata(sheet(lab, "rx7"))
    assert meta["labels"]["crossplane.io/composite"] == "garage-rx7"
    assert meta["annotations"]["crossplane.io/composition-resource-name"] == "spec-sheet"
    assert meta["ownerReferences"][0]["uid"] == metadata(xr)["uid"]


def test_gating_on_the_namespace_leaves_no_warning(lab: Lab) -> None:
    order(lab, "gt86")
    lab.wait_event("garage-gt86", "is not yet ready")

    assert lab.events("garage-gt86", "Warning") == []


def test_a_deleted_spec_sheet_comes_back(lab: Lab) -> None:
    order(lab, "mx5")
    uid = metadata(sheet(lab, "mx5"))["uid"]

    lab.cluster.delete(ObjectKey(CONFIG_MAP, "spec-sheet", "garage-mx5"))

    lab.wait("another spec sheet", lambda: metadata(sheet(lab, "mx5")).get("uid") != uid)
    assert sheet(lab, "mx5")["data"]["team"] == "mx5"


def test_what_the_order_owns_is_repaired_and_what_it_does_not_own_stays(lab: Lab) -> None:
    order(lab, "s2000")
    key = ObjectKey(CONFIG_MAP, "spec-sheet", "garage-s2000")

    lab.cluster.patch(key, {"data": {"stage": "stage9", "note": "by hand"}}, owner="person")

    lab.wait("the repair", lambda: sheet(lab, "s2000")["data"].get("stage") == "stage2")
    assert sheet(lab, "s2000")["data"]["note"] == "by hand"


@pytest.mark.parametrize("lost", ["labels", "ownerReferences"])
def test_removed_metadata_comes_back(lab: Lab, lost: str) -> None:
    team = f"lost-{lost[:5].lower()}"
    order(lab, team)
    key = ObjectKey(CONFIG_MAP, "spec-sheet", f"garage-{team}")

    lab.cluster.patch(key, {"metadata": {lost: None}}, owner="person")

    lab.wait(f"{lost} to come back", lambda: metadata(sheet(lab, team)).get(lost))


def test_a_change_arrives_and_is_reported_at_its_generation(lab: Lab) -> None:
    order(lab, "evo9")

    xr = order(lab, "evo9", "stage3")

    assert sheet(lab, "evo9")["data"]["stage"] == "stage3"
    assert xr["status"]["stage"] == "stage3"


def test_a_deleted_order_leaves_nothing(lab: Lab) -> None:
    order(lab, "wrx")

    lab.cluster.delete(ObjectKey(XGARAGE, "garage-wrx"))

    lab.wait("the order's end", lambda: lab.get(XGARAGE, "garage-wrx") is None)
    lab.wait("the bay's end", lambda: lab.get(NAMESPACE, "garage-wrx") is None)
    assert lab.get(CONFIG_MAP, "spec-sheet", "garage-wrx") is None
