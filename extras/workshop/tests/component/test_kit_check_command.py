"""``orderkit kit check`` on pack folders: output, exit code, the processes it starts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import labkit
import pytest

from orderkit.cli.main import run

SETS = """
from compositions.station import StationRequest, StationResponse

PARTS = {"alpha", "beta", "gamma", "delta", "epsilon", "zeta"}


def station(request: StationRequest) -> StationResponse:
    response = StationResponse.to(request)
    bay = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bay"}}
    response.want("bay", bay)
    if request.observed_resource("bay"):
        sheet = {"apiVersion": "v1", "kind": "ConfigMap"}
        sheet["metadata"] = {"name": "sheet", "namespace": "bay"}
        sheet["data"] = {"parts": ",".join(PARTS)}
        response.want("sheet", sheet)
    return response
"""


@pytest.fixture
def pack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    for path, data in labkit.generated(labkit.TEXTS).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    assert run(["kit", "generate", "--pack", str(tmp_path)]) == 0
    capsys.readouterr()
    return tmp_path


def check(pack: Path, *arguments: str) -> int:
    return run(["kit", "check", "--pack", str(pack), *arguments])


def swap(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (
            "def station(request)\n    return 1\n",
            ("station-broken", 1, "SyntaxError: expected ':'"),
        ),
        ("import nothing_of_that_name\n", ("station-broken", 1, "No module named")),
        (
            "\ndef station(request):\n    return request.xr['nope']\n",
            ("pipeline-fails", 3, "'nope'"),
        ),
    ],
)
def test_an_error_in_a_station_has_its_file_and_line(
    pack: Path, capsys: pytest.CaptureFixture[str], source: str, error: tuple[str, int, str]
) -> None:
    rule, line, says = error
    (pack / "stations/lab/station.py").write_text(source)

    assert check(pack) == 1

    told = capsys.readouterr()
    (found,) = (text for text in (told.out + told.err).splitlines() if " error: " in text)
    assert f"stations/lab/station.py:{line}: error: {rule}: " in found
    assert says in found


def test_a_sound_kit_passes_and_says_how_much_was_tried(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(pack, "--strict") == 0

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "1 kit, 4 example orders run: 0 errors, 0 warnings, 0 notes\n"


def test_a_finding_names_file_line_rule_and_advice(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    swap(pack / "templates/lab/kit.yaml", "fields: [size]", "fields: [sise]")

    assert check(pack, "lab") == 1

    out = capsys.readouterr().out
    place = (
        f"{pack}/templates/lab/kit.yaml:11:16: error: change-fields: spec.changes[0].fields[0]: "
    )
    assert out.startswith(f"{place}'sise' is not a field of the XRD\n")
    assert "  hint: did you mean 'size'?\n" in out


def test_warnings_fail_only_if_asked(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    swap(pack / "gitops/functions/functions.yaml", f":v0.7.0@sha256:{labkit.DIGEST}", ":latest")

    assert check(pack) == 0
    assert check(pack, "--strict") == 1
    assert "warning: function-moving" in capsys.readouterr().out


def test_json_is_one_object_with_counts_and_findings(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    swap(pack / "gitops/apis/lab/composition.yaml", "name: lab\n", "name: lap\n")

    assert check(pack, "--json") == 1

    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "orderkit.kit-check/v1"
    assert told["counts"] == {"errors": 1, "warnings": 0, "notes": 0}
    found = told["findings"][0]
    assert (found["rule"], found["severity"], found["line"]) == ("station-missing", "error", 19)
    assert "did you mean 'lab'?" in found["advice"]


def test_sarif_lists_every_rule_and_places_findings(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    swap(pack / "gitops/functions/functions.yaml", f":v0.7.0@sha256:{labkit.DIGEST}", ":latest")

    assert check(pack, "--sarif") == 0

    run_ = json.loads(capsys.readouterr().out)["runs"][0]
    result = run_["results"][0]
    rules = run_["tool"]["driver"]["rules"]
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == "function-moving"
    assert result["level"] == "warning"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 13


def test_a_station_that_follows_the_order_of_a_set_is_found_in_other_processes(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pack / "stations/lab/station.py").write_text(SETS)

    assert check(pack) == 1

    out = capsys.readouterr().out
    assert "not-deterministic" in out
    assert "resource 'sheet' differs in another process" in out


ENDS = """
import os
print("noise")
if os.environ.get("PYTHONHASHSEED") == "3":
    os._exit(4)
"""


def test_a_station_that_ends_a_process_is_reported_and_its_output_is_not_shown(pack: Path) -> None:
    (pack / "stations/lab/station.py").write_text(ENDS + SETS)
    command = [sys.executable, "-m", "orderkit", "kit", "check", "--pack", str(pack)]

    ended = subprocess.run(command, check=False, capture_output=True, text=True)

    assert ended.returncode == 1
    assert "not-deterministic" in ended.stdout
    assert "differs in another process" in ended.stdout
    assert "noise" not in ended.stdout + ended.stderr


def test_a_station_that_sorts_its_set_passes(pack: Path) -> None:
    sorted_sets = SETS.replace("join(PARTS)", "join(sorted(PARTS))")
    (pack / "stations/lab/station.py").write_text(sorted_sets)

    assert check(pack) == 0


def test_the_packs_own_yamllint_counts(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pack / ".yamllint").write_text("rules: {document-start: {level: error}}\n")

    assert check(pack) == 1
    assert "yaml-style: missing document start" in capsys.readouterr().out


def test_a_broken_yamllint_is_refused(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pack / ".yamllint").write_text("rules: {no-such-rule: enable}\n")

    assert check(pack) == 2
    assert ".yamllint" in capsys.readouterr().err


def test_an_unknown_kit_is_named(pack: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(pack, "labb") == 1
    assert "did you mean 'lab'?" in capsys.readouterr().err


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, timeout=60)


@pytest.fixture
def history(pack: Path) -> Path:
    """The pack, committed and tagged v1, inside a larger repository."""
    inner = pack / "platform"
    inner.mkdir()
    for path in [path for path in pack.iterdir() if path != inner]:
        path.rename(inner / path.name)
    (inner / "extra").symlink_to("/nowhere")
    git(pack, "init", "--quiet", "--initial-branch=main")
    git(pack, "add", "--all")
    git(pack, "commit", "--quiet", "--message=A kit")
    git(pack, "tag", "v1")
    return inner


def test_since_finds_what_living_orders_would_feel(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    swap(history / "gitops/apis/lab/definition.yaml", ", large]", "]")
    swap(history / "stations/lab/station.py", '"sheet", sheet', '"paper", sheet')

    assert run(["kit", "generate", "--pack", str(history)]) == 0
    assert check(history, "--since", "v1") == 1

    out = capsys.readouterr().out
    assert "error: since-enum: " in out
    assert "error: since-resource-gone: " in out
    assert "'sheet' (ConfigMap) is no longer composed under this name" in out
    assert check(history) == 0


def test_the_packs_own_generated_files_are_judged_too(
    pack: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (pack / "gitops/kinds.yaml").unlink()

    assert check(pack) == 1
    assert "gitops/kinds.yaml: error: drift: is missing" in capsys.readouterr().out
    assert check(pack, "lab") == 0


def test_since_finds_a_kit_that_is_gone(history: Path, capsys: pytest.CaptureFixture[str]) -> None:
    swap(history / "pack.yaml", "[lab]", "[]")

    assert check(history, "--since", "v1") == 1
    assert "pack.yaml: error: since-kit: kit 'lab' was in the pack at v1" in capsys.readouterr().out


@pytest.mark.parametrize("ref", ["v2", "--help", "", "HEAD:pack.yaml"])
def test_a_ref_that_is_no_commit_is_refused(
    history: Path, ref: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(history, f"--since={ref}") == 1
    assert "git has no commit" in capsys.readouterr().err


def test_since_needs_a_pack_at_that_commit(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git(history.parent, "checkout", "--quiet", "--orphan", "bare")
    git(history.parent, "rm", "-r", "--quiet", "--cached", ".")
    git(history.parent, "commit", "--quiet", "--allow-empty", "--message=Nothing")

    assert check(history, "--since", "bare") == 1
    assert "no pack.yaml there at 'bare'" in capsys.readouterr().err
