"""What happened to all orders: who did what, why, page by page, with few requests."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest
import requests
from bays import EVE, XR, Bay, ask, new_bay, set_
from commands import Command
from faultproxy import Decision, Falsehood, Fault, Listed, Plan
from tests.component.changes.conftest import Through

from ground.errors import InvalidInputError, RemoteError
from orderkit.adapters.gitea import GiteaForge
from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.flows.order.activity import ActivityEntry, ActivityQuery, Delivery, activity
from orderkit.flows.order.awaiting import await_commit
from orderkit.flows.platform import Platform
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.serve_platform import Running

Told = Callable[..., list[ActivityEntry]]


@pytest.fixture
def told(platform: Platform) -> Told:
    """Return the entries that a query selects."""

    def read(**query: Any) -> list[ActivityEntry]:
        return list(activity(platform, ActivityQuery(**query)).entries)

    return read


def changed(bay: Bay, stage: str, reason: str = "a race") -> None:
    """Change an order and wait until that is delivered."""
    outcome = ask(bay, set_("stage", stage), reason=reason)
    assert outcome.commit is not None
    await_commit(bay.platform, bay.order, outcome.commit, timeout_s=30)


def test_an_entry_says_who_did_what_why_and_in_which_commit(bay: Bay, told: Told) -> None:
    changed(bay, "stage2", "more power")

    newest, ordered = told(limit=100)[0], [e for e in told(limit=100) if e.order == bay.order][-1]

    assert (newest.order, newest.team, newest.kit) == (bay.order, bay.repo.owner, "garage")
    assert (newest.who, newest.by_hand) == (EVE.ref, False)
    assert (newest.what, newest.why) == ("stage stage1 → stage2", "more power")
    assert newest.commit == bay.head
    assert newest.repository.endswith(f"/{bay.repo}")
    assert (ordered.what, ordered.who) == ("ordered", "user:default/eve")


def test_a_commit_by_hand_is_said_to_be_one_and_proves_no_person(
    site: Running, bay: Bay, told: Told
) -> None:
    """Trailers are whatever somebody types: neither a person nor a lease's note is believed."""
    await_commit(bay.platform, bay.order, bay.head, timeout_s=30)
    text = bay.text().replace("stage1", "stage2")
    stranger = GiteaForge(site.settings.forge.url, token=token(site.settings.forge))
    claims = Operation(f"lease-{bay.order}-x", "user:default/boss", f"{bay.order}: all is well")
    change = FileChange(XR, text.encode(), bay.platform.forge.tree(bay.repo, bay.head)[XR])
    with stranger:
        commit = stranger.write(bay.repo, [change], claims).commit

    (entry,) = [entry for entry in told(limit=100) if entry.commit == commit]

    assert entry.by_hand
    assert "boss" not in entry.who
    assert entry.why == ""
    assert commit not in {entry.commit for entry in told(person="boss", limit=100)}


def test_a_date_in_the_future_does_not_keep_a_commit_on_top(site: Running, bay: Bay) -> None:
    """Git's dates are whatever somebody types; an entry is no later than its delivery."""
    delivered_s = time.time()
    deliveries = [Delivery(_entry(bay), "garage", delivered_s, "f" * 40)]
    stranger = _Dated(site.platform.forge, "2099-01-01T00:00:00Z")

    page = activity(replace(site.platform, forge=stranger), ActivityQuery(limit=100), deliveries)

    entries = [entry for entry in page.entries if entry.order == bay.order]
    assert entries
    assert max(entry.when for entry in entries) < "2099"


class _Counting(Plan):
    """Lets everything pass and notes it."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def decide(self, method: str, path: str) -> Decision:
        self.seen.append(f"{method} {path}")
        return Decision()


class _Dated:
    """A forge on which every commit has one date."""

    def __init__(self, forge: Any, when: str) -> None:
        self._forge, self._when = forge, when

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forge, name)

    def commits(self, *place: Any, **more: Any) -> Any:
        found = self._forge.commits(*place, **more)
        return [replace(commit, when=self._when, message="by hand") for commit in found]


def _entry(bay: Bay) -> Any:
    from orderkit.core.order.ledger import OrderEntry

    return OrderEntry(bay.repo.owner, bay.order)  # type: ignore[arg-type]


def test_filters_select_by_team_person_kit_and_time(
    platform: Platform, bay: Bay, told: Told
) -> None:
    other = new_bay(platform, "activity-rx7")
    changed(bay, "stage2")

    assert {entry.team for entry in told(team="activity-rx7")} == {"activity-rx7"}
    assert {entry.order for entry in told(team="activity-rx7")} == {other.order}
    assert {entry.who for entry in told(person="eve")} == {EVE.ref}
    assert told(person="nobody") == []
    assert told(kit="no-kit") == []
    assert told(since="2099-01-01") == []
    assert bay.order in {entry.order for entry in told(since="1h", limit=100)}
    assert {entry.team for entry in told(teams={"activity-rx7"}, limit=100)} == {"activity-rx7"}
    with pytest.raises(InvalidInputError, match="neither a time nor a duration"):
        told(since="yesterday")
    with pytest.raises(InvalidInputError, match="none of ours"):
        told(cursor="x")


def test_pages_hold_every_entry_once(platform: Platform, bay: Bay, told: Told) -> None:
    changed(bay, "stage2")
    changed(bay, "stage3")
    whole = told(limit=100)[:12]

    found: list[ActivityEntry] = []
    cursor, pages = "", 0
    while len(found) < len(whole) and pages < 12:
        page = activity(platform, ActivityQuery(limit=3, cursor=cursor))
        found, cursor, pages = [*found, *page.entries], page.cursor, pages + 1

    assert [entry.commit for entry in found][: len(whole)] == [entry.commit for entry in whole]


def all_pages(
    platform: Platform, deliveries: list[Delivery] | None, limit: int, team: str = ""
) -> list[str]:
    """Return the commits of all entries, page by page."""
    found: list[str] = []
    cursor, pages = "", 0
    while cursor or not pages:
        query = ActivityQuery(team=team, limit=limit, cursor=cursor)
        page = activity(platform, query, deliveries)
        assert pages < 200, f"no page is the last: {cursor}"
        found, cursor, pages = [*found, *(e.commit for e in page.entries)], page.cursor, pages + 1
    return found


def test_entries_of_one_second_come_in_the_order_of_gits_log_on_all_pages(
    site: Running, bay: Bay
) -> None:
    for stage in ("stage2", "stage3", "stage2", "stage3"):
        ask(bay, set_("stage", stage))
    other = new_bay(site.platform, str(bay.repo.owner))
    ask(other, set_("stage", "stage2"))
    platform = replace(site.platform, forge=_Dated(site.platform.forge, "2026-10-01T00:00:00Z"))
    deliveries = [Delivery(_entry(each), "garage", time.time(), "f" * 40) for each in (bay, other)]

    pages = [all_pages(platform, deliveries, limit) for limit in (100, 1, 2)]

    logs = [[commit.id for commit in each.commits()] for each in (bay, other)]
    assert pages[0] == pages[1] == pages[2]
    assert [[commit for commit in pages[0] if commit in log] for log in logs] == logs


def test_the_pages_of_a_long_history_end_and_leave_nothing_out(site: Running, bay: Bay) -> None:
    for number in range(60):
        bay.put({PurePosixPath("notes.txt"): str(number)})
    deliveries = [Delivery(_entry(bay), "garage", time.time(), "f" * 40)]
    whole = all_pages(site.platform, deliveries, 100)

    found = all_pages(site.platform, deliveries, 30)

    log = [commit.id for commit in bay.commits()]
    assert [commit for commit in found if commit in log] == log[:60]
    assert set(found) == set(whole)
    assert len(found) == len(whole) > 60


def test_a_repository_that_is_gone_hides_no_other_order(
    platform: Platform, bay: Bay, told: Told
) -> None:
    gone = new_bay(platform)
    changed(gone, "stage2")
    changed(bay, "stage2")
    platform.forge.delete_repo(gone.repo)

    entries = told(limit=100)

    assert bay.head in {entry.commit for entry in entries}
    assert {e.what for e in entries if e.order == gone.order} == {"ordered"}


def test_a_forge_that_fails_is_told_and_leaves_no_order_out(bay: Bay, through: Through) -> None:
    changed(bay, "stage2")
    down = Decision(Fault.REFUSE_BEFORE, Falsehood(503, b"{}"))
    plan = Listed([down] * 50, lambda _, path: f"/{bay.repo}/commits" in path)

    with through(plan) as platform, pytest.raises(RemoteError, match="503"):
        activity(platform, ActivityQuery(limit=100))


def test_pages_go_on_below_the_orders_that_were_delivered_last(site: Running) -> None:
    bays = [new_bay(site.platform, "activity-deep") for _ in range(12)]
    changed(bays[-1], "stage2")
    whole = all_pages(site.platform, None, 100, team="activity-deep")

    found = all_pages(site.platform, None, 1, team="activity-deep")

    assert found == whole
    assert len(found) > len(bays)


def test_requests_follow_the_page_and_not_the_number_of_orders(
    platform: Platform, through: Through
) -> None:
    """With twenty orders more, a page of five entries needs no request more."""

    def asked() -> int:
        plan = _Counting()
        with through(plan) as counted:
            activity(counted, ActivityQuery(limit=5))
        return len(plan.seen)

    last = new_bay(platform)
    changed(last, "stage2")
    few = asked()
    for _ in range(20):
        new_bay(platform, "activity-many")
    changed(last, "stage3")
    many = asked()

    assert few <= 40, few
    assert many <= few + 8, (few, many)


def test_command_and_service_tell_the_same(site: Running, orderkit: Command, bay: Bay) -> None:
    changed(bay, "stage2", "as asked")
    service = site.settings.service
    headers = {SECRET_HEADER: token(service)}

    table = orderkit("log", "--limit", "2")
    told = orderkit("log", "--limit", "2", "--json").json
    for _ in range(50):
        answer = requests.get(f"{service.url}/v1/activity?limit=2", headers=headers, timeout=30)
        with suppress(KeyError):
            if answer.json()["entries"] == told["entries"]:
                break
        time.sleep(0.1)  # the watch of the live model tells of the delivery

    assert answer.json()["entries"] == told["entries"]
    assert table.out.splitlines()[0].split() == ["WHEN", "ORDER", "WHO", "WHAT"]
    assert f"stage stage1 → stage2, because as asked ({bay.head[:8]})" in table.out
    assert f"orderkit log --cursor {told['cursor']}" in table.err
    assert orderkit("log", "--team", "nobody").code == 1


def test_members_see_their_teams_only(site: Running, bay: Bay, quiet_bay: Bay) -> None:
    assert PurePosixPath(str(quiet_bay.repo)).parent == PurePosixPath(str(bay.repo)).parent
    page = activity(site.platform, ActivityQuery(teams=("activity-rx7",), limit=100))
    assert {entry.team for entry in page.entries} <= {"activity-rx7"}
    assert not activity(site.platform, ActivityQuery(teams=())).entries
