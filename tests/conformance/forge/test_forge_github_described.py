"""GitHub's descriptions judge each exchange of the suites (``judged``); the judge is strict."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.forge.conftest import embedded_target, open_shop
from tests.conformance.forge.described import DESCRIPTION, GRAPHQL, Judge, prepare
from tests.conformance.forge.exchanges import Exchange
from tests.conformance.forge.faces import GITHUB
from tests.conformance.forge.judged import GITHUB as PROCESS

from orderkit.adapters.github import pulls

pytestmark = pytest.mark.skipif(
    not DESCRIPTION.exists(), reason="scripts/descriptions.sh fetches GitHub's descriptions"
)
REFS = "/repos/a/b/git/refs"
PUSH = {"User-Agent": "x", "X-GitHub-Event": "push", "X-GitHub-Delivery": "1"}


@dataclass(frozen=True)
class Wrong:
    """An exchange that the description does not allow."""

    id: str
    reason: str
    exchange: Exchange
    problem: str


def query(document: str, variables: Any, got: Any) -> Exchange:
    sent = json.dumps({"query": document, "variables": variables}).encode()
    return Exchange("POST", GRAPHQL, "", sent, 200, json.dumps(got).encode())


def exchange(method: str, path: str, status: int, sent: Any = None, got: Any = None) -> Exchange:
    data = b"" if sent is None else json.dumps(sent).encode()
    found = Exchange(method, f"/api/v3{path}", "", data)
    found.status, found.received = status, b"" if got is None else json.dumps(got).encode()
    return found


WRONG = [
    Wrong("g01", "an unknown operation", exchange("GET", "/nowhere", 200), "no such operation"),
    Wrong(
        "g02",
        "a field that the operation does not take",
        exchange(
            "POST", "/repos/a/b/git/refs", 422, {"ref": "r", "sha": "s", "x": 1}, {"message": ""}
        ),
        "no field 'x'",
    ),
    Wrong(
        "g03",
        "a field that the operation needs",
        exchange("POST", REFS, 422, {"ref": "r"}, {"message": ""}),
        "'sha' is a required property",
    ),
    Wrong(
        "g04",
        "an answer without a field that it promises",
        exchange("GET", "/repos/a/b/git/ref/heads%2Fmain", 200, got={"ref": "refs/heads/main"}),
        "'node_id' is a required property",
    ),
    Wrong("g05", "another status", exchange("GET", "/meta", 201, got={}), "no such status"),
    Wrong("g06", "an error without a text", exchange("GET", "/meta", 404, got={}), "no message"),
    Wrong(
        "g07",
        "a status that only the older version has",
        exchange("DELETE", "/app/installations/1", 204),
        "2026-03-10: DELETE /app/installations/{installation_id} 204: the description has no such",
    ),
    Wrong("g08", "an unknown field of GraphQL", query("{nothing}", {}, {}), "Cannot query field"),
    Wrong(
        "g09",
        "a variable of another type",
        query(pulls.ENQUEUE, {"input": {}}, {}),
        "pullRequestId",
    ),
    Wrong(
        "g10",
        "an answer without what was selected",
        query(pulls.WAITING, {"id": "x"}, {"data": {"node": {}}}),
        "data.node.isInMergeQueue is missing",
    ),
    Wrong(
        "g11",
        "an answer of another type",
        query(pulls.WAITING, {"id": "x"}, {"data": {"node": {"isInMergeQueue": "no"}}}),
        "Boolean cannot represent",
    ),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
def test_what_the_description_does_not_allow_is_noticed(case: Wrong) -> None:
    judge = Judge()

    judge.judge(case.exchange)

    assert judge.problems, case.reason
    assert case.problem in judge.problems[0]


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({**PUSH, "X-GitHub-Event": "nonsense"}, "there is no nonsense"),
        ({"X-GitHub-Event": "push"}, "no header X-GitHub-Delivery"),
        (PUSH, "'ref' is a required property"),
    ],
)
def test_a_delivery_that_the_schemas_do_not_allow_is_noticed(
    headers: dict[str, str], problem: str
) -> None:
    judge = Judge()

    judge.delivered(headers, b"{}")

    assert any(problem in each for each in judge.problems)


def test_changes_of_a_version_are_patches_of_what_they_stand_beside() -> None:
    done, later = {"description": "done"}, {"description": "later"}
    merged = {"responses": {"204": None, "202": later}}
    edits = [{"op": "remove", "path": "/fields/0"}, {"op": "replace", "path": "/a~1b", "value": 2}]
    changes = [{"version": "2026-03-10", "patch": patch} for patch in (merged, edits)]

    def described(version: str) -> dict[str, Any]:
        whole = {"responses": {"204": done}, "fields": [1, 2], "a/b": 1}
        node = {"deep": {**whole, "x-github-breaking-changes": changes}}
        prepare(node, version)
        return node["deep"]

    assert described("2022-11-28") == {"responses": {"204": done}, "fields": [1, 2], "a/b": 1}
    assert described("2026-03-10") == {"responses": {"202": later}, "fields": [2], "a/b": 2}


def test_each_exchange_of_the_client_is_judged(tmp_path: Path) -> None:
    with (
        embedded_target(tmp_path / "forge", GITHUB) as (_, target),
        open_shop(target, tmp_path) as shop,
    ):
        repo = shop.seeded_repo()
        shop.forge.write(repo, [shop.new("n", "1")], shop.op())

    assert "POST /orgs/{org}/repos" in PROCESS.seen
    assert PROCESS.documents
