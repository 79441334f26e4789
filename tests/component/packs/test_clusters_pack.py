"""The clusters' pack as a whole: its own checks, its scenarios, and a cloud that is added to it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeschema.validate.findings import FindingSeverity
from orderkit.core.kit.approval_rules import Subjects, needs_of
from orderkit.core.kit.pack import read_kit
from orderkit_workshop.folders.local_pack import LocalPack
from orderkit_workshop.stories.check_kits import check_pack
from orderkit_workshop.stories.test_kits import TestSelection as Selection
from orderkit_workshop.stories.test_kits import run_tests

PACK = Path(__file__).parents[3] / "packs" / "clusters"
CASES = PACK / "tests" / "kits" / "cluster"
KNOWN = {"function-tag", "many-fields", "printer-column"}
"""Digests need a registry (`orderkit kit digests`); a cluster on any cloud has many fields."""
NETWORKS = {
    "gcp": {"Network", "Subnetwork", "Router", "RouterNAT"},
    "aws": {
        *("VPC", "Subnet", "InternetGateway", "EIP", "NATGateway"),
        *("RouteTable", "Route", "RouteTableAssociation"),
    },
    "azure": {
        *("ResourceGroup", "VirtualNetwork", "Subnet", "PublicIP", "NATGateway"),
        *("NATGatewayPublicIPAssociation", "SubnetNATGatewayAssociation"),
    },
}
NAT = {"Router", "RouterNAT", "EIP", "NATGateway", "PublicIP"}
UNTOUCHED_IMPORT = {"Observe"}


def resources(case: str) -> dict[str, Any]:
    """Return the objects that a scenario composes, by logical name."""
    parts = yaml.safe_load((CASES / case / "expected" / "resources.yaml").read_text())
    return {name: part["object"] for name, part in parts.items()}


def kinds(case: str) -> set[str]:
    return {part["kind"] for part in resources(case).values()}


def test_the_kit_passes_every_rule() -> None:
    verdict = check_pack(LocalPack(PACK))

    findings = {
        (str(getattr(finding.about, "reason", "gap")), str(finding)) for finding in verdict.findings
    }
    assert {finding for finding in findings if finding[0] not in KNOWN} == set()
    assert verdict.count(FindingSeverity.ERROR) == 0
    assert verdict.runs > 0


def test_every_scenario_comes_out_as_expected() -> None:
    report = run_tests(Selection(LocalPack(PACK)))

    assert [
        (case.name, case.message, case.differences) for case in report.cases if not case.ok
    ] == []
    assert report.untested == ()


@pytest.mark.parametrize("cloud", sorted(NETWORKS))
def test_each_cloud_gets_its_own_network_and_nat_only_if_it_is_private(cloud: str) -> None:
    assert kinds(f"{cloud}-private-dns") >= NETWORKS[cloud]
    assert not kinds(f"{cloud}-public-without-anything") & NAT
    others = set().union(*(NETWORKS[other] for other in NETWORKS if other != cloud))
    assert not kinds(f"{cloud}-private-dns") & (others - NETWORKS[cloud])


@pytest.mark.parametrize("cloud", sorted(NETWORKS))
def test_an_observed_cluster_is_neither_created_nor_changed_nor_deleted(cloud: str) -> None:
    parts = resources(f"{cloud}-import-observed")

    assert set(parts["cluster"]["spec"]["managementPolicies"]) == UNTOUCHED_IMPORT
    assert {part["kind"] for name, part in parts.items() if not name.startswith("usage-")} <= {
        *("Cluster", "KubernetesCluster", "ClusterAuth", "ProviderConfig")
    }
    for name in ("cluster", "pool-default"):
        managed = resources(f"{cloud}-import-managed")[name]["spec"]["managementPolicies"]
        assert managed == ["Observe", "Update", "LateInitialize"]
    new_pool = resources(f"{cloud}-import-managed")["pool-batch"]["spec"]
    assert new_pool["managementPolicies"] == ["*"]


@pytest.mark.parametrize("cloud", sorted(NETWORKS))
def test_an_end_goes_from_releases_over_configs_and_pools_and_the_cluster_to_the_network(
    cloud: str,
) -> None:
    """Each Usage lets what is used go only after what uses it; so the order follows from them."""
    parts = resources(f"{cloud}-private-dns")
    by_name = {part["metadata"]["name"]: name for name, part in parts.items()}
    users: dict[str, set[str]] = {}
    for part in parts.values():
        if part["kind"] == "Usage":
            of, by = (by_name[part["spec"][side]["resourceRef"]["name"]] for side in ("of", "by"))
            users.setdefault(of, set()).add(by)

    def goes_after(name: str) -> set[str]:
        direct = users.get(name, set())
        return direct.union(*map(goes_after, direct))

    releases = {name for name in parts if name.startswith("release-")}
    pools = {"pool-default", "pool-batch"}
    assert releases <= goes_after("helm") & goes_after("pool-default")
    assert {"helm", "kubernetes", *pools, *releases} <= goes_after("cluster")
    assert {"cluster", *pools} <= goes_after("network")


IMPORT: dict[str, Any] = {
    "planeType": "development",
    "existing": {"mode": "observe", "name": "theirs"},
}
MANAGED = {**IMPORT, "existing": {**IMPORT["existing"], "mode": "manage"}}


@pytest.mark.parametrize(
    ("reason", "old", "new", "needed"),
    [
        ("whoever observes a cluster gets its kubeconfig", None, IMPORT, True),
        ("nobody manages at once without them", None, MANAGED, True),
        ("who looks on may not manage", IMPORT, MANAGED, True),
        ("what was agreed on", MANAGED, {**MANAGED, "addOns": []}, False),
        ("a cluster of its own", None, {"planeType": "development"}, False),
    ],
)
def test_a_cluster_that_exists_is_taken_with_the_platforms_agreement(
    reason: str, old: dict[str, Any] | None, new: dict[str, Any], *, needed: bool
) -> None:
    kit = read_kit("cluster", LocalPack(PACK).files())
    requester = {"ref": "user:default/mallory", "name": "mallory", "proved": True}
    order = {"name": "cluster-x", "team": "rx7", "kit": "cluster", "isNew": old is None}

    needs = needs_of(kit, Subjects(old, new, requester, order, {}))

    assert [(need.by, need.unknown) for need in needs] == [(("platform",), False)] * needed, reason


@pytest.mark.parametrize("case", ["aws-private-dns", "aws-public-dns"])
def test_cert_manager_may_write_into_the_zone_of_its_own_order_only(case: str) -> None:
    policy = resources(case)["cert-manager-dns"]["spec"]["forProvider"]["policy"]

    zones = {rule["Resource"] for rule in json.loads(policy)["Statement"]}
    assert zones == {"arn:aws:route53:::hostedzone/Z0123", "arn:aws:route53:::change/*"}


def test_no_cluster_can_be_called_as_the_resource_group_of_anothers_nodes() -> None:
    """Azure's provider takes over a group that exists, and deletes it with its order."""
    definition = yaml.safe_load((PACK / "gitops/apis/cluster/definition.yaml").read_text())
    (version,) = definition["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    parts = resources("azure-private-dns")

    group = parts["cluster"]["spec"]["forProvider"]["nodeResourceGroup"]
    own = parts["resource-group"]["metadata"]["annotations"]["crossplane.io/external-name"]
    assert re.search(spec["properties"]["clusterName"]["pattern"], own)
    assert not re.search(spec["properties"]["clusterName"]["pattern"], group)


@pytest.mark.parametrize("cloud", ["gcp", "aws", "azure"])
def test_no_order_takes_over_what_its_account_has(cloud: str) -> None:
    """A provider takes over what has the name that it is given."""
    own = {"KubernetesCluster", "DNSZone", "PrivateDNSZone"}  # in the order's own resource group
    pools = {"NodePool", "NodeGroup", "KubernetesClusterNodePool"}  # in the order's own cluster
    names = {
        name: part["metadata"]["annotations"]["crossplane.io/external-name"]
        for name, part in resources(f"{cloud}-private-dns").items()
        if "crossplane.io/external-name" in part["metadata"].get("annotations", {})
        and part["kind"] not in own | pools
    }

    assert names
    endings = {name.rpartition("-")[2] for name in names.values()}
    assert len(endings) == 1
    assert re.fullmatch("[0-9a-f]{6}", endings.pop())
    imported = resources(f"{cloud}-import-managed")
    pool_names = {
        part["metadata"]["annotations"]["crossplane.io/external-name"]
        for part in imported.values()
        if part["kind"] in pools
    }
    assert any(re.fullmatch("batch-?[0-9a-f]{6}", name) for name in pool_names), pool_names


def test_a_cluster_keeps_the_name_that_it_was_made_with() -> None:
    made = resources("upgrade-6-done")["cluster"]

    assert made["metadata"]["annotations"]["crossplane.io/external-name"] == "up-six"


MOON = '''"""A made-up cloud."""

from __future__ import annotations

from orderkit.stations import managed

from ...part import Part
from .. import Access, ClusterFacts


def _part(order, name, kind, uses=(), **fields):
    api = "base.moon.m.example.org/v1"
    manifest = managed(api, kind, fields, connection_secret=order.kubeconfig_secret)
    return Part(name, manifest, tuple(uses))


def refusal(order):
    return ""


def network(order):
    yield _part(order, "network", "Crater", place=order.location)


def cluster(order, version):
    yield _part(order, "cluster", "Base", uses=["network"], version=version)


def pool(order, pool, version):
    yield _part(order, pool.part, "Crew", uses=["cluster"], machine=pool.machine)


def zones(order):
    yield _part(order, "zone-public", "Beacon", domain=order.domain)


def dns_rights(order):
    return ()


def facts(order):
    return ClusterFacts(endpoint="https://base.moon")


def pool_version(order, pool):
    return "", ""


def name_servers(order):
    return []


def access(order):
    return Access("cluster")


def chart_values(order, chart):
    return {"gravity": "low"} if chart == "ingress-nginx" else {}
'''


@pytest.fixture
def moon_pack(tmp_path: Path) -> Path:
    """Copy the pack and add a cloud: one folder of code, its layer, and its name in the API."""
    pack = tmp_path / "clusters"
    shutil.copytree(PACK, pack)
    shutil.rmtree(pack / "tests" / "kits" / "cluster")
    folder = pack / "stations" / "cluster" / "clouds" / "moon"
    folder.mkdir()
    (folder / "__init__.py").write_text(MOON)
    layers = pack / "gitops" / "config" / "layers"
    layer = yaml.safe_load((layers / "cloud-aws.yaml").read_text())
    layer["metadata"] = {
        "name": "clusters-cloud-moon",
        "labels": {"myplatform.io/layer": "cloud", "myplatform.io/cloud": "moon"},
    }
    (layers / "cloud-moon.yaml").write_text(yaml.safe_dump(layer))
    definition = pack / "gitops" / "apis" / "cluster" / "definition.yaml"
    text = definition.read_text()
    assert text.count("enum: [gcp, aws, azure]") == 1
    definition.write_text(text.replace("enum: [gcp, aws, azure]", "enum: [gcp, aws, azure, moon]"))
    case = pack / "tests" / "kits" / "cluster" / "moon"
    case.mkdir(parents=True)
    xr = {
        "metadata": {"name": "cluster-base", "namespace": "team-a"},
        "spec": {
            "clusterName": "base",
            "owner": "a",
            "cloud": "moon",
            "location": "us-east",
            "domain": "moon.example.com",
            "addOns": ["cert-manager", "ingress-nginx"],
        },
    }
    scenario = {"reason": "A fourth cloud.", "xr": xr}
    (case / "scenario.yaml").write_text(yaml.safe_dump(scenario))
    return pack


def test_a_fourth_cloud_is_one_folder_of_code(moon_pack: Path) -> None:
    report = run_tests(Selection(LocalPack(moon_pack), update=True))
    assert [(case.name, case.message) for case in report.cases if not case.ok] == []

    text = (moon_pack / "tests/kits/cluster/moon/expected/resources.yaml").read_text()
    parts = {name: part["object"] for name, part in yaml.safe_load(text).items()}
    made = {part["kind"]: part["spec"] for part in parts.values() if part["kind"] != "Usage"}
    assert made["Crater"]["forProvider"] == {"place": "us-east-1"}
    assert made["Crew"]["forProvider"] == {"machine": "m6i.large"}
    assert made["Beacon"]["forProvider"] == {"domain": "moon.example.com"}
    assert parts["release-ingress-nginx"]["spec"]["forProvider"]["values"]["gravity"] == "low"
    assert {"usage-network-by-cluster", "usage-cluster-by-pool-default"} <= parts.keys()
