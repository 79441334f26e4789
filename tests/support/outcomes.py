"""
A small shop for tests of plans: XRDs, stations that want what a test says, plans of a step.

A `Shop` is one side of a step: its XRD, its pipeline and what judges it. `step` assembles the same
order by one shop and by another, as the flow that plans does, and compares.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compositions.composed import PipelineStep
from compositions.python_functions import AUTO_READY_FUNCTION, STATION_FUNCTION, python_functions
from compositions.station import INPUT, Station, StationRequest, StationResponse
from ground.objects.kube_objects import Manifest
from kubeschema.known import SchemaSet, built_in, layer_of
from kubeschema.validate import Validator
from orderkit.core.plan import AssemblyContext, Blueprint, Plan, assemble, compare
from orderkit.core.plan.composed_tree import PackRules
from orderkit.core.plan.dangers import DangerContext
from orderkit.core.plan.judging import JudgingFacts, judge

GROUP = "shop.example.org"
UID = "11111111-0000-0000-0000-000000000000"
Wants = Mapping[str, Manifest]
Fields = Mapping[str, Any]
_STATION = {"apiVersion": INPUT.api_version, "kind": INPUT.kind}
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(
    kind: str,
    fields: Fields | None = None,
    *,
    scope: str = "Cluster",
    required: Sequence[str] = (),
) -> Manifest:
    """Return an XRD; without fields its spec may have any."""
    spec: dict[str, Any] = dict(_OPEN)
    if fields is not None:
        spec = {"type": "object", "properties": dict(fields)}
        spec |= {"required": list(required)} if required else {}
    version = {
        "name": "v1",
        "served": True,
        "referenceable": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": spec, "status": _OPEN},
                "required": ["spec"],
            }
        },
    }
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "versions": [version],
        },
    }


def wanting(wants: Callable[[dict[str, Any]], Wants] | Wants) -> Station:
    """Return a station that wants the same always, or what a function of the spec says."""

    def station(request: StationRequest) -> StationResponse:
        response = StationResponse.to(request)
        found = wants(request.xr["spec"]) if callable(wants) else wants
        for name, manifest in found.items():
            response.want(name, copy.deepcopy(manifest))
        return response

    return station


@dataclass(frozen=True)
class Shop:
    """One side of a step: how XShops are defined, assembled and judged."""

    station: Station
    xrd: Manifest = field(default_factory=lambda: definition("XShop"))
    nested: Mapping[str, Station] = field(default_factory=dict)
    """Kinds of nested XRs, ``part`` for an XPart, and what assembles them."""
    laws: PackRules = field(default_factory=PackRules)
    existing: Sequence[Manifest] = ()

    @property
    def workshop(self) -> AssemblyContext:
        """What assembles orders of this side."""
        stations = {"xshop": self.station, **self.nested}
        xrds = {"xshop": self.xrd} | {name: definition(f"X{name.title()}") for name in self.nested}
        delivered = {**layer_of(xrds.values()), **self.laws.delivered}
        return AssemblyContext(
            {
                (GROUP, xrd["spec"]["names"]["kind"]): Blueprint(
                    Validator(xrd),
                    (
                        PipelineStep("main", STATION_FUNCTION, {**_STATION, "name": name}),
                        PipelineStep("ready", AUTO_READY_FUNCTION),
                    ),
                )
                for name, xrd in xrds.items()
            },
            python_functions(stations),
            existing=self.existing,
            laws=replace(self.laws, delivered=delivered),
            scopes={**replace(self.laws, delivered=delivered).scopes},
        )


def an_xr(spec: Fields, *, namespace: str = "", **metadata: Any) -> Manifest:
    """Return an order of the shop."""
    home = {"namespace": namespace} if namespace else {}
    meta = {"name": "one", "uid": UID, **home, **metadata}
    return {"apiVersion": f"{GROUP}/v1", "kind": "XShop", "metadata": meta, "spec": dict(spec)}


def step(
    old: Shop,
    new: Shop,
    *,
    before: Manifest | None = None,
    after: Manifest | None = None,
    facts: JudgingFacts | None = None,
) -> Plan:
    """Return what the step from one side to the other does to an order, judged."""
    one = before if before is not None else an_xr({})
    other = after if after is not None else one
    made = assemble(one, old.workshop)
    workshop = new.workshop
    became = assemble(other, workshop, observed=made.observed)
    fresh = assemble(other, workshop)
    became = judge(made, became, facts or facts_of(workshop))
    return compare(
        made, became, fresh=fresh, context=DangerContext(workshop.laws, workshop.existing)
    )


def facts_of(workshop: AssemblyContext, **more: Any) -> JudgingFacts:
    """Return what is known without a cluster."""
    laws = workshop.laws
    return JudgingFacts(
        schemas=SchemaSet((laws.supplied, laws.delivered, built_in())),
        assembled=workshop.blueprints.keys(),
        roles=laws.roles,
        **more,
    )


def change(old: Wants, new: Wants, **sides: Any) -> Plan:
    """Return what it does when an order that composes these composes those."""
    return step(Shop(wanting(old), **sides), Shop(wanting(new), **sides))


def outcome(wants: Wants, **sides: Any) -> Plan:
    """Return the plan of an order that composes these already."""
    return change(wants, wants, **sides)


def crd(group: str, kind: str, spec: Fields, *, scope: str = "Namespaced", **more: Any) -> Manifest:
    """Return a CRD as a provider brings it."""
    plural = f"{kind.lower()}s"
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": dict(spec), **more},
                       "status": _OPEN},
    }  # fmt: skip
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {"name": "v1", "served": True, "storage": True,
                 "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }  # fmt: skip


def thing(api_version: str, kind: str, name: str = "", **parts: Any) -> Manifest:
    """Return an object; ``namespace=`` and ``labels=``, ``annotations=`` go into its metadata."""
    given: dict[str, Any] = {
        key: parts.pop(key)
        for key in ("namespace", "labels", "annotations", "finalizers", "ownerReferences")
        if key in parts
    }
    meta = {"name": name or kind.lower(), **given}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **parts}


def config(name: str = "map", **data: Any) -> Manifest:
    """Return a ConfigMap."""
    return thing("v1", "ConfigMap", name, namespace="shop", data=data)


def wrapping(manifest: Manifest, **spec: Any) -> Manifest:
    """Return a provider-kubernetes Object around an object."""
    return thing(
        "kubernetes.m.crossplane.io/v1alpha1", "Object", "wrapper", namespace="shop",
        spec={"forProvider": {"manifest": manifest}, **spec},
    )  # fmt: skip
