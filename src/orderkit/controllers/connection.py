"""
Connect a controller to the platform that ``platform.yaml`` describes.

Commands of Orderkit and controllers read the same file and use the same credentials.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.core.settings import PlatformSettings
from orderkit.ports.catalog import Catalog
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import Forge


@dataclass(frozen=True, slots=True)
class Connection:
    """One platform. Use it as a context manager to close the cluster's connections at the end."""

    file: Path
    """The platform.yaml that was read, as an absolute path."""
    is_embedded: bool
    """Whether the platform is an embedded one, which runs no containers."""
    _settings: PlatformSettings
    _cluster: KubeCluster

    @property
    def cluster(self) -> Cluster:
        """The API server."""
        return self._cluster

    def forge(self) -> Forge:
        """
        Return the forge, with the credentials that platform.yaml names.

        Nothing is sent, unless the credentials have to be read from the cluster.

        Raises:
            NotFoundError: There are no credentials.
            InvalidInputError: The address, CA file or source of credentials cannot be used.
            RefusedError: Credentials would go over plain HTTP to another machine.
        """
        from orderkit.cli import connecting

        return connecting.connect_forge(self._settings.forge, self._cluster)

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
        self._cluster.close()


def connect(platform_file: str | None = None) -> Connection:
    """
    Read ``platform.yaml`` and prepare the connection. Nothing is sent yet.

    Args:
        platform_file: Path of platform.yaml. None: ``$ORDERKIT_STATE``, then the default state
            folder, as for every command of Orderkit.

    Raises:
        NotFoundError: There is no such file. InvalidInputError: it is broken, or its kubeconfig is.
    """
    from orderkit.cli import connecting
    from orderkit.core.installation import Target

    settings = connecting.load_settings(platform_file)
    return Connection(
        connecting.settings_path(platform_file).resolve(),
        settings.installation.target is Target.EMBEDDED,
        settings,
        KubeCluster.from_kubeconfig(Path(settings.kubeconfig), context=settings.context),
    )
