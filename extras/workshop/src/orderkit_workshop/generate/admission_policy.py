"""
Generate a kit's ValidatingAdmissionPolicies: what the API server itself refuses.

Anyone who may push to an order's repository can bypass the form, and an AppProject does not look
inside an XR. So these rules are enforced in the cluster:

- an order's Application delivers only the order's own XR, and nothing else delivers XRs;
- nobody but Crossplane composes XRs, chooses their Composition or pins its revision;
- the fields that name order and team match the name and never change; if the id does not show the
  team, its Application does (a second policy with the Applications of all orders as parameters);
- hidden fields have the platform's value (a placeholder here, replaced when the pack is published);
- ``never``, ``grow`` and ``step`` of kit.yaml's changes are enforced (``cel_transitions``), and an
  immutable field of the XRD cannot be removed and set again.

Always allowed: deletion, finalizers of deleted objects, status, Crossplane's own fields, and XRs
that another XR composes. An object that broke a rule before the policy existed is accepted until
the fields of that rule change. Not detected: a second XR of the same order in another namespace,
and a tracking annotation forged by a person with write access to the cluster (RBAC prevents that).

The same manifests are judged by ``kubeschema.admission``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, TRACKING_ID, Manifest
from orderkit.core.kit.generated_mark import comment
from orderkit.core.kit.model import Kit
from orderkit.core.order.ledger import ORDER_LABEL
from orderkit_workshop.generate.cel_text import Expression, block, either, literal, lookup, optional
from orderkit_workshop.generate.cel_transitions import limits
from orderkit_workshop.generate.policy_crossplane import (
    only_crossplane_chooses,
    only_crossplane_owns,
)
from orderkit_workshop.generate.policy_field_rules import hidden_values, immutable, limited
from orderkit_workshop.generate.policy_identity import identity, same_tracker
from orderkit_workshop.generate.policy_parts import (
    BY_CROSSPLANE,
    INSTANCE_LABEL,
    PolicyRule,
    Variables,
    quoted,
    shown,
)
from yamlfiles import yaml11

GROUP = "admissionregistration.k8s.io"
_TEAM_PREFIX = "group:default/"
_WAVE = {"argocd.argoproj.io/sync-wave": "1"}


def policy(kit: Kit) -> dict[PurePosixPath, bytes]:
    """Return ``gitops/apis/<kit>/policy.yaml``."""
    path = PurePosixPath("gitops", "apis", kit.name, "policy.yaml")
    return {path: (comment(kit.name) + yaml11.dump_all(manifests(kit))).encode()}


def manifests(kit: Kit) -> list[Manifest]:
    """Return the kit's policies and their bindings."""
    policies = [*_own_policy(kit)]
    if kit.team_from and kit.name_from != (kit.team_from,):
        policies += _team_policy(kit)
    return policies


def _own_policy(kit: Kit) -> Iterator[Manifest]:
    variables = Variables(kit)
    rules = [
        *identity(kit, variables),
        *hidden_values(kit, variables),
        *(limited(limit, variables) for limit in limits(kit)),
        *immutable(kit, variables),
        only_crossplane_chooses(kit, variables),
        only_crossplane_owns(variables),
    ]
    name = f"{kit.name}.orderkit.dev"
    yield _policy(kit, name, variables, rules)
    yield binding(name)


def _team_policy(kit: Kit) -> Iterator[Manifest]:
    """Require the team of the AppProject that the order's Application belongs to."""
    variables = Variables(kit)
    now, was = variables.field(kit.team_from)
    variables.expressions["team"] = (
        f"{now} == null ? '' : string({now}).startsWith({literal(_TEAM_PREFIX)}) ?\n"
        f"string({now}).substring({len(_TEAM_PREFIX)}) : string({now})"
    )
    project = "params.?spec.?project.orValue('')"
    rule = PolicyRule(
        either(
            f"oldObject != null && {now} == {was} && {same_tracker()}",
            f"{was} != null && {now} != {was}",  # the other policy refuses that
            "params.metadata.name != variables.tracked_by",
            f"{project} == variables.team",
        ),
        (
            f"spec.{kit.team_from}: is ",
            shown(kit, kit.team_from, now),
            ", but order ",
            Expression("variables.tracked_by"),
            " belongs to team ",
            *quoted(project),
            "; put that team there, or order again as the other one",
        ),
        f"spec.{kit.team_from} is not the team that the order belongs to",
    )
    name = f"team.{kit.name}.orderkit.dev"
    policy_manifest = _policy(kit, name, variables, [rule])
    kind = {"apiVersion": APPLICATION.api_version, "kind": APPLICATION.kind}
    spec: dict[str, Any] = {"paramKind": kind, **policy_manifest["spec"]}
    spec["matchConditions"] = [*spec["matchConditions"], _changes_team(kit)]
    policy_manifest["spec"] = spec
    yield policy_manifest
    bound = binding(name)
    bound["spec"]["paramRef"] = orders_as_parameters()
    yield bound


def orders_as_parameters() -> Manifest:
    """Return the reference to the Applications of all orders."""
    return {
        "namespace": ARGOCD_NAMESPACE,
        # All orders, not those of the kit: a pushed record says which kit an order is of.
        "selector": {"matchExpressions": [{"key": ORDER_LABEL, "operator": "Exists"}]},
        # No order at all. Deny would also stop Crossplane from ending the last XR.
        "parameterNotFoundAction": "Allow",
    }


def _changes_team(kit: Kit) -> Manifest:
    """Skip most updates before the Application of every order is looked at."""
    paths = (
        ("spec", *kit.team_from.split(".")),
        ("metadata", "annotations", TRACKING_ID),
        ("metadata", "labels", INSTANCE_LABEL),
    )
    changes = (f"{lookup('object', path)} != {lookup('oldObject', path)}" for path in paths)
    return {
        "name": "sets-team-or-application",
        "expression": block(either("oldObject == null", *changes)),
    }


def _policy(kit: Kit, name: str, variables: Variables, rules: list[PolicyRule]) -> Manifest:
    kind = kit.kind
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name, "annotations": _WAVE},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [kind.group],
                        "apiVersions": [kind.version],
                        "operations": ["CREATE", "UPDATE"],
                        # Without subresources, so that updates of the status are never judged.
                        "resources": [kit.xrd["spec"]["names"]["plural"]],
                    }
                ]
            },
            "matchConditions": _conditions(),
            "variables": variables.to_manifest(),
            "validations": [rule.to_manifest() for rule in rules],
        },
    }


def binding(name: str) -> Manifest:
    """Return the binding of a policy, which denies what the policy refuses."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name, "annotations": _WAVE},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }


def _conditions() -> list[Manifest]:
    """Skip objects that are being deleted, and XRs that another XR composes."""
    tracking_note = optional("object", ("metadata", "annotations", TRACKING_ID))
    labelled = optional("object", ("metadata", "labels", INSTANCE_LABEL))
    owners = lookup("object", ("metadata", "ownerReferences")).replace("null", "[]")
    # The groups of composite resources contain a dot; those of Kubernetes' own owners may not.
    controls = "o.?controller.orValue(false) && o.apiVersion.contains('.')"
    composed = f"!({BY_CROSSPLANE} && {owners}.exists(o, {controls}))"
    return [
        {
            "name": "is-not-being-deleted",
            "expression": "!has(object.metadata.deletionTimestamp)",
        },
        {
            "name": "is-no-part-of-another",
            "expression": block(
                either(f"{tracking_note}.hasValue()", f"{labelled}.hasValue()", composed)
            ),
        },
    ]
