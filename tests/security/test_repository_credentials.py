"""
What Argo CD's credentials read: one organisation each, so a tool that runs reads no other team.

``tests/e2e/test_security_argocd.py`` lets a real Argo CD run a tool with them on a real Gitea.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import pytest
import requests
from commands import Command, Done, in_process
from platformsettings import settings_with

from ground.names import RepoId, TeamName
from ground.objects.kube_objects import Manifest, ObjectKey
from ground.shapes import changed
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.core.platform.installation import Installation, PlatformTarget
from orderkit.flows.install.bootstrapping.platform_repositories import SECRET_NAME
from orderkit.flows.platform import Platform
from orderkit.flows.team.connections import SECRET, credential_secret, decoded, secret_key
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.platform import BOT, BOT_SCOPES, Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

US, THEM = TeamName("ae86"), TeamName("rx7")
PLATFORM = ObjectKey(SECRET, SECRET_NAME, "argocd")


@dataclass(frozen=True)
class Site:
    """A platform with private repositories, and a private repository of each organisation."""

    running: Running
    settings_file: Path
    folder: Path

    @property
    def platform(self) -> Platform:
        return self.running.platform

    def written(self, name: str, **forge_changes: object) -> Path:
        """Write a platform.yaml with other settings of the forge; return its path."""
        settings, token = self.running.settings, self.running.settings.forge.token_file
        usual = {"private": True, "read_token_file": token, "token_file": self.folder / "admin"}
        forge = changed(settings.forge, **{**usual, **forge_changes})
        cluster = Installation(PlatformTarget.CLUSTER)
        path = self.folder / f"{name}.yaml"
        path.write_text(settings_with(settings, cluster, forge=forge).to_yaml())
        return path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("credentials")
    request = EmbeddedRunRequest(folder / "state", reference_pack(), Ports(0, 0, 0, 0), (US, THEM))
    with running(request, on_step=lambda *_: None) as found:
        site = Site(found, folder / "private.yaml", folder)
        (folder / "admin").write_text(bot_token(found, "admin", [*BOT_SCOPES, "write:admin"]))
        site.written("private")
        for owner in (US, THEM, found.settings.ledger.owner):
            repo = RepoId(owner, "private")
            found.platform.forge.ensure_repo(repo, description="", private=True)
            secret = FileChange(PurePosixPath("manifests", "secret.yaml"), b"a: 1\n", None)
            found.platform.forge.write(repo, [secret], Operation("begin", "user:default/a", "a"))
        yield site


def bot_token(running: Running, name: str, scopes: list[str]) -> str:
    """Make another token of the platform's own user, who is an admin of the forge."""
    password = running.embedded.state.credential("forge-password")
    answer = requests.post(
        f"{running.settings.forge.url}/api/v1/users/{BOT}/tokens",
        json={"name": name, "scopes": scopes},
        auth=(BOT, password),
        timeout=30,
    )
    return str(answer.json()["sha1"])


@pytest.fixture
def orderkit(site: Site, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(site.settings_file, capsys)


def live(platform: Platform, key: ObjectKey) -> Manifest:
    secret = platform.cluster.get(key)
    assert secret is not None, f"{key} is missing"
    return secret


def readable(platform: Platform, secret: Manifest, *owners: str) -> list[str]:
    """Return the organisations whose private repository git reads with a Secret's credential."""
    user, token = decoded(secret, "username"), decoded(secret, "password")
    parts = urlsplit(platform.forge.base_url)
    urls = {owner: f"http://{user}:{token}@{parts.netloc}/{owner}/private.git" for owner in owners}
    command = ["git", "-c", "credential.helper=", "ls-remote"]
    return [
        owner
        for owner, url in urls.items()
        if subprocess.run([*command, url, "HEAD"], capture_output=True, check=False).returncode == 0
    ]


def finding(done: Done) -> dict[str, str]:
    return next(entry for entry in done.json["findings"] if entry["what"] == "credentials")


def test_the_credential_for_the_whole_forge_is_reported_and_narrowed(
    site: Site, orderkit: Command
) -> None:
    """Release 0.2.0 gave Argo CD one Secret for every repository of the forge."""
    platform = site.platform
    token = Path(str(site.running.settings.forge.token_file)).read_text().strip()
    whole = {"type": "git", "url": platform.forge.base_url, "username": "a", "password": token}
    platform.cluster.apply(credential_secret(PLATFORM, whole), owner="orderkit")

    before = finding(orderkit("doctor", "--json"))
    done = orderkit("bootstrap", "--no-probe")
    after = finding(orderkit("doctor", "--json"))

    assert before["verdict"] == "fail"
    assert f"every team: Secret {SECRET_NAME}; missing for teams: {US}, {THEM}" in before["detail"]
    assert done.code == 0, done.err
    assert after["verdict"] == "ok"
    forge_url = platform.forge.base_url
    urls = {key.name: decoded(live(platform, key), "url") for key in (PLATFORM, secret_key(US))}
    assert urls == {
        SECRET_NAME: f"{forge_url}/platform/",
        f"orderkit-read-{US}": f"{forge_url}/{US}/",
    }


def test_a_teams_credential_reads_its_organisation_only(site: Site, orderkit: Command) -> None:
    assert orderkit("bootstrap", "--no-probe").code == 0
    owners = (US, THEM, site.platform.ledger.owner)

    readable_by = {
        team: readable(site.platform, live(site.platform, secret_key(team)), *owners)
        for team in (US, THEM)
    }

    assert readable_by == {US: [US], THEM: [THEM]}


def test_a_repeated_bootstrap_keeps_credentials(site: Site, orderkit: Command) -> None:
    assert orderkit("bootstrap", "--no-probe").code == 0
    before = live(site.platform, secret_key(US))["data"]

    done = orderkit("bootstrap", "--no-probe", "--json")

    assert {step["verdict"] for step in done.json["steps"]} == {"already so"}
    assert live(site.platform, secret_key(US))["data"] == before


def test_a_deleted_secret_is_replaced_by_another_account(site: Site, orderkit: Command) -> None:
    assert orderkit("team", "add", "s13").code == 0
    team = TeamName("s13")
    site.platform.forge.ensure_repo(RepoId(team, "private"), description="", private=True)
    old = live(site.platform, secret_key(team))
    site.platform.cluster.delete(secret_key(team))

    assert orderkit("team", "change", team).code == 0

    new = live(site.platform, secret_key(team))
    assert decoded(new, "username") != decoded(old, "username")
    assert readable(site.platform, old, team) == []
    assert readable(site.platform, new, team) == [team]


def test_a_removed_team_leaves_no_credential(site: Site, orderkit: Command) -> None:
    team = TeamName("fc3s")
    assert orderkit("team", "add", team).code == 0
    site.platform.forge.ensure_repo(RepoId(team, "private"), description="", private=True)
    secret = live(site.platform, secret_key(team))
    assert readable(site.platform, secret, team) == [team]

    done = orderkit("team", "remove", team)

    assert done.code == 0, done.err
    assert site.platform.cluster.get(secret_key(team)) is None
    assert readable(site.platform, secret, team) == []


def test_without_an_admin_of_the_forge_the_tokens_come_from_a_folder(
    site: Site, orderkit: Command
) -> None:
    """And the refusal says so; the other way out is an admin's credentials."""
    token = site.folder / "no-admin"
    token.write_text(bot_token(site.running, "no-admin", list(BOT_SCOPES)))
    tokens = site.folder / "team-tokens"
    tokens.mkdir()
    (tokens / "z31").write_text("reads-one-organisation\n")
    refused = orderkit("team", "add", "z31", platform_file=site.written("no", token_file=token))
    file = site.written("folder", token_file=token, team_token_folder=tokens)

    added = orderkit("team", "add", "z31", platform_file=file)
    missing = orderkit("team", "add", "z32", platform_file=file)

    assert refused.code != 0
    assert "add an account that reads z31" in refused.err
    assert "forge.teamTokenFolder" in refused.err
    assert added.code == 0, added.err
    assert decoded(live(site.platform, secret_key(TeamName("z31"))), "password") == (
        "reads-one-organisation"
    )
    assert (missing.code, str(tokens / "z32") in missing.err) == (1, True)


def test_no_secret_of_a_credential_is_printed_or_pushed(site: Site, orderkit: Command) -> None:
    done = [orderkit("bootstrap", "--no-probe", "--json"), orderkit("doctor", "--json")]
    platform = site.platform
    head = platform.forge.head(platform.ledger)
    assert head is not None
    texts = [done.out + done.err for done in done]
    for path in platform.forge.tree(platform.ledger, head):
        revision = platform.forge.read(platform.ledger, path, head)
        texts.append(revision.text if revision else "")

    for team in (US, THEM):
        token = decoded(live(platform, secret_key(team)), "password")
        assert len(token) >= 40
        assert not any(token in text for text in texts)
