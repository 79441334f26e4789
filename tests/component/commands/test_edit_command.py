"""``orderkit edit``: files, standard input, differences, refusals; all edits or none."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ground.errors import ConflictError
from orderkit.adapters.folders.edited_file import write_file
from orderkit.cli import main
from yamlfiles.assignments import edit_bytes
from yamlfiles.edit import LIMITS, Edit

TEXT = "# mine\nspec:\n  stage: stage1   # today\n  hosts:\n    - a\n  note: 'x'\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.yaml"
    path.write_text(TEXT)
    return path


def test_the_new_text_is_printed_and_the_file_stays(
    file: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main.run(["edit", str(file), "spec.stage=stage3", "spec.hosts+=b"]) == 0
    after = TEXT.replace("stage1", "stage3").replace("- a\n", "- a\n    - b\n")
    assert capfdbinary.readouterr().out.decode() == after
    assert file.read_text() == TEXT


def test_in_place_keeps_the_mode_and_the_link(tmp_path: Path, file: Path) -> None:
    file.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to("x.yaml")
    assert main.run(["edit", str(link), "spec.note-", "--in-place"]) == 0
    assert link.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert file.read_text() == TEXT.replace("  note: 'x'\n", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.yaml", "x.yaml"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_in_place_keeps_the_owner(file: Path) -> None:
    os.chown(file, 1234, 2345)
    assert main.run(["edit", str(file), "spec.stage=stage3", "-i"]) == 0
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 2345)


def test_an_edit_that_changes_nothing_does_not_touch_the_file(file: Path) -> None:
    before = file.stat()
    assert main.run(["edit", str(file), "spec.stage=stage1", "-i"]) == 0
    assert file.stat().st_ino == before.st_ino


def test_a_difference_can_be_applied_by_patch(
    file: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    file.write_bytes(TEXT.replace("\n", "\r\n").encode().rstrip())
    assert main.run(["edit", str(file), "spec.note=y", "--diff"]) == 0
    shown = capfdbinary.readouterr().out
    assert b"\\ No newline at end of file" in shown
    subprocess.run(["git", "init", "-q"], cwd=file.parent, check=True)
    patch = shown.replace(str(file).encode(), b"x.yaml")
    subprocess.run(["git", "apply", "-"], cwd=file.parent, input=patch, check=True)
    assert file.read_bytes() == TEXT.replace("\n", "\r\n").encode().rstrip().replace(b"'x'", b"'y'")


def test_standard_input_and_output() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "orderkit", "edit", "-", "spec.stage=2", "--string", "spec.note=2"],
        input=TEXT.encode(),
        capture_output=True,
        check=True,
    )
    assert b"stage: 2   # today" in done.stdout
    assert b"note: '2'" in done.stdout


def told(capfd: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    assert found["schema"] == "orderkit.edit/v1"
    return found


def test_json_tells_what_was_done(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert (
        main.run(["edit", str(file), "spec.stage=stage3", "--unset", "spec.hosts[0]", "--json"])
        == 0
    )
    found = told(capfd)
    assert (found["changed"], found["written"]) == (True, False)
    assert found["text"] == TEXT.replace("stage1", "stage3").replace("hosts:\n    - a", "hosts: []")
    assert found["edits"][1] == {"path": ["spec", "hosts", 0], "op": "unset", "value": None}


def test_a_refusal_has_a_code_a_line_and_exit_code_4(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file.write_text("a: &x 1\nb: *x\n")
    assert main.run(["edit", str(file), "c=1", "b=2", "--json", "-i"]) == 4
    refused = told(capfd)["refused"]
    assert (refused["code"], refused["line"]) == ("alias", 2)
    assert refused["hint"]
    assert file.read_text() == "a: &x 1\nb: *x\n"
    assert main.run(["edit", str(file), "b=2"]) == 4
    assert f"{file}:2: b: is the alias *x" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["nothing.yaml", "a=1"], 1),
        (["{file}"], 2),
        (["{file}", "a"], 2),
        (["-", "a=1", "--in-place"], 2),
        (["{file}", "a=1", "--document", "3"], 4),
    ],
)
def test_exit_codes(file: Path, arguments: list[str], code: int) -> None:
    assert main.run(["edit", *(word.replace("{file}", str(file)) for word in arguments)]) == code
    assert file.read_text() == TEXT


def test_a_file_that_changed_meanwhile_is_left_alone(file: Path) -> None:
    edited = edit_bytes("x", file.read_bytes(), [Edit(("new",), value=1)])
    file.write_text("other: 1\n")
    with pytest.raises(ConflictError):
        write_file(file, edited)
    assert file.read_text() == "other: 1\n"
    assert list(file.parent.iterdir()) == [file]


def test_a_folder_that_cannot_be_written_to_is_an_error_without_rests(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main.run(["edit", str(file), "spec.stage=2", "-i"]) == 1
    assert file.read_text() == TEXT
    assert list(file.parent.iterdir()) == [file]


def test_a_large_standard_input_is_refused_without_reading_it_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = io.TextIOWrapper(io.BytesIO(b"a: 1\n" * LIMITS.size_bytes))
    monkeypatch.setattr(sys, "stdin", source)
    assert main.run(["edit", "-", "a=1"]) == 4
    assert source.buffer.tell() < 2 * LIMITS.size_bytes
