"""What a pack says about outcomes: its definitions, schemas, rights, data, teams; and fleets."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml
from outcomes import GROUP, Shop, an_xr, config, crd, definition, thing, wanting

from compositions.granted_rights import AGGREGATE
from ground.errors import InvalidInputError
from ground.objects.kube_objects import Kind, Manifest
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.core.kit.pack import read_pack
from orderkit.core.plan import assemble, compare
from orderkit.core.plan.dangers import Code, DangerContext
from orderkit.core.plan.fleet_plan import OrderPlan, OrderVerdict, with_collisions
from orderkit.flows.composing.published_pack import laws_of, needed_files
from orderkit.flows.install.pack_rendering import PlatformValues, render_pack

TEAM = {"team": {"type": "string"}, "name": {"type": "string"}}


def pack_files(**pack_spec: Any) -> dict[PurePosixPath, bytes]:
    """Return the files of a pack with one kit, ``shop``."""
    head = {"apiVersion": "orderkit.dev/v1alpha1"}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "own", "labels": {AGGREGATE: "true"}},
        "rules": [],
    }
    kit = {
        "teamFrom": "team",
        "nameFrom": "name",
        "plan": {"dataKinds": [{"group": "example.org", "kind": "Shelf"}]},
    }
    required = definition("XShop", TEAM, required=["team", "name"])
    documents: dict[str, Any] = {
        "pack.yaml": {**head, "kind": "Pack", "metadata": {"name": "p"},
                      "spec": {"kits": ["shop"], **pack_spec}},
        "templates/shop/kit.yaml": {**head, "kind": "Kit", "metadata": {"name": "shop"},
                                    "spec": kit},
        "gitops/apis/shop/definition.yaml": required,
        "gitops/apis/shop/rbac.yaml": role,
        "gitops/providers/x/crd.yaml": crd("a.example.org", "Anchor", {}, scope="Cluster"),
        "schemas/deep/boats.yaml": crd("b.example.org", "Boat", {}),
        "schemas/README.md": "none",
        "gitops/apps/apis.yaml": {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"},
    }  # fmt: skip
    return {
        PurePosixPath(path): yaml.safe_dump(document).encode()
        for path, document in documents.items()
    }


def test_a_packs_definitions_schemas_and_roles_are_its_laws() -> None:
    files = needed_files(pack_files())
    pack = read_pack(files)
    laws = laws_of(pack, pack.kits())

    assert PurePosixPath("gitops/apps/apis.yaml") not in files
    assert set(laws.delivered) == {
        ("a.example.org", "Anchor"), ("b.example.org", "Boat"), (GROUP, "XShop"),
    }  # fmt: skip
    assert laws.scopes[Kind("a.example.org", "v1", "Anchor")] is False
    assert laws.scopes[Kind("b.example.org", "v1", "Boat")] is True
    assert laws.delivered[GROUP, "XShop"].granted
    assert [role["metadata"]["name"] for role in laws.roles] == ["own"]
    assert laws.team_fields == {(GROUP, "XShop"): "team"}


def test_kinds_that_hold_data_are_named_without_code() -> None:
    pack = read_pack(
        pack_files(plan={"dataKinds": [{"kind": "Anchor"}, {"kind": "Bucket", "holds": False}]})
    )

    laws = laws_of(pack, pack.kits())

    def lost(manifest: Manifest) -> set[Code]:
        before = assemble(an_xr({"a": 1}), Shop(wanting({"it": manifest})).workshop)
        after = assemble(an_xr({"a": 2}), Shop(wanting({})).workshop, observed=before.observed)
        return {
            danger.code for danger in compare(before, after, context=DangerContext(laws)).dangers
        }

    assert lost(thing("example.org/v1", "Shelf")) == {Code.DATA_LOSS}
    assert lost(thing("other.org/v1", "Shelf")) == set()
    assert lost(thing("any.org/v1", "Anchor")) == {Code.DATA_LOSS}
    assert lost(thing("storage.gcp.upbound.io/v1beta1", "Bucket")) == set()
    assert lost(thing("v1", "PersistentVolumeClaim", namespace="shop")) == {Code.DATA_LOSS}


def test_a_wrong_entry_is_told_with_file_and_line() -> None:
    with pytest.raises(InvalidInputError, match=r"pack.yaml:\d+"):
        read_pack(pack_files(plan={"dataKinds": [{"group": "example.org"}]}))


def test_a_broken_schema_of_a_pack_is_told() -> None:
    files = {**pack_files(), PurePosixPath("schemas/x.yaml"): b"a: [1"}

    with pytest.raises(InvalidInputError, match=r"schemas/x\.yaml"):
        laws_of(read_pack(files), ())


def test_a_fixed_name_is_right_for_one_order_and_a_fault_for_two() -> None:
    def planned(name: str, *maps: str) -> OrderPlan:
        xr = {**an_xr({}), "metadata": {"name": name}}
        own = config(f"own-{name}")
        before = assemble(xr, Shop(wanting({"own": own})).workshop)
        wants = {"own": own, **{each: config(each) for each in maps}}
        after = assemble(xr, Shop(wanting(wants)).workshop, observed=before.observed)
        return OrderPlan(name, "crew", compare(before, after))

    plans = [planned("one", "fixed"), planned("two", "fixed"), planned("three", "three")]
    found = {each.order: each for each in with_collisions([*plans, OrderPlan("four")])}

    assert [found[name].verdict for name in ("one", "two", "three", "four")] == [
        OrderVerdict.REFUSED, OrderVerdict.REFUSED, OrderVerdict.CHANGED, OrderVerdict.UNKNOWN,
    ]  # fmt: skip
    (fault,) = found["one"].new_faults
    assert (fault.path, fault.code) == ("fixed", "collision")
    assert fault.message.endswith("is what other orders make too: two")


def test_schemas_are_published_with_the_pack() -> None:
    path = PurePosixPath("schemas/boats.yaml")
    boats = yaml.safe_dump(crd("b.example.org", "Boat", {})).encode()
    files = {**read_folder(reference_pack()), path: boats}

    rendered = render_pack(files, PlatformValues("http://127.0.0.1:1", "c" * 40, "127.0.0.1:2"))

    assert rendered[path] == boats
