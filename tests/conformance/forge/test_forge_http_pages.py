"""
Addresses of pages, as Gitea 1.26.0 answers them (observed); what a page looks like is our own.

Where the embedded forge differs on purpose: Basic credentials count on every page (in Gitea on
the first page of a repository, raw files and the API), ``.diff`` of a missing commit is 404
(Gitea: 500), ``/src/branch`` without a name is 404 (Gitea looks for a file of that name), raw
SVG is plain text (Gitea: an image).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from orderkit.core.names import RepoId

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(64))


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
    ("Y01", "/", 200, "with a slash at the end"),
    ("Y02", "/src/branch/main", 200, "a branch"),
    ("Y03", "/src/branch/main/dir/", 200, "a folder with a slash"),
    ("Y04", "/src/branch/main//dir", 200, "two slashes"),
    ("Y05", "/src/branch/main/dir/a.txt/", 200, "a file with a slash"),
    ("Y06", "/src/branch/feature/x", 200, "a branch with a slash in its name"),
    ("Y07", "/src/branch/feature/x/dir/a.txt", 200, "a file on it"),
    ("Y08", "/src/branch/feature", 404, "half of its name"),
    ("Y09", "/src/branch/main/%C3%BC%20%23%3F%25%26.txt", 200, "a name that must be encoded"),
    ("Y10", "/src/branch/{first}", 404, "a commit is no branch"),
    ("Y11", "/src/tag/v1", 200, "a tag"),
    ("Y12", "/src/tag/v1/dir/a.txt", 200, "a file at a tag"),
    ("Y13", "/src/tag/none", 404, "no such tag"),
    ("Y14", "/src/commit/{first}", 200, "a commit"),
    ("Y15", "/src/commit/{first}/dir/a.txt", 200, "a file at a commit"),
    ("Y16", "/src/commit/{first7}/dir/a.txt", 200, "a short id"),
    ("Y17", "/src/commit/{first6}", 404, "too short an id"),
    ("Y18", "/src/commit/{UPfirst}", 404, "ids are lower case"),
    ("Y19", "/src/commit/0000000000000000000000000000000000000000", 404, "no such commit"),
    ("Y20", "/src/commit/main", 404, "a branch is no commit"),
    ("Y21", "/raw/branch/main", 404, "raw without a file"),
    ("Y22", "/raw/branch/main/dir", 404, "a folder has no bytes"),
    ("Y23", "/raw/tag/none/README.md", 404, "raw at no tag"),
    ("Y24", "/commit/{second}", 200, "a commit's page"),
    ("Y25", "/commit/{second7}", 200, "by its short id"),
    ("Y26", "/commit/{second6}", 404, "too short"),
    ("Y27", "/commit/{UPsecond}", 404, "upper case"),
    ("Y28", "/commit/0000000000000000000000000000000000000000", 404, "no such commit"),
    ("Y29", "/commit/main", 404, "a branch is no commit"),
    ("Y30", "/commit/{second}.zip", 404, "no such form"),
    ("Y31", "/commits", 404, "history of what?"),
    ("Y32", "/commits/branch/main", 200, "history of a branch"),
    ("Y33", "/commits/branch/feature/x", 200, "of one with a slash"),
    ("Y34", "/commits/branch/main/dir", 200, "of a folder"),
    ("Y35", "/commits/branch/main/dir/a.txt", 200, "of a file"),
    ("Y36", "/commits/branch/main/none", 404, "of nothing"),
    ("Y37", "/commits/branch/nope", 404, "of no branch"),
    ("Y38", "/commits/tag/v1", 200, "of a tag"),
    ("Y39", "/commits/commit/{first}", 200, "of a commit"),
    ("Y40", "/commits/branch/main?page=99", 200, "a page beyond the last"),
    ("Y41", "/commits/branch/main?page=-1", 200, "a page before the first"),
    ("Y42", "/branches", 200, "all branches"),
    ("Y43", "/tags", 200, "all tags"),
    ("Y44", "/none", 404, "no such page"),
]


@pytest.mark.parametrize(
    ("path", "status", "reason"), [row[1:] for row in PAGES], ids=[row[0] for row in PAGES]
)
def test_y_pages(shop: Workshop, shelf: Shelf, path: str, status: int, reason: str) -> None:
    answer = shop.call("GET", shelf.address(path), auth=None)

    assert answer.status_code == status, reason
    if status == 200:
        assert answer.headers["Content-Type"].lower().startswith("text/html"), reason


LEADS = [
    ("Y50", "/src", "", "the repository"),
    ("Y51", "/src/main", "/src/branch/main", "the kind is added"),
    ("Y52", "/src/feature/x/dir", "/src/branch/feature/x/dir", "with a folder"),
    ("Y53", "/src/dir/a.txt", "/src/branch/main/dir/a.txt", "no branch: a path on the default"),
    ("Y54", "/raw/main/dir/a.txt", "/raw/branch/main/dir/a.txt", "raw too"),
    ("Y55", "/commits/main", "/commits/branch/main", "history too"),
    ("Y56", "/src/v1/dir", "/src/tag/v1/dir", "a tag"),
    ("Y57", "/src/{first}", "/src/commit/{first}", "a commit"),
]


@pytest.mark.parametrize(
    ("path", "leads_to", "reason"), [row[1:] for row in LEADS], ids=[row[0] for row in LEADS]
)
def test_y_short_addresses_lead_to_full_ones(
    shop: Workshop, shelf: Shelf, path: str, leads_to: str, reason: str
) -> None:
    answer = shop.call("GET", shelf.address(path), auth=None)

    assert answer.status_code == 303, reason
    assert answer.headers["Location"] == shelf.address(leads_to), reason


RAW = [
    ("Y60", "/raw/branch/main/all.bin", bytes(range(256)), "application/octet-stream"),
    ("Y61", "/raw/branch/main/p.png", PICTURE, "image/png"),
    ("Y62", "/raw/branch/main/dir/a.txt", b"aa", "text/plain"),
    ("Y63", "/raw/commit/{first}/dir/a.txt", b"a\n", "text/plain"),
    ("Y64", "/raw/commit/{first7}/dir/a.txt", b"a\n", "text/plain"),
    ("Y65", "/raw/tag/v1/dir/to.txt", b"one\ntwo\nthree\n", "text/plain"),
    ("Y66", "/raw/branch/main/%C3%BC%20%23%3F%25%26.txt", b"odd\n", "text/plain"),
]


@pytest.mark.parametrize(
    ("path", "data", "media_type"), [row[1:] for row in RAW], ids=[row[0] for row in RAW]
)
def test_y_raw_bytes(shop: Workshop, shelf: Shelf, path: str, data: bytes, media_type: str) -> None:
    answer = shop.call("GET", shelf.address(path), auth=None)

    assert answer.status_code == 200
    assert answer.content == data
    assert answer.headers["Content-Type"].startswith(media_type)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer.headers["Content-Security-Policy"]


FORMS = [
    ("Y70", "/commit/{second}.diff", ("diff", "--find-renames=50%", "{first}", "{second}")),
    ("Y71", "/commit/{second7}.diff", ("diff", "--find-renames=50%", "{first}", "{second}")),
    ("Y72", "/commit/{first}.diff", ("show", "{first}")),
    ("Y73", "/commit/{second}.patch", ("format-patch", "-1", "{second}")),
    ("Y74", "/commit/{first}.patch", ("format-patch", "--root", "{first}")),
]


@pytest.mark.parametrize(
    ("path", "command"), [row[1:] for row in FORMS], ids=[row[0] for row in FORMS]
)
def test_y_a_commit_as_diff_and_patch_is_what_git_says(
    shop: Workshop, shelf: Shelf, path: str, command: tuple[str, ...]
) -> None:
    answer = shop.call("GET", shelf.address(path), auth=None)
    extra = ("--no-signature", "--stdout") if command[0] == "format-patch" else ()
    said = shop.git(
        "-c",
        "core.quotePath=false",
        "-c",
        "diff.algorithm=histogram",
        command[0],
        *extra,
        *(each.format(first=shelf.first, second=shelf.second) for each in command[1:]),
        cwd=shop.clone(shelf.repo),
    )

    assert answer.status_code == 200
    assert said.stdout
    assert answer.text == said.stdout
    assert answer.headers["Content-Type"].lower() == "text/plain; charset=utf-8"


EMPTY = [
    ("Y80", "", 200, "says how to fill it"),
    ("Y81", "/src/branch/main/", 200, "says the same"),
    ("Y82", "/commits/branch/main", 404, "no history"),
    ("Y83", "/branches", 404, "no branches"),
    ("Y84", "/raw/branch/main/a", 404, "no files"),
]


@pytest.mark.parametrize(
    ("path", "status", "reason"), [row[1:] for row in EMPTY], ids=[row[0] for row in EMPTY]
)
def test_y_pages_of_an_empty_repository(
    shop: Workshop, path: str, status: int, reason: str
) -> None:
    repo = shop.empty_repo()

    assert shop.call("GET", f"/{repo}{path}", auth=None).status_code == status, reason


HIDDEN = [
    ("Y90", "", 200, "the first page of a repository"),
    ("Y91", "/raw/branch/main/README.md", 200, "raw bytes"),
]


@pytest.mark.parametrize(
    ("path", "status", "reason"), [row[1:] for row in HIDDEN], ids=[row[0] for row in HIDDEN]
)
def test_y_private_pages_with_and_without_credentials(
    shop: Workshop, path: str, status: int, reason: str
) -> None:
    repo = shop.seeded_repo(private=True)
    address = f"/{repo}{path}"

    assert shop.call("GET", address, auth=None).status_code == 404, reason
    assert shop.call("GET", address, auth=shop.outsider).status_code == 404, reason
    assert shop.call("GET", address, auth=shop.admin).status_code == status, reason


def test_y95_owners_have_a_page_and_letters_may_have_any_case(shop: Workshop, shelf: Shelf) -> None:
    assert shop.call("GET", f"/{shelf.repo.owner}", auth=None).status_code == 200
    assert shop.call("GET", f"/{str(shelf.repo).upper()}", auth=None).status_code == 200
    assert shop.call("GET", "/nobody-of-that-name", auth=None).status_code == 404
    assert shop.call("GET", "/a/b/c/d", auth=None).status_code == 404
    assert shop.call("GET", "/", auth=None).status_code == 200
