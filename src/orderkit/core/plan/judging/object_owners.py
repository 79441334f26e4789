"""
Scopes, namespaces and owners of composed objects: what Crossplane and the API server allow.

A namespaced XR composes only namespaced objects of its own namespace. A cluster-scoped XR composes
anything, but a namespaced object needs a namespace that exists. An owner must be in the same
namespace or cluster-scoped: the garbage collector deletes an object whose owner it cannot find.
"""

from __future__ import annotations

from collections.abc import Iterator

from ground.objects.kube_objects import NAMESPACE, Kind, metadata
from kubeschema.validate.hints import shown
from orderkit.core.plan.assembly import Assembly, Fault
from orderkit.core.plan.judging.fault_codes import JudgingFacts, OutcomeRule
from orderkit.core.plan.object_texts import key_text
from orderkit.core.plan.outcome_objects import OutcomeObject, objects_of, parent_of
from orderkit.core.unserved_kinds import unserved_advice


def judge_scopes(after: Assembly, facts: JudgingFacts) -> Iterator[Fault]:
    """Yield faults of scopes, namespaces, kinds and owners."""
    composed_namespaces = {
        metadata(obj.manifest).get("name") for obj in objects_of(after) if obj.kind == NAMESPACE
    }
    for obj in objects_of(after):
        if obj.kind in facts.unserved and not obj.prefix:
            yield _unserved(obj)
        else:
            yield from _scope(obj, after, facts)
        if not obj.prefix:
            yield from _namespace(obj, after, facts, composed_namespaces)
        yield from _owners(obj, facts)


def _unserved(obj: OutcomeObject) -> Fault:
    kind = obj.kind
    message = f'no matches for kind "{kind.kind}" in version "{kind.api_version}"'
    return Fault(
        obj.path,
        f"{message}: this cluster does not serve it, so the part cannot be made, and Crossplane "
        "stops composing the whole order",
        "apiVersion",
        unserved_advice(kind),
        code=OutcomeRule.UNKNOWN_KIND,
        value=shown(kind.api_version),
    )


def _scope(obj: OutcomeObject, after: Assembly, facts: JudgingFacts) -> Iterator[Fault]:
    namespaced = facts.schemas.namespaced(obj.kind)
    above = metadata(parent_of(obj.path, after)).get("namespace")
    home = metadata(obj.manifest).get("namespace")
    if namespaced is False and above and not obj.prefix:
        yield Fault(
            obj.path,
            f"{key_text(obj.manifest)} is cluster-scoped: a namespaced XR can only compose "
            f"objects in its own namespace, {above}",
            "kind",
            "make the XRD's scope Cluster, or wrap the object in a provider-kubernetes Object",
            code=OutcomeRule.SCOPE,
            value=shown(obj.kind.kind),
        )
    elif namespaced and not home:
        yield Fault(
            obj.path,
            f"{key_text(obj.manifest)} is namespaced and has no namespace",
            obj.field("metadata.namespace"),
            "set metadata.namespace",
            code=OutcomeRule.SCOPE,
        )


def _namespace(
    obj: OutcomeObject, after: Assembly, facts: JudgingFacts, composed_namespaces: set[str | None]
) -> Iterator[Fault]:
    home = metadata(obj.manifest).get("namespace")
    xr_namespace = metadata(after.xr).get("namespace")
    if (
        home
        and home != xr_namespace
        and home not in composed_namespaces
        and home in facts.missing_namespaces
    ):
        yield Fault(
            obj.path,
            f'namespaces "{home}" not found: nothing in the order creates it',
            "metadata.namespace",
            "compose the Namespace first, and the rest once it is observed",
            code=OutcomeRule.NO_NAMESPACE,
            value=shown(home),
        )


def _owners(obj: OutcomeObject, facts: JudgingFacts) -> Iterator[Fault]:
    owners = [o for o in metadata(obj.manifest).get("ownerReferences") or () if type(o) is dict]
    if sum(bool(owner.get("controller")) for owner in owners) > 1:
        message = "Only one reference can have Controller set to true"
        yield _owned(obj, message, "leave the controller to Crossplane")
    if metadata(obj.manifest).get("namespace") or facts.schemas.namespaced(obj.kind) is not False:
        return
    for owner in owners:
        kind = Kind.parse(str(owner.get("apiVersion", "")), str(owner.get("kind", "")))
        if facts.schemas.namespaced(kind):
            message = (
                f"{key_text(obj.manifest)} is cluster-scoped and owned by {kind.kind} "
                f"{owner.get('name')}, which is namespaced: the garbage collector deletes it"
            )
            yield _owned(obj, message, "remove the owner reference, or use a cluster-scoped owner")


def _owned(obj: OutcomeObject, message: str, hint: str) -> Fault:
    return Fault(
        obj.path, message, obj.field("metadata.ownerReferences"), hint, code=OutcomeRule.OWNER
    )
