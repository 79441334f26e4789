"""The port's `special_files`: what git pushed is what a reader sees."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest

from ground.errors import NotFoundError
from ground.names import CommitSha

if TYPE_CHECKING:
    from tests.conformance.forge.conftest import Workshop


def test_m01_modes_are_those_that_git_pushed(shop: Workshop) -> None:
    repo = shop.seeded_repo()
    copy = shop.clone(repo)
    (copy / "run.sh").write_text("#!/bin/sh\n")
    (copy / "run.sh").chmod(0o755)
    (copy / "plain").write_text("x")
    (copy / "link").symlink_to("plain")
    shop.git("add", "-A", cwd=copy)
    named = f"160000,{'1' * 40},folder/sub"
    shop.git("update-index", "--add", "--cacheinfo", named, cwd=copy)
    shop.git("commit", "-q", "-m", "modes", cwd=copy)
    assert shop.git("push", "-q", "origin", "HEAD:main", cwd=copy).returncode == 0

    head = shop.forge.head(repo)
    assert head is not None
    special = shop.forge.special_files(repo, head)

    assert {str(path): entry.mode for path, entry in special.items()} == {
        "run.sh": 0o100755,
        "link": 0o120000,
        "folder/sub": 0o160000,
    }
    assert special[PurePosixPath("folder/sub")].id == "1" * 40
    tree = shop.forge.tree(repo, head)
    assert {PurePosixPath("plain"), PurePosixPath("run.sh")} < set(tree)
    assert PurePosixPath("folder/sub") not in tree
    assert shop.forge.read(repo, PurePosixPath("folder/sub"), head) is None


def test_m02_a_commit_that_is_not_there_has_no_special_files(shop: Workshop) -> None:
    with pytest.raises(NotFoundError):
        shop.forge.special_files(shop.seeded_repo(), CommitSha("0" * 40))
