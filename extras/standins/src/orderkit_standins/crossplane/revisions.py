"""
CompositionRevisions: a numbered, immutable copy of a Composition for each of its contents.

The name ends in a hash of labels, annotations and spec, so going back to an old content finds
the old revision, which then gets a new number. Like Crossplane, this does not check that the
functions of the pipeline exist: ValidPipeline is always True here, because every function that
runs in process can compose. Hashes need not equal a real Crossplane's byte for byte.
"""

from __future__ import annotations

import hashlib

import yaml

from compositions.composition_choice import HASH_LABEL, NAME_LABEL, latest_revision, number_of
from ground.objects.conditions import RECONCILE_SUCCESS, Condition
from ground.objects.kube_objects import (
    COMPOSITION,
    COMPOSITION_REVISION,
    Manifest,
    ObjectKey,
    annotations_of,
    controller,
    labels_of,
    metadata,
)
from orderkit_standins.crossplane.events import OWNER
from orderkit_standins.crossplane.reconciler_context import ReconcilerContext, is_deleting

VALID_PIPELINE = Condition("ValidPipeline", "True", "ValidPipeline")
_LABEL_MAX = 63
_NAME_HASH = 7


def content_hash(composition: Manifest) -> str:
    """Return what identifies a Composition's content: labels, annotations and spec."""
    parts = (labels_of(composition), annotations_of(composition), composition.get("spec") or {})
    text = "".join(yaml.safe_dump(section, width=2**16, allow_unicode=True) for section in parts)
    return hashlib.sha256(text.encode()).hexdigest()


def revision_of(composition: Manifest, number: int) -> Manifest:
    """Return the revision object for a Composition's present content."""
    digest, meta = content_hash(composition), metadata(composition)
    name = meta["name"]
    labels = {NAME_LABEL: name, HASH_LABEL: digest[:_LABEL_MAX], **labels_of(composition)}
    revision: Manifest = {
        "apiVersion": COMPOSITION_REVISION.api_version,
        "kind": COMPOSITION_REVISION.kind,
        "metadata": {
            "name": f"{name}-{digest[:_NAME_HASH]}",
            "labels": labels,
            "ownerReferences": [_owner(composition)],
        },
        "spec": {**(composition.get("spec") or {}), "revision": number},
    }
    if annotations_of(composition):
        revision["metadata"]["annotations"] = dict(annotations_of(composition))
    return revision


def _owner(composition: Manifest) -> dict[str, object]:
    return {
        "apiVersion": COMPOSITION.api_version,
        "kind": COMPOSITION.kind,
        "name": metadata(composition)["name"],
        "uid": metadata(composition)["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


class CompositionReconciler:
    """Keep the newest revision of every Composition equal to its content."""

    def __init__(self, site: ReconcilerContext) -> None:
        self._site = site

    def __call__(self, key: ObjectKey) -> float | None:
        """Make sure the present content has the highest revision number. Idempotent."""
        composition = self._site.cluster.get(key)
        if composition is None or is_deleting(composition):
            return None
        labels = {NAME_LABEL: key.name}
        listed_revisions = self._site.cluster.list(COMPOSITION_REVISION, labels=labels).items
        revisions = tuple(self._owned(composition, revision) for revision in listed_revisions)
        newest = latest_revision(composition, revisions)
        top = number_of(newest) if newest else 0
        digest = content_hash(composition)[:_LABEL_MAX]
        ours = [r for r in revisions if labels_of(r).get(HASH_LABEL) == digest]
        if not ours:
            self._site.cluster.create(revision_of(composition, top + 1), owner=OWNER)
            self._site.recorder.normal(composition, "CreateRevision", "Created new revision")
        elif number_of(ours[0]) != top:
            renumbered = {**ours[0], "spec": {**ours[0]["spec"], "revision": top + 1}}
            self._site.cluster.replace(renumbered, owner=OWNER)
        return None

    def _owned(self, composition: Manifest, revision: Manifest) -> Manifest:
        """Take back a revision that lost its owner, for example in a restored backup."""
        if (controller(revision) or {}).get("uid") == metadata(composition)["uid"]:
            return revision
        other_owners = [
            o for o in metadata(revision).get("ownerReferences") or () if not o.get("controller")
        ]
        meta = {**metadata(revision), "ownerReferences": [*other_owners, _owner(composition)]}
        return self._site.cluster.replace({**revision, "metadata": meta}, owner=OWNER)


class RevisionReconciler:
    """Say of every revision that its pipeline can be used."""

    def __init__(self, site: ReconcilerContext) -> None:
        self._site = site

    def __call__(self, key: ObjectKey) -> float | None:
        """Set the revision's conditions. Idempotent."""
        revision = self._site.cluster.get(key)
        if revision is not None and not is_deleting(revision):
            self._site.write_status(revision, RECONCILE_SUCCESS, VALID_PIPELINE)
        return None
