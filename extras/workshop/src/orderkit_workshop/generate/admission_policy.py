"""
Generate a kit's ValidatingAdmissionPolicies: what the API server itself refuses.

Anyone who may push to an order's repository can bypass the form, and an AppProject does not look
inside an XR. So these rules are enforced in the cluster:

- an order's Application delivers only the order's own XR, and nothing else delivers XRs;
- nobody but Crossplane composes XRs, chooses their Composition or pins its revision;
- the fields that name order and team match the name and never change; if the id does not show the
  team, its Application does (a second policy with the Applications of all orders as parameters);
- hidden fields have the platform's value (a placeholder here, replaced when the pack is published);
- ``never``, ``grow`` and ``step`` of kit.yaml's changes are enforced (``policy_rules``), and an
  immutable field of the XRD cannot be removed and set again.

Always allowed: deletion, finalizers of deleted objects, status, Crossplane's own fields, and XRs
that another XR composes. An object that broke a rule before the policy existed is accepted until
the fields of that rule change. Not detected: a second XR of the same order in another namespace,
and a tracking annotation forged by a person with write access to the cluster (RBAC prevents that).

`only_crossplane_chooses` and `only_crossplane_owns` have the rules on what belongs to Crossplane,
because a push could name another Composition, or pin a revision of another one, which Crossplane
never compares with ``compositionRef`` (crossplane#7220). It could also drop or make up references
to composed resources, and with a legacy XR have its connection Secret written into any namespace.

The same manifests are judged by ``kubeschema.admission``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, TRACKING_ID, Manifest
from kubeschema.xrd import default_composition, machinery_path, scope_of, update_policy_of
from kubeschema.xrd.definition import spec_fields
from orderkit.core.kit.generated_mark import comment
from orderkit.core.kit.kit_file import Direction
from orderkit.core.kit.kit_file_parts import FieldPath
from orderkit.core.kit.model import Kit
from orderkit.core.order.ledger import ORDER_LABEL
from orderkit_workshop.generate.policy_parts import (
    AGAIN,
    BY_CROSSPLANE,
    INSTANCE_LABEL,
    Expression,
    PolicyRule,
    Variables,
    block,
    changes,
    either,
    literal,
    lookup,
    optional,
    quoted,
    shown,
)
from orderkit_workshop.generate.policy_rules import (
    RestrictedField,
    allowed_expression,
    identity,
    limits,
    positions_map,
    same_tracker,
)
from yamlfiles import yaml11


def only_crossplane_chooses(kit: Kit, variables: Variables) -> PolicyRule:
    """Return the rule that nobody but Crossplane sets or changes these fields."""
    path, policy = machinery_path(kit.xrd), update_policy_of(kit.xrd)
    fields = spec_fields(scope_of(kit.xrd), policy)
    names = sorted(fields["crossplane"]["properties"] if "crossplane" in fields else fields)
    offered = f"== {literal(default_composition(kit.xrd))}"
    if kit.compositions:
        offered = f"in {literal(list(kit.offered))}"
    expressions = variables.expressions
    expressions["machinery"] = lookup("object", path).replace("null", "{}")
    expressions["machinery_before"] = lookup("variables.before", path).replace("null", "{}")
    now, was = "variables.machinery", "variables.machinery_before"
    expressions["chosen"] = (
        f"{literal(names)}.filter(f, f in {now} &&\n"
        f"!(f in {was} && {now}[f] == {was}[f]) &&\n"
        f"{_pins(kit, now)}"
        f"!(f == 'compositionUpdatePolicy' && {now}[f] == {literal(policy)}) &&\n"
        f"!(f == 'compositionRef' && {now}[f].name {offered}))"
    )
    return PolicyRule(
        either(BY_CROSSPLANE, "variables.chosen.size() == 0"),
        (
            f"{'.'.join(path)}.",
            Expression("variables.chosen[0]"),
            ": only Crossplane sets it, so orders get the kit's Composition; take it out",
        ),
        f"{'.'.join(path)}: only Crossplane chooses the Composition",
    )


def _pins(kit: Kit, now: str) -> str:
    """
    Return what lets a push pin a revision of the kit's own Composition, if the kit allows that.

    Crossplane names revisions after their Composition, with seven digits of a hash.
    """
    composition = default_composition(kit.xrd)
    if not kit.pins or not composition:
        return ""
    pattern = literal(f"^{re.escape(composition)}-[0-9a-f]{{7}}$")
    return (
        f"!(f == 'compositionUpdatePolicy' && {now}[f] in ['Automatic', 'Manual']) &&\n"
        f"!(f == 'compositionRevisionRef' && {now}[f].name.matches({pattern})) &&\n"
    )


def only_crossplane_owns(variables: Variables) -> PolicyRule:
    """Return the rule that nobody but Crossplane adds an owner."""
    expressions, path = variables.expressions, ("metadata", "ownerReferences")
    expressions["owners_before"] = f"{optional('variables.before', path)}.orValue([])"
    # the garbage collector deletes an object whose owners do not exist: a made-up owner would end
    # the order past the guards of its end
    expressions["new_owners"] = (
        f"{optional('object', path)}.orValue([]).filter(o,\n"
        "!variables.owners_before.exists(b, b.uid == o.uid))"
    )
    return PolicyRule(
        either(BY_CROSSPLANE, "variables.new_owners.size() == 0"),
        (
            "metadata.ownerReferences: ",
            Expression("variables.new_owners[0].kind"),
            " ",
            *quoted("variables.new_owners[0].name"),
            " would own the order, and only Crossplane makes an XR a part of another; take it out",
        ),
        "metadata.ownerReferences: only Crossplane makes an XR a part of another",
    )


def hidden_values(kit: Kit, variables: Variables) -> Iterator[PolicyRule]:
    """Yield a rule for each field whose value the platform sets."""
    for path, hidden in kit.hidden.items():
        now, was = variables.field(path)
        yield PolicyRule(
            either(
                f"{now} != null && string({now}) == {literal(hidden.sentinel)}",
                f"oldObject != null && {now} == {was}",
            ),
            (
                f"spec.{path}: is ",
                shown(kit, path, now),
                f", but the platform gives this value: {hidden.sentinel}; put it back",
            ),
            f"spec.{path} is not the value that the platform gives",
        )


def limited(limit: RestrictedField, variables: Variables) -> PolicyRule:
    """Return the rule for a field whose changes are limited."""
    kit, path = variables.kit, limit.path
    now, was = variables.field(path)
    if limit.directions == (Direction.NEVER,):
        rule, back = "it never changes", "put it back"
        expression = either("oldObject == null", f"{now} == {was}")
    else:
        rule, back = _direction(limit)
        body = _with_places(limit, variables, allowed_expression(limit, was, now))
        expression = either(f"{now} == {was}", f"{was} == null", f"({now} != null && ({body}))")
    return PolicyRule(
        expression,
        (*changes(kit, path, variables), f", but {rule}; {back}, {AGAIN}"),
        f"spec.{path}: {rule}",
    )


def _with_places(limit: RestrictedField, variables: Variables, body: str) -> str:
    """Define a variable for the positions of an enum's values."""
    if not (positions := positions_map(limit)):
        return body
    name = variables.field(limit.path)[0].replace("variables.spec_", "places_")
    variables.expressions[name] = positions
    return body.replace(positions, f"variables.{name}")


def _direction(limit: RestrictedField) -> tuple[str, str]:
    """Return a limit in words, and the way out."""
    values = ", ".join(str(value) for value in limit.schema.get("enum") or () if value is not None)
    order = f" ({values})" if values else ""
    if limit.directions == (Direction.GROW,):
        return f"it may only grow{order}", "put back what it was, or more"
    if limit.directions == (Direction.STEP,):
        rule = f"it goes one step at a time{order}"
        return rule, "take the steps one by one, each in a commit of its own"
    return f"it may only grow, or go one step at a time{order}", "put back what it was, or more"


def immutable(kit: Kit, variables: Variables) -> Iterator[PolicyRule]:
    """Yield rules for immutable fields."""
    for path in _calls_immutable(kit.spec_schema, ""):
        now, was = variables.field(path)
        # the server does not evaluate a field's own rules when the field is removed
        yield PolicyRule(
            either(f"{was} == null", f"{now} != null"),
            (
                f"spec.{path}: is taken away, it was ",
                shown(kit, path, was),
                f", but the kit's definition calls it immutable; put it back, {AGAIN}",
            ),
            f"spec.{path} is immutable and cannot be taken away",
        )


def _calls_immutable(schema: Any, path: FieldPath) -> Iterator[FieldPath]:
    for name, child in (schema.get("properties") or {}).items():
        child_path = f"{path}.{name}" if path else name
        rules = (rule.get("rule", "") for rule in child.get("x-kubernetes-validations") or ())
        if any("".join(rule.split()) in {"self==oldSelf", "oldSelf==self"} for rule in rules):
            yield child_path
        yield from _calls_immutable(child, child_path)


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
