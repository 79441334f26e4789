"""A pack that would lose a mode on its way is refused before it is published."""

from __future__ import annotations

from pathlib import Path

import pytest

from ground.errors import InvalidInputError
from orderkit.adapters.folders.pack_folder import read_folder


def pack(folder: Path, *, mode: int, text: str = "#!/bin/sh\n") -> Path:
    (folder / "pack.yaml").write_text("")
    script = folder / "templates" / "kit" / "skeleton" / "run.sh"
    script.parent.mkdir(parents=True)
    script.write_text(text)
    script.chmod(mode)
    return folder


def test_an_executable_script_in_a_skeleton_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"run\.sh.*is an executable script") as refused:
        read_folder(pack(tmp_path, mode=0o755))

    assert "chmod -x" in refused.value.hint


@pytest.mark.parametrize(
    ("mode", "text", "reason"),
    [
        (0o644, "#!/bin/sh\n", "a plain script loses nothing"),
        (0o755, "text", "file systems without modes call every file executable"),
    ],
)
def test_other_files_are_read(tmp_path: Path, mode: int, text: str, reason: str) -> None:
    assert len(read_folder(pack(tmp_path, mode=mode, text=text))) == 2, reason
