"""The delivery tree of this repository, delivered: layers in order, nothing lost when one goes."""

from __future__ import annotations

import functools
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from ground.objects.kube_objects import (
    COMPOSITION,
    CONFIG_MAP,
    FUNCTION,
    XRD,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
)
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.core.platform.delivery_tree import ROOT
from orderkit.core.platform.installation import Installation, PlatformTarget
from orderkit.flows.install.pack_rendering import PlatformValues, render_pack

if TYPE_CHECKING:
    from extras.standins.tests.component.delivery.conftest import Lab

FORGE = "http://127.0.0.1:7300"
ON_EMBEDDED = PlatformValues(
    FORGE, "0" * 40, "registry.invalid", installation=Installation(PlatformTarget.EMBEDDED)
)


@functools.cache
def tree() -> dict[PurePosixPath, bytes]:
    """The delivery tree as it is published to an embedded platform."""
    files = render_pack(read_folder(reference_pack()), ON_EMBEDDED)
    return {path: data for path, data in files.items() if path.parts[0] == "gitops"}


def documents(folder: str) -> list[Manifest]:
    """Every manifest below a folder of gitops/."""
    inside = PurePosixPath("gitops", folder)
    return [
        one
        for path, data in sorted(tree().items())
        if path.is_relative_to(inside) and path.suffix == ".yaml"
        for one in yaml.safe_load_all(data)
        if one
    ]


def published(lab: Lab) -> Manifest:
    """Publish the tree and an empty ledger; return the root Application."""
    lab.apply(lab.crd(FUNCTION), lab.crd(COMPOSITION))
    lab.push("platform/pack", {str(path): data.decode() for path, data in tree().items()})
    lab.push("platform/ledger", {"teams/.gitkeep": ""})
    root: Manifest = yaml.safe_load(tree()[ROOT])
    return root


def set_all(lab: Lab, kind: Any, **conditions: str) -> None:
    """Give every object of a kind the same conditions."""
    for one in lab.cluster.list(kind).items:
        lab.set_conditions(kind, one["metadata"]["name"], **conditions)


def test_each_layer_begins_when_the_one_before_is_healthy(lab: Lab) -> None:
    lab.apply(published(lab))

    lab.wait("functions", lambda: lab.operation("functions").get("phase") == "Succeeded")
    set_all(lab, FUNCTION, Installed="True")
    lab.wait(
        "the wait",
        lambda: "Application/functions" in lab.operation("root").get("message", ""),
    )
    assert not lab.app("apis")

    set_all(lab, FUNCTION, Installed="True", Healthy="True")
    lab.wait("definitions", lambda: lab.get(XRD, "xgarages.blog.opsbogus.dev"))
    lab.wait("the wait", lambda: "Application/apis" in lab.operation("root").get("message", ""))
    assert not lab.app("ledger")

    set_all(lab, XRD, Established="True")
    lab.wait(
        "the ledger",
        lambda: dig(lab.app("ledger"), "status", "sync", "status") == "Synced",
    )
    lab.wait("the root", lambda: dig(lab.app("root"), "status", "health", "status") == "Healthy")


def test_deleting_the_root_and_every_layer_deletes_nothing_else(lab: Lab) -> None:
    lab.apply(published(lab))
    lab.wait("functions", lambda: lab.operation("functions").get("phase") == "Succeeded")
    set_all(lab, FUNCTION, Installed="True", Healthy="True")
    lab.wait("definitions", lambda: lab.get(XRD, "xgarages.blog.opsbogus.dev"))
    set_all(lab, XRD, Established="True")
    lab.wait("the ledger", lambda: lab.app("ledger"))
    lab.wait("the end of the sync", lambda: lab.operation("root").get("phase") == "Succeeded")

    for name in ("root", "ledger", "apis", "functions", "argocd-settings"):
        lab.cluster.delete(ObjectKey.of(lab.app(name)))
        lab.wait("the end", lambda name=name: not lab.app(name))  # type: ignore[misc]  # a default binds the loop variable

    assert lab.get(XRD, "xgarages.blog.opsbogus.dev")
    assert lab.cluster.list(FUNCTION).items
    assert lab.map_data("argocd-cm", "argocd")


def test_argocd_has_a_health_check_for_every_kind_that_a_kit_defines() -> None:
    (settings,) = [one for one in documents("argocd") if one["kind"] == CONFIG_MAP.kind]
    defined = [one["spec"] for one in documents("apis") if one["kind"] == XRD.kind]

    assert defined
    for spec in defined:
        key = f"resource.customizations.health.{spec['group']}_{spec['names']['kind']}"
        assert key in settings["data"]
    assert "resource.customizations.health.argoproj.io_Application" in settings["data"]


@pytest.mark.parametrize("kind", [XRD.kind, COMPOSITION.kind])
def test_what_all_orders_hang_on_is_never_pruned(kind: str) -> None:
    for one in documents("apis"):
        if one["kind"] == kind:
            options = annotations_of(one)["argocd.argoproj.io/sync-options"]
            assert {"Prune=false", "Delete=false"} <= set(options.split(","))
