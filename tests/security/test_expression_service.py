"""Eight requests whose rules would take minutes leave the service to everyone else."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
import yaml
from changingpack import changing_pack

from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.flows.order import placing
from orderkit.ports.requesters import Requester
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

RULE = "self.split('').all(letter, self.replace(letter, 'x') != '')"
ATTACKS, OTHERS, TIMEOUT_S = 8, 20, 120


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A platform whose garage has a rule on a text of any length."""
    folder = tmp_path_factory.mktemp("costly")
    pack = folder / "pack"
    changing_pack(pack)
    path = pack / "gitops" / "apis" / "garage" / "definition.yaml"
    xrd = yaml.safe_load(path.read_text())
    spec = xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["motto"]["x-kubernetes-validations"] = [{"rule": RULE}]
    path.write_text(yaml.safe_dump(xrd, sort_keys=False))
    request = EmbeddedRunRequest(folder / "state", pack, Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as started:
        yield started


def ask(site: Running, method: str, path: str, body: object = None) -> requests.Response:
    service = site.settings.service
    headers = {SECRET_HEADER: token(service)}
    url = f"{service.url}{path}"
    return requests.request(method, url, json=body, headers=headers, timeout=TIMEOUT_S)


@pytest.fixture(scope="module")
def order(site: Running) -> str:
    values = {"team_name": "ae86", "stage": "stage1"}
    request = placing.TaskRequest("garage", values, Requester("user:default/eve"))
    return str(placing.order(site.platform, request).report.entry.order)


def plan(site: Running, order: str, motto: str) -> requests.Response:
    return ask(site, "POST", f"/v1/orders/{order}/plan", {"values": {"motto": motto}})


def test_eight_costly_requests_hold_up_no_other(site: Running, order: str) -> None:
    """One rule took 411 s, and eight requests held all threads for slow work."""
    assert plan(site, order, "drift").status_code == 200
    with ThreadPoolExecutor(ATTACKS) as attackers:
        attacks = [attackers.submit(plan, site, order, "a" * 9_000) for _ in range(ATTACKS)]
        others = [ask(site, "GET", "/v1/kits").status_code for _ in range(OTHERS)]
        answers = [attack.result() for attack in attacks]

    assert others == [200] * OTHERS
    assert [f"exceeds limit for rule: {RULE}" in answer.text for answer in answers] == [True] * 8
