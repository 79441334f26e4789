"""``orderkit doctor`` explains what is wrong with the forge, each case over real HTTP."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath

import pytest
import requests
from answering import Answering, own_certificate, says, server
from commands import Command
from faultproxy import Decision, Falsehood, Fault, Listed, Plan, is_contents, open_proxy
from forgehands import client_at

from ground.errors import NotFoundError
from ground.names import RepoId
from ground.objects.kube_objects import Kind, ObjectKey
from ground.shapes import changed
from orderkit.adapters.forges import credentials
from orderkit.cli.connecting import token
from orderkit.core.platform.settings import ForgeSettings
from orderkit.flows.install.forge_check import PREFIX, check_forge
from orderkit.ports.forge import FileChange, Operation
from orderkit.web.serving import LOOPBACK_NAMES, HttpServer, bind
from orderkit_standins.forge import EmbeddedForge
from orderkit_standins.loopback_certificate import Certificate, ensure_certificate
from orderkit_standins.serve_platform import Running

PAGE = b"<html><title>Welcome to the gateway</title></html>"


@dataclass(frozen=True, slots=True)
class Said:
    """A finding of the doctor."""

    verdict: str
    detail: str
    advice: str


@pytest.fixture
def doctor(
    platform: Running, orderkit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[ForgeSettings], dict[str, Said]]:
    """Ask the doctor about the shared platform with another forge entry."""
    for name in (credentials.TOKEN, credentials.USER, credentials.PASSWORD):
        monkeypatch.delenv(name, raising=False)

    def ask(forge: ForgeSettings, ledger: RepoId = platform.settings.ledger) -> dict[str, Said]:
        path = tmp_path / "platform.yaml"
        settings = changed(platform.settings, forge=forge, ledger_repository=str(ledger))
        path.write_text(settings.to_yaml())
        done = orderkit("doctor", "--json", platform_file=path)
        assert token(platform.settings.forge) not in done.out + done.err
        return {
            each["what"]: Said(each["verdict"], each["detail"], each["advice"])
            for each in done.json["findings"]
        }

    return ask


Doctor = Callable[..., dict[str, Said]]


def file_of(platform: Running) -> PurePath:
    found = platform.settings.forge.token_file
    assert found is not None
    return found


def test_a_healthy_forge_says_who_we_are_from_where_and_how_well_it_is_known(
    platform: Running, doctor: Doctor
) -> None:
    found = doctor(platform.settings.forge)

    names = ("forge", "rights", "gitea-release")
    assert [found[name].verdict for name in names] == ["ok"] * 3
    assert f"(file {file_of(platform)})" in found["forge"].detail
    assert found["gitea-release"].detail.startswith("embedded: answers as Gitea ")


def test_a_bad_token_is_named_with_its_source(
    platform: Running, doctor: Doctor, tmp_path: Path
) -> None:
    (tmp_path / "bad").write_text("0" * 40)

    found = doctor(ForgeSettings(platform.settings.forge.url, tmp_path / "bad"))

    assert found["forge"].verdict == "fail"
    assert "bad credentials" in found["forge"].detail
    assert f"credentials from file {tmp_path / 'bad'}" in found["forge"].detail
    assert "expired" in found["forge"].advice


def test_missing_scopes_are_found_before_they_are_needed(
    platform: Running, doctor: Doctor, weak_user: tuple[str, str], tmp_path: Path
) -> None:
    url = platform.settings.forge.url
    answer = requests.post(
        f"{url}/api/v1/users/{weak_user[0]}/tokens",
        auth=weak_user,
        json={"name": tmp_path.name, "scopes": ["read:repository", "read:user"]},
        timeout=10,
    )
    (tmp_path / "weak").write_text(answer.json()["sha1"])

    found = doctor(ForgeSettings(url, tmp_path / "weak"))

    assert found["forge"].verdict == "ok"
    assert found["rights"].verdict == "fail"
    for missing in (
        "scope write:repository",
        "scope write:issue",
        "scope write:organization",
        "write access to platform/ledger",
    ):
        assert missing in found["rights"].detail
    assert "create a token" in found["rights"].advice


def test_looking_for_rights_writes_nothing(platform: Running, doctor: Doctor) -> None:
    forge, ledger = platform.platform.forge, platform.settings.ledger
    before, number = forge.head(ledger), opened_issue(platform)

    doctor(platform.settings.forge)

    assert forge.head(ledger) == before
    assert opened_issue(platform) == number + 1


def opened_issue(platform: Running) -> int:
    """Open an issue of the ledger; return its number."""
    url = f"{platform.platform.forge.base_url}/api/v1/repos/{platform.settings.ledger}/issues"
    headers = {"Authorization": f"token {token(platform.settings.forge)}"}
    made = requests.post(url, json={"title": "T"}, headers=headers, timeout=10)
    return int(made.json()["number"])


@dataclass(frozen=True)
class Wrong:
    reason: str
    answer: Answering
    detail: str
    advice: str


@pytest.mark.parametrize(
    "case",
    [
        Wrong("a gateway's page", says(200, PAGE), "without JSON", "not to a proxy's page"),
        Wrong("a path is missing", says(404, PAGE), "no Gitea at that address", "/gitea"),
        Wrong(
            "the port speaks TLS",
            says(400, b"Client sent an HTTP request to an HTTPS server.\n"),
            "HTTPS server",
            "use https://",
        ),
        Wrong(
            "the way to https is a redirect",
            says(301, b"", Location="https://forge.example.org/"),
            "has moved",
            "https",
        ),
        Wrong("a broken gateway", says(502, PAGE), "502", "forge's log"),
        Wrong("some other API", says(200, b'{"name": "x"}'), "no Gitea", "address of a Gitea"),
    ],
    ids=lambda case: case.reason,
)
def test_a_wrong_address_is_explained(platform: Running, doctor: Doctor, case: Wrong) -> None:
    with server(case.answer) as url:
        found = doctor(ForgeSettings(url, file_of(platform)))

    assert [name for name, said in found.items() if said.verdict != "ok"] == ["forge"]
    assert found["forge"].verdict == "fail"
    assert case.detail in found["forge"].detail
    assert "what needs the forge is not checked" in found["forge"].detail
    assert case.advice in found["forge"].advice


def test_a_base_url_with_the_apis_path_is_refused_with_the_right_one(
    platform: Running, doctor: Doctor
) -> None:
    url = platform.settings.forge.url

    found = doctor(ForgeSettings(f"{url}/api/v1", file_of(platform)))

    assert found["platform"].advice == f"use {url}"


def test_credentials_over_plain_http_are_refused_unless_allowed(
    platform: Running, doctor: Doctor, other: EmbeddedForge
) -> None:
    far = ForgeSettings("http://forge.example.org", file_of(platform))

    assert "plain HTTP" in doctor(far)["platform"].detail
    assert "allowHttp: true" in doctor(far)["platform"].advice
    server = served(other, None)
    near = server.url.replace("127.0.0.1", "127.1")  # no loopback by its looks
    try:
        assert "plain HTTP" in doctor(ForgeSettings(near, file_of(platform)))["platform"].detail
        allowed = ForgeSettings(near, file_of(platform), allow_http=True)
        assert doctor(allowed)["forge"].verdict == "ok"
    finally:
        server.stop()


def test_a_renamed_repository_is_named_with_its_new_name(platform: Running, doctor: Doctor) -> None:
    forge, old = platform.settings.forge, RepoId("ae86", "before")
    headers = {"Authorization": f"token {token(forge)}"}
    platform.platform.forge.ensure_repo(old, description="")
    path = f"{forge.url}/api/v1/repos/{old}"
    assert requests.patch(path, json={"name": "after"}, headers=headers, timeout=10).ok

    try:
        found = doctor(forge, old)
    finally:
        platform.platform.forge.delete_repo(RepoId("ae86", "after"))

    for what in ("ledger", "rights"):
        assert found[what].verdict == "fail"
        assert "has moved" in found[what].detail
        assert "it is ae86/after now: give it its old name back" in found[what].advice


@pytest.fixture
def other(tmp_path: Path, platform: Running) -> Iterator[EmbeddedForge]:
    """Another forge that knows the platform's token."""
    forge = EmbeddedForge(tmp_path / "other")
    forge.ensure_user("warden", "warden-pw1", admin=True)
    forge.ensure_token("warden", "t", token(platform.settings.forge), ["all"])
    yield forge
    forge.close()


def served(forge: EmbeddedForge, certificate: Certificate | None) -> HttpServer:
    names = LOOPBACK_NAMES | {"127.1"}
    found = HttpServer(forge.app, bind("forge", 0), certificate, hosts=names)
    found.start()
    return found


def test_a_certificate_of_our_own_authority_needs_its_file(
    platform: Running, doctor: Doctor, other: EmbeddedForge, tmp_path: Path
) -> None:
    (tmp_path / "tls").mkdir()
    certificate = ensure_certificate(tmp_path / "tls")
    https = served(other, certificate)
    try:
        bare = doctor(ForgeSettings(https.url, file_of(platform)))["forge"]
        trusted = ForgeSettings(https.url, file_of(platform), ca_file=Path(certificate.authority))
        good = doctor(trusted)["forge"]
        elsewhere = changed(trusted, url=https.url.replace("127.0.0.1", "127.1"))
        wrong_name = doctor(elsewhere)["forge"]
    finally:
        https.stop()

    assert (bare.verdict, good.verdict, wrong_name.verdict) == ("fail", "ok", "fail")
    assert "certificate" in bare.detail
    assert "forge.caFile in platform.yaml" in bare.advice
    assert "the name that the certificate is for" in wrong_name.advice


def test_an_expired_certificate_is_told_from_an_unknown_one(
    platform: Running, doctor: Doctor, other: EmbeddedForge, tmp_path: Path
) -> None:
    certificate = own_certificate(tmp_path, days_ago=30, days=20)
    https = served(other, certificate)
    try:
        trusted = ForgeSettings(https.url, file_of(platform), ca_file=Path(certificate.server))
        found = doctor(trusted)["forge"]
    finally:
        https.stop()

    assert "expired" in found.detail
    assert "renew" in found.advice


def test_https_to_a_port_without_tls_is_told_from_a_bad_certificate(
    platform: Running, doctor: Doctor
) -> None:
    url = platform.settings.forge.url.replace("http://", "https://")

    found = doctor(ForgeSettings(url, file_of(platform)))["forge"]

    assert "does not speak TLS" in found.detail
    assert "use http://" in found.advice


def test_a_ca_file_that_holds_no_certificates_is_named(
    platform: Running, doctor: Doctor, tmp_path: Path
) -> None:
    (tmp_path / "ca.crt").write_text("no certificate")

    for name in ("ca.crt", "missing.crt"):
        forge = changed(platform.settings.forge, ca_file=tmp_path / name)
        assert name in doctor(forge)["platform"].detail
        assert "PEM" in doctor(forge)["platform"].advice


@pytest.fixture
def idpbuilder_secret(platform: Running) -> Iterator[None]:
    """Keep idpbuilder's Secret in the platform's cluster."""
    cluster, owner = platform.platform.cluster, "test"
    encoded = base64.b64encode(token(platform.settings.forge).encode()).decode()
    metadata = {"name": "gitea-credential", "namespace": "gitea"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gitea"}}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "data": {"token": encoded},
    }
    cluster.apply(namespace, owner=owner)
    cluster.apply(secret, owner=owner)
    yield
    cluster.delete(ObjectKey(Kind("", "v1", "Secret"), "gitea-credential", "gitea"))


@pytest.mark.usefixtures("idpbuilder_secret")
@pytest.mark.parametrize("source", ["auto", "idpbuilder"])
def test_idpbuilders_secret_is_found_through_the_cluster(
    platform: Running, doctor: Doctor, source: str
) -> None:
    forge = ForgeSettings(platform.settings.forge.url, None, source)  # type: ignore[arg-type]  # a table

    found = doctor(forge)["forge"]

    assert found.verdict == "ok"
    assert "idpbuilder's Secret gitea/gitea-credential" in found.detail


def test_no_credentials_anywhere_says_where_was_looked(
    platform: Running, doctor: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")

    found = doctor(ForgeSettings(platform.settings.forge.url, None))["platform"]

    assert "looked at: environment, file, idpbuilder, git" in found.detail
    assert credentials.TOKEN in found.advice


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (("POST", "/statuses/"), {"a comment and a status are there once": "not yours"}),
        (
            ("POST", "/pulls"),
            {
                "a pull request is opened once": "not yours",
                "a comment and a status are there once": "no pull request was opened",
                "a pull request is merged once, at its head": "no pull request was opened",
            },
        ),
    ],
    ids=["statuses", "pull requests"],
)
def test_what_a_forge_does_not_do_is_told_by_the_case_and_nothing_is_left(
    platform: Running, request_: tuple[str, str], told: dict[str, str]
) -> None:
    method, place = request_
    forbidden = Decision(Fault.REFUSE_BEFORE, Falsehood(403, b'{"message": "not yours"}'))
    plan = Listed([forbidden] * 99, lambda how, path: how == method and place in path)
    settings, clock = platform.settings.forge, platform.platform.clock

    with (
        open_proxy(settings.url) as proxy,
        proxy.using(plan),
        client_at(proxy.url, settings, platform.platform.signatures, read_timeout_s=10) as forge,
    ):
        results = check_forge(forge, "ae86", clock, on_case=lambda _: None)

    found = {result.case: result.problem for result in results if result.problem}
    assert found.keys() == told.keys()
    assert all(words in found[name] for name, words in told.items()), found
    repositories = requests.get(f"{settings.url}/api/v1/orgs/ae86/repos", timeout=10).json()
    assert [each["name"] for each in repositories if each["name"].startswith(PREFIX)] == []


@dataclass
class Meddling(Plan):
    """Before a write of files, or before each, somebody else acts in the repository."""

    act: Callable[[RepoId], object]
    at: int = 0
    seen: int = 0
    repo: RepoId | None = None

    def decide(self, method: str, path: str) -> Decision:
        if not is_contents(method, path):
            return Decision()
        self.seen += 1
        owner, name = path.split("/")[4:6]
        self.repo = RepoId(owner, name)
        return Decision(Fault.HOOK_BEFORE if self.at in (0, self.seen) else Fault.PASS)

    def hook(self) -> None:
        assert self.repo
        self.act(self.repo)


def test_a_forge_that_writes_what_it_should_refuse_is_told(platform: Running) -> None:
    """What stood there before is there again, and an archived repository is not archived."""
    forge, settings, clock = (
        platform.platform.forge,
        platform.settings.forge,
        platform.platform.clock,
    )

    def bring_back(repo: RepoId) -> None:
        path = PurePosixPath("a.txt")
        now = forge.read(repo, path, "main")
        assert now is not None
        change = FileChange(path, b"1\n", now.sha)
        forge.write(repo, [change], Operation("back", "user:default/x", "back"))

    def unarchive(repo: RepoId) -> None:
        forge.archive(repo, undo=True)

    problems = dict[str, str]()
    for plan in (Meddling(bring_back, at=3), Meddling(unarchive)):
        with (
            open_proxy(settings.url) as proxy,
            proxy.using(plan),
            client_at(proxy.url, settings, platform.platform.signatures, read_timeout_s=10) as ours,
        ):
            results = check_forge(ours, "ae86", clock, on_case=lambda _: None)
        problems |= {result.case: result.problem for result in results if result.problem}

    assert problems == {
        "a change of what changed meanwhile is refused": (
            "a change of a file that had changed was written"
        ),
        "an archived repository refuses writes": "an archived repository was written to",
    }


def test_a_forge_is_not_tried_in_an_organisation_that_is_not_there(platform: Running) -> None:
    with pytest.raises(NotFoundError, match="nobody-here, or it is hidden from us"):
        check_forge(
            platform.platform.forge, "nobody-here", platform.platform.clock, on_case=lambda _: None
        )
