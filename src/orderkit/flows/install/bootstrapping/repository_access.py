"""
How Argo CD gets at the repositories: credentials where they are private, the forge's authority.

The credential of platform.yaml is for the organisations of pack and ledger only; every team has one
of its own (``flows.team.read_credential``). The one for the whole forge that release 0.2.0 wrote
becomes the former after every team has the latter. The authority stands in
``argocd-tls-certs-cm`` under the forge's host name without port, as Argo CD looks it up. Other
entries of that ConfigMap are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from ground.names import TeamName
from ground.objects.kube_objects import ARGOCD_NAMESPACE, CONFIG_MAP, Manifest, ObjectKey, dig
from orderkit.core.order import ledger
from orderkit.flows.argocd.refreshing import OWNER
from orderkit.flows.install.bootstrapping.steps import (
    BootstrapContext,
    Look,
    Say,
    StepVerdict,
    holds,
)
from orderkit.flows.platform import get_object, snapshot
from orderkit.flows.team.read_credential import (
    SECRET,
    credential_secret,
    ensure_read_credential,
    lacking,
    organisation_url,
)

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
        if teams := lacking(self.site.platform, self._teams()):
            return Look(StepVerdict.CHANGE, f"credentials of {', '.join(teams)}, {names}")
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
            for team in self._teams():
                ensure_read_credential(self.site.platform, team)
            for manifest in self._manifests():
                self.site.platform.cluster.apply(manifest, owner=OWNER)
        return before

    def _teams(self) -> Sequence[TeamName]:
        """Return the teams that orders may be delivered of."""
        files = snapshot(self.site.platform, self.site.platform.ledger)
        return list(ledger.teams(files.blobs)) if files else []

    def _manifests(self) -> Sequence[Manifest]:
        access, platform = self.site.wanted.access, self.site.platform
        manifests = []
        if access.entries:
            owners = dict.fromkeys((platform.pack_repo.owner, platform.ledger.owner))
            for owner, name in zip(owners, (SECRET_NAME, f"{SECRET_NAME}-ledger"), strict=False):
                data = {
                    "type": "git",
                    "url": organisation_url(platform, owner),
                    **access.entries,
                }
                key = ObjectKey(SECRET, name, ARGOCD_NAMESPACE)
                manifests.append(credential_secret(key, data))
        if access.ca_pem:
            host = urlsplit(platform.forge.base_url).hostname or ""
            manifests.append(_certificates({host: access.ca_pem}))
        return manifests


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
