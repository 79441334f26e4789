"""The state folder of an embedded platform."""

from __future__ import annotations

from pathlib import Path

from orderkit.adapters.state_folder import StateFolder, write_atomically


def test_a_credential_is_made_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    state = StateFolder(tmp_path / "state")
    first = state.credential("forge-token")
    state.close()

    again = StateFolder(tmp_path / "state")
    assert again.credential("forge-token") == first
    assert again.credential_path("forge-token").stat().st_mode & 0o777 == 0o600
    again.close()


def test_drafts_of_a_killed_writer_are_removed_at_the_next_start(tmp_path: Path) -> None:
    StateFolder(tmp_path / "state").close()
    for name in (".platform.yaml.123.draft", "credentials/.forge-token.7.draft"):
        (tmp_path / "state" / name).write_text("half")

    StateFolder(tmp_path / "state").close()

    assert list((tmp_path / "state").rglob("*.draft")) == []


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")

    write_atomically(path, "new", mode=0o600)

    assert path.read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
