"""Which deliveries of GitHub lead to a plan, and that the embedded forge sends what GitHub does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ground.errors import InvalidInputError
from ground.names import RepoId
from orderkit.core.platform.webhook_key import GITHUB_PREFIX, hook_key, is_signed
from orderkit.web.webhook_handlers import read_github_delivery
from orderkit_standins.forge.github.payloads import signature

KEY = hook_key("secret")
REPOSITORY = {"repository": {"full_name": "ae86/x"}}
PULL = {**REPOSITORY, "pull_request": {"number": 7}}


@pytest.mark.parametrize(
    ("event", "payload", "asked"),
    [
        ("push", {**REPOSITORY, "ref": "refs/heads/main"}, (RepoId("ae86", "x"), None)),
        ("push", {**REPOSITORY, "ref": "refs/heads/other"}, "changes no plan"),
        ("pull_request", {**PULL, "action": "synchronize"}, (RepoId("ae86", "x"), 7)),
        ("pull_request", {**PULL, "action": "labeled"}, "changes no plan"),
        ("pull_request_review", {**PULL, "action": "submitted"}, (RepoId("ae86", "x"), 7)),
        ("pull_request_review", {**PULL, "action": "dismissed"}, (RepoId("ae86", "x"), 7)),
        ("star", {**REPOSITORY}, "changes no plan"),
        ("ping", {}, "changes no plan"),
    ],
)
def test_a_delivery_of_github_names_what_to_plan(
    event: str, payload: dict[str, Any], asked: object
) -> None:
    found = read_github_delivery(event, json.dumps(payload).encode())

    assert found == asked or (isinstance(found, str) and str(asked) in found)


def test_a_delivery_without_a_number_is_refused() -> None:
    body = json.dumps({**REPOSITORY, "action": "opened"}).encode()

    with pytest.raises(InvalidInputError, match="number"):
        read_github_delivery("pull_request", body)


def test_the_embedded_forge_signs_as_github_does() -> None:
    body = json.dumps({**PULL, "action": "submitted"}).encode()

    claimed = signature(KEY, body)

    assert claimed.startswith(GITHUB_PREFIX)
    assert is_signed(KEY, body, claimed.removeprefix(GITHUB_PREFIX))
    assert not is_signed(KEY, body + b" ", claimed.removeprefix(GITHUB_PREFIX))
