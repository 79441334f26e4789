"""
Connect a controller to the platform that ``platform.yaml`` describes.

Commands of Orderkit and controllers read the same file and use the same credentials.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Self

from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.core.platform.installation import PlatformTarget
from orderkit.core.platform.settings import PlatformSettings
from orderkit.ports.catalog import Catalog
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import Forge


class Connection:
    """
    One platform, from `connect`. Each part connects when it is first used.

    As a context manager, it closes its idle connections at the end.
    """

    def __init__(self, file: Path, settings: PlatformSettings) -> None:
        self.file = file
        """The platform.yaml that was read, as an absolute path."""
        self.is_embedded = settings.target is PlatformTarget.EMBEDDED
        """Whether the platform is an embedded one, which runs no containers."""
        self._settings = settings

    @property
    def cluster(self) -> Cluster:
        """
        The API server, as the kubeconfig of platform.yaml says. Nothing is sent.

        Raises:
            InvalidInputError: The kubeconfig cannot be used.
        """
        return self._kube_cluster

    @cached_property
    def _kube_cluster(self) -> KubeCluster:
        settings = self._settings
        return KubeCluster.from_kubeconfig(
            Path(settings.cluster.kubeconfig), context=settings.cluster.context or None
        )

    def forge(self) -> Forge:
        """
        Return the forge, with the credentials that platform.yaml names.

        Nothing is sent, unless the credentials have to be read from the cluster.

        Raises:
            NotFoundError: There are no credentials.
            InvalidInputError: The address, CA file, kubeconfig or source of credentials cannot be
                used.
            RefusedError: Credentials would go over plain HTTP to another machine.
        """
        from orderkit.adapters.forge_choice import connect_forge  # lazy: forge clients

        return connect_forge(self._settings.forge, self._kube_cluster)

    def catalog(self) -> Catalog:
        """
        Return the portal's catalog. Nothing is sent.

        Raises:
            NotFoundError: platform.yaml names no token for the portal, or it cannot be read.
        """
        from orderkit.adapters.backstage import BackstageCatalog
        from orderkit.cli import connecting

        portal = self._settings.portal
        return BackstageCatalog(portal.url, token=connecting.token(portal))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "_kube_cluster" in vars(self):
            self._kube_cluster.close()


def connect(platform_file: str | None = None) -> Connection:
    """
    Read ``platform.yaml`` and prepare the connection. Nothing is sent yet.

    Args:
        platform_file: Path of platform.yaml. None: ``$ORDERKIT_STATE``, then the default state
            folder, as for every command of Orderkit.

    Raises:
        NotFoundError: There is no such file. InvalidInputError: it is broken.
    """
    from orderkit.cli import connecting  # lazy: forge and portal clients

    settings = connecting.load_settings(platform_file)
    return Connection(connecting.settings_path(platform_file).resolve(), settings)
