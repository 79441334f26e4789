"""Statements: who had what for how long, from the history of real repositories."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from commands import Command
from faultproxy import Decision, Falsehood, Fault, Listed, open_proxy
from forgehands import client_at
from forgeusers import embedded_admin, new_user
from tests.component.platform.test_costs import TABLE, ask, publish

from ground.errors import RemoteError
from ground.names import RepoId
from orderkit.core.plan.cost_statement import Statement
from orderkit.flows.approval.deciding import approve
from orderkit.flows.plan import cost_statements
from orderkit.flows.plan.cost_statements import StatementRequest, make_statement
from orderkit.ports.clock import SystemClock
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.requesters import Requester
from orderkit_standins.demo.narration import git
from orderkit_standins.serve_platform import Running

XR = PurePosixPath("manifests/xgarage.yaml")
MONTH_S = 730 * 3600


@pytest.fixture(autouse=True)
def prices(platform: Running) -> Iterator[None]:
    publish(platform, TABLE)
    yield
    publish(platform, None)


@dataclass(frozen=True)
class Later(SystemClock):
    """Tomorrow, or in a month."""

    by: timedelta

    def now(self) -> datetime:
        return super().now() + self.by


def statement(platform: Running, team: str, since: datetime, until: datetime) -> Statement:
    later = replace(platform.platform, clock=Later(timedelta(days=100)))
    return make_statement(later, StatementRequest(since, until, team))


def ordered(orderkit: Command, team: str, stage: str = "stage1") -> RepoId:
    done = orderkit("order", "garage", f"team_name={team}", f"stage={stage}", "--no-wait")
    assert done.code == 0, done.err
    return RepoId(team, f"garage-{team}")


def write(platform: Running, repo: RepoId, old: str, new: str) -> None:
    """Change the XR as Orderkit does, in another second than what was before."""
    time.sleep(1.1)
    forge = platform.platform.forge
    before = forge.read(repo, XR, "main")
    assert before is not None
    assert old in before.text
    change = FileChange(XR, before.text.replace(old, new).encode(), before.sha)
    forge.write(repo, [change], Operation(f"to-{new}", "user:default/t", "changed"))


def test_a_statement_has_who_had_what_for_how_long(
    orderkit: Command, platform: Running, team: str
) -> None:
    repo = ordered(orderkit, team)
    write(platform, repo, "stage1", "stage3")
    time.sleep(1.1)
    publish(platform, TABLE.replace("'110.00'", "'220.00'"))
    time.sleep(1.1)
    assert orderkit("destroy", "--yes", repo.name).code == 0

    found = orderkit("cost", "--team", team, "--json").json

    intervals = found["intervals"]
    assert [line["monthly"] for line in intervals] == ["40.1", "110.1", "220.1"]
    assert [line["end"] for line in intervals[:-1]] == [line["begin"] for line in intervals[1:]]
    assert not any(line["claimedTime"] or line["notKnown"] for line in intervals)
    (line,) = found["sums"]
    whole = sum(Fraction(i["monthly"]) * i["seconds"] / MONTH_S for i in intervals)
    assert abs(Fraction(line["amount"]) - whole) < Fraction(1, 10**6)
    assert line["seconds"] == sum(i["seconds"] for i in intervals)
    assert ask(platform, "GET", f"/v1/teams/{team}/statement")["sums"] == found["sums"]
    rows = list(csv.DictReader(io.StringIO(orderkit("cost", "--team", team, "--csv").out)))
    assert [row["monthly"] for row in rows] == ["40.1", "110.1", "220.1"]
    assert f"{team} garage 1" in " ".join(orderkit("cost", "--team", team).out.split())


def test_the_parts_of_a_period_cost_what_the_whole_costs(
    orderkit: Command, platform: Running, team: str
) -> None:
    repo = ordered(orderkit, team)
    write(platform, repo, "stage1", "stage2")
    begin = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)
    end = begin + timedelta(days=60)

    whole = statement(platform, team, begin, end).sums[0]

    days = (whole.seconds - 24 * 3600) // (24 * 3600)
    assert 56 <= days <= 59
    assert float(whole.amount) == pytest.approx(65.1 * whole.seconds / MONTH_S, rel=0.001)
    for cut in (timedelta(seconds=24 * 3600 + 1), timedelta(days=7, seconds=13)):
        first = statement(platform, team, begin, begin + cut).sums
        second = statement(platform, team, begin + cut, end).sums
        assert sum(line.amount for line in (*first, *second)) == whole.amount
        assert sum(line.seconds for line in (*first, *second)) == whole.seconds


def push(platform: Running, repo: RepoId, folder: Path, change: tuple[str, str]) -> None:
    clone = folder / f"clone-{change[1]}"
    git(
        platform,
        folder,
        "clone",
        "--quiet",
        f"{platform.settings.forge.url}/{repo}.git",
        str(clone),
    )
    file = clone / XR
    file.write_text(file.read_text().replace(*change))
    git(platform, clone, "commit", "--quiet", "--all", "--message", "by hand")
    git(platform, clone, "push", "--quiet", "origin", "main")


def test_whoever_pushes_cannot_change_what_was_before_the_last_change(
    orderkit: Command,
    platform: Running,
    team: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repo = ordered(orderkit, team, "stage3")
    since = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    write(platform, repo, "stage3", "stage2")
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2001-01-01T00:00:00Z")
    push(platform, repo, tmp_path, ("stage2", "stage1"))
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2090-01-01T00:00:00Z")
    push(platform, repo, tmp_path, ("stage1", "stage3"))

    found = statement(platform, team, since, since + timedelta(days=10))

    monthly = [str(interval.cost.monthly) for interval in found.intervals]
    assert (monthly[0], monthly[-1]) == ("110.10", "110.10")
    assert found.intervals[-1].claimed
    assert found.sums[0].claimed_s > 9 * 24 * 3600


def test_what_is_not_known_is_no_amount(orderkit: Command, platform: Running, team: str) -> None:
    repo = ordered(orderkit, team)
    publish(platform, TABLE.replace("currency: EUR", "currency: EURO"))
    time.sleep(1.1)
    begin = datetime.now(UTC).replace(microsecond=0)

    broken = statement(platform, team, begin, begin + timedelta(days=1)).answer.to_json()

    (line,) = broken["sums"]
    assert (line["amount"], line["notKnownSeconds"], line["currency"]) == ("0", 86_400, None)
    assert "the pack of then cannot be used: gitops/prices.yaml" in line["notKnown"][0]
    publish(platform, None)
    assert "not known" in orderkit("cost", "--team", team).out
    assert orderkit("destroy", "--yes", repo.name, "--delete-repository").code == 0
    gone: dict[str, Any] = orderkit("cost", "--team", team, "--json").json["sums"][0]
    assert "does not exist any more" in gone["notKnown"][0]
    assert gone["notKnownSeconds"] == gone["seconds"]


def test_what_is_beyond_the_bound_of_a_history_is_not_known(
    orderkit: Command, platform: Running, team: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = ordered(orderkit, team)
    write(platform, repo, "stage1", "stage2")
    monkeypatch.setattr(cost_statements, "HISTORY_MAX", 1)
    begin = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)

    first, last = statement(platform, team, begin, begin + timedelta(days=3)).intervals

    assert (first.amount, str(last.cost.monthly)) == (None, "65.10")
    assert "has more than 1 commits since" in first.cost.unknown[0]
    assert first.end == last.begin


def test_a_forge_that_is_down_is_not_taken_for_an_order_without_values(
    orderkit: Command, platform: Running, team: str
) -> None:
    repo, settings = ordered(orderkit, team), platform.settings.forge
    begin = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)
    asked = StatementRequest(begin, begin + timedelta(days=1), team)
    unavailable = Decision(Fault.REFUSE_BEFORE, Falsehood(503, b"{}"))
    plan = Listed([unavailable] * 50, lambda _, path: f"/{repo}/git/" in path)

    with (
        open_proxy(settings.url) as proxy,
        proxy.using(plan),
        client_at(proxy.url, settings, None, read_timeout_s=10) as forge,
        pytest.raises(RemoteError, match="503"),
    ):
        make_statement(replace(platform.platform, forge=forge), asked)


def test_what_a_kit_measures_is_shown_beside_the_estimate(
    orderkit: Command, platform: Running, team: str
) -> None:
    forge, pack = platform.platform.forge, platform.platform.pack_repo
    kit = PurePosixPath("templates/garage/kit.yaml")
    before = forge.read(pack, kit, "main")
    assert before is not None
    spent = "{name: spent, title: Spent, path: stage, unit: EUR, spend: true}"
    text = before.text.replace("  facts:\n", f"  facts:\n    - {spent}\n")

    def put(data: bytes, name: str) -> None:
        now = forge.read(pack, kit, "main")
        change = FileChange(kit, data, now.sha if now else None)
        forge.write(pack, [change], Operation(name, "user:default/t", name))

    put(text.encode(), "measure")
    try:
        assert orderkit("order", "garage", f"team_name={team}", "stage=stage2").code == 0
        time.sleep(1.1)  # an order of less than a second is in no statement
        found = orderkit("cost", "--team", team, "--json").json["measured"]
        shown = orderkit("status", f"garage-{team}", "--json").json["facts"]
    finally:
        put(before.data, "measure-no-more")

    line = {"team": team, "kit": "garage", "order": f"garage-{team}", "title": "Spent"}
    assert found == [{**line, "value": "stage2 EUR"}]
    assert {"name": "spent", "title": "Spent", "value": "stage2 EUR", "spend": True} in shown


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--since", "yesterday"), "is not a time"),
        (("--month", "2026-13"), "is not a month"),
        (("--since", "2090-01-01"), "is not before the end"),
        (("--month", "2026-01", "--since", "2026-01-01"), "contradict"),
        (("--kit", "cathedral"), "no kit 'cathedral'"),
        (("--team", "nobody"), "no team 'nobody'"),
    ],
)
def test_a_period_that_is_none_is_refused(
    orderkit: Command, options: tuple[str, ...], words: str
) -> None:
    done = orderkit("cost", *options)
    assert done.code in (1, 2)
    assert words in done.err


def test_an_order_that_waited_is_in_a_statement_from_its_delivery_on(
    orderkit: Command, platform: Running, team: str
) -> None:
    admin = embedded_admin(platform.settings.forge.url, platform.embedded.state.folder)
    eve, lead = new_user(admin, "eve"), new_user(admin, "lead")
    path = f"/repos/{platform.platform.ledger}/collaborators/{lead.login}"
    admin.api("PUT", path, {"permission": "write"})
    assert orderkit("team", "change", team, "--limit", "orders=0", "--over", "ask").code == 0
    since = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
    requester = f"user:default/{eve.login}"
    arguments = ("--requester", requester, "--no-wait")
    order = f"garage-{team}"
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage3", *arguments).code == 0

    waiting = statement(platform, team, since, since + timedelta(days=10))
    time.sleep(1.1)
    before = datetime.now(UTC).replace(microsecond=0)
    approve(platform.platform, order, Requester(f"user:default/{lead.login}", "a token"))
    delivered = statement(platform, team, since, since + timedelta(days=10))
    time.sleep(1.1)
    assert orderkit("destroy", "--yes", order).code == 0
    ended = orderkit("cost", "--team", team, "--json").json["intervals"]
    admin.api("DELETE", path)  # bootstrap refuses a ledger that others may write to

    assert waiting.intervals == ()
    (interval,) = delivered.intervals
    assert interval.order == order
    assert before <= interval.begin <= datetime.now(UTC)
    assert str(interval.cost.monthly) == "110.10"
    (line,) = ended
    assert datetime.fromisoformat(line["begin"]) == interval.begin
    assert line["seconds"] > 0
