"""
Move the ledger to another repository, or refuse to leave it behind.

Argo CD removes what a repository no longer lists. So if platform.yaml names another ledger and that
is empty, every team's Applications are pruned, and their XRs with them. A move copies the files
before the Application of the ledger is switched. The old repository is archived first, so that
nobody enters an order there meanwhile; it keeps the history.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import urlsplit

from ground.errors import RefusedError
from ground.names import RepoId
from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, dig, labels_of
from orderkit.core.order import ledger
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.foreign_access import refuse_foreign_access
from orderkit.flows.platform import Platform, get_object, snapshot
from orderkit.flows.team.teams import LEDGER_APPLICATION
from orderkit.ports.forge import FileChange, Operation, Written

_BEGUN = {PurePosixPath("README.md"), PurePosixPath("teams/.gitkeep")}
"""What a ledger that was just begun holds."""


def delivered_ledger(platform: Platform) -> RepoId | None:
    """Return the repository that Argo CD delivers as the ledger now, or None."""
    application = get_object(platform, application_key(LEDGER_APPLICATION))
    url = str(dig(application or {}, "spec", "source", "repoURL", default=""))
    path = urlsplit(url).path.removesuffix(".git")
    prefix = f"{urlsplit(platform.forge.base_url).path}/"
    return RepoId.parse(path.removeprefix(prefix if path.startswith(prefix) else "/"))


def ledger_left_behind(platform: Platform) -> RepoId | None:
    """Return the ledger whose teams and orders platform.yaml would leave behind, or None."""
    old = delivered_ledger(platform)
    if old is None or old == platform.ledger:
        return None
    before, after = snapshot(platform, old), snapshot(platform, platform.ledger)
    if before is None:
        return None
    listed = {path for path in before.blobs if path.parts[0] in ("apps", "data", "teams")}
    return old if listed - {*(after.blobs if after else ())} - _BEGUN else None


def refuse_ledger_change(platform: Platform) -> None:
    """
    Refuse to deliver another ledger than before, unless its files were copied.

    Raises:
        RefusedError: Argo CD would delete teams and orders.
    """
    old = ledger_left_behind(platform)
    if old is None:
        return
    files = snapshot(platform, old)
    orders = list(ledger.entries(files.blobs)) if files else []
    raise RefusedError(
        f"platform.yaml: spec.ledgerRepository is {platform.ledger}, but {old} lists this"
        f" platform's teams and {len(orders)} orders: Argo CD would delete them",
        hint=f"write {old} again, or move it: orderkit bootstrap --move-ledger",
    )


def refuse_lost_ledger(platform: Platform) -> None:
    """
    Refuse to begin a ledger beside a cluster that delivers one which the forge lost.

    Raises:
        RefusedError: Argo CD would remove every team of the lost ledger.
    """
    if delivered_ledger(platform) != platform.ledger:
        return
    applications = platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
    orders = [a for a in applications if labels_of(a).get(ledger.ORDER_LABEL)]
    if orders:
        raise RefusedError(
            f"{platform.ledger} is missing on the forge, but the cluster delivers {len(orders)}"
            " orders from it: an empty one would remove their teams",
            hint="bring it back: orderkit restore DIR (docs/disaster.md)",
        )


def move_ledger(platform: Platform, old: RepoId, *, requester: str) -> Written:
    """
    Copy the old ledger's files to the new one in one commit. Idempotent, resumable.

    The new repository exists. Team files name the ledger's address; it is rewritten.

    Raises:
        RefusedError: The new repository holds something else, or somebody else may write to it.
    """
    new, forge = platform.ledger, platform.forge
    refuse_foreign_access(platform, new)
    forge.archive(old)
    before, after = snapshot(platform, old), snapshot(platform, new)
    if before is None:
        raise RefusedError(f"{old} is empty: there is nothing to move")
    blobs = after.blobs if after else {}
    if others := sorted({*blobs} - {*before.blobs} - _BEGUN):
        raise RefusedError(
            f"{new} holds other files already, such as {others[0]}",
            hint="name a new or empty repository as spec.ledgerRepository",
        )
    changes = []
    for path in sorted(before.blobs):
        revision = forge.read(old, path, before.commit)
        data = revision.data if revision else b""
        if path.parts[0] == "teams":
            data = data.replace(f"/{old}.git".encode(), f"/{new}.git".encode())
        changes.append(FileChange(path, data, blobs.get(path)))
    why = Operation(f"ledger-moved-{before.commit[:12]}", requester, f"ledger moved from {old}")
    return forge.write(new, changes, why)
