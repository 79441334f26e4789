"""
Drills on the embedded platform: a repository, the whole forge and the cluster are lost.

The tests follow one another on one platform.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from changingpack import changing_pack
from commands import Command, as_process, in_process
from documentedpages import ANY_PORT, running_platform

from ground.names import CommitSha, RepoId
from orderkit.cli.connecting import connect, load_settings
from orderkit.flows.install.delivery_hold import is_held
from orderkit.flows.platform import Platform

_S = 60.0


class Site:
    """A platform that runs, stops and starts."""

    def __init__(self, home: Path) -> None:
        self.home, self._stack = home, ExitStack()
        self.file = home / ".local/state/orderkit/platform.yaml"
        self.run: Command = as_process(self.file)
        self.backup = home / "backup"

    def start(self) -> None:
        options = (*ANY_PORT, f"--pack={self.home / 'pack'}", "--team=ae86", "--team=rx7")
        self._stack.enter_context(running_platform(self.home, options))

    def stop(self) -> None:
        self._stack.close()

    @property
    def platform(self) -> Platform:
        return connect(load_settings(str(self.file)))

    def order(self, team: str) -> None:
        done = self.run("order", "garage", f"team_name={team}", "stage=stage1")
        assert done.code == 0, done.err

    def phases(self) -> dict[str, str]:
        rows = self.run("list", "--json").json["orders"]
        return {row["order"]: row["phase"] for row in rows}

    def ready(self, *orders: str) -> None:
        """Wait until exactly these orders are there, all of them Ready."""
        end_s = time.monotonic() + _S
        while self.phases() != dict.fromkeys(orders, "Ready"):
            assert time.monotonic() < end_s, self.phases()
            time.sleep(0.5)

    def uids(self) -> dict[str, str]:
        """Return the XRs of the cluster: one that is made again has another uid."""
        kubeconfig = self.file.with_name("kubeconfig")
        assert kubeconfig.exists()
        platform = self.platform
        kind = next(k for k in _kinds(platform) if k.kind == "XGarage")
        return {
            xr["metadata"]["name"]: xr["metadata"]["uid"]
            for xr in platform.cluster.list(kind).items
        }

    def head(self, repo: str) -> CommitSha | None:
        return self.platform.forge.head(_repo(repo))

    def lose(self, *repos: str) -> None:
        for repo in repos:
            self.platform.forge.delete_repo(_repo(repo))

    def restore(self, *arguments: str, code: int) -> dict[str, Any]:
        done = self.run("restore", str(self.backup), "--json", *arguments)
        assert done.code == code, done.out + done.err
        return done.json


def _kinds(platform: Platform) -> list[Any]:
    from orderkit.flows.platform import published_pack

    return [kit.kind for kit in published_pack(platform).kits()]


def _repo(name: str) -> RepoId:
    repo = RepoId.parse(name)
    assert repo
    return repo


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("home")
    changing_pack(home / "pack")
    found = Site(home)
    found.start()
    try:
        for team in ("ae86", "rx7"):
            found.order(team)
        yield found
    finally:
        found.stop()


@pytest.fixture
def site(started: Site, capsys: pytest.CaptureFixture[str]) -> Site:
    started.run = in_process(started.file, capsys)
    return started


def test_a_backup_has_every_repository_and_writes_nothing(site: Site) -> None:
    before = site.head("platform/ledger")
    done = site.run("backup", str(site.backup), "--json")

    assert done.code == 0, done.err
    assert done.json["repositories"] == 4
    assert done.json["failures"] == []
    assert site.head("platform/ledger") == before
    written = yaml.safe_load((site.backup / "backup.yaml").read_text())["spec"]["repositories"]
    for repository in written:
        assert repository["head"] == site.head(repository["name"])
    assert site.backup.stat().st_mode & 0o077 == 0
    token = site.file.with_name("credentials").joinpath("forge-token").read_text().strip()
    config = [path.read_text() for path in site.backup.rglob("config")]
    assert config
    assert not any(token in text for text in config)


def test_a_forced_push_and_a_deleted_branch_take_nothing_out_of_a_backup(site: Site) -> None:
    """A team member may push both."""
    mirror = site.backup / "rx7/garage-rx7.git"
    first = site.head("rx7/garage-rx7")
    platform = site.platform
    url = f"{platform.forge.base_url}/rx7/garage-rx7.git"
    store = site.file.with_name("credentials") / "git"
    git = ["git", "-C", str(mirror), "-c", f"credential.helper=store --file={store}"]
    subprocess.run([*git, "push", "-q", url, "refs/heads/main:refs/heads/side"], check=True)
    assert site.run("backup", str(site.backup)).code == 0
    subprocess.run([*git, "push", "-q", url, ":refs/heads/side"], check=True)
    assert site.run("backup", str(site.backup)).code == 0

    heads = subprocess.run([*git, "for-each-ref"], check=True, capture_output=True, text=True)
    assert f"{first} commit\trefs/heads/side" in heads.stdout


def test_a_backup_of_another_platform_is_refused(site: Site, tmp_path: Path) -> None:
    text = (site.backup / "backup.yaml").read_text()
    (tmp_path / "backup.yaml").write_text(text.replace("name: embedded", "name: other"))
    for command in ("backup", "restore"):
        done = site.run(command, str(tmp_path))
        assert done.code == 4
        assert "backup.yaml: metadata.name is other, but platform.yaml names embedded" in done.err
    (tmp_path / "backup.yaml").write_text(text.replace("v1alpha1", "v1"))
    done = site.run("restore", str(tmp_path))
    assert "format orderkit.dev/v1 is newer than" in done.err
    assert site.run("restore", str(tmp_path / "empty")).code == 1


@pytest.mark.parametrize("name", ["../x", "../../x", "ae86/..", "/etc/x", "ae86/../../x"])
def test_a_name_in_a_backup_cannot_leave_its_folder(site: Site, tmp_path: Path, name: str) -> None:
    """A repository beside the folder is neither restored nor touched."""
    folder = tmp_path / "outer/backup"
    shutil.copytree(site.backup, folder)
    for outside in ("x.git", "outer/x.git"):
        shutil.copytree(site.backup / "ae86/garage-ae86.git", tmp_path / outside)
    text = (folder / "backup.yaml").read_text()
    (folder / "backup.yaml").write_text(text.replace("name: ae86/garage-ae86", f"name: {name}"))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}

    done = site.run("restore", str(folder))

    assert (done.code, done.out) == (2, "")
    assert f"backup.yaml: name: '{name}' is no OWNER/NAME" in done.err
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert not is_held(site.platform.cluster)


def test_one_lost_repository_comes_back_with_its_history(site: Site) -> None:
    head, uids = site.head("ae86/garage-ae86"), site.uids()
    site.lose("ae86/garage-ae86")
    dry = site.restore("--repository", "ae86/garage-ae86", "--dry-run", code=0)
    assert dry["written"] == ["ae86/garage-ae86"]
    assert site.head("ae86/garage-ae86") is None

    done = site.restore("--repository", "ae86/garage-ae86", code=0)

    assert (done["written"], done["report"], done["held"]) == (["ae86/garage-ae86"], [], False)
    assert site.head("ae86/garage-ae86") == head
    assert not is_held(site.platform.cluster)
    site.ready("garage-ae86", "garage-rx7")
    assert site.uids() == uids
    assert site.restore(code=0)["written"] == [], "what is there is never written"


def test_a_repository_that_the_backup_lacks_is_not_restored(site: Site) -> None:
    refused = site.restore("--repository", "ae86/garage-none", code=1)

    assert "the backup has no repository ae86/garage-none" in refused["error"]["message"]


def test_a_lost_forge_is_reconciled_with_a_newer_cluster(site: Site) -> None:
    """After the backup, one order was changed, one ended, and a new team ordered one."""
    assert site.run("change", "garage-ae86", "note=later").code == 0
    assert site.run("destroy", "garage-rx7", "--yes").code == 0
    assert site.run("team", "add", "s13").code == 0
    site.order("s13")
    uids = site.uids()
    site.lose(
        "ae86/garage-ae86", "rx7/garage-rx7", "s13/garage-s13", "platform/ledger", "platform/pack"
    )

    began = site.run("bootstrap", "--pack", str(site.home / "pack"), "--no-probe")
    assert began.code == 4, "an empty ledger would remove all teams"
    assert "platform/ledger is missing on the forge, but the cluster delivers 2 orders" in began.err

    report = site.restore(code=10)
    rows = {row["name"]: row for row in report["report"]}
    assert {name: row["case"] for name, row in rows.items()} == {
        "garage-ae86": "older",
        "garage-rx7": "ended",
        "garage-s13": "newer",
    }
    assert report["held"]
    assert is_held(site.platform.cluster)
    time.sleep(3)
    assert site.uids() == uids, "nothing is deleted, nothing made again"

    wrong = site.run("restore", str(site.backup), "--accept", "0" * 12)
    assert (wrong.code, is_held(site.platform.cluster)) == (3, True)
    wrong = site.run("restore", str(site.backup), "--accept", report["code"], "--ended=garage-ae86")
    assert (wrong.code, is_held(site.platform.cluster)) == (2, True)

    assert "a restore holds it until its report is accepted" in site.run("doctor").out
    assert rows["garage-ae86"]["otherwise"] == "orderkit change garage-ae86 note=later --no-wait"
    assert site.run("change", "garage-ae86", "note=later", "--no-wait").code == 0
    report = site.restore(code=10)
    assert {row["name"] for row in report["report"]} == {"garage-rx7", "garage-s13"}

    done = site.restore("--accept", report["code"], "--ended", "garage-rx7", code=0)

    assert not done["held"]
    site.ready("garage-ae86", "garage-s13")
    assert site.uids() == uids, "the cluster's XRs lived on"
    assert "garage-rx7 has ended" in site.run("status", "garage-rx7").err
    assert site.restore(code=0)["report"] == []


def test_an_order_that_is_not_called_ended_is_made_again(site: Site) -> None:
    assert site.run("backup", str(site.backup)).code == 0
    assert site.run("destroy", "garage-s13", "--yes").code == 0
    site.lose("platform/ledger", "s13/garage-s13")
    report = site.restore(code=10)
    assert [(row["name"], row["case"]) for row in report["report"]] == [("garage-s13", "ended")]

    site.restore("--accept", report["code"], code=0)

    site.ready("garage-ae86", "garage-s13")


def test_a_new_cluster_gets_every_order_from_git(site: Site) -> None:
    uids = site.uids()
    site.stop()
    shutil.rmtree(site.file.with_name("cluster"))
    site.start()

    site.ready("garage-ae86", "garage-s13")
    assert site.uids().keys() == uids.keys()
    assert not set(site.uids().values()) & set(uids.values())


def test_a_repository_that_cannot_be_copied_does_not_prevent_the_others_backup(site: Site) -> None:
    path = site.backup / "ae86/garage-ae86.git"
    shutil.rmtree(path)
    path.mkdir()
    (path / "HEAD").write_text("broken")
    done = site.run("backup", str(site.backup))

    assert done.code == 5
    assert "1 repositories could not be copied: ae86/garage-ae86: git fetch" in done.err
    written = yaml.safe_load((site.backup / "backup.yaml").read_text())["spec"]["repositories"]
    assert "ae86/garage-ae86" in {repository["name"] for repository in written}
