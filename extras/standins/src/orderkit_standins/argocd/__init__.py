"""
Argo CD's part of the embedded platform: deliver manifests from Git and keep them in the cluster.

Controlled only through its custom resources, as the real one: Applications in namespace ``argocd``.
Implemented as in Argo CD 3.6: comparison, automated sync with prune, self-heal and their refusals,
waves across child Applications, retries, operations and their termination, refresh, tracking,
cascading deletion, and the status fields. Every pass is level-based and all state is in the
Applications, so a restart continues a waiting wave.

Not supported: Helm, Kustomize, Jsonnet, plug-ins, overrides in Git, several sources, other
clusters, what ``targets`` leaves out of hooks, roles and sync windows of AppProjects (``projects``
has what they permit), ApplicationSets, ignoreDifferences by jq or managers, dry runs, Applications
outside ``argocd``, health Lua (``ground.argocd.health`` says the same as ``health_lua`` there). An
unsupported request is refused in a condition.

Different on purpose: server-side apply always; no pause between waves; the first self-heals
wait for milliseconds instead of seconds; self-heal ignores objects that are being deleted.

`EmbeddedArgoCD` is started by ``orderkit up``; ``argocd_crds`` are its kinds.
"""

from orderkit_standins.argocd.crds import argocd_crds
from orderkit_standins.argocd.runtime import EmbeddedArgoCD
from orderkit_standins.argocd.source_repositories import (
    BareRepositories,
    RepositorySources,
    SourceError,
)

__all__ = [
    "BareRepositories",
    "EmbeddedArgoCD",
    "RepositorySources",
    "SourceError",
    "argocd_crds",
]
