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
from orderkit.core.plan.dangers.data_kinds import holds_data, what_is_lost
from orderkit.core.plan.outcome_objects import is_same, pairs_of, wrapped_object

EXTERNAL_NAME = "crossplane.io/external-name"
_CLUSTERS_FINALIZERS = {"foregroundDeletion", "orphan", "kubernetes"}
_CROSSPLANES_FINALIZERS = ("finalizer.managedresource.crossplane.io", "composite.apiextensions")


def loss_dangers(before: Assembly, after: Assembly, mind: DangerContext) -> Iterator[Danger]:
    """Yield what is deleted, left behind, or looked for elsewhere."""
    yield from _removals(before, after, mind)
    yield from _replacements(before, after, mind)
    yield from _moved_to_other_provider(before, after, mind)


def _removals(before: Assembly, after: Assembly, mind: DangerContext) -> Iterator[Danger]:
    path_by_key = {ObjectKey.of(manifest): path for path, manifest in after.resources.items()}
    removed = [path for path in before.resources if path not in after.resources]
    for path in removed:
        manifest = before.resources[path]
        again = path_by_key.get(ObjectKey.of(manifest))
        if again is not None:
            message = f"{key_text(manifest)} is deleted and made again: it is '{again}' now"
            yield Danger(path, Code.MADE_AGAIN, message)
        yield from deletion_dangers(path, manifest, mind)
        yield from _live_object_dangers(path, before, mind)


def deletion_dangers(path: str, manifest: Manifest, mind: DangerContext) -> Iterator[Danger]:
    """Judge the deletion of a resource, or of what a provider-kubernetes Object wraps."""
    if not is_deleted_with_it(manifest):
        message = f"{key_text(manifest)} is let go of: it stays, and nobody looks after it any more"
        yield Danger(path, Code.ABANDONED, message)
        return
    inner = wrapped_object(manifest)
    if inner is not None:
        yield from deletion_dangers(path, inner, mind)
        return
    kind = Kind.of(manifest)
    if holds_data(kind, mind.laws):
        message = f"{key_text(manifest)} is deleted: {what_is_lost(kind)}"
        yield Danger(path, Code.DATA_LOSS, message)
    yield from _claims(path, manifest)


def _claims(path: str, manifest: Manifest) -> Iterator[Danger]:
    """What a StatefulSet's claims become says a field of its own."""
    claims = dig(manifest, "spec", "volumeClaimTemplates", default=None)
    if Kind.of(manifest).kind != "StatefulSet" or not claims:
        return
    retained = dig(manifest, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
    if retained == "Delete":
        message = f"{key_text(manifest)} is deleted, and its claims with it: their data is lost"
        yield Danger(path, Code.DATA_LOSS, message)
    else:
        message = f"the claims of {key_text(manifest)} stay, and nobody looks after them any more"
        yield Danger(path, Code.ABANDONED, message)


def _live_object_dangers(path: str, before: Assembly, mind: DangerContext) -> Iterator[Danger]:
    """Judge what only the cluster's object tells: finalizers, and what an XR composes."""
    living = before.observed.get(path)
    if living is None:
        return
    holds = [
        str(finalizer)
        for finalizer in metadata(living).get("finalizers") or ()
        if finalizer not in _CLUSTERS_FINALIZERS
        and not str(finalizer).startswith(_CROSSPLANES_FINALIZERS)
    ]
    if holds:
        message = f"{key_text(living)} goes only when {', '.join(holds)} is released: it may hang"
        yield Danger(path, Code.FINALIZER, message)
    below = [nested for nested in before.resources if nested.startswith(f"{path}/")]
    refs = list(composed_keys(living))
    if below or refs:
        count = len(below) or len(refs)
        message = f"{key_text(living)} is deleted, and the {count} resources composed for it"
        yield Danger(path, Code.NESTED, message)
    for key in refs if not below else ():
        if holds_data(key.kind, mind.laws):
            message = f"{key_text(living)} is deleted, and with it {key}: {what_is_lost(key.kind)}"
            yield Danger(path, Code.DATA_LOSS, message)


def is_deleted_with_it(manifest: Manifest) -> bool:
    """Say whether deleting the object deletes what it manages (managed resources may not)."""
    policies: Sequence[str] = dig(manifest, "spec", "managementPolicies", default=None) or ["*"]
    has_policy = ".m." not in Kind.of(manifest).group
    orphaned = has_policy and dig(manifest, "spec", "deletionPolicy") == "Orphan"
    return not orphaned and bool({"*", "Delete"} & set(policies))


def _replacements(before: Assembly, after: Assembly, mind: DangerContext) -> Iterator[Danger]:
    for path in before.resources.keys() & after.resources.keys():
        old, new = before.resources[path], after.resources[path]
        old_kind, new_kind = Kind.of(old), Kind.of(new)
        inner, became = wrapped_object(old), wrapped_object(new)
        if (old_kind.group, old_kind.kind) != (new_kind.group, new_kind.kind):
            message = (
                f"{key_text(old)} is left behind: '{path}' is {key_text(new)} now, "
                "and Crossplane forgets the old one"
            )
            yield Danger(path, Code.ABANDONED, message)
            yield from _replaced(path, inner or old, mind)
        elif inner is not None and became is not None and not is_same(inner, became):
            message = f"{key_text(inner)} is left behind: the Object wraps {key_text(became)} now"
            yield Danger(path, Code.ABANDONED, message)
            yield from _replaced(path, inner, mind)


def _replaced(path: str, manifest: Manifest, mind: DangerContext) -> Iterator[Danger]:
    """What takes the place of something with data begins without it."""
    if holds_data(Kind.of(manifest), mind.laws):
        message = f"{key_text(manifest)} is replaced: its data stays behind, the new one has none"
        yield Danger(path, Code.DATA_LOSS, message)


def _moved_to_other_provider(
    before: Assembly, after: Assembly, mind: DangerContext
) -> Iterator[Danger]:
    for pair in pairs_of(before, after):
        old_config, new_config = (_config(manifest) for manifest in (pair.old, pair.new))
        if old_config != new_config:
            message = (
                f"{key_text(pair.new)}: {new_config} instead of {old_config}: the provider "
                "looks for it there, makes it anew, and leaves the old one behind"
            )
            yield Danger(pair.path, Code.PROVIDER, message)
            yield from _replaced(pair.path, wrapped_object(pair.old) or pair.old, mind)
        was, now = (
            annotations_of(manifest).get(EXTERNAL_NAME) for manifest in (pair.old, pair.new)
        )
        if was and was != now:
            message = f"{key_text(pair.new)} stands for {now or 'another thing'} instead of {was}"
            yield Danger(pair.path, Code.ABANDONED, f"{message}, which is left behind")
            yield from _replaced(pair.path, wrapped_object(pair.old) or pair.old, mind)


def _config(manifest: Manifest) -> str:
    """Name the provider's configuration, with the defaults of its family."""
    reference = dig(manifest, "spec", "providerConfigRef", default=None) or {}
    family = "ClusterProviderConfig" if ".m." in Kind.of(manifest).group else "ProviderConfig"
    return f"{reference.get('kind') or family} {reference.get('name') or 'default'}"
