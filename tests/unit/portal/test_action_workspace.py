"""What the steps of a task put into its workspace."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, cast

import pytest

from ground.errors import RefusedError
from orderkit.flows.template.actions.action_context import ActionContext, MemoryFolder, User
from softwaretemplates.render import SkeletonFile

ONE, OTHER = SkeletonFile(b"1"), SkeletonFile(b"2")


@pytest.fixture
def context() -> ActionContext:
    no_renderer = cast("Any", None)
    user = User("user:default/zoe")
    return ActionContext(MemoryFolder({}), "", None, user, "t", print, no_renderer)


def put(context: ActionContext, path: str, file: SkeletonFile = ONE) -> None:
    context.put(PurePosixPath(path), file)


def test_a_file_takes_the_place_of_one_of_its_name(context: ActionContext) -> None:
    put(context, "a/b")
    put(context, "a/b", OTHER)
    put(context, "a/bc")
    put(context, "a/b.txt")

    assert list(context.workspace.values()) == [OTHER, ONE, ONE]


def test_nothing_is_put_below_a_file(context: ActionContext) -> None:
    put(context, "a")
    with pytest.raises(RefusedError, match="a/b/c: 'a' is a file in the workspace, not a folder"):
        put(context, "a/b/c")


def test_no_file_takes_the_place_of_a_folder(context: ActionContext) -> None:
    put(context, "a/b/c")
    with pytest.raises(RefusedError, match="a/b: is a folder in the workspace already"):
        put(context, "a/b", OTHER)
    assert list(context.workspace) == [PurePosixPath("a/b/c")]
