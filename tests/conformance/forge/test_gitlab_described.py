"""Exchanges with the GitLab face are judged by GitLab's description, and the judge is strict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest
from tests.conformance.forge.conftest import embedded_target, open_shop
from tests.conformance.forge.exchanges import Exchange
from tests.conformance.forge.faces import GITLAB
from tests.conformance.forge.gitlab_described import API, OPERATIONS, Judge
from tests.conformance.forge.judged import GITLAB as PROCESS

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop

TOKEN: dict[str, Any] = {"username": "argocd-x", "token": "secret"}
PATH = "/groups/acme%2Fx/deploy_tokens"
BODY = {"name": "argocd-x", "scopes": ["read_repository"]}


@pytest.fixture(scope="module")
def gitlab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    folder = tmp_path_factory.mktemp("described")
    with (
        embedded_target(folder / "forge", GITLAB) as (_, target),
        open_shop(target, folder) as shop,
    ):
        yield shop


def test_each_exchange_of_the_client_is_judged(gitlab: Workshop) -> None:
    before = PROCESS.seen.copy()
    repo = gitlab.seeded_repo()
    gitlab.forge.read(repo, PurePosixPath("top.yaml"), "main")

    seen = set(PROCESS.seen - before)

    assert {"POST projects", "POST projects/:id/repository/commits"} <= seen
    assert "GET projects/:id/repository/files/:path" in seen


def test_every_operation_names_its_page() -> None:
    calls = [operation.line for operation in OPERATIONS]

    assert len(calls) == len(set(calls)) > 60


def problems(path: str, body: object, status: int, answered: object) -> list[str]:
    judge = Judge()
    sent, received = json.dumps(body).encode(), json.dumps(answered).encode()
    judge.judge(Exchange("POST", f"{API}{path}", "", sent, status, received))
    return judge.problems


def test_what_is_described_is_accepted() -> None:
    assert problems(PATH, BODY, 201, TOKEN) == []


@pytest.mark.parametrize(
    ("path", "body", "status", "answered", "reason"),
    [
        ("/groups/x/nowhere", BODY, 201, TOKEN, "an address that nothing describes"),
        (PATH, {**BODY, "nonsense": 1}, 201, TOKEN, "a field that nothing describes"),
        (PATH, {"name": "x"}, 201, TOKEN, "a field is missing"),
        (PATH, {**BODY, "scopes": "read_repository"}, 201, TOKEN, "a field of another type"),
        (PATH, BODY, 418, TOKEN, "a status that nothing describes"),
        (PATH, BODY, 201, {"username": "argocd-x"}, "the answer lacks a field"),
        (PATH, BODY, 201, [TOKEN], "the answer is a list"),
    ],
)
def test_what_is_not_is_refused(
    path: str, body: dict[str, Any], status: int, answered: object, reason: str
) -> None:
    assert problems(path, body, status, answered), reason


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, b"{}"),
        ({"X-Gitlab-Event": "Nonsense Hook"}, b"{}"),
        ({"X-Gitlab-Event": "Push Hook"}, b"{}"),
    ],
)
def test_a_delivery_that_is_not_described_is_noticed(headers: dict[str, str], body: bytes) -> None:
    judge = Judge()

    judge.delivered(headers, body)

    assert judge.problems
