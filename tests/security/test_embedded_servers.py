"""Attacks through a browser or with odd requests on the embedded servers and on the service."""

from __future__ import annotations

import json
import socket
import ssl
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from tests.security.conftest import EmbeddedServers

from orderkit.cli.connecting import load_settings
from orderkit.cli.serving.standalone import ServeRequest, host_names, serving
from orderkit_standins.cluster.http.exchange import DEPTH_MAX

TIMEOUT_S = 60
SERVERS = ("forge", "cluster", "portal", "service")
OPEN_PATHS = {
    "forge": "/api/v1/version",
    "cluster": "/version",
    "portal": "/.backstage/health/v1/readiness",
    "service": "/healthz",
}
TARGETS = {
    "forge": ("POST", "/api/v1/orgs"),
    "cluster": ("POST", "/api/v1/namespaces"),
    "portal": ("POST", "/api/catalog/locations"),
    "service": ("POST", "/v1/orders"),
}


def send(
    servers: EmbeddedServers, server: str, method: str, path: str, **how: object
) -> requests.Response:
    authority = servers.certificate_authority
    return requests.request(
        method,
        servers.urls[server] + path,
        verify=authority if server == "cluster" else None,
        timeout=TIMEOUT_S,
        **how,  # type: ignore[arg-type]  # keywords of requests
    )


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    "host",
    [
        "evil.example.org",
        "127.0.0.1.evil.example.org",
        "localhost.evil.example.org",
        "evil.example.org:80",
        "x.localhost",
        "0.0.0.0",  # noqa: S104  a Host header
        "[::ffff:127.0.0.1]",
        "2130706433",
        "[::1",
        "",
    ],
)
def test_a_name_that_was_made_to_lead_here_is_refused(
    embedded_servers: EmbeddedServers, server: str, host: str
) -> None:
    """DNS rebinding: for the browser, evil.example.org is then the origin of all answers."""
    answer = send(embedded_servers, server, "GET", OPEN_PATHS[server], headers={"Host": host})

    assert answer.status_code == 421
    assert "is not a name of this server" in answer.text


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_own_names_are_answered_on_any_port(
    embedded_servers: EmbeddedServers, server: str, host: str
) -> None:
    """On any port, because a tunnel or a proxy may listen on another one."""
    for address in (host, f"{host}:8080"):
        answer = send(
            embedded_servers, server, "GET", OPEN_PATHS[server], headers={"Host": address}
        )
        assert answer.status_code == 200, address


def test_the_service_alone_answers_to_configured_names(
    embedded_servers: EmbeddedServers, tmp_path: Path
) -> None:
    given = frozenset({"kit.example.org"})
    platform_file = embedded_servers.platform_file
    request = ServeRequest(platform_file, "127.0.0.1", 0, None, tmp_path / "audit", given)
    with serving(request) as url:
        for name, status in (("localhost", 200), ("kit.example.org", 200), ("evil.example", 421)):
            answer = requests.get(f"{url}/healthz", headers={"Host": name}, timeout=TIMEOUT_S)
            assert answer.status_code == status, name


def test_off_the_loopback_any_name_is_right_unless_some_are_given(
    embedded_servers: EmbeddedServers,
) -> None:
    """Nothing is gained by rebinding there, and probes name any address."""
    settings = load_settings(embedded_servers.platform_file)
    everywhere = ServeRequest(None, "0.0.0.0", 0, None, None)  # noqa: S104  nothing listens
    named = replace(everywhere, names=frozenset({"kit.example.org"}))

    assert host_names(everywhere, settings) is None
    assert "kit.example.org" in (host_names(named, settings) or ())


CROSS_ORIGIN = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1"},
    {"Origin": "https://evil.example.org"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "http://localhost"},
]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("headers", CROSS_ORIGIN, ids=str)
@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded"])
def test_a_page_of_another_site_writes_nothing(
    embedded_servers: EmbeddedServers, server: str, headers: dict[str, str], media: str
) -> None:
    """Such media types need no preflight, and a browser adds remembered credentials."""
    method, path = TARGETS[server]
    sent = {**headers, **embedded_servers.credentials[server], "Content-Type": media}
    body = json.dumps({"username": "by-a-page", "metadata": {"name": "by-a-page"}})

    answer = send(embedded_servers, server, method, path, headers=sent, data=body)

    assert (answer.status_code, answer.text) == (403, "a page of another site may not write here\n")


def test_an_own_page_and_a_program_may_write(embedded_servers: EmbeddedServers) -> None:
    url = embedded_servers.urls["forge"]
    token = embedded_servers.credentials["forge"]
    for number, headers in enumerate(
        [{}, {"Origin": url}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}]
    ):
        answer = send(
            embedded_servers,
            "forge",
            "POST",
            "/api/v1/orgs",
            headers={**token, **headers},
            json={"username": f"own{number}"},
        )
        assert answer.status_code == 201, headers


def test_an_answer_invites_no_other_site(embedded_servers: EmbeddedServers) -> None:
    origin = {"Origin": "https://evil.example.org", "Access-Control-Request-Method": "POST"}
    for server in SERVERS:
        for method in ("GET", "OPTIONS"):
            answer = send(embedded_servers, server, method, OPEN_PATHS[server], headers=origin)
            assert "Access-Control-Allow-Origin" not in answer.headers, server


# Odd requests


def raw(servers: EmbeddedServers, server: str, request: bytes) -> int:
    """Send bytes and return the status of the answer; 0 if the connection was closed."""
    parts = urlsplit(servers.urls[server])
    with socket.create_connection((parts.hostname, parts.port or 0), timeout=TIMEOUT_S) as plain:
        connection = plain
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=servers.certificate_authority)
            connection = context.wrap_socket(plain, server_hostname=parts.hostname)
        with connection:
            try:
                connection.sendall(request)
                answer = connection.recv(4096)
            except OSError:  # closed while we were sending
                return 0
    return int(answer.split()[1]) if answer else 0


@pytest.mark.parametrize("server", SERVERS)
def test_too_many_headers_and_doubled_hosts_are_refused(
    embedded_servers: EmbeddedServers, server: str
) -> None:
    path = OPEN_PATHS[server].encode()
    many = b"".join(b"X-%d: y\r\n" % number for number in range(100_000))
    line = b"GET " + path + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n"

    assert raw(embedded_servers, server, line + many + b"\r\n") in (0, 400, 431)
    assert raw(embedded_servers, server, line + b"Host: evil.example.org\r\n\r\n") in (400, 421)
    assert raw(embedded_servers, server, b"GET " + path + b" HTTP/1.0\r\n\r\n") == 421


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


NESTED = [40, 400, 5_000, 200_000]
JSON, YAML = "application/json", "application/apply-patch+yaml"
ALIAS_BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(9)
)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("levels", NESTED)
def test_nested_lists_are_refused_or_stored_but_break_nothing(
    embedded_servers: EmbeddedServers, server: str, levels: int
) -> None:
    method, path = TARGETS[server]
    name = f"nested-{levels}"
    body = f'{{"username": "{name}", "metadata": {{"name": "{name}"}}, "x": {nested(levels)}}}'

    answer = send(
        embedded_servers,
        server,
        method,
        path,
        data=body,
        headers={"Content-Type": JSON, **embedded_servers.credentials[server]},
    )

    assert answer.status_code < 500, answer.text


@pytest.fixture(scope="module")
def _open_kind(embedded_servers: EmbeddedServers) -> None:
    """A kind that holds anything, as many providers' CRDs do."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"kind": "Open", "plural": "opens", "singular": "open", "listKind": "OpenList"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "opens.attack.example.org"},
        "spec": {
            "group": "attack.example.org",
            "names": names,
            "scope": "Namespaced",
            "versions": [version],
        },
    }
    made = send(
        embedded_servers,
        "cluster",
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        json=crd,
        headers=embedded_servers.credentials["cluster"],
    )
    assert made.status_code == 201, made.text


@pytest.mark.usefixtures("_open_kind")
@pytest.mark.parametrize("levels", NESTED)
@pytest.mark.parametrize("media", [JSON, YAML])
def test_the_cluster_keeps_no_object_that_it_cannot_read_again(
    embedded_servers: EmbeddedServers, levels: int, media: str
) -> None:
    bearer = embedded_servers.credentials["cluster"]
    path = "/apis/attack.example.org/v1/namespaces/default/opens"
    body = (
        f'{{"apiVersion": "attack.example.org/v1", "kind": "Open", '
        f'"metadata": {{"name": "deep-{levels}"}}, "spec": {nested(levels)}}}'
    )
    method = "POST" if media == JSON else "PATCH"
    where = path if media == JSON else f"{path}/deep-{levels}?fieldManager=x"

    answer = send(
        embedded_servers,
        "cluster",
        method,
        where,
        data=body,
        headers={**bearer, "Content-Type": media},
    )

    assert answer.status_code in ((201, 409, 200) if levels < DEPTH_MAX else (400,)), answer.text
    listed = send(embedded_servers, "cluster", "GET", path, headers=bearer)
    assert listed.status_code == 200


def test_the_cluster_expands_no_aliases(embedded_servers: EmbeddedServers) -> None:
    body = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\ndata:\n" + "".join(
        f"  {line}\n" for line in ALIAS_BOMB.splitlines()
    )

    answer = send(
        embedded_servers,
        "cluster",
        "PATCH",
        "/api/v1/namespaces/default/configmaps/bomb?fieldManager=x",
        data=body,
        headers={
            **embedded_servers.credentials["cluster"],
            "Content-Type": YAML,
        },
    )

    assert answer.status_code == 400
    assert "YAML events" in answer.text


def test_the_cluster_reads_no_body_over_three_mebibytes(embedded_servers: EmbeddedServers) -> None:
    """The limit of a real API server."""
    answer = send(
        embedded_servers,
        "cluster",
        "POST",
        "/api/v1/namespaces",
        data=b" " * (3 * 1024 * 1024 + 1),
        headers={
            **embedded_servers.credentials["cluster"],
            "Content-Type": JSON,
        },
    )

    assert answer.status_code == 413


@pytest.mark.usefixtures("_open_kind")
def test_patches_do_not_nest_deeper_step_by_step(embedded_servers: EmbeddedServers) -> None:
    bearer = embedded_servers.credentials["cluster"]
    path = "/apis/attack.example.org/v1/namespaces/default/opens"
    body = {"metadata": {"name": "growing"}, "spec": {"a": {}}}
    assert (
        send(embedded_servers, "cluster", "POST", path, json=body, headers=bearer).status_code
        == 201
    )
    value: object = {}
    for _ in range(DEPTH_MAX // 2):
        value = {"a": value}

    codes = []
    for step in range(4):
        where = "/spec/a" + "/a" * (step * DEPTH_MAX // 2)
        answer = send(
            embedded_servers,
            "cluster",
            "PATCH",
            f"{path}/growing",
            data=json.dumps([{"op": "add", "path": where, "value": value}]),
            headers={**bearer, "Content-Type": "application/json-patch+json"},
        )
        codes.append(answer.status_code)

    assert codes == [200, 400, 422, 422]  # too deep; then a path that does not exist
