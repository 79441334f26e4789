"""A stranger who was on the forge first: whoever owns an organisation owns what is put there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from answering import says, server
from commands import Command, Done
from forgeusers import ForgeUser

from ground.errors import RefusedError
from ground.names import OrderId, RepoId, TeamName
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.adapters.gitea import GiteaForge
from orderkit.core.order import ledger
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows.argocd.commit_pinning import pinned_commit
from orderkit.flows.forge_protection import foreign_access
from orderkit.flows.install.bootstrapping.platform_repositories import LedgerStep, PackStep
from orderkit.flows.install.bootstrapping.steps import BootstrapContext, BootstrapRequest
from orderkit.flows.install.pack_rendering import PlatformValues
from orderkit.flows.platform import ledger_snapshot
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.serve_platform import Running

Name = Callable[[], str]


def teams_of(platform: Running) -> list[str]:
    return list(ledger.teams(ledger_snapshot(platform.platform).blobs))


def invite(platform: Running, owner: ForgeUser, org: str) -> int:
    """Make the platform's account an owner too; it is not asked. Return the team of owners."""
    teams = owner.api("GET", f"/orgs/{org}/teams")
    (owners,) = [team["id"] for team in teams if team["name"] == "Owners"]
    owner.api("PUT", f"/teams/{owners}/members/{platform.platform.forge.user()}")
    return int(owners)


def test_a_strangers_organisation_does_not_become_a_team(
    orderkit: Command, platform: Running, stranger: ForgeUser, new_name: Name
) -> None:
    org = new_name()
    stranger.api("POST", "/orgs", {"username": org})

    outside = orderkit("team", "add", org)
    invite(platform, stranger, org)
    done = orderkit("team", "add", org)

    assert outside.code == 4
    assert f"organisation {org}" in outside.err
    assert done.code == 4, done.out
    assert f"organisation {org}" in done.err
    assert f"{stranger.login} (owner)" in done.err
    assert f"--adopt {stranger.login}" in done.err
    assert org not in teams_of(platform)


def test_adopting_an_owner_is_remembered(
    orderkit: Command, platform: Running, stranger: ForgeUser, new_name: Name
) -> None:
    org = new_name()
    stranger.api("POST", "/orgs", {"username": org})
    invite(platform, stranger, org)

    adopted = orderkit("team", "add", org, "--adopt", f"{stranger.login},nobody-else")

    assert adopted.code == 0, adopted.err
    assert orderkit("team", "add", org).code == 0
    assert orderkit("team", "change", org, "--limit", "orders=3").code == 0
    assert org in teams_of(platform)


@pytest.mark.parametrize("level", ["admin", "write"])
def test_a_team_left_behind_in_an_organisation_is_seen(
    orderkit: Command, platform: Running, stranger: ForgeUser, new_name: Name, level: str
) -> None:
    """The stranger made the platform's account an owner and left the team of owners."""
    org = new_name()
    stranger.api("POST", "/orgs", {"username": org})
    units = {"repo.code": "write", "repo.pulls": "write"}
    team = {"name": "helpers", "permission": level, "units_map": units}
    helpers = stranger.api("POST", f"/orgs/{org}/teams", team)["id"]
    stranger.api("PUT", f"/teams/{helpers}/members/{stranger.login}")
    owners = invite(platform, stranger, org)
    stranger.api("DELETE", f"/teams/{owners}/members/{stranger.login}")

    done = orderkit("team", "add", org)

    assert done.code == 4, done.out
    assert f"{stranger.login} ({level})" in done.err


@pytest.mark.parametrize(
    "hook",
    [
        ("http://127.0.0.1:9/steal", "--adopt webhook:http://127.0.0.1:9/steal"),
        ("http://127.0.0.1:9/v1/webhooks/gitea", "--adopt webhook:"),
        ("http://127.0.0.1:9/a;touch${IFS}x", "--adopt 'webhook:http://127.0.0.1:9/a;"),
    ],
    ids=["any", "path of the service", "shell"],
)
def test_a_webhook_left_behind_is_seen(
    orderkit: Command, platform: Running, stranger: ForgeUser, new_name: Name, hook: tuple[str, str]
) -> None:
    url, advice = hook

    done = team_with_webhook(orderkit, platform, stranger, new_name(), url)

    assert f"webhook:{url} (listen)" in done.err
    assert advice in done.err


def test_no_advice_repeats_a_name_that_reads_as_two(
    orderkit: Command, platform: Running, stranger: ForgeUser, new_name: Name
) -> None:
    """Who copies ``--adopt webhook:URL,LOGIN`` from the advice would adopt the login too."""
    url = f"http://127.0.0.1:9/x,{stranger.login}"

    done = team_with_webhook(orderkit, platform, stranger, new_name(), url)

    assert "--adopt" not in done.err


def team_with_webhook(
    orderkit: Command, platform: Running, stranger: ForgeUser, org: str, url: str
) -> Done:
    """Add a team whose organisation a stranger left with nothing but a webhook in it."""
    stranger.api("POST", "/orgs", {"username": org})
    config = {"url": url, "content_type": "json"}
    hook = {"type": "gitea", "config": config, "events": ["push"], "active": True}
    stranger.api("POST", f"/orgs/{org}/hooks", hook)
    owners = invite(platform, stranger, org)
    stranger.api("DELETE", f"/teams/{owners}/members/{stranger.login}")
    done = orderkit("team", "add", org)
    assert done.code == 4, done.out
    return done


@pytest.mark.parametrize("step", [PackStep, LedgerStep])
def test_a_strangers_organisation_holds_no_part_of_a_platform(
    platform: Running, stranger: ForgeUser, new_name: Name, step: Any
) -> None:
    """Who owns the pack's or ledger's organisation could write ``stations/`` and ``teams/``."""
    org = new_name()
    stranger.api("POST", "/orgs", {"username": org})
    repo = RepoId(org, "mine")
    present = platform.platform
    is_pack = step is PackStep
    attacked = replace(present, pack_repo=repo) if is_pack else replace(present, ledger=repo)
    values = PlatformValues(platform.settings.forge.url, "0" * 40, "registry.local")
    wanted = BootstrapRequest(read_folder(reference_pack()), values, "user:default/test")

    with pytest.raises(RefusedError, match=f"organisation {org} "):
        step(BootstrapContext(attacked, wanted)).ensure(lambda _: None)

    assert attacked.forge.repo(repo) is None


def test_a_collaborator_of_the_ledger_is_refused_and_doctor_says_so(
    orderkit: Command, platform: Running, forge_admin: ForgeUser, stranger: ForgeUser
) -> None:
    repo, person = platform.platform.ledger, f"collaborators/{stranger.login}"
    forge_admin.api("PUT", f"/repos/{repo}/{person}", {"permission": "write"})
    try:
        told = orderkit("doctor")
        grants = foreign_access(platform.platform, repo)
    finally:
        forge_admin.api("DELETE", f"/repos/{repo}/{person}")

    assert told.code == 1
    assert f"{repo}: {stranger.login} (write)" in told.out
    assert [grant.holder for grant in grants] == [stranger.login]
    assert orderkit("doctor").code == 0


def test_another_deploy_key_of_an_adopted_title_is_seen(platform: Running) -> None:
    """The embedded forge has no deploy keys; these are answers of Gitea's."""
    ledger, fingerprint = platform.platform.ledger, ["SHA256:one"]

    def answer(handler: BaseHTTPRequestHandler) -> None:
        key = {"title": "mine", "fingerprint": fingerprint[0], "read_only": False}
        found: dict[str, Any] = {
            "user": {"login": "orderkit"},
            f"repos/{ledger}": {"owner": {"login": ledger.owner}},
            f"orgs/{ledger.owner}": {},
            f"repos/{ledger}/collaborators": [],
            f"repos/{ledger}/keys": [key],
        }
        path = handler.path.partition("?")[0].removeprefix("/api/v1/")
        says(200 if path in found else 404, json.dumps(found.get(path, {})).encode())(handler)

    with server(answer) as url, GiteaForge(url, token="t" * 40) as forge:
        there = replace(platform.platform, forge=forge)
        (grant,) = foreign_access(there, ledger)
        assert foreign_access(there, ledger, adopted=[grant.holder]) == []
        fingerprint[0] = "SHA256:two"
        (other,) = foreign_access(there, ledger, adopted=[grant.holder])

    assert (grant.holder, grant.right) == ("deploy-key:mine:SHA256:one", "write")
    assert other.holder == "deploy-key:mine:SHA256:two"


def test_doctor_finds_an_owner_who_came_later(
    orderkit: Command, forge_admin: ForgeUser, stranger: ForgeUser, new_name: Name
) -> None:
    org = new_name()
    assert orderkit("team", "add", org).code == 0
    owners = forge_admin.api("GET", f"/orgs/{org}/teams")[0]["id"]
    forge_admin.api("PUT", f"/teams/{owners}/members/{stranger.login}")

    told = orderkit("doctor")

    forge_admin.api("DELETE", f"/teams/{owners}/members/{stranger.login}")
    assert told.code == 1
    assert f"{org}: {stranger.login} (owner)" in told.out


def test_an_order_is_not_registered_from_a_repository_that_a_stranger_administers(
    orderkit: Command, platform: Running, forge_admin: ForgeUser, stranger: ForgeUser,
    new_name: Name,
) -> None:  # fmt: skip
    """The repository was there before the order and kept its collaborator."""
    team = new_name()
    assert orderkit("team", "add", team).code == 0
    repo = RepoId(team, f"garage-{team}")
    platform.platform.forge.ensure_repo(repo, description="")
    person = f"/repos/{repo}/collaborators/{stranger.login}"
    forge_admin.api("PUT", person, {"permission": "admin"})

    done = orderkit("order", "garage", f"team_name={team}", "stage=stage1")

    assert done.code == 5, done.out
    assert f"{stranger.login} (admin)" in done.err
    assert f"garage-{team}" not in orderkit("list").out
    forge_admin.api("DELETE", person)
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage1").code == 0


def placed(orderkit: Command, team: str) -> RepoId:
    """Order a garage of a new team; return its repository."""
    assert orderkit("team", "add", team).code == 0
    done = orderkit("order", "garage", f"team_name={team}", "stage=stage1", "--no-wait")
    assert done.code == 0, done.err
    return RepoId(team, f"garage-{team}")


def test_a_renamed_order_is_not_written_to_and_hides_no_other(
    orderkit: Command, platform: Running, forge_admin: ForgeUser, new_name: Name
) -> None:
    """An admin of a team renames their order, so that nobody sees what they did to another."""
    repo, open_one = placed(orderkit, new_name()), placed(orderkit, new_name())
    other, forge = RepoId(repo.owner, f"{repo.name}-else"), platform.platform.forge
    forge_admin.api("PATCH", f"/repos/{repo}", {"name": other.name})
    forge_admin.api("DELETE", f"/repos/{open_one}/branch_protections/main")
    before = forge.head(other)

    told, listed, doctor = orderkit("status", repo.name), orderkit("list"), orderkit("doctor")
    refused = orderkit("change", repo.name, "stage=stage2")
    upgraded = orderkit("team", "add", repo.owner)
    orderkit("team", "add", open_one.owner)
    forge_admin.api("PATCH", f"/repos/{other}", {"name": repo.name})

    assert f"renamed to {other}" in told.out
    assert refused.code != 0
    assert "has moved" in refused.err
    assert forge.head(repo) == before
    assert open_one.name in listed.out
    rows = {line.split()[0]: line for line in doctor.out.splitlines() if line[:1].isalpha()}
    assert str(open_one) in rows["protection"]
    assert f"renamed to {other}" in rows["orders"]
    assert rows["undelivered"].split()[1] == "ok"
    assert upgraded.code == 0, upgraded.err


def test_a_repository_that_was_made_again_is_not_delivered_and_named(
    orderkit: Command, platform: Running, forge_admin: ForgeUser, new_name: Name
) -> None:
    """An admin of the team deletes an order's repository and pushes another of its name."""
    repo, forge = placed(orderkit, new_name()), platform.platform.forge
    head = forge.head(repo)
    assert head is not None
    files = {path: forge.read(repo, path, head) for path in forge.tree(repo, head)}
    forge_admin.api("DELETE", f"/repos/{repo}")
    forge.ensure_repo(repo, description="")
    changes = [
        FileChange(path, found.data.replace(b"stage1", b"stage3"), None)
        for path, found in files.items()
        if found is not None
    ]
    forge.write(repo, changes, Operation("again", "user:default/mallory", "Again"))

    doctor, told = orderkit("doctor"), orderkit("status", repo.name)
    entry = OrderEntry(TeamName(repo.owner), OrderId(repo.name))
    pinned = pinned_commit(platform.platform, entry)

    rows = {line.split()[0]: line for line in doctor.out.splitlines() if line[:1].isalpha()}
    assert str(repo) in rows["protection"]
    assert repo.name in rows["undelivered"]
    assert "bypassed Orderkit" in told.out
    assert pinned == head, "Argo CD is told to deliver what was there before"
