"""
Where Gitea 1.26, Gitea 1.24 and Forgejo answer differently: one row per difference.

The column "1.26" is observed and also tried on a real Gitea; the other two are read from
source and tried on the embedded forge with that behaviour.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.conformance.forge.conftest import (
    TIMEOUT_S,
    Workshop,
    embedded_target,
    open_shop,
)
from tests.conformance.forge.pullcases import Pulls

from orderkit.adapters.embedded.forge import EmbeddedForge
from orderkit.adapters.embedded.forge.behaviour import BEHAVIOURS
from orderkit.cli.commands.platform import FORGE_BEHAVIOURS
from orderkit.core.errors import InvalidInputError

STALE = "0" * 39 + "1"
A = "{repo}/contents/dir/a.txt"
NONE = "{repo}/contents/none"
MANY = "{repo}/contents"
NEW = {"content": "{text:new}"}
OLD_SHA = {"content": "{text:new}", "sha": STALE}


@dataclass(frozen=True)
class Row:
    id: str
    reason: str
    method: str
    path: str
    body: Any
    observed: int
    """1.26"""
    old: int
    """1.24"""
    forgejo: int


def many(operation: str, path: str, sha: str = "", **more: str) -> dict[str, Any]:
    entry = {"operation": operation, "path": path, "content": "{text:new}"}
    return {"files": [entry | ({"sha": sha} if sha else {})], **more}


ROWS = [
    Row("V01", "PUT with a stale sha", "PUT", A, OLD_SHA, 422, 422, 409),
    Row("V02", "many: a stale sha", "POST", MANY, many("update", "dir/a.txt", STALE),
        422, 422, 409),
    Row("V03", "many: delete with a stale sha", "POST", MANY, many("delete", "dir/a.txt", STALE),
        422, 422, 409),
    Row("V04", "DELETE with a stale sha", "DELETE", A, {"sha": STALE}, 422, 400, 400),
    Row("V05", "PUT of a new path without sha", "PUT", NONE, NEW, 201, 422, 422),
    Row("V06", "PUT of a present path without sha", "PUT", A, NEW, 422, 422, 422),
    Row("V07", "DELETE without sha", "DELETE", A, {}, 422, 422, 422),
    Row("V08", "many: update without sha", "POST", MANY, many("update", "dir/a.txt"),
        201, 201, 422),
    Row("V09", "many: delete without sha", "POST", MANY, many("delete", "dir/a.txt"),
        201, 201, 422),
    Row("V10", "many: update without sha for a new branch", "POST", MANY,
        many("update", "dir/a.txt", new_branch="fresh"), 201, 201, 201),
    Row("V11", "PUT of a missing path", "PUT", NONE, OLD_SHA, 404, 500, 500),
    Row("V12", "many: update of a missing path", "POST", MANY, many("update", "none", STALE),
        404, 500, 500),
    Row("V13", "DELETE of a missing path", "DELETE", NONE, {"sha": STALE}, 404, 404, 404),
    Row("V14", "many: delete of a missing path", "POST", MANY, many("delete", "none", STALE),
        404, 500, 500),
    Row("V15", "create on a present path", "POST", A, NEW, 422, 422, 422),
    Row("V16", "create on a missing branch", "POST", NONE, NEW | {"branch": "nope"}, 404, 404, 404),
    Row("V17", "DELETE on a missing branch", "DELETE", A, {"sha": STALE, "branch": "nope"},
        404, 500, 404),
    Row("V18", "create with a new branch that exists", "POST", NONE, NEW | {"new_branch": "other"},
        422, 422, 422),
    Row("V19", "DELETE with a new branch that exists", "DELETE", A,
        {"sha": "{sha:dir/a.txt}", "new_branch": "other"}, 422, 400, 400),
    Row("V20", "many: upload", "POST", MANY, many("upload", "none"), 201, 500, 500),
    Row("V21", "many: rename", "POST", MANY,
        {"files": [{"operation": "rename", "path": "n", "from_path": "dir/a.txt",
                    "content": "{text:a}", "sha": "{sha:dir/a.txt}"}]}, 201, 500, 500),
    Row("V22", "a path below a file", "POST", "{repo}/contents/README.md/x", NEW, 422, 422, 422),
    Row("V23", "bad base64", "POST", NONE, {"content": "%%%"}, 422, 422, 422),
]  # fmt: skip


@dataclass
class Forge:
    """A forge with the name of the column it is judged by."""

    column: str
    shop: Workshop
    embedded: EmbeddedForge | None


@pytest.fixture(scope="module", params=["1.26-observed", "1.24-read", "forgejo-read"])
def forge(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Forge]:
    """An embedded forge per column."""
    column = request.param.partition("-")[0]
    folder = tmp_path_factory.mktemp("column")
    with (
        embedded_target(folder, column) as (embedded, target),
        open_shop(target, tmp_path_factory.mktemp("work")) as shop,
    ):
        yield Forge(column, shop, embedded)


def expected(row: Row, column: str) -> int:
    return {"1.26": row.observed, "1.24": row.old, "forgejo": row.forgejo}[column]


def judge(row: Row, column: str, shop: Workshop) -> None:
    repo = shop.seeded_repo()
    before = shop.forge.head(repo)

    answer = shop.api(row.method, shop.fill(row.path, repo), shop.fill(row.body, repo))

    assert answer.status_code == expected(row, column), answer.text
    moves = answer.status_code < 300 and "new_branch" not in row.body
    assert (shop.forge.head(repo) != before) == moves


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.id} {row.reason}")
def test_each_behaviour_answers_by_its_column(forge: Forge, row: Row) -> None:
    judge(row, forge.column, forge.shop)


@pytest.mark.parametrize("target", ["real"], indirect=True, scope="package")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.id} {row.reason}")
def test_the_first_column_is_that_of_a_real_gitea(shop: Workshop, row: Row) -> None:
    judge(row, "1.26", shop)


@pytest.mark.embedded_only("the version text is our own")
def test_v30_the_version_names_the_release_and_that_it_is_not_it(forge: Forge) -> None:
    found = forge.shop.api("GET", "/version").json()["version"]

    assert found == BEHAVIOURS[forge.column].version
    assert "orderkit" in found
    assert ("+gitea-" in found) == (forge.column == "forgejo")


@pytest.mark.embedded_only("D cases try it there")
def test_v31_put_on_an_empty_repository(forge: Forge) -> None:
    """1.26 creates (observed, see D* cases); the others say that it is empty."""
    repo = forge.shop.empty_repo()
    body = forge.shop.fill(OLD_SHA, repo) if forge.column != "1.26" else {"content": "YQ=="}

    answer = forge.shop.api("PUT", f"/repos/{repo}/contents/a", body)

    assert answer.status_code == (201 if forge.column == "1.26" else 422)
    assert forge.column == "1.26" or "repo is empty" in answer.text


RACE = {"1.26": 403, "1.24": 500, "forgejo": 500}


@pytest.mark.embedded_only("takes git's lock in the forge's own folder")
def test_v32_a_locked_branch_answers_as_a_lost_race(forge: Forge) -> None:
    """Another process holds git's lock of the branch: certain, where a race is luck."""
    shop, repo = forge.shop, forge.shop.seeded_repo()
    before = shop.forge.head(repo)
    assert forge.embedded is not None
    folder = forge.embedded.repository_path(repo)
    assert folder is not None
    lock = folder / "refs" / "heads" / "main.lock"
    lock.touch()

    answer = shop.api("POST", f"/repos/{repo}/contents/n", {"content": "YQ=="})
    lock.unlink()

    assert answer.status_code == RACE[forge.column], answer.text
    assert "cannot lock ref 'refs/heads/main'" in answer.json()["message"]
    assert shop.forge.head(repo) == before
    again = shop.api("POST", f"/repos/{repo}/contents/n", {"content": "YQ=="})
    assert again.status_code == 201


@pytest.mark.embedded_only("F27 is the race there")
def test_v33_of_concurrent_writers_the_losers_are_told_and_leave_nothing(forge: Forge) -> None:
    shop, repo = forge.shop, forge.shop.seeded_repo()
    before = len(shop.api("GET", f"/repos/{repo}/commits?limit=50").json())
    statuses: list[int] = []
    deadline = time.monotonic() + TIMEOUT_S

    for round_no in range(100):
        start = threading.Barrier(8)

        def write(writer: int, start: threading.Barrier = start, round_no: int = round_no) -> int:
            start.wait()
            path = f"/repos/{repo}/contents/{round_no}/{writer}"
            headers = {"Authorization": f"token {shop.target.token}"}
            return send(f"{shop.target.url}/api/v1{path}", headers)

        with ThreadPoolExecutor(8) as pool:
            statuses += pool.map(write, range(8))
        if RACE[forge.column] in statuses or time.monotonic() > deadline:
            break

    won = statuses.count(201)
    assert set(statuses) == {201, RACE[forge.column]}
    total = shop.api("GET", f"/repos/{repo}/commits?limit=1").headers["X-Total-Count"]
    assert int(total) == before + won


def send(url: str, headers: dict[str, str]) -> int:
    """One write over a connection of its own."""
    answer = requests.post(url, json={"content": "YQ=="}, headers=headers, timeout=TIMEOUT_S)
    return answer.status_code


UPDATES = {"1.26": 204, "1.24": 405, "forgejo": 405}


@pytest.mark.embedded_only("B130 tries it there")
def test_v34_a_branch_is_moved_by_put(forge: Forge) -> None:
    repo = forge.shop.seeded_repo()
    body = {"new_commit_id": forge.shop.forge.head(repo)}

    answer = forge.shop.api("PUT", f"/repos/{repo}/branches/other", body)

    assert answer.status_code == UPDATES[forge.column]


AGAIN = {"1.26": "The PR is already merged", "1.24": "", "forgejo": ""}


@pytest.mark.embedded_only("P211 tries it there")
def test_v35_a_second_merge_is_405_in_these_words(forge: Forge) -> None:
    own = Pulls(forge.shop, forge.shop.seeded_repo())
    own.branch("x")
    number = own.open("x")
    assert own.merge(number).status_code == 200

    again = own.try_merge(number)

    assert (again.status_code, again.json()["message"]) == (405, AGAIN[forge.column])


SILENT = {"1.26": "pending", "1.24": "", "forgejo": ""}


@pytest.mark.embedded_only("S102 tries it there")
def test_v36_a_commit_of_which_nobody_said_anything(forge: Forge) -> None:
    repo = forge.shop.seeded_repo()

    found = forge.shop.api("GET", f"/repos/{repo}/commits/main/status").json()

    assert (found["state"], found["total_count"]) == (SILENT[forge.column], 0)


AT_ONCE = {"1.26": True, "1.24": False, "forgejo": False}


@pytest.mark.embedded_only("S110 tries it there")
def test_v37_a_merge_that_waits_for_no_checks(forge: Forge) -> None:
    """1.26 looks at once, the others at the next status, of whatever context."""
    own = Pulls(forge.shop, forge.shop.seeded_repo())
    sha = own.branch("x")
    number = own.open("x")

    kept = own.merge(number, merge_when_checks_succeed=True)
    merged = own.get(number)["merged"]
    own.api("POST", f"/statuses/{sha}", {"state": "success", "context": "any"})

    assert (kept.status_code, merged) == (201, AT_ONCE[forge.column])
    assert own.get(number)["merged"] is True


def test_an_unknown_behaviour_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"1\.24, forgejo"):
        EmbeddedForge(tmp_path, behaviour="gogs")


def test_the_command_line_offers_every_behaviour() -> None:
    assert set(FORGE_BEHAVIOURS) == set(BEHAVIOURS)


def test_every_row_has_an_id_of_its_own() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS)
