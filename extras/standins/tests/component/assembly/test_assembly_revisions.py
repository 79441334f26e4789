"""Compositions: revisions, which one an order gets, and the health of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ground.objects.kube_objects import (
    COMPOSITION,
    COMPOSITION_REVISION,
    FUNCTION,
    Kind,
    Manifest,
    ObjectKey,
    condition,
    dig,
    metadata,
)

if TYPE_CHECKING:
    from extras.standins.tests.component.assembly.conftest import Lab

APP = Kind("lab.example.org", "v1", "App")
CAR = Kind("revs.example.org", "v1", "Car")
NAME_LABEL = "crossplane.io/composition-name"


@pytest.fixture(scope="module", autouse=True)
def cars(lab: Lab) -> None:
    """A kind without default Composition."""
    lab.apply(lab.xrd(CAR, "cars"))
    lab.wait("kind Car", lambda: lab.cluster.serves(CAR))


def order(lab: Lab, name: str, kind: Kind = CAR, **machinery: Any) -> None:
    lab.says[name] = lambda *_: None
    lab.apply(
        {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": name},
            "spec": {"size": 1, **({"crossplane": machinery} if machinery else {})},
        }
    )


def revisions(lab: Lab, composition: str) -> dict[int, Manifest]:
    found = lab.cluster.list(COMPOSITION_REVISION, labels={NAME_LABEL: composition}).items
    return {revision["spec"]["revision"]: revision for revision in found}


def revision_of(lab: Lab, name: str, kind: Kind = CAR) -> str:
    xr = lab.get(kind, name) or {}
    return str(dig(xr, "spec", "crossplane", "compositionRevisionRef", "name"))


def annotate(lab: Lab, composition: str, value: str | None) -> None:
    patch = {"metadata": {"annotations": {"lab": value}}}
    lab.cluster.patch(ObjectKey(COMPOSITION, composition), patch, owner="person")


def test_a_composition_has_a_revision_named_by_its_content(lab: Lab) -> None:
    lab.apply(lab.composition("named", CAR, labels={"channel": "stable"}))

    revision = lab.wait("the revision", lambda: revisions(lab, "named"))[1]

    labels = metadata(revision)["labels"]
    digest = labels["crossplane.io/composition-hash"]
    assert metadata(revision)["name"] == f"named-{digest[:7]}"
    assert len(digest) == 63
    assert labels["channel"] == "stable"
    assert metadata(revision)["ownerReferences"][0]["name"] == "named"
    lab.wait(
        "ValidPipeline",
        lambda: condition(revisions(lab, "named")[1], "ValidPipeline"),
    )


def test_orders_follow_new_revisions_unless_they_are_manual(lab: Lab) -> None:
    lab.apply(lab.composition("rolling", CAR))
    ref = {"name": "rolling"}
    order(lab, "follows", compositionRef=ref)
    order(lab, "stays", compositionRef=ref, compositionUpdatePolicy="Manual")
    lab.wait_ready("follows", kind=CAR)
    lab.wait_ready("stays", kind=CAR)
    first = revision_of(lab, "stays")

    annotate(lab, "rolling", "changed")

    lab.wait("the move", lambda: revision_of(lab, "follows") != first)
    second = revision_of(lab, "follows")
    assert metadata(revisions(lab, "rolling")[2])["name"] == second
    assert revision_of(lab, "stays") == first

    annotate(lab, "rolling", None)
    lab.wait("the way back", lambda: revision_of(lab, "follows") == first)
    assert sorted(revisions(lab, "rolling")) == [2, 3], "the old revision has a new number"


def test_an_order_without_a_composition_is_told_and_takes_the_first_that_fits(lab: Lab) -> None:
    order(lab, "alone", compositionSelector={"matchLabels": {"engine": "rotary"}})
    assert lab.wait_status("alone", "Synced", "False", kind=CAR) == (
        "False cannot select Composition: no compatible Compositions found"
    )

    lab.apply(lab.composition("rotary", CAR, labels={"engine": "rotary"}))

    xr = lab.wait_ready("alone", kind=CAR)
    assert xr["spec"]["crossplane"]["compositionRef"] == {"name": "rotary"}
    lab.wait_event("alone", "Successfully selected composition: rotary")
    lab.wait_event("alone", f"Selected composition revision: {revision_of(lab, 'alone')}")


def test_one_of_several_matching_compositions_is_picked_with_a_warning(lab: Lab) -> None:
    labels = {"engine": "boxer"}
    for name in ("boxer-1", "boxer-2"):
        lab.apply(lab.composition(name, CAR, labels=labels))
    lab.apply(lab.composition("boxer-app", APP, labels=labels))

    order(lab, "picked", compositionSelector={"matchLabels": labels})

    xr = lab.wait_ready("picked", kind=CAR)
    assert xr["spec"]["crossplane"]["compositionRef"]["name"] in {"boxer-1", "boxer-2"}
    lab.wait_event("picked", "2 Compositions match (boxer-1, boxer-2)")


def test_an_enforced_composition_wins_over_the_one_an_order_names(lab: Lab) -> None:
    tram = Kind("revs.example.org", "v1", "Tram")
    for name in ("tram-enforced", "tram-wished"):
        lab.apply(lab.composition(name, tram))
    lab.apply(lab.xrd(tram, "trams", enforcedCompositionRef={"name": "tram-enforced"}))
    lab.wait("kind Tram", lambda: lab.cluster.serves(tram))

    order(lab, "tram", tram, compositionRef={"name": "tram-wished"})

    xr = lab.wait_ready("tram", kind=tram)
    assert xr["spec"]["crossplane"]["compositionRef"] == {"name": "tram-enforced"}


def test_a_revision_that_lost_its_owner_is_taken_back(lab: Lab) -> None:
    lab.apply(lab.composition("restored", CAR))
    revision = lab.wait("the revision", lambda: revisions(lab, "restored"))[1]

    patch = {"metadata": {"ownerReferences": None}}
    lab.cluster.patch(ObjectKey.of(revision), patch, owner="person")
    annotate(lab, "restored", "touched")

    lab.wait(
        "the owner",
        lambda: all(
            metadata(found).get("ownerReferences") for found in revisions(lab, "restored").values()
        ),
    )


def health(lab: Lab, name: str) -> Manifest:
    return lab.wait(
        f"health of {name}", lambda: condition(lab.get(FUNCTION, name) or {}, "Healthy") or {}
    )


def test_a_function_is_healthy_if_this_process_runs_it(lab: Lab) -> None:
    assert health(lab, "function-auto-ready")["status"] == "True"


def test_any_other_function_says_that_it_does_not_run_and_holds_nothing_back(lab: Lab) -> None:
    lab.apply(lab.function_object("function-kcl"))

    found = health(lab, "function-kcl")
    assert (found["status"], found["reason"]) == ("True", "NotRunHere")
    assert found["message"].startswith("it does not run here; ")
    assert (condition(lab.get(FUNCTION, "function-kcl") or {}, "Installed") or {})[
        "status"
    ] == "True"
