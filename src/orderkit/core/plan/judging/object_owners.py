"""
Where composed objects live, and who owns them: what Crossplane and the API server allow.

A namespaced XR composes namespaced objects of its own namespace, nothing else; a cluster-scoped
XR composes anything, but a namespaced object needs a namespace, and that must exist. Owner
references reach neither from one namespace into another nor from a namespace out of it: the garbage
collector deletes an object whose owner it cannot find.
"""

from __future__ import annotations

from collections.abc import Iterator

from orderkit.core.objects.kube_objects import NAMESPACE, Kind, metadata
from orderkit.core.plan.assembly import Assembly, Fault, key_text
from orderkit.core.plan.judging.verdicts import JudgingFacts, OutcomeRule
from orderkit.core.plan.outcome_objects import Part, parent_of, parts_of
from orderkit.core.schema.validate.hints import shown


def judge_places(after: Assembly, facts: JudgingFacts) -> Iterator[Fault]:
    """Yield what is wrong with scopes, namespaces, kinds and owners."""
    made = {
        metadata(part.manifest).get("name") for part in parts_of(after) if part.kind == NAMESPACE
    }
    for part in parts_of(after):
        if part.kind in facts.unserved and not part.prefix:
            yield _unserved(part)
        else:
            yield from _scope(part, after, facts)
        if not part.prefix:
            yield from _namespace(part, after, facts, made)
        yield from _owners(part, facts)


def _unserved(part: Part) -> Fault:
    kind = part.kind
    told = f'no matches for kind "{kind.kind}" in version "{kind.api_version}"'
    return Fault(
        part.path,
        f"{told}: Crossplane gives up the whole order on it",
        "apiVersion",
        "install what brings the kind, or deliver its CRD with the pack",
        code=OutcomeRule.UNKNOWN_KIND,
        value=shown(kind.api_version),
    )


def _scope(part: Part, after: Assembly, facts: JudgingFacts) -> Iterator[Fault]:
    namespaced = facts.schemas.namespaced(part.kind)
    above = metadata(parent_of(part.path, after)).get("namespace")
    home = metadata(part.manifest).get("namespace")
    if namespaced is False and above and not part.prefix:
        yield Fault(
            part.path,
            f"{key_text(part.manifest)} is cluster-scoped: a namespaced XR composes only what "
            f"lives in its own namespace, {above}",
            "kind",
            "make the XRD's scope Cluster, or wrap the object in a provider-kubernetes Object",
            code=OutcomeRule.SCOPE,
            value=shown(part.kind.kind),
        )
    elif namespaced and not home:
        yield Fault(
            part.path,
            f"{key_text(part.manifest)} is namespaced and has no namespace",
            part.field("metadata.namespace"),
            "set metadata.namespace",
            code=OutcomeRule.SCOPE,
        )


def _namespace(
    part: Part, after: Assembly, facts: JudgingFacts, made: set[str | None]
) -> Iterator[Fault]:
    home = metadata(part.manifest).get("namespace")
    own = metadata(after.xr).get("namespace")
    if home and home != own and home not in made and home in facts.missing_namespaces:
        yield Fault(
            part.path,
            f'namespaces "{home}" not found: nothing here makes it',
            "metadata.namespace",
            "compose the Namespace, and the rest once it is observed",
            code=OutcomeRule.NO_NAMESPACE,
            value=shown(home),
        )


def _owners(part: Part, facts: JudgingFacts) -> Iterator[Fault]:
    owners = [o for o in metadata(part.manifest).get("ownerReferences") or () if type(o) is dict]
    if sum(bool(owner.get("controller")) for owner in owners) > 1:
        told = "Only one reference can have Controller set to true"
        yield _owned(part, told, "leave the controller to Crossplane")
    if metadata(part.manifest).get("namespace") or facts.schemas.namespaced(part.kind) is not False:
        return
    for owner in owners:
        kind = Kind.parse(str(owner.get("apiVersion", "")), str(owner.get("kind", "")))
        if facts.schemas.namespaced(kind):
            told = (
                f"{key_text(part.manifest)} is cluster-scoped and owned by {kind.kind} "
                f"{owner.get('name')}, which is namespaced: the garbage collector deletes it"
            )
            yield _owned(part, told, "give it no owner, or one that is cluster-scoped")


def _owned(part: Part, told: str, hint: str) -> Fault:
    return Fault(
        part.path, told, part.field("metadata.ownerReferences"), hint, code=OutcomeRule.OWNER
    )
