"""
Which Composition and revision an XR gets: the embedded Crossplane, plans, and a live core agree.

The live core is the one of ``test_core_scenes``. Nothing is composed here: what was chosen stands
in the XR.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.crossplane import cores

from compositions.composition_choice import choose_in_the_end
from ground.objects.kube_objects import (
    COMPOSITION_REVISION,
    FUNCTION,
    Kind,
    Manifest,
    ObjectKey,
    dig,
    labels_of,
    metadata,
)
from kubeschema.xrd import XRD_KIND, machinery_path, xr_kind
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.flows.composing.cluster_questions import looked_up
from orderkit.ports.cluster import Cluster
from orderkit_standins.cluster import EmbeddedCluster
from orderkit_standins.crossplane import EmbeddedCrossplane, crossplane_crds

OWNER = "choices"
GROUP = "choices.example.org"
AUTO_READY = "function-auto-ready"
PATIENCE_S = 30.0


@dataclass(frozen=True)
class Case:
    reason: str
    kind: str
    machinery: Mapping[str, Any]
    composition: str
    revision: str
    """``a1``: the first revision of Composition a; empty: none."""
    error: str = ""


def ref(name: str) -> dict[str, str]:
    return {"name": name}


def labels(**wanted: str) -> dict[str, Any]:
    return {"matchLabels": wanted}


CASES = [
    Case("a named Composition", "XFree", {"compositionRef": "b"}, "b", "b1"),
    Case("a selected Composition", "XFree", {"compositionSelector": labels(lane="a")}, "a", "a2"),
    Case(
        "no Composition matches", "XFree", {"compositionSelector": labels(lane="z")}, "", "",
        "cannot select Composition: no compatible Compositions found",
    ),
    Case(
        "Automatic: the revision selector counts", "XFree",
        {"compositionRef": "a", "compositionRevisionSelector": labels(channel="stable")}, "a", "a1",
    ),
    Case(
        "Manual without a revision: the selector does not count", "XFree",
        {
            "compositionRef": "a", "compositionUpdatePolicy": "Manual",
            "compositionRevisionSelector": labels(channel="stable"),
        }, "a", "a2",
    ),
    Case(
        "Manual with a revision is pinned", "XFree",
        {
            "compositionRef": "a", "compositionUpdatePolicy": "Manual",
            "compositionRevisionRef": "a1",
        }, "a", "a1",
    ),
    Case(
        "Automatic leaves an old revision", "XFree",
        {"compositionRef": "a", "compositionRevisionRef": "a1"}, "a", "a2",
    ),
    Case(
        "a pinned revision is not checked against the Composition", "XFree",
        {
            "compositionRef": "b", "compositionUpdatePolicy": "Manual",
            "compositionRevisionRef": "a1",
        }, "b", "a1",
    ),
    Case(
        "a pinned revision that does not exist", "XFree",
        {
            "compositionRef": "a", "compositionUpdatePolicy": "Manual",
            "compositionRevisionRef": "gone",
        }, "a", "gone",
        "cannot fetch Composition: cannot get CompositionRevision: "
        'CompositionRevision.apiextensions.crossplane.io "gone" not found',
    ),
    Case("the XRD enforces", "XEnforced", {"compositionRef": "b"}, "a", "a2"),
    Case(
        "a pinned revision escapes what the XRD enforces", "XEnforced",
        {"compositionUpdatePolicy": "Manual", "compositionRevisionRef": "b1"}, "a", "b1",
    ),
    Case("the XRD's defaults", "XDefault", {}, "a", "a1"),
    Case(
        "a revision is there already: no default selector", "XDefault",
        {"compositionRevisionRef": "a1"}, "a", "a2",
    ),
    Case(
        "the default selector fits no revision of the named Composition", "XDefault",
        {"compositionRef": "b"}, "b", "",
        "cannot fetch Composition: no compatible CompositionRevisions found",
    ),
    Case("a legacy XR has the fields in spec", "XLegacy", {"compositionRef": "b"}, "b", "b1"),
    Case(
        "a legacy XR refuses a revision for another kind", "XLegacy",
        {
            "compositionRef": "a", "compositionUpdatePolicy": "Manual",
            "compositionRevisionRef": "XFree/a1",
        }, "a", "XFree/a1",
        "cannot configure composite resource: referenced composition is not compatible",
    ),
]  # fmt: skip
KINDS: Mapping[str, Mapping[str, Any]] = {
    "XFree": {},
    "XEnforced": {"enforcedCompositionRef": ref("xenforced-a")},
    "XDefault": {
        "defaultCompositionRef": ref("xdefault-a"),
        "defaultCompositionRevisionSelector": labels(channel="stable"),
    },
    "XLegacy": {"scope": "LegacyCluster"},
}


def definition(kind: str) -> Manifest:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "properties": {"spec": {"type": "object"}}}
    version = {"name": "v1", "served": True, "referenceable": True}
    legacy = KINDS[kind].get("scope") == "LegacyCluster"
    return {
        "apiVersion": f"apiextensions.crossplane.io/{'v1' if legacy else 'v2'}",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": kind, "plural": plural},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
            **({"scope": "Cluster"} | dict(KINDS[kind])),
        },
    }


def composition(kind: str, letter: str, channel: str) -> Manifest:
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {
            "name": f"{kind.lower()}-{letter}", "labels": {"lane": letter, "channel": channel},
        },
        "spec": {
            "compositeTypeRef": {"apiVersion": f"{GROUP}/v1", "kind": kind},
            "mode": "Pipeline",
            "pipeline": [{"step": "ready", "functionRef": ref(AUTO_READY)}],
        },
    }  # fmt: skip


@dataclass(frozen=True)
class Core:
    """A cluster on which Crossplane runs, and the revisions there, as ``XFree/a1``."""

    cluster: Cluster
    revisions: dict[str, str] = field(default_factory=dict)

    def full_name(self, kind: str, short: str) -> str:
        return self.revisions.get(short if "/" in short else f"{kind}/{short}", short)


def eventually(look: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (answer := look()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return answer


def furnish(cluster: Cluster) -> Core:
    """Make the kinds; Composition a of each has a stable revision and a newer one."""
    core = Core(cluster)
    for kind in KINDS:
        xrd = definition(kind)
        cluster.apply(xrd, owner=OWNER)
        for letter, channel, name in (("a", "stable", "a1"), ("b", "none", "b1"), ("a", "", "a2")):
            cluster.apply(composition(kind, letter, channel), owner=OWNER)
            found = partial(newest, cluster, kind, channel, name)
            core.revisions[f"{kind}/{name}"] = eventually(found)
        assert eventually(partial(cluster.serves, xr_kind(xrd)))
    return core


def newest(cluster: Cluster, kind: str, channel: str, name: str) -> str:
    """Return the revision of a Composition with this channel, once it is there."""
    for revision in cluster.list(COMPOSITION_REVISION).items:
        of = labels_of(revision)
        chain = (of.get("crossplane.io/composition-name"), of.get("channel"))
        if chain == (f"{kind.lower()}-{name[0]}", channel):
            return str(metadata(revision)["name"])
    return ""


@pytest.fixture(scope="module")
def on_embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Core]:
    cluster = EmbeddedCluster(tmp_path_factory.mktemp("choices") / "cluster.sqlite")
    for crd in crossplane_crds():
        cluster.apply(crd, owner=OWNER)
    package = {"package": f"registry.example.org/{AUTO_READY}:v1.0.0"}
    meta = {"apiVersion": FUNCTION.api_version, "kind": FUNCTION.kind, "metadata": ref(AUTO_READY)}
    cluster.apply({**meta, "spec": package}, owner=OWNER)
    assembly = EmbeddedCrossplane(cluster, cores.functions())
    assembly.start()
    yield furnish(cluster)
    assembly.stop()
    cluster.close()


@pytest.fixture(scope="module")
def on_live() -> Iterator[Core]:
    kubeconfig = os.environ.get(cores.CORE_VARIABLE)
    if not kubeconfig:
        pytest.skip(f"no live core: {cores.CORE_VARIABLE} names none")
    with KubeCluster.from_kubeconfig(Path(kubeconfig)) as cluster:
        yield furnish(cluster)


@pytest.fixture(params=["embedded", "live"])
def core(request: pytest.FixtureRequest) -> Core:
    found: Core = request.getfixturevalue(f"on_{request.param}")
    return found


def xr_of(case: Case, core: Core) -> Manifest:
    machinery = dict(case.machinery)
    for name in {"compositionRef", "compositionRevisionRef"} & machinery.keys():
        is_revision = name == "compositionRevisionRef"
        value = machinery[name]
        full = core.full_name(case.kind, value) if is_revision else f"{case.kind.lower()}-{value}"
        machinery[name] = ref(full)
    spec = machinery if case.kind == "XLegacy" else {"crossplane": machinery} if machinery else {}
    number = CASES.index(case)
    return {
        "apiVersion": f"{GROUP}/v1", "kind": case.kind,
        "metadata": {"name": f"choice-{number}"}, "spec": spec,
    }  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_an_xr_gets_the_revision(core: Core, case: Case) -> None:
    wanted = (
        f"{case.kind.lower()}-{case.composition}" if case.composition else None,
        core.full_name(case.kind, case.revision) or None,
    )
    xr = xr_of(case, core)
    key = ObjectKey(Kind(GROUP, "v1", case.kind), metadata(xr)["name"])
    core.cluster.apply(xr, owner=OWNER)

    def state() -> tuple[Any, Any, str]:
        live = core.cluster.get(key) or {}
        path = machinery_path(definition(case.kind))
        said = [c for c in dig(live, "status", "conditions", default=[]) if c["type"] == "Synced"]
        return (
            dig(live, *path, "compositionRef", "name"),
            dig(live, *path, "compositionRevisionRef", "name"),
            said[0].get("message", "") if said else "",
        )

    def is_as_wanted() -> bool:
        *chosen, message = state()
        return tuple(chosen) == wanted and case.error in message

    assert eventually(is_as_wanted), (state(), wanted)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_a_plan_chooses_the_same(core: Core, case: Case) -> None:
    xrd = core.cluster.get(ObjectKey(XRD_KIND, metadata(definition(case.kind))["name"])) or {}
    find = partial(looked_up, core.cluster)
    choice = choose_in_the_end(xr_of(case, core), xrd, find, lambda names: names[0])

    assert case.error in choice.error
    if not case.error:
        assert choice.revision is not None
        chosen = (choice.composition, metadata(choice.revision)["name"])
        revision = core.full_name(case.kind, case.revision)
        assert chosen == (f"{case.kind.lower()}-{case.composition}", revision)
