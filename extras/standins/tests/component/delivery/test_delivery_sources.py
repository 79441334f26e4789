"""Repositories as an Application names them: real bare repositories, Argo CD's texts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ground.names import CommitSha, RepoId
from orderkit_standins.argocd import BareRepositories, SourceError
from orderkit_standins.argocd.source_repositories import same_repository

BASE = "http://127.0.0.1:7300"
URL = f"{BASE}/ae86/garage.git"


def git(folder: Path, *arguments: str) -> str:
    """Run the real git."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A clone with one commit, pushed to the bare repository under ``repos``."""
    bare = tmp_path / "repos" / "ae86" / "garage.git"
    bare.mkdir(parents=True)
    git(bare, "init", "-q", "--bare", "--initial-branch=main", ".")
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q", "--initial-branch=main")
    git(work, "remote", "add", "origin", str(bare))
    (work / "manifests" / "deep").mkdir(parents=True)
    (work / "manifests" / "a.yaml").write_text("a: 1\n")
    (work / "manifests" / "deep" / "b.yml").write_text("b: 1\n")
    (work / "manifests" / "notes.txt").write_text("not read\n")
    (work / "catalog-info.yaml").write_text("not: delivered\n")
    push(work)
    return work


def push(work: Path) -> CommitSha:
    """Commit everything and push it."""
    git(work, "add", "-A")
    git(work, "commit", "-q", "--allow-empty", "-m", "change")
    git(work, "push", "-q", "origin", "main", "--tags")
    return CommitSha(git(work, "rev-parse", "HEAD"))


@pytest.fixture
def sources(tmp_path: Path) -> BareRepositories:
    """What is under test."""
    return BareRepositories(BASE, tmp_path / "repos")


def test_branch_head_tag_and_commit_resolve(work: Path, sources: BareRepositories) -> None:
    git(work, "tag", "-a", "v1", "-m", "annotated")
    commit = push(work)
    tagged = git(work, "rev-parse", "v1^{commit}")

    assert sources.resolve(URL, "main") == commit
    assert sources.resolve(URL.removesuffix(".git"), "HEAD") == commit
    assert sources.resolve(URL, "v1") == tagged
    assert sources.resolve(URL, "refs/heads/main") == commit
    assert sources.resolve(URL, tagged) == tagged


def test_packed_references_resolve_and_loose_ones_win(
    work: Path, sources: BareRepositories, tmp_path: Path
) -> None:
    bare = tmp_path / "repos" / "ae86" / "garage.git"
    first = sources.resolve(URL, "main")
    git(bare, "pack-refs", "--all")
    assert sources.resolve(URL, "main") == first

    assert sources.resolve(URL, "main") != push(work) or first
    assert sources.resolve(URL, "main") == git(work, "rev-parse", "HEAD")


def test_a_folder_is_read_flat_or_recursively(work: Path, sources: BareRepositories) -> None:
    commit = push(work)

    assert sources.read(URL, commit, "manifests", recurse=False) == {"a.yaml": b"a: 1\n"}
    assert sources.read(URL, commit, "./manifests/", recurse=True) == {
        "a.yaml": b"a: 1\n",
        "deep/b.yml": b"b: 1\n",
    }
    assert sources.read(URL, commit, ".", recurse=False) == {
        "catalog-info.yaml": b"not: delivered\n"
    }


@pytest.mark.parametrize(
    ("reason", "path", "text"),
    [
        ("a path that is not there", "nowhere", "nowhere: app path does not exist"),
        ("a file", "manifests/a.yaml", "app path is not a directory"),
        ("the way out", "../../etc", "app path outside root"),
        ("an absolute path", "/etc", "app path is absolute"),
    ],
)
def test_paths_that_cannot_be_read(
    work: Path, sources: BareRepositories, reason: str, path: str, text: str
) -> None:
    commit = push(work)

    with pytest.raises(SourceError, match=text):
        sources.read(URL, commit, path, recurse=True)
    assert reason


@pytest.mark.parametrize(
    "url",
    [
        f"{BASE}/ae86/ghost.git",
        f"{BASE}/ae86",
        f"{BASE}/../ae86/garage.git",
        f"{BASE}/ae86/../garage.git",
        f"{BASE}/ae86/%2e%2e.git",
        "http://elsewhere.example.org/ae86/garage.git",
        "/etc/passwd",
    ],
)
def test_repositories_that_are_not_ours_do_not_exist(
    work: Path, sources: BareRepositories, url: str
) -> None:
    assert work.exists()
    with pytest.raises(SourceError, match="repository not found"):
        sources.resolve(url, "main")


@pytest.mark.parametrize("revision", ["ghost", "../../config", "refs/heads/../../config", "dead"])
def test_unknown_revisions_are_named(work: Path, sources: BareRepositories, revision: str) -> None:
    assert work.exists()
    with pytest.raises(SourceError, match=r"unable to resolve .* to a commit SHA"):
        sources.resolve(URL, revision)


def test_an_unknown_commit_fails_when_it_is_read(work: Path, sources: BareRepositories) -> None:
    assert work.exists()
    with pytest.raises(SourceError, match="failed to checkout revision"):
        sources.read(URL, CommitSha("0" * 40), "manifests", recurse=False)


@pytest.mark.parametrize("target", ["/etc/passwd", "../../secret.yaml", "../manifests/../../x"])
def test_symbolic_links_out_of_the_repository_are_refused(
    work: Path, sources: BareRepositories, target: str
) -> None:
    (work / "manifests" / "link.yaml").symlink_to(target)
    commit = push(work)

    message = "repository contains out-of-bounds symlinks. file: manifests/link.yaml"
    with pytest.raises(SourceError, match=message):
        sources.read(URL, commit, "manifests", recurse=False)


def test_symbolic_links_inside_the_repository_are_followed(
    work: Path, sources: BareRepositories
) -> None:
    (work / "manifests" / "link.yaml").symlink_to("../catalog-info.yaml")
    (work / "manifests" / "loop.yaml").symlink_to("loop.yaml")
    commit = push(work)

    files = sources.read(URL, commit, "manifests", recurse=False)

    assert files["link.yaml"] == b"not: delivered\n"
    assert "loop.yaml" not in files


def test_a_repository_that_is_deleted_and_made_again_is_seen_as_it_is(
    work: Path, sources: BareRepositories, tmp_path: Path
) -> None:
    bare = tmp_path / "repos" / "ae86" / "garage.git"
    before = sources.resolve(URL, "main")
    shutil.rmtree(bare)
    with pytest.raises(SourceError, match="repository not found"):
        sources.resolve(URL, "main")

    bare.mkdir()
    git(bare, "init", "-q", "--bare", "--initial-branch=main", ".")
    with pytest.raises(SourceError, match="remote repository is empty"):
        sources.resolve(URL, "main")

    after = push(work)
    assert sources.resolve(URL, "main") == after != before


@pytest.mark.parametrize(
    ("pushed", "same"),
    [
        (RepoId("ae86", "garage"), True),
        (RepoId("ae86", "garage2"), False),
        (RepoId("e86", "garage"), False),
        ("http://127.0.0.1:9999/ae86/garage", True),
        ("https://127.0.0.1/AE86/garage.git/", True),
        ("http://other.example.org/ae86/garage", False),
    ],
)
def test_a_push_concerns_a_repository_by_host_and_path(pushed: str | RepoId, same: bool) -> None:  # noqa: FBT001 - a table
    assert same_repository(URL, pushed) is same
