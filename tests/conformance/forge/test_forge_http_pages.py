"""
Addresses of pages, as Gitea 1.26.0 answers them (observed); what a page looks like is our own.

Where the embedded forge differs on purpose: Basic credentials count on every page (in Gitea on
the first page of a repository, raw files and the API), there are no ``.diff`` and ``.patch``,
``/src/branch`` without a name is 404 (Gitea looks for a file of that name), raw
SVG is plain text (Gitea: an image).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest

from ground.names import RepoId

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(64))


@dataclass(frozen=True)
class Case:
    """One address and what it answers."""

    id: str
    reason: str
    path: str
    status: int = 200
    data: bytes = b""
    media_type: str = ""


@dataclass(frozen=True)
class Shelf:
    """One repository with two commits and what its addresses are made of."""

    repo: RepoId
    first: str
    second: str

    def address(self, path: str) -> str:
        for name, value in (("first", self.first), ("second", self.second)):
            path = path.replace(f"{{{name}}}", value).replace(f"{{{name}7}}", value[:7])
            path = path.replace(f"{{{name}6}}", value[:6]).replace(f"{{UP{name}}}", value.upper())
        return f"/{self.repo}{path}"


@pytest.fixture(scope="module")
def shelf(shop: Workshop) -> Shelf:
    repo = shop.empty_repo()
    copy = shop.clone(repo)
    files = {
        "README.md": b"hello\n",
        "dir/a.txt": b"a\n",
        "moved.txt": b"one\ntwo\nthree\n",
        "ü #?%&.txt": b"odd\n",
        "all.bin": bytes(range(256)),
        "p.png": PICTURE,
    }
    for name, data in files.items():
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).write_bytes(data)
    ids = []
    for message in ("first\n\nbody", "second\n\nOrderkit-Operation: 1"):
        assert shop.git("add", "-A", cwd=copy).returncode == 0
        assert shop.git("commit", "-qm", message, cwd=copy).returncode == 0
        ids.append(shop.git("rev-parse", "HEAD", cwd=copy).stdout.strip())
        (copy / "dir" / "a.txt").write_bytes(b"aa")
        (copy / "moved.txt").rename(copy / "dir" / "to.txt") if len(ids) == 1 else None
    shop.git("tag", "-am", "v1", "v1", cwd=copy)
    done = shop.git(
        "push", "-q", "origin", "HEAD:main", f"{ids[0]}:refs/heads/feature/x", "v1", cwd=copy
    )
    assert done.returncode == 0, done.stderr
    made = Shelf(repo, *ids)
    shop.eventually(
        lambda: shop.call("GET", made.address("/src/branch/main/"), auth=None).status_code == 200
    )
    return made


PAGES = [
    Case("Y01", "with a slash at the end", "/", status=200),
    Case("Y02", "a branch", "/src/branch/main", status=200),
    Case("Y03", "a folder with a slash", "/src/branch/main/dir/", status=200),
    Case("Y04", "two slashes", "/src/branch/main//dir", status=200),
    Case("Y05", "a file with a slash", "/src/branch/main/dir/a.txt/", status=200),
    Case("Y06", "a branch with a slash in its name", "/src/branch/feature/x", status=200),
    Case("Y07", "a file on it", "/src/branch/feature/x/dir/a.txt", status=200),
    Case("Y08", "half of its name", "/src/branch/feature", status=404),
    Case(
        "Y09",
        "a name that must be encoded",
        "/src/branch/main/%C3%BC%20%23%3F%25%26.txt",
        status=200,
    ),
    Case("Y10", "a commit is not a branch", "/src/branch/{first}", status=404),
    Case("Y11", "a tag", "/src/tag/v1", status=200),
    Case("Y12", "a file at a tag", "/src/tag/v1/dir/a.txt", status=200),
    Case("Y13", "no such tag", "/src/tag/none", status=404),
    Case("Y14", "a commit", "/src/commit/{first}", status=200),
    Case("Y15", "a file at a commit", "/src/commit/{first}/dir/a.txt", status=200),
    Case("Y16", "a short id", "/src/commit/{first7}/dir/a.txt", status=200),
    Case("Y17", "too short an id", "/src/commit/{first6}", status=404),
    Case("Y18", "ids are lower case", "/src/commit/{UPfirst}", status=404),
    Case(
        "Y19", "no such commit", "/src/commit/0000000000000000000000000000000000000000", status=404
    ),
    Case("Y20", "a branch is not a commit", "/src/commit/main", status=404),
    Case("Y21", "raw without a file", "/raw/branch/main", status=404),
    Case("Y22", "a folder has no bytes", "/raw/branch/main/dir", status=404),
    Case("Y23", "raw at no tag", "/raw/tag/none/README.md", status=404),
    Case("Y24", "a commit's page", "/commit/{second}", status=200),
    Case("Y25", "by its short id", "/commit/{second7}", status=200),
    Case("Y26", "too short", "/commit/{second6}", status=404),
    Case("Y27", "upper case", "/commit/{UPsecond}", status=404),
    Case("Y28", "no such commit", "/commit/0000000000000000000000000000000000000000", status=404),
    Case("Y29", "a branch is not a commit", "/commit/main", status=404),
    Case("Y30", "no such form", "/commit/{second}.zip", status=404),
    Case("Y31", "history of what?", "/commits", status=404),
    Case("Y32", "history of a branch", "/commits/branch/main", status=200),
    Case("Y33", "of one with a slash", "/commits/branch/feature/x", status=200),
    Case("Y34", "of a folder", "/commits/branch/main/dir", status=200),
    Case("Y35", "of a file", "/commits/branch/main/dir/a.txt", status=200),
    Case("Y36", "of nothing", "/commits/branch/main/none", status=404),
    Case("Y37", "of no branch", "/commits/branch/nope", status=404),
    Case("Y38", "of a tag", "/commits/tag/v1", status=200),
    Case("Y39", "of a commit", "/commits/commit/{first}", status=200),
    Case("Y40", "a page beyond the last", "/commits/branch/main?page=99", status=200),
    Case("Y41", "a page before the first", "/commits/branch/main?page=-1", status=200),
    Case("Y42", "all branches", "/branches", status=200),
    Case("Y45", "the repository", "", status=200),
    Case("Y46", "its clone address, opened in a browser", ".git", status=200),
    Case("Y47", "another name", ".git.git", status=404),
    Case("Y48", "no such file", "/src/branch/main/none", status=404),
    Case("Y49", "no such branch", "/src/branch/nope/dir", status=404),
    Case("Y44", "no such page", "/none", status=404),
]


@pytest.mark.parametrize("case", PAGES, ids=lambda case: case.id)
def test_y_pages(shop: Workshop, shelf: Shelf, case: Case) -> None:
    answer = shop.call("GET", shelf.address(case.path), auth=None)

    assert answer.status_code == case.status, case.reason
    if case.status == 200:
        assert answer.headers["Content-Type"].lower().startswith("text/html"), case.reason


RAW = [
    Case(
        "Y60",
        "bytes that are no text",
        "/raw/branch/main/all.bin",
        data=bytes(range(256)),
        media_type="application/octet-stream",
    ),
    Case("Y61", "a picture", "/raw/branch/main/p.png", data=PICTURE, media_type="image/png"),
    Case("Y62", "a text", "/raw/branch/main/dir/a.txt", data=b"aa", media_type="text/plain"),
    Case(
        "Y63",
        "as it was at a commit",
        "/raw/commit/{first}/dir/a.txt",
        data=b"a\n",
        media_type="text/plain",
    ),
    Case(
        "Y64",
        "at a short id",
        "/raw/commit/{first7}/dir/a.txt",
        data=b"a\n",
        media_type="text/plain",
    ),
    Case(
        "Y65",
        "at a tag",
        "/raw/tag/v1/dir/to.txt",
        data=b"one\ntwo\nthree\n",
        media_type="text/plain",
    ),
    Case(
        "Y66",
        "a name that must be encoded",
        "/raw/branch/main/%C3%BC%20%23%3F%25%26.txt",
        data=b"odd\n",
        media_type="text/plain",
    ),
]


@pytest.mark.parametrize("case", RAW, ids=lambda case: case.id)
def test_y_raw_bytes(shop: Workshop, shelf: Shelf, case: Case) -> None:
    answer = shop.call("GET", shelf.address(case.path), auth=None)

    assert answer.status_code == 200
    assert answer.content == case.data
    assert answer.headers["Content-Type"].startswith(case.media_type)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer.headers["Content-Security-Policy"]


EMPTY = [
    Case("Y80", "says how to fill it", "", status=200),
    Case("Y81", "says the same", "/src/branch/main/", status=200),
    Case("Y82", "no history", "/commits/branch/main", status=404),
    Case("Y83", "no branches", "/branches", status=404),
    Case("Y84", "no files", "/raw/branch/main/a", status=404),
]


@pytest.mark.parametrize("case", EMPTY, ids=lambda case: case.id)
def test_y_pages_of_an_empty_repository(shop: Workshop, case: Case) -> None:
    repo = shop.empty_repo()

    assert shop.call("GET", f"/{repo}{case.path}", auth=None).status_code == case.status, (
        case.reason
    )


HIDDEN = [
    Case("Y90", "the first page of a repository", "", status=200),
    Case("Y91", "raw bytes", "/raw/branch/main/README.md", status=200),
]


@pytest.mark.parametrize("case", HIDDEN, ids=lambda case: case.id)
def test_y_private_pages_with_and_without_credentials(shop: Workshop, case: Case) -> None:
    repo = shop.seeded_repo(private=True)
    address = f"/{repo}{case.path}"

    assert shop.call("GET", address, auth=None).status_code == 404, case.reason
    assert shop.call("GET", address, auth=shop.outsider).status_code == 404, case.reason
    assert shop.call("GET", address, auth=shop.admin).status_code == case.status, case.reason


def test_y95_owners_have_a_page_and_letters_may_have_any_case(shop: Workshop, shelf: Shelf) -> None:
    assert shop.call("GET", f"/{shelf.repo.owner}", auth=None).status_code == 200
    assert shop.call("GET", f"/{str(shelf.repo).upper()}", auth=None).status_code == 200
    assert shop.call("GET", "/nobody-of-that-name", auth=None).status_code == 404
    assert shop.call("GET", "/a/b/c/d", auth=None).status_code == 404
    assert shop.call("GET", "/", auth=None).status_code == 200


def test_y140_a_commit_that_is_not_utf8_has_a_page_and_no_json(shop: Workshop) -> None:
    """Gitea 1.27 answers 200 without a body."""
    repo = shop.seeded_repo()
    sha = shop.push_odd(repo, "odd", author=b"A\xe9")

    shown = shop.api("GET", f"/repos/{repo}/git/commits/{sha}")
    branch = shop.api("GET", f"/repos/{repo}/branches/odd")

    assert [(one.status_code, one.content) for one in (shown, branch)] == [(200, b"")] * 2
    assert shop.call("GET", f"/{repo}/commit/{sha}", auth=None).status_code == 200


def test_y130_the_branch_page_of_an_empty_repository_is_there_after_the_first_push(
    shop: Workshop,
) -> None:
    repo = shop.empty_repo()
    copy = shop.clone(repo)
    assert shop.git("commit", "-q", "--allow-empty", "-m", "x", cwd=copy).returncode == 0

    assert shop.git("push", "-q", "origin", "HEAD:main", cwd=copy).returncode == 0

    page = f"/{repo}/src/branch/main/"
    shop.eventually(lambda: shop.call("GET", page, auth=None).status_code == 200)


def test_y131_pages_of_a_private_repository_are_hidden(shop: Workshop) -> None:
    repo = shop.seeded_repo(private=True)

    assert shop.call("GET", f"/{repo}/src/branch/main/", auth=None).status_code in (303, 404)


def test_y132_what_comes_from_a_repository_is_escaped(shop: Workshop) -> None:
    repo, evil = shop.empty_repo(), "<script>alert(1)</script>.txt"
    path = PurePosixPath(evil.replace("/", "_"))
    shop.forge.write(repo, [shop.new(str(path), "<script>alert(2)</script>")], shop.op())

    for address in ("", f"/src/branch/main/{path}"):
        assert "<script>alert" not in shop.call("GET", f"/{repo}{address}", auth=None).text


def test_y133_raw_bytes_are_never_a_page(shop: Workshop) -> None:
    repo = shop.empty_repo()
    shop.forge.write(repo, [shop.new("evil.html", "<script>alert(2)</script>")], shop.op())

    answer = shop.call("GET", f"/{repo}/raw/branch/main/evil.html", auth=None)

    assert answer.headers["Content-Type"].startswith("text/plain")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
