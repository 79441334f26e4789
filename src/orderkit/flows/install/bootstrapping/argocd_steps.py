"""
The steps with Argo CD: its own settings in force, then the root and its layers.

`SettingsStep` comes first: annotation tracking and health Lua must be in force before the root.
Without the health check for Applications no wave of layers waits. So what lies in the pack's
``gitops/argocd`` is applied here first; the layer ``argocd-settings`` keeps it so afterwards. It is
applied in the name of Argo CD's own field manager, so that an entry that a later pack leaves out
goes away. idpbuilder's Argo CD delivers its own ``argocd-cm`` and reverts every live edit: there
the settings go into the repository that it is delivered from (``idpbuilder_steps``).

`RootStep` has the one object that is applied by hand, `LayerStep` what Argo CD makes of it. Layers
are waited for one after the other in the order of their waves; while one is not healthy, its own
reason is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ground.errors import IncompleteError, InvalidInputError
from ground.names import CommitSha, RepoId
from ground.objects.kube_objects import (
    APP_PROJECT,
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
from orderkit.core.order import order_state
from orderkit.flows.argocd.commit_pinning import refuse_lost_tools
from orderkit.flows.argocd.refreshing import OWNER, application_key, nudge, refresh
from orderkit.flows.install.bootstrapping.steps import (
    SETTINGS_FOLDER,
    BootstrapContext,
    Look,
    Say,
    StepVerdict,
    holds,
)
from orderkit.flows.platform import Platform, get_object
from orderkit.flows.repeating import until
from orderkit.ports.cluster import Cluster
from yamlfiles.manifests import parse_manifests

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


def unforced(cluster: Cluster, settings: dict[str, str]) -> Sequence[str]:
    """Return the entries that argocd-cm lacks or has otherwise, sorted."""
    live = dig(get_object(cluster, ARGOCD_CM) or {}, "data", default={}) or {}
    return sorted(
        key for key, value in settings.items() if str(live.get(key, "")).strip() != value.strip()
    )


@dataclass(frozen=True, slots=True)
class SettingsStep:
    """The settings are in force before anything is delivered."""

    site: BootstrapContext
    name: str = "settings"

    def look(self) -> Look:
        live = get_object(self.site.platform.cluster, ARGOCD_CM)
        if live is None:
            return Look(StepVerdict.CREATE, "ConfigMap argocd/argocd-cm")
        unapplied = [m for m in self._objects() if not _is_in_force(self.site.platform.cluster, m)]
        if not unapplied:
            return Look(StepVerdict.DONE, "tracking and health checks are in force")
        settings = wanted_settings(self.site)
        refuse_lost_tools(self.site.platform.cluster, settings, dig(live, "data", default={}) or {})
        keys = unforced(self.site.platform.cluster, settings)
        return Look(
            StepVerdict.CHANGE, f"argocd-cm: {', '.join(keys)}" if keys else _names(unapplied)
        )

    def ensure(self, say: Say) -> Look:  # noqa: ARG002
        before = self.look()
        platform = self.site.platform
        if get_object(platform.cluster, ObjectKey(NAMESPACE, ARGOCD_NAMESPACE)) is None:
            platform.cluster.apply(_namespace(), owner=OWNER)
        if before.verdict is not StepVerdict.DONE:
            for manifest in self._objects():
                # in Argo CD's own name: an entry that a later pack leaves out goes away
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
        keys = unforced(self.site.platform.cluster, wanted_settings(self.site))
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
    live = get_object(site.platform.cluster, ARGOCD_CM) or {}
    tracker = annotations_of(live).get(TRACKING_ID, "").partition(":")[0]
    if tracker and tracker != "argocd-settings":
        return (
            f"Application '{tracker}' delivers argocd-cm too: "
            "add these entries to its source (docs/bootstrap.md)"
        )
    return "repeat 'orderkit bootstrap'; if it happens again, find out what writes argocd-cm"


def _is_in_force(cluster: Cluster, manifest: Manifest) -> bool:
    live = get_object(cluster, ObjectKey.of(manifest))
    return live is not None and holds(live, manifest)


def _namespace() -> Manifest:
    return {
        "apiVersion": NAMESPACE.api_version,
        "kind": NAMESPACE.kind,
        "metadata": {"name": ARGOCD_NAMESPACE},
    }


ROOT = PurePosixPath("gitops", "root.yaml")
APPS = PurePosixPath("gitops", "apps")
_QUIET_S = 2.0
"""How long a reason holds before it is told: most are gone at once."""


@dataclass(frozen=True, slots=True)
class RootStep:
    """The root Application is as the pack has it, and looks at Git now."""

    site: BootstrapContext
    name: str = "root"

    def look(self) -> Look:
        platform = self.site.platform
        objects = self._objects()
        missing = [m for m in objects if get_object(platform.cluster, ObjectKey.of(m)) is None]
        if missing:
            return Look(StepVerdict.CREATE, _names(missing))
        other = [m for m in self._root() if not _is_so(platform.cluster, m)]
        if other:
            return Look(StepVerdict.CHANGE, _names(other))
        return Look(StepVerdict.DONE, _names(objects))

    def ensure(self, say: Say) -> Look:  # noqa: ARG002 - the layers are waited for
        before, platform = self.look(), self.site.platform
        project = _default_project()
        if get_object(platform.cluster, ObjectKey.of(project)) is None:
            platform.cluster.apply(project, owner=OWNER)
        for manifest in self._root():
            if not _is_so(platform.cluster, manifest):
                platform.cluster.apply(manifest, owner=OWNER)
            refresh(platform.cluster, metadata(manifest)["name"])
        return before

    def _root(self) -> Sequence[Manifest]:
        if ROOT not in self.site.files:
            raise InvalidInputError(str(ROOT), None, "is missing in the pack")
        return list(parse_manifests(str(ROOT), self.site.files[ROOT]))

    def _objects(self) -> Sequence[Manifest]:
        return [_default_project(), *self._root()]


@dataclass(frozen=True, slots=True)
class LayerStep:
    """One layer is what the pack has, delivered and healthy."""

    site: BootstrapContext
    layer: Manifest = field(repr=False)

    @property
    def name(self) -> str:
        return f"layer {self._application}"

    @property
    def _application(self) -> str:
        return str(metadata(self.layer)["name"])

    def look(self) -> Look:
        application = get_object(self.site.platform.cluster, application_key(self._application))
        if application is None:
            return Look(StepVerdict.CREATE, f"wave {wave_of(self.layer)}")
        if not holds(application.get("spec"), self.layer.get("spec")):
            return Look(StepVerdict.CHANGE, "its Application differs from the pack")
        waiting = self._waits(application, self._commit())
        return (
            Look(StepVerdict.WAIT, waiting)
            if waiting
            else Look(StepVerdict.DONE, _delivered(application))
        )

    def ensure(self, say: Say) -> Look:
        platform, before, commit = self.site.platform, self.look(), self._commit()
        if before.verdict is not StepVerdict.DONE and commit:
            nudge(platform.cluster, self._application, commit)
        report = _Told(platform, say)
        application = until(
            platform.clock,
            lambda: get_object(platform.cluster, application_key(self._application)),
            lambda live: not self._waits(live, commit),
            timeout_s=self.site.wanted.timeout_s,
            goal=f"layer {self._application} becoming healthy",
            why_not=lambda live: self._waits(live, commit),
            on_look=lambda live: report(self._waits(live, commit)),
        )
        return Look(before.verdict, _delivered(application or {}))

    def _commit(self) -> CommitSha | None:
        """Return the commit that a layer of the pack must be at; others may be at any."""
        platform = self.site.platform
        ours = _delivers(self.layer, platform.pack_repo)
        return platform.forge.head(platform.pack_repo) if ours else None

    def _waits(self, application: Manifest | None, commit: CommitSha | None) -> str:
        reason = not_healthy(self.site.platform, application, commit)
        if not reason and not holds((application or {}).get("spec"), self.layer.get("spec")):
            return "its Application differs from the pack"
        return reason


class _Told:
    """Tells a reason once it has held for a while, and each only once in a row."""

    def __init__(self, platform: Platform, say: Say) -> None:
        self._clock, self._say = platform.clock, say
        self._reason, self._since_s, self._told = "", self._clock.monotonic_s(), ""

    def __call__(self, reason: str) -> None:
        now_s = self._clock.monotonic_s()
        if reason != self._reason:
            self._reason, self._since_s = reason, now_s
        if reason and reason != self._told and now_s - self._since_s >= _QUIET_S:
            self._told = reason
            self._say(reason)


def layers(site: BootstrapContext) -> Sequence[Manifest]:
    """
    Return the Applications of the app-of-apps in the order of their waves.

    Raises:
        InvalidInputError: The pack is broken.
    """
    return sorted(site.manifests(APPS), key=wave_of)


def wave_of(manifest: Manifest) -> int:
    """Return an object's sync wave."""
    return int(dig(manifest, "metadata", "annotations", "argocd.argoproj.io/sync-wave", default=0))


def not_healthy(
    platform: Platform, application: Manifest | None, commit: CommitSha | None = None
) -> str:
    """
    Say what a layer waits for; the ledger's health is its orders', which hold nothing up.

    Args:
        commit: What it must be delivered at; None: at whatever Argo CD has seen.
    """
    if application is None:
        return "Argo CD has not created its Application"
    if not application.get("status"):
        return "Argo CD has not reconciled it yet (is its application controller running?)"
    failure = order_state.delivery_failure(application)
    waiting = failure or order_state.undelivered(application, commit)
    if waiting or _delivers(application, platform.ledger):
        return waiting
    health = dig(application, "status", "health", "status", default="Unknown")
    message = dig(application, "status", "health", "message", default="")
    problem = f"its health is {health}" + (f": {message}" if message else "")
    return "" if health == "Healthy" else problem + _unready(application)


def _unready(application: Manifest) -> str:
    """Name the first object that holds a layer up, where Argo CD keeps that."""
    for resource in dig(application, "status", "resources", default=()):
        status = dig(resource, "health", "status", default="Healthy")
        if status != "Healthy":
            message = dig(resource, "health", "message", default="")
            return f" ({resource.get('kind')} {resource.get('name')} is {status}: {message})"
    return ""


def _delivered(application: Manifest) -> str:
    revision = str(dig(application, "status", "sync", "revision", default=""))
    return f"delivered at {order_state.short(revision)}"


def _delivers(application: Manifest, repo: RepoId) -> bool:
    url = str(dig(application, "spec", "source", "repoURL", default=""))
    return url.removesuffix(".git").endswith(f"/{repo}")


def _is_so(cluster: Cluster, manifest: Manifest) -> bool:
    live = get_object(cluster, ObjectKey.of(manifest))
    return live is not None and holds(live.get("spec"), manifest.get("spec"))


def _names(manifests: Sequence[Manifest]) -> str:
    return ", ".join(f"{m['kind']} {metadata(m)['name']}" for m in manifests)


def _default_project() -> Manifest:
    """Return the AppProject of the platform's own layers, as argocd-server would make it."""
    return {
        "apiVersion": APP_PROJECT.api_version,
        "kind": APP_PROJECT.kind,
        "metadata": {"name": "default", "namespace": ARGOCD_NAMESPACE},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    }
