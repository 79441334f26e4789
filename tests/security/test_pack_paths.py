"""Paths that a pusher gave to files of a pack, which some commands write to disk."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.core.errors import InvalidInputError
from orderkit.core.kit.pack import read_pack


@pytest.mark.parametrize(
    "path",
    [
        "stations/../../evil.py",
        "stations/../evil.py",
        "/etc/cron.d/evil",
        "stations/.git/hooks/post-checkout",
        "stations/.GIT/config",
    ],
)
def test_a_file_that_leaves_the_pack_is_refused(path: str) -> None:
    """``plan`` and ``kit check --since`` write stations to a folder of their own."""
    files = {**read_folder(reference_pack()), PurePosixPath(path): b"import os"}

    with pytest.raises(InvalidInputError, match="leaves the pack"):
        read_pack(files)
