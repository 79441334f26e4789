"""
The embedded cluster: an object store with the Kubernetes semantics Orderkit relies on.

What it has: resourceVersion, generation, uid; server-side apply with field owners; merge,
strategic and JSON patches; namespaces, finalizers, owner references and their garbage
collection; watches that resume, also after a restart; CustomResourceDefinitions with defaulting,
pruning, structural validation and CEL rules (one that cannot be evaluated lets the write pass,
with a warning). It lives in one SQLite file and survives ``kill -9``.

What it does not do: run anything (no Pods, Services, Jobs), authorise (RBAC objects are stored,
not enforced), evaluate ValidatingAdmissionPolicies, call webhooks, convert between
versions, issue ServiceAccount tokens, put ``default`` ServiceAccounts or ``kube-root-ca.crt`` into
namespaces, count quotas, encrypt Secrets.

Used in process by the embedded Argo CD and Crossplane, and over HTTP (``http``) by everybody else.
"""

from orderkit_standins.cluster.cluster import EmbeddedCluster

__all__ = ["EmbeddedCluster"]
