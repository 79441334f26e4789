"""Names of the extensions by which Kubernetes schemas say what OpenAPI cannot."""

__all__ = ["INT_OR_STRING", "PRESERVE"]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE = "x-kubernetes-list-type"
LIST_MAP_KEYS = "x-kubernetes-list-map-keys"
