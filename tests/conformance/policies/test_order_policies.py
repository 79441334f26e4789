"""What Argo CD may do for orders, on an API server: no hooks, no other kinds, no deletion."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from tests.conformance.policies.apiserver import ApiServer, Object, eventually
from tests.conformance.policies.policykits import KITS, VALUES, xrd

from ground.argocd.sync_rules import HELM_HOOK, HOOK
from ground.objects.kube_objects import TRACKING_ID
from kubeschema.xrd import crd_for
from orderkit.core.kit.pack import kit_of
from orderkit.core.order.ledger import ORDER_LABEL
from orderkit.core.platform.baking import bake
from orderkit.core.platform.delivery_tree import ORDERS_POLICY as NAME
from orderkit.core.platform.installation import ARGOCD_ACCOUNT, CROSSPLANE_ACCOUNT
from orderkit_standins.argocd import argocd_crds
from orderkit_workshop.generate.order_policy import order_policies

ARGOCD = "argocd"
DENIED = "ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: "
PERSON = "system:serviceaccount:default:person"
IMPERSONATED = "system:serviceaccount:team-ae86:deployer"
TYPES = {
    HOOK: (
        *("PreSync", "Sync", "PostSync", "SyncFail", "PostDelete", "PreDelete", "Skip"),
        *("", "Whatever", "PreSync,PostDelete"),
    ),
    HELM_HOOK: (
        *("pre-install", "post-install", "pre-upgrade", "post-upgrade", "pre-rollback"),
        *("post-rollback", "pre-delete", "post-delete", "test", "test-success", "crd-install"),
    ),
}
HOOKS = [{name: value} for name, values in TYPES.items() for value in values]
PLACES = {
    "ClusterRoleBinding": ("rbac.authorization.k8s.io", "v1", ""),
    "ConfigMap": ("", "v1", "kube-system"),
    "CustomResourceDefinition": ("apiextensions.k8s.io", "v1", ""),
    "XGarage": ("blog.opsbogus.dev", "v1alpha1", ""),
}
"""Group, version and namespace of the objects that are tried."""
NAMES = {
    "ClusterRoleBinding": "tried",
    "ConfigMap": "tried",
    "CustomResourceDefinition": "tried.example.org",
    "XGarage": "garage-ae86",
}


@dataclass(frozen=True)
class Case:
    """One creation. `told` is what the server answers; empty: it admits the object."""

    reason: str
    kind: str = "ConfigMap"
    notes: Mapping[str, str] = field(default_factory=dict)
    app: str = "garage-ae86"
    told: str = ""
    writer: str = ARGOCD_ACCOUNT
    names: str = "{name}"
    """The name in the tracking annotation."""
    labels: Mapping[str, str] = field(default_factory=dict)


def other_kind(kind: str) -> str:
    return (
        f"kind: order garage-ae86 delivers XGarage and nothing else; take {kind} "
        f'"{NAMES[kind]}" out of its repository'
    )


def hook(kind: str, note: str) -> str:
    return (
        f'metadata.annotations: {kind} "{NAMES[kind]}" is a hook of Argo CD ({note}), and an order'
        " has no hooks; take the annotation, or the object, out of the repository of garage-ae86"
    )


POST_DELETE = {HOOK: "PostDelete"}
CASES = [
    *(
        Case(
            f"{kind} with {name}: {value}",
            kind,
            note,
            told=hook(kind, f"{name}: {value}"),
        )
        for note in HOOKS
        for name, value in note.items()
        for kind in PLACES
    ),
    *(
        Case(f"{kind} that is no hook", kind, told=other_kind(kind))
        for kind in PLACES
        if kind != "XGarage"
    ),
    Case("the order's own XR", "XGarage"),
    Case(
        "a name that Kubernetes makes up",
        "ClusterRoleBinding",
        POST_DELETE,
        told=hook("ClusterRoleBinding", "argocd.argoproj.io/hook: PostDelete"),
        names="",
    ),
    Case(
        "an account that Argo CD impersonates",
        "ClusterRoleBinding",
        POST_DELETE,
        told=hook("ClusterRoleBinding", "argocd.argoproj.io/hook: PostDelete"),
        writer=IMPERSONATED,
    ),
    Case(
        "tracking by label alone",
        app="",
        labels={"app.kubernetes.io/instance": "garage-ae86"},
        told=other_kind("ConfigMap"),
    ),
    Case(
        "a definition without tracking that is made when the Application goes",
        "CustomResourceDefinition",
        POST_DELETE,
        app="",
        told='metadata.annotations: CustomResourceDefinition "tried.example.org" is a hook of'
        " Argo CD (argocd.argoproj.io/hook: PostDelete), and no definition is made when an"
        " Application is deleted; take the annotation out",
    ),
    Case("a neighbour's hook", "ClusterRoleBinding", POST_DELETE, app="monitoring"),
    Case("a neighbour whose name is a kit's, without more", "ConfigMap", POST_DELETE, app="garage"),
    Case("a neighbour whose name goes on otherwise", "ConfigMap", POST_DELETE, app="garages-x"),
    Case("a team's Application", "ConfigMap", app="team-garage"),
    Case("a neighbour's definition", "CustomResourceDefinition", app=""),
    Case(
        "a neighbour's definition as a hook of a sync",
        "CustomResourceDefinition",
        {HELM_HOOK: "pre-install,pre-upgrade"},
        app="",
    ),
    Case(
        "a neighbour's definition with a label like an order's name",
        "CustomResourceDefinition",
        app="",
        labels={"app.kubernetes.io/instance": "garage-operator"},
    ),
    Case("a person, without tracking", notes=POST_DELETE, app="", writer=PERSON),
    Case("a copy of an order's tracking on another object", names="another", writer=PERSON),
    Case("a label alone, by somebody else", app="", writer=PERSON),
]


def made(case: Case) -> Object:
    group, version, namespace = PLACES[case.kind]
    name = NAMES[case.kind]
    annotations = dict(case.notes)
    if case.app:
        tracked_name = case.names.format(name=name)
        where = namespace or "team-ae86"
        annotations[TRACKING_ID] = f"{case.app}:{group}/{case.kind}:{where}/{tracked_name}"
    meta: Object = {"name": name, "annotations": annotations, "labels": dict(case.labels)}
    if namespace:
        meta["namespace"] = namespace
    api_version = f"{group}/{version}" if group else version
    return {
        "apiVersion": api_version,
        "kind": case.kind,
        "metadata": meta,
        **copy.deepcopy(_BODIES[case.kind]),
    }


_BODIES: Mapping[str, Any] = {
    "ClusterRoleBinding": {
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        }
    },
    "ConfigMap": {},
    "CustomResourceDefinition": {
        "spec": {
            "group": "example.org",
            "names": {"kind": "Tried", "plural": "tried"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        }
    },
    "XGarage": {"spec": {"teamName": "ae86", "stage": "stage1"}},
}


def policies() -> list[Object]:
    """Return the policies of the tried kits and 200 more: servers bound what they evaluate."""
    more = (
        kit_of(f"more-{number}", {}, xrd(f"XMore{number}", {}, scope="Cluster"))
        for number in range(200)
    )
    files = bake(order_policies({}, [*(tried.kit for tried in KITS.values()), *more]), VALUES)
    return [manifest for data in files.values() for manifest in yaml.safe_load_all(data)]


@pytest.fixture(scope="module")
def installed(server: ApiServer) -> Iterator[ApiServer]:
    """The policies of a pack, in force."""
    for name in (ARGOCD, "kube-system"):
        server.must({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for definition in [*argocd_crds(), *(crd_for(tried.kit.xrd) for tried in KITS.values())]:
        manifest = copy.deepcopy(definition)
        manifest["metadata"].pop("ownerReferences", None)
        server.define(manifest)
    everything = policies()
    for manifest in everything:
        server.must(manifest)
    refused = made(next(case for case in CASES if case.told))
    eventually(lambda: not create(server, refused).ok, "the policies are in force")
    yield server
    for manifest in everything:
        server.delete(manifest)


def create(server: ApiServer, manifest: Object, account: str = ARGOCD_ACCOUNT) -> Any:
    return server.create(manifest, dry_run=True, account=account)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_argocd_makes_only_what_an_order_may_deliver(installed: ApiServer, case: Case) -> None:
    answer = create(installed, made(case), case.writer)

    told = "" if answer.ok else answer.json()["message"].partition(" is forbidden: ")[2]
    assert told == (DENIED.format(name=NAME) + case.told if case.told else ""), answer.text


def test_an_object_that_was_there_before_the_policies_can_change_and_gets_no_hook(
    installed: ApiServer,
) -> None:
    """Crossplane must be able to end an XR with a hook's annotation."""
    old = made(Case("old", "ConfigMap", POST_DELETE))
    old["metadata"]["annotations"][TRACKING_ID] = "monitoring:/ConfigMap:kube-system/tried"
    server = installed
    assert server.create(old).ok

    new = copy.deepcopy(old)
    new["data"] = {"a": "b"}
    changed = server.put(new, account=ARGOCD_ACCOUNT)
    new["metadata"]["annotations"][TRACKING_ID] = "garage-ae86:/ConfigMap:kube-system/tried"
    taken = server.put(new, dry_run=True, account=ARGOCD_ACCOUNT)
    server.delete(old)

    assert changed.ok, changed.text
    assert "is a hook of Argo CD" in taken.text


@pytest.mark.parametrize("account", [CROSSPLANE_ACCOUNT, PERSON])
def test_others_change_an_xr_that_got_a_hook_annotation_before(
    installed: ApiServer, account: str
) -> None:
    for manifest in policies():
        installed.delete(manifest)
    xr = made(Case("old", "XGarage", POST_DELETE))
    eventually(lambda: create(installed, xr).ok, "the policies are gone")
    assert installed.create(xr).ok
    for manifest in policies():
        installed.must(manifest)
    other = made(Case("new", "ConfigMap", POST_DELETE))
    eventually(lambda: not create(installed, other).ok, "the policies are in force")
    live = installed.call("GET", installed.path(xr, "garage-ae86")).json()

    live["metadata"]["finalizers"] = ["composite.apiextensions.crossplane.io"]
    answer = installed.put(live, dry_run=True, account=account)
    installed.delete(xr)

    assert answer.ok, answer.text


@pytest.mark.parametrize(
    ("policy", "is_deleting", "account", "may"),
    [
        ({"prune": False, "selfHeal": True}, False, ARGOCD_ACCOUNT, False),
        (None, False, ARGOCD_ACCOUNT, False),
        ({"prune": False, "selfHeal": True}, False, PERSON, True),
        ({"prune": True, "selfHeal": False, "allowEmpty": True}, False, ARGOCD_ACCOUNT, True),
        ({"prune": False, "selfHeal": True}, True, ARGOCD_ACCOUNT, True),
    ],
    ids=["live", "proposed", "a person", "ending", "its Application goes"],
)
def test_argocd_deletes_an_xr_only_if_its_order_ends(
    installed: ApiServer, policy: Any, account: str, *, is_deleting: bool, may: bool
) -> None:
    """A hook replaces the XR that has its name, and Replace and Force do so too."""
    xr = made(Case("live", "XGarage"))
    app: Object = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": "garage-ae86",
            "namespace": ARGOCD,
            "labels": {ORDER_LABEL: "garage-ae86"},
            "finalizers": ["example.org/hold"] if is_deleting else [],
        },
        "spec": {
            "project": "ae86",
            "source": {"repoURL": "http://forge.example.org/a/b.git", "path": "manifests"},
            "destination": {"server": "https://kubernetes.default.svc"},
            "syncPolicy": {"automated": policy} if policy else {},
        },
    }

    def let_go(live: Object) -> None:
        live["metadata"]["finalizers"] = []

    def may_delete() -> bool:
        return bool(installed.delete(xr, dry_run=True, account=account).ok)

    try:
        for manifest in (app, xr):
            answer = installed.create(manifest)
            assert answer.ok, answer.text
        if is_deleting:
            assert installed.delete(app).ok
        eventually(lambda: may_delete() is may, f"deletion is {'allowed' if may else 'refused'}")
        answer = installed.delete(xr, dry_run=True, account=account)
        assert may or 'order "garage-ae86" is live' in answer.json()["message"], answer.text
    finally:
        if is_deleting:
            assert installed.change(app, let_go).ok
        else:
            installed.delete(app)
        installed.delete(xr)
