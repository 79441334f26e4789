"""The port `orderkit.ports.portal.Portal`: what a service receives, and what comes back."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping

import pytest
from lab.loopback import free_ports
from portalsides import Side
from recordingservice import Answer, RecordedRequest

from ground.errors import InvalidInputError, RemoteError, UnreachableError
from orderkit.adapters.backstage import BackstagePortal
from orderkit.adapters.backstage.backstage_client import ANSWER_MAX_BYTES
from orderkit.cli.connecting import SECRET_HEADER
from orderkit.ports.portal import PortalResponse

ENDPOINT = "/proxy/orderkit"
JSON = {"Content-Type": "application/json"}


def send(
    side: Side,
    method: str = "GET",
    below: str = "/v1/x",
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout_s: float = 60.0,
) -> PortalResponse:
    """Send one request to the service, through the portal's proxy."""
    return side.portal.request(
        method, ENDPOINT + below, headers=headers or {}, body=body, timeout_s=timeout_s
    )


def received(side: Side) -> RecordedRequest:
    """Return the last request that came to the service."""
    return side.service.requests[-1]


def answering(side: Side, answer: Answer) -> str:
    """Let the service answer so on a path of its own; return the path."""
    path = f"/v1/{secrets.token_hex(6)}"
    side.service.answers[path] = answer
    return path


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_the_method_arrives(side: Side, method: str) -> None:
    assert send(side, method).code == 200

    assert received(side).method == method


@pytest.mark.parametrize(
    ("below", "arrived"),
    [
        ("/v1/orders", "/v1/orders"),
        ("/v1/orders?team=ae86&stage=2", "/v1/orders?team=ae86&stage=2"),
        ("/v1/a%20b/c%2Fd", "/v1/a%20b/c%2Fd"),
        ("/v1/orders?at=a%2Fb%3Fc&empty=", "/v1/orders?at=a%2Fb%3Fc&empty="),
        ("/v1/gr%C3%BC%C3%9Fe", "/v1/gr%C3%BC%C3%9Fe"),
        ("/", "/"),
        ("", "/"),
        ("?x=1", "/?x=1"),
    ],
)
def test_the_path_below_the_endpoint_arrives(side: Side, below: str, arrived: str) -> None:
    send(side, below=below)

    assert received(side).path == arrived


@pytest.mark.parametrize(
    "body",
    [b'{"order": "garage-ae86"}', "grüße".encode(), bytes(range(256)), b"x" * 1_000_000],
    ids=["json", "text", "binary", "megabyte"],
)
def test_the_body_arrives_byte_for_byte(side: Side, body: bytes) -> None:
    send(side, "POST", headers={"Content-Type": "application/octet-stream"}, body=body)

    assert received(side).body == body


def test_no_body_is_no_body(side: Side) -> None:
    send(side, "POST")

    assert received(side).body == b""


def test_the_headers_that_the_service_needs_arrive(side: Side) -> None:
    authorization = f"Bearer {side.token}"
    send(
        side,
        "POST",
        headers={**JSON, "Idempotency-Key": "task-1", "Authorization": authorization},
        body=b"{}",
    )

    headers = received(side).headers
    assert headers["content-type"] == "application/json"
    assert headers["idempotency-key"] == "task-1"
    assert headers["authorization"] == authorization


def test_other_headers_of_a_step_are_dropped(side: Side) -> None:
    send(side, headers={"X-Anything": "1", "Cookie": "a=b", "Accept-Language": "de"})

    headers = received(side).headers
    assert "x-anything" not in headers
    assert "cookie" not in headers
    assert headers["accept-language"] == "de"


def test_the_proxy_adds_its_secret(side: Side) -> None:
    send(side)

    assert received(side).headers[SECRET_HEADER.lower()] == side.secret


@pytest.mark.parametrize("name", [SECRET_HEADER, SECRET_HEADER.lower()])
def test_a_step_cannot_set_the_secret(side: Side, name: str) -> None:
    send(side, headers={name: "of-the-step"})

    assert received(side).headers[SECRET_HEADER.lower()] == side.secret


@pytest.mark.parametrize("status", [200, 201, 202, 400, 401, 403, 404, 409, 422, 500, 502, 503])
def test_every_status_is_an_answer(side: Side, status: int) -> None:
    body = json.dumps({"error": {"message": "because"}}).encode()
    path = answering(side, Answer(status, body))

    response = send(side, "POST", path, headers=JSON, body=b"{}")

    assert (response.code, response.body) == (status, body)
    assert response.headers["content-type"] == "application/json"


def test_an_answer_may_have_no_body(side: Side) -> None:
    response = send(side, "DELETE", answering(side, Answer(204, b"", {})))

    assert (response.code, response.body) == (204, b"")


def test_an_answer_may_be_binary(side: Side) -> None:
    body = bytes(range(256))
    headers = {"Content-Type": "application/octet-stream"}

    assert send(side, below=answering(side, Answer(200, body, headers))).body == body


def test_header_names_are_lower_case_and_unusual_headers_dropped(side: Side) -> None:
    headers = {"Content-Type": "text/plain", "Cache-Control": "no-store", "X-Anything": "1"}

    response = send(side, below=answering(side, Answer(200, b"text", headers)))

    assert response.headers["content-type"] == "text/plain"
    assert response.headers["cache-control"] == "no-store"
    assert "x-anything" not in response.headers
    assert all(name == name.lower() for name in response.headers)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(side: Side, status: int) -> None:
    path = answering(side, Answer(status, b"", {"Location": f"{side.service.url}/v1/elsewhere"}))
    before = len(side.service.requests)

    response = send(side, below=path)

    assert response.code == status
    assert "location" not in response.headers
    assert [request.path for request in side.service.requests[before:]] == [path]


def test_an_answer_at_the_limit_is_read(side: Side) -> None:
    body = b"x" * ANSWER_MAX_BYTES
    path = answering(side, Answer(200, body, {"Content-Type": "text/plain"}))

    assert send(side, below=path).body == body


def test_an_answer_over_the_limit_is_refused(side: Side) -> None:
    body = b"x" * (ANSWER_MAX_BYTES + 1)
    path = answering(side, Answer(200, body, {"Content-Type": "text/plain"}))

    with pytest.raises(RemoteError, match="larger than"):
        send(side, below=path)


def test_a_service_that_takes_too_long_is_unreachable(side: Side) -> None:
    with pytest.raises(UnreachableError, match=r"did not answer within 0\.5 s"):
        send(side, below="/slow", timeout_s=0.5)


def test_a_service_that_hangs_up_gives_no_answer_of_its_own(side: Side) -> None:
    """The one difference: a portal answers for the service, and past it nobody does."""
    if side.real:
        assert send(side, below="/hangup").code == 504
    else:
        with pytest.raises(UnreachableError, match="no server answers"):
            send(side, below="/hangup")


@pytest.mark.parametrize(
    "path", ["/proxy/nobody/v1", "/proxy", "/proxy/", "/proxy/orderkit-2/v1", "/proxy//v1"]
)
def test_an_endpoint_that_is_not_configured_is_refused(side: Side, path: str) -> None:
    with pytest.raises(InvalidInputError, match="not configured"):
        side.portal.request("GET", path, headers={}, body=None)


@pytest.mark.parametrize(
    "path",
    [
        "/proxy/orderkit/../x",
        "/proxy/orderkit/./x",
        "/proxy/orderkit/%2e%2E/x",
        "/a/../proxy",
        "\\",
    ],
)
def test_a_path_that_climbs_is_refused(side: Side, path: str) -> None:
    before = len(side.service.requests)

    with pytest.raises(InvalidInputError, match="leaves its endpoint"):
        side.portal.request("GET", path, headers={}, body=None)
    assert len(side.service.requests) == before


@pytest.mark.parametrize("path", ["/catalog/locations", "catalog/locations"])
def test_any_other_path_is_the_portal_s_api(side: Side, path: str) -> None:
    response = side.portal.request("GET", path, headers={}, body=None)

    assert response.code == 200
    assert isinstance(json.loads(response.body), list)


def test_a_query_reaches_the_portal_s_api(side: Side) -> None:
    path = "/catalog/entities/by-query?limit=1&filter=kind%3Dnobody"
    response = side.portal.request("GET", path, headers={}, body=None)

    assert response.code == 200
    assert json.loads(response.body)["items"] == []


def test_a_step_s_own_credentials_win(side: Side) -> None:
    headers = {"Authorization": "Bearer wrong"}
    response = side.portal.request("GET", "/catalog/locations", headers=headers, body=None)

    assert response.code == 401


def test_an_unknown_path_of_the_portal_is_an_answer(side: Side) -> None:
    path = "/catalog/entities/by-name/component/default/nobody-has-this-name"
    response = side.portal.request("GET", path, headers={}, body=None)

    assert response.code == 404
    assert json.loads(response.body)["error"]["name"] == "NotFoundError"


def test_nobody_there_is_unreachable(side: Side) -> None:
    (port,) = free_ports(1)
    portal = BackstagePortal(f"http://127.0.0.1:{port}", token=side.token, proxies={})

    with pytest.raises(UnreachableError, match="no server answers"):
        portal.request("GET", "/catalog/locations", headers={}, body=None)


@pytest.mark.parametrize("token", ["canary\n", "canary\r\nX-More: 1", "canary\u2603"])
def test_a_token_that_is_no_header_is_refused_without_showing_it(token: str) -> None:
    portal = BackstagePortal("http://127.0.0.1:1", token=token, proxies={})

    with pytest.raises(InvalidInputError, match="no header may have") as caught:
        portal.request("GET", "/catalog/locations", headers={}, body=None)

    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
