"""A platform on the GitLab face: its deliveries reach the service, no others are believed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import requests
from bays import EVE, Bay, new_bay
from changingpack import changing_pack
from pullhand import Hand

from ground.errors import RefusedError
from ground.names import OrderId, RepoId
from ground.shapes import changed
from orderkit.adapters.forge_choice import connect_forge
from orderkit.adapters.forges.answers import ForgeResponse
from orderkit.adapters.forges.transport import Credentials, Query
from orderkit.adapters.gitlab import GitLabForge
from orderkit.adapters.gitlab.transport import GitLabTransport
from orderkit.cli.connecting import token
from orderkit.core.order.change import FieldEdit
from orderkit.core.platform.webhook_key import (
    MESSAGE_ID,
    PATH,
    SIGNATURE,
    TIMESTAMP,
    hook_key,
    standard_signature,
)
from orderkit.flows.change import ChangeRequest, change
from orderkit.flows.install.forge_check import check_forge
from orderkit.flows.order import placing
from orderkit.flows.platform import Platform
from orderkit.flows.repeating import until
from orderkit.ports.requesters import Requester
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Person, Running, running


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("gitlab-platform")
    request = EmbeddedRunRequest(
        folder / "state",
        changing_pack(folder / "pack"),
        Ports(0, 0, 0, 0),
        ("ae86", "rx7"),
        people=(Person("dan", "ae86"),),
        forge="gitlab",
    )
    with running(request, on_step=lambda *_: None) as started:
        yield started


@pytest.fixture(scope="module")
def bay(site: Running) -> Bay:
    assert site.platform.webhook is not None
    made = new_bay(site.platform)
    site.platform.forge.ensure_webhook(made.repo, site.platform.webhook)
    return made


def deliver(site: Running, payload: dict[str, Any], **headers: str) -> requests.Response:
    """Post a delivery, signed with the service's key now unless headers say otherwise."""
    data, stamp = json.dumps(payload).encode(), str(int(time.time()))
    key = hook_key(token(site.settings.service))
    sent = {
        "X-Gitlab-Event": "Merge Request Hook",
        "Content-Type": "application/json",
        MESSAGE_ID: "m1",
        TIMESTAMP: stamp,
        SIGNATURE: standard_signature(key, "m1", stamp, data),
        **headers,
    }
    return requests.post(f"{site.settings.service.url}{PATH}", data, headers=sent, timeout=90)


def merge_request(path: str, number: int = 1, action: str = "open") -> dict[str, Any]:
    attributes = {"iid": number, "action": action}
    return {"project": {"path_with_namespace": path}, "object_attributes": attributes}


def test_a_merge_request_is_planned_without_being_asked(site: Running, bay: Bay) -> None:
    hand = Hand(site.settings, bay)

    pull = hand.edits("stage1", "stage2")

    status = until(
        site.platform.clock,
        lambda: hand.status(pull.head_commit),
        lambda seen: seen is not None and seen.state != "pending",
        timeout_s=120,
        goal="the plan",
    )
    assert status is not None
    assert status.state == "success"
    assert pull.web_url.endswith(f"/orderkit/{bay.repo}/-/merge_requests/{pull.number}")
    assert requests.get(pull.web_url, timeout=30).status_code == 200


def test_a_signed_delivery_is_taken(site: Running, bay: Bay) -> None:
    answer = deliver(site, merge_request(f"orderkit/{bay.repo}"))

    assert (answer.status_code, answer.json()["repository"]) == (202, str(bay.repo))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("{repo}", "it is not in our group"),
        ("else/orderkit/{repo}", "our group's name below another group"),
        ("orderkit/../{repo}", "it leaves the group"),
    ],
)
def test_a_project_outside_of_the_group_is_none_of_ours(
    site: Running, bay: Bay, path: str, reason: str
) -> None:
    answer = deliver(site, merge_request(path.format(repo=bay.repo)))

    assert answer.status_code == 400, reason
    assert "is no repository of ours" in answer.text


def test_a_delivery_that_is_not_signed_is_refused(site: Running, bay: Bay) -> None:
    payload = merge_request(f"orderkit/{bay.repo}")
    old = str(int(time.time()) - 3600)

    answers = [
        deliver(site, payload, **{SIGNATURE: "v1,AAAA"}),
        deliver(site, payload, **{TIMESTAMP: old}),
        deliver(site, payload, **{SIGNATURE: "", "X-Gitlab-Token": "guessed"}),
    ]

    assert [answer.status_code for answer in answers] == [401] * 3
    assert all(SIGNATURE in answer.text for answer in answers)


class _Counted(GitLabTransport):
    """Notes what is written, without the service's statuses and comments."""

    written: ClassVar[list[str]] = []
    read: ClassVar[list[str]] = []

    def _try(
        self, credentials: Credentials, method: str, path: str, body: object, query: Query | None
    ) -> ForgeResponse:
        where = f"{method} {path.rpartition('%2F')[2].partition('/')[2] or path.split('/')[1]}"
        (self.read if method == "GET" else self.written).append(where)
        return super()._try(credentials, method, path, body, query)


def cost(site: Running, act: Callable[[Platform], object]) -> list[str]:
    """Return the writing requests of a client of its own."""
    connected = connect_forge(site.settings.forge, None, site.platform.signatures)
    assert isinstance(connected, GitLabForge)
    with connected as forge:
        forge._http.__class__ = _Counted  # noqa: SLF001  counts what is sent
        _Counted.written.clear()
        act(replace(site.platform, forge=forge))
    return list(_Counted.written)


def test_a_new_order_has_a_webhook_where_its_group_has_none(site: Running) -> None:
    """As in GitLab Free, where groups have no webhooks; the face has them, so it is removed."""
    forge, webhook = site.platform.forge, site.platform.webhook
    assert isinstance(forge, GitLabForge)
    assert webhook is not None
    path = "/groups/orderkit%2Frx7/hooks"
    for hook in forge._http.get(path).json():  # noqa: SLF001  past the port
        forge._http.send("DELETE", f"{path}/{hook['id']}")  # noqa: SLF001
    values = {"team_name": "rx7", "stage": "stage2"}
    request = placing.TaskRequest("garage", values, Requester("user:default/eve"))

    done = placing.order(site.platform, request, wait_s=90)

    assert forge.has_webhook(RepoId("rx7", done.order), webhook)
    forge.ensure_webhook("rx7", webhook)


def test_what_an_order_and_a_change_write(site: Running) -> None:
    values = {"team_name": "ae86", "stage": "stage1"}
    request = placing.TaskRequest("garage", values, Requester("user:default/eve"))

    ordered = cost(site, lambda p: placing.order(p, request, wait_s=90))
    edit = FieldEdit("budget", "set", 5)
    wanted = ChangeRequest(order=OrderId("garage-ae86"), edits=(edit,), requester=EVE)
    changed = cost(site, lambda p: change(p, wanted))

    pushed = "POST orderkit/platform/ledger.git/git-receive-pack"  # what is to be delivered
    assert ordered == [
        "POST projects",
        "POST repository/commits",
        "POST protected_branches",
        "PUT projects",  # what a merge waits for
        "PUT projects",  # no squashing
        "POST repository/commits",
    ]
    assert changed == ["POST repository/commits", pushed]


def test_a_state_folder_keeps_its_dialect(site: Running, tmp_path: Path) -> None:
    pack = changing_pack(tmp_path / "pack")
    state = site.embedded.state.folder
    request = EmbeddedRunRequest(state, pack, Ports(0, 0, 0, 0), (), forge="gitea")

    with (
        pytest.raises(RefusedError, match="speaks as gitlab, not gitea"),
        running(request, on_step=lambda *_: None),
    ):
        raise AssertionError("it starts")


def test_what_the_live_check_tries_holds_on_the_face(site: Running) -> None:
    platform = site.platform

    results = check_forge(platform.forge, "ae86", platform.clock, on_case=lambda _: None)

    assert [result.problem for result in results] == [""] * len(results)
    assert len(results) > 8


def test_a_person_of_the_platform_signs_in_with_what_its_file_has(site: Running) -> None:
    """GitLab's API takes no passwords, so the file holds a token too."""
    file = site.embedded.state.folder / "credentials" / "user-dan"
    settings = changed(site.settings.forge, credentials="file", token_file=file)

    assert connect_forge(settings, None).user() == "dan"
