"""Each rule of ``kit check``: a kit that breaks exactly that one, and where it is told."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import labkit
import pytest

from compositions.layered_settings import layered_settings
from compositions.resource_builders import generated_password, secret
from compositions.station import Ready, Station, StationRequest, StationResponse
from ground.objects.kube_objects import Manifest
from kubeschema.validate import Finding
from kubeschema.validate.findings import FindingSeverity
from orderkit.adapters.folders.station_process import BrokenStation
from orderkit_workshop.check import KitRule, check_kit
from orderkit_workshop.check.behaviour_rule_codes import PipelineRule
from orderkit_workshop.check.layer_checks import layer_orders
from orderkit_workshop.check.trial_runs import orders_of

KIT, XRD = "templates/lab/kit.yaml", "gitops/apis/lab/definition.yaml"
COMPOSITION, ROLE = "gitops/apis/lab/composition.yaml", "gitops/apis/lab/rights.yaml"
FUNCTIONS, SOURCE = "gitops/functions/functions.yaml", "stations/lab/station.py"
OTHER_XRD = "gitops/apis/other/definition.yaml"
SITE = "gitops/config/site.yaml"
Changes = Mapping[str, str | None]


@dataclass(frozen=True)
class Case:
    rule: KitRule | PipelineRule
    reason: str
    changes: Changes = field(default_factory=dict)
    stations: Mapping[str, Station] = field(default_factory=dict)
    place: str = ""
    """File and line at which it is told."""
    not_embedded: str = ""
    """A kind that the embedded cluster lacks; empty: it is not installed."""
    beside: frozenset[KitRule] = frozenset()
    """Notes that such a kit has as well."""


def swap(path: str, *pairs: tuple[str, str]) -> Changes:
    text = labkit.TEXTS[path]
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return {path: text}


def composing(*kinds: tuple[str, str]) -> Changes:
    """kit.yaml with more composed kinds."""
    lines = "".join(f"    - {{apiVersion: {api}, kind: {kind}}}\n" for api, kind in kinds)
    return {KIT: labkit.KIT + lines}


def requiring(*kinds: tuple[str, str]) -> Changes:
    lines = "".join(f"    - {{apiVersion: {api}, kind: {kind}}}\n" for api, kind in kinds)
    return {KIT: f"{labkit.KIT}  requires:\n{lines}"}


def granting(group: str, resource: str, verbs: str = '["*"]') -> Changes:
    rule = f"  - apiGroups: [{group}]\n    resources: [{resource}]\n    verbs: {verbs}\n"
    return {ROLE: labkit.ROLE + rule}


def thing(kind: str, name: str, api_version: str = "v1", home: str = "", **more: Any) -> Manifest:
    meta = {"name": name} | ({"namespace": home} if home else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **more}


def also(*wanted: tuple[str, Manifest], ready: Ready = Ready.UNSPECIFIED) -> Mapping[str, Station]:
    """The sound station, which wants more once its Namespace is there."""

    def run(request: StationRequest) -> StationResponse:
        response = labkit.station(request)
        if request.observed_resource("bay"):
            for name, manifest in wanted:
                response.want(name, manifest, ready=ready)
        return response

    return {"lab": run}


CLOCK = "from datetime import date\ndate.today()\n"
NOTE = "                note: {type: string, description: A note.}\n"
RANDOM = (
    "  fixtures:\n"
    "    - apiVersion: v1\n      kind: Secret\n"
    "      metadata: {name: db, namespace: shop}\n"
    "      stringData: {host: db.example.org, hash: x7Kq2Lm9Zt}\n"
)
LATER_KIT = labkit.KIT.replace("  changes:", "  fields:\n    note: {ask: later}\n  changes:")
LATER: Changes = {
    XRD: labkit.TEXTS[XRD].replace("                size:\n", NOTE + "                size:\n")
}
PAGE = "  pages:\n    - {title: Lab, fields: [team, size, note]}\n"
VM_KIND = ("compute.example.org/v1", "VirtualMachine")
VM_SCHEMA: Changes = {
    "schemas/vm.yaml": """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: virtualmachines.compute.example.org}
spec:
  group: compute.example.org
  scope: Namespaced
  names: {kind: VirtualMachine, plural: virtualmachines}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                instanceType: {type: string}
                forProvider: {type: object}
                managementPolicies: {type: array, items: {type: string}}
                providerConfigRef: {type: object}
"""
}


PINNED: Changes = {
    "pack.yaml": "apiVersion: orderkit.dev/v1alpha1\nkind: Pack\nmetadata: {name: lab}\n"
    "spec: {kits: [lab], versions: {provider-vm: v2.0.0}}\n"
}


def recorded(sha256: str = "") -> Changes:
    """A kit that composes a kind whose schema was copied from a provider."""
    text = VM_SCHEMA["schemas/vm.yaml"] or ""
    entry = f"compute.example.org_virtualmachines.yaml: sha256:{sha256 or digest(text)}"
    return {
        "schemas/compute.example.org_virtualmachines.yaml": text,
        "schemas/sources.yaml": "apiVersion: orderkit.dev/v1alpha1\nkind: SchemaSources\n"
        f"sources:\n  - {{package: acme/provider-vm, version: v1.0.0, files: {{{entry}}}}}\n",
        **composing(VM_KIND),
        **granting("compute.example.org", "virtualmachines"),
    }


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def vm(**spec: str) -> Manifest:
    return thing("VirtualMachine", "vm", VM_KIND[0], "default", spec=spec)


DISK_KIND = ("compute.aws.m.upbound.io/v1", "Disk")
MANAGED_SCHEMA: Changes = {
    "schemas/disk.yaml": """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: disks.compute.aws.m.upbound.io}
spec:
  group: compute.aws.m.upbound.io
  scope: Namespaced
  names: {kind: Disk, plural: disks}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema: {properties: {spec: {properties: {forProvider: {type: object}}}}}
"""
}
CONFIG = """
apiVersion: aws.m.upbound.io/v1beta1
kind: ClusterProviderConfig
metadata: {name: theirs}
spec: {}
"""


def disk(config: str) -> Manifest:
    reference = {"kind": "ClusterProviderConfig", "name": config}
    spec = {"forProvider": {}, "providerConfigRef": reference}
    return thing("Disk", "disk", DISK_KIND[0], "default", spec=spec)


def saying(status: Mapping[str, Any] | None = None, *conditions: str) -> Mapping[str, Station]:
    def run(request: StationRequest) -> StationResponse:
        response = labkit.station(request)
        response.merge_status(status or {})
        for type_ in conditions:
            response.add_condition(type_, "True", "Said")
        return response

    return {"lab": run}


def asking(
    api_version: str, kind: str, *, strict: bool = False, early: bool = False
) -> Mapping[str, Station]:
    def run(request: StationRequest) -> StationResponse:
        if early and request.is_answered("site") and not request.required_resource("site"):
            response = StationResponse.to(request)
            response.require("site", api_version, kind, match_name="site")
            return response
        response = labkit.station(request)
        response.require("site", api_version, kind, match_name="site")
        if strict and request.is_answered("site") and not request.required_resource("site"):
            response.fatal("no site")
        return response

    return {"lab": run}


def only_a_sheet(request: StationRequest) -> StationResponse:
    response = StationResponse.to(request)
    response.want("sheet", thing("ConfigMap", "sheet"))
    return response


def only_a_bay(request: StationRequest) -> StationResponse:
    response = labkit.station(request)
    bay = response.desired.resources["bay"].resource
    bay["metadata"]["name"] = "bay"
    if "sheet" in response.desired.resources:
        response.desired.resources["sheet"].resource["metadata"]["namespace"] = "bay"
    response.merge_status({"namespace": "bay"})
    return response


def wants_nothing(request: StationRequest) -> StationResponse:
    return StationResponse.to(request)


def nothing_for_large(request: StationRequest) -> StationResponse:
    large = request.xr["spec"]["size"] == "large"
    return StationResponse.to(request) if large else labkit.station(request)


def one_for_each(request: StationRequest) -> StationResponse:
    """Want one ConfigMap for each entry of a group."""
    response = StationResponse.to(request)
    for name in request.xr["spec"]["group"]:
        response.want(name, thing("ConfigMap", name, home="default"))
    return response


def fails_for_large(request: StationRequest) -> StationResponse:
    if request.xr["spec"]["size"] == "large":
        raise ValueError("too large")
    return labkit.station(request)


def all_at_once(request: StationRequest) -> StationResponse:
    response = labkit.station(request)
    response.want("sheet", thing("ConfigMap", "sheet", home=f"lab-{request.xr['spec']['team']}"))
    return response


def kind_and_object(request: StationRequest) -> StationResponse:
    response = labkit.station(request)
    names = {"kind": "Bench", "plural": "benches"}
    crd = thing("CustomResourceDefinition", "benches.x.example.org", "apiextensions.k8s.io/v1")
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    crd["spec"] = {
        "group": "x.example.org",
        "names": names,
        "scope": "Namespaced",
        "versions": [version],
    }
    response.want("kind", crd, ready=Ready.TRUE)
    response.want("bench", thing("Bench", "b", "x.example.org/v1", "default"))
    return response


def waits_for_ready(request: StationRequest) -> StationResponse:
    response = labkit.station(request)
    bucket = request.observed_resource("bucket") or {}
    response.want("bucket", thing("Bucket", "b", "s3.aws.m.upbound.io/v1beta1", "default"))
    conditions = bucket.get("status", {}).get("conditions", [])
    if any(c["type"] == "Ready" and c["status"] == "True" for c in conditions):
        response.want("key", thing("ConfigMap", "key", home="default"))
    return response


def long_names(request: StationRequest) -> StationResponse:
    response = labkit.station(request)
    name = f"a-rather-long-prefix-before-the-team-{request.xr['spec']['team']}"
    response.want("long", thing("Namespace", name))
    return response


def forgets(request: StationRequest) -> StationResponse:
    response = StationResponse.to(request)
    response.desired.resources.pop("extra", None)
    return response


def counting() -> Station:
    calls = itertools.count()

    def run(request: StationRequest) -> StationResponse:
        response = labkit.station(request)
        response.merge_status({"namespace": f"n{next(calls)}"})
        return response

    return run


def remembering() -> Station:
    """Settles each time, on something else."""
    runs = itertools.count()
    current: list[int] = []

    def run(request: StationRequest) -> StationResponse:
        response = labkit.station(request)
        if request.observed_resource("bay") is None:
            current[:] = [next(runs)]
        response.merge_status({"namespace": f"n{current[0]}"})
        return response

    return run


def says_once(request: StationRequest) -> StationResponse:
    response = labkit.station(request)
    if request.observed_resource("bay") is None:
        response.add_condition("Building", "True", "Begun")
    return response


SECOND = """\
    - step: second
      functionRef:
        name: function-orderkit
      input:
        apiVersion: stations.orderkit.dev/v1alpha1
        kind: Station
        name: second
"""
TWO_STATIONS = swap(
    COMPOSITION,
    (
        "    - step: ready\n",
        f"{SECOND}    - step: ready\n",
    ),
)


INPUT_HEAD = "apiVersion: v1, kind: Input"


def followed_by(function: str, template: str = "") -> Changes:
    """The sound kit with a step of another function behind that of auto-ready."""
    package = labkit.FUNCTIONS.rpartition("---")[2].replace("function-auto-ready", function)
    step = (
        f"    - step: after\n      functionRef: {{name: {function}}}\n"
        f"      input: {{{INPUT_HEAD}, a: '{template}'}}\n"
    )
    return {
        COMPOSITION: labkit.COMPOSITION + step,
        FUNCTIONS: f"{labkit.FUNCTIONS}---{package}",
    }


AFTER_READY = {COMPOSITION: labkit.COMPOSITION + SECOND}
ENVIRONMENT = """\
apiVersion: apiextensions.crossplane.io/v1beta1
kind: EnvironmentConfig
metadata:
  name: site
data: {region: eu}
"""
LAYERED_INPUT = """\
        layers:
          - {name: baseline, labels: {layer: baseline}}
          - {name: size, labels: {layer: size}, labelsFrom: {size: spec.size}}
        layersSchema:
          type: object
          required: [racks]
          properties:
            racks: {type: integer, minimum: 1}
            lifts: {type: integer}
"""
LAYERS = {
    "baseline": ("{layer: baseline}", "{racks: 1}"),
    "small": ("{layer: size, size: small}", "{lifts: 0}"),
    "medium": ("{layer: size, size: medium}", "{lifts: 1}"),
    "large": ("{layer: size, size: large}", "{racks: 4, lifts: 2}"),
}


def layered(*pairs: tuple[str, str], **layers: tuple[str, str] | None) -> dict[str, str | None]:
    """The kit with layers; pairs change the declaration, keywords EnvironmentConfigs."""
    step_input = LAYERED_INPUT
    for old, new in pairs:
        assert old in step_input
        step_input = step_input.replace(old, new)
    configs = [
        "apiVersion: apiextensions.crossplane.io/v1beta1\nkind: EnvironmentConfig\n"
        f"metadata:\n  name: {name}\n  labels: {entry[0]}\ndata: {entry[1]}\n"
        for name, entry in {**LAYERS, **layers}.items()
        if entry
    ]
    return {
        **swap(COMPOSITION, ("        name: lab\n", f"        name: lab\n{step_input}")),
        **requiring((ENV, "EnvironmentConfig")),
        SITE: "---\n".join(configs),
    }


def reading(path: str = "racks", *, text: bool = False) -> Mapping[str, Station]:
    """The sound station, which reads a setting first."""

    def run(request: StationRequest) -> StationResponse:
        response = labkit.station(request)
        settings = layered_settings(request, response)
        if settings is not None:
            settings.get(path, str) if text else settings.get(path, int)
        return response

    return {"lab": run}


TEMPLATE = """\
apiVersion: scaffolder.backstage.io/v1beta3
kind: Template
metadata:
  name: lab
spec:
  owner: group:default/platform
  type: service
  parameters:
    - title: A laboratory
      properties:
        team: {type: string}
        size: {type: string}
  steps: []
"""
FIELDS = "".join(f"                f{n}:\n                  type: integer\n" for n in range(4))
EXTRA = thing("ConfigMap", "extra", home="default")
POLICY = thing("NetworkPolicy", "closed", "networking.k8s.io/v1", "default")
ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
BINDING = thing("RoleBinding", "b", "rbac.authorization.k8s.io/v1", "default", roleRef=ROLE_REF)
RBAC = "rbac.authorization.k8s.io"
ENV = "apiextensions.crossplane.io/v1beta1"
SIZE = "                size:\n"
HALF_A_RULE = """\
              x-kubernetes-validations:
                - rule: 'self.team =='
"""
PASSWORD = "                password:\n                  type: string\n"
HIDDEN = "                  x-ui-hidden: true\n                  properties: {a: {type: string}}\n"
INNER = """\
                  properties:
                    count:
                      type: integer
                      default: 1
"""
MORE = "                more:\n                  type: object\n"

IMPORTED = """\
                taken: {type: string, description: A virtual machine that exists.}
                manage: {type: boolean, description: Whether to manage it.}
"""
NAMED_ANEW = "(order.isNew || !has(old.taken) || old.taken != new.taken)"
NEVER_NAMED = "    - {name: never, fields: [taken], direction: never}\n"
AGREED = f"""\
  approval:
    rules:
      - when: "has(new.taken) && {NAMED_ANEW}"
        by: [platform]
        because: it may be somebody else's
"""
IMPORTING: Changes = {
    **swap(XRD, ("                size:\n", IMPORTED + "                size:\n")),
    **VM_SCHEMA,
    KIT: labkit.KIT.replace(
        "  examples:", f"  import: {{names: {{vm: taken}}, manage: manage}}\n{AGREED}  examples:"
    )
    + f"    - {{apiVersion: {VM_KIND[0]}, kind: {VM_KIND[1]}}}\n",
    **granting("compute.example.org", "virtualmachines"),
}


def agreeing(*pairs: tuple[str, str]) -> Changes:
    """Return the kit that imports, with other rules of approval."""
    text = IMPORTING[KIT] or ""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return {**IMPORTING, KIT: text}


def importing(fault: str = "") -> Mapping[str, Station]:
    """A station that takes over a virtual machine, with one fault."""

    def run(request: StationRequest) -> StationResponse:
        response, spec = labkit.station(request), request.xr["spec"]
        name = spec.get("taken")
        machine = vm(instanceType="large")
        machine["spec"]["forProvider"] = {}
        if name and fault != "named":
            machine["metadata"]["annotations"] = {"crossplane.io/external-name": name}
        if name and fault != "managed" and not (spec.get("manage") and fault != "observed"):
            machine["spec"]["managementPolicies"] = ["Observe"]
        if request.observed_resource("bay") and not (name and fault == "composed"):
            response.want("vm", machine, ready=Ready.TRUE)
        return response

    return {"lab": run}


VM = also(("vm", vm(instanceType="large")), ready=Ready.TRUE)
VM_MISSPELT = also(("vm", vm(instancetype="large")), ready=Ready.TRUE)
CASES = [
    Case(KitRule.UNREADABLE, "a tab", {"gitops/apis/lab/x.yaml": "a:\n\t- b\n"}, place="x.yaml:2"),
    Case(KitRule.YAML_STYLE, "spaces at the end", swap(KIT, ("Laboratory", "Laboratory  "))),
    Case(KitRule.YAML_STYLE_WARNING, "a comment", swap(KIT, ("spec:\n", "spec:\n  #bare\n"))),
    Case(KitRule.DRIFT, "a generated page", {"docs/kits/lab.md": "GENERATED"}),
    Case(KitRule.HAND_WRITTEN, "a page by hand", {"docs/kits/lab.md": "# Mine\n"}),
    Case(KitRule.KIT_SCHEMA, "misspelt", swap(KIT, ("title:", "titel:")), place="kit.yaml:6"),
    Case(
        KitRule.KIT_FIELD, "team", swap(KIT, ("teamFrom: team", "teamFrom: tem")), place=".yaml:8"
    ),
    Case(KitRule.CHANGE_FIELDS, "misspelt", swap(KIT, ("[size]", "[sise]")), place="kit.yaml:11"),
    Case(KitRule.CHANGE_FIELDS, "no field at all", swap(KIT, ("[size]", "[]"))),
    Case(
        KitRule.KIT_CONSISTENCY,
        "a label of no value",
        swap(KIT, ("  changes:", "  fields: {size: {labels: {huge: H}}}\n  changes:")),
        place="kit.yaml:9",
    ),
    Case(
        KitRule.KIND_TWICE,
        "of an earlier kit",
        {**swap("pack.yaml", ("[lab]", "[other, lab]")), OTHER_XRD: labkit.DEFINITION},
        place="definition.yaml:11",
    ),
    Case(
        KitRule.KIND_TWICE,
        "the plural of an earlier kit",
        {
            **swap("pack.yaml", ("[lab]", "[other, lab]")),
            OTHER_XRD: labkit.DEFINITION.replace("kind: XLab", "kind: XOther"),
        },
        place="definition.yaml:12",
    ),
    Case(
        KitRule.XRD_FORM,
        "hidden and required",
        swap(XRD, ("[team, size]", "[team, size, more]"), (SIZE, MORE + HIDDEN + SIZE)),
    ),
    Case(
        KitRule.SECRET_FIELD,
        "a required password",
        swap(XRD, ("[team, size]", "[team, size, password]"), (SIZE, PASSWORD + SIZE)),
        place="definition.yaml:",
    ),
    Case(KitRule.SECRET_WITHHELD, "a password", swap(XRD, (SIZE, PASSWORD + SIZE))),
    Case(
        KitRule.PUBLIC_KEY,
        "a password",
        swap(KIT, ("  changes:", "  secrets: {public: [host, admin-password]}\n  changes:")),
        place="kit.yaml:9",
    ),
    Case(
        KitRule.PUBLIC_KEY,
        "a random value in a fixture",
        swap(KIT, ("  changes:", f"  secrets: {{public: [host, hash]}}\n{RANDOM}  changes:")),
    ),
    Case(KitRule.CHANGE_NAMES, "the team", swap(KIT, ("[size]", "[size, team]"), ("step", "any"))),
    Case(
        KitRule.CHANGE_DIRECTION,
        "a text cannot step",
        {
            **swap(KIT, ("[size]", "[note]")),
            **swap(XRD, (SIZE, "                note:\n                  type: string\n" + SIZE)),
        },
    ),
    Case(
        KitRule.CHANGE_CONFLICT,
        "never, and stepwise",
        swap(
            KIT,
            ("step\n", "step\n    - name: fixed\n      fields: [size]\n      direction: never\n"),
        ),
        place="kit.yaml:11",
    ),
    Case(
        KitRule.FORM_FIELD_UNKNOWN,
        "a field that is ignored",
        {
            "templates/lab/template.yaml": TEMPLATE.replace(
                "size:", "sizes: {type: string}\n        size:"
            )
        },
        place="template.yaml:12",
    ),
    Case(
        KitRule.FORM_FIELD_MISSING,
        "a required field",
        {"templates/lab/template.yaml": TEMPLATE.replace("        size: {type: string}\n", "")},
    ),
    Case(
        KitRule.PATTERN_BACKTRACKS,
        "a group that may begin anywhere",
        {
            "templates/lab/template.yaml": TEMPLATE.replace(
                "size: {type: string}", "size: {type: string, pattern: '^([a-z0-9]+-?)+$'}"
            )
        },
        place="template.yaml:12",
    ),
    Case(
        KitRule.KIT_CONSISTENCY,
        "a page that has a field of changes",
        {**LATER, KIT: LATER_KIT.replace("  changes:", PAGE + "  changes:")},
    ),
    Case(
        KitRule.FIELD_UNREACHABLE,
        "asked for later, and no change has it",
        {**LATER, KIT: LATER_KIT},
    ),
    Case(KitRule.MANY_FIELDS, "six", swap(XRD, (SIZE, FIELDS + SIZE))),
    Case(KitRule.EXAMPLE, "a size that is none", swap(KIT, ("size: small", "size: huge"))),
    Case(
        KitRule.EXAMPLE, "a parameter that is none", swap(KIT, ("size: small", "size: small, x: 1"))
    ),
    Case(
        KitRule.NO_EXAMPLE,
        "a pattern nobody guesses",
        {
            **swap(
                KIT,
                ("  examples:\n    - name: usual\n      values: {team: alpha, size: small}\n", ""),
            ),
            **swap(XRD, ("^[a-z][a-z0-9-]{2,28}$", "^z([0-9]{5}|[a-f]{5})q$")),
        },
    ),
    Case(KitRule.XRD_REFUSED, "its name", swap(XRD, ("name: xlabs.lab", "name: labs.lab"))),
    Case(
        KitRule.XRD_RULE,
        "half a rule",
        swap(
            XRD,
            ("[team, size]\n", f"[team, size]\n{HALF_A_RULE}"),
        ),
        place="definition.yaml:28",
    ),
    Case(
        KitRule.XRD_CUT,
        "a default of spec",
        swap(XRD, ("[team, size]\n", "[team, size]\n              minProperties: 1\n")),
        place="definition.yaml:27",
    ),
    Case(
        KitRule.XRD_SCOPE,
        "left out",
        {
            **swap(XRD, ("  scope: Cluster\n", "")),
            **swap(KIT, ("    - {apiVersion: v1, kind: Namespace}\n", "")),
        },
        {"lab": only_a_sheet},
    ),
    Case(KitRule.XRD_LEGACY, "apiVersion v1", swap(XRD, ("crossplane.io/v2", "crossplane.io/v1"))),
    Case(
        KitRule.XRD_UNMEANT,
        "a parent that may be absent",
        swap(XRD, (SIZE, MORE + INNER + SIZE)),
        place="definition.yaml:32",
    ),
    Case(KitRule.XRD_UNMEANT, "nothing declared", swap(XRD, (SIZE, MORE + SIZE))),
    Case(
        KitRule.XRD_REMARK,
        "an example",
        swap(XRD, ("How many benches.\n", "Benches.\n                  examples: [small]\n")),
    ),
    Case(
        KitRule.PRINTER_COLUMN,
        "an output that kubectl does not show",
        {KIT: f"{labkit.KIT}  outputs:\n    - {{name: bay, path: namespace}}\n"},
        place=XRD,
    ),
    Case(KitRule.XRD_PRUNABLE, "the XRD", swap(XRD, ("Prune=false,Delete=false", "Prune=false"))),
    Case(
        KitRule.NAME_LENGTH,
        "no bound",
        swap(XRD, ("{2,28}", "{2,}")),
        {"lab": only_a_bay},
    ),
    Case(KitRule.COMPOSITION_MISSING, "no file", {COMPOSITION: None}),
    Case(
        KitRule.COMPOSITION_TYPE,
        "another version",
        swap(COMPOSITION, ("org/v1alpha1\n    kind: X", "org/v1\n    kind: X")),
        place="composition.yaml:9",
    ),
    Case(
        KitRule.COMPOSITION_OPEN,
        "only a default",
        swap(XRD, ("enforcedCompositionRef", "defaultCompositionRef")),
    ),
    Case(
        KitRule.COMPOSITION_CHOICE, "misspelt", swap(XRD, ("name: lab-default", "name: lab-defalt"))
    ),
    Case(
        KitRule.COMPOSITION_MODE,
        "patches",
        swap(COMPOSITION, ("  mode:", "  patchSets: []\n  mode:")),
    ),
    Case(KitRule.COMPOSITION_STEPS, "twice", swap(COMPOSITION, ("step: ready", "step: lab"))),
    Case(
        KitRule.COMPOSITION_STEPS,
        "an input without a header, which an API server refuses",
        {COMPOSITION: f"{labkit.COMPOSITION}      input: {{kind: Input}}\n"},
    ),
    Case(
        KitRule.FUNCTION_UNDECLARED,
        "misspelt",
        swap(COMPOSITION, ("name: function-orderkit", "name: function-orderkid")),
        place="composition.yaml:15",
    ),
    Case(
        KitRule.FUNCTION_PACKAGE, "no host", swap(FUNCTIONS, ("registry.example.org/orderkit", "o"))
    ),
    Case(
        KitRule.FUNCTION_TAG,
        "no digest",
        swap(FUNCTIONS, (f"v0.7.0@sha256:{labkit.DIGEST}", "v0.7.0")),
    ),
    Case(
        KitRule.FUNCTION_MOVING,
        "latest",
        swap(FUNCTIONS, (f":v0.7.0@sha256:{labkit.DIGEST}", ":latest")),
    ),
    Case(
        KitRule.FOREIGN_STEP,
        "a template",
        {
            **swap(COMPOSITION, ("name: function-orderkit", "name: function-go-templating")),
            FUNCTIONS: labkit.FUNCTIONS.replace("function-orderkit", "function-go-templating"),
        },
    ),
    Case(
        KitRule.STATION_INPUT, "another kind", swap(COMPOSITION, ("kind: Station", "kind: Stage"))
    ),
    Case(KitRule.STATION_MISSING, "misspelt", swap(COMPOSITION, ("name: lab\n", "name: lap\n"))),
    Case(KitRule.STATION_BROKEN, "no import", {}, {"lab": BrokenStation("lab", "SyntaxError: x")}),
    Case(KitRule.STATION_IMPORTS, "time", {SOURCE: "import time\n" + labkit.STATION}, place="py:1"),
    *(
        Case(
            KitRule.STATION_IMPORTS,
            module,
            {SOURCE: f"import {module}\n" + labkit.STATION},
            place="py:1",
        )
        for module in ("orderkit.core.kit.model", "compositions.station", "yamlfiles")
    ),
    Case(KitRule.STATION_IMPORTS, "the clock", {SOURCE: CLOCK + labkit.STATION}, place="py:2"),
    Case(KitRule.STATION_DELETION, "dead", {SOURCE: 'X = "deletionTimestamp"\n'}, place="py:1"),
    Case(KitRule.AUTO_READY_LAST, "a step more", AFTER_READY, {"second": wants_nothing}),
    Case(
        KitRule.PRICES,
        "a price in words",
        {
            "gitops/prices.yaml": "apiVersion: orderkit.dev/v1alpha1\nkind: PriceTable\n"
            "metadata: {name: lab}\nspec:\n  currency: EUR\n  source: ours\n  date: '2026-11-01'\n"
            "  prices:\n    - {kind: Bay, price: cheap}\n"
        },
        place="gitops/prices.yaml:9",
    ),
    Case(
        KitRule.AUTO_READY_UNKNOWN,
        "a function that is not known",
        followed_by("function-ours"),
        beside=frozenset({KitRule.FOREIGN_STEP}),
    ),
    Case(
        KitRule.AUTO_READY_LAST,
        "a template without an annotation",
        followed_by("function-go-templating"),
        beside=frozenset({KitRule.FOREIGN_STEP}),
    ),
    Case(PipelineRule.PIPELINE_FAILS, "one size", {}, {"lab": fails_for_large}),
    Case(
        PipelineRule.NEEDS_FACTS,
        "no site",
        requiring((ENV, "EnvironmentConfig")),
        asking(ENV, "EnvironmentConfig", strict=True),
    ),
    Case(PipelineRule.NEVER_SETTLES, "a counter", {}, {"lab": counting()}),
    Case(PipelineRule.NOT_DETERMINISTIC, "a memory", {}, {"lab": remembering()}),
    Case(
        PipelineRule.NEVER_READY,
        "a policy has no status",
        {
            **composing(("networking.k8s.io/v1", "NetworkPolicy")),
            **granting("networking.k8s.io", "networkpolicies"),
        },
        also(("policy", POLICY)),
    ),
    Case(
        PipelineRule.NEEDS_STATUS,
        "a function reads what a provider writes",
        {
            **composing(("s3.example.org/v1", "Bucket")),
            **granting("s3.example.org", "buckets"),
            COMPOSITION: labkit.COMPOSITION
            + f"      input: {{{INPUT_HEAD}, fromFieldPath: status.arn}}\n",
        },
        also(("bucket", thing("Bucket", "b", "s3.example.org/v1")), ready=Ready.FALSE),
    ),
    Case(
        PipelineRule.NEEDS_STATUS,
        "a program reads what a provider writes",
        {
            **composing(("s3.example.org/v1", "Bucket")),
            **granting("s3.example.org", "buckets"),
            COMPOSITION: labkit.COMPOSITION
            + f'      input: {{{INPUT_HEAD}, source: "x = 1\\ny = b.status.atProvider.arn"}}\n',
        },
        also(("bucket", thing("Bucket", "b", "s3.example.org/v1")), ready=Ready.FALSE),
    ),
    Case(
        PipelineRule.COMPOSES_NOTHING,
        "nothing ever",
        {KIT: labkit.KIT[: labkit.KIT.index("  composes")]},
        {"lab": wants_nothing},
    ),
    Case(
        PipelineRule.COMPOSES_UNDECLARED,
        "a Secret",
        {},
        also(("key", thing("Secret", "key", home="default"))),
    ),
    Case(
        PipelineRule.COMPOSES_UNUSED, "no Secret", composing(("v1", "Secret")), place="kit.yaml:19"
    ),
    Case(
        PipelineRule.REQUIRES_UNDECLARED,
        "an environment",
        {SITE: ENVIRONMENT},
        asking(ENV, "EnvironmentConfig"),
    ),
    Case(PipelineRule.REQUIRES_UNUSED, "no environment", requiring((ENV, "EnvironmentConfig"))),
    Case(
        PipelineRule.RIGHTS,
        "policies",
        {
            **composing(("networking.k8s.io/v1", "NetworkPolicy")),
            "gitops/apis/lab/rbac.yaml": labkit.ROLE,
        },
        also(("policy", POLICY), ready=Ready.TRUE),
    ),
    Case(
        PipelineRule.RIGHTS_ANY_ROLE,
        "bindings",
        {
            **composing((f"{RBAC}/v1", "RoleBinding")),
            **granting(RBAC, '"*"'),
            "gitops/apis/lab/rbac.yaml": labkit.ROLE,
        },
        also(("binding", BINDING), ready=Ready.TRUE),
    ),
    Case(
        PipelineRule.RIGHTS_ESCALATION,
        "bindings",
        {
            **composing((f"{RBAC}/v1", "RoleBinding, binds: [view]")),
            **granting(RBAC, "rolebindings", "[get, list, watch, create, update, patch, delete]"),
            "gitops/apis/lab/rbac.yaml": labkit.ROLE,
        },
        also(("binding", BINDING), ready=Ready.TRUE),
    ),
    Case(PipelineRule.GATE_NAMESPACE, "all at once", {}, {"lab": all_at_once}),
    Case(
        PipelineRule.GATE_DEFINITION,
        "a kind and its object",
        {
            **composing(
                ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
                ("x.example.org/v1", "Bench"),
            ),
            **granting("x.example.org", "benches"),
        },
        {"lab": kind_and_object},
    ),
    Case(
        PipelineRule.NO_NAMESPACE, "a ConfigMap", {}, also(("loose", thing("ConfigMap", "loose")))
    ),
    Case(
        PipelineRule.CLUSTER_SCOPED,
        "a Namespace",
        swap(XRD, ("scope: Cluster", "scope: Namespaced")),
    ),
    Case(PipelineRule.EARLY_RETURN, "nothing for one size", {}, {"lab": nothing_for_large}),
    Case(
        PipelineRule.EARLY_RETURN,
        "without the facts",
        {SITE: ENVIRONMENT, **requiring((ENV, "EnvironmentConfig"))},
        asking(ENV, "EnvironmentConfig", early=True),
    ),
    Case(
        PipelineRule.DROPS_WHEN_UNREADY,
        "a key",
        composing(("s3.aws.m.upbound.io/v1beta1", "Bucket")),
        {"lab": waits_for_ready},
    ),
    Case(
        PipelineRule.DROPS_EARLIER_STEPS,
        "one of them",
        TWO_STATIONS,
        {**also(("extra", EXTRA)), "second": forgets},
    ),
    Case(PipelineRule.STATUS_FIELD, "not declared", {}, saying({"benches": 3})),
    Case(
        PipelineRule.COMPOSED_STATUS, "of a map", {}, also(("extra", {**EXTRA, "status": {"a": 1}}))
    ),
    Case(PipelineRule.COMPOSED_NAME, "at the longest", {}, {"lab": long_names}),
    Case(PipelineRule.SYSTEM_CONDITION, "Ready", {}, saying({}, "Ready")),
    Case(PipelineRule.CONDITION_VANISHES, "said once", {}, {"lab": says_once}),
    Case(
        PipelineRule.FACT_SOURCE,
        "a ConfigMap",
        requiring(("v1", "ConfigMap")),
        asking("v1", "ConfigMap"),
    ),
    Case(
        PipelineRule.COMPOSED_SCHEMA,
        "a misspelled field of a kind in schemas/",
        {**VM_SCHEMA, **composing(VM_KIND), **granting("compute.example.org", "virtualmachines")},
        VM_MISSPELT,
    ),
    Case(
        PipelineRule.COMPOSED_SCHEMA,
        "one of Kubernetes' own kinds",
        {},
        also(("extra", {**EXTRA, "dta": {"a": "b"}})),
    ),
    Case(
        PipelineRule.NO_SCHEMA,
        "a kind that schemas/ lacks",
        {**composing(VM_KIND), **granting("compute.example.org", "virtualmachines")},
        VM_MISSPELT,
    ),
    Case(
        PipelineRule.NOT_EMBEDDED,
        "a kind of Kubernetes",
        {**composing(("v1", "LimitRange")), **granting('""', "limitranges")},
        also(
            ("limit", thing("LimitRange", "limit", home="lab-a", spec={"limits": []})),
            ready=Ready.TRUE,
        ),
        not_embedded="LimitRange",
    ),
    Case(
        PipelineRule.PROVIDER_CONFIG,
        "a managed resource with a config of its own",
        {**MANAGED_SCHEMA, **composing(DISK_KIND), **granting("compute.aws.m.upbound.io", "disks")},
        also(("disk", disk("theirs")), ready=Ready.TRUE),
    ),
    Case(PipelineRule.IMPORT_POLICY, "managed at once", IMPORTING, importing("managed")),
    Case(PipelineRule.IMPORT_POLICY, "never managed", IMPORTING, importing("observed")),
    Case(PipelineRule.IMPORT_POLICY, "not named", IMPORTING, importing("named")),
    Case(PipelineRule.IMPORT_POLICY, "not composed", IMPORTING, importing("composed")),
    Case(KitRule.IMPORT_AGREEMENT, "no rule", agreeing((AGREED, "")), importing(), "kit.yaml:"),
    Case(
        KitRule.IMPORT_AGREEMENT,
        "the team itself",
        agreeing(("[platform]", "[platform, team]")),
        importing(),
    ),
    Case(
        KitRule.IMPORT_AGREEMENT,
        "only new orders",
        agreeing((NAMED_ANEW, "order.isNew")),
        importing(),
    ),
    Case(
        KitRule.IMPORT_AGREEMENT,
        "only when it is expensive",
        agreeing(("(order.isNew", "cost.after > 100.0 && (order.isNew")),
        importing(),
    ),
    Case(KitRule.SCHEMA_CHANGED, "edited", recorded(sha256="0" * 64), VM),
    Case(KitRule.SCHEMA_VERSION, "an older one", {**recorded(), **PINNED}, VM),
    Case(
        KitRule.SCHEMA_SOURCES,
        "an unknown key",
        {**recorded(), "schemas/sources.yaml": "kind: SchemaSources\nsorces: []\n"},
        VM,
        place="schemas/sources.yaml:None",
    ),
    Case(
        PipelineRule.LAYERS,
        "no layer for one size",
        layered(small=None),
        reading(),
        place="composition.yaml",
    ),
    Case(
        PipelineRule.LAYERS,
        "two layers for one size",
        layered(again=LAYERS["small"]),
        reading(),
    ),
    Case(
        PipelineRule.LAYERS,
        "a value that the schema refuses for one size",
        layered(large=(LAYERS["large"][0], "{racks: 0}")),
        reading(),
    ),
    Case(
        PipelineRule.LAYERS,
        "a field that may have any value",
        layered(("spec.size", "spec.team")),
        reading(),
    ),
    Case(PipelineRule.LAYERS, "a schema that is none", layered(("object", "thing")), reading()),
    Case(PipelineRule.LAYERS, "a layer without a name", layered(("name: size, ", "")), reading()),
    Case(
        PipelineRule.SETTING_MISSING,
        "given for one size only",
        layered(small=(LAYERS["small"][0], "{}")),
        reading("lifts"),
    ),
    Case(PipelineRule.SETTING_MISSING, "another type", layered(), reading(text=True)),
    Case(
        PipelineRule.ENVIRONMENT_VERSION,
        "of Crossplane 1",
        requiring((ENV.replace("beta", "alpha"), "EnvironmentConfig")),
        asking(ENV.replace("beta", "alpha"), "EnvironmentConfig"),
    ),
]


def told(case: Case) -> list[tuple[KitRule | PipelineRule, str, Finding]]:
    stations = {"lab": labkit.station, **case.stations}
    changes = dict(case.changes)
    if changes.get("docs/kits/lab.md") == "GENERATED":
        pages = labkit.generated(labkit.TEXTS)
        page = next(data for path, data in pages.items() if str(path) == "docs/kits/lab.md")
        changes["docs/kits/lab.md"] = page.decode() + "more\n"
    subject = labkit.subject(changes, stations)
    if case.not_embedded:
        pack = replace(subject.pack, embedded=lambda kind: kind.kind != case.not_embedded)
        subject = replace(subject, pack=pack)
    found = check_kit(subject).findings
    rules = []
    for entry in found:
        assert isinstance(entry.about, Finding)
        assert isinstance(entry.about.reason, KitRule | PipelineRule)
        rules.append((entry.about.reason, f"{entry.file}:{entry.line}", entry.about))
    return rules


def test_the_sound_kit_has_no_findings() -> None:
    assert told(Case(KitRule.DRIFT, "none")) == []


def test_a_kit_that_observes_first_has_no_findings() -> None:
    assert told(Case(KitRule.DRIFT, "none", IMPORTING, importing())) == []


@pytest.mark.parametrize(
    "changes",
    [
        agreeing(("has(new.taken)", "has(new.manage) && new.manage"), (NAMED_ANEW, "true")),
        agreeing((NAMED_ANEW, "order.isNew"), ("  changes:\n", f"  changes:\n{NEVER_NAMED}")),
    ],
    ids=["agreed when it is managed", "named by a new order only"],
)  # fmt: skip
def test_an_import_that_others_agree_to_has_no_findings(changes: Changes) -> None:
    assert told(Case(KitRule.DRIFT, "none", changes, importing())) == []


@pytest.mark.parametrize(
    ("config", "files"),
    [("default", {}), ("theirs", {"gitops/config/aws.yaml": CONFIG})],
    ids=["every platform's own", "delivered by the pack"],
)
def test_a_config_that_is_there_is_not_told(config: str, files: Changes) -> None:
    kit = {**composing(DISK_KIND), **granting("compute.aws.m.upbound.io", "disks")}
    stations = also(("disk", disk(config)), ready=Ready.TRUE)

    found = told(
        Case(PipelineRule.PROVIDER_CONFIG, "", {**MANAGED_SCHEMA, **kit, **files}, stations)
    )

    assert found == []


def with_group(entry: str, schema: str) -> Changes:
    """Return a kit whose example has a group with one entry, which other orders leave out."""
    group = "                group: {type: object, properties: {entry: %s}}\n"
    size = "                size:\n"
    definition = labkit.TEXTS[XRD].replace("[team, size]", "[team, group]")
    kit = labkit.KIT.replace("size: small}", f"group: {{entry: {entry}}}}}")
    return {
        XRD: definition.replace(size, group % schema + size),
        KIT: kit.replace("    - {apiVersion: v1, kind: Namespace}\n", ""),
    }


@pytest.mark.parametrize(
    ("entry", "schema", "rule"),
    [
        (
            "{gb: 5}",
            "{type: object, properties: {gb: {type: integer}}}",
            PipelineRule.COMPOSES_NOTHING,
        ),
        ("5", "{type: integer}", PipelineRule.EARLY_RETURN),
    ],
    ids=["a map of parts: the order has none", "a map of settings"],
)
def test_an_order_without_parts_is_no_early_return(
    entry: str, schema: str, rule: PipelineRule
) -> None:
    found = told(Case(rule, "", with_group(entry, schema), {"lab": one_for_each}))

    assert {each for each, _, _ in found} == {rule}


def test_layers_that_fit_every_order_have_no_findings() -> None:
    found = told(Case(PipelineRule.LAYERS, "none", layered(), reading()))

    assert found == []


def test_a_faulty_layer_is_named_with_the_order_that_gets_it() -> None:
    missing = told(Case(PipelineRule.LAYERS, "", layered(small=None), reading()))
    broken = told(
        Case(PipelineRule.LAYERS, "", layered(large=(LAYERS["large"][0], "{racks: 0}")), reading())
    )

    assert missing[0][2].message == (
        'with size=small: layer "size" is missing: no EnvironmentConfig has the labels '
        "layer=size, size=small"
    )
    assert "with size=large: the settings do not fit" in broken[0][2].message
    assert "racks" in broken[0][2].message
    assert "(layer: size)" in broken[0][2].message


def test_every_combination_of_layers_is_ordered_once() -> None:
    """Variations change one field at a time; a station may read what only two together give."""
    cloud = "                cloud: {type: string, enum: [gcp, aws], default: gcp}\n"
    changes = layered(
        ("labelsFrom: {size: spec.size}", "labelsFrom: {a: spec.size, b: spec.cloud}")
    )
    subject = labkit.subject({**changes, **swap(XRD, (SIZE, cloud + SIZE))}, {})
    assert subject.kit is not None
    orders = orders_of(subject, subject.kit).orders

    tried = [*orders, *layer_orders(subject, subject.kit, orders)]

    pairs = [(order.xr["spec"]["cloud"], order.xr["spec"]["size"]) for order in tried]
    assert set(pairs) == {(c, s) for c in ("aws", "gcp") for s in ("small", "medium", "large")}
    assert len(pairs) == len(orders) + 6 - len(set(pairs[: len(orders)]))


def test_a_station_that_keeps_a_password_has_no_findings() -> None:
    def run(request: StationRequest) -> StationResponse:
        response = labkit.station(request)
        password = generated_password(request, response, "key")
        if password and request.observed_resource("bay"):
            bay = f"lab-{request.xr['spec']['team']}"
            meta = {"metadata": {"name": "key", "namespace": bay}}
            response.want("key", {**secret({"password": password}), **meta})
        return response

    lines = "    - {apiVersion: v1, kind: Secret}\n"
    changes = {KIT: f"{labkit.KIT}{lines}  requires:\n{lines}"}

    assert told(Case(PipelineRule.FACT_SOURCE, "none", changes, {"lab": run})) == []


def test_a_station_that_asks_for_another_order_of_the_pack_has_no_findings() -> None:
    """Crossplane grants itself the XRs of the pack, and serves them."""
    xlab = ("lab.example.org/v1alpha1", "XLab")

    assert told(Case(PipelineRule.FACT_SOURCE, "none", requiring(xlab), asking(*xlab))) == []


def test_a_station_that_only_parses_dates_has_no_findings() -> None:
    parses = 'from datetime import date\nSTART = date.fromisoformat("2026-11-22")\n'

    assert told(Case(KitRule.STATION_IMPORTS, "none", {SOURCE: parses + labkit.STATION})) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}: {case.reason}")
def test_a_kit_that_breaks_one_rule_is_told_of_exactly_that_one(case: Case) -> None:
    found = told(case)
    weighty = [entry for entry in found if entry[0].severity is not FindingSeverity.NOTE]
    counted = found if case.rule.severity is FindingSeverity.NOTE else weighty

    assert {rule for rule, _, _ in counted} - case.beside == {case.rule}, counted
    assert all(" " in finding.message and finding.hint for _, _, finding in counted)
    assert not any(" " in finding.path for _, _, finding in counted)
    assert any(case.place in place for _, place, _ in counted), counted


@pytest.mark.parametrize(
    ("function", "template"),
    [
        ("function-cel-filter", ""),
        ("function-tag-manager", ""),
        ("function-pythonic", ""),
        ("function-kro", ""),
        ("function-go-templating", "gotemplating.fn.crossplane.io/ready"),
        ("function-kcl", "krm.kcl.dev/ready"),
    ],
)
def test_functions_that_judge_readiness_need_no_other(function: str, template: str) -> None:
    found = told(Case(KitRule.FOREIGN_STEP, function, followed_by(function, template)))

    assert {rule for rule, _, _ in found} == {KitRule.FOREIGN_STEP}


def test_every_rule_has_a_kit_that_breaks_it() -> None:
    assert {case.rule for case in CASES} == {*KitRule, *PipelineRule}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("function-pythonic", "functions of the pack: function-orderkit, function-auto-ready."),
        ("function-orderkitt", "did you mean 'function-orderkit'?"),
    ],
)
def test_the_hint_for_a_function_names_functions(name: str, hint: str) -> None:
    changes = swap(COMPOSITION, ("name: function-orderkit", f"name: {name}"))

    found = told(Case(KitRule.FUNCTION_UNDECLARED, name, changes))

    (finding,) = (entry for rule, _, entry in found if rule is KitRule.FUNCTION_UNDECLARED)
    command = f"orderkit functions add HOST/PATH/{name}:VERSION"
    assert finding.hint == f"{hint} Or declare it: {command}"


def test_codes_are_kebab_case_and_told_once() -> None:
    codes = [str(rule) for rule in (*KitRule, *PipelineRule)]

    assert len(set(codes)) == len(codes)
    assert all(code.replace("-", "").isalpha() and code.islower() for code in codes)
