"""
Gitea's HTTP API, one case per behaviour, each in a fresh repository.

A case may hold a list of steps; the last one is judged. ``{repo}``, ``{sha:PATH}`` and
``{text:CONTENT}`` are filled in by the fixture. `1.26.0` in a reason means observed there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

STALE = "0" * 39 + "1"
A = "{repo}/contents/dir/a.txt"
MANY = "{repo}/contents"


@dataclass(frozen=True)
class Case:
    id: str
    reason: str
    method: str
    path: str
    status: int
    body: Any = None
    text: str = ""
    moves_head: bool = False


def many(*files: dict[str, str], **more: str) -> dict[str, Any]:
    return {"branch": "main", "message": "m", "files": list(files), **more}


def entry(operation: str, path: str, content: str = "{text:new}", **more: str) -> dict[str, str]:
    return {"operation": operation, "path": path, "content": content, **more}


WRITES = [
    Case(
        "W01", "create", "POST", "{repo}/contents/n", 201, {"content": "{text:1}"}, moves_head=True
    ),
    Case(
        "W02",
        "create on an existing path (1.26.0)",
        "POST",
        A,
        422,
        {"content": "{text:1}"},
        "repository file already exists",
    ),
    Case(
        "W03",
        "update with the right sha",
        "PUT",
        A,
        200,
        {"content": "{text:2}", "sha": "{sha:dir/a.txt}"},
        moves_head=True,
    ),
    Case(
        "W04",
        "update with a stale sha is 422, not 409 (1.26.0)",
        "PUT",
        A,
        422,
        {"content": "{text:2}", "sha": STALE},
        "sha does not match",
    ),
    Case(
        "W05",
        "PUT without sha creates (1.26.0)",
        "PUT",
        "{repo}/contents/n",
        201,
        {"content": "{text:1}"},
        moves_head=True,
    ),
    Case(
        "W06",
        "PUT without sha on an existing path (1.26.0)",
        "PUT",
        A,
        422,
        {"content": "{text:1}"},
        "repository file already exists",
    ),
    Case(
        "W07",
        "update of a missing path (1.26.0)",
        "PUT",
        "{repo}/contents/none",
        404,
        {"content": "{text:1}", "sha": STALE},
    ),
    Case(
        "W12",
        "many files, one commit",
        "POST",
        MANY,
        201,
        many(
            entry("create", "n/1"),
            entry("update", "dir/a.txt", sha="{sha:dir/a.txt}"),
            entry("delete", "dir/b.txt", sha="{sha:dir/b.txt}"),
        ),
        moves_head=True,
    ),
    Case(
        "W13",
        "one bad entry of many: nothing is written (1.26.0)",
        "POST",
        MANY,
        422,
        many(entry("create", "n/1"), entry("update", "dir/a.txt", sha=STALE)),
    ),
    Case(
        "W14",
        "many: update without sha overwrites (1.26.0)",
        "POST",
        MANY,
        201,
        many(entry("update", "dir/a.txt")),
        moves_head=True,
    ),
    Case(
        "W17",
        "many: update of a missing path (1.26.0)",
        "POST",
        MANY,
        404,
        many(entry("update", "none", sha=STALE)),
    ),
    Case(
        "W18",
        "many: delete of a missing path",
        "POST",
        MANY,
        404,
        many(entry("delete", "none", sha=STALE)),
    ),
    Case(
        "W19",
        "many: create on an existing path",
        "POST",
        MANY,
        422,
        many(entry("create", "dir/a.txt")),
        "repository file already exists",
    ),
    Case(
        "W20",
        "many: no files is an empty commit (1.26.0)",
        "POST",
        MANY,
        201,
        many(),
        moves_head=True,
    ),
    Case("W22", "bad base64", "POST", "{repo}/contents/n", 422, {"content": "%%%"}),
    Case(
        "W23",
        "a .git component",
        "POST",
        "{repo}/contents/a/.git/config",
        422,
        {"content": "{text:1}"},
    ),
    Case(
        "W24",
        "a path below a file",
        "POST",
        "{repo}/contents/README.md/x",
        422,
        {"content": "{text:1}"},
    ),
    Case(
        "W25",
        "a path that is a folder",
        "POST",
        "{repo}/contents/dir",
        422,
        {"content": "{text:1}"},
    ),
    Case(
        "W26",
        "a missing branch (1.26.0)",
        "POST",
        MANY,
        404,
        many(entry("create", "n"), branch="nope"),
    ),
    Case(
        "W29",
        "identical content is an empty commit (1.26.0)",
        "PUT",
        A,
        200,
        {"content": "{text:a\\n}", "sha": "{sha:dir/a.txt}"},
        moves_head=True,
    ),
    Case(
        "W32",
        "many: a path above the root breaks git (1.26.0)",
        "POST",
        MANY,
        500,
        many(entry("create", "../../../n")),
    ),
    Case(
        "W35", "many: an absolute path too (1.26.0)", "POST", MANY, 500, many(entry("create", "/n"))
    ),
    Case(
        "W36",
        "many: dots inside are resolved (1.26.0)",
        "POST",
        MANY,
        201,
        many(entry("create", "a/../n")),
        text='"path":"n"',
        moves_head=True,
    ),
    Case(
        "W37",
        "many: the same path created twice (1.26.0)",
        "POST",
        MANY,
        422,
        many(entry("create", "n"), entry("create", "n")),
        "repository file already exists",
    ),
    Case("W38", "many: no list of files", "POST", MANY, 422, {"message": "m"}, "[Files]: Required"),
    Case("W39", "many: an unknown operation (1.26.0)", "POST", MANY, 500, many(entry("fly", "n"))),
    Case("W33", "an entry without operation", "POST", MANY, 422, many({"path": "x"})),
    Case("W34", "a path longer than 500", "POST", MANY, 422, many(entry("create", "x" * 501))),
]

READS = [
    Case("R01", "a file", "GET", A, 200, text='"type":"file"'),
    Case("R02", "a folder is a list", "GET", "{repo}/contents/dir", 200, text='"path":"dir/b.txt"'),
    Case("R03", "the root", "GET", "{repo}/contents", 200, text='"path":"README.md"'),
    Case("R04", "a missing file", "GET", "{repo}/contents/none", 404),
    Case("R05", "by branch", "GET", f"{A}?ref=other", 200),
    Case("R06", "by full commit id", "GET", f"{A}?ref={{head}}", 200),
    Case("R07", "a short commit id resolves to nothing", "GET", f"{A}?ref=abcdef1", 404),
    Case("R08", "an unknown ref", "GET", f"{A}?ref=nope", 404),
    Case("R09", "raw bytes", "GET", "{repo}/raw/dir/a.txt", 200, text="a\n"),
    Case("R10", "raw of a missing file", "GET", "{repo}/raw/none", 404),
    Case("R11", "raw of a folder", "GET", "{repo}/raw/dir", 404),
    Case(
        "G01",
        "the whole tree",
        "GET",
        "{repo}/git/trees/main?recursive=1",
        200,
        text='"path":"dir/a.txt"',
    ),
    Case("G02", "an unknown tree is 400", "GET", f"{{repo}}/git/trees/{STALE}", 400),
    Case("G05", "a commit by branch", "GET", "{repo}/git/commits/main", 200, text='"sha":'),
    Case("G06", "a commit by id", "GET", "{repo}/git/commits/{head}", 200, text='"message":'),
    Case("G07", "an unknown commit", "GET", f"{{repo}}/git/commits/{STALE}", 404),
    Case("G08", "history", "GET", "{repo}/commits?sha=main", 200, text="Change files"),
    Case(
        "G09", "history of a path", "GET", "{repo}/commits?path=dir/a.txt", 200, text="Change files"
    ),
    Case("G10", "history of a path that never was", "GET", "{repo}/commits?path=none", 404),
    Case("G11", "history of an unknown ref", "GET", "{repo}/commits?sha=nope", 404),
    Case("G12", "all references are a list", "GET", "{repo}/git/refs", 200, text="refs/heads/main"),
    Case(
        "G13",
        "one reference is a list too",
        "GET",
        "{repo}/git/refs/heads/main",
        200,
        text="refs/heads/main",
    ),
    Case("G14", "no reference", "GET", "{repo}/git/refs/heads/nope", 404),
    Case(
        "G15", "equal branches", "GET", "{repo}/compare/main...other", 200, text='"total_commits":0'
    ),
    Case("G16", "compare with an unknown branch", "GET", "{repo}/compare/main...nope", 404),
    Case("G17", "an archive", "GET", "{repo}/archive/main.tar.gz", 200),
    Case("G18", "an archive of an unknown ref", "GET", "{repo}/archive/nope.tar.gz", 404),
    Case("B01", "a branch", "GET", "{repo}/branches/main", 200, text='"id":"{head}"'),
    Case("B02", "no such branch", "GET", "{repo}/branches/nope", 404),
]

BRANCHES = [
    Case(
        "B10",
        "create from the default branch",
        "POST",
        "{repo}/branches",
        201,
        {"new_branch_name": "b/c"},
        '"name":"b/c"',
    ),
    Case(
        "B11",
        "create from a named one",
        "POST",
        "{repo}/branches",
        201,
        {"new_branch_name": "b", "old_ref_name": "other"},
    ),
    Case("B12", "create what exists", "POST", "{repo}/branches", 409, {"new_branch_name": "other"}),
    Case(
        "B13",
        "a prefix of another branch",
        "POST",
        "{repo}/branches",
        409,
        {"new_branch_name": "other/x"},
    ),
    Case(
        "B14",
        "from an unknown reference (1.26.0)",
        "POST",
        "{repo}/branches",
        500,
        {"new_branch_name": "b", "old_ref_name": "nope"},
    ),
    Case("B18", "a bad name", "POST", "{repo}/branches", 422, {"new_branch_name": "a b"}),
    Case("B15", "delete", "DELETE", "{repo}/branches/other", 204),
    Case("B16", "delete what is missing", "DELETE", "{repo}/branches/nope", 404),
    Case("B17", "delete the default branch", "DELETE", "{repo}/branches/main", 403),
]

REPOSITORY = [
    Case("P01", "show", "GET", "{repo}", 200, text='"default_branch":"main"'),
    Case("P02", "change the description", "PATCH", "{repo}", 200, {"description": "new text"},
         '"description":"new text"'),
    Case("P03", "make private", "PATCH", "{repo}", 200, {"private": True}, '"private":true'),
    Case("P10", "delete", "DELETE", "{repo}", 204),
    Case("P12", "an organisation", "GET", "/orgs/{owner}", 200, text='"{owner}"'),
    Case("P13", "no such organisation", "GET", "/orgs/no-such-org-1", 404),
    Case("P14", "an organisation of the same name is 422", "POST", "/orgs", 422,
         {"username": "{owner}"}),
    Case("P15", "a repository in a missing organisation", "POST", "/orgs/no-such-org-1/repos", 404,
         {"name": "x"}),
    *[
        Case(f"P2{number}", f"a repository named {name!r}", "POST", "/orgs/{owner}/repos", 422,
             {"name": name})
        for number, name in enumerate(("-", "x.git", "a b", "a/b", "", "x" * 101, "x.wiki"))
    ],
    Case("P29", "a repository named '..' (1.26.0)", "POST", "/orgs/{owner}/repos", 500,
         {"name": ".."}),
    Case("P30", "version", "GET", "/version", 200, text='"version"'),
    Case("P32", "who am I", "GET", "/user", 200, text='"login"'),
    Case("P33", "an unknown address", "GET", "/no/such/thing", 404),
]  # fmt: skip

CASES = WRITES + READS + BRANCHES + REPOSITORY


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.id} {case.reason}")
def test_the_api_answers_as_gitea_does(shop: Workshop, case: Case) -> None:
    repo = shop.seeded_repo()
    before = shop.forge.head(repo)

    answer = shop.api(case.method, shop.fill(case.path, repo), shop.fill(case.body, repo))

    assert answer.status_code == case.status, answer.text
    assert shop.fill(case.text, repo) in answer.text if case.id != "P10" else True
    if case.id != "P10":
        assert (shop.forge.head(repo) != before) == case.moves_head


def test_every_case_has_an_id_of_its_own() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
    assert len(CASES) >= 60
