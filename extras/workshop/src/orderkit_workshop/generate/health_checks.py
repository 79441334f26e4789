"""
Argo CD settings for a pack: health checks, and kinds that are not watched.

``gitops/argocd/argocd-cm.yaml`` is generated from checks of the kinds that packs use, one check per
kind that the kits define (without one, Argo CD counts an order as healthy before it is created),
and the pack's own keys, one file each in ``gitops/argocd/own/``. A kit is independent of any
installation, and so is this file. ``ground.argocd.health`` judges in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from ground.argocd.health_lua import (
    APPLICATION,
    CONFIGURED,
    DEFINITION,
    PACKAGE,
    RECONCILED,
    REVISION,
)
from ground.errors import InvalidInputError
from ground.names import Files
from ground.objects.kube_objects import ARGOCD_NAMESPACE, CONFIG_MAP, Manifest
from orderkit.core.kit.generated_mark import pack_comment
from orderkit.core.kit.model import Kit
from orderkit.core.kit.order_kinds import kinds_of
from yamlfiles import yaml11

FOLDER = PurePosixPath("gitops", "argocd")
SETTINGS = FOLDER / "argocd-cm.yaml"
OWN = FOLDER / "own"
"""The pack's own keys: one file each, named after the key; ``.lua`` and ``.yaml`` may follow."""
KEY = "resource.customizations.health.{group}_{kind}"

CHECKS: dict[tuple[str, str], str] = {
    ("argoproj.io", "Application"): APPLICATION,
    ("apiextensions.crossplane.io", "CompositeResourceDefinition"): DEFINITION,
    ("apiextensions.crossplane.io", "CompositionRevision"): REVISION,
    ("pkg.crossplane.io", "Provider"): PACKAGE,
    ("pkg.crossplane.io", "Function"): PACKAGE,
    ("pkg.crossplane.io", "Configuration"): PACKAGE,
    ("kubernetes.crossplane.io", "Object"): RECONCILED,
    ("kubernetes.m.crossplane.io", "Object"): RECONCILED,
}
"""The check of each kind, by group and kind."""
WILDCARDS: dict[str, str] = {"*/ClusterProviderConfig": CONFIGURED, "*/ProviderConfig": CONFIGURED}
"""Checks of kinds in any group. No kind may match two of them: Argo CD would pick either."""

_DEFAULT_EXCLUSIONS = (
    (("", "discovery.k8s.io"), ("Endpoints", "EndpointSlice")),
    (("coordination.k8s.io",), ("Lease",)),
    (
        ("authentication.k8s.io", "authorization.k8s.io"),
        (
            "SelfSubjectReview",
            "TokenReview",
            "LocalSubjectAccessReview",
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        ),
    ),
    (("certificates.k8s.io",), ("CertificateSigningRequest",)),
    (("cert-manager.io",), ("CertificateRequest",)),
    (("cilium.io",), ("CiliumIdentity", "CiliumEndpoint", "CiliumEndpointSlice")),
    (
        ("kyverno.io", "reports.kyverno.io", "wgpolicyk8s.io"),
        (
            "PolicyReport",
            "ClusterPolicyReport",
            "EphemeralReport",
            "ClusterEphemeralReport",
            "AdmissionReport",
            "ClusterAdmissionReport",
            "BackgroundScanReport",
            "ClusterBackgroundScanReport",
            "UpdateRequest",
        ),
    ),
)
"""Kinds that Argo CD 3.0 to 3.2 exclude by default. Setting the key replaces that list."""
EXCLUSIONS = (*_DEFAULT_EXCLUSIONS, (("*",), ("ProviderConfigUsage", "ClusterProviderConfigUsage")))

TOOLS = ("helm", "jsonnet", "kustomize")
"""
Tools that Argo CD runs for files that it comes across. They are switched off: the manifests of a
pack and of orders are plain, and whoever pushes a ``.argocd-source.yaml`` may widen what is read.
``core.platform.delivery_tree`` leaves on what an installation needs.
"""

_HEAD = """\
# Argo CD's settings for this pack: how the health of what it delivers is judged. Only these keys
# are ours; server-side apply leaves the others of this ConfigMap alone. To add or replace a key,
# write a file of its name into own/.
"""


def settings(files: Files, kits: Iterable[Kit]) -> dict[PurePosixPath, bytes]:
    """
    Return ``gitops/argocd/argocd-cm.yaml``. Deterministic.

    Raises:
        InvalidInputError: One of the pack's own keys is not UTF-8, empty, or in two files.
    """
    data = {**_common(), **_of_kits(kits), **own_keys(files)}
    text = pack_comment() + _HEAD + yaml11.dump(config_map(data))
    return {SETTINGS: text.encode()}


def config_map(data: dict[str, str]) -> Manifest:
    """Return the ConfigMap that Argo CD reads. It is never pruned."""
    # Argo CD ignores its ConfigMaps unless they have the label part-of.
    labels = {"name": "argocd-cm", "part-of": "argocd"}
    options = "ServerSideApply=true,Prune=false,Delete=false"
    return {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {
            "name": "argocd-cm",
            "namespace": ARGOCD_NAMESPACE,
            "labels": {f"app.kubernetes.io/{key}": value for key, value in labels.items()},
            "annotations": {"argocd.argoproj.io/sync-options": options},
        },
        "data": data,
    }


def own_keys(files: Files) -> dict[str, str]:
    """
    Return the pack's own settings, by key.

    Raises:
        InvalidInputError: A file is not UTF-8, empty, or the second for its key.
    """
    keys: dict[str, str] = {}
    for path in sorted(files):
        if path.parent != OWN or path.name == "README.md":
            continue
        key = path.name.removesuffix(path.suffix) if path.suffix in (".lua", ".yaml") else path.name
        if key in keys:
            raise InvalidInputError(str(path), key, "is a key that another file gives, too")
        try:
            keys[key] = files[path].decode()
        except UnicodeDecodeError as error:
            raise InvalidInputError(str(path), key, "is not UTF-8") from error
        if not keys[key].strip():
            raise InvalidInputError(str(path), key, "is empty", hint="delete the file")
    return keys


def _common() -> dict[str, str]:
    wildcards = {kind: {"health.lua": lua} for kind, lua in WILDCARDS.items()}
    return {
        "application.resourceTrackingMethod": "annotation",
        **{f"{tool}.enable": "false" for tool in TOOLS},
        # Kubernetes fills in the rules of an aggregated ClusterRole: not a difference from Git
        "resource.compareoptions": yaml11.dump_block({"ignoreAggregatedRoles": True}),
        "resource.exclusions": yaml11.dump_block(
            [{"apiGroups": list(groups), "kinds": list(kinds)} for groups, kinds in EXCLUSIONS]
        ),
        # Keys of a ConfigMap may not contain "*", so wildcards need the combined key.
        "resource.customizations": yaml11.dump_block(wildcards),
        **{
            KEY.format(group=group, kind=kind): lua for (group, kind), lua in sorted(CHECKS.items())
        },
    }


def _of_kits(kits: Iterable[Kit]) -> dict[str, str]:
    kinds = kinds_of(kits)
    return {
        KEY.format(group=group, kind=kind): RECONCILED
        for group, kind in sorted({*kinds.cluster, *kinds.namespaced})
    }
