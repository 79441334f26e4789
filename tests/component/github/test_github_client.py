"""The GitHub client on the embedded forge's face: an App, limits, late reads, statuses, modes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import pygit2
import pytest
import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from ground.errors import (
    AccessError,
    ConflictError,
    InvalidInputError,
    MovedError,
    NotFoundError,
    RefusedError,
    TooFastError,
)
from ground.names import BlobSha, RepoId
from orderkit.adapters.github import GitHubForge, transport
from orderkit.adapters.github.reading import app_secret
from orderkit.adapters.github.transport import Pacer
from orderkit.core.platform.settings import ForgeApp
from orderkit.ports.forge import CommitStatus, FileChange, Operation, TeamRight
from orderkit.ports.urgency import background
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forge import EmbeddedForge
from orderkit_standins.forge.github.apps import InstalledApp

TOKEN = "c" * 40
BOT = "order-bot"


@dataclass
class World:
    """A forge and the owner's client."""

    forge: EmbeddedForge
    url: str
    client: GitHubForge
    folder: Path
    count: int = 0

    def repo(self) -> RepoId:
        self.count += 1
        repo = RepoId("team", f"r{self.count}")
        self.client.ensure_repo(repo, description="")
        return repo

    def write(self, repo: RepoId, path: str, text: str, seen: str | None = None) -> str:
        change = FileChange(PurePosixPath(path), text.encode(), BlobSha(seen) if seen else None)
        self.count += 1
        operation = Operation(f"op-{self.count}", "somebody", "Change it")
        return self.client.write(repo, [change], operation).commit


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    forge = EmbeddedForge(tmp_path / "forge")
    server = HttpServer(forge.app, bind("forge", 0))
    server.start()
    forge.set_base_url(server.url)
    forge.ensure_user("warden", "warden-pw1", admin=True)
    forge.ensure_token("warden", "t", TOKEN, ["all"])
    with GitHubForge(server.url, token=TOKEN, pacer=Pacer()) as client:
        client.ensure_org("team")
        yield World(forge, server.url, client, tmp_path)
    server.stop()
    forge.close()


@pytest.fixture
def app(world: World) -> ForgeApp:
    """An App that is installed, and owns the organisation as GitHub lets an App."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(
        encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(
        encoding, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (world.folder / "key.pem").write_bytes(private)
    world.forge.ensure_user(BOT, "bot-password1", admin=True)
    world.forge.github.apps.known[7] = InstalledApp(7, BOT, public.decode())
    return ForgeApp(7, world.folder / "key.pem")


def test_an_app_writes_with_a_token_of_its_installation(world: World, app: ForgeApp) -> None:
    repo = world.repo()

    with GitHubForge(world.url, app=app, pacer=Pacer()) as client:
        operation = Operation("op-app", "user:default/eve", "Write it")
        made = client.write(repo, [FileChange(PurePosixPath("a"), b"1", None)], operation)
        again = client.write(repo, [FileChange(PurePosixPath("b"), b"2", None)], operation)

        assert client.user() == f"{BOT}[bot]"
        assert client.missing_rights(repo) == ()
        assert client.protect_branch(repo, "main", checks=["c"])
        assert client.blocking_rule(repo, "main") == ""
        client.write(repo, [FileChange(PurePosixPath("c"), b"3", None)], operation)
    commits = world.client.commits(repo)
    assert {made.commit, again.commit} <= {commit.id for commit in commits}
    assert commits[0].requester == "user:default/eve"


def test_each_permission_that_an_app_lacks_is_named_with_the_verbs_that_need_it(
    world: World, app: ForgeApp
) -> None:
    """As docs/forge.md lists them."""
    repo, apps = world.repo(), world.forge.github.apps.known
    page = Path(__file__).parents[3] / "docs/forge.md"
    table = page.read_text().partition("## Least rights")[2].partition("\n## ")[0]
    lines = {
        *("contents: write", "pull_requests: write", "statuses: write", "administration: write"),
        *("members: write", "organization_hooks: write", "organization_administration: read"),
    }
    with GitHubForge(world.url, app=app, pacer=Pacer()) as client:
        for line in lines:
            apps[7] = replace(apps[7], lacks=(line.partition(":")[0],))
            (missing,) = client.missing_rights(repo)
            assert missing.startswith(f"{line} (for ")
            assert f"`{line}`" in table
            verbs = missing.partition("(for ")[2].rstrip(")").split(", ")
            row = next(row for row in table.splitlines() if f"`{line}`" in row)
            assert all(f"`{verb}`" in row or verb in row for verb in verbs), row


def test_a_token_that_ends_is_renewed_before_it_ends(
    world: World, app: ForgeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo, bot = world.repo(), world.forge.accounts.find_user(BOT)
    assert bot is not None
    with GitHubForge(world.url, app=app, pacer=Pacer()) as client:
        client.repo(repo)
        client.head(repo)
        one = len(world.forge.accounts.tokens(bot))
        monkeypatch.setattr(transport, "_EARLY_S", 3_700.0)
        client.repo(repo)

        assert one == 1
        assert len(world.forge.accounts.tokens(bot)) > one
        for token in world.forge.accounts.tokens(bot):
            world.forge.accounts.delete_token(bot, token.id)
        monkeypatch.setattr(transport, "_EARLY_S", 300.0)
        assert client.repo(repo) is not None  # the forge forgot ours: asked for again


def test_a_wrong_key_and_a_missing_one_are_told(world: World, app: ForgeApp) -> None:
    repo = RepoId("team", "x")
    (world.folder / "key.pem").write_text("no key")
    with GitHubForge(world.url, app=app) as client, pytest.raises(InvalidInputError, match="RSA"):
        client.repo(repo)
    missing = ForgeApp(7, world.folder / "nowhere.pem")
    with GitHubForge(world.url, app=missing) as client, pytest.raises(NotFoundError, match="key"):
        client.repo(repo)


def test_no_message_holds_a_token_or_the_key(world: World, app: ForgeApp) -> None:
    world.forge.github.apps.known.clear()
    secret = (world.folder / "key.pem").read_text()
    with GitHubForge(world.url, app=app) as client, pytest.raises(AccessError) as refused:
        client.repo(RepoId("team", "x"))

    text = f"{refused.value} {refused.value.hint}"
    assert secret.splitlines()[1] not in text
    assert "eyJ" not in text  # how every signed token begins


def test_a_refusal_for_speed_is_waited_for_and_nothing_is_lost(world: World) -> None:
    repo = world.repo()
    world.write(repo, "n", "0")
    world.forge.github.limits.created_per_minute = 1
    timer = threading.Timer(
        1.5, lambda: setattr(world.forge.github.limits, "created_per_minute", 0)
    )
    timer.start()

    world.write(repo, "a", "1")
    timer.join()

    assert len(world.client.commits(repo)) == 2


def test_who_is_refused_for_speed_again_and_again_is_told_when_to_come_back(world: World) -> None:
    repo = world.repo()
    world.write(repo, "n", "0")
    world.forge.github.limits.created_per_minute = 1

    with pytest.raises(TooFastError, match="used up for") as refused:
        world.write(repo, "a", "1")

    assert refused.value.retryable
    assert len(world.client.commits(repo)) == 1


def test_a_head_that_is_shown_late_makes_no_conflict_of_ours(world: World) -> None:
    """GitHub may show the old head for a while after a write."""
    repo = world.repo()
    world.write(repo, "n", "0")
    world.forge.github.limits.stale_reads_s = 2.0
    made = []
    for number in range(1, 4):
        seen = world.client.read(repo, PurePosixPath("n"), "main")
        assert seen is not None
        assert seen.text == str(number - 1)
        made.append(world.write(repo, "n", str(number), seen.sha))

    history = [commit.id for commit in world.client.commits(repo)]
    assert history[:3] == made[::-1]
    with GitHubForge(world.url, token=TOKEN, pacer=Pacer()) as other:
        stale = FileChange(PurePosixPath("n"), b"9", BlobSha("1" * 40))
        with pytest.raises(ConflictError):
            other.write(repo, [stale], Operation("op-other", "x", "y"))


def test_an_executable_keeps_its_mode(world: World) -> None:
    repo = world.repo()
    world.write(repo, "run.sh", "1")
    path = world.forge.repository_path(repo)
    assert path is not None
    git = pygit2.Repository(str(path))
    _make_executable(git, "run.sh")
    head = world.client.head(repo)
    assert head is not None
    assert world.client.special_files(repo, head)[PurePosixPath("run.sh")].mode == 0o100755
    seen = world.client.read(repo, PurePosixPath("run.sh"), "main")
    assert seen is not None

    commit = world.write(repo, "run.sh", "2", seen.sha)

    special = world.client.special_files(repo, commit)  # type: ignore[arg-type]  # a text
    assert special[PurePosixPath("run.sh")].mode == 0o100755


def _make_executable(git: pygit2.Repository, name: str) -> None:
    head = git.references["refs/heads/main"].peel(pygit2.Commit)
    builder = git.TreeBuilder(head.tree)
    builder.insert(name, head.tree[name].id, pygit2.enums.FileMode.BLOB_EXECUTABLE)
    person = pygit2.Signature("a", "a@x", 1_700_000_000, 0)
    new = git.create_commit(None, person, person, "chmod", builder.write(), [head.id])
    git.references["refs/heads/main"].set_target(new)


def test_a_thousand_statuses_of_a_commit_are_the_end(world: World) -> None:
    repo = world.repo()
    commit = world.write(repo, "n", "0")
    world.forge.github.limits.statuses_max = 2
    for text in ("one", "two"):
        world.client.set_status(repo, commit, CommitStatus("plan", "pending", text))  # type: ignore[arg-type]  # a text

    with pytest.raises(RefusedError, match="maximum number of statuses"):
        world.client.set_status(repo, commit, CommitStatus("plan", "success", "three"))  # type: ignore[arg-type]  # a text


def test_a_warning_is_a_success_that_says_so(world: World) -> None:
    repo = world.repo()
    commit = world.write(repo, "n", "0")
    warning = CommitStatus("plan", "warning", "look twice")

    world.client.set_status(repo, commit, warning)  # type: ignore[arg-type]  # a text
    world.client.set_status(repo, commit, warning)  # type: ignore[arg-type]  # a text

    assert world.client.statuses(repo, commit) == (warning,)  # type: ignore[arg-type]  # a text


def test_a_team_of_everything_gets_later_repositories_by_the_request_that_makes_them(
    world: World,
) -> None:
    world.forge.ensure_user("dev", "dev-password1")
    world.forge.ensure_token("dev", "t", "e" * 40, ["all"])
    world.client.ensure_access("team", "devs", right=TeamRight.WRITE, members=["dev"])
    created = world.forge.github.limits.created
    before = len(created)

    later = world.repo()

    assert len(created) - before == 1
    with GitHubForge(world.url, token="e" * 40, pacer=Pacer()) as dev:
        found = dev.repo(later)
        assert found is not None
        assert found.can_write


def test_a_repository_that_is_renamed_is_read_by_no_old_name(world: World) -> None:
    """GitHub's redirect names only a number; the error names the new place."""
    repo = world.repo()
    world.write(repo, "n", "0")
    world.client.rename_repo(repo, "elsewhere")

    with pytest.raises(MovedError) as moved:
        world.client.commits(repo)

    assert moved.value.place == "team/elsewhere"


def test_a_foreign_app_that_may_write_is_a_holder(world: World, app: ForgeApp) -> None:
    found = world.client.foreign_access("team")

    assert (f"app:{BOT}:{app.id}", "write") in [(g.holder, g.right) for g in found]
    with GitHubForge(world.url, app=app, pacer=Pacer()) as client:
        assert not [g for g in client.foreign_access("team") if g.holder.startswith("app:")]


def test_unchanged_answers_are_not_sent_again(world: World) -> None:
    repo = world.repo()
    commit = world.write(repo, "n", "0")
    first, again = world.client.commits(repo), world.client.commits(repo)

    assert first == again
    assert [each.id for each in again] == [commit]
    newer = world.write(repo, "m", "0")
    assert world.client.commits(repo)[0].id == newer


def test_argo_cd_reads_as_an_app_of_its_own(world: World, app: ForgeApp) -> None:
    """GitHub makes no accounts by its API: without an App, platform.yaml has to name a token."""
    with pytest.raises(AccessError) as refused:
        world.client.add_reader("team")
    assert "forge.argocdApp" in refused.value.hint
    with GitHubForge(world.url, token=TOKEN, argocd_app=app, pacer=Pacer()) as client:
        assert client.capabilities.makes_readers
        reader = client.add_reader("team")
        client.remove_reader("team", reader.name)

    assert reader.secret["githubAppID"] == "7"
    assert reader.secret["githubAppEnterpriseBaseUrl"] == f"{world.url}/api/v3"
    assert "PRIVATE KEY" in reader.secret["githubAppPrivateKey"]
    assert "PRIVATE KEY" not in repr(reader)
    assert app_secret(app, "https://github.com", "https://api.github.com").keys() == {
        "githubAppID", "githubAppPrivateKey",
    }  # fmt: skip


@pytest.mark.parametrize(
    "widened",
    [
        {"rules": [{"type": "deletion"}]},
        {"bypass_actors": [{"actor_id": 7, "actor_type": "Integration", "bypass_mode": "always"}]},
        {"rules": [{"type": "update"}, {"type": "deletion"}, {"type": "non_fast_forward"}]},
    ],
    ids=["anyone may push", "another App gets past", "no check is required"],
)
def test_a_ruleset_that_lets_others_past_is_noticed_and_repaired(
    world: World, app: ForgeApp, widened: dict[str, Any]
) -> None:
    assert app.id == 7
    repo = world.repo()
    world.write(repo, "n", "0")
    client = world.client
    assert client.protect_branch(repo, "main", checks=["review"])
    headers = {"Authorization": f"Bearer {TOKEN}"}
    address = f"{world.url}/api/v3/repos/{repo}/rulesets"
    (found,) = requests.get(address, headers=headers, timeout=30).json()
    own = f"{address}/{found['id']}"
    whole = requests.get(own, headers=headers, timeout=30).json()
    fields = ("name", "target", "enforcement", "conditions", "rules", "bypass_actors")
    sent = {**{key: whole[key] for key in fields}, **widened}
    changed = requests.put(own, json=sent, headers=headers, timeout=30)
    assert changed.status_code == 200, changed.text

    assert not client.is_protected(repo, "main", checks=["review"])
    assert client.protect_branch(repo, "main", checks=["review"])
    assert client.is_protected(repo, "main", checks=["review"])


def test_a_tree_that_github_cuts_off_is_read_folder_by_folder(world: World) -> None:
    """GitHub answers 100,000 entries at most, and says ``truncated``: nothing may be missed."""
    repo = world.repo()
    paths = {PurePosixPath(f"apps/team-{n % 3}/order-{n}.yaml") for n in range(9)}
    for path in paths:
        world.write(repo, str(path), f"{path}\n")
    world.forge.github.limits.tree_entries_max = 3
    with GitHubForge(world.url, token=TOKEN) as reader:
        head = reader.head(repo)
        assert head is not None
        assert {p for p in reader.tree(repo, head) if p.parts[0] == "apps"} == paths
        path = PurePosixPath("apps/team-0/order-3.yaml")
        found = reader.read(repo, path, head)
        assert found is not None
        assert found.text == f"{path}\n"


def test_a_folder_that_github_cuts_off_is_refused(world: World) -> None:
    """Half of a ledger would look as if the other orders had ended."""
    repo = world.repo()
    for number in range(4):
        world.write(repo, f"apps/order-{number}.yaml", "a: 1\n")
    world.forge.github.limits.tree_entries_max = 3
    with GitHubForge(world.url, token=TOKEN) as reader:
        head = reader.head(repo)
        assert head is not None
        with pytest.raises(RefusedError, match="more entries than GitHub lists") as refused:
            reader.tree(repo, head)
    assert "split the repository" in refused.value.hint


def test_background_work_is_pushed_and_creates_no_content(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """No limit counts a push. Where only signed commits may be, GitHub makes them: by its API."""
    free, signed = world.repo(), world.repo()
    world.write(free, "n", "0")
    world.write(signed, "n", "0")
    _demand_signatures(world, signed)
    created = world.forge.github.limits.created
    created.clear()

    with background():
        world.write(free, "x", "1")
        world.write(free, "y", "1")
    assert list(created) == []
    assert world.client.declined == set()

    with background(), caplog.at_level("WARNING"):
        world.write(signed, "x", "1")
        world.write(signed, "y", "1")
    assert list(created) == ["POST /api/graphql"] * 2
    assert world.client.declined == {(signed, "main")}
    assert len(caplog.messages) == 1
    assert f"{signed} goes through the API, which is slower" in caplog.messages[0]

    world.write(free, "z", "1")  # a person's change is signed by GitHub
    assert list(created) == ["POST /api/graphql"] * 3


def test_a_push_keeps_the_token_out_of_errors_and_addresses(world: World) -> None:
    """Also out of what the transport remembers: credentials are headers of one request."""
    repo = world.repo()
    world.write(repo, "n", "0")
    with GitHubForge(world.url, token="0" * 39 + "1", pacer=Pacer()) as stranger, background():
        change = FileChange(PurePosixPath("x"), b"1", None)
        with pytest.raises(AccessError) as refused:
            stranger.write(repo, [change], Operation("op", "somebody", "Change it"))

        assert "0" * 39 not in str(refused.value) + refused.value.hint
        assert "0" * 39 not in stranger.git_address(repo)


def _demand_signatures(world: World, repo: RepoId) -> None:
    """Have an owner require signed commits on main."""
    ruleset = {
        "name": "signed",
        "target": "branch",
        "enforcement": "active",
        "conditions": {"ref_name": {"include": ["refs/heads/main"], "exclude": []}},
        "rules": [{"type": "required_signatures"}],
    }
    headers = {"Authorization": f"Bearer {TOKEN}"}
    address = f"{world.url}/api/v3/repos/{repo}/rulesets"
    made = requests.post(address, json=ruleset, headers=headers, timeout=30)
    assert made.status_code == 201, made.text
