"""
Find the damaged orders of a platform at little cost; called by ``orderkit doctor``. Only reads.

``flows.order.order_damage`` looks at one order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from ground.errors import MovedError, NotFoundError, OrderkitError
from ground.names import MAIN, CommitSha
from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE
from orderkit.core.inheriting_threads import InheritingThreads
from orderkit.core.kit.pack import Pack
from orderkit.core.order import ledger, order_file
from orderkit.core.order.added_documents import INTACT
from orderkit.core.order.damage import delivered_commits, in_cluster
from orderkit.flows.order import order_report
from orderkit.flows.order.commit_judging import CheckedOrder, check_commit
from orderkit.flows.order.order_damage import IsListed, entry_of, look, with_damages
from orderkit.flows.order.order_report import OrderReport
from orderkit.flows.order.repository_damage import NEWEST
from orderkit.flows.order.tracing import trace_of
from orderkit.flows.platform import Platform, ledger_snapshot, published_pack


def damaged_orders(platform: Platform, reports: Sequence[OrderReport]) -> Iterator[OrderReport]:
    """
    Yield each order with its damages told, and those that only Argo CD still knows.

    An order that is Ready costs about five requests to the forge, and one to the cluster for each
    of its parts; only if these show a sign of damage, or if it is not Ready, is everything looked
    at.
    """
    listed = {report.entry.order for report in reports}
    applications = platform.cluster.list(APPLICATION, namespace=ARGOCD_NAMESPACE).items
    unlisted = [
        order_report.report_of(platform, entry, ending=False)
        for application in applications
        if (entry := entry_of(application)) and entry.order not in listed
    ]
    is_listed = ledger_snapshot(platform).blobs.__contains__
    pack = published_pack(platform)
    with InheritingThreads() as threads:
        yield from threads.map(partial(_told, platform, pack, is_listed), (*reports, *unlisted))


def _told(platform: Platform, pack: Pack, is_listed: IsListed, report: OrderReport) -> OrderReport:
    if report.state.phase == "Ending":
        return report
    try:
        report = trace_of(platform, report).report
        if report.state.ready and not _has_signs(platform, pack, is_listed, report):
            return report
        whole = order_report.report_of(platform, report.entry, ending=False)
        has_more = report.sources.file.fault or (whole.check and whole.check.errors)
        report = whole if has_more else report
        return with_damages(report, look(platform, report.entry, report, is_listed).damages)
    except OrderkitError as error:
        state = replace(report.state, phase="Failing", reason=str(error), advice=error.hint)
        return replace(report, state=state)


def _has_signs(platform: Platform, pack: Pack, is_listed: IsListed, report: OrderReport) -> bool:
    """Say whether something about a Ready order is unusual enough to look at all of it."""
    paths = (report.entry.application_path, ledger.team_path(report.entry.team))
    if not all(map(is_listed, paths)):
        return True
    sources = report.sources
    if sources.file != INTACT or any(in_cluster(sources.application, sources.xr, None)):
        return True
    try:
        return any(_forge_signs(platform, pack, report))
    except (MovedError, NotFoundError):
        return True


def _forge_signs(platform: Platform, pack: Pack, report: OrderReport) -> Iterator[bool]:
    """Yield what the forge says at little cost: a request or two each."""
    repo = report.entry.repository
    repository = platform.forge.repo(repo)
    yield repository is None or repository.archived or repository.default_branch != MAIN
    yield len(platform.forge.commits(repo, path=order_file.PATH, limit=2)) != 1
    checked = CheckedOrder.of(report.entry, pack, report.kit, report.sources.xr)
    if checked and report.state.revision:
        yield bool(check_commit(platform, checked, CommitSha(report.state.revision)).errors)
    if before := set(delivered_commits(report.sources.application)[:-1]):
        recent = {commit.id for commit in platform.forge.commits(repo, limit=NEWEST)}
        yield not before <= recent
