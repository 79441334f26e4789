"""
Say what helps if a cluster does not serve a kind.

A file in ``schemas/`` of a pack describes a kind and brings it nowhere: a provider has to serve it,
or its twin on the embedded platform. Plans, states, ``kit check`` and ``orderkit up`` say the same.
"""

from __future__ import annotations

import re

from ground.objects.kube_objects import Kind

TWINS = ("aws", "gcp", "azure", "kubernetes", "helm", "sql", "nop", "other", "operators")
"""What ``orderkit up --twins`` takes."""
_FAMILIES = (".upbound.io", ".crossplane.io")
_PLATFORM_GROUPS = {"argoproj.io"} | {
    f"{part}.crossplane.io" for part in ("apiextensions", "ops", "pkg", "protection")
}
_REFUSAL = re.compile(r'no matches for kind "(\w+)" in version "([\w./-]+)"')
"""What Kubernetes' clients say of such a kind, and so Crossplane's conditions."""


def is_kubernetes_own(kind: Kind) -> bool:
    """Return whether a kind is one of Kubernetes itself, by its group."""
    return "." not in kind.group or kind.group.endswith(".k8s.io")


def is_served_by_platforms(kind: Kind) -> bool:
    """Say whether every platform serves a kind: Kubernetes', Argo CD's, Crossplane's own."""
    return is_kubernetes_own(kind) or kind.group in _PLATFORM_GROUPS


def unserved_advice(kind: Kind) -> str:
    """Return what to do if a cluster does not serve a kind."""
    if is_kubernetes_own(kind):
        return (
            "see 'kubectl api-resources' for what the cluster serves; the embedded one serves a "
            "part of Kubernetes' kinds (docs/embedded-platform.md)"
        )
    if not kind.group.endswith(_FAMILIES):
        return (
            "deliver its CRD below gitops/ of the pack, or install what brings it; a file in "
            "schemas/ does not. On the embedded platform, 'orderkit up --twins operators' plays "
            "what kit.yaml names in composes"
        )
    provider, twin = _provider_and_twin(kind)
    return (
        f"install {provider}, and see that it is healthy; on the embedded platform: 'orderkit up "
        f"--twins {twin}' plays what kit.yaml names in composes or schemas/ has ('orderkit kit "
        f"schemas add {provider}@VERSION')"
    )


def _provider_and_twin(kind: Kind) -> tuple[str, str]:
    """Return the provider's package by the name that they usually have, and its twin."""
    # lazy: every state imports this module
    from kubeschema.known.managed_behaviour import config_group

    family = config_group(kind).partition(".")[0]
    service = kind.group.partition(".")[0]
    if config_group(kind) == kind.group and ".sql." in kind.group:
        family = service = "sql"
    has_service = kind.group.endswith("upbound.io") and service != family
    provider = f"provider-{family}-{service}" if has_service else f"provider-{family}"
    return provider, family if family in TWINS else "other"


def advice_on(message: str) -> str:
    """Return what helps if a message says that a kind is not served; else ''."""
    found = _REFUSAL.search(message)
    return unserved_advice(Kind.parse(found[2], found[1])) if found else ""
