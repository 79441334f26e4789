"""
Read packages of Crossplane's providers from OCI registries.

``registry_client`` finds credentials, speaks HTTP and proves digests, ``images`` finds the layer
that holds a package. Nothing is pushed, nothing is written to disk.
"""

from orderkit_workshop.registry.images import RegistryPackages

__all__ = ["RegistryPackages"]
