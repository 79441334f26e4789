"""
Argo CD's part of the embedded platform: bring what is in Git into the cluster and keep it there.

Driven only through its custom resources, as the real one: Applications in namespace ``argocd``.
Done as Argo CD 3.2 does: comparison, automated sync with prune, self-heal and their refusals,
waves across child Applications, retries, operations and their termination, refresh, tracking,
cascading deletion, and the status fields. Every pass is level-based and all memory is in the
Applications, so a restart in a waiting wave goes on.

Not done: Helm, Kustomize, Jsonnet, plug-ins, include and exclude, several sources, other
clusters, hooks and phases other than Sync, roles and sync windows of AppProjects (``projects`` has
what they permit), ApplicationSets, ignoreDifferences by jq or managers, dry runs, Applications
outside ``argocd``, health Lua (``core.argocd.health`` says the same as ``core.argocd.health_lua``).
What is asked for and not done is refused in a condition.

Different on purpose: server-side apply always; no pause between waves; the first self-heals
wait for milliseconds instead of seconds; self-heal never fights over objects that are going.

`EmbeddedDelivery` is started by ``orderkit up``; ``argocd_crds`` are its kinds.
"""

from orderkit.adapters.embedded.delivery.crds import argocd_crds
from orderkit.adapters.embedded.delivery.refs import (
    BareRepositories,
    RepositorySources,
    SourceError,
)
from orderkit.adapters.embedded.delivery.runtime import EmbeddedDelivery

__all__ = [
    "BareRepositories",
    "EmbeddedDelivery",
    "RepositorySources",
    "SourceError",
    "argocd_crds",
]
