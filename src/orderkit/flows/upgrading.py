"""
Move a platform to another pack, or to other values, through Git and wave by wave.

What the platform's pack repository holds is compared with the pack as rendered now. The
difference is written in one commit per layer, in the order of the waves, and the next is written
only when this layer is ready at its commit: Argo CD itself would apply all layers of one commit
side by side, because a commit that changes no Application moves no wave. Forms and everything
else that no layer delivers come last, when what they order is there.

Nothing is recorded elsewhere: the repository says what is left to do, so the same command
resumes. The ledger's health is its orders' and holds nothing up. Called by ``orderkit platform
upgrade`` and, to show differences, by ``orderkit platform render --diff``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from orderkit.core import orderstate
from orderkit.core.deliverytree import ROOT, Layer, layers_of
from orderkit.core.documents import Files
from orderkit.core.errors import IncompleteError, NotFoundError
from orderkit.core.health import Health, HealthStatus, health_of
from orderkit.core.manifests import parse_manifests
from orderkit.core.names import BlobSha, CommitSha
from orderkit.core.objects import Kind, Manifest, ObjectKey, dig, metadata
from orderkit.core.orderstate import short
from orderkit.core.pinned import Move, moves
from orderkit.flows.platform import Platform, get_object, snapshot
from orderkit.flows.refreshing import OWNER, application_key, end_older_operation, nudge, refresh
from orderkit.flows.waiting import until
from orderkit.ports.forge import FileChange, Operation

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
    moves: tuple[Move, ...] = ()
    """Releases that change."""


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
    seen = snapshot(platform, platform.pack_repo)
    if seen is None:
        raise NotFoundError(
            f"{platform.pack_repo}: no pack on {platform.forge.base_url}",
            hint="an upgrade needs a platform that was bootstrapped",
        )
    found = _differences(platform, seen.commit, seen.blobs, files)
    old_layers = layers_of(_current(platform, seen.commit, seen.blobs))
    layers = _together(layers_of(files), old_layers)
    waves = [_wave(layer, [d for d in found if _of_layer(d.path, layer)]) for layer in layers]
    taken = {d.path for wave in waves for d in wave.differences}
    rest = [d for d in found if d.path not in taken]
    return UpgradePlan(seen.commit, (*waves, Wave(REST, None, tuple(rest))))


def upgrade(platform: Platform, wanted: UpgradeRequest, *, on_step: OnStep) -> Upgraded:
    """
    Bring the platform to the wanted files: a commit per wave, each ready before the next.

    Idempotent and resumable: what is done is not done again, and a layer that was not ready is
    waited for before anything else is written.

    Raises:
        IncompleteError: A layer does not get ready at its commit; the message says why.
        ConflictError: Somebody else writes to the pack repository.
        NotFoundError: Nothing is published yet.
    """
    plan = plan_upgrade(platform, wanted.files)
    operation = operation_id(wanted.files)
    commits: dict[str, CommitSha] = {}
    for wave in plan.waves:
        commit = _write(platform, wave, wanted, operation)
        if commit is not None:
            commits[wave.name] = commit
            on_step(wave.name, f"{len(wave.differences)} files at {short(commit)}")
        if ROOT in {difference.path for difference in wave.differences}:
            _apply_root(platform, wanted.files)
        if wave.layer is None or wave.layer.folder is None:
            continue
        if wave.layer.file in wanted.files:
            _await_layer(platform, wave, commit, wanted.timeout_s, operation)
            on_step(wave.name, "is ready")
    return Upgraded(operation, commits)


def operation_id(files: Files) -> str:
    """Return the id of the upgrade to these files: the same for the same wish."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(str(path).encode() + b"\0" + hashlib.sha256(files[path]).digest())
    return f"upgrade-{digest.hexdigest()[:20]}"


def _differences(
    platform: Platform,
    commit: CommitSha,
    blobs: Mapping[PurePosixPath, BlobSha],
    files: Files,
) -> list[FileDifference]:
    found = []
    for path in sorted({*files, *blobs}):
        blob, after = blobs.get(path), files.get(path)
        if blob is not None and after is not None and blob == _blob_id(after):
            continue
        before = platform.forge.read(platform.pack_repo, path, commit) if blob else None
        found.append(FileDifference(path, before.data if before else None, after, blob))
    return found


def _blob_id(data: bytes) -> BlobSha:
    """Return the id that git gives to these bytes."""
    return BlobSha(hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest())  # noqa: S324 - git's


def _current(
    platform: Platform, commit: CommitSha, blobs: Mapping[PurePosixPath, BlobSha]
) -> dict[PurePosixPath, bytes]:
    """Read the Applications that the platform's repository holds now."""
    found = {}
    for path in blobs:
        if path == ROOT or path.parent == ROOT.parent / "apps":
            read = platform.forge.read(platform.pack_repo, path, commit)
            if read is not None:
                found[path] = read.data
    return found


def _together(new: tuple[Layer, ...], old: tuple[Layer, ...]) -> list[Layer]:
    """Return the layers of both, by wave; one that goes is in its old place."""
    names = {layer.name for layer in new}
    both = [*new, *(layer for layer in old if layer.name not in names)]
    return sorted(both, key=lambda layer: layer.wave)


def _of_layer(path: PurePosixPath, layer: Layer) -> bool:
    """A layer's wave holds its folder and its Application, which appear and go together."""
    return path == layer.file or layer.delivers(path)


def _wave(layer: Layer, differences: list[FileDifference]) -> Wave:
    before = {d.path: d.before for d in differences if d.before is not None}
    after = {d.path: d.after for d in differences if d.after is not None}
    return Wave(layer.name, layer, tuple(differences), moves(before, after))


def _write(
    platform: Platform, wave: Wave, wanted: UpgradeRequest, operation: str
) -> CommitSha | None:
    """Commit a wave; None if nothing of it differs."""
    if not wave.differences:
        return None
    first = wave.differences[0]
    changes = [FileChange(d.path, d.after, d.blob) for d in wave.differences]
    told = "; ".join(map(str, wave.moves)) or f"{len(changes)} files from {first.path}"
    written = platform.forge.write(
        platform.pack_repo,
        changes,
        Operation(
            f"{operation}-{wave.name}-{(first.blob or 'new')[:8]}",
            wanted.requester,
            f"{wave.name}: pack at {short(wanted.pack_commit)}: {told}",
        ),
    )
    return written.commit


def _apply_root(platform: Platform, files: Files) -> None:
    """Apply the one object that no Application delivers."""
    for manifest in parse_manifests(str(ROOT), files.get(ROOT, b"")):
        platform.cluster.apply(manifest, owner=OWNER)
        refresh(platform, metadata(manifest)["name"])


def _await_layer(
    platform: Platform, wave: Wave, commit: CommitSha | None, timeout_s: float, operation: str
) -> None:
    if commit is not None:
        nudge(platform, "root", commit)
        nudge(platform, wave.name, commit)
    try:
        until(
            platform.clock,
            lambda: _look(platform, wave.name, commit),
            lambda waiting: not waiting,
            timeout_s=timeout_s,
            what=f"layer {wave.name} becoming ready" + (f" at {short(commit)}" if commit else ""),
            why_not=str,
        )
    except IncompleteError as error:
        raise IncompleteError(
            f"the upgrade stopped at layer {wave.name}: {error}",
            hint="mend the cause, or the pack, and repeat the same command: it goes on here"
            f" (operation {operation}); an earlier pack with --pack goes back",
        ) from error


def _look(platform: Platform, name: str, commit: CommitSha | None) -> str:
    """
    Say what a layer waits for; empty when it is ready.

    Raises:
        IncompleteError: Argo CD gave this commit up.
    """
    application = get_object(platform, application_key(name))
    if application is None:
        return "Argo CD has not created its Application"
    at = commit and _at(platform, application, commit)
    if commit and dig(application, "status", "operationState", "retryCount", default=0):
        end_older_operation(platform, application, str(at))
    waiting = _unapplied(application, at)
    reason = orderstate.delivery_failure(application) or _unhealthy_object(platform, application)
    if waiting and _ended(application, at) in ("Failed", "Error"):
        raise IncompleteError(f"Argo CD tries {short(str(at))} no more: {reason}")
    if waiting:
        return f"{waiting}: {reason}" if reason else waiting
    health = dig(application, "status", "health", "status", default="Unknown")
    return "" if health == "Healthy" else f"its health is {health}" + (reason and f": {reason}")


def _unapplied(application: Manifest, at: str | None) -> str:
    """Say what is not applied; something that may not be pruned is left, and is no difference."""
    return "" if _ended(application, at) == "Succeeded" else orderstate.undelivered(application, at)


def _ended(application: Manifest, at: str | None) -> str:
    """Return how the sync of the commit that Argo CD compared last ended; empty if it did not."""
    operation = dig(application, "status", "operationState", default={})
    revision = dig(application, "status", "sync", "revision")
    done = dig(operation, "syncResult", "revision")
    known = dig(application, "status", "sync", "status") in ("Synced", "OutOfSync")
    if "operation" in application or not known or done != revision or at not in (None, done):
        return ""
    return str(operation.get("phase", ""))


def _at(platform: Platform, application: Manifest, commit: CommitSha) -> str:
    """Return the commit that counts: a later one, which Argo CD saw, contains this one."""
    revision = str(dig(application, "status", "sync", "revision", default="") or "")
    if revision == commit or len(revision) != len(commit):
        return commit
    missing = platform.forge.compare(platform.pack_repo, revision, commit)
    return commit if missing else revision


def _unhealthy_object(platform: Platform, application: Manifest) -> str:
    """Name the first object of a layer that is not healthy, and why."""
    for entry in dig(application, "status", "resources", default=()):
        kind = Kind(entry.get("group", ""), entry.get("version", ""), entry["kind"])
        live = get_object(platform, ObjectKey(kind, entry["name"], entry.get("namespace", "")))
        verdict = health_of(live) if live is not None else Health(HealthStatus.MISSING)
        if verdict is not None and verdict.status is not HealthStatus.HEALTHY:
            told = f": {verdict.message}" if verdict.message else ""
            return f"{kind.kind} {entry['name']} is {verdict.status}{told}"
    return ""
