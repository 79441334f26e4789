"""
Tell on the forge whether what was pushed to an order's main branch is valid.

The status `CONTEXT` of the head is success, failure, or warning if the API server accepts what
hardly anybody intends. It says what ``orderkit status`` says, in 140 characters, and links to the
first faulty line.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from ground.errors import NotFoundError, shorten
from ground.names import RepoId
from ground.visible_text import visible
from orderkit.core.order import ledger
from orderkit.core.order.damage import CommitCheck
from orderkit.core.order.order_file import MANIFESTS
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.order.commit_judging import CheckedOrder, check_commit
from orderkit.flows.order.order_report import own_xr, registered_kit
from orderkit.flows.platform import Platform, get_object, ledger_snapshot, published_pack
from orderkit.ports.forge import CommitStatus, Forge

CONTEXT = "orderkit/validate"
_DESCRIPTION_MAX = 140
"""GitHub refuses a longer description of a status."""


def keep_checked(platform: Platform, repo: RepoId) -> CommitCheck:
    """
    Check the head of an order's main branch and set its commit status. Idempotent.

    Raises:
        NotFoundError: It is not a live order's repository, or the pack lacks its kit.
        RemoteError: The forge.
    """
    paths = ledger_snapshot(platform).blobs
    entry = ledger.living_order(paths, repo.name)
    commit = platform.forge.head(repo, "main")
    if entry is None or entry.repository != repo or entry.end_path in paths or commit is None:
        raise NotFoundError(
            f"{repo} is not a live order's repository", hint="see the live orders: orderkit list"
        )
    application = get_object(platform.cluster, application_key(entry.order))
    pack = published_pack(platform)
    kit_name = ledger.kit_of(application) if application else registered_kit(platform, entry)
    kinds = {kit.name: kit.kind for kit in pack.kits()}
    look_up = partial(get_object, platform.cluster)
    _, xr = own_xr(entry.order, application, kinds, kit_name, look_up)
    order = CheckedOrder.of(entry, pack, kit_name, xr)
    if order is None:
        raise NotFoundError(f"kit '{kit_name}' of {entry.order} is not in the pack")
    check = check_commit(platform.forge, order, commit)
    text = shorten(visible(check.summary), limit=_DESCRIPTION_MAX)
    url = _url(platform.forge, repo, check)
    platform.forge.set_status(repo, commit, CommitStatus(CONTEXT, check.state, text, url))
    return check


def _url(forge: Forge, repo: RepoId, check: CommitCheck) -> str:
    """Return the address of the first finding's file and line, or of the commit."""
    base, pages = f"{forge.base_url}/{repo}", forge.capabilities.pages
    first = next(iter(check.findings), None)
    if first is None or first.file == MANIFESTS:
        return pages.commit_page(base, check.commit)
    line = f"#L{first.line}" if first.line else ""
    return f"{pages.file_at(base, check.commit, str(first.file))}{line}"


def unchecked(platform: Platform, targets: Collection[str | RepoId] = ()) -> list[RepoId]:
    """
    Return the repositories of living orders whose head of main has no `CONTEXT` status.

    Args:
        targets: Teams or repositories; none: every living order.
    """
    paths = ledger_snapshot(platform).blobs
    living = (entry for entry in ledger.entries(paths) if entry.end_path not in paths)
    repositories = [entry.repository for entry in living]
    selected = [repo for repo in repositories if not targets or {repo, repo.owner} & set(targets)]
    return [repo for repo in selected if not _is_checked(platform.forge, repo)]


def _is_checked(forge: Forge, repo: RepoId) -> bool:
    head = forge.head(repo, "main")
    if head is None:
        return True  # there is nothing to check
    return any(status.context == CONTEXT for status in forge.statuses(repo, head))
