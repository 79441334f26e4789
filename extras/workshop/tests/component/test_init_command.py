"""``orderkit init``: a pack of one's own, whole and committed, or nothing at all."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from commands import Done

from orderkit.adapters.folders.pack_folder import ROOMS, read_folder, reference_pack
from orderkit.core.kit.pack import read_pack
from orderkit_workshop.folders.skeletons import FOLDER


def init(*arguments: str, path: str | None = None) -> Done:
    """Run ``orderkit init`` as a process on a machine where nobody told git a name."""
    environment = {"PATH": "/usr/bin:/bin" if path is None else path, "HOME": "/nonexistent"}
    done = subprocess.run(
        [sys.executable, "-m", "orderkit", "init", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env=environment,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packs") / "My Pack"
    done = init(str(folder), "--title", 'Kits of "us"', "--orderkit", "orderkit==9.9")
    assert done.code == 0, done.err
    return folder


def test_it_is_a_repository_with_one_commit_and_nothing_left_over(pack: Path) -> None:
    assert git(pack, "log", "--format=%s %D") == "Start the pack HEAD -> main\n"
    assert git(pack, "status", "--porcelain") == ""
    assert [path.name for path in pack.parent.iterdir()] == ["My Pack"]


def test_it_is_a_pack_without_kits_and_without_our_code(pack: Path) -> None:
    read = read_pack(read_folder(pack))

    assert (read.name, read.kit_names) == ("my-pack", ())
    assert yaml.safe_load((pack / "pack.yaml").read_text())["spec"]["title"] == 'Kits of "us"'
    assert not (pack / "src").exists()
    assert not (pack / "skeletons").exists()
    assert "garage" not in " ".join(str(path) for path in pack.rglob("*"))
    assert "garage" not in (pack / "gitops/kinds.yaml").read_text().lower()
    assert "orderkit==9.9\n" in (pack / "requirements.txt").read_text()


def test_its_delivery_tree_is_the_reference_packs(pack: Path) -> None:
    ours, theirs = read_folder(reference_pack()), read_folder(pack)

    own = {"argocd-cm.yaml", "kinds.yaml"}
    shared = [path for path in theirs if path.parts[0] in ROOMS and path.name not in own]
    assert {"root.yaml", "apis.yaml", "functions.yaml"} <= {path.name for path in shared}
    for path in shared:
        assert theirs[path] == ours[path], path


def test_its_yaml_passes_its_own_yamllint(pack: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "yamllint", "--strict", "."],
        cwd=pack,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_its_ci_checks_and_tests_every_push(pack: Path) -> None:
    workflow = yaml.safe_load((pack / ".github/workflows/kits.yaml").read_text())

    steps = workflow["jobs"]["kits"]["steps"]
    ran = [step["run"].split(" --")[0] for step in steps if "run" in step]
    assert {"orderkit kit check", "orderkit kit test", "python -m pytest"} <= set(ran)
    for step in steps:
        if "uses" in step:
            assert len(step["uses"].partition("@")[2]) == 40, "pinned to a commit"


def test_it_explains_scenarios_as_we_do(pack: Path) -> None:
    ours = reference_pack() / "tests/kits/README.md"

    assert (pack / "tests/kits/README.md").read_text() == ours.read_text()


def test_what_packs_start_from_travels_in_the_wheel() -> None:
    project = tomllib.loads((reference_pack() / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]

    assert {room for room in (*ROOMS, FOLDER) if (reference_pack() / room).exists()} <= set(
        included
    )


def test_an_empty_folder_is_taken_and_a_full_one_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("mine")

    assert init(str(tmp_path / "empty"), "--no-git").code == 0
    refused = init(str(tmp_path / "full"))

    assert refused.code == 4
    assert "is not empty" in refused.err
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["file"]
    assert not (tmp_path / "empty" / ".git").exists()


def test_a_name_that_is_none_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    refused = init(str(tmp_path / "pack"), "--name", "My Pack")

    assert refused.code == 2
    assert "'My Pack'" in refused.err
    assert not list(tmp_path.iterdir())


def test_nothing_is_left_when_git_is_missing(tmp_path: Path) -> None:
    refused = init(str(tmp_path / "pack"), path="/nonexistent")

    assert refused.code == 1
    assert "git is not on PATH" in refused.err
    assert "--no-git" in refused.err
    assert not list(tmp_path.iterdir())
