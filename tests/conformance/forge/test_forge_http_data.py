"""What answers of the API hold: fields, pages, archives, first commits, links."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from ground.names import RepoId
from orderkit.ports.forge import FileChange

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop


def test_d01_a_file_comes_with_its_blob_id_and_bytes(shop: Workshop) -> None:
    repo = shop.seeded_repo()

    found = shop.api("GET", f"/repos/{repo}/contents/dir/a.txt").json()

    assert found["path"] == "dir/a.txt"
    assert found["sha"] == "78981922613b2afb6025042ff6bd878ac1994e85"
    assert base64.b64decode(found["content"]) == b"a\n"
    assert (found["encoding"], found["size"], found["name"]) == ("base64", 2, "a.txt")
    assert found["last_commit_sha"] == shop.forge.head(repo)


def test_d02_a_folder_lists_entries_without_content(shop: Workshop) -> None:
    repo = shop.seeded_repo()

    found = shop.api("GET", f"/repos/{repo}/contents/").json()

    assert {each["path"]: each["type"] for each in found} == {
        "README.md": "file",
        "dir": "dir",
        "top.yaml": "file",
    }
    assert all(each["content"] is None for each in found)


def test_d03_last_commit_of_a_file_is_the_one_that_changed_it(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    first = shop.forge.head(repo)
    second = shop.forge.write(repo, [shop.new("new.txt", "1")], shop.op()).commit

    old = shop.api("GET", f"/repos/{repo}/contents/dir/a.txt").json()
    new = shop.api("GET", f"/repos/{repo}/contents/new.txt").json()
    listed = shop.api("GET", f"/repos/{repo}/contents").json()

    assert (old["last_commit_sha"], new["last_commit_sha"]) == (first, second)
    assert {each["path"]: each["last_commit_sha"] for each in listed}["README.md"] == first


def test_d04_a_write_answers_the_new_blob_and_commit(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    before = shop.forge.head(repo)

    body = {"content": base64.b64encode(b"new\n").decode(), "message": "Say new"}
    answer = shop.api("POST", f"/repos/{repo}/contents/new.txt", body).json()

    assert answer["content"]["sha"] == shop.sha(repo, "new.txt")
    assert answer["commit"]["sha"] == shop.forge.head(repo)
    assert answer["commit"]["message"] == "Say new\n"
    assert [parent["sha"] for parent in answer["commit"]["parents"]] == [before]


def test_d06_an_empty_repository_says_so_everywhere(shop: Workshop) -> None:
    repo = shop.empty_repo()

    assert shop.api("GET", f"/repos/{repo}").json()["empty"] is True
    assert shop.api("GET", f"/repos/{repo}/contents/README.md").status_code == 404
    assert shop.api("GET", f"/repos/{repo}/commits").status_code == 409
    assert shop.api("GET", f"/repos/{repo}/branches/main").status_code == 404
    assert shop.api("GET", f"/repos/{repo}/git/refs").status_code == 404


def test_d07_the_first_commit_names_the_default_branch(shop: Workshop) -> None:
    repo = shop.empty_repo()
    body = {"branch": "trunk", "content": "", "message": "m"}

    assert shop.api("POST", f"/repos/{repo}/contents/a", body).status_code == 201

    assert shop.api("GET", f"/repos/{repo}").json()["default_branch"] == "trunk"


def test_d09_a_list_is_paged_and_counted(shop: Workshop) -> None:
    org = shop.org()
    for number in range(5):
        shop.forge.ensure_repo(RepoId(org, f"r{number}"), description="")

    first = shop.api("GET", f"/orgs/{org}/repos?limit=2&page=1")
    last = shop.api("GET", f"/orgs/{org}/repos?limit=2&page=3")
    beyond = shop.api("GET", f"/orgs/{org}/repos?limit=2&page=4")

    assert first.headers["X-Total-Count"] == "5"
    assert 'rel="next"' in first.headers["Link"]
    assert [len(page.json()) for page in (first, last, beyond)] == [2, 1, 0]


def test_d10_a_tree_is_paged(shop: Workshop) -> None:
    repo = shop.seeded_repo()

    page = shop.api("GET", f"/repos/{repo}/git/trees/main?recursive=1&per_page=2&page=2").json()

    assert (page["total_count"], page["truncated"], len(page["tree"])) == (5, True, 2)


def test_d11_an_archive_holds_everything_below_the_name(shop: Workshop) -> None:
    repo = shop.seeded_repo()

    answer = shop.api("GET", f"/repos/{repo}/archive/main.tar.gz")

    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        found = {member.name for member in tar if member.isfile()}
        member = tar.extractfile(f"{repo.name}/dir/a.txt")
        assert member is not None
        assert member.read() == b"a\n"
    assert f"{repo.name}/README.md" in found


def test_d12_a_branch_ahead_has_commits_to_compare(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    made = shop.forge.write(repo, [shop.new("n", "1")], shop.op(), branch="other").commit

    found = shop.api("GET", f"/repos/{repo}/compare/main...other").json()
    back = shop.api("GET", f"/repos/{repo}/compare/other...main").json()

    assert (found["total_commits"], found["commits"][0]["sha"]) == (1, made)
    assert back["total_commits"] == 0


def test_d15_links_begin_with_the_root_url(shop: Workshop) -> None:
    repo = shop.seeded_repo()

    found = shop.api("GET", f"/repos/{repo}").json()

    assert found["clone_url"] == f"{shop.target.url}/{repo}.git"
    assert found["html_url"] == f"{shop.target.url}/{repo}"


@pytest.mark.parametrize("text", ["ünïcode & spaces.txt", "a#b?c%20.txt", "deep/er/e+st.txt"])
def test_d16_paths_may_hold_any_character(shop: Workshop, text: str) -> None:
    repo, path = shop.empty_repo(), PurePosixPath(text)

    shop.forge.write(repo, [FileChange(path, b"\x00\xff", None)], shop.op())
    found = shop.forge.read(repo, path, "main")

    assert found is not None
    assert found.data == b"\x00\xff"
    assert path in shop.forge.tree(repo, shop.forge.write(repo, [], shop.op()).commit)


def test_d17_the_executable_bit_of_an_updated_file_is_kept(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    copy = shop.clone(repo)
    (copy / "run.sh").write_text("#!/bin/sh\n")
    (copy / "run.sh").chmod(0o755)
    for step in (["add", "."], ["commit", "-qm", "x"], ["push", "-q", "origin", "HEAD:main"]):
        assert shop.git(*step, cwd=copy).returncode == 0
    seen = shop.forge.read(repo, PurePosixPath("run.sh"), "main")
    assert seen is not None

    shop.forge.write(repo, [FileChange(seen.path, b"#!/bin/sh\ntrue\n", seen.sha)], shop.op())

    tree = shop.api("GET", f"/repos/{repo}/git/trees/main?recursive=1").json()["tree"]
    assert {each["path"]: each["mode"] for each in tree}["run.sh"] == "100755"


def test_d18_a_symbolic_link_is_shown_as_one_and_not_written_through(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    copy = shop.clone(repo)
    (copy / "link").symlink_to("dir")
    for step in (["add", "."], ["commit", "-qm", "x"], ["push", "-q", "origin", "HEAD:main"]):
        assert shop.git(*step, cwd=copy).returncode == 0

    found = shop.api("GET", f"/repos/{repo}/contents/link").json()
    through = shop.api("POST", f"/repos/{repo}/contents/link/x", {"content": "YQ=="})

    assert (found["type"], found["target"]) == ("symlink", "dir")
    assert through.status_code == 422
    assert shop.forge.read(repo, PurePosixPath("link"), "main") is None


def test_d19_several_files_come_in_the_order_that_was_asked(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    paths = ["top.yaml", "no/such", "dir", "dir/a.txt"]

    query = urlencode({"ref": "main", "body": json.dumps({"files": paths})})
    found = shop.api("GET", f"/repos/{repo}/file-contents?{query}").json()

    shown = [each and (each["path"], each["type"], each["content"] is None) for each in found]
    assert shown == [
        ("top.yaml", "file", False),
        None,
        ("dir", "dir", True),
        ("dir/a.txt", "file", False),
    ]
    one = shop.api("GET", f"/repos/{repo}/contents/dir/a.txt?ref=main").json()
    assert {key: found[3][key] for key in ("sha", "content", "last_commit_sha")} == {
        key: one[key] for key in ("sha", "content", "last_commit_sha")
    }


def test_d20_a_call_for_several_files_brings_a_page_of_them(shop: Workshop) -> None:
    repo = shop.seeded_repo()

    query = urlencode({"body": json.dumps({"files": ["top.yaml"] * 31})})
    found = shop.api("GET", f"/repos/{repo}/file-contents?{query}").json()
    bad = shop.api("GET", f"/repos/{repo}/file-contents?body=%5B")

    assert len(found) == 30
    assert (bad.status_code, bad.json()["message"]) == (400, "invalid body parameter")
