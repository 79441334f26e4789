"""
Argo CD's own settings: annotation tracking and health Lua must be in force before the root.

Without the health check for Applications no wave of layers waits. So what lies in the pack's
``gitops/argocd`` is applied here first; the layer ``argocd-settings`` keeps it so afterwards.
It is applied in the name of Argo CD's own field manager, so that an entry that a later pack
leaves out goes away. idpbuilder's Argo CD delivers its own ``argocd-cm`` and reverts every live
edit: there the settings go into the repository that it is delivered from (`idpbuilder`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ground.errors import IncompleteError
from ground.objects.kube_objects import (
    ARGOCD_NAMESPACE,
    CONFIG_MAP,
    NAMESPACE,
    TRACKING_ID,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
    metadata,
)
from orderkit.flows.argocd.refreshing import OWNER
from orderkit.flows.argocd.unsafe_applications import refuse_lost_tools
from orderkit.flows.install.bootstrapping.steps import (
    SETTINGS_FOLDER,
    BootstrapContext,
    Look,
    Say,
    StepVerdict,
    holds,
)
from orderkit.flows.platform import Platform, get_object

ARGOCD_CM = ObjectKey(CONFIG_MAP, "argocd-cm", ARGOCD_NAMESPACE)
_MANAGER = "argocd-controller"
"""Under this name Argo CD 3.x applies server-side."""


def wanted_settings(site: BootstrapContext) -> dict[str, str]:
    """Return the entries of argocd-cm that the pack asks for."""
    settings: dict[str, str] = {}
    for manifest in site.manifests(SETTINGS_FOLDER):
        if ObjectKey.of(manifest) == ARGOCD_CM:
            settings |= manifest.get("data") or {}
    return settings


def unforced(platform: Platform, settings: dict[str, str]) -> Sequence[str]:
    """Return the entries that argocd-cm lacks or has otherwise, sorted."""
    live = dig(get_object(platform, ARGOCD_CM) or {}, "data", default={}) or {}
    return sorted(
        key for key, value in settings.items() if str(live.get(key, "")).strip() != value.strip()
    )


@dataclass(frozen=True, slots=True)
class SettingsStep:
    """The settings are in force before anything is delivered."""

    site: BootstrapContext
    name: str = "settings"

    def look(self) -> Look:
        live = get_object(self.site.platform, ARGOCD_CM)
        if live is None:
            return Look(StepVerdict.CREATE, "ConfigMap argocd/argocd-cm")
        unapplied = [m for m in self._objects() if not _is_so(self.site.platform, m)]
        if not unapplied:
            return Look(StepVerdict.DONE, "tracking and health checks are in force")
        settings = wanted_settings(self.site)
        refuse_lost_tools(self.site.platform, settings, dig(live, "data", default={}) or {})
        keys = unforced(self.site.platform, settings)
        return Look(
            StepVerdict.CHANGE, f"argocd-cm: {', '.join(keys)}" if keys else _names(unapplied)
        )

    def ensure(self, say: Say) -> Look:  # noqa: ARG002
        before = self.look()
        platform = self.site.platform
        if get_object(platform, ObjectKey(NAMESPACE, ARGOCD_NAMESPACE)) is None:
            platform.cluster.apply(_namespace(), owner=OWNER)
        if before.verdict is not StepVerdict.DONE:
            for manifest in self._objects():
                platform.cluster.apply(manifest, owner=_MANAGER)
        return before

    def _objects(self) -> Sequence[Manifest]:
        return [
            manifest
            for manifest in self.site.manifests(SETTINGS_FOLDER)
            if metadata(manifest).get("namespace") == ARGOCD_NAMESPACE
        ]


@dataclass(frozen=True, slots=True)
class InForceStep:
    """After everything is delivered nobody has taken the settings back."""

    site: BootstrapContext
    name: str = "in force"

    def look(self) -> Look:
        keys = unforced(self.site.platform, wanted_settings(self.site))
        if keys:
            return Look(StepVerdict.WAIT, f"argocd-cm: {', '.join(keys)}", reverted_by(self.site))
        return Look(StepVerdict.DONE, "argocd-cm is as the pack asks")

    def ensure(self, say: Say) -> Look:  # noqa: ARG002
        look = self.look()
        if look.verdict is not StepVerdict.DONE:
            raise IncompleteError(
                f"something overwrote Argo CD's settings: {look.detail}",
                hint=look.advice,
            )
        return look


def reverted_by(site: BootstrapContext) -> str:
    """Say who else delivers argocd-cm, and what helps."""
    live = get_object(site.platform, ARGOCD_CM) or {}
    tracker = annotations_of(live).get(TRACKING_ID, "").partition(":")[0]
    if tracker and tracker != "argocd-settings":
        return (
            f"Application '{tracker}' delivers argocd-cm too: "
            "add these entries to its source (docs/bootstrap.md)"
        )
    return "repeat 'orderkit bootstrap'; if it happens again, find out what writes argocd-cm"


def _is_so(platform: Platform, manifest: Manifest) -> bool:
    live = get_object(platform, ObjectKey.of(manifest))
    return live is not None and holds(live, manifest)


def _names(manifests: Sequence[Manifest]) -> str:
    return ", ".join(f"{m['kind']} {metadata(m)['name']}" for m in manifests)


def _namespace() -> Manifest:
    return {
        "apiVersion": NAMESPACE.api_version,
        "kind": NAMESPACE.kind,
        "metadata": {"name": ARGOCD_NAMESPACE},
    }
