"""What /metrics of the service says of campaigns, whichever process carries them out."""

from __future__ import annotations

import json
from typing import Any

import requests
from bays import EVE
from tests.component.campaigns.conftest import NewDesk

from ground.names import MAIN
from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.core.campaign.definition import parse
from orderkit.core.campaign.record import CampaignFigures, record_path
from orderkit.flows.campaign import starting
from orderkit.flows.live.forge_records import ForgeRecords, with_ledger
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.serve_platform import Running

APPROVED = [{"name": "canary", "count": 1}, {"share": 100, "approve": True}]


def test_a_campaign_is_counted_by_what_the_ledger_says_of_it(desk: NewDesk, site: Running) -> None:
    mine = desk(2)
    mine.start(waves=APPROVED)
    before = with_ledger(mine.platform, ForgeRecords(), {})
    assert before.campaigns[mine.name][1].orders == {("running", "open"): 2}

    assert mine.run().state == "paused"

    after = with_ledger(mine.platform, before, {})
    figures = after.campaigns[mine.name][1]
    assert figures.states == {"paused": 1}
    assert figures.waves == {("paused", "over"): 1, ("paused", "open"): 1}
    assert figures.orders == {("paused", "ready"): 1, ("paused", "open"): 1}
    assert after.campaign_figures == CampaignFigures.total(f for _, f in after.campaigns.values())
    state = after.campaign_figures.states["paused"]
    text = until(
        mine.platform.clock,
        lambda: metrics(site),
        lambda found: f'orderkit_campaigns{{state="paused"}} {state}' in found,
        timeout_s=60,
        goal="the service having read the ledger",
    )
    assert 'orderkit_campaign_waves{state="paused",progress="over"}' in text
    assert 'orderkit_campaign_orders{state="paused",outcome="ready"}' in text
    assert 'orderkit_campaigns{state="reverting"} 0' in text, "alerts need every state"


def metrics(site: Running) -> str:
    service = site.settings.service
    headers = {SECRET_HEADER: token(service)}
    return requests.get(f"{service.url}/metrics", headers=headers, timeout=30).text


def test_a_record_of_a_newer_release_or_with_other_words_hides_nothing(
    desk: NewDesk, platform: Platform
) -> None:
    mine = desk(1)
    mine.start()
    path, known = record_path(mine.name), ForgeRecords()
    record = json.loads(mine.record().to_text())
    (wave,) = record["spec"]["waves"]
    outcomes = {mine.orders[0]: {"result": 'ready"} 1\nforged 1'}}
    spec = {**record["spec"], "waves": [{**wave, "outcomes": outcomes}]}
    cases: list[tuple[dict[str, Any], dict[str, int], dict[tuple[str, str], int]]] = [
        ({"apiVersion": "orderkit.dev/v9"}, {"unreadable": 1}, {}),
        ({"spec": spec}, {"running": 1}, {("running", "other"): 1}),
        ({}, {"running": 1}, {("running", "open"): 1}),
    ]
    for number, (more, states, orders) in enumerate(cases):
        now = platform.forge.read(platform.ledger, path, MAIN)
        assert now is not None
        change = FileChange(path, json.dumps({**record, **more}).encode(), now.sha)
        operation = Operation(f"{mine.name}-{number}", EVE.ref, "another record")
        platform.forge.write(platform.ledger, [change], operation)

        known = with_ledger(platform, known, {})

        assert mine.orders[0] in (known.orders or {})
        figures = known.campaigns[mine.name][1]
        assert (figures.states, figures.orders) == (states, orders)


def test_a_campaign_without_a_record_was_not_started(desk: NewDesk) -> None:
    mine = desk(1)
    data = mine.file().read_bytes()
    starting.put(mine.platform, starting.CampaignText(parse(data, name=mine.name), data), EVE)

    found = with_ledger(mine.platform, ForgeRecords(), {}).campaigns[mine.name]

    assert found == (None, CampaignFigures.of(None))
    assert found[1].states == {"not started": 1}
