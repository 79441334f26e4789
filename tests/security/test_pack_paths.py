"""Paths that a pusher gave to files of a pack, which some commands write to disk."""

from __future__ import annotations

import subprocess
from pathlib import Path, PurePosixPath

import pytest
from packcopies import copied_pack

from ground.errors import InvalidInputError
from orderkit.adapters.folders.pack_folder import (
    read_commit,
    read_folder,
    reference_pack,
    write_file,
)
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


def test_a_link_in_a_pack_is_neither_read_nor_written_through(tmp_path: Path) -> None:
    """It would publish a file of this machine, or overwrite one."""
    secret, pack = tmp_path / "secret", copied_pack(tmp_path / "pack")
    secret.write_text("lantern-59")
    link = pack / "stations" / "notes.txt"
    link.symlink_to(secret)

    with pytest.raises(InvalidInputError, match="is a symbolic link"):
        read_folder(pack)
    with pytest.raises(InvalidInputError, match="is a symbolic link"):
        write_file(pack, PurePosixPath("stations/notes.txt"), b"new")
    assert secret.read_text() == "lantern-59"

    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "x")):
        person = ("-c", "user.name=eve", "-c", "user.email=eve@example.org")
        subprocess.run(["git", "-C", str(pack), *person, *words], check=True)
    with pytest.raises(InvalidInputError, match="is a link"):
        read_commit(pack, "HEAD")
