"""Names of repositories: the last part is the name, however many parts the owner has."""

from __future__ import annotations

import pytest

from ground.names import RepoId


@pytest.mark.parametrize(
    ("text", "owner", "name"),
    [("ae86/garage-x", "ae86", "garage-x"), ("acme/web/garage-x", "acme/web", "garage-x")],
)
def test_the_last_part_is_the_name(text: str, owner: str, name: str) -> None:
    repo = RepoId.parse(text)

    assert repo == RepoId(owner, name)
    assert str(repo) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ae86", "it has no owner"),
        ("ae86/", "it has no name"),
        ("/x", "the owner is empty"),
        ("a//x", "a part is empty"),
        ("a/../x", "a part leaves the group"),
        ("a/x/..", "the name leaves the group"),
        ("a/x/.", "the name is the group"),
        ("-a/x", "a program takes it for an option"),
        ("a/x?b", "an address has another meaning then"),
        ("a/x\n", "it has a line break"),
        ("a/" + "x" * 101, "it is too long"),
    ],
)
def test_what_names_no_repository_is_none(text: str, reason: str) -> None:
    assert RepoId.parse(text) is None, reason
