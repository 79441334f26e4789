"""Which kinds are cluster-scoped: Kubernetes' and Crossplane's own."""

from __future__ import annotations

from ground.objects.kube_objects import Kind

__all__ = ["is_namespaced"]

_CLUSTER_KINDS = {
    "": {"Namespace", "Node", "PersistentVolume"},
    "apiextensions.k8s.io": {"CustomResourceDefinition"},
    "admissionregistration.k8s.io": {
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    },
    "rbac.authorization.k8s.io": {"ClusterRole", "ClusterRoleBinding"},
    "storage.k8s.io": {"StorageClass", "CSIDriver", "VolumeAttachment"},
    "scheduling.k8s.io": {"PriorityClass"},
    "networking.k8s.io": {"IngressClass"},
    "apiregistration.k8s.io": {"APIService"},
    "certificates.k8s.io": {"CertificateSigningRequest"},
    "apiextensions.crossplane.io": {
        "CompositeResourceDefinition",
        "Composition",
        "CompositionRevision",
        "EnvironmentConfig",
    },
    "pkg.crossplane.io": {"Provider", "Function", "Configuration"},
    "protection.crossplane.io": {"ClusterUsage"},
}


def is_namespaced(kind: Kind) -> bool:
    """Say whether a kind is namespaced; all but Kubernetes' and Crossplane's known ones are."""
    return kind.kind not in _CLUSTER_KINDS.get(kind.group, ())
