"""
Upgrade a platform to another pack or other values, through Git, wave by wave.

What the platform's pack repository holds is compared with the pack as rendered now. The difference
is written in one commit per layer, in the order of the waves, and the next is written only when
this layer is ready at its commit: Argo CD itself would apply all layers of one commit side by side,
because a commit that changes no Application moves no wave. Forms and everything else that no layer
delivers come last, when what they order is there.

Nothing is recorded elsewhere: the repository says what is left to do, so the same command resumes.
The ledger's health is its orders' and holds nothing up. At the end, Applications of teams and
orders that an earlier release wrote are pinned to plain manifests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ground.errors import IncompleteError, NotFoundError
from ground.names import BlobSha, CommitSha, Files, blob_sha
from ground.objects.kube_objects import dig, metadata
from orderkit.core.kit.pack import read_pack
from orderkit.core.order.order_state import short
from orderkit.core.platform.delivery_tree import (
    ROOT,
    SETTINGS,
    Layer,
    VersionMove,
    layers_of,
    moves,
)
from orderkit.core.platform.installation import Installation
from orderkit.flows.argocd.commit_pinning import refuse_lost_tools
from orderkit.flows.argocd.layer_waiting import await_layer, await_taken_up
from orderkit.flows.argocd.refreshing import OWNER, refresh
from orderkit.flows.forge_protection import protect_orders
from orderkit.flows.install.bootstrapping.argocd_steps import ARGOCD_CM
from orderkit.flows.install.bootstrapping.platform_repositories import (
    pack_replacement,
    refuse_ledger_change,
)
from orderkit.flows.install.bootstrapping.reach_steps import check_accounts
from orderkit.flows.install.service_secret import ensure_service_secret
from orderkit.flows.order.agreements import approver_problems
from orderkit.flows.platform import Platform, get_object, snapshot
from orderkit.flows.team.pinning import pin_teams
from orderkit.ports.cluster import Cluster
from orderkit.ports.forge import FileChange, Operation
from yamlfiles.manifests import parse_manifests

REST = "portal"
"""The last wave: forms, pages and what else no layer delivers."""
OnStep = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class UpgradeRequest:
    """The pack as rendered for the platform, and how long one layer may take."""

    files: Files
    pack_commit: str
    requester: str
    timeout_s: float = 600.0
    installation: Installation = field(default_factory=Installation)
    """Says whom the rendered admission policies take for Argo CD and Crossplane."""
    service_files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The Secret of the installed service; empty: the service is not installed."""


@dataclass(frozen=True, slots=True)
class FileDifference:
    """One file: as the platform has it and as it will be; None where it is not."""

    path: PurePosixPath
    before: bytes | None
    after: bytes | None
    blob: BlobSha | None = None


@dataclass(frozen=True, slots=True)
class Wave:
    """What one commit changes, and the layer that must be ready before the next."""

    name: str
    layer: Layer | None
    differences: tuple[FileDifference, ...]
    moves: tuple[VersionMove, ...] = ()
    """Versions that change."""


@dataclass(frozen=True, slots=True)
class UpgradePlan:
    """Every wave of the platform; those without differences are only waited for."""

    commit: CommitSha
    """Of the platform's pack repository, from which it was planned."""
    waves: tuple[Wave, ...]

    @property
    def differing(self) -> tuple[Wave, ...]:
        """The waves that change something."""
        return tuple(wave for wave in self.waves if wave.differences)


@dataclass(frozen=True, slots=True)
class Upgraded:
    """`commits` by the name of the wave; empty when nothing was left to do."""

    operation: str
    commits: Mapping[str, CommitSha] = field(default_factory=dict)


def plan_upgrade(platform: Platform, files: Files) -> UpgradePlan:
    """
    Compare the platform's pack repository with a rendered pack. Writes nothing.

    Raises:
        NotFoundError: Nothing is published yet.
        ManifestError: A file of ``gitops/apps`` is broken.
    """
    published = snapshot(platform.forge, platform.pack_repo)
    if published is None:
        raise NotFoundError(
            f"{platform.pack_repo}: no pack on {platform.forge.base_url}",
            hint="an upgrade needs a platform that was bootstrapped",
        )
    differences = _differences(platform, published.commit, published.blobs, files)
    old_layers = layers_of(_published_applications(platform, published.commit, published.blobs))
    layers = _together(layers_of(files), old_layers)
    waves = [_wave(layer, [d for d in differences if _of_layer(d.path, layer)]) for layer in layers]
    layer_paths = {d.path for wave in waves for d in wave.differences}
    others_left = [d for d in differences if d.path not in layer_paths]
    return UpgradePlan(published.commit, (*waves, Wave(REST, None, tuple(others_left))))


def refuse_unnamed_pack(platform: Platform, files: Files) -> None:
    """
    Check that a pack that nobody named replaces no other pack, and drops no kit.

    Raises:
        RefusedError: It would.
    """
    published = platform.forge.head(platform.pack_repo)
    if published is None:
        return  # nothing to lose
    replacement = pack_replacement(platform, published, files)
    if replacement.is_other or replacement.lost_kits:
        hint = "name the folder of its pack: orderkit platform upgrade --pack DIR"
        raise replacement.refusal(hint=hint, without="--pack")


def upgrade(platform: Platform, request: UpgradeRequest, *, on_step: OnStep) -> Upgraded:
    """
    Upgrade the platform to these files: one commit per wave, each ready before the next.

    Idempotent and resumable: what is done is not done again, and a layer that was not ready is
    waited for before anything else is written.

    Raises:
        IncompleteError: A layer does not become ready at its commit; the message says why.
        ConflictError: Somebody else writes to the pack repository.
        NotFoundError: Nothing is published yet.
        RefusedError: The pack switches off a tool that somebody else's Application needs, or
            Argo CD or Crossplane runs as another account than the policies know.
    """
    check_accounts(platform.cluster, request.installation)
    refuse_ledger_change(platform)
    plan = plan_upgrade(platform, request.files)
    _check_tools(platform.cluster, request.files)
    operation = operation_id(request.files)
    commits: dict[str, CommitSha] = {}
    await_taken_up(platform, plan.commit, request.timeout_s)
    _bring_secret(platform.cluster, request, on_step)
    # one commit each: Argo CD would apply all layers of one commit side by side, because a commit
    # that changes no Application moves no wave
    for wave in plan.waves:
        commit = _write(platform, wave, request, operation)
        if commit is not None:
            commits[wave.name] = commit
            on_step(wave.name, f"{len(wave.differences)} files at {short(commit)}")
        if ROOT in {difference.path for difference in wave.differences}:
            _apply_root(platform.cluster, request.files)
        if wave.layer is None or wave.layer.folder is None:
            continue
        with _stopped_at(wave.name, operation):
            if commit and wave.layer.file in {difference.path for difference in wave.differences}:
                await_taken_up(platform, commit, request.timeout_s)
            if wave.layer.file in request.files:
                await_layer(platform, wave.name, commit, request.timeout_s)
                on_step(wave.name, "is ready")
    if teams := pin_teams(platform, requester=request.requester):
        on_step(
            "sources",
            f"Applications of {', '.join(teams)} deliver plain manifests, and commits where a kit"
            " wants reviews",
        )
    ledger_files = snapshot(platform.forge, platform.ledger)
    if ledger_files is not None and (count := protect_orders(platform, ledger_files)):
        on_step("orders", f"{count} orders are protected on the forge now")
    for problem, advice in approver_problems(platform, read_pack(request.files).kits()):
        on_step("approvers", f"{problem}: {advice}")
    return Upgraded(operation, commits)


def operation_id(files: Files) -> str:
    """Return the id of the upgrade to these files; the same files give the same id."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(str(path).encode() + b"\0" + hashlib.sha256(files[path]).digest())
    return f"upgrade-{digest.hexdigest()[:20]}"


def _bring_secret(cluster: Cluster, request: UpgradeRequest, on_step: OnStep) -> None:
    if request.service_files and ensure_service_secret(cluster, request.service_files):
        on_step("service secret", "is written")


def _check_tools(cluster: Cluster, files: Files) -> None:
    live = get_object(cluster, ARGOCD_CM) or {}
    for manifest in parse_manifests(str(SETTINGS), files.get(SETTINGS, b"")):
        settings = dig(manifest, "data", default={})
        refuse_lost_tools(cluster, settings, dig(live, "data", default={}) or {})


def _differences(
    platform: Platform,
    commit: CommitSha,
    blobs: Mapping[PurePosixPath, BlobSha],
    files: Files,
) -> list[FileDifference]:
    differences = []
    for path in sorted({*files, *blobs}):
        blob, after = blobs.get(path), files.get(path)
        if blob is not None and after is not None and blob == blob_sha(after):
            continue
        before = platform.forge.read(platform.pack_repo, path, commit) if blob else None
        differences.append(FileDifference(path, before.data if before else None, after, blob))
    return differences


def _published_applications(
    platform: Platform, commit: CommitSha, blobs: Mapping[PurePosixPath, BlobSha]
) -> dict[PurePosixPath, bytes]:
    """Read the Applications that the platform's repository holds now."""
    applications = {}
    for path in blobs:
        if path == ROOT or path.parent == ROOT.parent / "apps":
            read = platform.forge.read(platform.pack_repo, path, commit)
            if read is not None:
                applications[path] = read.data
    return applications


def _together(new: tuple[Layer, ...], old: tuple[Layer, ...]) -> list[Layer]:
    """Return the layers of both, by wave; a removed layer keeps its old wave."""
    names = {layer.name for layer in new}
    layers = [*new, *(layer for layer in old if layer.name not in names)]
    return sorted(layers, key=lambda layer: layer.wave)


def _of_layer(path: PurePosixPath, layer: Layer) -> bool:
    """A layer's wave holds its folder and its Application, which appear and go together."""
    return path == layer.file or layer.delivers(path)


def _wave(layer: Layer, differences: list[FileDifference]) -> Wave:
    before = {d.path: d.before for d in differences if d.before is not None}
    after = {d.path: d.after for d in differences if d.after is not None}
    return Wave(layer.name, layer, tuple(differences), moves(before, after))


def _write(
    platform: Platform, wave: Wave, request: UpgradeRequest, operation: str
) -> CommitSha | None:
    """Commit a wave; None if nothing of it differs."""
    if not wave.differences:
        return None
    first = wave.differences[0]
    changes = [FileChange(d.path, d.after, d.blob) for d in wave.differences]
    summary = "; ".join(map(str, wave.moves)) or f"{len(changes)} files from {first.path}"
    commit_result = platform.forge.write(
        platform.pack_repo,
        changes,
        Operation(
            f"{operation}-{wave.name}-{(first.blob or 'new')[:8]}",
            request.requester,
            f"{wave.name}: pack at {short(request.pack_commit)}: {summary}",
        ),
    )
    return commit_result.commit


def _apply_root(cluster: Cluster, files: Files) -> None:
    """Apply the one object that no Application delivers."""
    for manifest in parse_manifests(str(ROOT), files.get(ROOT, b"")):
        cluster.apply(manifest, owner=OWNER)
        refresh(cluster, metadata(manifest)["name"])


@contextmanager
def _stopped_at(layer: str, operation: str) -> Iterator[None]:
    """Report the layer that timed out, and how to continue."""
    try:
        yield
    except IncompleteError as error:
        raise IncompleteError(
            f"the upgrade stopped at layer {layer}: {error}",
            hint="fix the cause or the pack and repeat the command: it continues here"
            f" (operation {operation}); to go back, give an earlier pack with --pack",
        ) from error
