"""Campaigns that change fields: carried out, stopped, taken back, reverted."""

from __future__ import annotations

import http.client
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import requests
from bays import EVE, XR, ask, merge, new_bay, set_
from commands import Command
from limitedforge import LimitedForge
from tests.component.campaigns.conftest import NewDesk, ready

from ground.errors import (
    AccessError,
    IncompleteError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
)
from orderkit.adapters.gitea import GiteaForge
from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.core.campaign.definition import CAMPAIGN_TRAILER, STEP_TRAILER, path_of
from orderkit.flows.campaign import planning, starting
from orderkit.flows.campaign.running import run
from orderkit.flows.campaign.showing import campaign_view
from orderkit.flows.team.teams import add_team
from orderkit.ports.forge import FileChange, Operation
from orderkit.ports.requesters import Requester
from orderkit_standins.serve_platform import Running

if TYPE_CHECKING:
    from chances import Chances

ADA = Requester("user:default/ada")
DOUBLE = {"compute": {"laps": "has(spec.laps) ? spec.laps * 2 : 3"}}
BREAKS = {"set": {"pit": {"bays": 99}}}
"""The station refuses this, and no schema does."""
QUICK = {"ready": "40s", "failing": "1s"}


def test_a_campaign_from_its_file_to_all_orders_ready(desk: NewDesk, orderkit: Command) -> None:
    mine = desk(4)
    file = mine.file({"set": {"stage": "stage2"}, **DOUBLE}, waves=[{"name": "canary", "count": 1}])
    planned = orderkit("campaign", "plan", str(file))
    assert planned.code == 10, planned.err
    assert "4 orders: 4 direct" in planned.out
    assert "stage stage1 → stage2: 4 orders" in planned.out
    assert "canary (1), rest (3)" in planned.out

    done = orderkit("campaign", "start", str(file))
    assert done.code == 0, done.err
    assert f"{mine.name}: done" in done.out
    assert mine.results() == dict.fromkeys(mine.orders, "ready")
    for bay in mine.bays:
        assert (bay.spec()["stage"], bay.spec()["laps"]) == ("stage2", 3)
        (commit,) = mine.commits(bay)
        assert commit.trailers["Orderkit-Reason"] == "because"
        assert commit.requester.startswith("user:default/")
    assert {mine.commits(bay)[0].trailers[STEP_TRAILER] for bay in mine.bays} == {"1.1", "2.1"}
    assert mine.ledger_commits() == [
        f"campaign {mine.name}: because",
        f"campaign {mine.name}: starts",
        f"campaign {mine.name}: wave canary is over: 1 ready",
        f"campaign {mine.name}: wave rest is over: 3 ready",
    ]
    again = orderkit("campaign", "start", mine.name)
    assert again.code == 0
    assert all(len(mine.commits(bay)) == 1 for bay in mine.bays)
    assert orderkit("campaign", "plan", str(mine.file())).out.startswith(
        f"{mine.name}: 4 orders: 4 same"
    )


def test_a_canary_stops_a_bad_change_and_takes_it_back(desk: NewDesk) -> None:
    """Two of eight orders meet it; mended and tried again, all get the right one."""
    mine = desk(8)
    rules = {
        "how": "direct",
        "waves": [{"name": "canary", "count": 2}],
        "gates": QUICK,
        "stop": {"failed": 1, "then": "takeBack"},
    }
    mine.start(BREAKS, **rules)
    record = mine.run()
    assert record.state == "stopped"
    assert "99 bays need a lift" in record.why
    met = [bay for bay in mine.bays if mine.commits(bay)]
    assert len(met) == 2
    assert all("pit" not in bay.spec() for bay in mine.bays)
    assert [step.trailers[STEP_TRAILER] for step in mine.commits(met[0])] == ["back-1.1", "1.1"]
    assert set(mine.results().values()) == {"takenBack"}
    with pytest.raises(RefusedError, match="is stopped"):
        starting.start(mine.platform, mine.name, EVE)

    data = mine.file({"set": {"pit": {"bays": 2}}}, **rules).read_bytes()
    text = starting.CampaignText.read(data, name=mine.name)
    starting.put(mine.platform, text, ADA)
    with pytest.raises(RefusedError, match="was edited since"):
        starting.retry(mine.platform, mine.name, EVE)
    starting.retry(mine.platform, mine.name, EVE, text=text)
    assert mine.run().state == "done"
    assert [bay.spec()["pit"] for bay in mine.bays] == [{"bays": 2}] * 8
    assert set(mine.results().values()) == {"ready"}


def test_a_forge_that_says_too_fast_is_waited_for(desk: NewDesk) -> None:
    """GitHub lets 500 changes an hour pass: a campaign of 1,000 waits, and does not give up."""
    mine = desk(2)
    mine.start()
    limited: Any = LimitedForge(mine.platform.forge, "write", refusals=12, seconds=0.3)
    record = mine.run(platform=replace(mine.platform, forge=limited))
    assert (record.state, limited.refusals < 0) == ("done", True)
    assert [len(mine.commits(bay)) for bay in mine.bays] == [1, 1]


def test_requests_for_an_order_do_not_grow_with_the_fleet(
    desk: NewDesk, site: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven to the forge for each order of a kit with reviews; the rest does not grow with them."""
    port = urlsplit(site.settings.forge.url).port
    sent: list[str] = []
    putrequest = http.client.HTTPConnection.putrequest

    def noting(connection: http.client.HTTPConnection, *words: Any, **named: Any) -> None:
        thread = threading.current_thread()  # those of the service are not counted
        is_ours = thread is threading.main_thread() or thread.name.startswith("campaign")
        if is_ours and connection.port == port:
            sent.append(" ".join(words[:2]))
        putrequest(connection, *words, **named)

    took: dict[int, int] = {}
    for count in (4, 16):
        mine = desk(count)
        with monkeypatch.context() as noted:
            noted.setattr(http.client.HTTPConnection, "putrequest", noting)
            mine.start(how="direct")
            assert mine.run(is_new=True).state == "done"
        took[count] = len([line for line in sent if "/pack/" not in line])
        sent.clear()
    assert took[16] - took[4] <= 8 * (16 - 4), took


def test_what_the_plan_refuses_is_never_committed(desk: NewDesk, orderkit: Command) -> None:
    mine = desk(2)
    planned = orderkit("campaign", "plan", str(mine.file(BREAKS)))
    assert planned.code == 4
    assert "99 bays need a lift: 2 orders" in planned.out
    mine.start(BREAKS)
    record = mine.run()
    assert (record.state, "99 bays need a lift" in record.why) == ("stopped", True)
    assert not any(mine.commits(bay) for bay in mine.bays)


def test_reviewed_orders_are_proposed_and_counted_when_merged(desk: NewDesk) -> None:
    mine = desk(3)
    mine.start({"set": {"colour": "red"}})
    with pytest.raises(IncompleteError, match="3 pull requests are open") as waits:
        mine.run()
    assert f"orderkit campaign resume {mine.name}" in waits.value.hint
    with pytest.raises(IncompleteError):
        mine.run()
    pulls = [list(bay.platform.forge.pulls(bay.repo, state="all")) for bay in mine.bays]
    assert [len(found) for found in pulls] == [1, 1, 1]
    merge(mine.bays[0], pulls[0][0].number)
    merge(mine.bays[1], pulls[1][0].number)
    mine.platform.forge.close_pull(mine.bays[2].repo, pulls[2][0].number)
    assert mine.run().state == "done"
    assert [mine.results()[order] for order in mine.orders] == ["ready", "ready", "skipped"]
    assert [bay.spec().get("colour") for bay in mine.bays] == ["red", "red", None]


def test_a_revert_takes_back_only_what_nobody_changed_since(desk: NewDesk) -> None:
    mine = desk(3)
    mine.start({"set": {"note": "wrong"}})
    assert mine.run().state == "done"
    ask(mine.bays[0], set_("note", "by eve"))
    ask(mine.bays[1], set_("laps", 7))
    starting.revert(mine.platform, mine.name, EVE)
    assert mine.run().state == "reverted"
    assert [bay.spec().get("note") for bay in mine.bays] == ["by eve", None, None]
    assert mine.bays[1].spec()["laps"] == 7
    assert [mine.results()[order] for order in mine.orders] == ["kept", "takenBack", "takenBack"]


def test_a_paused_campaign_waits_and_a_wave_waits_for_approval(desk: NewDesk) -> None:
    mine = desk(2)
    mine.start(waves=[{"name": "one", "count": 1}, {"name": "two", "approve": True}])
    starting.pause(mine.platform, mine.name, EVE, "lunch")
    assert (mine.run().state, mine.results()) == ("paused", {})
    starting.resume(mine.platform, mine.name, EVE)
    record = mine.run()
    assert (record.state, record.why) == (
        "paused", "wave two begins when somebody resumes the campaign",
    )  # fmt: skip
    assert len(mine.results()) == 1
    starting.resume(mine.platform, mine.name, ADA)
    assert mine.run().state == "done"
    for turn in (starting.pause, starting.stop):
        with pytest.raises(RefusedError, match="is done and cannot be") as refused:
            turn(mine.platform, mine.name, EVE, "")
        assert refused.value.hint == f"orderkit campaign status {mine.name}"


@pytest.mark.parametrize(
    ("when", "result"), [("spec.stage == 'stage2'", "ready"), ("spec.stage == 'stage3'", "failed")]
)
def test_an_order_whose_gate_stays_shut_has_failed(desk: NewDesk, when: str, result: str) -> None:
    mine = desk(1)
    mine.start(gates={"ready": "20s" if result == "ready" else "1s", "when": when})

    record = mine.run()

    assert mine.results() == dict.fromkeys(mine.orders, result)
    assert (f"the gate is shut: {when}" in record.why) is (result == "failed")


def test_orders_that_match_no_more_or_have_ended_are_passed_over(
    desk: NewDesk, orderkit: Command
) -> None:
    mine = desk(3)
    for bay in mine.bays:
        ask(bay, set_("note", "undefined"))
    ready(mine.platform, *mine.orders)
    mine.start({"remove": ["note"]}, which={
        "kit": "garage", "orders": mine.orders, "where": "spec.note == 'undefined'",
    })  # fmt: skip
    ask(mine.bays[0], set_("note", "mended"))
    assert orderkit("destroy", mine.orders[1], "--yes").code == 0
    assert mine.run().state == "done"
    assert [mine.results()[order] for order in mine.orders] == ["skipped", "skipped", "ready"]
    assert [bay.spec().get("note") for bay in mine.bays[::2]] == ["mended", None]


def test_what_a_form_wrote_into_many_files_is_mended(desk: NewDesk, chances: Chances) -> None:
    """History: a form wrote "undefined" into 40 files, and a person's own note looks like it."""
    mine = desk(chances.count(8, 40))
    spared, *broken = mine.bays
    ask(spared, set_("note", "undefined on purpose"))
    for bay in broken:
        ask(bay, set_("note", "undefined"))
    ready(mine.platform, *mine.orders)
    mine.start(
        {"remove": ["note"]},
        which={"kit": "garage", "orders": mine.orders, "where": "spec.note == 'undefined'"},
        waves=[{"name": "canary", "count": 3}, {"share": 25}],
    )
    assert mine.run().state == "done"
    assert spared.spec()["note"] == "undefined on purpose"
    assert not any("note" in bay.spec() for bay in broken)
    assert mine.results() == {bay.order: "ready" for bay in broken}
    assert [len(mine.commits(bay)) for bay in mine.bays] == [0] + [1] * len(broken)


def test_an_order_that_is_placed_meanwhile_is_found_too(desk: NewDesk) -> None:
    mine = desk(2, team="late-bays")
    mine.start(which={"kit": "garage", "teams": ["late-bays"]})
    late = new_bay(mine.platform, "late-bays")
    record = mine.run()
    assert [(wave.name, len(wave.orders)) for wave in record.waves] == [("all", 2), ("late", 1)]
    assert late.spec()["stage"] == "stage2"


def test_a_campaign_that_cannot_begin_says_why(desk: NewDesk) -> None:
    mine = desk(1)
    platform = mine.platform
    add_team(platform, "beside", requester=EVE.ref)
    which = {"kit": "garage", "orders": mine.orders}
    for refused, words, other in (
        (InvalidInputError, "is not a kit of this platform", {"kit": "garag"}),
        (NotFoundError, "no order 'garage-nix' in the ledger", {"orders": ["garage-nix"]}),
        (InvalidInputError, "matches no order", {"where": "spec.stage == 'stage3'"}),
        (NotFoundError, f"{mine.orders[0]} is not an order of kit garage", {"teams": ["beside"]}),
    ):
        with pytest.raises(refused, match=words):
            mine.start(which={**which, **other})
    never = f"campaign {mine.name} was not started"
    for turn in (starting.resume, starting.revert, starting.retry):
        with pytest.raises(RefusedError, match=never):
            turn(platform, mine.name, EVE)
    with pytest.raises(RefusedError, match=never):
        mine.run()
    text = starting.CampaignText.read(mine.file().read_bytes(), name=mine.name)
    starting.put(platform, text, EVE)
    plan = planning.plan_campaign(platform, text.campaign, EVE)
    with pytest.raises(RefusedError, match="the ledger has this campaign") as there:
        starting.propose(platform, text, plan, EVE)
    assert there.value.hint == f"orderkit campaign start {mine.name}"


def test_a_campaign_is_started_or_tried_again_only_where_that_helps(desk: NewDesk) -> None:
    mine = desk(2)
    waves = [{"name": "one", "count": 1}, {"name": "two", "approve": True}]
    mine.start(waves=waves)
    with pytest.raises(RefusedError, match="is running, and nothing in it can be tried again"):
        starting.retry(mine.platform, mine.name, EVE)
    with pytest.raises(IncompleteError, match="is not over after 0 s"):
        run(mine.platform, mine.name, EVE, timeout_s=0)
    assert mine.run().state == "paused"
    with pytest.raises(RefusedError, match="is paused: wave two begins when"):
        starting.start(mine.platform, mine.name, EVE)
    starting.stop(mine.platform, mine.name, EVE, "enough")
    data = mine.file({"set": {"stage": "stage3"}}, waves=waves).read_bytes()
    text = starting.CampaignText.read(data, name=mine.name)
    starting.put(mine.platform, text, EVE)

    with pytest.raises(RefusedError, match="and 0 more orders have what the old one did"):
        starting.retry(mine.platform, mine.name, EVE, text=text)


def test_a_run_whose_token_was_revoked_ends_at_once_and_another_goes_on(
    desk: NewDesk, site: Running
) -> None:
    mine = desk(1)
    mine.start()
    with (
        GiteaForge(site.settings.forge.url, token="revoked") as forge,
        pytest.raises(AccessError),
    ):
        mine.run(platform=replace(mine.platform, forge=forge))
    assert mine.run().state == "done"


def test_an_edited_file_of_a_running_campaign_is_refused(desk: NewDesk) -> None:
    """Somebody with rights to the ledger cannot slip other values under a start by others."""
    mine = desk(2)
    mine.start()
    platform, path = mine.platform, f"campaigns/{mine.name}.yaml"
    other = mine.file({"set": {"stage": "stage3"}}).read_bytes()
    with pytest.raises(RefusedError, match="is running, with another file"):
        starting.put(platform, starting.CampaignText.read(other, name=mine.name), ADA)
    head = platform.forge.head(platform.ledger)
    assert head is not None
    (sha,) = (s for p, s in platform.forge.tree(platform.ledger, head).items() if str(p) == path)
    change = FileChange(path_of(mine.name), other, sha)
    by_hand = Operation(f"hand-{mine.name}", ADA.ref, "by hand")
    platform.forge.write(platform.ledger, [change], by_hand)
    with pytest.raises(RefusedError, match="was edited since the campaign was started"):
        mine.run()
    assert not any(mine.commits(bay) for bay in mine.bays)


def test_a_record_that_names_somebody_gives_nobody_their_rights(desk: NewDesk) -> None:
    """Commits name who carried the campaign out, not whom its record names."""
    mine = desk(1)
    mine.start()
    assert mine.record().by == EVE.ref
    run(mine.platform, mine.name, ADA, timeout_s=60)
    assert [commit.requester for commit in mine.commits(mine.bays[0])] == [ADA.ref]


def test_trailers_that_somebody_pushed_do_not_count(desk: NewDesk, site: Running) -> None:
    mine = desk(1)
    record = mine.start()
    (bay,) = mine.bays
    forged = Operation(
        f"campaign-{record.id}-{bay.order}-1", EVE.ref, "forged", "",
        ((CAMPAIGN_TRAILER, record.id), (STEP_TRAILER, "1.1")),
    )  # fmt: skip
    head = bay.platform.forge.read(bay.repo, XR, "main")
    assert head is not None
    data = head.data.replace(b"stage1", b"stage3")
    with GiteaForge(site.settings.forge.url, token=token(site.settings.forge)) as unsigned:
        unsigned.write(bay.repo, [FileChange(XR, data, head.sha)], forged)
    assert mine.run().state == "done"
    assert bay.spec()["stage"] == "stage2"
    assert mine.results() == {bay.order: "ready"}


def test_all_orders_of_a_kit_are_changed_by_one_command(desk: NewDesk, orderkit: Command) -> None:
    mine = desk(2)
    for bay, note in zip(mine.bays, ("undefined-7", "fine"), strict=True):
        ask(bay, set_("note", note))
    ready(mine.platform, *mine.orders)
    words = ("change", "--kit", "garage", "--where", "spec.note == 'undefined-7'")
    edits = ("stage=stage2", "note-", "guests+=eve")
    planned = orderkit(*words, *edits, "--dry-run")
    assert "1 order: 1 direct" in planned.out
    done = orderkit(*words, *edits, "--operation", mine.name)
    assert done.code == 0, done.err
    assert mine.results() == {mine.orders[0]: "ready"}
    spec = mine.bays[0].spec()
    assert (spec["stage"], spec.get("note"), spec["guests"]) == ("stage2", None, ["eve"])
    assert mine.bays[1].spec()["note"] == "fine"
    assert orderkit(*words, *edits, "--operation", mine.name).code == 0
    assert len(mine.commits(mine.bays[0])) == 1
    refused = orderkit("change", "--kit", "garage", "guests-=eve")
    assert (refused.code, "cannot be taken out" in refused.err) == (2, True)
    assert orderkit("change", "garage-x", "--where", "true", "stage=stage1").code == 2


def test_status_shows_waves_and_reasons(desk: NewDesk, orderkit: Command, site: Running) -> None:
    mine = desk(2)
    mine.start(BREAKS, stop={"failed": 2})
    assert mine.run().state == "stopped"
    view = campaign_view(mine.platform, mine.name)
    assert [(w.name, w.orders, dict(w.counts)) for w in view.waves] == [("all", 2, {"failed": 2})]
    shown = orderkit("campaign", "status", mine.name)
    assert "failed: <order>" in shown.out
    settings = site.settings.service
    headers = {SECRET_HEADER: token(settings)}
    answer = requests.get(f"{settings.url}/v1/campaigns", headers=headers, timeout=60)
    assert [c["state"] for c in answer.json()["campaigns"] if c["name"] == mine.name] == ["stopped"]
    listed = orderkit("campaign", "status", "--json").json["campaigns"]
    assert [c["state"] for c in listed if c["name"] == mine.name] == ["stopped"]
    with pytest.raises(NotFoundError, match="no campaign 'nix'"):
        campaign_view(mine.platform, "nix")
