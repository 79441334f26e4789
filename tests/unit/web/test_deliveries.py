"""What a forge's delivery asks for, what it does not, and what is none of a forge's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ground.errors import InvalidInputError
from ground.names import RepoId
from orderkit.web.webhook_handlers import (
    Asked,
    read_delivery,
    read_github_delivery,
    read_gitlab_delivery,
)

REPO = RepoId("ae86", "garage-a")
OURS = {"repository": {"full_name": "ae86/garage-a"}}
PULL = {**OURS, "action": "opened", "number": 7}
PROJECT = {"project": {"path_with_namespace": "ae86/garage-a"}}
MERGE = {**PROJECT, "object_attributes": {"action": "open", "iid": 7}}


def named(full_name: str) -> RepoId | None:
    return REPO if full_name == "ae86/garage-a" else None


def read(forge: str, event: str, payload: Any) -> Asked | str:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    if forge == "gitlab":
        return read_gitlab_delivery(event, body, named)
    return (read_delivery if forge == "gitea" else read_github_delivery)(event, body)


@pytest.mark.parametrize(
    ("forge", "event", "payload", "asked"),
    [
        ("gitea", "push", {**OURS, "ref": "refs/heads/main"}, (REPO, None)),
        ("gitea", "push", {**OURS, "ref": "refs/heads/other"}, "push to 'refs/heads/other'"),
        ("gitea", "push", {"ref": "refs/tags/" + "x" * 60}, "push to 'refs/tags/xxx"),
        ("gitea", "pull_request", PULL, (REPO, 7)),
        ("gitea", "pull_request", {**PULL, "action": "labeled"}, "action 'labeled'"),
        ("gitea", "star", b"{", "event 'star'"),
        ("github", "pull_request", {**PULL, "pull_request": {"number": 8}}, (REPO, 8)),
        ("gitlab", "Push Hook", {**PROJECT, "ref": "refs/heads/main"}, (REPO, None)),
        ("gitlab", "Push Hook", {**PROJECT, "ref": "refs/heads/x"}, "push to 'refs/heads/x'"),
        ("gitlab", "Merge Request Hook", MERGE, (REPO, 7)),
        (
            "gitlab",
            "Merge Request Hook",
            {**PROJECT, "object_attributes": {"action": "unlabel", "iid": 7}},
            "action 'unlabel'",
        ),
        ("gitlab", "Merge Request Hook", {**PROJECT, "object_attributes": []}, "action 'None'"),
        ("gitlab", "Job Hook", b"{", "event 'Job Hook'"),
    ],
)
def test_a_delivery_asks_for_the_plans_that_it_changes(
    forge: str, event: str, payload: Any, asked: Asked | str
) -> None:
    found = read(forge, event, payload)

    if isinstance(asked, str):
        assert isinstance(found, str)
        assert found.startswith(asked)
        assert found.endswith(" changes no plan")
        assert len(found) < 80
    else:
        assert found == asked


LONG = b"[" + b" " * 90 + b"]"


@pytest.mark.parametrize(
    ("forge", "event", "payload", "field", "value"),
    [
        ("gitea", "push", b"{" * 90, "body", b"{" * 80),
        ("gitea", "push", b"[" * 200_000, "body", b"[" * 80),
        ("gitea", "push", LONG, "body", LONG[:80]),
        ("gitea", "push", {"ref": "refs/heads/main"}, "repository.full_name", None),
        (
            "gitea",
            "push",
            {"ref": "refs/heads/main", "repository": {"full_name": "../x"}},
            "repository.full_name",
            "../x",
        ),
        (
            "gitea",
            "push",
            {"ref": "refs/heads/main", "repository": {"full_name": 7}},
            "repository.full_name",
            7,
        ),
        ("gitea", "pull_request", {**PULL, "number": 0}, "number", 0),
        ("gitea", "pull_request", {**PULL, "number": True}, "number", True),
        ("gitea", "pull_request", {**PULL, "number": "7"}, "number", "7"),
        ("gitea", "pull_request", {**PULL, "number": 10**9}, "number", 10**9),
        ("github", "pull_request", {**PULL, "pull_request": [7]}, "number", None),
        ("gitlab", "Push Hook", {"project": []}, "project.path_with_namespace", None),
        (
            "gitlab",
            "Push Hook",
            {"project": {"path_with_namespace": "a/b"}},
            "project.path_with_namespace",
            "a/b",
        ),
        (
            "gitlab",
            "Push Hook",
            {"project": {"path_with_namespace": ["a"]}},
            "project.path_with_namespace",
            ["a"],
        ),
        (
            "gitlab",
            "Merge Request Hook",
            {**PROJECT, "object_attributes": {"action": "open"}},
            "number",
            None,
        ),
    ],
)
def test_what_no_forge_sends_is_refused_by_its_field(
    forge: str, event: str, payload: Any, field: str, value: object
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        read(forge, event, payload)

    assert (refused.value.field, refused.value.value) == (field, value)


def test_the_greatest_number_of_a_pull_request_is_read() -> None:
    assert read("gitea", "pull_request", {**PULL, "number": 10**9 - 1}) == (REPO, 10**9 - 1)
