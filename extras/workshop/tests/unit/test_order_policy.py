"""The policies on what orders deliver: which Applications are orders, and of which kit."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
import yaml
from tests.conformance.policies.policykits import VALUES, xrd

from ground.objects.kube_objects import TRACKING_ID, Kind
from kubeschema.admission import Policy, Review, judge
from orderkit.core.kit.pack import kit_of
from orderkit.core.platform.baking import bake
from orderkit.core.platform.delivery_tree import ORDERS_POLICY as NAME
from orderkit.core.platform.installation import ARGOCD_ACCOUNT
from orderkit_workshop.generate.order_policy import PATH, order_policies

KITS = [
    kit_of(name, {}, xrd(kind, {}, scope="Cluster"))
    for name, kind in (("provider", "XProvider"), ("provider-pool", "XPool"))
]
LAYER = b"""apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: provider-configs}
spec: {source: {repoURL: __ORDERKIT_FORGE_URL__/a/b.git, path: gitops/config}}
"""
FILES = {PurePosixPath("gitops/apps/configs.yaml"): LAYER}
POOL, PROVIDER = ((kit.kind.group, kit.kind.version, kit.kind.kind) for kit in reversed(KITS))


@pytest.mark.parametrize(
    ("app", "kind", "told"),
    [
        ("provider-a", PROVIDER, ""),
        ("provider-pool-a", POOL, ""),
        ("provider-pool-a", PROVIDER, "delivers XPool and nothing else; take XProvider"),
        ("provider-a", POOL, "delivers XProvider and nothing else; take XPool"),
        ("provider-configs", ("", "v1", "ConfigMap"), ""),
        ("provider-config", ("", "v1", "ConfigMap"), "delivers XProvider and nothing else"),
        ("providers", ("", "v1", "ConfigMap"), ""),
    ],
)
def test_an_application_is_an_order_of_the_longest_kit_and_layers_are_none(
    app: str, kind: tuple[str, str, str], told: str
) -> None:
    documents = [
        manifest
        for data in bake(order_policies(FILES, KITS), VALUES).values()
        for manifest in yaml.safe_load_all(data)
    ]
    policies = {
        manifest["metadata"]["name"]: Policy(manifest)
        for manifest in documents
        if manifest["kind"] == "ValidatingAdmissionPolicy"
    }
    bindings = [manifest for manifest in documents if manifest["kind"].endswith("Binding")]
    tracking = {TRACKING_ID: f"{app}:{kind[0]}/{kind[2]}:somewhere/tried"}
    review = Review(
        "CREATE",
        Kind(*kind),
        "tried",
        "tried",
        {"metadata": {"name": "tried", "annotations": tracking}},
        None,
        user=ARGOCD_ACCOUNT,
    )

    denials = judge(policies, bindings, review, lambda *_: ()).denials

    assert [denial.policy for denial in denials] == ([NAME] if told else [])
    assert told in "".join(denial.message for denial in denials)


def test_a_pack_without_kits_has_no_such_policy() -> None:
    assert order_policies(FILES, []) == {}
    assert set(order_policies(FILES, KITS)) == {PATH}
