"""What members of a team see of a campaign over the orders of many teams."""

from __future__ import annotations

from orderkit.core.campaign.definition import Campaign, FieldValues, What, Which
from orderkit.core.campaign.record import CampaignRecord, OrderOutcome, WaveRecord, view_of
from orderkit.web.view_handlers import shown_to


def test_orders_of_other_teams_are_counted_and_not_named() -> None:
    what = What(fields=FieldValues(set={"stage": "stage2"}))
    campaign = Campaign(name="mend", reason="because", what=what, which=Which(kit="garage"))
    outcomes = {
        "garage-ours": OrderOutcome("failed", "", "garage-ours: no"),
        "garage-theirs": OrderOutcome("failed", "", "garage-theirs: no"),
        "garage-secret": OrderOutcome("skipped", "", "it has ended"),
    }
    wave = WaveRecord("all", tuple(outcomes), "", outcomes)
    record = CampaignRecord(
        "mend", "mend-1", "sha", "stopped", "2026-11-28T03:00:00Z", (wave,), "garage-theirs: no"
    )
    view = shown_to(view_of(campaign, record), {"garage-ours"})
    text = str(view.to_json())
    assert "garage-theirs" not in text
    assert "garage-secret" not in text
    (shown,) = view.waves
    assert (shown.orders, dict(shown.counts)) == (3, {"failed": 2, "skipped": 1})
    assert [(r.why, r.orders) for r in shown.reasons] == [("<order>: no", ("garage-ours",))]
