"""GitHub's own descriptions as judge: of the REST calls while they are made, of GraphQL here."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.forge.conftest import Workshop, embedded_target, open_shop
from tests.conformance.forge.described import DESCRIPTION, Exchange, Judge
from tests.conformance.forge.faces import GITHUB

from orderkit.adapters.github import merging, pulls, transport, writing
from orderkit.ports.forge import PullDraft

pytestmark = pytest.mark.skipif(
    not DESCRIPTION.exists(), reason="scripts/descriptions.sh fetches GitHub's descriptions"
)
MODULES = DESCRIPTION.parents[3]
TIMEOUT_S = 60
REFS = "/repos/a/b/git/refs"
CHECK = """
const fs = require("fs");
const {buildSchema, parse, validate, getOperationAST, getVariableValues} = require("graphql");
const text = fs.readFileSync("@octokit/graphql-schema/schema.graphql", "utf8");
const known = buildSchema(text, {assumeValid: true});  // it defines a field twice
const found = [];
for (const [document, variables] of JSON.parse(fs.readFileSync(0, "utf8"))) {
  const ast = parse(document);
  found.push(...validate(known, ast).map((error) => error.message));
  const wanted = getOperationAST(ast).variableDefinitions || [];
  found.push(...(getVariableValues(known, wanted, variables).errors || []).map(String));
}
console.log(JSON.stringify(found));
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """GitHub's face of its own."""
    folder = tmp_path_factory.mktemp("described")
    with (
        embedded_target(folder / "forge", GITHUB) as (_, target),
        open_shop(target, folder) as shop,
    ):
        yield shop


@dataclass(frozen=True)
class Wrong:
    """An exchange that the description does not allow."""

    id: str
    reason: str
    exchange: Exchange
    problem: str


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
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
def test_what_the_description_does_not_allow_is_noticed(case: Wrong) -> None:
    judge = Judge(lambda *_: None)  # type: ignore[arg-type]  # it is never called

    judge.judge(case.exchange)

    assert judge.problems, case.reason
    assert case.problem in judge.problems[0]


def test_graphql_documents_and_variables_fit_githubs_schema(shop: Workshop) -> None:
    judge, forge = shop.target.judge, shop.forge
    assert judge is not None
    repo = shop.seeded_repo()
    head = forge.write(repo, [shop.new("n", "1")], shop.op(), branch="other").commit
    forge.open_pull(repo, PullDraft("t", "", "other"), shop.op())
    assert len(list(forge.open_pulls(repo.owner))) == 1
    shop.eventually(lambda: {writing.COMMIT, pulls.OPEN} <= judge.documents.keys())
    entry = {"pullRequestId": "PR_1", "expectedHeadOid": head}
    documents = {
        **judge.documents,
        merging.ENQUEUE: {"input": entry},
        merging.WAITING: {"id": "PR_1"},
        transport.NAME: {"owner": repo.owner, "name": repo.name},
    }
    node = shutil.which("node")
    assert node, "npm came with node"

    found = subprocess.run(
        [node, "-e", CHECK],
        input=json.dumps(list(documents.items())),
        capture_output=True,
        text=True,
        check=False,
        cwd=MODULES,
        timeout=TIMEOUT_S,
        env={"NODE_PATH": str(Path(MODULES))},
    )

    assert found.stderr == ""
    assert json.loads(found.stdout) == []
