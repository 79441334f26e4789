"""
The kinds and manifests of the delivery scenarios.

A Widget is namespaced and a Rig cluster-scoped; both are judged by Crossplane's conditions, as
composite resources are, so that a scenario decides when something is ready.
"""

from __future__ import annotations

from typing import Any

from ground.argocd.sync_rules import SYNC_OPTIONS, SYNC_WAVE
from ground.objects.kube_objects import APP_PROJECT, ARGOCD_NAMESPACE, XRD, Kind, Manifest

GROUP = "shop.example.org"
WIDGET = Kind(GROUP, "v1", "Widget")
RIG = Kind(GROUP, "v1", "Rig")
HOLD = "example.org/hold"
"""A finalizer that only a scenario removes."""
CASCADE = "resources-finalizer.argocd.argoproj.io"
SERVER = "https://kubernetes.default.svc"
RETRY_SOON = {"limit": -1, "backoff": {"duration": "1s", "factor": 1, "maxDuration": "1s"}}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def crd(kind: Kind, *, scope: str) -> Manifest:
    """Return a definition that keeps every field and has a status subresource."""
    plural = f"{kind.kind.lower()}s"
    spec = {**OPEN, "properties": {"size": {"type": "integer", "maximum": 100}}}
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {
            "openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": OPEN}}
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": scope,
            "names": {
                "plural": plural,
                "singular": kind.kind.lower(),
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
            },
            "versions": [version],
        },
    }


def xrd(kind: Kind) -> Manifest:
    """Say that a kind is composite; nobody acts on it here."""
    return {
        "apiVersion": XRD.api_version,
        "kind": XRD.kind,
        "metadata": {"name": f"{kind.kind.lower()}s.{kind.group}"},
        "spec": {"group": kind.group, "names": {"kind": kind.kind}},
    }


def namespace(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def config_map(name: str, *, wave: int | None = None, options: str = "", **data: str) -> Manifest:
    """Return a ConfigMap without namespace: it lands in the Application's destination."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _meta(name, wave, options),
        "data": data,
    }


def widget(name: str, *, wave: int | None = None, options: str = "", **spec: Any) -> Manifest:
    """Return a namespaced object whose health the scenario decides."""
    return _custom(WIDGET, _meta(name, wave, options), spec)


def rig(name: str, *, wave: int | None = None, options: str = "", **spec: Any) -> Manifest:
    """Return a cluster-scoped object whose health the scenario decides."""
    return _custom(RIG, _meta(name, wave, options), spec)


def of_kind(kind: Kind, name: str, *, wave: int | None = None, options: str = "") -> Manifest:
    """Return an object of any kind, without content."""
    return _custom(kind, _meta(name, wave, options), None)


def held(manifest: Manifest) -> Manifest:
    """Return an object whose deletion waits for the scenario."""
    return {**manifest, "metadata": {**manifest["metadata"], "finalizers": [HOLD]}}


def noted(manifest: Manifest, annotations: dict[str, str]) -> Manifest:
    """Return an object with further annotations."""
    merged = {**manifest["metadata"].get("annotations", {}), **annotations}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": merged}}


def _custom(kind: Kind, meta: dict[str, Any], spec: dict[str, Any] | None) -> Manifest:
    found: Manifest = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
    return found if spec is None else {**found, "spec": spec}


def _meta(name: str, wave: int | None, options: str) -> dict[str, Any]:
    annotations = {}
    if wave is not None:
        annotations[SYNC_WAVE] = str(wave)
    if options:
        annotations[SYNC_OPTIONS] = options
    return {"name": name, "annotations": annotations} if annotations else {"name": name}


def application(name: str, url: str, destination: str, **changes: Any) -> Manifest:
    """
    Return an Application with automated prune and self-heal.

    `changes` replace parts: path, revision, recurse, directory, automated (None: by hand), options,
    retry, cascade, wave, project, server, ignore, annotations.
    """
    automated = changes.get("automated", {"prune": True, "selfHeal": True})
    policy: dict[str, Any] = {"automated": automated} if automated is not None else {}
    policy |= {key: changes[key] for key in ("retry", "managedNamespaceMetadata") if key in changes}
    if "options" in changes:
        policy["syncOptions"] = changes["options"]
    annotations = dict(changes.get("annotations", {}))
    if "wave" in changes:
        annotations[SYNC_WAVE] = str(changes["wave"])
    source = {"repoURL": url, "targetRevision": changes.get("revision", "main")}
    source["path"] = changes.get("path", "manifests")
    directory = changes.get("directory", {"recurse": True} if changes.get("recurse") else {})
    spec: dict[str, Any] = {
        "project": changes.get("project", "default"),
        "source": source | ({"directory": directory} if directory else {}),
        "destination": {"server": changes.get("server", SERVER), "namespace": destination},
    }
    if policy:
        spec["syncPolicy"] = policy
    if "ignore" in changes:
        spec["ignoreDifferences"] = changes["ignore"]
    meta: dict[str, Any] = {"name": name, "namespace": ARGOCD_NAMESPACE}
    if annotations:
        meta["annotations"] = annotations
    if changes.get("cascade"):
        meta["finalizers"] = [CASCADE if changes["cascade"] is True else changes["cascade"]]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": meta,
        "spec": spec,
    }


def project(name: str, **spec: Any) -> Manifest:
    """Return an AppProject that allows everything but what `spec` says otherwise."""
    usual = {
        "sourceRepos": ["*"],
        "destinations": [{"namespace": "*", "server": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
    }
    return {
        "apiVersion": APP_PROJECT.api_version,
        "kind": APP_PROJECT.kind,
        "metadata": {"name": name, "namespace": ARGOCD_NAMESPACE},
        "spec": {**usual, **spec},
    }
