"""``orderkit render``: flags are fetch:template's inputs; all of a tree or nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orderkit.adapters.folders.pack_folder import is_reference_pack, reference_pack
from orderkit.cli import main

Skeleton = dict[str, str]


def lay(folder: Path, files: Skeleton) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return folder


def read(folder: Path) -> Skeleton:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes().decode() for path in paths}


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(tmp_path, capsys)


class Run:
    """Runs the command on a skeleton in a temporary folder."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.out, self._capsys = root, root / "out", capsys
        (root / "values.yaml").write_text("name: cart\nports: [80, 443]\noff: false\n")

    def __call__(self, files: Skeleton, *flags: str) -> int:
        skeleton = lay(self.root / "skeleton", files)
        values = str(self.root / "values.yaml")
        arguments = ["render", str(skeleton), "--values", values, "--out", str(self.out)]
        return main.run([*arguments, *flags])

    def printed(self) -> tuple[str, str]:
        found = self._capsys.readouterr()
        return found.out, found.err


def test_files_paths_and_modes_are_rendered(run: Run) -> None:
    lay(run.root / "skeleton", {"run.sh": "#!/bin/sh\n"}).joinpath("run.sh").chmod(0o755)

    code = run(
        {"${{ values.name }}/a": "${{ values.ports }}\r\n", "{% if values.off %}b{% endif %}": ""}
    )

    assert code == 0
    assert read(run.out) == {"cart/a": "80,443\r\n", "run.sh": "#!/bin/sh\n"}
    assert os.access(run.out / "run.sh", os.X_OK)
    assert not os.access(run.out / "cart" / "a", os.X_OK)
    assert {path.name for path in run.root.iterdir()} == {"out", "skeleton", "values.yaml"}


@pytest.mark.parametrize(
    ("flags", "files", "after"),
    [
        (
            ["--copy-without-templating", "charts"],
            {"charts/${{ values.name }}": "${{ x }}", "a": "${{ values.name }}"},
            {"charts/cart": "${{ x }}", "a": "cart"},
        ),
        (
            ["--template-file-extension"],
            {"a.njk": "${{ values.name }}", "b": "${{ values.name }}", ".njk": "${{ x }}"},
            {"a": "cart", "b": "${{ values.name }}", ".njk": "${{ x }}"},
        ),
        (["--template-file-extension", ".t"], {"a.t": "${{ values.name }}"}, {"a": "cart"}),
        (
            ["--cookiecutter-compat"],
            {"{{ cookiecutter.name }}": "{{ cookiecutter.ports | jsonify }} {{ True }} ${{ 1 }}"},
            {"cart": "[80,443] true $1"},
        ),
        (["--trim-blocks"], {"a": "{% if true %}\nx\n{% endif %}\n"}, {"a": "x\n"}),
        (["--lstrip-blocks"], {"a": "  {% if true %}x\n  {% endif %}"}, {"a": "x\n"}),
    ],
)
def test_flags_are_the_inputs_of_fetch_template(
    run: Run, flags: list[str], files: Skeleton, after: Skeleton
) -> None:
    assert run(files, *flags) == 0
    assert read(run.out) == after


def test_an_existing_file_stays_unless_replace(run: Run) -> None:
    lay(run.out, {"a": "old", "mine": "kept"})

    assert run({"a": "new", "b": "new"}) == 0
    assert read(run.out) == {"a": "old", "b": "new", "mine": "kept"}
    assert run({"a": "new", "b": "new"}, "--replace") == 0
    assert read(run.out) == {"a": "new", "b": "new", "mine": "kept"}


def test_one_refused_file_leaves_everything_as_it_was(run: Run) -> None:
    lay(run.out, {"a": "old"})

    assert run({"a": "new", "b": "x\ny ${{ 1 | nope }}"}, "--replace") == 2
    assert read(run.root) == {
        "out/a": "old",
        "skeleton/a": "new",
        "skeleton/b": "x\ny ${{ 1 | nope }}",
        "values.yaml": (run.root / "values.yaml").read_text(),
    }
    assert "b:2:11: there is no filter 'nope'" in run.printed()[1]


def test_keep_going_writes_the_rest_and_reports_every_file(run: Run) -> None:
    files = {"a": "${{ values.name }}", "b": "${{ [1] | random }}", "{{ x": "", "c\0"[:1]: "c"}

    code = run(files | {"{% if values.off %}d{% endif %}": ""}, "--keep-going", "--json")

    report = json.loads(run.printed()[0])
    outcomes = {entry["path"]: entry["outcome"] for entry in report["files"]}
    refused = next(entry for entry in report["files"] if entry["path"] == "b")
    assert code == 5
    assert report["schema"] == "orderkit.render/v1"
    assert report["counts"] == {"written": 3, "fits": 0, "skipped": 1, "refused": 1}
    assert outcomes["{% if values.off %}d{% endif %}"] == "skipped"
    assert (refused["error"]["line"], refused["error"]["column"]) == (1, 11)
    assert "random" in refused["error"]["problem"]
    assert refused["error"]["hint"]
    assert read(run.out) == {"a": "cart", "c": "c", "{{ x": ""}


def test_check_needs_no_values_and_names_what_is_refused(run: Run) -> None:
    skeleton = lay(run.root / "skeleton", {"a": "${{ values.anything }}", "b": "${{ x[1:2] }}"})

    assert main.run(["render", "--check", str(skeleton), "--json"]) == 1
    report = json.loads(run.printed()[0])
    assert [entry["outcome"] for entry in report["files"]] == ["fits", "refused"]
    assert report["out"] is None


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["render", "nowhere", "--check"], 1),
        (["render", "."], 2),
        (["render", ".", "--values", "nowhere", "--out", "x"], 1),
        (["render", ".", "--template-file-extension", ".t", "--cookiecutter-compat", "--check"], 2),
    ],
)
def test_a_malformed_request_is_an_error(
    arguments: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay(tmp_path, {"a": ""})
    monkeypatch.chdir(tmp_path)

    assert main.run(arguments) == code
    assert read(tmp_path) == {"a": ""}


def test_only_the_pack_of_this_installation_is_rendered_in_process(tmp_path: Path) -> None:
    assert is_reference_pack(reference_pack() / "templates" / "garage" / "skeleton")
    assert not is_reference_pack(tmp_path)
    assert not is_reference_pack(reference_pack() / "templates" / ".." / "src")


def test_the_garage_skeleton_renders_offline(run: Run) -> None:
    values = run.root / "garage.json"
    spec = {"teamName": "ae86", "stage": "stage2"}
    given = {"order": "garage-ae86", "team": "ae86", "spec": spec, "requester": "user:me"}
    values.write_text(json.dumps(given | {"pack_commit": "c" * 40}))
    skeleton = reference_pack() / "templates" / "garage" / "skeleton"

    code = main.run(["render", str(skeleton), "--values", str(values), "--out", str(run.out)])

    assert code == 0
    assert 'teamName: "ae86"' in (run.out / "manifests" / "xgarage.yaml").read_text()


def test_a_killed_render_leaves_no_half_tree(run: Run) -> None:
    """Kill the command at its end: nothing stands under the target's name, or all of it."""
    skeleton = lay(run.root / "skeleton", {f"f{at}": "${{ values.name }}" for at in range(200)})
    command = [sys.executable, "-m", "orderkit.cli.main", "render", str(skeleton)]
    flags = ["--values", str(run.root / "values.yaml"), "--out", str(run.out)]
    script = (
        "import os, sys; from pathlib import Path; from orderkit.cli import main; "
        "from orderkit.adapters.folders import template_folder; "
        "template_folder._exchange = lambda *_: os.kill(os.getpid(), 9); "
        "main.run(sys.argv[1:])"
    )

    killed = subprocess.run(
        [sys.executable, "-c", script, *command[3:], *flags], check=False, capture_output=True
    )

    assert killed.returncode == -9
    assert not run.out.exists()
    assert main.run([*command[3:], *flags]) == 0
    assert len(read(run.out)) == 200
