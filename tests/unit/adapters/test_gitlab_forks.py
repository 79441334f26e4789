"""A merge request of a fork is never taken for one of the project's own branches."""

from __future__ import annotations

import pytest

from orderkit.adapters.gitlab.pulls import is_own


@pytest.mark.parametrize(
    ("source", "target", "own", "reason"),
    [
        (7, 7, True, "a branch of the project"),
        (8, 7, False, "a branch of a fork, whatever it is called"),
        (None, 7, False, "the fork is gone"),
    ],
)
def test_only_branches_of_the_project_are_its_own(
    source: int | None, target: int, reason: str, *, own: bool
) -> None:
    assert is_own({"source_project_id": source, "target_project_id": target}) is own, reason
