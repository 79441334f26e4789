"""
How Argo CD gets at the repositories: a credential where they are private, the forge's authority.

Secrets of type ``repo-creds`` hold for every repository below the forge's address, so orders
need none of their own. The authority stands in ``argocd-tls-certs-cm`` under the forge's host
name without port, as Argo CD looks it up. Other entries of that ConfigMap are left alone.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from orderkit.core.objects.kube_objects import (
    ARGOCD_NAMESPACE,
    CONFIG_MAP,
    Kind,
    Manifest,
    ObjectKey,
    dig,
)
from orderkit.flows.argocd.refreshing import OWNER
from orderkit.flows.install.bootstrapping.steps import (
    BootstrapContext,
    Look,
    Say,
    StepVerdict,
    holds,
)
from orderkit.flows.platform import get_object

SECRET = Kind("", "v1", "Secret")
SECRET_NAME = "orderkit-forge"  # noqa: S105 - an object's name
_CERTIFICATES = "argocd-tls-certs-cm"


@dataclass(frozen=True, slots=True)
class AccessStep:
    """Argo CD can read what it shall deliver."""

    site: BootstrapContext
    name: str = "repositories"

    def look(self) -> Look:
        manifests = self._manifests()
        if not manifests:
            return Look(StepVerdict.DONE, "public, with a trusted certificate authority")
        names = ", ".join(f"{m['kind']} {m['metadata']['name']}" for m in manifests)
        live = [get_object(self.site.platform, ObjectKey.of(manifest)) for manifest in manifests]
        if all(
            live_object and holds(live_object, _stored(m))
            for live_object, m in zip(live, manifests, strict=True)
        ):
            return Look(StepVerdict.DONE, names)
        return Look(StepVerdict.CREATE if None in live else StepVerdict.CHANGE, names)

    def ensure(self, say: Say) -> Look:  # noqa: ARG002 - there is nothing to wait for
        before = self.look()
        if before.verdict is not StepVerdict.DONE:
            for manifest in self._manifests():
                self.site.platform.cluster.apply(manifest, owner=OWNER)
        return before

    def _manifests(self) -> Sequence[Manifest]:
        access, url = self.site.wanted.access, self.site.platform.forge.base_url
        manifests = []
        if access.token:
            data = {"type": "git", "url": url, "username": access.user, "password": access.token}
            manifests.append(_secret(data))
        if access.ca_pem:
            host = urlsplit(url).hostname or ""
            manifests.append(_certificates({host: access.ca_pem}))
        return manifests


def _secret(data: dict[str, str]) -> Manifest:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    labels = {"argocd.argoproj.io/secret-type": "repo-creds"}
    return {
        "apiVersion": SECRET.api_version,
        "kind": SECRET.kind,
        "metadata": {"name": SECRET_NAME, "namespace": ARGOCD_NAMESPACE, "labels": labels},
        "type": "Opaque",
        "data": encoded,
    }


def _certificates(data: dict[str, str]) -> Manifest:
    labels = {"app.kubernetes.io/name": _CERTIFICATES, "app.kubernetes.io/part-of": "argocd"}
    return {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {"name": _CERTIFICATES, "namespace": ARGOCD_NAMESPACE, "labels": labels},
        "data": data,
    }


def _stored(manifest: Manifest) -> Manifest:
    """Return what must be found again of an object that was applied."""
    labels = dig(manifest, "metadata", "labels", default={})
    return {"metadata": {"labels": labels}, "data": manifest["data"]}
