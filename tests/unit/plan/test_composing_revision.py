"""Which revision of which Composition a plan takes, with the cluster and without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from outcomes import GROUP, definition

from compositions.station import Selector
from ground.objects.kube_objects import COMPOSITION_REVISION, Kind, Manifest, labels_of
from orderkit.core.plan.composing_revision import composing_revision

XRD = definition("XShop")
NAME = "crossplane.io/composition-name"


def composition(name: str, step: str = "of the pack") -> Manifest:
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": name, "labels": {"size": "any"}},
        "spec": {
            "compositeTypeRef": {"apiVersion": f"{GROUP}/v1", "kind": "XShop"},
            "mode": "Pipeline",
            "pipeline": [{"step": step, "functionRef": {"name": "f"}}],
        },
    }


SHOPS = {"shops": composition("shops")}


def an_xr(**machinery: Any) -> Manifest:
    xr = {"apiVersion": f"{GROUP}/v1", "kind": "XShop", "metadata": {"name": "one"}}
    return {**xr, "spec": {"crossplane": machinery}}


def revision(name: str, **labels: str) -> Manifest:
    """Return a revision of the cluster's own Composition of that name."""
    owner = {"kind": "Composition", "name": "shops", "uid": "of-the-cluster", "controller": True}
    meta = {"name": name, "labels": {NAME: "shops", **labels}, "ownerReferences": [owner]}
    spec = composition("shops", "of the cluster")["spec"]
    return {
        "apiVersion": COMPOSITION_REVISION.api_version,
        "kind": COMPOSITION_REVISION.kind,
        "metadata": meta,
        "spec": {**spec, "revision": 3},
    }


def holding(*objects: Manifest) -> Callable[[Selector], list[Manifest]]:
    def lookup(selector: Selector) -> list[Manifest]:
        kind = Kind.parse(selector.api_version, selector.kind)
        return [
            found
            for found in objects
            if Kind.of(found) == kind
            and selector.name in ("", found["metadata"]["name"])
            and selector.labels.items() <= labels_of(found).items()
        ]

    return lookup


MANUAL = {"compositionUpdatePolicy": "Manual", "compositionRevisionRef": {"name": "shops-7"}}
OLD = {"compositionRevisionSelector": {"matchLabels": {"channel": "old"}}}


def test_an_xr_that_chooses_nothing_has_the_newest_of_the_pack() -> None:
    found = composing_revision(an_xr(), XRD, SHOPS, holding(), asks_cluster=True)

    assert [step.name for step in found.steps] == ["of the pack"]
    assert (found.composition, found.pinned, found.error) == ("shops", "", "")
    assert (found.unknowns, found.assumed) == ((), ())


def test_without_the_cluster_a_pinned_revision_is_assumed_and_that_is_told() -> None:
    pinned = an_xr(compositionRef={"name": "shops"}, **MANUAL)

    found = composing_revision(pinned, XRD, SHOPS, holding(), asks_cluster=False)
    again = composing_revision(
        pinned, XRD, {"shops": composition("shops", "changed")}, holding(*found.assumed),
        asks_cluster=False,
    )  # fmt: skip

    text = "the cluster was not asked for CompositionRevision shops-7: Composition shops of"
    assert found.unknowns == (f"{text} the pack is assumed",)
    assert found.pinned == "compositionUpdatePolicy Manual pins it to CompositionRevision shops-7"
    assert [step.name for step in found.steps] == ["of the pack"]
    assert again.steps == found.steps, "another pack assumes the same"


def test_with_the_cluster_what_is_not_there_is_an_error() -> None:
    pinned = an_xr(compositionRef={"name": "shops"}, **MANUAL)

    found = composing_revision(pinned, XRD, SHOPS, holding(), asks_cluster=True)

    assert "CompositionRevision" in found.error
    assert found.steps == ()


def test_a_revision_selector_keeps_an_xr_at_what_the_cluster_has() -> None:
    xr = an_xr(compositionRef={"name": "shops"}, compositionUpdatePolicy="Automatic", **OLD)

    there = holding(revision("shops-3", channel="old"))
    found = composing_revision(xr, XRD, SHOPS, there, asks_cluster=True)
    offline = composing_revision(xr, XRD, SHOPS, holding(), asks_cluster=False)

    text = "compositionRevisionSelector channel=old keeps it at CompositionRevision"
    assert [step.name for step in found.steps] == ["of the cluster"]
    assert found.pinned == f"{text} shops-3"
    assert offline.pinned == f"{text} shops-assumed"
    assert len(offline.assumed) == 1


def test_of_several_that_match_the_plan_says_which_it_takes() -> None:
    both = {name: composition(name) for name in ("a", "b")}
    xr = an_xr(compositionSelector={"matchLabels": {"size": "any"}})

    found = composing_revision(xr, XRD, both, holding(composition("a")), asks_cluster=True)

    text = "Crossplane picks one of 2 Compositions at random (a, b); this plan takes a"
    assert found.unknowns == (text,)


def test_a_composition_that_only_the_cluster_has_is_not_the_packs() -> None:
    other = composition("other", "elsewhere")
    its = revision("other-1")
    its["metadata"]["labels"][NAME] = "other"
    other["metadata"]["uid"] = its["metadata"]["ownerReferences"][0]["uid"]
    its["metadata"]["ownerReferences"][0]["name"] = "other"
    xr = an_xr(compositionRef={"name": "other"})

    found = composing_revision(xr, XRD, SHOPS, holding(other, its), asks_cluster=True)

    assert [step.name for step in found.steps] == ["of the cluster"]
    assert found.pinned == "Composition other composes it, which is not the pack's"


def test_a_selector_that_matches_nothing_is_told_with_what_there_is() -> None:
    blue = {"compositionSelector": {"matchLabels": {"colour": "blue", "size": "any"}}}

    found = composing_revision(an_xr(**blue), XRD, SHOPS, holding(), asks_cluster=True)

    assert found.error == (
        "cannot select Composition: no compatible Compositions found: no Composition of XShop has"
        " the labels colour=blue, size=any; there is shops (size=any)"
    )
