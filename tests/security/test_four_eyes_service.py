"""The service merges by the same rules as the command."""

from __future__ import annotations

import requests
from tests.security import test_four_eyes as four_eyes

from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit_standins.serve_platform import Running

people, review = four_eyes.people, four_eyes.review


def test_the_service_refuses_the_requesters_own_approval(
    platform: Running, review: four_eyes.Review
) -> None:
    service = platform.settings.service
    url = f"{service.url}/v1/orders/{review.bay.order}/pulls/{review.pull.number}/merge"
    headers = {SECRET_HEADER: token(service)}
    review.approve(review.eve)

    refused = requests.post(url, json={}, headers=headers, timeout=60)
    review.approve(review.carol)
    merged = requests.post(url, json={}, headers=headers, timeout=60)
    unknown = requests.post(
        url.replace("/pulls/", "/pulls/x"), json={}, headers=headers, timeout=60
    )

    assert refused.status_code == 403, refused.text
    assert f"{review.eve.login} is behind the change" in refused.text
    assert merged.status_code == 200, merged.text
    assert merged.json()["approvers"] == [review.carol.login]
    assert unknown.status_code in (400, 404, 422), unknown.text
