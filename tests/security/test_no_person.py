"""
Apps, access tokens and keys on GitHub and GitLab: who holds one acts under another name.

None of them is a person: it approves nothing, and nobody knows who is behind what it pushes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from answering import says, server
from bays import new_bay
from commands import Command, in_process
from forgeusers import ForgeUser, embedded_admin, named_user, new_user
from tests.security.test_four_eyes import Review, proposed

from ground.errors import RefusedError
from ground.names import RepoId
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.adapters.github import GitHubForge
from orderkit.adapters.gitlab import GitLabForge
from orderkit.core.platform.forge_kinds import ForgeKind
from orderkit.flows.forge_protection import CONTEXT
from orderkit_standins.forge.deploy_keys import DeployKey
from orderkit_standins.forge.github.apps import InstalledApp
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

KINDS: tuple[ForgeKind, ...] = ("github", "gitlab")
MACHINES = {"github": ("helper",), "gitlab": ("project_1_bot_5e1f", "service_account_ci")}
"""An App of somebody else; the users of a project's token and of a service account."""
KEY = DeployKey(1, "ci", "ssh-ed25519 AAAA", "SHA256:one", may_push=True)


@pytest.fixture(scope="module", params=KINDS)
def platform(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """Run a platform whose forge speaks GitHub's or GitLab's dialect, with these machines."""
    kind, folder = request.param, tmp_path_factory.mktemp("no-person")
    asked = EmbeddedRunRequest(
        folder / "state", reference_pack(), Ports(0, 0, 0, 0), ("ae86",), forge=kind
    )
    with running(asked, on_step=lambda *_: None) as started:
        admin = embedded_admin(started.settings.forge.url, started.embedded.state.folder)
        for login in MACHINES[kind]:
            named_user(admin, login)
            started.embedded.forge.ensure_token(login, "of", _token(login), ["all"])
        yield started


def _token(login: str) -> str:
    return login.encode().hex().ljust(40, "0")[:40]


@pytest.fixture
def kind(platform: Running) -> ForgeKind:
    return platform.settings.forge.kind


@pytest.fixture(scope="module")
def forge_admin(platform: Running) -> ForgeUser:
    return embedded_admin(platform.settings.forge.url, platform.embedded.state.folder)


@pytest.fixture
def machines(
    platform: Running, kind: ForgeKind, forge_admin: ForgeUser
) -> Iterator[list[ForgeUser]]:
    """The accounts; on GitHub that of an App which is installed."""
    apps = platform.embedded.forge.github.apps.known
    if kind == "github":
        apps[9] = InstalledApp(9, "helper", "")
    yield [ForgeUser(forge_admin.url, login) for login in MACHINES[kind]]
    apps.clear()


@pytest.fixture
def review(platform: Running, forge_admin: ForgeUser) -> Review:
    people = new_user(forge_admin, "eve"), new_user(forge_admin, "carol")
    return proposed(new_bay(platform.platform), forge_admin, *people)


@pytest.fixture
def orderkit(platform: Running, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(platform.embedded.state.folder / "platform.yaml", capsys)


def let_in(admin: ForgeUser, review: Review, who: ForgeUser) -> ForgeUser:
    """Let an account write to the order's repository, as its Maintainer can."""
    path = f"/repos/{review.bay.repo}/collaborators/{who.login}"
    admin.api("PUT", path, {"permission": "write"})
    return who


def test_whoever_holds_a_machine_does_not_approve_twice(
    review: Review, forge_admin: ForgeUser, machines: list[ForgeUser]
) -> None:
    for machine in machines:
        review.approve(let_in(forge_admin, review, machine))
        with pytest.raises(RefusedError, match="nobody else has approved"):
            review.merge()

    review.approve(review.carol)
    review.merge()

    assert review.bay.spec()["stage"] == "stage2"


def test_nobody_approves_what_their_own_machine_pushed(
    review: Review, forge_admin: ForgeUser, machines: list[ForgeUser]
) -> None:
    """Eve's token pushes another stage; for the forge she is then not the one who pushed."""
    review.push(let_in(forge_admin, review, machines[-1]))
    for person in (review.eve, review.carol):
        review.approve(person)

    with pytest.raises(RefusedError, match="which is no person") as refused:
        review.merge()

    assert refused.value.hint.startswith("propose it again with orderkit change")
    assert review.bay.spec()["stage"] == "stage1"


def test_a_machine_merges_nothing_with_our_own_status(
    review: Review, forge_admin: ForgeUser, machines: list[ForgeUser], kind: ForgeKind
) -> None:
    """Everybody who may push may set any status; only the platform merges."""
    machine, repo, pull = let_in(forge_admin, review, machines[0]), review.bay.repo, review.pull
    forged = {"context" if kind == "github" else "name": CONTEXT, "state": "success"}
    with _as(review, kind, machine) as forge:
        path = f"/repos/{repo}" if kind == "github" else f"/projects/{_project(review)}"
        sent = forge._http.send("POST", f"{path}/statuses/{pull.head_commit}", body=forged)  # noqa: SLF001
        merge = "pulls" if kind == "github" else "merge_requests"
        done = forge._http.send(  # noqa: SLF001
            "PUT", f"{path}/{merge}/{pull.number}/merge", body={"sha": pull.head_commit}
        )

    assert sent.status == 201
    assert done.status in (401, 405), done.text
    with pytest.raises(RefusedError, match="nobody else has approved"):
        review.merge()
    assert review.bay.spec()["stage"] == "stage1"


def _project(review: Review) -> int:
    found = review.bay.platform.forge.repo(review.bay.repo)
    assert found is not None
    return found.number


def _as(review: Review, kind: ForgeKind, who: ForgeUser) -> GitHubForge | GitLabForge:
    url, token = review.bay.platform.forge.base_url, _token(who.login)
    if kind == "github":
        return GitHubForge(url, token=token)
    address, _, group = url.removeprefix("http://").partition("/")
    return GitLabForge(f"http://{address}", token=token, group=group)


def test_doctor_names_an_app_that_may_write(
    orderkit: Command, machines: list[ForgeUser], kind: ForgeKind
) -> None:
    if kind != "github":
        pytest.skip("GitLab has no Apps; its machines are members, as doctor names them")
    assert machines

    told = orderkit("doctor")

    assert told.code == 1
    assert "platform: app:helper:9 (write)" in told.out
    assert "ae86: app:helper:9 (write)" in told.out


def test_a_key_that_pushes_to_the_ledger_is_named_and_accepted_by_itself_only(
    orderkit: Command, platform: Running, kind: ForgeKind
) -> None:
    keys, ledger = platform.embedded.forge.deploy_keys, str(platform.platform.ledger)
    name = f"deploy-key:ci:{1 if kind == 'github' else 'SHA256:one'}"
    try:
        keys[ledger] = [KEY]
        told = orderkit("doctor")
        (grant,) = platform.platform.forge.foreign_access(platform.platform.ledger)
        keys[ledger] = [replace(KEY, id=2, fingerprint="SHA256:two")]
        (other,) = platform.platform.forge.foreign_access(platform.platform.ledger)
    finally:
        keys.clear()

    assert told.code == 1
    assert f"{ledger}: {name} (write)" in told.out
    assert (grant.holder, grant.right) == (name, "write")
    assert other.holder != name


def test_an_order_is_not_registered_while_a_key_pushes_to_it(
    orderkit: Command, platform: Running
) -> None:
    """A member made the repository before the order, and left a key in it."""
    assert orderkit("team", "add", "rx7").code == 0
    repo, keys = RepoId("rx7", "garage-rx7"), platform.embedded.forge.deploy_keys
    platform.platform.forge.ensure_repo(repo, description="")
    keys[str(repo)] = [KEY]

    refused = orderkit("order", "garage", "team_name=rx7", "stage=stage1", "--no-wait")
    keys.clear()
    done = orderkit("order", "garage", "team_name=rx7", "stage=stage1", "--no-wait")

    assert refused.code == 5, refused.out
    assert "deploy-key:ci:" in refused.err
    assert "(write)" in refused.err
    assert done.code == 0, done.err


GITHUB_RULE: dict[str, Any] = {
    "id": 1, "name": "main", "target": "branch", "enforcement": "active",
    "conditions": {"ref_name": {"include": ["refs/heads/main"], "exclude": []}},
    "rules": [{"type": kind} for kind in ("update", "deletion", "non_fast_forward")],
}  # fmt: skip
OWNERS = {"actor_id": 1, "actor_type": "OrganizationAdmin", "bypass_mode": "always"}
PAST = {
    "a deploy key": {"actor_id": None, "actor_type": "DeployKey", "bypass_mode": "always"},
    "another App": {"actor_id": 9, "actor_type": "Integration", "bypass_mode": "always"},
    "a team": {"actor_id": 9, "actor_type": "Team", "bypass_mode": "pull_request"},
}


@pytest.mark.parametrize("past", PAST)
def test_a_ruleset_that_lets_anybody_else_past_is_no_protection(past: str) -> None:
    """The embedded forge knows no such rulesets: these are answers of GitHub's."""
    rule = {**GITHUB_RULE, "bypass_actors": [OWNERS]}

    def answers() -> dict[str, Any]:
        return {"rulesets": [{"id": 1, "name": "main"}], "rulesets/1": rule}

    with ExitStack() as stack:
        url = stack.enter_context(_serving("/api/v3/repos/ae86/garage-x/", answers))
        forge = stack.enter_context(GitHubForge(url, token="t" * 40))
        before = forge.is_protected(RepoId("ae86", "garage-x"), "main", checks=[])
        rule["bypass_actors"] = [OWNERS, PAST[past]]
        after = forge.is_protected(RepoId("ae86", "garage-x"), "main", checks=[])

    assert (before, after) == (True, False)


@pytest.mark.parametrize("key", ["push_access_levels", "merge_access_levels"])
@pytest.mark.parametrize("past", [{"deploy_key_id": 1}, {"user_id": 9}, {"group_id": 9}, {}])
def test_a_rule_of_gitlab_that_lets_anybody_else_past_is_no_protection(
    key: str, past: dict[str, int]
) -> None:
    """Developers (30), or a key, a user or a group beside us."""
    level = [{"access_level": 40}]
    rule: dict[str, Any] = {"name": "main", "push_access_levels": level}
    rule |= {"merge_access_levels": level, "allow_force_push": False}
    project = {"id": 7, "allow_merge_on_skipped_pipeline": False}

    def answers() -> dict[str, Any]:
        own: dict[str, Any] = {"user": {"id": 1, "username": "orderkit"}}
        return own | {
            "projects/ae86%2Fgarage-x/protected_branches": [rule],
            "projects/ae86%2Fgarage-x": project,
        }

    with ExitStack() as stack:
        url = stack.enter_context(_serving("/api/v4/", answers))
        forge = stack.enter_context(GitLabForge(url, token="t" * 20))
        before = forge.is_protected(RepoId("ae86", "garage-x"), "main", checks=[])
        rule[key] = [*level, {"access_level": 40 if past else 30, **past}]
        after = forge.is_protected(RepoId("ae86", "garage-x"), "main", checks=[])

    assert (before, after) == (True, False)


def _serving(prefix: str, answers: Callable[[], dict[str, Any]]) -> Any:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.partition("?")[0].removeprefix(prefix)
        found = answers()
        says(200 if path in found else 404, json.dumps(found.get(path, {})).encode())(handler)

    return server(answer)
