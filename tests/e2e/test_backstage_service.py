"""
The stage kit ordered by a real task of Backstage's scaffolder, in the portal's default profile.

One request through its proxy, with its own token, and Orderkit's service runs the natural steps:
what comes of it is what Backstage's own actions make, and a second run is not a failure.
"""

from __future__ import annotations

import json
import time
from pathlib import PurePosixPath
from typing import Any

import requests
from commands import Command
from lab.realbackstage import GUEST, Backstage
from ordered import TEMPLATE, Ordered
from published import Up, read_kit, wanted_repository
from scaffolderapi import Scaffolder

from ground.names import RepoId
from orderkit.flows.order import placing
from orderkit.flows.order.placing import TaskRequest
from orderkit.ports.requesters import Requester

READY_S = 180.0


def _heads(up: Up, order: Ordered) -> list[str | None]:
    repos = (order.repository, up.platform.ledger)
    return [up.platform.forge.head(repo) for repo in repos]


def test_the_task_completes_with_one_request_and_the_catalog(ordered: Ordered) -> None:
    assert ordered.task.status == "completed", ordered.task.log
    assert "Place the order" in ordered.task.log
    assert "publish:gitea" not in ordered.task.log


def test_its_repository_holds_what_the_natural_steps_write(ordered: Ordered, up: Up) -> None:
    forge = up.platform.forge
    head = forge.head(ordered.repository)
    assert head is not None
    expected = wanted_repository(up, ordered.kit, requester=GUEST).files

    found = {path: forge.read(ordered.repository, path, head) for path in expected}

    assert set(forge.tree(ordered.repository, head)) == set(expected)
    assert {path: file.data if file else None for path, file in found.items()} == dict(expected)


def test_its_links_and_texts_are_those_of_the_natural_steps(ordered: Ordered, up: Up) -> None:
    wanted = TaskRequest("garage", {"team_name": ordered.team, "stage": "stage2"}, Requester(GUEST))

    natural = placing.order(up.platform, wanted)

    assert not natural.created
    assert dict(ordered.task.output) == dict(natural.outputs)
    assert len(ordered.task.output["links"]) == 2


def test_it_is_registered_and_becomes_ready(ordered: Ordered, up: Up, orderkit: Command) -> None:
    path = PurePosixPath("apps", ordered.team, f"{ordered.name}.yaml")
    assert up.platform.forge.read(up.platform.ledger, path, "main") is not None
    end = time.monotonic() + READY_S
    while True:
        done = orderkit("status", ordered.name, "--json")
        if done.code == 0 and done.json["ready"]:
            break
        assert time.monotonic() < end, f"not Ready: {done.out} {done.err}"


def test_backstages_own_catalog_shows_it(ordered: Ordered, scaffolder: Scaffolder) -> None:
    end = time.monotonic() + READY_S
    while (answer := scaffolder.entity(f"component/default/{ordered.name}")).status != 200:
        assert time.monotonic() < end, answer.body
        time.sleep(0.2)
    assert answer.body["spec"]["owner"] == f"group:default/{ordered.team}"


def test_who_ordered_is_proved_by_backstages_signature(
    ordered: Ordered, up: Up, backstage: Backstage
) -> None:
    for repo in (ordered.repository, up.platform.ledger):
        messages = [commit.message for commit in up.platform.forge.commits(repo)]
        ours = next(text for text in messages if ordered.name in text)
        assert f"Orderkit-Requester: {GUEST}\n" in ours
        assert f"Orderkit-Requester-Proof: signed by {backstage.url}" in ours


def test_the_same_order_again_succeeds_and_changes_nothing(
    ordered: Ordered, up: Up, scaffolder: Scaffolder
) -> None:
    before = _heads(up, ordered)

    again = scaffolder.run(TEMPLATE, ordered.kit.values)

    assert again.status == "completed", again.log
    assert again.output == ordered.task.output
    assert _heads(up, ordered) == before


def test_other_values_for_it_fail_with_the_reason_in_the_log(
    ordered: Ordered, up: Up, scaffolder: Scaffolder
) -> None:
    before = _heads(up, ordered)

    other = scaffolder.run(TEMPLATE, {**ordered.kit.values, "stage": "stage3"})

    assert other.status == "failed"
    assert "Status code: 409" in other.log
    assert f"{ordered.name} was ordered by {GUEST} with other values" in other.log
    assert "stage was 'stage2', asked for 'stage3'" in other.log
    assert _heads(up, ordered) == before


def test_a_failed_task_started_again_succeeds_once_the_reason_is_gone(
    up: Up, scaffolder: Scaffolder, orderkit: Command
) -> None:
    """A team that may not order leaves nothing behind; then it may."""
    team = "late-crew"
    kit = read_kit(up, "garage", {"team_name": team, "stage": "stage1"})

    failed = scaffolder.run(TEMPLATE, kit.values)

    assert failed.status == "failed"
    assert "Status code: 404" in failed.log
    assert f"orderkit team add {team}" in failed.log
    assert up.platform.forge.repo(RepoId(team, f"garage-{team}")) is None

    assert orderkit("team", "add", team).code == 0
    again = scaffolder.retry(failed.id)
    assert again.status == "completed", again.log
    assert up.platform.forge.head(RepoId(team, f"garage-{team}")) is not None


def test_the_form_is_the_natural_one(ordered: Ordered, scaffolder: Scaffolder) -> None:
    """The pages the browser gets and the verdicts of the backend."""
    natural = ordered.kit.entity["spec"]["parameters"]
    pages = scaffolder.form(TEMPLATE)
    assert [page["properties"] for page in pages] == [page["properties"] for page in natural]

    for field, value in (("team_name", "No Good"), ("stage", "stage9"), ("pack_commit", "x")):
        assert scaffolder.start(TEMPLATE, {**ordered.kit.values, field: value}).status == 400


def test_a_dry_run_of_the_copy_calls_nothing(
    ordered: Ordered, up: Up, scaffolder: Scaffolder
) -> None:
    entity = scaffolder.entity(f"template/default/{TEMPLATE}").body
    before = _heads(up, ordered)

    done = scaffolder.dry_run(entity, ordered.kit.values, {})

    assert "Skipping non dry-run safe method 'POST' request to /proxy/orderkit/v1/tasks" in done.log
    assert _heads(up, ordered) == before


def _through_the_proxy(backstage: Backstage, token: str, body: object) -> Any:
    with requests.Session() as session:
        session.trust_env = False
        url = f"{backstage.url}/api/proxy/orderkit/v1/tasks"
        headers = {"Authorization": f"Bearer {token}"}
        with session.post(url, json=body, headers=headers, timeout=60) as answer:
            return answer.status_code, answer.json()


def test_a_persons_own_call_through_the_proxy_is_proved_as_theirs(
    ordered: Ordered, backstage: Backstage
) -> None:
    """What a body claims is nothing beside what the token says."""
    with requests.Session() as session:
        session.trust_env = False
        answer = session.post(f"{backstage.url}/api/auth/guest/refresh", timeout=60)
        guest = answer.json()["backstageIdentity"]["token"]
    body = {
        "template": "garage",
        "values": {"team_name": ordered.team, "stage": "stage2"},
        "requester": "user:default/boss",
    }

    status, found = _through_the_proxy(backstage, guest, body)

    assert (status, found["requester"]) == (200, GUEST)
    assert found["requesterProof"] == f"signed by {backstage.url}"


def test_a_service_token_of_the_portal_orders_for_nobody(
    ordered: Ordered, up: Up, backstage: Backstage
) -> None:
    static = up.state.joinpath("credentials", "portal-token").read_text().strip()
    body = {"template": "garage", "values": {"team_name": ordered.team, "stage": "stage2"}}

    status, found = _through_the_proxy(backstage, static, body)

    assert status == 401
    assert "the requester is not proved" in json.dumps(found)
