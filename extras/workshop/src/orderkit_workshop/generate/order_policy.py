"""
Generate the policies on what Argo CD does for orders: ``gitops/apis/orders.yaml``.

Two ValidatingAdmissionPolicies, made of all kits of a pack:

- ``orders.orderkit.dev``: an order's Application delivers objects of its kit's kind and nothing
  else, and no hooks. An AppProject does not hold all hooks: releases of Argo CD with
  CVE-2026-77459 never ask it about those that run when an Application is deleted.
- ``ends.orderkit.dev``: Argo CD deletes an order's XR only if the order's Application may prune or
  is being deleted itself. A hook replaces what has its name, ``Replace=true,Force=true`` does so
  too, and both are pushed.

An order is told by its Application's name, which begins with a kit's. Argo CD's tracking annotation
has that name; on an object that Argo CD itself writes it cannot be forged, because Argo CD
overwrites it. In the writes of others, such as an account that Argo CD impersonates, it counts only
on the object that it names, because controllers copy annotations. An Application of somebody else
whose name begins with a kit's is held to the same; those of the pack's own layers are not.

The same manifests are judged by ``kubeschema.admission``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Any

from ground.argocd.sync_rules import ANNOTATIONS, FINALIZERS
from ground.names import Files
from ground.objects.kube_objects import APPLICATION, TRACKING_ID, Manifest
from orderkit.core.kit.generated_mark import pack_comment
from orderkit.core.kit.model import Kit
from orderkit.core.platform.delivery_tree import ORDERS_POLICY, layers_of
from orderkit_workshop.generate.admission_policy import binding, orders_as_parameters
from orderkit_workshop.generate.policy_parts import (
    INSTANCE_LABEL,
    Expression,
    PolicyRule,
    block,
    either,
    literal,
    optional,
    quoted,
)
from yamlfiles import yaml11

PATH = PurePosixPath("gitops", "apis", "orders.yaml")
_ENDS = "ends.orderkit.dev"
_BY_ARGOCD = "request.userInfo.username == '__ORDERKIT_ARGOCD_ACCOUNT__'"
_KIND = "request.kind.group + '/' + request.kind.kind"
_CRD = "'apiextensions.k8s.io/CustomResourceDefinition'"
_UNSTORED = (
    ("authentication.k8s.io", "*"),
    ("authorization.k8s.io", "*"),
    ("coordination.k8s.io", "leases"),
    ("", "events"),
    ("events.k8s.io", "events"),
)
"""What is written most often and no manifest holds."""
_WAY_OUT = (
    "take hooks and the sync options Replace and Force out of its repository,"
    " or end it: orderkit destroy"
)
_TAKE_OUT = "take the annotation, or the object,"
_ON_DELETION = ("pre-delete", "post-delete", *FINALIZERS)


def order_policies(files: Files, kits: Iterable[Kit]) -> dict[PurePosixPath, bytes]:
    """
    Return ``gitops/apis/orders.yaml``; nothing for a pack without kits. Deterministic.

    Args:
        files: The pack as it is, for the names of its own Applications.

    Raises:
        ManifestError: A file of ``gitops/apps`` is broken.
    """
    by_length = sorted(kits, key=lambda kit: (-len(kit.name), kit.name))
    if not by_length:
        return {}
    prefixes = tuple(f"{kit.name}-" for kit in by_length)
    names = sorted(layer.name for layer in layers_of(files) if layer.name.startswith(prefixes))
    manifests = [*_delivery_policy(by_length, names), *_end_policy(by_length)]
    return {PATH: (pack_comment() + yaml11.dump_all(manifests)).encode()}


def _delivery_policy(kits: Sequence[Kit], layers: Sequence[str]) -> list[Manifest]:
    rules = [_no_hook(), _no_definition_as_hook(), _own_kind()]
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    constraints = {
        "resourceRules": [{**everything, "operations": ["CREATE", "UPDATE"]}],
        "excludeResourceRules": [
            {**everything, "apiGroups": [group], "operations": ["*"], "resources": [resource]}
            for group, resource in _UNSTORED
        ],
    }
    condition = {
        "name": "argocd-delivers-it",
        "expression": block(either(_BY_ARGOCD, f"{_note('object')}.hasValue()")),
    }
    variables = {
        "before": "oldObject == null ? dyn({}) : oldObject",
        **_marks("object", ""),
        **_marks("variables.before", "_before"),
        "tracked_by": _tracked_by(),
        "order_kind": _order_kind(kits, layers),
    }
    return [
        _policy(ORDERS_POLICY, constraints, [condition], variables, rules),
        binding(ORDERS_POLICY),
    ]


def _end_policy(kits: Sequence[Kit]) -> list[Manifest]:
    constraints = {
        "resourceRules": [
            {
                "apiGroups": [kit.kind.group],
                "apiVersions": [kit.kind.version],
                "operations": ["DELETE"],
                "resources": [kit.xrd["spec"]["names"]["plural"]],
            }
            for kit in sorted(kits, key=lambda kit: kit.name)
        ]
    }
    condition = {"name": "argocd-deletes-it", "expression": block(_BY_ARGOCD)}
    labelled = optional("oldObject", ("metadata", "labels", INSTANCE_LABEL))
    tracked_by = f"{_note('oldObject')}.orValue({labelled}.orValue('')).split(':')[0]"
    prunes = "params.?spec.?syncPolicy.?automated.?prune.orValue(false)"
    rule = PolicyRule(
        either(
            "params.metadata.name != variables.tracked_by",
            prunes,
            "has(params.metadata.deletionTimestamp)",
        ),
        (
            "metadata: order ",
            *quoted("variables.tracked_by"),
            f" is live, and Argo CD deletes nothing of it; {_WAY_OUT} ",
            Expression("variables.tracked_by"),
        ),
        "metadata: Argo CD deletes nothing of a live order",
    )
    policy = _policy(_ENDS, constraints, [condition], {"tracked_by": tracked_by}, [rule])
    parameters = {"apiVersion": APPLICATION.api_version, "kind": APPLICATION.kind}
    policy["spec"] = {"paramKind": parameters, **policy["spec"]}
    bound = binding(_ENDS)
    bound["spec"]["paramRef"] = orders_as_parameters()
    return [policy, bound]


def _policy(
    name: str,
    constraints: Manifest,
    conditions: list[Manifest],
    variables: dict[str, str],
    rules: Iterable[PolicyRule],
) -> dict[str, Any]:
    head = binding(name)
    return {
        **head,
        "kind": "ValidatingAdmissionPolicy",
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": constraints,
            "matchConditions": conditions,
            "variables": [{"name": n, "expression": block(e)} for n, e in variables.items()],
            "validations": [rule.to_manifest() for rule in rules],
        },
    }


def _note(root: str) -> str:
    return optional(root, ("metadata", "annotations", TRACKING_ID))


def _marks(root: str, suffix: str) -> dict[str, str]:
    """Define what says whose an object is and whether it is a hook."""
    notes = {name: optional(root, ("metadata", "annotations", name)) for name in ANNOTATIONS}
    hooks = [
        f"({note}.hasValue() ? ['{name}: ' + string({note}.value())] : [])"
        for name, note in notes.items()
    ]
    labelled = optional(root, ("metadata", "labels", INSTANCE_LABEL))
    # Argo CD tracks no CRD, so that a label of one is its author's.
    instance = f"({_KIND} == {_CRD} ? '' :\n{labelled}.orValue(''))"
    return {
        f"tracking_id{suffix}": f"{_note(root)}.orValue({instance})",
        f"hooks{suffix}": " +\n".join(hooks),
    }


def _tracked_by() -> str:
    place = "has(request.namespace) ? ':' + request.namespace + '/' : '/'"
    names_it = (
        "variables.tracking_id.contains(':' + request.kind.group + '/' + request.kind.kind + ':')"
        f" &&\nvariables.tracking_id.endsWith(({place}) + object.metadata.?name.orValue(''))"
    )
    return f"{_BY_ARGOCD} ||\n({names_it}) ?\nvariables.tracking_id.split(':')[0] : ''"


def _order_kind(kits: Sequence[Kit], layers: Sequence[str]) -> str:
    """Return the only kind that the Application may deliver; empty if it is no order's."""
    first = f"variables.tracked_by in {literal(list(layers))} ? '' :\n" if layers else ""
    # A list, because conditionals nest, and cel-cpp, the embedded cluster's, parses 32 levels only.
    kinds = ",\n".join(
        f"[{literal(f'{kit.name}-')}, {literal(f'{kit.kind.group}/{kit.kind.kind}')}]"
        for kit in kits
    )
    chosen = "filter(kit, variables.tracked_by.startsWith(kit[0]))[0][1]"
    return f"{first}[\n{kinds},\n['', '']\n].{chosen}"


_SETTLED = (
    "oldObject != null && variables.tracking_id == variables.tracking_id_before &&\n"
    "variables.hooks == variables.hooks_before"
)
"""An object that broke a rule before the policy existed is left alone until its marks change."""
_OBJECT = (Expression("request.kind.kind"), " ", *quoted("object.metadata.?name.orValue('')"))


def _no_hook() -> PolicyRule:
    return PolicyRule(
        either("variables.order_kind == ''", "variables.hooks.size() == 0", _SETTLED),
        (
            "metadata.annotations: ",
            *_OBJECT,
            " is a hook of Argo CD (",
            Expression("variables.hooks[0]"),
            f"), and an order has no hooks; {_TAKE_OUT} out of the repository of ",
            Expression("variables.tracked_by"),
        ),
        "metadata.annotations: an order has no hooks of Argo CD",
    )


def _no_definition_as_hook() -> PolicyRule:
    """Refuse CRDs that Argo CD makes when an Application is deleted, whoever's it is."""
    words = " || ".join(f"h.contains({literal(word)})" for word in _ON_DELETION)
    return PolicyRule(
        either(
            f"!({_BY_ARGOCD})",
            # Argo CD does not write its tracking on a CRD: nothing tells whose it is
            f"{_KIND} != {_CRD}",
            f"!variables.hooks.exists(h, {words})",
            _SETTLED,
        ),
        (
            "metadata.annotations: ",
            *_OBJECT,
            " is a hook of Argo CD (",
            Expression("variables.hooks[0]"),
            "), and no definition is made when an Application is deleted; take the annotation out",
        ),
        "metadata.annotations: no definition is made when an Application is deleted",
    )


def _own_kind() -> PolicyRule:
    return PolicyRule(
        either("variables.order_kind == ''", f"variables.order_kind == {_KIND}", _SETTLED),
        (
            "kind: order ",
            Expression("variables.tracked_by"),
            " delivers ",
            Expression("variables.order_kind.split('/')[1]"),
            " and nothing else; take ",
            *_OBJECT,
            " out of its repository",
        ),
        "kind: an order delivers its kit's kind and nothing else",
    )
