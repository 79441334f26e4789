"""
Root and layers: the one object that is applied by hand, and what Argo CD makes of it.

Layers are waited for one after the other in the order of their waves; while one is not healthy,
its own reason is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ground.errors import InvalidInputError
from ground.names import CommitSha, RepoId
from ground.objects.kube_objects import (
    APP_PROJECT,
    ARGOCD_NAMESPACE,
    Manifest,
    ObjectKey,
    dig,
    metadata,
)
from orderkit.core.order import order_state
from orderkit.flows.argocd.refreshing import OWNER, application_key, nudge, refresh
from orderkit.flows.install.bootstrapping.steps import (
    BootstrapContext,
    Look,
    Say,
    StepVerdict,
    holds,
)
from orderkit.flows.platform import Platform, get_object
from orderkit.flows.waiting import until
from yamlfiles.manifests import parse_manifests

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
        missing = [m for m in objects if get_object(platform, ObjectKey.of(m)) is None]
        if missing:
            return Look(StepVerdict.CREATE, _names(missing))
        other = [m for m in self._root() if not _is_so(platform, m)]
        if other:
            return Look(StepVerdict.CHANGE, _names(other))
        return Look(StepVerdict.DONE, _names(objects))

    def ensure(self, say: Say) -> Look:  # noqa: ARG002 - the layers are waited for
        before, platform = self.look(), self.site.platform
        project = _default_project()
        if get_object(platform, ObjectKey.of(project)) is None:
            platform.cluster.apply(project, owner=OWNER)
        for manifest in self._root():
            if not _is_so(platform, manifest):
                platform.cluster.apply(manifest, owner=OWNER)
            refresh(platform, metadata(manifest)["name"])
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
        application = get_object(self.site.platform, application_key(self._application))
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
            nudge(platform, self._application, commit)
        report = _Told(platform, say)
        application = until(
            platform.clock,
            lambda: get_object(platform, application_key(self._application)),
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


def _is_so(platform: Platform, manifest: Manifest) -> bool:
    live = get_object(platform, ObjectKey.of(manifest))
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
