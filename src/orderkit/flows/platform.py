"""
The ports of one platform, and the two repositories Orderkit keeps there.

`Platform` has the ports: ``cli.connecting`` makes it from ``platform.yaml``, tests make it from any
adapters.

`published_prices` is the platform's own price table: ``gitops/prices.yaml`` of its pack, as
published.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from compositions.function_processes import FunctionProcess
from ground.errors import NotFoundError
from ground.names import BlobSha, CommitSha, RepoId, blob_sha
from ground.objects.kube_objects import Manifest, ObjectKey
from ground.shapes import changed
from orderkit.core.kit import order_kinds
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import Pack, definition_path, kit_path, read_pack
from orderkit.ports.catalog import Catalog
from orderkit.ports.clock import Clock
from orderkit.ports.cluster import Cluster, NoSuchKindError
from orderkit.ports.forge import FileChange, Forge, Operation, Webhook, Written
from orderkit.ports.pipeline_functions import PipelineFunctions
from orderkit.ports.portal import Portal
from orderkit.ports.processes import ConfinedRenderer, ProgramRunner
from orderkit.ports.signatures import Signatures
from softwaretemplates.size_limit import SIZE_LIMIT

if TYPE_CHECKING:
    from orderkit.core.plan.price_table import PriceTable

_KIT_FILES = ("templates/*/kit.yaml", "gitops/apis/*/definition.yaml")
"""The files that describe a kit; other files are read only for the requested kit."""


@dataclass(frozen=True, slots=True)
class Platform:
    """One platform's ports and repositories."""

    name: str
    forge: Forge
    cluster: Cluster
    catalog: Catalog
    portal: Portal
    clock: Clock
    pack_repo: RepoId
    ledger: RepoId
    confined: ConfinedRenderer
    """Renders templates that nobody vouches for."""
    run_program: ProgramRunner
    """Runs programs of campaigns."""
    signatures: Signatures
    """Signs and checks commits."""
    pipeline_functions: PipelineFunctions
    """Runs the pack's stations for plans."""
    teams: Sequence[str] = ()
    functions: Sequence[FunctionProcess] = ()
    """Composition functions that plans call in processes of their own."""
    service_registers: bool = False
    """Orders enter the ledger through the platform's service only."""
    portal_reads_orders: bool = False
    """A plugin of the portal reads orders from the service: their locations are not registered."""
    private: bool = False
    """Repositories are private: Argo CD needs a credential for each organisation."""
    team_token: Callable[[str], str] = lambda _: ""
    """A team's token for Argo CD from outside; empty: an account is made on the forge."""
    webhook: Webhook | None = None
    """How the forge reports pull requests and pushes to the service; None: not known."""
    other_clock: Callable[[], datetime | None] = lambda: None
    """Returns the time by the API server's clock; None: it is not at hand."""
    adopted: frozenset[str] = frozenset()
    """Who besides our account may own organisations and repositories of the platform."""
    size_limit: int = SIZE_LIMIT
    """Most bytes that one run of a template may hold in memory."""
    people_from: tuple[str, ...] = ()
    """Locations of the portal's catalog whose Users are believed (``catalog_origins``)."""


@dataclass(frozen=True, slots=True)
class RepositorySnapshot:
    """A repository's files at one commit."""

    commit: CommitSha
    blobs: Mapping[PurePosixPath, BlobSha]


def snapshot(
    forge: Forge, repo: RepoId, commit: CommitSha | None = None
) -> RepositorySnapshot | None:
    """Return a repository's files at a commit, or the head of ``main``; None: there is none."""
    commit = commit or forge.head(repo)
    if commit is None:
        return None
    return RepositorySnapshot(commit, forge.tree(repo, commit))


def ledger_snapshot(platform: Platform) -> RepositorySnapshot:
    """
    Return the ledger's files at its head.

    Raises:
        NotFoundError: The platform was never bootstrapped.
    """
    ledger_files = snapshot(platform.forge, platform.ledger)
    if ledger_files is None:
        raise NotFoundError(
            f"{platform.ledger}: no ledger on {platform.forge.base_url}",
            hint="the platform is not bootstrapped: 'orderkit up' does it for the embedded one",
        )
    return ledger_files


def read_text(forge: Forge, repo: RepoId, path: PurePosixPath, ref: str) -> str | None:
    """Return a file's text at a commit or branch; None if it is not there."""
    revision = forge.read(repo, path, ref)
    return None if revision is None else revision.text


def pack_snapshot(platform: Platform) -> RepositorySnapshot:
    """
    Return the files of the pack as published to this platform.

    Raises:
        NotFoundError: Nothing is published yet.
    """
    published_files = snapshot(platform.forge, platform.pack_repo)
    if published_files is None:
        raise NotFoundError(
            f"{platform.pack_repo}: no pack on {platform.forge.base_url}",
            hint="the platform is not bootstrapped: 'orderkit up' does it for the embedded one",
        )
    return published_files


def published_pack(platform: Platform, pack: RepositorySnapshot | None = None) -> Pack:
    """
    Read what describes the kits of the pack as published to this platform: what the portal sees.

    Args:
        pack: Where it is known already; None to take it as it is now.

    Raises:
        NotFoundError: Nothing is published yet. InvalidInputError: it is not a pack.
    """
    pack = pack or pack_snapshot(platform)
    patterns = ("pack.yaml", str(order_kinds.PATH), *_KIT_FILES)
    paths = [path for path in pack.blobs if any(path.match(pattern) for pattern in patterns)]
    return read_pack(pack_files(platform, pack.commit, paths))


def published_kit(platform: Platform, name: str, pack: RepositorySnapshot | None = None) -> Kit:
    """
    Read one kit of the published pack, without its template: three files.

    Args:
        pack: As in `published_pack`.

    Raises:
        NotFoundError: Nothing is published yet, or the pack has no such kit.
        InvalidInputError: A file is broken.
    """
    pack = pack or pack_snapshot(platform)
    paths = (PurePosixPath("pack.yaml"), kit_path(name), definition_path(name))
    return read_pack(pack_files(platform, pack.commit, paths)).kit(name)


def pack_files(
    platform: Platform, commit: CommitSha, paths: Iterable[PurePosixPath]
) -> dict[PurePosixPath, bytes]:
    """Read files of the pack; the forge's client keeps files of commits, which never change."""
    paths = tuple(paths)
    platform.forge.read_ahead(platform.pack_repo, paths, commit)
    revisions = (platform.forge.read(platform.pack_repo, path, commit) for path in paths)
    return {revision.path: revision.data for revision in revisions if revision}


def get_object(cluster: Cluster, key: ObjectKey) -> Manifest | None:
    """Return an object; None also while its kind is not served."""
    try:
        return cluster.get(key)
    except NoSuchKindError:
        return None


def write_ledger(
    platform: Platform,
    contents: dict[PurePosixPath, str | None],
    operation: Operation,
    *,
    base: RepositorySnapshot | None = None,
) -> Written:
    """
    Put files into the ledger (None removes one) in a single commit. Idempotent.

    Args:
        base: The ledger that the contents were computed from; None: the current one.

    Raises:
        ConflictError: Other writers won every round, or one of the files changed since `base`.
    """
    base = base or ledger_snapshot(platform)
    changes = [
        FileChange(path, None if text is None else text.encode(), base.blobs.get(path))
        for path, text in contents.items()
        if text is not None or path in base.blobs
    ]
    if not any(map(_is_change, changes)):
        return Written(base.commit, changed=False)
    # with the commit that it starts from: the same step of an order that ended and was ordered
    # again is a different operation
    unique = replace(operation, id=f"{operation.id}-on-{base.commit[:8]}")
    return platform.forge.write(platform.ledger, changes, unique)


def _is_change(change: FileChange) -> bool:
    sha = change.expected_sha
    return change.data is None or sha is None or blob_sha(change.data, sha) != sha


_KEPT = 4
_lock = threading.Lock()
_tables: OrderedDict[tuple[str, RepoId, CommitSha], PriceTable | None] = OrderedDict()


def published_prices(platform: Platform, commit: CommitSha | None = None) -> PriceTable | None:
    """
    Return the platform's own price table, if it has one.

    Args:
        commit: The pack's, where it is known already; None to take the pack as it is now.

    Raises:
        InvalidInputError: It is broken.
        RemoteError: The forge.
    """
    from orderkit.core.plan.price_table import PRICES, read_prices  # lazy: lists plan nothing

    commit = commit or platform.forge.head(platform.pack_repo)
    if commit is None:
        return None
    key = (platform.forge.base_url, platform.pack_repo, commit)
    with _lock:
        is_read, table = key in _tables, _tables.get(key)
    if not is_read:
        data = pack_files(platform, commit, [PRICES]).get(PRICES)
        table = None if data is None else read_prices(data, name=str(PRICES))
        with _lock:
            _tables[key] = table
            if len(_tables) > _KEPT:
                _tables.popitem(last=False)
    return changed(table, today=platform.clock.now().date()) if table else None
