"""
Bring a platform up to the point where teams can order: repositories, pack, app-of-apps, teams.

Every step is *ensure* and is shown; repeating the whole changes nothing or finishes what a
crash left. Called by ``orderkit up`` for the embedded platform; other targets come later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from orderkit.core import orderstate
from orderkit.core.errors import InvalidInputError
from orderkit.core.manifests import parse_manifests
from orderkit.core.names import CommitSha, RepoId
from orderkit.core.objects import (
    APP_PROJECT,
    ARGOCD_NAMESPACE,
    NAMESPACE,
    Manifest,
    ObjectKey,
    dig,
    metadata,
)
from orderkit.core.pack import Files
from orderkit.flows.packrendering import PlatformValues, render_pack
from orderkit.flows.platform import Platform, get_object, snapshot
from orderkit.flows.refreshing import OWNER, application_key, refresh
from orderkit.flows.teams import add_team
from orderkit.flows.waiting import until
from orderkit.ports.forge import FileChange, Operation

ROOT = PurePosixPath("gitops", "root.yaml")
APPS = PurePosixPath("gitops", "apps")
_LEDGER_README = """# Ledger

Who may order (`teams/`), what is ordered (`apps/<team>/`), what ended (`data/`).
Written by Orderkit, delivered by Argo CD, read by everybody.
"""


@dataclass(frozen=True, slots=True)
class BootstrapRequest:
    """A pack at a commit, for a platform."""

    files: Files
    values: PlatformValues
    requester: str
    timeout_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Bootstrapped:
    """`layers` are the Applications of the app-of-apps, in the order of their waves."""

    pack_commit: CommitSha
    layers: tuple[str, ...]


OnStep = Callable[[str, str], None]


def bootstrap(platform: Platform, wanted: BootstrapRequest, *, on_step: OnStep) -> Bootstrapped:
    """
    Make sure the platform serves this pack. Idempotent, resumable.

    Raises:
        InvalidInputError: The pack is broken or lacks ``gitops/root.yaml``.
        IncompleteError: A layer does not become healthy in time; the message says why.
    """
    files = render_pack(wanted.files, wanted.values)
    commit = _publish_pack(platform, files, wanted)
    on_step("pack", f"{len(files)} files at {orderstate.short(commit)} in {platform.pack_repo}")
    _ensure_ledger(platform, wanted.requester)
    on_step("ledger", f"{platform.ledger}")
    layers = _apply_root(platform, files)
    for layer in layers:
        _wait_for(platform, layer, wanted.timeout_s)
        on_step("layer", f"{layer} is delivered and healthy")
    for team in platform.teams:
        add_team(platform, team, requester=wanted.requester)
        on_step("team", f"{team} may order")
    return Bootstrapped(commit, layers)


def _publish_pack(
    platform: Platform, files: Mapping[PurePosixPath, bytes], wanted: BootstrapRequest
) -> CommitSha:
    repo = platform.pack_repo
    platform.forge.ensure_org(repo.owner)
    platform.forge.ensure_repo(repo, description="The platform's pack: kits, forms, delivery tree")
    seen = snapshot(platform, repo)
    old = seen.blobs if seen else {}
    changes = [FileChange(path, files[path], old.get(path)) for path in sorted(files)]
    changes += [FileChange(path, None, old[path]) for path in sorted(old) if path not in files]
    digest = hashlib.sha256(b"".join(bytes(p) + files[p] for p in sorted(files))).hexdigest()
    operation = Operation(
        f"pack-{digest[:20]}-on-{seen.commit[:8] if seen else 'nothing'}",
        wanted.requester,
        f"pack at {wanted.values.pack_commit[:8]}",
    )
    return platform.forge.write(repo, changes, operation).commit


def _ensure_ledger(platform: Platform, requester: str) -> None:
    repo = platform.ledger
    platform.forge.ensure_org(repo.owner)
    platform.forge.ensure_repo(repo, description="Teams and orders of this platform")
    if platform.forge.head(repo) is None:
        first = {"README.md": _LEDGER_README, "teams/.gitkeep": ""}
        changes = [FileChange(PurePosixPath(p), t.encode(), None) for p, t in first.items()]
        platform.forge.write(repo, changes, Operation("ledger", requester, "ledger begun"))


def _apply_root(platform: Platform, files: Files) -> tuple[str, ...]:
    """Apply what Argo CD needs before it can deliver the rest; return the layers by wave."""
    for manifest in (_namespace(), _default_project()):
        if get_object(platform, ObjectKey.of(manifest)) is None:
            platform.cluster.apply(manifest, owner=OWNER)
    if ROOT not in files:
        raise InvalidInputError(str(ROOT), None, "is missing in the pack")
    for manifest in parse_manifests(str(ROOT), files[ROOT]):
        platform.cluster.apply(manifest, owner=OWNER)
        refresh(platform, metadata(manifest)["name"])
    return _layers(files)


def _layers(files: Files) -> tuple[str, ...]:
    found = [
        manifest
        for path in sorted(files)
        if path.parent == APPS and path.suffix == ".yaml"
        for manifest in parse_manifests(str(path), files[path])
    ]
    return tuple(metadata(m)["name"] for m in sorted(found, key=_wave))


def _wave(manifest: Manifest) -> int:
    return int(dig(manifest, "metadata", "annotations", "argocd.argoproj.io/sync-wave", default=0))


def _wait_for(platform: Platform, layer: str, timeout_s: float) -> None:
    until(
        platform.clock,
        lambda: get_object(platform, application_key(layer)),
        lambda found: not _not_healthy(platform, found),
        timeout_s=timeout_s,
        what=f"layer {layer} becoming healthy",
        why_not=lambda found: _not_healthy(platform, found),
    )


def _not_healthy(platform: Platform, application: Manifest | None) -> str:
    """Say what a layer waits for; the ledger's health is its orders', which hold nothing up."""
    if application is None:
        return "Argo CD has not created its Application"
    failure = orderstate.delivery_failure(application)
    waiting = failure or orderstate.undelivered(application, None)
    if waiting or _delivers(application, platform.ledger):
        return waiting
    health = dig(application, "status", "health", "status", default="Unknown")
    return "" if health == "Healthy" else f"its health is {health}"


def _delivers(application: Manifest, repo: RepoId) -> bool:
    url = str(dig(application, "spec", "source", "repoURL", default=""))
    return url.removesuffix(".git").endswith(f"/{repo}")


def _namespace() -> Manifest:
    return {
        "apiVersion": NAMESPACE.api_version,
        "kind": NAMESPACE.kind,
        "metadata": {"name": ARGOCD_NAMESPACE},
    }


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
