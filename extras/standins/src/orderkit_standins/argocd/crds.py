"""
The two kinds of Argo CD that Orderkit drives: Application and AppProject.

Their schemas hold the structure that people and flows rely on and keep what they do not know,
so that any Application of a real Argo CD is accepted. As in Argo CD, Application has no status
subresource: status is written like any field.
"""

from __future__ import annotations

from typing import Any

from ground.objects.kube_objects import APP_PROJECT, APPLICATION, Kind, Manifest

_OPEN: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_TEXT: dict[str, Any] = {"type": "string"}
_FLAG: dict[str, Any] = {"type": "boolean"}
_WHOLE: dict[str, Any] = {"type": "integer"}


def argocd_crds() -> list[Manifest]:
    """Return the CustomResourceDefinitions of Application and AppProject."""
    return [_application(), _project()]


def _object(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {**_OPEN, "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _application() -> Manifest:
    schema = _object(
        ("metadata", "spec"),
        apiVersion=_TEXT,
        kind=_TEXT,
        metadata={"type": "object"},
        spec=_application_spec(),
        operation=_OPEN,
        status=_application_status(),
    )
    columns = [
        _column("Sync Status", ".status.sync.status"),
        _column("Health Status", ".status.health.status"),
        {**_column("Revision", ".status.sync.revision"), "priority": 10},
        {**_column("Project", ".spec.project"), "priority": 10},
    ]
    return _crd(APPLICATION, "applications", ["app", "apps"], schema, columns)


def _application_spec() -> dict[str, Any]:
    source = _object(
        ("repoURL",),
        repoURL=_TEXT,
        targetRevision=_TEXT,
        path=_TEXT,
        chart=_TEXT,
        directory=_object(recurse=_FLAG, include=_TEXT, exclude=_TEXT),
    )
    backoff = _object(duration=_TEXT, factor={**_WHOLE, "format": "int64"}, maxDuration=_TEXT)
    policy = _object(
        automated=_object(prune=_FLAG, selfHeal=_FLAG, allowEmpty=_FLAG, enabled=_FLAG),
        retry=_object(limit={**_WHOLE, "format": "int64"}, refresh=_FLAG, backoff=backoff),
        syncOptions=_list(_TEXT),
        managedNamespaceMetadata=_OPEN,
    )
    return _object(
        ("destination", "project"),
        project=_TEXT,
        source=source,
        sources=_list(source),
        destination=_object(server=_TEXT, name=_TEXT, namespace=_TEXT),
        syncPolicy=policy,
        revisionHistoryLimit={**_WHOLE, "format": "int64"},
    )


def _application_status() -> dict[str, Any]:
    return _object(
        sync=_object(status=_TEXT, revision=_TEXT, comparedTo=_OPEN),
        health=_object(status=_TEXT, message=_TEXT, lastTransitionTime=_TEXT),
        resources=_list(_OPEN),
        conditions=_list(_object(("message", "type"), type=_TEXT, message=_TEXT)),
        operationState=_object(("operation", "phase", "startedAt"), phase=_TEXT, message=_TEXT),
        history=_list(_OPEN),
        reconciledAt=_TEXT,
        sourceType=_TEXT,
    )


def _project() -> Manifest:
    kinds = _list(_object(("group", "kind"), group=_TEXT, kind=_TEXT))
    spec = _object(
        description=_TEXT,
        sourceRepos=_list(_TEXT),
        destinations=_list(_object(server=_TEXT, name=_TEXT, namespace=_TEXT)),
        clusterResourceWhitelist=kinds,
        clusterResourceBlacklist=kinds,
        namespaceResourceWhitelist=kinds,
        namespaceResourceBlacklist=kinds,
    )
    schema = _object(
        ("metadata", "spec"),
        apiVersion=_TEXT,
        kind=_TEXT,
        metadata={"type": "object"},
        spec=spec,
        status=_OPEN,
    )
    return _crd(APP_PROJECT, "appprojects", ["appproj", "appprojs"], schema, [])


def _column(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "type": "string", "jsonPath": path}


def _crd(
    kind: Kind,
    plural: str,
    short: list[str],
    schema: dict[str, Any],
    columns: list[dict[str, Any]],
) -> Manifest:
    version: dict[str, Any] = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    if columns:
        version["additionalPrinterColumns"] = columns
    names = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": plural,
        "singular": kind.kind.lower(),
        "shortNames": short,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{kind.group}",
            "labels": {"app.kubernetes.io/part-of": "argocd"},
        },
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced",
            "versions": [version],
        },
    }
