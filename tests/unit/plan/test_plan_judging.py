"""What is wrong with an outcome is said before anybody applies it: where, why, and the way out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import pytest
from outcomes import (
    GROUP,
    UID,
    Shop,
    an_xr,
    config,
    crd,
    definition,
    facts_of,
    outcome,
    step,
    thing,
    wanting,
    wrapping,
)

from compositions.granted_rights import AGGREGATE
from ground.errors import InvalidInputError
from ground.objects.kube_objects import CONFIG_MAP, Kind, Manifest, ObjectKey
from kubeschema.known import SchemaSet, layer_of, read_layer
from orderkit.core.plan import Plan, assemble
from orderkit.core.plan.composed_tree import PackRules
from orderkit.core.plan.judging import JudgingFacts, OutcomeRule, collisions, wanted_facts
from orderkit.core.plan.plan_json import exit_code, plan_answer, plan_document

BUCKETS = crd(
    "storage.m.example.org",
    "Bucket",
    {
        "forProvider": {
            "type": "object",
            "required": ["location"],
            "properties": {
                "location": {"type": "string", "enum": ["EU", "US"]},
                "retentionDays": {"type": "integer"},
                "name": {
                    "type": "string",
                    "x-kubernetes-validations": [
                        {"rule": "self == oldSelf", "message": "name is immutable"}
                    ],
                },
            },
        }
    },
)
PROJECTS = crd("storage.m.example.org", "Project", {"title": {"type": "string"}}, scope="Cluster")
PROVIDER = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "all", "labels": {AGGREGATE: "true"}},
    "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
}
LAWS = PackRules(delivered=layer_of([BUCKETS, PROJECTS]), roles=[PROVIDER])


def bucket(**for_provider: Any) -> Manifest:
    return thing(
        "storage.m.example.org/v1", "Bucket", "b", namespace="shop",
        spec={"forProvider": {"location": "EU", **for_provider}},
    )  # fmt: skip


def codes(plan: Plan) -> set[tuple[str, str]]:
    return {(str(fault.code), fault.field) for fault in plan.faults}


@dataclass(frozen=True)
class Case:
    reason: str
    manifest: Manifest
    code: OutcomeRule
    at: str
    told: str
    hint: str = ""
    more: dict[str, Manifest] = field(default_factory=dict)


CASES = [
    Case("a misspelt field of a managed resource", bucket(retentionDay=3), OutcomeRule.SCHEMA,
         "spec.forProvider.retentionDay", "unknown field", "did you mean 'retentionDays'?"),
    Case("a value that is not allowed", bucket(location="MARS"), OutcomeRule.SCHEMA,
         "spec.forProvider.location", "supported values", 'use one of "EU", "US"'),
    Case("a text for a number", bucket(retentionDays="3"), OutcomeRule.SCHEMA,
         "spec.forProvider.retentionDays", "must be of type integer"),
    Case("a required field that is missing",
         thing("storage.m.example.org/v1", "Bucket", "b", namespace="shop",
               spec={"forProvider": {}}),
         OutcomeRule.SCHEMA, "spec.forProvider.location", "Required value"),
    Case("a version that the CRD does not serve", {**bucket(), "apiVersion":
         "storage.m.example.org/v2"}, OutcomeRule.SCHEMA, "apiVersion", "no matches for kind",
         "served: storage.m.example.org/v1"),
    Case("the same inside an Object", wrapping(bucket(retentionDay=3)), OutcomeRule.SCHEMA,
         "spec.forProvider.manifest.spec.forProvider.retentionDay", "unknown field"),
    Case("a number in a ConfigMap", config(replicas=3), OutcomeRule.SCHEMA, "data.replicas",
         "must be of type string"),
    Case("a field of a ConfigMap that is none", {**config(), "spec": {}},
         OutcomeRule.SCHEMA, "spec",
         "unknown field"),
    Case("a Secret whose data is plain text",
         thing("v1", "Secret", namespace="shop", data={"password": "not base64!"}),
         OutcomeRule.SCHEMA, "data.password", "byte"),
    Case("a misspelt field of a container",
         thing("apps/v1", "Deployment", namespace="shop", spec={
             "selector": {"matchLabels": {"a": "b"}},
             "template": {"metadata": {"labels": {"a": "b"}},
                          "spec": {"containers": [{"name": "c", "imagePullPolice": "Always"}]}}}),
         OutcomeRule.SCHEMA, "spec.template.spec.containers[0].imagePullPolice", "unknown field",
         "did you mean 'imagePullPolicy'?"),
    Case("a pod without containers",
         thing("batch/v1", "Job", namespace="shop", spec={"template": {"spec": {}}}),
         OutcomeRule.SCHEMA, "spec.template.spec.containers", "Required value"),
    Case("a role without verbs",
         thing("rbac.authorization.k8s.io/v1", "Role", namespace="shop",
               rules=[{"apiGroups": [""], "resources": ["pods"]}]),
         OutcomeRule.SCHEMA, "rules[0].verbs", "Required value"),
    Case("a misspelt field of metadata",
         {**config(), "metadata": {"name": "m", "namespace": "shop", "label": {}}},
         OutcomeRule.NAME,
         "metadata.label", "unknown field", "did you mean 'labels'?"),
    Case("a label that is a number",
         {**config(), "metadata": {"name": "m", "namespace": "shop", "labels": {"n": 3}}},
         OutcomeRule.NAME, "metadata.labels.n", "must be of type string", "quote it"),
    Case("a label's value that is too long", thing("v1", "ConfigMap", namespace="shop",
         labels={"owner": "x" * 64}),
         OutcomeRule.NAME, "metadata.labels.owner", "not a valid label"),
    Case("a label's key with a blank", thing("v1", "ConfigMap", namespace="shop",
         labels={"the owner": "x"}), OutcomeRule.NAME, "metadata.labels.the owner",
         "valid key"),
    Case("annotations beyond 256 KiB", thing("v1", "ConfigMap", namespace="shop",
         annotations={"a": "x" * 270_000}), OutcomeRule.NAME, "metadata.annotations", "bytes"),
    Case("a Namespace of 64 characters", thing("v1", "Namespace", "n" * 64), OutcomeRule.NAME,
         "metadata.name", "64 characters, at most 63"),
    Case("a Namespace with a dot", thing("v1", "Namespace", "a.b"),
         OutcomeRule.NAME, "metadata.name",
         "RFC 1123 label"),
    Case("a Service with a dot", thing("v1", "Service", "a.b", namespace="shop"),
         OutcomeRule.NAME, "metadata.name", "RFC 1123 label"),
    Case("a CronJob of 53 characters",
         thing("batch/v1", "CronJob", "c" * 53, namespace="shop", spec={
             "schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": {
                 "containers": []}}}}}),
         OutcomeRule.NAME, "metadata.name", "53 characters, at most 52"),
    Case("a namespaced object without a namespace", thing("v1", "ConfigMap", "m"),
         OutcomeRule.SCOPE,
         "metadata.namespace", "is namespaced and has no namespace"),
    Case("the same of a CRD's kind", {**bucket(), "metadata": {"name": "b"}}, OutcomeRule.SCOPE,
         "metadata.namespace", "is namespaced and has no namespace"),
    Case("the same inside an Object", wrapping(thing("v1", "ConfigMap", "m")), OutcomeRule.SCOPE,
         "spec.forProvider.manifest.metadata.namespace", "has no namespace"),
    Case("a cluster-scoped object that a namespaced one owns",
         thing("v1", "Namespace", "n", ownerReferences=[
             {"apiVersion": "v1", "kind": "ConfigMap", "name": "m", "uid": "1"}]),
         OutcomeRule.OWNER, "metadata.ownerReferences", "garbage collector deletes it"),
    Case("two parts that make the same object", config("same", a="1"), OutcomeRule.COLLISION,
         "metadata.name", "also composed by 'it'", more={"other": config("same", a="2")}),
    Case("two Objects that wrap the same object", wrapping(config("same")), OutcomeRule.COLLISION,
         "spec.forProvider.manifest.metadata.name", "also composed by",
         more={"other": {**wrapping(config("same")), "metadata": {"name": "w2",
                                                                  "namespace": "shop"}}}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_a_fault_is_told_with_field_rule_and_way_out(case: Case) -> None:
    plan = outcome({"it": case.manifest, **case.more}, laws=LAWS)

    found = [fault for fault in plan.faults if (fault.code, fault.field) == (case.code, case.at)]
    assert found, codes(plan)
    assert case.told in found[0].message
    assert case.hint in found[0].hint
    assert exit_code(plan) == 4


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(bucket(retentionDays=3), id="a managed resource"),
        pytest.param(config(a="1"), id="a ConfigMap"),
        pytest.param(wrapping(config(a="1")), id="an Object"),
        pytest.param(thing("v1", "Namespace", "n"), id="a Namespace"),
        pytest.param(
            wrapping(thing("v1", "Secret", namespace="x"), managementPolicies=["Observe"]),
            id="an Object that only looks",
        ),
        pytest.param(
            thing("rbac.authorization.k8s.io/v1", "ClusterRole", "system:reader", rules=[]),
            id="a role with a colon",
        ),
        pytest.param(
            thing("networking.k8s.io/v1", "NetworkPolicy", namespace="shop", spec={
                "podSelector": {}, "ingress": [{"from": [{"podSelector": {}}]}]}),
            id="a policy",
        ),
    ],
)  # fmt: skip
def test_what_is_right_is_no_fault(manifest: Manifest) -> None:
    objects = crd("kubernetes.m.crossplane.io", "Object", {
        "forProvider": {"type": "object", "properties": {
            "manifest": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}},
        "managementPolicies": {"type": "array", "items": {"type": "string"}},
    })  # fmt: skip
    objects["spec"]["versions"][0]["name"] = "v1alpha1"
    laws = PackRules(delivered={**LAWS.delivered, **layer_of([objects])}, roles=[PROVIDER])

    plan = outcome({"it": manifest}, laws=laws)

    assert plan.faults == ()
    assert plan.unknowns == ()


def test_a_kind_without_schema_is_told_and_never_passed() -> None:
    plan = outcome({"it": thing("other.org/v1", "Other", spec={"typo": 1})}, laws=LAWS)

    (told,) = plan.unknowns
    assert told.startswith("not checked, no schema: Other.other.org")
    assert "--schemas" in told


def _open(crd_manifest: Manifest) -> Manifest:
    """Return the CRD as a stand-in serves it: anything goes."""
    open_crd: Manifest = json.loads(json.dumps(crd_manifest))
    schema = open_crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["forProvider"] = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    return open_crd


def judged_by(*layers: Manifest) -> Plan:
    schemas = SchemaSet(tuple(layer_of([manifest]) for manifest in layers))
    shop = Shop(wanting({"it": bucket(locaton="EU")}), laws=PackRules(roles=[PROVIDER]))
    facts = JudgingFacts(schemas, roles=[PROVIDER])
    return step(shop, shop, facts=facts)


def test_the_strictest_known_schema_wins() -> None:
    (fault,) = judged_by(_open(BUCKETS), BUCKETS).faults

    assert fault.message == 'Bucket: unknown field "spec.forProvider.locaton"'
    assert "did you mean" in fault.hint.lower()
    assert "another schema of this kind accepts it" in fault.hint


def test_two_schemas_that_agree_report_a_fault_once() -> None:
    assert len(judged_by(BUCKETS, BUCKETS).faults) == 1


def test_a_schema_that_accepts_anything_checks_nothing_and_is_named() -> None:
    plan = judged_by(_open(BUCKETS))

    assert plan.faults == ()
    assert any("not checked, no schema: Bucket." in text for text in plan.unknowns)


def test_a_transition_that_the_server_would_refuse_is_a_fault() -> None:
    old = Shop(wanting({"it": bucket(name="one")}), laws=LAWS)
    new = Shop(wanting({"it": bucket(name="two")}), laws=LAWS)

    plan = step(old, new)

    assert ("transition", "spec.forProvider.name") in codes(plan)
    assert "name is immutable" in plan.faults[0].message


def test_a_transition_of_the_order_itself_is_judged_too() -> None:
    rule = [{"rule": "self == oldSelf", "message": "zone stays"}]
    xrd = definition("XShop", {"zone": {"type": "string", "x-kubernetes-validations": rule}})
    shop = Shop(wanting({}), xrd=xrd)

    plan = step(shop, shop, before=an_xr({"zone": "a"}), after=an_xr({"zone": "b"}))

    assert [(fault.path, fault.field, fault.code) for fault in plan.faults] == [
        ("", "spec.zone", "transition")
    ]


def test_what_another_writer_set_is_not_missing() -> None:
    shop = Shop(wanting({"it": {**bucket(), "spec": {"forProvider": {}}}}), laws=LAWS)
    before = assemble(an_xr({}), Shop(wanting({"it": bucket()}), laws=LAWS).workshop)

    plan = step(Shop(wanting({"it": bucket()}), laws=LAWS), shop)

    assert before.observed["it"]["spec"]["forProvider"]["location"] == "EU"
    assert plan.faults == ()


def test_a_namespaced_order_composes_nothing_that_is_cluster_scoped() -> None:
    shop = Shop(
        wanting({"it": thing("storage.m.example.org/v1", "Project", namespace="shop",
                             spec={"title": "t"})}),
        xrd=definition("XShop", scope="Namespaced"), laws=LAWS,
    )  # fmt: skip
    xr = an_xr({}, namespace="shop")

    plan = step(shop, shop, before=xr)

    assert ("scope", "kind") in codes(plan)


def test_crossplanes_own_refusal_of_a_scope_is_told_in_its_words() -> None:
    shop = Shop(
        wanting({"it": thing("storage.m.example.org/v1", "Project", spec={"title": "t"})}),
        xrd=definition("XShop", scope="Namespaced"), laws=LAWS,
    )  # fmt: skip

    plan = step(shop, shop, before=an_xr({}, namespace="shop"))

    assert "cannot apply cluster scoped composed resource" in plan.faults[0].message
    assert plan.faults[0].code == "pipeline"


# --- rights


ROLE = thing(
    "rbac.authorization.k8s.io/v1", "Role", namespace="shop",
    rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
)  # fmt: skip


def test_a_kind_that_crossplane_may_not_compose_is_named_once() -> None:
    laws = PackRules(delivered=LAWS.delivered)
    other = {**bucket(), "metadata": {"name": "c", "namespace": "shop"}}

    plan = outcome({"it": bucket(), "other": other, "map": config()}, laws=laws)

    assert [(fault.path, fault.code) for fault in plan.faults] == [("it", "rights")]
    assert "no right to create buckets" in plan.faults[0].message
    assert "kit generate" in plan.faults[0].hint


def test_a_role_that_gives_some_verbs_leaves_the_others_missing() -> None:
    some = {
        **PROVIDER,
        "rules": [
            {
                "apiGroups": ["storage.m.example.org"],
                "resources": ["buckets"],
                "verbs": ["get", "list", "watch", "create", "update"],
            }
        ],
    }

    plan = outcome({"it": bucket()}, laws=PackRules(delivered=LAWS.delivered, roles=[some]))

    assert plan.faults[0].message.endswith("no right to delete buckets, patch buckets")


def test_composing_a_role_needs_escalate() -> None:
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [group], "resources": ["roles"], "verbs": verbs}]

    plan = outcome({"it": ROLE}, laws=PackRules(roles=[{**PROVIDER, "rules": rules}]))

    assert plan.faults[0].message.endswith("no right to escalate roles")


def test_what_a_package_brought_needs_no_role() -> None:
    owner = {"apiVersion": "pkg.crossplane.io/v1", "kind": "ProviderRevision", "name": "p"}
    brought = {**BUCKETS, "metadata": {**BUCKETS["metadata"], "ownerReferences": [owner]}}

    plan = outcome({"it": bucket()}, laws=PackRules(delivered=layer_of([brought])))

    assert plan.faults == ()


# --- what the cluster knows


def _judged(wants: dict[str, Manifest], **facts: Any) -> Plan:
    old, new = Shop(wanting({}), laws=LAWS), Shop(wanting(wants), laws=LAWS)
    return step(old, new, facts=facts_of(new.workshop, **facts))


KEY = ObjectKey(CONFIG_MAP, "map", "shop")


def _living(**metadata: Any) -> dict[ObjectKey, Manifest]:
    return {KEY: {**config(), "metadata": {"name": "map", "namespace": "shop", **metadata}}}


def _owned(uid: str) -> list[dict[str, Any]]:
    return [{"apiVersion": f"{GROUP}/v1", "kind": "XShop", "name": "two", "uid": uid,
             "controller": True}]  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "code", "told"),
    [
        ({"living": _living(ownerReferences=_owned("2"))},
        OutcomeRule.TAKEN, "controlled by XShop two"),
        ({"living": _living(annotations={"argocd.argoproj.io/tracking-id": "apps:/ConfigMap:x"})},
         OutcomeRule.TAKEN, "delivered by Application apps"),
        ({"other_orders": {KEY: "shop-two"}},
         OutcomeRule.COLLISION, "also composed by order shop-two"),
        ({"missing_namespaces": {"shop"}}, OutcomeRule.NO_NAMESPACE, 'namespaces "shop" not found'),
        ({"unserved": {CONFIG_MAP}}, OutcomeRule.UNKNOWN_KIND, 'no matches for kind "ConfigMap"'),
    ],
)  # fmt: skip
def test_what_the_cluster_says_is_a_fault(
    facts: dict[str, Any], code: OutcomeRule, told: str
) -> None:
    plan = _judged({"it": config()}, **facts)

    (fault,) = plan.faults
    assert fault.code == code
    assert told in fault.message


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"living": _living()}, id="Crossplane adopts what nobody controls"),
        pytest.param({"living": _living(ownerReferences=_owned(UID))}, id="it is the order's own"),
    ],
)
def test_what_the_order_may_take_is_no_fault(facts: dict[str, Any]) -> None:
    assert _judged({"it": config()}, **facts).faults == ()


def test_what_an_order_composed_while_its_plan_was_made_is_its_own() -> None:
    owner = {"apiVersion": f"{GROUP}/v1", "kind": "XShop", "controller": True, "uid": "4711"}
    new, old = Shop(wanting({"it": config()}), laws=LAWS), Shop(wanting({}), laws=LAWS)
    unseen = an_xr({})
    del unseen["metadata"]["uid"]

    for name, codes_of_faults in (("one", []), ("two", [OutcomeRule.TAKEN])):
        living = _living(ownerReferences=[{**owner, "name": name}])
        plan = step(old, new, before=unseen, facts=facts_of(new.workshop, living=living))
        assert [fault.code for fault in plan.faults] == codes_of_faults


def test_a_namespace_that_the_order_makes_is_not_missing() -> None:
    wants = {"room": thing("v1", "Namespace", "shop"), "it": config()}

    assert _judged(wants, missing_namespaces={"shop"}).faults == ()


def test_only_what_is_needed_is_looked_up() -> None:
    kinds = thing(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", "cars.example.org",
        spec={"group": "example.org", "names": {"kind": "Car"}},
    )  # fmt: skip
    wants = {
        "room": thing("v1", "Namespace", "made"),
        "in": thing("v1", "ConfigMap", "in", namespace="made"),
        "out": config("out"),
        "kinds": kinds,
        "car": thing("example.org/v1", "Car", namespace="shop"),
    }
    before = assemble(an_xr({}), Shop(wanting({"out": config("out")})).workshop)
    after = assemble(an_xr({}), Shop(wanting(wants)).workshop, observed=before.observed)

    wanted = wanted_facts(before, after)

    assert wanted.namespaces == {"shop"}
    assert {key.name for key in wanted.keys} == {"made", "in", "cars.example.org", "car"}
    assert Kind("example.org", "v1", "Car") in wanted.kinds - wanted.composed


def test_two_orders_that_make_the_same_object_are_told_of_each_other() -> None:
    def assembled(name: str, *maps: str) -> Any:
        wants = wanting({each: config(each) for each in maps})
        return assemble({**an_xr({}), "metadata": {"name": name}}, Shop(wants).workshop)

    found = collisions({
        "one": assembled("one", "a", "same"), "two": assembled("two", "b", "same"),
        "three": assembled("three", "c"),
    })  # fmt: skip

    key = ObjectKey(CONFIG_MAP, "same", "shop")
    assert found == {"one": {key: "two"}, "two": {key: "one"}}


# --- shapes


def test_faults_are_in_the_structured_plan() -> None:
    plan = outcome({"it": bucket(location="MARS")}, laws=LAWS)

    (fault,) = plan_answer(plan).to_json()["faults"]
    assert fault["path"] == "it"
    assert fault["code"] == "schema"
    assert fault["value"] == '"MARS"'
    assert fault["rule"].startswith("enum")
    (error,) = plan_document(plan).to_json()["errors"]
    assert error["validationFailures"][0]["kind"] == "Bucket"


# --- schemas in files


def test_a_folder_of_schemas_holds_crds_and_openapi_documents() -> None:
    files = {
        PurePosixPath("b.json"): json.dumps(BUCKETS).encode(),
        PurePosixPath("apps.json"): json.dumps(DOCUMENT).encode(),
        PurePosixPath("README.md"): b"no schema",
    }

    layer = read_layer(files)

    assert set(layer) == {("storage.m.example.org", "Bucket"), ("shop.k8s.io", "Till")}


def test_a_file_that_is_no_schema_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_layer({PurePosixPath("x.yaml"): b"a: [1"})


_TAG = {"group": "shop.k8s.io", "version": "v1", "kind": "Till"}
DOCUMENT = {
    "openapi": "3.0.0",
    "paths": {
        "/apis/shop.k8s.io/v1/namespaces/{namespace}/tills/{name}": {
            "get": {"x-kubernetes-group-version-kind": _TAG}
        }
    },
    "components": {
        "schemas": {
            "Till": {
                "type": "object",
                "x-kubernetes-group-version-kind": [_TAG],
                "properties": {
                    "metadata": {"$ref": "#/components/schemas/Meta"},
                    "spec": {"allOf": [{"$ref": "#/components/schemas/Spec"}], "default": {}},
                },
            },
            "Meta": {"type": "object", "properties": {"name": {"type": "string"}}},
            "Spec": {
                "type": "object",
                "required": ["drawer"],
                "properties": {
                    "drawer": {"type": "string", "default": ""},
                    "port": {
                        "format": "int-or-string",
                        "oneOf": [{"type": "integer"}, {"type": "string"}],
                    },
                    "inner": {"$ref": "#/components/schemas/Spec"},
                    "free": {"type": "object"},
                    "amount": {"oneOf": [{"type": "string"}, {"type": "number"}]},
                },
            },
        }
    },
}


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"drawer": "a", "port": 80, "free": {"x": {"y": 1}}, "amount": 0.5}, []),
        ({"drawer": "a", "inner": {"drawer": "b", "any": "depth"}}, []),
        ({"port": "http"}, ["spec.drawer"]),
        ({"drawer": "a", "port": True}, ["spec.port"]),
        ({"drawer": "a", "colour": "red"}, ["spec.colour"]),
    ],
)
def test_openapi_judges_as_the_server_does(spec: dict[str, Any], fields: list[str]) -> None:
    layer = read_layer({PurePosixPath("d.json"): json.dumps(DOCUMENT).encode()})
    till = thing("shop.k8s.io/v1", "Till", namespace="shop", spec=spec)

    plan = outcome({"it": till}, laws=PackRules(delivered=layer, roles=[PROVIDER]))

    assert [fault.field for fault in plan.faults] == fields
    assert plan.unknowns == ()


# --- what objects refer to

BUCKET = "s3.aws.m.upbound.io/v1beta1"
CONFIG = ObjectKey(Kind("aws.m.upbound.io", "", "ClusterProviderConfig"), "default")
OWN_CONFIG = ObjectKey(Kind("aws.m.upbound.io", "", "ProviderConfig"), "mine", "shop")
CLASSIC_CONFIG = ObjectKey(Kind("aws.upbound.io", "", "ProviderConfig"), "default")
DATABASE = ObjectKey(Kind("", "v1", "Secret"), "db", "shop")


def managed_bucket(**spec: Any) -> Manifest:
    return thing(BUCKET, "Bucket", "b", namespace="shop", spec={"forProvider": {}, **spec})


def running(*env: dict[str, Any], **pod: Any) -> Manifest:
    containers = [{"name": "app", "image": "app", "env": list(env)}]
    spec = {"template": {"spec": {"containers": containers, **pod}}}
    return thing("apps/v1", "Deployment", "app", namespace="shop", spec=spec)


def secret_key(name: str, **more: Any) -> dict[str, Any]:
    return {"name": "P", "valueFrom": {"secretKeyRef": {"name": name, "key": "p", **more}}}


NAMED = {"kind": "ProviderConfig", "name": "mine"}
CLASSIC = thing("s3.aws.upbound.io/v1beta1", "Bucket", "b", spec={"forProvider": {}})
FROM_VOLUME = running(volumes=[{"name": "v", "secret": {"secretName": "db"}}])
EXTERNAL = thing("external-secrets.io/v1", "ExternalSecret", "e", spec={"target": {"name": "db"}})


def with_password(api: str, home: str, **more: Any) -> Manifest:
    """Return a database of a provider that reads the password from a Secret."""
    reference = {"name": "db", "key": "p", **({} if home else {"namespace": "shop"})}
    spec = {"forProvider": {"passwordSecretRef": reference, **more}}
    return thing(api, "Instance", "i", spec=spec, **({"namespace": home} if home else {}))


RDS, CLASSIC_RDS = "rds.aws.m.upbound.io/v1beta1", "rds.aws.upbound.io/v1beta1"
WRITER = managed_bucket(writeConnectionSecretToRef={"name": "db"})


@pytest.mark.parametrize(
    ("wants", "needed"),
    [
        ({"it": with_password(RDS, "shop")}, {CONFIG, DATABASE}),
        ({"it": with_password(CLASSIC_RDS, "")}, {CLASSIC_CONFIG, DATABASE}),
        ({"it": with_password(RDS, "shop", autoGeneratePassword=True)}, {CONFIG}),
        ({"it": with_password(RDS, "shop"), "writer": WRITER}, {CONFIG}),
        ({"it": managed_bucket()}, {CONFIG}),
        ({"it": managed_bucket(providerConfigRef=NAMED)}, {OWN_CONFIG}),
        ({"it": CLASSIC}, {CLASSIC_CONFIG}),
        ({"it": running(secret_key("db"))}, {DATABASE}),
        ({"it": FROM_VOLUME}, {DATABASE}),
        ({"it": running(secret_key("db", optional=True))}, set()),
        ({"it": FROM_VOLUME, "secret": thing("v1", "Secret", "db", namespace="shop")}, set()),
        ({"it": FROM_VOLUME, "external": EXTERNAL}, set()),
    ],
)
def test_what_is_missing_is_a_fault_unless_the_order_makes_it(
    wants: dict[str, Manifest], needed: set[ObjectKey]
) -> None:
    everything = {CONFIG, OWN_CONFIG, CLASSIC_CONFIG, DATABASE}

    plan = _judged(wants, missing=everything)

    missing = [fault for fault in plan.faults if fault.code == OutcomeRule.MISSING]
    told = {fault.message.partition(":")[0] for fault in missing}
    homes = {"shop": " in namespace shop"}
    assert told == {
        f'{key.kind} "{key.name}" not found{homes.get(key.namespace, "")}' for key in needed
    }
    assert not [fault for fault in _judged(wants).faults if fault.code == OutcomeRule.MISSING]
