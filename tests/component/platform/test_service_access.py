"""Who gets into the service, over HTTP: nobody without, with a wrong, or with another's token."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import jwt
import pytest
import requests
from cryptography.hazmat.primitives import serialization
from openid import AUDIENCE, Provider, providing
from platformsettings import settings_with
from signer import EVE, Key, Signer, signing

from orderkit.cli.connecting import SECRET_HEADER, connect, service_options, token
from orderkit.core.platform.service_access import (
    RIGHTS,
    AccessSettings,
    Client,
    OidcSettings,
    digest_of,
    write_clients,
)
from orderkit.flows.order.placing import TaskRequest, run_task
from orderkit.flows.team.teams import add_team
from orderkit.ports.requesters import Requester
from orderkit.web.auditing import AuditLog
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.serve_platform import Running

OURS, THEIRS = "ours", "theirs"
EXPIRED = date(2020, 1, 1)
TOKENS = {name: f"okt_{name}_0123456789" for name in ("ci", "reader", "old", "scraper", "all")}
CLIENTS = [
    Client("ci", digest_of(TOKENS["ci"]), "user:default/ci", (OURS,), RIGHTS),
    Client(
        "reader", digest_of(TOKENS["reader"]), "user:default/reader", (OURS,), frozenset({"read"})
    ),
    Client("old", digest_of(TOKENS["old"]), "user:default/old", (OURS,), RIGHTS, expires=EXPIRED),
    Client(
        "scraper",
        digest_of(TOKENS["scraper"]),
        "user:default/scraper",
        (),
        frozenset({"observe"}),
        platform=True,
    ),
    Client("all", digest_of(TOKENS["all"]), "user:default/all", (), RIGHTS, platform=True),
]


@dataclass(frozen=True)
class Site:
    """A service that accepts every kind of token, on the shared platform."""

    url: str
    secret: str
    signer: Signer
    provider: Provider
    audit: Path
    clients: Path

    def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: object = None
    ) -> tuple[int, Any]:
        with requests.Session() as session:
            session.trust_env = False
            url = f"{self.url}{path}"
            with session.request(
                method, url, headers=dict(headers), json=body, timeout=60
            ) as answer:
                kind = answer.headers.get("content-type", "")
                return answer.status_code, answer.json() if "json" in kind else answer.text


@pytest.fixture(scope="module")
def site(platform: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("access")
    clients, audit = folder / "clients.yaml", folder / "audit.jsonl"
    clients.write_text(write_clients(CLIENTS))
    for team in (OURS, THEIRS):
        add_team(platform.platform, team, requester="user:default/test")
        values = {"team_name": team, "stage": "stage1"}
        run_task(platform.platform, TaskRequest("garage", values, Requester("user:default/eve")))
    with signing() as signer, providing() as provider:
        signer.groups = [f"group:default/{OURS}"]
        oidc = OidcSettings(provider.issuer, AUDIENCE, algorithms=("RS256",))
        sock = bind("service", 0)
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        settings = settings_with(
            platform.settings,
            service__url=url,
            portal__signed_by=signer.url,
            service__access=AccessSettings(
                ("group:default/platform",), clients, requests_per_minute=100_000, oidc=oidc
            ),
        )
        app = service_app(connect(settings), service_options(settings, audit=AuditLog(audit)))
        server = HttpServer(app, sock)
        server.start()
        yield Site(url, token(settings.service), signer, provider, audit, clients)
        server.stop()


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def with_secret(site: Site, **more: str) -> dict[str, str]:
    return {SECRET_HEADER: site.secret, **more}


Headers = Callable[[Site], Mapping[str, str]]
LONG_AGO: dict[str, Any] = {"iat": 1_500_000_000, "exp": 1_500_003_600}


def _by_hash(site: Site) -> Mapping[str, str]:
    """Sign with what everybody can read, hoping that the algorithm is taken from the token."""
    public = site.provider.rsa.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    head = jwt.utils.base64url_encode(json.dumps({"alg": "HS256", "kid": "rsa"}).encode())
    text = head + b"." + site.provider.token(OURS).split(".")[1].encode()
    signature = jwt.utils.base64url_encode(hmac.digest(public, text, "sha256"))
    return bearer((text + b"." + signature).decode())


def _unsigned(site: Site) -> Mapping[str, str]:
    claims = jwt.decode(site.provider.token(OURS), options={"verify_signature": False})
    return bearer(jwt.encode(claims, "", algorithm="none", headers={"kid": "rsa"}))


def _shared(site: Site) -> Mapping[str, str]:
    found = site.provider.token(OURS, key="shared" * 8, algorithm="HS256", head={"kid": "shared"})
    return bearer(found)


@dataclass(frozen=True)
class Credential:
    """What proves nobody."""

    reason: str
    headers: Headers


WRONG = [
    Credential("nothing", lambda _: {}),
    Credential("a wrong secret", lambda _: {SECRET_HEADER: "0" * 40}),
    Credential("an empty secret", lambda _: {SECRET_HEADER: ""}),
    Credential("the secret's beginning", lambda s: {SECRET_HEADER: s.secret[:-1]}),
    Credential("a wrong secret beside a good token", lambda _: {SECRET_HEADER: "x"} | bearer("x")),
    Credential("the secret as a token", lambda s: bearer(s.secret)),
    Credential("a good secret beside a bad token", lambda s: with_secret(s, **bearer("no"))),
    Credential(
        "a good secret beside a token of a service account",
        lambda s: with_secret(s, **bearer(s.signer.plugin(obo=None))),
    ),
    Credential("basic authentication", lambda _: {"Authorization": "Basic ZXZlOmV2ZQ=="}),
    Credential("an empty token", lambda _: {"Authorization": "Bearer "}),
    Credential("a token without its scheme", lambda _: {"Authorization": TOKENS["ci"]}),
    Credential("a token in another header", lambda _: {"X-Api-Key": TOKENS["ci"]}),
    Credential("a token nobody has", lambda _: bearer("okt_nobody")),
    Credential("a token with one character more", lambda _: bearer(TOKENS["ci"] + "x")),
    Credential("a token's digest", lambda _: bearer(digest_of(TOKENS["ci"]))),
    Credential("an expired token of a client", lambda _: bearer(TOKENS["old"])),
    Credential("an expired task of the portal", lambda s: bearer(s.signer.plugin(**LONG_AGO))),
    Credential(
        "a task whose person has expired",
        lambda s: bearer(s.signer.plugin(obo=s.signer.limited(**LONG_AGO))),
    ),
    Credential("a token for another plugin", lambda s: bearer(s.signer.plugin(aud="catalog"))),
    Credential("a task signed by a stranger", lambda s: bearer(s.signer.plugin(Key("x")))),
    Credential("a task of nobody", lambda s: bearer(s.signer.plugin(obo=None))),
    Credential(
        "a person signed by the scaffolder",
        lambda s: bearer(s.signer.plugin(obo=s.signer.limited(s.signer.scaffolder))),
    ),
    Credential("a limited token by itself", lambda s: bearer(s.signer.limited())),
    Credential("a person's token for another system", lambda s: bearer(s.signer.user(aud="x"))),
    Credential("an expired person", lambda s: bearer(s.signer.user(**LONG_AGO))),
    Credential("a provider's expired token", lambda s: bearer(s.provider.token(OURS, **LONG_AGO))),
    Credential("one that never expires", lambda s: bearer(s.provider.token(OURS, exp=None))),
    Credential("one of tomorrow", lambda s: bearer(s.provider.token(OURS, nbf=4_000_000_000))),
    Credential("one of another issuer", lambda s: bearer(s.provider.token(OURS, iss="http://x"))),
    Credential("one of no issuer", lambda s: bearer(s.provider.token(OURS, iss=None))),
    Credential("one for another audience", lambda s: bearer(s.provider.token(OURS, aud="grafana"))),
    Credential("one for others", lambda s: bearer(s.provider.token(OURS, aud=["a", "b"]))),
    Credential("one for nobody", lambda s: bearer(s.provider.token(OURS, aud=None))),
    Credential(
        "one with a key nobody published",
        lambda s: bearer(s.provider.token(OURS, head={"kid": "other"})),
    ),
    Credential(
        "one of a stranger who uses a known id",
        lambda s: bearer(s.provider.token(OURS, key=s.provider.stranger)),
    ),
    Credential(
        "one by an algorithm that is not allowed",
        lambda s: bearer(
            s.provider.token(OURS, key=s.provider.elliptic, algorithm="ES256", head={"kid": "ec"})
        ),
    ),
    Credential("one signed by hash with the public key", _by_hash),
    Credential("one signed with a shared key that was published", _shared),
    Credential("one that is not signed", _unsigned),
    Credential(
        "one that names nobody", lambda s: bearer(s.provider.token(OURS, preferred_username=None))
    ),
    Credential(
        "one that names no catalog reference",
        lambda s: bearer(s.provider.token(OURS, preferred_username="eve\n\nX: y")),
    ),
    Credential(
        "one that says it is the portal's",
        lambda s: bearer(s.provider.token(OURS, head={"typ": "vnd.backstage.user"})),
    ),
]


def order(team: str) -> str:
    return f"garage-{team}"


def calls(team: str) -> list[tuple[str, str, object]]:
    """Return every call that needs a proof, for a team's order."""
    task = {"template": "garage", "values": {"team_name": team, "stage": "stage1"}}
    registration = {"order": order(team), "kit": "garage", "team": team}
    return [
        ("POST", "/v1/tasks", task),
        ("POST", "/v1/orders", registration),
        ("GET", "/v1/orders", None),
        ("GET", f"/v1/orders/{order(team)}", None),
        ("GET", f"/v1/orders/{order(team)}/trace", None),
        ("GET", f"/v1/orders/{order(team)}/history", None),
        ("GET", f"/v1/orders/{order(team)}/view", None),
        ("GET", f"/v1/teams/{team}", None),
        ("GET", f"/v1/teams/{team}/statement", None),
        ("POST", f"/v1/orders/{order(team)}/changes", {"values": {"stage": "stage1"}}),
        ("GET", "/metrics", None),
        ("POST", f"/v1/orders/{order(team)}/end", {"confirm": order(team)}),
        ("GET", f"/v1/orders/{order(team)}/end", None),
        ("GET", f"/v1/orders/{order(team)}/lease", None),
        ("POST", f"/v1/orders/{order(team)}/lease", {"by": "1h", "reason": "x"}),
        ("POST", f"/v1/orders/{order(team)}/outputs", {"names": ["password"]}),
    ]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.reason)
def test_what_proves_nobody_opens_nothing(case: Credential, site: Site) -> None:
    settings = ("POST", "/v1/kits/garage/settings", {"text": ""})
    open_to_teams = [("GET", path, None) for path in ("/v1/kits", "/v1/stream")]
    for method, path, body in [*calls(OURS), settings, *open_to_teams]:
        status, found = site.ask(method, path, case.headers(site), body)

        assert (status, set(found)) == (401, {"error"}), f"{method} {path}"
        assert OURS not in json.dumps(found)


def test_a_token_in_the_query_is_none(site: Site) -> None:
    status, _ = site.ask("GET", f"/v1/orders?access_token={TOKENS['ci']}", {})

    assert status == 401


GOOD = {
    "the portal's task": lambda s: with_secret(s, **bearer(s.signer.plugin())),
    "a person's own call": lambda s: bearer(s.signer.user(ent=[EVE, f"group:default/{OURS}"])),
    "a person whose groups the portal tells": lambda s: bearer(s.signer.user()),
    "a provider's token": lambda s: bearer(s.provider.token(OURS)),
    "a provider's token with a path as group": lambda s: bearer(s.provider.token(f"/{OURS}")),
    "a client": lambda _: bearer(TOKENS["ci"]),
}


@pytest.mark.parametrize("headers", GOOD.values(), ids=GOOD)
def test_a_team_sees_and_orders_its_own_and_nothing_else(headers: Headers, site: Site) -> None:
    found = headers(site)
    own = [site.ask(*call[:2], found, call[2]) for call in calls(OURS)[:10]]
    foreign = [site.ask(*call[:2], found, call[2]) for call in calls(THEIRS)]

    assert [status for status, _ in own] == [200] * 10, own
    assert [entry["order"] for entry in own[2][1]["orders"]] == [order(OURS)]
    listed = foreign.pop(2)
    assert [entry["order"] for entry in listed[1]["orders"]] == [order(OURS)]
    assert [status for status, _ in foreign] == [403] * 15, foreign


@pytest.mark.parametrize("headers", GOOD.values(), ids=GOOD)
def test_a_form_offers_a_team_its_own_name_and_no_other(headers: Headers, site: Site) -> None:
    status, found = site.ask("GET", "/v1/kits/garage/teams", headers(site))

    assert (status, found) == (200, {"kit": "garage", "teams": [OURS]})


@pytest.mark.parametrize("headers", GOOD.values(), ids=GOOD)
def test_an_order_that_is_not_there_looks_like_another_teams(headers: Headers, site: Site) -> None:
    there = site.ask("GET", f"/v1/orders/{order(THEIRS)}", headers(site))
    not_there = site.ask("GET", "/v1/orders/garage-nobody", headers(site))

    assert there[0] == not_there[0] == 403
    assert str(there[1]).replace(order(THEIRS), "X") == str(not_there[1]).replace(
        "garage-nobody", "X"
    )


@dataclass(frozen=True)
class Lacking:
    """A proof that is good, and not for this."""

    reason: str
    headers: Headers
    method: str
    path: str
    body: object = None


ORDER_OURS = {"order": order(OURS), "kit": "garage", "team": OURS}
LACKING = [
    Lacking(
        "a reader orders", lambda _: bearer(TOKENS["reader"]), "POST", "/v1/orders", ORDER_OURS
    ),
    Lacking(
        "a reader reveals a secret",
        lambda _: bearer(TOKENS["reader"]),
        "POST",
        f"/v1/orders/{order(OURS)}/outputs",
        {"names": ["password"]},
    ),
    Lacking(
        "a reader asks where to order",
        lambda _: bearer(TOKENS["reader"]),
        "GET",
        "/v1/kits/garage/teams",
    ),
    Lacking("a scraper reads kits", lambda _: bearer(TOKENS["scraper"]), "GET", "/v1/kits"),
    Lacking(
        "a scraper reads a team", lambda _: bearer(TOKENS["scraper"]), "GET", f"/v1/teams/{OURS}"
    ),
    Lacking("a scraper reads orders", lambda _: bearer(TOKENS["scraper"]), "GET", "/v1/orders"),
    Lacking("a team looks at all figures", lambda _: bearer(TOKENS["ci"]), "GET", "/metrics"),
    Lacking(
        "somebody without groups",
        lambda s: bearer(s.provider.token()),
        "GET",
        f"/v1/orders/{order(OURS)}",
    ),
    Lacking(
        "a group whose name only begins alike",
        lambda s: bearer(s.provider.token(f"{OURS}-x", f"{OURS}/x", OURS[:-1], OURS.upper())),
        "GET",
        f"/v1/orders/{order(OURS)}",
    ),
    Lacking(
        "a group of another namespace",
        lambda s: bearer(s.signer.user(ent=[f"group:other/{OURS}", f"user:default/{OURS}"])),
        "GET",
        f"/v1/orders/{order(OURS)}",
    ),
    Lacking(
        "a platform group of another namespace",
        lambda s: bearer(s.signer.user(ent=["group:other/platform"])),
        "GET",
        f"/v1/orders/{order(OURS)}",
    ),
    Lacking(
        "a team orders for another",
        lambda _: bearer(TOKENS["ci"]),
        "POST",
        "/v1/tasks",
        {"template": "garage", "values": {"team_name": THEIRS, "stage": "stage1"}},
    ),
]


@pytest.mark.parametrize("case", LACKING, ids=lambda case: case.reason)
def test_a_proof_is_good_for_what_it_says_and_no_more(case: Lacking, site: Site) -> None:
    status, found = site.ask(case.method, case.path, case.headers(site), case.body)

    assert status == 403, found
    assert found["error"]["hint"]


EVERYWHERE = {
    "the portal itself": with_secret,
    "a client of the platform team": lambda _: bearer(TOKENS["all"]),
    "a member of the platform team": lambda s: bearer(s.provider.token("platform")),
}


@pytest.mark.parametrize("headers", EVERYWHERE.values(), ids=EVERYWHERE)
def test_the_platform_team_sees_everything(headers: Headers, site: Site) -> None:
    status, found = site.ask("GET", "/v1/orders", headers(site))

    assert status == 200
    assert {order(OURS), order(THEIRS)} <= {entry["order"] for entry in found["orders"]}
    assert site.ask("GET", "/metrics", headers(site))[0] == 200
    assert site.ask("GET", "/v1/orders/garage-nobody", headers(site))[0] == 404


def test_a_view_offers_what_the_caller_may_change(site: Site) -> None:
    shown = site.ask("GET", f"/v1/orders/{order(OURS)}/view", bearer(TOKENS["reader"]))[1]
    own = site.ask("GET", f"/v1/orders/{order(OURS)}/view", bearer(TOKENS["ci"]))[1]

    assert [(c["name"], c["allowed"]) for c in own["changes"]] == [("stage", True)]
    (stage,) = shown["changes"]
    assert (stage["allowed"], stage["whyNot"]) == (
        False,
        "you lack the right 'change' for this team",
    )


def test_the_audit_log_names_revealed_outputs_and_no_value(site: Site) -> None:
    site.ask(
        "POST",
        f"/v1/orders/{order(OURS)}/outputs",
        bearer(TOKENS["ci"]),
        {"names": ["password"]},
    )

    line = json.loads(site.audit.read_text().splitlines()[-1])
    assert (line["operation"], line["caller"], line["outputs"]) == (
        "revealOutputs",
        "user:default/ci",
        "password",
    )


def test_a_removed_client_is_out_at_once(site: Site) -> None:
    def ask() -> int:
        return site.ask("GET", "/v1/orders", bearer(TOKENS["reader"]))[0]

    assert ask() == 200
    before = site.clients.read_text()
    try:
        site.clients.write_text(write_clients([c for c in CLIENTS if c.name != "reader"]))
        assert ask() == 401
        site.clients.write_text("clients: [")
        assert ask() == 503
    finally:
        site.clients.write_text(before)
    assert ask() == 200


def test_the_audit_log_says_who_did_what_and_holds_no_token(site: Site) -> None:
    site.ask("POST", "/v1/orders", bearer(TOKENS["ci"]), ORDER_OURS)
    site.ask("GET", f"/v1/orders/{order(THEIRS)}", bearer(TOKENS["ci"]))

    text = site.audit.read_text()
    done, refused = [json.loads(line) for line in text.splitlines()[-2:]]
    assert (done["caller"], done["via"]) == ("user:default/ci", "token of client ci")
    assert (done["operation"], done["order"], done["team"]) == ("registerOrder", order(OURS), OURS)
    assert (done["status"], refused["status"]) == (200, 403)
    assert refused["order"] == order(THEIRS)
    assert "may not act for" in refused["reason"]
    assert not [secret for secret in (*TOKENS.values(), site.secret) if secret in text]
    assert site.audit.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(("apart_s", "status"), [(25, 200), (40, 401)])
def test_a_token_counts_while_clocks_are_no_more_than_30_s_apart(
    site: Site, apart_s: int, status: int
) -> None:
    now_s = int(time.time())
    early: dict[str, Any] = {"iat": now_s + apart_s, "nbf": now_s + apart_s}
    late: dict[str, Any] = {"exp": now_s - apart_s}
    for times in (early, late):
        proof = bearer(site.provider.token(OURS, **times))
        assert site.ask("GET", "/v1/orders", proof)[0] == status, times


def test_what_is_open_needs_no_proof_and_tells_nothing(site: Site) -> None:
    assert site.ask("GET", "/healthz", {}) == (200, "ok\n")
    assert site.ask("GET", "/readyz", {})[1] == {
        "ready": True,
        "checks": {"forge": "ok", "cluster": "ok", "signers": "ok", "model": "ok"},
        "modelAgeSeconds": 0.0,
    }
    assert order(OURS) not in json.dumps(site.ask("GET", "/openapi.json", {})[1])
