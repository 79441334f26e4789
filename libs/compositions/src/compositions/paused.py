"""
The annotation that pauses an object: Crossplane and its providers leave the object as it is.

Everything stops, deletion included, until the annotation is gone. A paused XR composes, changes and
deletes nothing; a paused composed resource still gets its new fields, and nobody acts on them.
"""

from __future__ import annotations

from ground.objects.kube_objects import Kind, Manifest, annotations_of, metadata

__all__ = ["PAUSED", "annotate_command", "how_to_resume", "is_paused"]

PAUSED = "crossplane.io/paused"


def is_paused(manifest: Manifest | None) -> bool:
    """Return whether an object is paused; Crossplane reads no other value than "true"."""
    return annotations_of(manifest or {}).get(PAUSED) == "true"


def annotate_command(manifest: Manifest, annotation: str) -> str:
    """Return the command that changes an annotation of an object in the cluster."""
    kind, meta = Kind.of(manifest), metadata(manifest)
    resource = f"{kind.kind.lower()}.{kind.group}" if kind.group else kind.kind.lower()
    home = f" -n {meta['namespace']}" if meta.get("namespace") else ""
    return f"kubectl annotate {resource} {meta.get('name', '')}{home} {annotation}"


def how_to_resume(manifest: Manifest, *, in_git: bool) -> str:
    """Return what resumes an object."""
    if in_git:
        return f"remove the annotation {PAUSED} from its manifest in Git"
    return annotate_command(manifest, f"{PAUSED}-")
