"""The port's `modes`: what git pushed is what a reader sees."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest

from orderkit.core.errors import NotFoundError
from orderkit.core.names import CommitSha

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
    shop.git("commit", "-q", "-m", "modes", cwd=copy)
    assert shop.git("push", "-q", "origin", "HEAD:main", cwd=copy).returncode == 0

    head = shop.forge.head(repo)
    assert head is not None
    modes = shop.forge.modes(repo, head)

    assert modes[PurePosixPath("run.sh")] == 0o100755
    assert modes[PurePosixPath("plain")] == 0o100644
    assert modes[PurePosixPath("link")] == 0o120000
    assert set(modes) == set(shop.forge.tree(repo, head))


def test_m02_a_commit_that_is_not_there_has_no_modes(shop: Workshop) -> None:
    with pytest.raises(NotFoundError):
        shop.forge.modes(shop.seeded_repo(), CommitSha("0" * 40))
