"""
Read packages of Crossplane's providers from OCI registries.

``registry_client`` speaks HTTP and proves digests, ``docker_credentials`` finds credentials,
``packages`` finds the layer that holds a package. Nothing is pushed, nothing is written to disk.
"""

from orderkit_workshop.registry.packages import RegistryPackages

__all__ = ["RegistryPackages"]
