"""
A living XR as its author would have written it: what the API server and Crossplane added is gone.

Left out: status, managed fields, uid, versions and times; finalizers and owners; Crossplane's own
labels, annotations and fields (references to what is composed, the revision in use); the mark of
whoever delivered it so far. What a person chose stays: the Composition and how it is selected.
Defaults that the server filled in stay too: they are values of the living object. Pure; called by
``flows.order.adopting``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ground.objects.kube_objects import Manifest, metadata

_FOREIGN = (
    "kubectl.kubernetes.io/",
    "argocd.argoproj.io/",
    "crossplane.io/",
    "app.kubernetes.io/instance",
)
_CROSSPLANES = ("resourceRefs", "compositionRevisionRef", "compositionUpdatePolicy", "claimRef")


def authored(xr: Manifest) -> Manifest:
    """Return the manifest to commit; applying it changes nothing of the living object."""
    meta = metadata(xr)
    kept: dict[str, Any] = {"name": meta["name"]}
    if meta.get("namespace"):
        kept["namespace"] = meta["namespace"]
    for key in ("labels", "annotations"):
        own_entries = _own(meta.get(key) or {})
        if own_entries:
            kept[key] = own_entries
    return {
        "apiVersion": xr["apiVersion"],
        "kind": xr["kind"],
        "metadata": kept,
        "spec": _spec(xr.get("spec") or {}),
    }


def _own(marks: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in marks.items() if not _is_foreign(name)}


def _is_foreign(name: str) -> bool:
    group, slash, _ = name.partition("/")
    return any(name.startswith(prefix) for prefix in _FOREIGN) or (
        bool(slash) and group.endswith(".crossplane.io")
    )


def _spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    own_spec = {key: value for key, value in spec.items() if key not in _CROSSPLANES}
    if isinstance(own_spec.get("crossplane"), Mapping):
        crossplane_fields = {
            k: v for k, v in own_spec["crossplane"].items() if k not in _CROSSPLANES
        }
        del own_spec["crossplane"]
        if crossplane_fields:
            own_spec["crossplane"] = crossplane_fields
    return own_spec
