"""
What goes, and what is left behind.

Deleting a managed resource deletes the real thing unless its policies keep it; `deletionPolicy`
counts only where a kind has it (the namespaced family ``….m.…`` has none). What an XR composes that
this plan cannot expand is judged by its resourceRefs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orderkit.core.crossplane.composed_metadata import composed_keys
from orderkit.core.objects.kube_objects import (
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
    metadata,
)
from orderkit.core.plan.assembly import Assembly, key_text
from orderkit.core.plan.dangers.danger_codes import Code, Danger, DangerContext
from orderkit.core.plan.dangers.data_kinds import holds_data, what_goes
from orderkit.core.plan.outcome_objects import is_same, pairs_of, wrapped

EXTERNAL_NAME = "crossplane.io/external-name"
_CLUSTERS_FINALIZERS = {"foregroundDeletion", "orphan", "kubernetes"}
_CROSSPLANES_FINALIZERS = ("finalizer.managedresource.crossplane.io", "composite.apiextensions")


def losses(before: Assembly, after: Assembly, mind: DangerContext) -> Iterator[Danger]:
    """Yield what is deleted, left behind, or looked for elsewhere."""
    yield from _removals(before, after, mind)
    yield from _replacements(before, after, mind)
    yield from _elsewhere(before, after, mind)


def _removals(before: Assembly, after: Assembly, mind: DangerContext) -> Iterator[Danger]:
    wanted = {ObjectKey.of(manifest): path for path, manifest in after.resources.items()}
    gone = [path for path in before.resources if path not in after.resources]
    for path in gone:
        manifest = before.resources[path]
        again = wanted.get(ObjectKey.of(manifest))
        if again is not None:
            told = f"{key_text(manifest)} is deleted and made again: it is '{again}' now"
            yield Danger(path, Code.MADE_AGAIN, told)
        yield from loss(path, manifest, mind)
        yield from _of_living(path, before, mind)


def loss(path: str, manifest: Manifest, mind: DangerContext) -> Iterator[Danger]:
    """Judge the deletion of a resource, or of what a provider-kubernetes Object wraps."""
    if not is_deleted_with_it(manifest):
        told = f"{key_text(manifest)} is let go of: it stays, and nobody looks after it any more"
        yield Danger(path, Code.ABANDONED, told)
        return
    inner = wrapped(manifest)
    if inner is not None:
        yield from loss(path, inner, mind)
        return
    kind = Kind.of(manifest)
    if holds_data(kind, mind.laws):
        told = f"{key_text(manifest)} is deleted: {what_goes(kind)}"
        yield Danger(path, Code.DATA_LOSS, told)
    yield from _claims(path, manifest)


def _claims(path: str, manifest: Manifest) -> Iterator[Danger]:
    """What a StatefulSet's claims become says a field of its own."""
    claims = dig(manifest, "spec", "volumeClaimTemplates", default=None)
    if Kind.of(manifest).kind != "StatefulSet" or not claims:
        return
    retained = dig(manifest, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
    if retained == "Delete":
        told = f"{key_text(manifest)} is deleted, and its claims with it: their data is lost"
        yield Danger(path, Code.DATA_LOSS, told)
    else:
        told = f"the claims of {key_text(manifest)} stay, and nobody looks after them any more"
        yield Danger(path, Code.ABANDONED, told)


def _of_living(path: str, before: Assembly, mind: DangerContext) -> Iterator[Danger]:
    """Judge what only the cluster's object tells: finalizers, and what an XR composes."""
    living = before.observed.get(path)
    if living is None:
        return
    holds = [
        str(each)
        for each in metadata(living).get("finalizers") or ()
        if each not in _CLUSTERS_FINALIZERS and not str(each).startswith(_CROSSPLANES_FINALIZERS)
    ]
    if holds:
        told = f"{key_text(living)} goes only when {', '.join(holds)} is released: it may hang"
        yield Danger(path, Code.FINALIZER, told)
    below = [each for each in before.resources if each.startswith(f"{path}/")]
    refs = list(composed_keys(living))
    if below or refs:
        count = len(below) or len(refs)
        told = f"{key_text(living)} is deleted, and the {count} resources composed for it"
        yield Danger(path, Code.NESTED, told)
    for key in refs if not below else ():
        if holds_data(key.kind, mind.laws):
            told = f"{key_text(living)} is deleted, and with it {key}: {what_goes(key.kind)}"
            yield Danger(path, Code.DATA_LOSS, told)


def is_deleted_with_it(manifest: Manifest) -> bool:
    """Say whether deleting the object deletes what it manages (managed resources may not)."""
    policies: Sequence[str] = dig(manifest, "spec", "managementPolicies", default=None) or ["*"]
    has_policy = ".m." not in Kind.of(manifest).group
    orphaned = has_policy and dig(manifest, "spec", "deletionPolicy") == "Orphan"
    return not orphaned and bool({"*", "Delete"} & set(policies))


def _replacements(before: Assembly, after: Assembly, mind: DangerContext) -> Iterator[Danger]:
    for path in before.resources.keys() & after.resources.keys():
        old, new = before.resources[path], after.resources[path]
        one, other = Kind.of(old), Kind.of(new)
        inner, became = wrapped(old), wrapped(new)
        if (one.group, one.kind) != (other.group, other.kind):
            told = (
                f"{key_text(old)} is left behind: '{path}' is {key_text(new)} now, "
                "and Crossplane forgets the old one"
            )
            yield Danger(path, Code.ABANDONED, told)
            yield from _replaced(path, inner or old, mind)
        elif inner is not None and became is not None and not is_same(inner, became):
            told = f"{key_text(inner)} is left behind: the Object wraps {key_text(became)} now"
            yield Danger(path, Code.ABANDONED, told)
            yield from _replaced(path, inner, mind)


def _replaced(path: str, manifest: Manifest, mind: DangerContext) -> Iterator[Danger]:
    """What takes the place of something with data begins without it."""
    if holds_data(Kind.of(manifest), mind.laws):
        told = f"{key_text(manifest)} is replaced: its data stays behind, the new one has none"
        yield Danger(path, Code.DATA_LOSS, told)


def _elsewhere(before: Assembly, after: Assembly, mind: DangerContext) -> Iterator[Danger]:
    for pair in pairs_of(before, after):
        one, other = (_config(each) for each in (pair.old, pair.new))
        if one != other:
            told = (
                f"{key_text(pair.new)}: {other} instead of {one}: the provider looks for it "
                "there, makes it anew, and leaves the old one behind"
            )
            yield Danger(pair.path, Code.PROVIDER, told)
            yield from _replaced(pair.path, wrapped(pair.old) or pair.old, mind)
        was, now = (annotations_of(each).get(EXTERNAL_NAME) for each in (pair.old, pair.new))
        if was and was != now:
            told = f"{key_text(pair.new)} stands for {now or 'another thing'} instead of {was}"
            yield Danger(pair.path, Code.ABANDONED, f"{told}, which is left behind")
            yield from _replaced(pair.path, wrapped(pair.old) or pair.old, mind)


def _config(manifest: Manifest) -> str:
    """Name the provider's configuration, with the defaults of its family."""
    reference = dig(manifest, "spec", "providerConfigRef", default=None) or {}
    family = "ClusterProviderConfig" if ".m." in Kind.of(manifest).group else "ProviderConfig"
    return f"{reference.get('kind') or family} {reference.get('name') or 'default'}"
