"""What must hold after a kill, read from the disk and, once the platform runs again, by its API."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from tests.crash.interposed import Exchange

from ground.names import CommitSha, RepoId, TeamName
from ground.objects.kube_objects import (
    APPLICATION,
    CONFIG_MAP,
    NAMESPACE,
    Kind,
    ObjectKey,
    dig,
    metadata,
)
from orderkit.adapters.forges.calls import ForgeClient
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit.cli.connecting import connect, load_settings
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.order import order_report
from orderkit.flows.platform import Platform, get_object, ledger_snapshot, read_text
from orderkit.ports.forge import OPERATION_TRAILER, Webhook

XGARAGE = Kind("blog.opsbogus.dev", "v1alpha1", "XGarage")
_DATABASES = ("forge/forge.sqlite", "cluster/cluster.sqlite", "catalog/catalog.sqlite")


@contextlib.contextmanager
def looking_at(state: Path) -> Iterator[Platform]:
    """Connect to a running platform past the interposer; close the connections again."""
    platform = connect(load_settings(str(state / "platform.yaml")))
    try:
        yield platform
    finally:
        assert isinstance(platform.cluster, KubeCluster)
        assert isinstance(platform.forge, ForgeClient)
        platform.cluster.close()
        platform.forge.close()


# --- git, past everything


def git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(repository), "-c", "safe.directory=*", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, f"git {arguments} in {repository}: {done.stdout}{done.stderr}"
    return done.stdout


def bare(state: Path, repo: RepoId) -> Path:
    return state / "forge" / "repos" / repo.owner / f"{repo.name}.git"


def commits(state: Path, repo: RepoId, *limits: str) -> list[str]:
    """Return the commits of branch main, newest first."""
    return git(bare(state, repo), "log", "--format=%H", "main", *limits).split()


def _all_commits(state: Path, repo: RepoId) -> list[str]:
    """Return the commits of all branches."""
    return git(bare(state, repo), "log", "--format=%H", "--branches").split()


def operations(state: Path, repo: RepoId) -> list[str]:
    """Return the operation id of each commit that has one."""
    text = git(bare(state, repo), "log", "--format=%B", "main")
    return re.findall(rf"^{OPERATION_TRAILER}: (.+)$", text, flags=re.MULTILINE)


LEDGER = RepoId("platform", "ledger")
PACK = RepoId("platform", "pack")


# --- what a dead platform left on disk


def versions_hold(state: Path, seen: Iterable[Exchange], scratch: Path) -> None:
    """Assert that the disk of a killed cluster is not older than what a client was shown."""
    shown = max(
        (_version(e.answer) for e in seen if e.part == "cluster" and e.succeeded), default=0
    )
    copy = scratch / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for file in (state / "cluster").glob("cluster.sqlite*"):
        shutil.copy(file, copy)
    if not (copy / "cluster.sqlite").exists():
        assert shown == 0
        return
    with contextlib.closing(sqlite3.connect(copy / "cluster.sqlite")) as db:
        tables = db.execute("SELECT name FROM sqlite_master WHERE name = 'changes'").fetchall()
        stored = tables and db.execute("SELECT MAX(version) FROM changes").fetchone()[0]
    assert shown <= (stored or 0), f"a client saw version {shown}, the disk has {stored}"


def _version(answer: Any) -> int:
    found = dig(answer, "metadata", "resourceVersion") if isinstance(answer, dict) else None
    return int(found) if isinstance(found, str) and found.isdigit() else 0


def state_is_sound(state: Path) -> None:
    """Assert that what a killed platform left is whole: git, databases, no operation twice."""
    for repository in sorted((state / "forge" / "repos").glob("*/*.git")):
        git(repository, "fsck", "--full", "--strict", "--no-dangling")
    for name in _DATABASES:
        with contextlib.closing(sqlite3.connect(state / name)) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",), name
            assert db.execute("PRAGMA foreign_key_check").fetchall() == [], name
    for repo in (LEDGER, PACK):
        twice = [id_ for id_, times in Counter(operations(state, repo)).items() if times > 1]
        assert twice == [], f"{repo} has an operation twice"


def no_leftovers(state: Path) -> None:
    """Assert that a platform that runs again removed what blocks writers, and half creations."""
    repos = state / "forge" / "repos"
    locks = [path for path in repos.rglob("*.lock") if "forge.lock" not in path.name]
    assert locks == []
    assert [path for path in repos.rglob(".new-*") if path.is_dir()] == []


# --- what was acknowledged


def still_there(platform: Platform, state: Path, seen: Sequence[Exchange]) -> None:
    """Assert that each write a client was told of is there, unless a later call removed it."""
    removed = {e.path.rpartition("/")[2] for e in seen if e.method == "DELETE"}
    for exchange in seen:
        if exchange.acknowledged and not _undone(exchange, removed):
            assert _holds(platform, state, exchange), f"acknowledged and lost: {exchange}"


def _undone(exchange: Exchange, removed: set[str]) -> bool:
    repo = re.search(r"/repos/[^/]+/([^/]+)", exchange.path)
    location = dig(exchange.answer or {}, "location", "id")
    created = dig(exchange.answer or {}, "name")
    return bool({repo and repo[1], location, created} & removed - {None})


def _holds(platform: Platform, state: Path, exchange: Exchange) -> bool:
    path = exchange.path.partition("?")[0].strip("/").split("/")
    match exchange.part:
        case "forge":
            return _forge_holds(platform, state, exchange, path)
        case "service":
            return exchange.answer["ledgerCommit"] in commits(state, LEDGER)
        case "portal" if exchange.method == "POST":
            target = exchange.sent["target"]
            return target in {each.target for each in platform.catalog.locations()}
        case "portal" if path[-2] == "locations":
            return path[-1] not in {each.id for each in platform.catalog.locations()}
        case "cluster" if exchange.method == "PATCH":
            return True  # a refresh was asked for; that versions only grow is judged on disk
        case _:
            raise AssertionError(f"nobody said what acknowledging {exchange.pattern} promises")


def _posted(platform: Platform, state: Path, exchange: Exchange, repo: RepoId, what: str) -> bool:
    """Say whether what was posted to a repository is there."""
    match what:
        case "contents" if platform.forge.repo(repo) is None:
            return _may_be_deleted(platform, repo)  # its answer lost with the client
        case "contents":
            return exchange.answer["commit"]["sha"] in _all_commits(state, repo)
        case "branches":
            return platform.forge.head(repo, exchange.sent["new_branch_name"]) is not None
        case "pulls":
            return platform.forge.pull(repo, exchange.answer["number"]) is not None
        case "branch_protections":
            sent = exchange.sent
            checks = tuple(sent["status_check_contexts"])
            return platform.forge.is_protected(repo, sent["rule_name"], checks=checks)
        case _:
            raise AssertionError(f"nobody said what acknowledging {exchange.pattern} promises")


def _said(platform: Platform, exchange: Exchange, repo: RepoId, about: tuple[str, str]) -> bool:
    """Say whether what was said of a commit or a pull request stands there."""
    match exchange.method, about:
        case "POST", ("statuses", commit):
            known = platform.forge.statuses(repo, CommitSha(commit))
            return exchange.sent["context"] in {status.context for status in known}
        case "PATCH", ("pulls", number):
            pull = platform.forge.pull(repo, int(number))
            return pull is not None and pull.title == exchange.sent["title"]
        case _:
            raise AssertionError(f"nobody said what acknowledging {exchange.pattern} promises")


def _made(platform: Platform, exchange: Exchange, owner: str, what: str) -> bool:
    """Say whether what was made in an organisation is there."""
    sent = exchange.sent
    match what:
        case "repos":
            return platform.forge.repo(RepoId(owner, sent["name"])) is not None
        case "hooks":
            webhook = Webhook(sent["config"]["url"], tuple(sent["events"]))
            return platform.forge.has_webhook(owner, webhook)
        case _:
            raise AssertionError(f"nobody said what acknowledging {exchange.pattern} promises")


def _done_to_org(platform: Platform, exchange: Exchange, path: list[str]) -> bool:
    match exchange.method, path:
        case "POST", []:
            return not platform.forge.ensure_org(exchange.sent["username"])
        case "POST", [owner, what]:
            return _made(platform, exchange, owner, what)
        case "DELETE", [owner, "hooks", _]:  # of two for one address, a retry keeps one
            assert platform.webhook, "nobody asked for webhooks"
            return platform.forge.has_webhook(owner, platform.webhook)
        case _:
            raise AssertionError(f"nobody said what acknowledging {exchange.pattern} promises")


def _forge_holds(platform: Platform, state: Path, exchange: Exchange, path: list[str]) -> bool:
    match exchange.method, path[2:]:
        case _, ["orgs", *of_org]:
            return _done_to_org(platform, exchange, of_org)
        case "POST", ["repos", owner, name, what]:
            return _posted(platform, state, exchange, RepoId(owner, name), what)
        case _, ["repos", owner, name, what, about]:
            return _said(platform, exchange, RepoId(owner, name), (what, about))
        case "PATCH", ["repos", owner, name]:
            repository = platform.forge.repo(RepoId(owner, name))
            is_archive = "archived" in exchange.sent
            return repository is not None and (
                repository.archived if is_archive else not repository.may_squash
            )
        case "DELETE", ["repos", owner, name]:
            return platform.forge.repo(RepoId(owner, name)) is None
        case _:
            raise AssertionError(f"nobody said what acknowledging {exchange.pattern} promises")


def _may_be_deleted(platform: Platform, repo: RepoId) -> bool:
    """Say whether the ledger records an end that deletes the repository."""
    records = ledger_files(platform, f"data/{repo.owner}/{repo.name}/")
    return any("repository: delete" in ledger_text(platform, path) for path in records)


# --- what a finished order, change or end must be


def order_of(team: str) -> str:
    return f"garage-{team}"


def repo_of(team: str) -> RepoId:
    return RepoId(team, order_of(team))


def order_is_whole(platform: Platform, state: Path, team: str, stage: str, *, edits: int) -> None:
    """Assert that a live order is there once in every part: commits, ledger, catalog, cluster."""
    order = order_of(team)
    assert order_report.status(platform, order).state.ready
    assert len(commits(state, repo_of(team))) == 1 + edits
    path = f"apps/{team}/{order}.yaml"
    assert len(commits(state, LEDGER, "--diff-filter=A", "--", path)) == 1
    assert len(locations_of(platform, team)) == 1
    assert names(platform, APPLICATION, order) == [order]
    assert names(platform, XGARAGE, order) == [order]
    assert get_object(platform.cluster, ObjectKey(NAMESPACE, order)) is not None
    sheet = get_object(platform.cluster, ObjectKey(CONFIG_MAP, "spec-sheet", order))
    assert dig(sheet or {}, "data") == {"stage": stage, "team": team}


def order_is_gone(
    platform: Platform, state: Path, team: str, *, survivor: str, edits: int = 0
) -> None:
    """Assert that an ended order left its tombstone, and its repository if it shall stay."""
    order = order_of(team)
    for key in (
        application_key(order),
        ObjectKey(XGARAGE, order),
        ObjectKey(NAMESPACE, order),
        ObjectKey(CONFIG_MAP, "spec-sheet", order),
    ):
        assert get_object(platform.cluster, key) is None, f"{key} is left"
    assert locations_of(platform, team) == []
    assert ledger_files(platform, f"apps/{team}/{order}.yaml") == []
    (tombstone,) = ledger_files(platform, f"data/{team}/{order}/")
    assert "/tombstone-" in tombstone
    repository = platform.forge.repo(repo_of(team))
    if survivor == "archive":
        assert repository is not None
        assert repository.archived
        assert len(commits(state, repo_of(team))) == 2 + edits, "the order and its emptying"
    else:
        assert repository is None


def ledger_files(platform: Platform, prefix: str) -> list[str]:
    paths = map(str, ledger_snapshot(platform).blobs)
    return sorted(path for path in paths if path.startswith(prefix))


def ledger_text(platform: Platform, path: str) -> str:
    return read_text(platform.forge, platform.ledger, PurePosixPath(path), "main") or ""


def locations_of(platform: Platform, team: str) -> list[str]:
    prefix = f"{platform.forge.base_url}/{repo_of(team)}/"
    found = [each.target for each in platform.catalog.locations()]
    return [target for target in found if target.startswith(prefix)]


def names(platform: Platform, kind: Kind, wanted: str) -> list[str]:
    found = [metadata(each)["name"] for each in platform.cluster.list(kind).items]
    return [name for name in found if name == wanted]


def identity(platform: Platform, state: Path, team: str) -> str:
    """Return what must stay the same of an order that nobody touches."""
    order = order_of(team)
    keys = (
        application_key(order),
        ObjectKey(XGARAGE, order),
        ObjectKey(NAMESPACE, order),
        ObjectKey(CONFIG_MAP, "spec-sheet", order),
    )
    uids = [metadata(get_object(platform.cluster, key) or {}).get("uid") for key in keys]
    return json.dumps([uids, commits(state, repo_of(team)), locations_of(platform, team)])


def team_is_whole(platform: Platform, state: Path, team: str) -> None:
    """Assert that a team can order and was entered into the ledger once."""
    assert not platform.forge.ensure_org(TeamName(team))
    assert len(commits(state, LEDGER, "--", f"teams/{team}.yaml")) == 1
