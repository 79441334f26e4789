"""
What people do to a living order past Orderkit, on a real Gitea and a real Argo CD.

Whether something is deleted, and what a renamed or transferred repository answers, only these
decide. Crossplane alone is stood for, by our assembler on the same API server.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from commands import Command, in_process
from forgeusers import ForgeUser
from labplatform import CHIEF, ServedLab
from mischief import (
    FILE,
    MENDED,
    XGARAGE,
    Mischief,
    Victim,
    Victims,
    archive_repository,
    delete_repository,
    remove_ledger_file,
)
from roguery import place

from ground.names import TeamName
from ground.objects.kube_objects import (
    APPLICATION,
    ARGOCD_NAMESPACE,
    CONFIG_MAP,
    NAMESPACE,
    ObjectKey,
    dig,
)
from orderkit.core.order.ledger_applications import is_safe
from orderkit.flows.argocd.refreshing import refresh
from orderkit.flows.repeating import until
from orderkit.flows.team.teams import add_team

WITHIN_S = 90.0
_numbers = itertools.count(1)
SAMPLED = [
    pytest.param(mischief, marks=[] if number % 3 == 0 else [pytest.mark.soak])
    for number, mischief in enumerate(MENDED)
]
"""Every third; `make test-all` has them all on the embedded platform."""


@pytest.fixture
def orderkit(served_lab: ServedLab, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(served_lab.file, capsys)


@pytest.fixture(scope="module")
def victims(served_lab: ServedLab, tmp_path_factory: pytest.TempPathFactory) -> Victims:
    gitea, platform = served_lab.lab.gitea, served_lab.platform
    admin = ForgeUser(gitea.url, gitea.user, gitea.password)

    def make() -> Victim:
        team = TeamName(f"risk-{next(_numbers):02d}")
        add_team(platform, team, requester=CHIEF)
        entry = place(platform, "garage", team)
        return Victim(platform, admin, entry, tmp_path_factory.mktemp(team), WITHIN_S)

    return Victims(make)


@pytest.fixture
def victim(victims: Victims) -> Victim:
    return victims.next()


@pytest.mark.parametrize("mischief", SAMPLED, ids=lambda mischief: mischief.reason)
def test_status_explains_it_and_repair_mends_it(
    mischief: Mischief, victim: Victim, orderkit: Command
) -> None:
    order, uid = victim.entry.order, victim.xr_uid()
    says, repaired = (mischief.words(t, victim) for t in (mischief.says, mischief.repaired))
    mischief.act(victim)
    told = victim.until(lambda report: says in report.state.reason, says).state

    mended = orderkit("repair", order)
    victim.until(lambda report: report.state.ready and not report.state.reason, "Ready again")

    assert (told.phase, told.advice) == ("Failing", f"orderkit repair {order}")
    assert (mended.code, mended.err) == (0, ""), mended.out
    assert f"repaired    {repaired}" in mended.out
    assert victim.xr_uid() == uid, "the order was deleted and made again"


def test_a_transferred_repository_is_told_with_the_way_back(
    victim: Victim, orderkit: Command
) -> None:
    victim.admin.api("POST", "/orgs", {"username": f"{victim.entry.team}-new"})
    body = {"new_owner": f"{victim.entry.team}-new"}
    victim.admin.api("POST", f"{victim.repo_path}/transfer", body)

    shown = orderkit("status", victim.entry.order)
    repaired = orderkit("repair", victim.entry.order)

    assert f"was transferred to {victim.entry.team}-new/{victim.entry.order}" in shown.out
    assert f"transfer it back to {victim.entry.team} on " in shown.out
    assert repaired.code == 1
    assert f"what to do  transfer it back to {victim.entry.team} on " in repaired.out


def test_a_forced_push_is_told_and_proposed_to_be_undone(victim: Victim, orderkit: Command) -> None:
    order = victim.entry.order
    head = victim.push(FILE, lambda text: text.replace("stage1", "stage2"))
    victim.until(lambda report: report.state.ready and report.state.revision == head, "stage2")
    pusher = victim.clone()
    pusher.git("push", "--quiet", "--force", "origin", "HEAD~1:main")
    refresh(victim.platform.cluster, order)
    victim.until(lambda report: "by a forced push" in report.state.reason, "told")

    proposed = orderkit("repair", order)

    assert f"pull request #1 brings {head[:8]} back" in proposed.out


def test_pushing_another_name_deletes_nothing_and_the_revert_does_not_wait(
    victim: Victim, orderkit: Command
) -> None:
    order, uid = victim.entry.order, victim.xr_uid()
    victim.push(FILE, lambda text: text.replace(order, f"{order}-x"))
    victim.until(
        lambda report: (
            f'is "{order}-x", but the XR of {order} is "{order}"' in report.state.reason
            and dig(victim.application(), "status", "operationState", "retryCount", default=0) > 0
        ),
        "refused and tried again",
    )
    back = victim.push(FILE, lambda text: text.replace(f"{order}-x", order))
    repaired = orderkit("repair", order)
    victim.until(lambda report: report.state.ready and report.state.revision == back, "Ready")

    assert repaired.code == 0, repaired.out
    assert victim.xr_uid() == uid
    assert victim.get(NAMESPACE, order)
    retry = dig(victim.application(), "spec", "syncPolicy", "retry")
    assert retry["refresh"] is True


def test_what_is_deleted_in_the_cluster_comes_back(victim: Victim) -> None:
    uid, team = victim.xr_uid(), f"team-{victim.entry.team}"
    victim.platform.clock.sleep(5)  # what is younger could be a difference of clocks
    victim.platform.cluster.delete(ObjectKey(XGARAGE, victim.entry.order))
    victim.until(
        lambda report: report.state.ready and "its XR was deleted" in report.state.reason, "told"
    )
    assert victim.xr_uid() not in ("", uid)
    uid = victim.xr_uid()
    for name in (victim.entry.order, team):
        key = ObjectKey(APPLICATION, name, ARGOCD_NAMESPACE)
        before = _uid_of(victim, key)()
        victim.platform.cluster.delete(key)
        _until(victim, _uid_of(victim, key), _is_other(before), name)
        victim.until(lambda report: report.state.ready, "Ready")
        assert victim.xr_uid() == uid


@pytest.mark.parametrize(
    "act", [delete_repository, archive_repository], ids=lambda act: act.__name__
)
def test_an_order_whose_repository_is_gone_or_closed_can_be_ended(
    act: Callable[[Victim], None], victim: Victim, orderkit: Command
) -> None:
    act(victim)

    ended = orderkit("destroy", "--yes", victim.entry.order, "--timeout", "120")

    assert ended.code == 0, ended.err
    assert "error" not in ended.err
    assert victim.get(XGARAGE, victim.entry.order) is None
    assert victim.get(NAMESPACE, victim.entry.order) is None
    assert victim.application() == {}


def test_an_order_is_safe_and_can_be_ended_after_its_file_was_lost(
    victim: Victim, orderkit: Command
) -> None:
    assert is_safe(victim.application())
    remove_ledger_file(victim)
    team = ObjectKey(APPLICATION, f"team-{victim.entry.team}", ARGOCD_NAMESPACE)
    _until(
        victim,
        lambda: dig(victim.platform.cluster.get(team) or {}, "status", "sync", "status"),
        lambda status: status == "OutOfSync",
        "Argo CD seeing the file gone",
    )
    assert victim.xr_uid()
    assert orderkit("repair", victim.entry.order).code == 0
    ended = orderkit("destroy", "--yes", victim.entry.order)

    assert ended.code == 0, ended.err
    assert "error" not in ended.err
    assert victim.get(XGARAGE, victim.entry.order) is None


@pytest.fixture
def paused(victim: Victim) -> Iterator[Victim]:
    """An order that somebody paused with kubectl."""
    key = ObjectKey(XGARAGE, victim.entry.order)

    def annotate(value: str | None) -> None:
        patch = {"metadata": {"annotations": {"crossplane.io/paused": value}}}
        victim.platform.cluster.patch(key, patch, owner="somebody")

    annotate("true")
    victim.until(lambda report: report.state.paused, "paused")
    yield victim
    annotate(None)


def test_a_paused_order_is_reported_and_planned_as_one(paused: Victim, orderkit: Command) -> None:
    order = paused.entry.order

    shown, planned = orderkit("status", order), orderkit("plan", order, "stage=stage2")

    resume = f"kubectl annotate xgarage.blog.opsbogus.dev {order} crossplane.io/paused-"
    assert f"XGarage {order} is paused (annotation crossplane.io/paused)" in shown.out
    assert resume in planned.out
    assert planned.code == 10
    assert "nothing of this happens until it is resumed" in planned.out
    assert "  in the end  Paused" in planned.out


def test_a_plan_begins_with_what_somebody_edited(paused: Victim, orderkit: Command) -> None:
    order = paused.entry.order
    sheet = ObjectKey(CONFIG_MAP, "spec-sheet", order)
    paused.platform.cluster.patch(sheet, {"data": {"stage": "hacked"}}, owner="somebody")

    planned = orderkit("plan", order, "stage=stage3")

    drift = f"drift       ConfigMap {order}/spec-sheet (spec-sheet) was changed in data.stage"
    assert drift in planned.out
    assert "data.stage hacked → stage3" in planned.out


def _uid_of(victim: Victim, key: ObjectKey) -> Callable[[], object]:
    return lambda: dig(victim.platform.cluster.get(key) or {}, "metadata", "uid")


def _is_other(before: object) -> Callable[[object], bool]:
    return lambda uid: uid not in (None, before)


def _until(
    victim: Victim, look: Callable[[], object], done: Callable[[object], bool], goal: str
) -> None:
    until(victim.platform.clock, look, done, timeout_s=WITHIN_S, goal=goal)
