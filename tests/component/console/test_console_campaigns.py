"""The pages of campaigns: waves, counts and reasons, and nothing of other teams' orders."""

from __future__ import annotations

import yaml
from bays import Bay, new_bay
from consolebrowser import Browser
from tests.component.console.conftest import PLATFORM, Site

from orderkit.flows.campaign import starting
from orderkit.flows.campaign.running import run


def campaign(name: str, *orders: str) -> starting.CampaignText:
    document = {
        "apiVersion": "orderkit.dev/v1alpha1",
        "kind": "Campaign",
        "metadata": {"name": name},
        "spec": {
            "reason": "new <plates> for all",
            "what": {"fields": {"set": {"plate": "A 1"}}},
            "which": {"kit": "garage", "orders": [*orders]},
            "waves": [{"name": "canary", "count": 2}, {"name": "rest", "approve": True}],
            "stop": {"failed": 3},
        },
    }
    return starting.CampaignText.read(yaml.safe_dump(document).encode(), name=name)


def test_a_campaign_is_seen_with_its_waves_and_reasons(
    site: Site, bay: Bay, engineer: Browser, stranger: Browser
) -> None:
    platform, other = site.running.platform, new_bay(site.running.platform)
    starting.put(platform, campaign("plates", bay.order, other.order), PLATFORM)
    assert "not started" in engineer.get("/campaigns/plates").text
    starting.start(platform, "plates", PLATFORM)
    assert run(platform, "plates", PLATFORM, timeout_s=60).state in ("paused", "done", "stopped")

    listed = engineer.get("/campaigns").text
    assert "new &lt;plates&gt; for all" in listed
    assert 'href="/campaigns/plates"' in listed
    seen = engineer.get("/campaigns/plates").text
    assert "canary" in seen
    assert '<b class="number">2</b> failed' in seen
    assert f'href="/orders/{bay.order}"' in seen
    hidden = stranger.get("/campaigns/plates").text
    assert '<b class="number">2</b> failed' in hidden
    assert bay.order not in hidden
    assert engineer.get("/campaigns/plate").status == 404
    assert "did you mean &#39;plates&#39;" in engineer.get("/campaigns/plate").text
