"""The generated role: what Crossplane gets beyond its defaults, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest
import yaml

from orderkit.core.kit.kit_file import KindRef
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_kinds import plural
from orderkit_workshop.generate.cluster_roles import rbac, rules

RBAC = "rbac.authorization.k8s.io"
WRITE = ["get", "list", "watch", "create", "update", "patch", "delete"]
READ = WRITE[:3]
XRD = {
    "apiVersion": "apiextensions.crossplane.io/v2",
    "spec": {
        "group": "lab.example.org",
        "names": {"kind": "XLab", "plural": "xlabs"},
        "versions": [{"name": "v1", "served": True, "referenceable": True}],
    },
}


@dataclass(frozen=True)
class Word:
    reason: str
    kind: str
    plural: str
    resource: str = ""


WORDS = [
    Word("plain", "Namespace", "namespaces"),
    Word("a y after a consonant", "NetworkPolicy", "networkpolicies"),
    Word("a y after a vowel", "Gateway", "gateways"),
    Word("an s at the end", "Ingress", "ingresses"),
    Word("an s in a compound", "StorageClass", "storageclasses"),
    Word("a hissing sound", "Mesh", "meshes"),
    Word("a ch", "Branch", "branches"),
    Word("an x", "Mailbox", "mailboxes"),
    Word("a plural already", "Endpoints", "endpoints"),
    Word("the author knows better", "Ox", "oxen", "oxen"),
]


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word.reason)
def test_a_plural_is_guessed_or_given(word: Word) -> None:
    assert plural(KindRef("x.example.org/v1", word.kind, word.resource)) == word.plural


def kit(composes: tuple[KindRef, ...] = (), requires: tuple[KindRef, ...] = ()) -> Kit:
    return Kit(name="lab", xrd=XRD, composes=composes, requires=requires)


def test_what_crossplane_may_by_default_needs_no_rule() -> None:
    own = KindRef("lab.example.org/v1", "XLab")
    found = rules(
        kit(
            composes=(KindRef("v1", "ConfigMap"), KindRef("apps/v1", "Deployment"), own),
            requires=(KindRef("apiextensions.crossplane.io/v1beta1", "EnvironmentConfig"),),
        )
    )

    assert found == []


def test_composing_writes_and_requiring_reads() -> None:
    found = rules(
        kit(
            composes=(KindRef("v1", "Namespace"), KindRef("networking.k8s.io/v1", "Ingress")),
            requires=(KindRef("v1", "Node"), KindRef("v1", "Namespace")),
        )
    )

    assert found == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": READ},
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": WRITE},
        {"apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": WRITE},
    ]


def test_kinds_of_a_group_with_the_same_verbs_share_a_rule() -> None:
    found = rules(kit(composes=(KindRef("batch/v1", "Job"), KindRef("batch/v1", "CronJob"))))

    assert found == [{"apiGroups": ["batch"], "resources": ["cronjobs", "jobs"], "verbs": WRITE}]


def test_composing_a_role_asks_for_escalate() -> None:
    found = rules(kit(composes=(KindRef(f"{RBAC}/v1", "Role"),)))

    assert found == [
        {"apiGroups": [RBAC], "resources": ["roles"], "verbs": [*WRITE, "escalate"]},
    ]


def test_composing_a_binding_asks_for_bind_on_what_it_binds() -> None:
    found = rules(kit(composes=(KindRef(f"{RBAC}/v1", "RoleBinding"),)))

    assert found == [
        {"apiGroups": [RBAC], "resources": ["clusterroles", "roles"], "verbs": ["bind"]},
        {"apiGroups": [RBAC], "resources": ["rolebindings"], "verbs": WRITE},
    ]


def test_named_roles_are_the_only_ones_that_may_be_bound() -> None:
    binding = KindRef(f"{RBAC}/v1", "RoleBinding", binds=("viewer", "reader"))

    found = [rule for rule in rules(kit(composes=(binding,))) if rule["verbs"] == ["bind"]]

    names = ["reader", "viewer"]
    assert found == [
        {"apiGroups": [RBAC], "resources": [plural], "resourceNames": names, "verbs": ["bind"]}
        for plural in ("clusterroles", "roles")
    ]


def test_the_role_is_there_without_rules_too_so_that_rights_go_away() -> None:
    ((path, data),) = rbac(kit()).items()

    role = yaml.safe_load(data)
    assert path == PurePosixPath("gitops/apis/lab/rbac.yaml")
    assert role["rules"] == []
    assert role["metadata"]["labels"] == {"rbac.crossplane.io/aggregate-to-crossplane": "true"}
