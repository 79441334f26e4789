"""
The whole life of an order through our commands, with a real Gitea as the forge.

Everything else is embedded: what is judged here is that the flows need nothing of a forge that
only ours has. The commands' user is an ordinary one, no site admin.
"""

from __future__ import annotations

import itertools
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import mixedplatform
import pytest
import requests
from commands import Command, as_process, in_process
from lab.realgitea import Gitea, add_token, add_user
from published import Up, read_kit, wanted_repository
from roguery import deliver_main

from ground.names import RepoId
from ground.objects.kube_objects import CONFIG_MAP, NAMESPACE, ObjectKey, dig
from ground.shapes import changed
from orderkit.adapters.folders.pack_folder import pack_commit, read_folder, reference_pack
from orderkit.adapters.state_folder import PLATFORM_FILE
from orderkit.cli.connecting import SECRET_HEADER, token
from orderkit.core.platform.settings import LOCAL_REGISTRY, ForgeSettings
from orderkit.flows.install.bootstrapping import Bootstrapped, BootstrapRequest, bootstrap
from orderkit.flows.install.pack_rendering import PlatformValues, render_pack
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit_standins.platform import BOT_SCOPES

GUEST = "user:default/guest"
OPERATION = "Orderkit-Operation:"
SCOPES = tuple(scope for scope in BOT_SCOPES if "admin" not in scope)
READY_S = 180.0


@dataclass(frozen=True)
class Site:
    """A bootstrapped platform on the real Gitea."""

    up: Up
    gitea: Gitea
    bot: tuple[str, str]
    """Login and password of the user behind the platform's token."""
    bootstrapped: Bootstrapped

    def head(self, repo: RepoId) -> str | None:
        return self.up.platform.forge.head(repo)

    @property
    def ledger(self) -> RepoId:
        return self.up.platform.ledger

    def data(self, team: str) -> object:
        return dig(self.up.platform.cluster.get(sheet(team)) or {}, "data")

    def files(self, repo: RepoId) -> dict[PurePosixPath, bytes]:
        """Return every file at the head of main."""
        forge, head = self.up.platform.forge, self.up.platform.forge.head(repo)
        assert head is not None
        found = {path: forge.read(repo, path, head) for path in forge.tree(repo, head)}
        return {path: revision.data for path, revision in found.items() if revision}


def sheet(team: str) -> ObjectKey:
    return ObjectKey(CONFIG_MAP, "spec-sheet", f"garage-{team}")


def order_of(team: str) -> RepoId:
    return RepoId(team, f"garage-{team}")


@pytest.fixture(scope="module")
def site(real_gitea: Gitea, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    bot = add_user(real_gitea, f"orderkit-{secrets.token_hex(3)}")
    wanted = mixedplatform.Wanted(
        tmp_path_factory.mktemp("mixed"),
        reference_pack(),
        real_gitea.url,
        bot[0],
        add_token(real_gitea.url, bot, SCOPES),
    )
    with mixedplatform.running(wanted) as up:
        yield Site(
            up,
            real_gitea,
            bot,
            bootstrap(up.platform, _pack(real_gitea.url), on_step=lambda *_: None),
        )


def _pack(forge_url: str) -> BootstrapRequest:
    files = read_folder(reference_pack())
    commit = pack_commit(reference_pack(), files)
    return BootstrapRequest(files, PlatformValues(forge_url, commit, LOCAL_REGISTRY), GUEST)


@pytest.fixture
def orderkit(site: Site, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(site.up.state / PLATFORM_FILE, capsys)


_numbers = itertools.count(1)


@pytest.fixture
def team(orderkit: Command) -> str:
    """A team that nobody else uses."""
    name = f"crew-{next(_numbers):03d}"
    done = orderkit("team", "add", name)
    assert done.code == 0, done.err
    return name


@pytest.fixture
def ordered(orderkit: Command, team: str) -> str:
    """A team whose order is Ready."""
    done = orderkit("order", "garage", f"team_name={team}", "stage=stage2")
    assert done.code == 0, done.err
    return team


def _until_status(orderkit: Command, team: str, wanted: Callable[[Any], bool]) -> Any:
    return until(
        SystemClock(),
        lambda: orderkit("status", f"garage-{team}", "--json").json,
        wanted,
        timeout_s=READY_S,
        goal=f"garage-{team} changing",
        why_not=str,
    )


def test_bootstrap_publishes_the_pack_and_delivers_its_layers(site: Site) -> None:
    published = site.files(site.up.platform.pack_repo)

    wanted = _pack(site.gitea.url)
    assert published == render_pack(wanted.files, wanted.values)
    assert not [path for path, data in published.items() if b"__ORDERKIT_FORGE" in data]
    assert site.bootstrapped.layers


def test_bootstrap_again_writes_nothing(site: Site) -> None:
    heads = [site.head(repo) for repo in (site.up.platform.pack_repo, site.ledger)]

    bootstrap(site.up.platform, _pack(site.gitea.url), on_step=lambda *_: None)

    assert [site.head(repo) for repo in (site.up.platform.pack_repo, site.ledger)] == heads


def test_an_order_becomes_ready_with_everything_composed(
    orderkit: Command, site: Site, team: str
) -> None:
    done = orderkit("order", "garage", f"team_name={team}", "stage=stage2", "--json")

    assert (done.code, done.json["phase"], done.json["created"]) == (0, "Ready", True), done.err
    assert site.data(team) == {"stage": "stage2", "team": team}


def test_its_repository_holds_what_the_interpreter_writes(site: Site, ordered: str) -> None:
    kit = read_kit(site.up, "garage", {"team_name": ordered, "stage": "stage2"})
    requester = _requester_of(site, order_of(ordered))

    expected = wanted_repository(site.up, kit, requester=requester).files

    assert site.files(order_of(ordered)) == dict(expected)


def _requester_of(site: Site, repo: RepoId) -> str:
    (commit,) = site.up.platform.forge.commits(repo)
    return commit.requester


def test_the_same_order_again_says_it_exists_and_writes_nothing(
    orderkit: Command, site: Site, ordered: str
) -> None:
    heads = [site.head(repo) for repo in (order_of(ordered), site.ledger)]

    again = orderkit("order", "garage", f"team_name={ordered}", "stage=stage2", "--json")

    assert (again.code, again.json["created"]) == (0, False)
    assert [site.head(repo) for repo in (order_of(ordered), site.ledger)] == heads


def test_another_order_of_the_same_name_is_a_conflict(orderkit: Command, ordered: str) -> None:
    done = orderkit("order", "garage", f"team_name={ordered}", "stage=stage3")

    assert done.code == 3, done.out + done.err


def test_the_service_runs_a_portals_task_on_it_and_finds_it_again(site: Site, team: str) -> None:
    """What the portal's copy of the template asks for: new, the same again, other values."""
    service = site.up.settings.service
    secret = token(service)

    def ask(stage: str) -> tuple[int, Any]:
        body = {"template": "garage", "values": {"team_name": team, "stage": stage}}
        headers = {SECRET_HEADER: secret}
        url = f"{service.url}/v1/tasks"
        with requests.post(url, json=body, headers=headers, timeout=60) as answer:
            return answer.status_code, answer.json()

    first, again, other = ask("stage2"), ask("stage2"), ask("stage3")

    assert (first[0], again[0], other[0]) == (201, 200, 409), (first, again, other)
    assert first[1]["output"] == again[1]["output"]
    assert "stage was 'stage2', asked for 'stage3'" in other[1]["error"]["message"]
    assert len(site.up.platform.forge.commits(order_of(team))) == 1


def test_every_commit_carries_operation_and_requester(
    orderkit: Command, site: Site, team: str
) -> None:
    done = orderkit(
        "order", "garage", f"team_name={team}", "stage=stage1", "--requester", "user:default/eve"
    )

    assert done.code == 0, done.err
    for repo in (order_of(team), site.ledger):
        newest = site.up.platform.forge.commits(repo, limit=1)[0]
        assert OPERATION in newest.message
        assert "user:default/eve" in newest.message


def test_status_list_trace_and_doctor_see_the_order(
    orderkit: Command, site: Site, ordered: str
) -> None:
    status = orderkit("status", f"garage-{ordered}", "--json").json
    (listed,) = [
        one
        for one in orderkit("list", "--json").json["orders"]
        if one["order"] == f"garage-{ordered}"
    ]
    tree = orderkit("trace", f"garage-{ordered}", "--json").json["tree"]
    doctor = orderkit("doctor", "--json").json

    assert (status["head"], status["ready"]) == (site.head(order_of(ordered)), True)
    assert listed["phase"] == "Ready"
    assert (tree["kind"], tree["ready"]) == ("Application", "True")
    assert [one for one in doctor["findings"] if one["verdict"] == "fail"] == []


def test_a_pushed_change_arrives_and_status_names_its_commit(
    orderkit: Command, site: Site, ordered: str, tmp_path: Path
) -> None:
    commit = _push(site, ordered, tmp_path, ("stage2", "stage3"))

    status = _until_status(orderkit, ordered, lambda found: found["ready"])

    assert (status["head"], status["revision"]) == (commit, commit)
    assert site.data(ordered) == {"stage": "stage3", "team": ordered}


def test_a_malformed_manifest_reddens_its_own_order_only(
    orderkit: Command, site: Site, ordered: str, tmp_path: Path
) -> None:
    _push(site, ordered, tmp_path, ("spec:", "broken: [\nspec:"))

    failing = _until_status(orderkit, ordered, lambda found: found["phase"] == "Failing")

    assert "xgarage.yaml" in failing["reason"]
    assert site.data(ordered) == {"stage": "stage2", "team": ordered}


def _push(site: Site, team: str, folder: Path, edit: tuple[str, str]) -> str:
    """Edit the XR in a clone and push it, with the bot's password; return the commit."""
    clone = folder / "clone"
    pair = ":".join(site.bot)
    url = site.gitea.url.replace("://", f"://{pair}@", 1)
    _git(folder, "clone", "--quiet", f"{url}/{order_of(team)}.git", str(clone))
    xr = clone / "manifests" / "xgarage.yaml"
    assert edit[0] in xr.read_text()
    xr.write_text(xr.read_text().replace(*edit))
    _git(clone, "commit", "--quiet", "--all", "--message", "by hand")
    _git(clone, "push", "--quiet", "origin", "main")
    deliver_main(site.up.platform, RepoId(team, f"garage-{team}"))
    return _git(clone, "rev-parse", "HEAD")


def _git(folder: Path, *arguments: str) -> str:
    person = ("-c", "user.name=Eve", "-c", "user.email=eve@example.org")
    done = subprocess.run(
        ["git", *person, *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_TERMINAL_PROMPT": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_orders_of_several_teams_at_once_are_all_registered_once(
    orderkit: Command, site: Site
) -> None:
    """They race for the ledger's branch, which Gitea answers with 403 to all but one."""
    process = as_process(site.up.state / PLATFORM_FILE)
    teams = [f"racer-{number}" for number in range(4)]
    for team in teams:
        assert orderkit("team", "add", team).code == 0

    with ThreadPoolExecutor(len(teams)) as threads:
        done = list(
            threads.map(
                lambda team: process("order", "garage", f"team_name={team}", "stage=stage1"), teams
            )
        )

    assert [one.code for one in done] == [0] * len(teams), [one.err for one in done]
    history = [one.message for one in site.up.platform.forge.commits(site.ledger, limit=1000)]
    for team in teams:
        path = PurePosixPath("apps", team, f"garage-{team}.yaml")
        assert len(site.up.platform.forge.commits(site.ledger, path=path)) == 1
        assert site.data(team) == {"stage": "stage1", "team": team}
    operations = [message.partition(OPERATION)[2].partition("\n")[0] for message in history]
    assert len(set(operations)) == len(operations)


@pytest.mark.parametrize(
    "after_s", [0.7, 1.4, *(pytest.param(s, marks=pytest.mark.soak) for s in (1.0, 2.0, 3.0))]
)
def test_a_killed_order_is_finished_by_the_same_command(
    orderkit: Command, site: Site, team: str, after_s: float
) -> None:
    """
    Wherever the kill falls: one commit in the order's repository, one in the ledger.

    Beside it at most the one that changes nothing, after a kill in Gitea's first push.
    """
    order = ["order", "garage", f"team_name={team}", "stage=stage1"]
    platform_file = str(site.up.state / PLATFORM_FILE)
    process = subprocess.Popen(
        [sys.executable, "-m", "orderkit", *order, "--platform", platform_file],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    process.wait()

    done = orderkit(*order)

    assert done.code == 0, done.err
    path = PurePosixPath("apps", team, f"garage-{team}.yaml")
    history = site.up.platform.forge.commits(order_of(team))
    assert len([each for each in history if not each.operation.endswith("-noted")]) == 1
    assert len(site.up.platform.forge.commits(site.ledger, path=path)) == 1


def test_an_ended_order_leaves_an_archived_repository_and_its_tombstone(
    orderkit: Command, site: Site, ordered: str
) -> None:
    done = orderkit("destroy", "--yes", f"garage-{ordered}", "--json")

    assert (done.code, done.json["repository"]) == (0, "archive"), done.err
    found = site.up.platform.forge.repo(order_of(ordered))
    assert found is not None
    assert found.archived
    cluster = site.up.platform.cluster
    assert cluster.get(ObjectKey(NAMESPACE, f"garage-{ordered}")) is None
    assert "tombstone" in orderkit("status", f"garage-{ordered}").err


def test_ending_twice_is_ending_once_and_deleting_frees_the_name(
    orderkit: Command, site: Site, ordered: str
) -> None:
    assert orderkit("destroy", "--yes", f"garage-{ordered}").code == 0
    ledger = site.head(site.ledger)

    again = orderkit("destroy", "--yes", f"garage-{ordered}")

    assert (again.code, "ended already" in again.out) == (0, True)
    assert site.head(site.ledger) == ledger
    order = ("order", "garage", f"team_name={ordered}", "stage=stage1")
    assert orderkit(*order).code == 3
    assert orderkit("destroy", "--yes", f"garage-{ordered}", "--delete-repository").code == 0
    assert site.up.platform.forge.repo(order_of(ordered)) is None
    assert orderkit(*order).code == 0


@pytest.mark.parametrize(
    ("scopes", "said"),
    [
        (["read:repository", "read:organization", "read:user"], "missing scope"),
        (["write:user"], "missing scope"),
    ],
)
def test_a_token_without_the_scopes_writes_nothing_and_says_which_is_missing(
    orderkit: Command, site: Site, team: str, scopes: list[str], said: str
) -> None:
    token = site.up.state / f"token-{secrets.token_hex(3)}"
    token.write_text(add_token(site.gitea.url, site.bot, scopes))
    settings = changed(site.up.settings, forge=ForgeSettings(site.gitea.url, token))
    path = site.up.state / f"{token.name}.yaml"
    path.write_text(settings.to_yaml())
    ledger = site.head(site.ledger)

    done = orderkit("order", "garage", f"team_name={team}", "stage=stage1", platform_file=path)

    assert done.code == 1, done.out
    assert said in done.err
    assert site.head(site.ledger) == ledger
    assert site.head(order_of(team)) is None


def test_a_user_without_rights_writes_nothing_and_hears_it(
    orderkit: Command, site: Site, team: str
) -> None:
    stranger = add_user(site.gitea, f"stranger-{secrets.token_hex(3)}")
    token = site.up.state / stranger[0]
    token.write_text(add_token(site.gitea.url, stranger, SCOPES))
    path = site.up.state / f"{stranger[0]}.yaml"
    path.write_text(changed(site.up.settings, forge=ForgeSettings(site.gitea.url, token)).to_yaml())

    done = orderkit("order", "garage", f"team_name={team}", "stage=stage1", platform_file=path)

    assert done.code == 1, done.out
    assert site.head(order_of(team)) is None
