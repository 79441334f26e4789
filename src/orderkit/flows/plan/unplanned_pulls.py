"""
Find open pull requests of orders without a plan: the service missed them or failed.

A forge does not repeat a delivery while the service is down, and the service's queue is lost when
it ends. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Collection

from ground.errors import NotFoundError
from ground.names import MAIN, RepoId
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.order import ledger
from orderkit.flows.plan.announcing import CONTEXT
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.ports.forge import PullRequest

_AT_ONCE = 8

Place = tuple[RepoId, int]


def unplanned(platform: Platform, targets: Collection[str | RepoId] = ()) -> list[Place]:
    """
    Return the pull requests into main whose head has no plan, by team, order and number.

    Args:
        targets: Teams or repositories; none: every living order.

    Raises:
        NotFoundError: There is no ledger. RemoteError: the forge.
    """
    repositories = [entry.repository for entry in ledger.entries(ledger_snapshot(platform).blobs)]
    selected = [repo for repo in repositories if not targets or {repo, repo.owner} & set(targets)]
    with InheritingThreads(_AT_ONCE, thread_name_prefix="missed") as pool:
        numbers = pool.map(lambda repo: _numbers(platform, repo), selected)
        return [
            (repo, n)
            for repo, open_numbers in zip(selected, numbers, strict=True)
            for n in open_numbers
        ]


def _numbers(platform: Platform, repo: RepoId) -> list[int]:
    try:
        pulls = list(platform.forge.pulls(repo, base=MAIN))
        return sorted(pull.number for pull in pulls if not _has_plan(platform, repo, pull))
    except NotFoundError:
        return []  # its repository went, or a head with it


def _has_plan(platform: Platform, repo: RepoId, pull: PullRequest) -> bool:
    statuses = platform.forge.statuses(repo, pull.head_commit)
    return any(status.context == CONTEXT and status.state != "error" for status in statuses)
