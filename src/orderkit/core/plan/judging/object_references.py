"""
What composed objects refer to and nothing makes, and which scopes and owners are not allowed.

`judge_references` finds ProviderConfigs, and Secrets of Pods and providers, that nothing makes. A
managed resource without its config or its password, and a Pod without its Secret, wait for ever:
the order fails after it was written. What the order itself makes, or names elsewhere as something
to be made (the Secret of a Certificate, a connection Secret), is not missing.

`judge_scopes` judges scopes, namespaces and owners by what Crossplane and the API server allow. A
namespaced XR composes only namespaced objects of its own namespace. A cluster-scoped XR composes
anything, but a namespaced object needs a namespace that exists. An owner must be in the same
namespace or cluster-scoped: the garbage collector deletes an object whose owner it cannot find.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ground.objects.kube_objects import (
    NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    dig,
    makes_nothing,
    metadata,
    secret_references,
    wrapped_object,
)
from kubeschema.known.managed_behaviour import config_group, is_modern
from kubeschema.validate.object_check import shown
from orderkit.core.plan.assembly import (
    Assembly,
    Fault,
    OutcomeObject,
    key_text,
    objects_of,
    parent_of,
)
from orderkit.core.plan.judging.fault_codes import JudgingFacts, OutcomeRule
from orderkit.core.unserved_kinds import unserved_advice

SECRET = Kind("", "v1", "Secret")
_STOPS = "so the part cannot be made, and Crossplane stops composing the whole order"


def references_of(after: Assembly) -> frozenset[ObjectKey]:
    """Return what objects of an outcome need that it does not make; configs without a version."""
    return frozenset(key for _, _, key in _references(after))


def judge_references(after: Assembly, facts: JudgingFacts) -> Iterator[Fault]:
    """Yield a fault for each object that needs what the cluster does not have."""
    for obj, field, key in _references(after) if facts.missing else ():
        if key not in facts.missing:
            continue
        home = f" in namespace {key.namespace}" if key.namespace else ""
        yield Fault(
            obj.path,
            f'{key.kind} "{key.name}" not found{home}: nothing in the order makes it',
            obj.field(field),
            f"make it before the order, deliver it with the pack, or correct '{key.name}'",
            code=OutcomeRule.MISSING,
            value=shown(key.name),
        )


def _references(after: Assembly) -> Iterator[tuple[OutcomeObject, str, ObjectKey]]:
    objects = list(objects_of(after))
    made = {(obj.kind.group, obj.kind.kind, metadata(obj.manifest).get("name")) for obj in objects}
    for obj in objects:
        config = None if obj.prefix else config_of(obj.manifest)
        if config and (config.kind.group, config.kind.kind, config.name) not in made:
            yield obj, "spec.providerConfigRef", config
        home = metadata(obj.manifest).get("namespace") or metadata(after.xr).get("namespace")
        for field, name in _secrets(obj.manifest):
            others = (other.manifest for other in objects if other.path != obj.path)
            if home and not any(_mentions(other, name) for other in others):
                yield obj, field, ObjectKey(SECRET, name, home)
        for field, key in () if obj.prefix else _read_by_provider(obj.manifest):
            others = (other.manifest for other in objects if other.path != obj.path)
            if not any(_mentions(other, key.name) for other in others):
                yield obj, field, key


def _read_by_provider(managed: Manifest) -> Iterator[tuple[str, ObjectKey]]:
    """
    Yield the Secrets without which a provider does not create a managed resource.

    A password that is generated needs none: the provider writes that Secret.
    """
    if config_of(managed) is None or wrapped_object(managed) or makes_nothing(managed):
        return
    for_provider = managed["spec"]["forProvider"]
    for field, reference in secret_references(for_provider):
        is_made = field == "passwordSecretRef" and for_provider.get("autoGeneratePassword")
        home = metadata(managed).get("namespace") or reference.get("namespace")
        if home and not is_made:
            yield f"spec.forProvider.{field}", ObjectKey(SECRET, str(reference["name"]), str(home))


def config_of(managed: Manifest) -> ObjectKey | None:
    """
    Return the config that a managed resource needs, by crossplane-runtime's defaults.

    Its kind has no version. None: the object is no managed resource.
    """
    kind, spec = Kind.of(managed), managed.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("forProvider"), dict):
        return None
    reference = spec.get("providerConfigRef")
    given = reference if isinstance(reference, dict) else {}
    default = "ClusterProviderConfig" if is_modern(kind) else "ProviderConfig"
    config = Kind(config_group(kind), "", str(given.get("kind") or default))
    is_local = config.kind == "ProviderConfig" and is_modern(kind)
    home = metadata(managed).get("namespace", "") if is_local else ""
    return ObjectKey(config, str(given.get("name") or "default"), home)


def _secrets(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield the Secrets that Pods of a workload need, with the field that names each."""
    for path in (("spec", "template", "spec"), ("spec", "jobTemplate", "spec", "template", "spec")):
        pod = dig(manifest, *path)
        if isinstance(pod, dict) and isinstance(pod.get("containers"), list):
            for name in dict.fromkeys(_named_secrets(pod)):
                yield ".".join(path), name


def _named_secrets(value: Any) -> Iterator[str]:
    """Yield each Secret that a Pod's spec needs; optional ones are left out."""
    if isinstance(value, list):
        for entry in value:
            yield from _named_secrets(entry)
    if not isinstance(value, dict):
        return
    for field, inner in value.items():
        name = {"secretRef": "name", "secretKeyRef": "name", "secret": "secretName"}.get(field)
        if name and isinstance(inner, dict) and not inner.get("optional"):
            if isinstance(inner.get(name), str):
                yield inner[name]
        else:
            yield from _named_secrets(inner)


def _mentions(value: Any, name: str) -> bool:
    inner = [*value.values()] if isinstance(value, dict) else value
    if isinstance(inner, list):
        return any(_mentions(entry, name) for entry in inner)
    return bool(inner == name)


def judge_scopes(after: Assembly, facts: JudgingFacts) -> Iterator[Fault]:
    """Yield faults of scopes, namespaces, kinds and owners."""
    composed_namespaces = {
        metadata(obj.manifest).get("name") for obj in objects_of(after) if obj.kind == NAMESPACE
    }
    for obj in objects_of(after):
        if obj.kind in facts.unserved and not obj.prefix:
            yield _unserved(obj, _STOPS)
        elif obj.prefix and wrapped_with(obj, after) in facts.unserved_inside:
            yield _unserved(obj, "so the provider cannot make it")
        else:
            yield from _scope(obj, after, facts)
        if not obj.prefix:
            yield from _namespace(obj, after, facts, composed_namespaces)
        yield from _owners(obj, facts)


def wrapped_with(obj: OutcomeObject, after: Assembly) -> tuple[Kind, ObjectKey | None]:
    """Return the kind of a wrapped object, and the config by which its provider makes it."""
    return obj.kind, config_of(after.resources[obj.path])


def _unserved(obj: OutcomeObject, consequence: str) -> Fault:
    kind = obj.kind
    message = f'no matches for kind "{kind.kind}" in version "{kind.api_version}"'
    return Fault(
        obj.path,
        f"{message}: this cluster does not serve it, {consequence}",
        obj.field("apiVersion"),
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
