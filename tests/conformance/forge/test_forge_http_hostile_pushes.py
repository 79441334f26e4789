"""Pushed trees that would leave a checkout, and requests that grow: who refuses what."""

from __future__ import annotations

import base64
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conformance.forge.conftest import Workshop

from ground.names import RepoId

FILE, LINK, FOLDER, SUBMODULE = "100644", "120000", "40000", "160000"
BAD_MODULE = '[submodule "x"]\n\tpath = x\n\turl = -u./payload\n'
MODULE_OUTSIDE = '[submodule "../../x"]\n\tpath = x\n\turl = https://example.org/x.git\n'
GOOD_MODULE = '[submodule "x"]\n\tpath = x\n\turl = https://example.org/x.git\n'


@dataclass(frozen=True, slots=True)
class Push:
    """A tree with one entry (and perhaps a .gitmodules), and whether Gitea takes it."""

    id: str
    reason: str
    name: str
    mode: str = FILE
    text: str = "x"
    gitea_accepts: bool = True
    accepted: bool = False


PUSHES = [
    Push("hp01", "a folder .git", ".git", FOLDER),
    Push("hp02", "a file .git", ".git"),
    Push("hp03", "another case", ".GIT", FOLDER),
    Push("hp04", "its short name on Windows", "git~1", FOLDER),
    Push("hp05", "a blank that Windows drops", ".git ", FOLDER),
    Push("hp06", "a dot that Windows drops", ".git.", FOLDER),
    Push("hp07", "a character that macOS drops", ".g\u200cit", FOLDER),
    Push("hp08", "the folder above", "..", FOLDER),
    Push("hp09", "the folder itself", ".", FOLDER),
    Push("hp10", "a slash in a name", "a/b"),
    Push("hp11", "a submodule whose url is an option", ".gitmodules", text=BAD_MODULE),
    Push("hp12", "a submodule whose name leaves .git", ".gitmodules", text=MODULE_OUTSIDE),
    Push("hp13", "a .gitmodules that is a link", ".gitmodules", LINK, "/etc/passwd"),
    Push("hp14", "a submodule", ".gitmodules", text=GOOD_MODULE, accepted=True),
    Push("hp15", "a link that leaves the tree", "outside", LINK, "../../etc/passwd", accepted=True),
    Push("hp16", "a name that only begins so", ".gitkeep", accepted=True),
]


def hostile_commit(shop: Workshop, clone: Path, push: Push) -> str:
    """Return a commit whose tree git itself would not write."""

    def store(kind: str, data: bytes) -> str:
        command = ["git", "hash-object", "-t", kind, "-w", "--literally", "--stdin"]
        done = subprocess.run(command, cwd=clone, input=data, capture_output=True, check=True)
        return done.stdout.decode().strip()

    def tree(mode: str, name: str, entry: str) -> str:
        return store("tree", f"{mode} {name}".encode() + b"\0" + bytes.fromhex(entry))

    entry = store("blob", push.text.encode())
    if push.mode == FOLDER:
        entry = tree(FILE, "config", entry)
    commit = shop.git("commit-tree", "-m", "x", tree(push.mode, push.name, entry), cwd=clone)
    assert commit.returncode == 0, commit.stderr
    return commit.stdout.strip()


@pytest.fixture(scope="module")
def repo(shop: Workshop) -> RepoId:
    return shop.seeded_repo()


@pytest.fixture(scope="module")
def clone(shop: Workshop, repo: RepoId) -> Path:
    return shop.clone(repo)


@pytest.mark.parametrize("push", PUSHES, ids=lambda push: push.id)
def test_trees_that_leave_a_checkout(shop: Workshop, repo: RepoId, clone: Path, push: Push) -> None:
    commit = hostile_commit(shop, clone, push)

    done = shop.git("push", "origin", f"{commit}:refs/heads/{push.id}", cwd=clone)

    accepted = push.accepted or (shop.target.real and push.gitea_accepts)
    assert (done.returncode == 0) is accepted, done.stderr
    branch = shop.api("GET", f"/repos/{repo}/branches/{push.id}")
    assert branch.status_code == (200 if accepted else 404)


@dataclass(frozen=True, slots=True)
class Upload:
    """A path for the contents API, and the answers."""

    id: str
    reason: str
    path: str
    gitea: int = 422
    ours: int = 422


UPLOADS = [
    Upload("hc01", "a folder .git", ".git/config"),
    Upload("hc02", "another case", "a/.GIT/config"),
    Upload("hc03", "its short name on Windows", "git~1/config"),
    Upload("hc04", "a blank that Windows drops", ".git /config"),
    Upload("hc05", "a dot that Windows drops", ".git./config"),
    Upload("hc06", "a stream of Windows", ".git::$INDEX_ALLOCATION/config"),
    Upload("hc07", "backslashes", ".git\\config"),
    Upload("hc08", "a character that macOS drops", ".g\u200cit/config", gitea=201),
    Upload("hc09", "the folder above", "../x", 500, 500),
    Upload("hc10", "a name that only begins so", ".gitkeep", 201, 201),
]


@pytest.mark.parametrize("upload", UPLOADS, ids=lambda upload: upload.id)
def test_uploads_that_leave_a_checkout(shop: Workshop, repo: RepoId, upload: Upload) -> None:
    content = base64.b64encode(b"x").decode()
    files = [{"operation": "create", "path": upload.path, "content": content}]

    answer = shop.api("POST", f"/repos/{repo}/contents", {"files": files})

    assert answer.status_code == (upload.gitea if shop.target.real else upload.ours), answer.text
