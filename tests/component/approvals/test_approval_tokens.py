"""``POST /v1/orders/{order}/approval``: what proves somebody who agrees, and what does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from approvaldesk import Desk
from attackedservice import AttackedService, attacked_service
from openid import AUDIENCE, Provider, providing
from tests.component.approvals.test_approval_ways import await_phase

from orderkit.adapters.tokens.access_tokens import new_token
from orderkit.cli.connecting import SECRET_HEADER
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.platform.service_access import (
    RIGHTS,
    AccessSettings,
    Client,
    OidcSettings,
    digest_of,
    read_clients,
    write_clients,
)
from orderkit.flows.platform import read_text
from orderkit_standins.serve_platform import Running

APPROVE = {"decision": "approve"}


@dataclass(frozen=True)
class Door:
    """The service, which accepts tokens of a provider."""

    service: AttackedService
    provider: Provider

    def decide(self, entry: OrderEntry, token: str, **body: Any) -> Any:
        path = f"/v1/orders/{entry.order}/approval"
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = self.service.send(
            "POST", path, headers=headers, json={"decision": "approve", **body}
        )
        return answer.status_code, answer.json()

    def program(self, login: str, *rights: str) -> str:
        """Issue a token to a program that calls itself by this login."""
        path = self.service.audit.with_name("clients.yaml")
        client = Client(
            f"bot-{len(read_clients(path.read_text(), name='clients'))}",
            digest_of(token := new_token()),
            f"user:default/{login}",
            (),
            frozenset(right for right in RIGHTS if right in rights),
            platform=True,
        )
        path.write_text(write_clients([*read_clients(path.read_text(), name="clients"), client]))
        return token

    def token(self, login: str, *groups: str, **claims: Any) -> str:
        return self.provider.token(*groups, preferred_username=login, **claims)


@pytest.fixture(scope="module")
def door(site: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with providing() as provider:
        oidc = OidcSettings(provider.issuer, AUDIENCE, algorithms=("RS256",))
        folder = tmp_path_factory.mktemp("tokens")
        access = AccessSettings(
            tokens_file=folder / "clients.yaml", requests_per_minute=100_000, oidc=oidc
        )
        (folder / "clients.yaml").write_text(write_clients(()))
        with attacked_service(site, folder, access) as service:
            yield Door(service, provider)


def test_a_person_whom_a_token_proves_agrees_and_it_becomes_ready(desk: Desk, door: Door) -> None:
    entry = desk.order().entry

    status, answer = door.decide(entry, door.token(desk.frank.login))

    assert (status, answer["state"], answer["missing"]) == (200, "delivered", None), answer
    await_phase(desk, entry, "Ready")
    line = door.service.audit_lines()[-1]
    assert line["caller"] == f"user:default/{desk.frank.login}"
    assert (line["decision"], line["state"]) == ("approve", "delivered")


def test_a_program_agrees_only_with_a_right_that_none_has_by_default(
    desk: Desk, door: Door
) -> None:
    entry = desk.order().entry
    usual = door.program(desk.frank.login, *(RIGHTS - {"approve"}))

    status, answer = door.decide(entry, usual)

    assert status == 403, answer
    assert "lacks the right 'approve'" in str(answer)
    assert door.decide(entry, usual, decision="decline")[0] == 403
    assert desk.phase(entry) == "Waiting"
    status, answer = door.decide(entry, door.program(desk.frank.login, "approve"))
    assert (status, answer["state"]) == (200, "delivered"), answer
    line = door.service.audit_lines()[-1]
    assert line["via"].startswith("token of client bot-"), line
    agreed = read_text(desk.platform.forge, desk.platform.ledger, entry.approvals_path, "main")
    assert agreed is not None
    assert "token of client bot-" in agreed


def test_a_person_whom_a_token_proves_declines(desk: Desk, door: Door) -> None:
    entry = desk.order().entry

    status, answer = door.decide(
        entry, door.token(desk.frank.login), decision="decline", reason="too expensive"
    )

    assert (status, answer["state"]) == (200, "withdrawn"), answer
    assert desk.phase(entry) == "Ended"


def test_the_list_says_what_waits_for_the_person_of_the_token_and_why_not(
    desk: Desk, door: Door
) -> None:
    entry = desk.order().entry

    def listed(login: str) -> tuple[bool, str]:
        headers = {"Authorization": f"Bearer {door.token(login, str(desk.team))}"}
        answer = door.service.send("GET", "/v1/approvals", headers=headers)
        (found,) = [a for a in answer.json()["approvals"] if a["order"] == entry.order]
        return found["yours"], found.get("reason", "")

    eve, carol = desk.eve.login, desk.carol.login
    assert listed(desk.frank.login) == (True, "")
    assert listed(eve) == (False, f"{eve} is not an approver of {entry.order}")
    assert listed(carol) == (False, f"{carol} is not an approver of {entry.order}")
    assert listed("nobody-here") == (
        False,
        "user:default/nobody-here is not a user of the forge, whose groups decide who may approve",
    )


@pytest.mark.parametrize(
    ("way", "status", "message"),
    [
        ("nothing", 401, "has neither"),
        ("the portal's secret", 401, "nothing proves who approves"),
        ("the secret and a claim", 400, "requester"),
        ("a token of another provider", 401, ""),
        ("an expired token", 401, ""),
        ("the requester", 403, "is behind"),
        ("a member of the team", 403, "is not an approver of"),
        ("somebody whose token claims the group", 403, "is not an approver of"),
        ("nobody on the forge", 403, "is not a user of the forge"),
        ("a page of an earlier head", 409, "what is proposed changed"),
    ],
)
def test_others_are_refused_and_it_waits_on(
    way: str, status: int, message: str, desk: Desk, door: Door
) -> None:
    by = desk.frank if way == "the requester" else desk.eve
    entry, team = desk.order(by=by).entry, str(desk.team)
    body: dict[str, Any] = {"head": "0" * 40} if "earlier" in way else {}
    login = desk.carol.login if "team" in way or "claims" in way else desk.frank.login
    claims: dict[str, dict[str, Any]] = {
        "a token of another provider": {"iss": "https://idp.example"},
        "an expired token": {"iat": 1_500_000_000, "exp": 1_500_003_600},
        "somebody whose token claims the group": {"groups": [team, "finance"]},
        "nobody on the forge": {"preferred_username": "nobody-there"},
    }
    if "secret" in way:
        claim = {"requester": f"user:default/{desk.frank.login}"} if "claim" in way else {}
        answer = door.service.as_portal(
            "POST", f"/v1/orders/{entry.order}/approval", json={**APPROVE, **claim}
        )
        code, text = answer.status_code, answer.text
    else:
        own = {"preferred_username": login, **claims.get(way, {})}
        token = "" if way == "nothing" else door.provider.token(team, **own)
        code, found = door.decide(entry, token, **body)
        text = str(found)

    assert code == status, text
    assert message in text
    assert desk.phase(entry) == "Waiting"


def test_the_secret_beside_a_token_makes_nobody_else_of_its_person(desk: Desk, door: Door) -> None:
    """A portal forwards its users' tokens: whose token it is counts, not who forwards it."""
    entry = desk.order().entry
    headers = {
        SECRET_HEADER: door.service.secret,
        "Authorization": f"Bearer {door.token(desk.carol.login, str(desk.team))}",
    }

    answer = door.service.send(
        "POST", f"/v1/orders/{entry.order}/approval", headers=headers, json=APPROVE
    )

    assert answer.status_code == 403, answer.text
    assert "is not an approver of" in answer.text
    assert desk.phase(entry) == "Waiting"
