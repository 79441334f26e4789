"""Each bad input has its own message and exit code, and leaves nothing half written."""

from __future__ import annotations

import json
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests
from commands import Command

from ground.names import RepoId
from ground.objects.kube_objects import ObjectKey, condition
from ground.shapes import changed
from orderkit.adapters.folders.pack_folder import read_folder, reference_pack
from orderkit.cli.main import run
from orderkit.core.platform import settings as platform_settings
from orderkit.flows.repeating import until
from orderkit.ports.clock import SystemClock
from orderkit_standins.serve_platform import Running


def heads(platform: Running) -> object:
    """Return what any order would change: the ledger's head and the team's repositories."""
    forge = platform.platform.forge
    team = requests.get(f"{forge.base_url}/api/v1/orgs/ae86/repos", timeout=10).json()
    return forge.head(platform.platform.ledger), sorted(each["name"] for each in team)


@dataclass(frozen=True)
class Case:
    reason: str
    arguments: str
    code: int
    says: tuple[str, ...]


CASES = [
    Case("team off the pattern", "garage team_name=AE_86 stage=stage2", 2, ("team_name", "ae86")),
    Case("team with a newline", "garage team_name=ae86\n stage=stage2", 2, ("team_name",)),
    Case("unknown stage", "garage team_name=ae86 stage=stage9", 2, ("stage", "stage9", "stage3")),
    Case("unknown kit", "garge team_name=ae86 stage=stage2", 1, ("garge", "garage")),
    Case("unknown field", "garage team=ae86 stage=stage2", 2, ("team", "team_name")),
    Case("missing field", "garage team_name=ae86", 2, ("stage",)),
    Case("no value", "garage team_name", 2, ("FIELD=VALUE",)),
    Case("field given twice", "garage stage=stage1 stage=stage2", 2, ("twice",)),
    Case("unknown team", "garage team_name=nobody stage=stage2", 1, ("nobody", "team add")),
    Case(
        "sentinel for a baked value",
        "garage team_name=ae86 stage=stage1 pack_commit=__X__",
        2,
        ("pack_commit",),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_a_bad_order_is_refused_with_its_reason(
    case: Case, orderkit: Command, platform: Running
) -> None:
    before = heads(platform)

    done = orderkit("order", *case.arguments.split(" "))

    assert done.code == case.code, done.err
    assert all(text in done.err for text in case.says), done.err
    assert heads(platform) == before


def test_another_order_of_the_same_id_is_a_conflict_that_names_the_difference(
    orderkit: Command, platform: Running, team: str
) -> None:
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage1").code == 0
    repo = RepoId(team, f"garage-{team}")
    head = platform.platform.forge.head(repo)

    done = orderkit("order", "garage", f"team_name={team}", "stage=stage2")

    assert done.code == 3
    assert "'stage1', asked for 'stage2'" in done.err
    assert platform.platform.forge.head(repo) == head


def test_a_repository_that_is_no_order_is_not_taken(
    orderkit: Command, platform: Running, team: str
) -> None:
    from pathlib import PurePosixPath

    from orderkit.ports.forge import FileChange, Operation

    forge, repo = platform.platform.forge, RepoId(team, f"garage-{team}")
    forge.ensure_repo(repo, description="somebody's own")
    mine = FileChange(PurePosixPath("README.md"), b"mine\n", None)
    head = forge.write(repo, [mine], Operation("own", "user:default/x", "mine")).commit

    done = orderkit("order", "garage", f"team_name={team}", "stage=stage2")

    assert (done.code, "is not an order of ours" in done.err) == (3, True)
    assert forge.head(repo) == head


def up(tmp_path: Path, pack: Path | None = None, *extra: str) -> int:
    arguments = ["up", "--state", str(tmp_path / "state"), *extra]
    for part in ("forge", "cluster", "portal", "service"):
        if f"--{part}-port" not in extra:
            arguments += [f"--{part}-port", "0"]
    return run(arguments + (["--pack", str(pack)] if pack else []))


def test_a_port_in_use_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        code = up(tmp_path, None, "--portal-port", port)

    said = capsys.readouterr().err
    assert code == 1
    assert f"port {port}" in said
    assert "--portal-port" in said


def test_an_unknown_twin_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = up(tmp_path, None, "--twins", "aws,heml")

    said = capsys.readouterr().err
    assert (code, "--twins: 'heml' is not a twin" in said) == (2, True)
    assert "did you mean 'helm'?" in said
    assert not (tmp_path / "state").exists()


def test_a_twin_that_was_asked_for_plays_its_provider(platform: Running) -> None:
    """``up --twins helm``: a pack without Providers has releases that get ready."""
    release = {
        "apiVersion": "helm.m.crossplane.io/v1beta1",
        "kind": "Release",
        "metadata": {"name": "ingress", "namespace": "default"},
        "spec": {"forProvider": {"chart": {"name": "ingress", "version": "1.0.0"}}},
    }
    cluster, key = platform.platform.cluster, ObjectKey.of(release)
    until(
        SystemClock(),
        lambda: cluster.serves(key.kind),
        lambda served: served,
        timeout_s=90.0,
        goal="releases are served",
    )
    cluster.apply(release, owner="test")

    ready = until(
        SystemClock(),
        lambda: cluster.get(key) or {},
        lambda seen: (condition(seen, "Ready") or {}).get("status") == "True",
        timeout_s=90.0,
        goal="the release is ready",
    )

    assert ready["status"]["atProvider"]["state"] == "deployed"
    assert (condition(ready, "Twin") or {})["status"] == "True"


def test_a_state_folder_of_a_newer_version_is_refused_untouched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    text = json.dumps({"schema": "orderkit.state", "version": 99})
    (state / "state.json").write_text(text)

    assert up(tmp_path) == 4
    assert "version 99" in capsys.readouterr().err
    assert {path.name for path in state.iterdir()} == {"state.json"}


def test_a_folder_with_other_files_is_not_taken_for_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "thesis.txt").write_text("mine")

    assert up(tmp_path) == 4
    assert "holds other files" in capsys.readouterr().err


def test_a_second_platform_on_the_same_state_is_a_conflict(
    platform: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["up", "--state", str(platform.embedded.state.folder)])

    assert (code, "another process" in capsys.readouterr().err) == (3, True)


def test_a_moved_forge_port_is_refused_because_orders_name_the_old_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "state.json").write_text('{"schema": "orderkit.state", "version": 1}')
    (tmp_path / "state" / "ports.json").write_text('{"forge": 41001}')

    assert up(tmp_path, None, "--forge-port", "41002") == 4
    assert "--forge-port 41001" in capsys.readouterr().err


def settings_with(platform: Running, folder: Path, forge: platform_settings.ForgeSettings) -> Path:
    """Write the platform's settings with another forge."""
    path = folder / "platform.yaml"
    path.write_text(changed(platform.settings, forge=forge).to_yaml())
    return path


def test_a_forge_that_is_down_is_named_with_advice(
    orderkit: Command, platform: Running, tmp_path: Path
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    down = platform_settings.ForgeSettings(
        f"http://127.0.0.1:{port}", platform.settings.forge.token_file
    )

    done = orderkit(
        "order",
        "garage",
        "team_name=ae86",
        "stage=stage2",
        platform_file=settings_with(platform, tmp_path, down),
    )

    assert done.code == 1
    assert f"127.0.0.1:{port}" in done.err
    assert "orderkit up" in done.err


def test_a_token_without_rights_is_told_from_a_bad_one(
    orderkit: Command, platform: Running, weak_user: tuple[str, str], tmp_path: Path
) -> None:
    import requests

    answer = requests.post(
        f"{platform.settings.forge.url}/api/v1/users/{weak_user[0]}/tokens",
        auth=weak_user,
        json={"name": tmp_path.name, "scopes": ["read:repository", "read:organization"]},
        timeout=10,
    )
    (tmp_path / "weak").write_text(answer.json()["sha1"])
    (tmp_path / "bad").write_text("0" * 40)
    said = {}
    for name in ("weak", "bad"):
        endpoint = platform_settings.ForgeSettings(platform.settings.forge.url, tmp_path / name)
        path = settings_with(platform, tmp_path, endpoint)
        done = orderkit("team", "add", "rx7", platform_file=path)
        assert done.code == 1
        said[name] = done.err
    assert "scope" in said["weak"]
    assert "scope" not in said["bad"]
    assert answer.json()["sha1"] not in said["weak"]


def broken_pack(folder: Path, path: str, old: str, new: str) -> Path:
    """Copy the reference pack with one text replaced."""
    for name in read_folder(reference_pack()):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(reference_pack() / name, target)
    text = (folder / path).read_text()
    assert old in text
    (folder / path).write_text(text.replace(old, new))
    return folder


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("referenceable: true", "referenceable: false", "definition.yaml"),
        ("kind: CompositeResourceDefinition", "kind: [", "is not valid YAML"),
        ("type: string", "type: strin", "strin"),
    ],
    ids=["no referenceable version", "no YAML", "schema that is not structural"],
)
def test_a_broken_xrd_is_told_before_anybody_can_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, says: str
) -> None:
    pack = broken_pack(tmp_path / "pack", "gitops/apis/garage/definition.yaml", old, new)

    code = up(tmp_path, pack)

    assert code == 2
    assert says in capsys.readouterr().err


def test_a_skeleton_that_uses_an_undefined_value_is_refused_by_file_and_line(
    orderkit: Command, platform: Running, team: str
) -> None:
    from pathlib import PurePosixPath

    from orderkit.ports.forge import FileChange, Operation

    forge, repo = platform.platform.forge, platform.platform.pack_repo
    path = PurePosixPath("templates/garage/skeleton/README.md")
    good = forge.read(repo, path, "main")
    assert good is not None
    bad = FileChange(path, good.data + b"\n${{ values.colour }}\n", good.sha)
    forge.write(repo, [bad], Operation(f"break-{team}", "user:default/x", "break"))
    try:
        done = orderkit("order", "garage", f"team_name={team}", "stage=stage2")
    finally:
        now = forge.read(repo, path, "main")
        assert now is not None
        back = FileChange(path, good.data, now.sha)
        forge.write(repo, [back], Operation(f"mend-{team}", "user:default/x", "mend"))

    assert done.code == 2, done.err
    assert "README.md" in done.err
    assert "colour" in done.err
    assert forge.repo(RepoId(team, f"garage-{team}")) is None


def test_a_missing_platform_says_how_to_start_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["list", "--platform", str(tmp_path / "platform.yaml")])

    assert (code, "orderkit up" in capsys.readouterr().err) == (1, True)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("  forge:", "  forg:"), "did you mean 'forge'"),
        (("kind: Platform", "kind: Plat"), "Platform"),
        (("url: http", "url: ftp"), "url"),
    ],
    ids=["misspelt key", "other kind", "no http URL"],
)
def test_a_broken_platform_file_names_the_key(
    orderkit: Command, platform: Running, tmp_path: Path, change: tuple[str, str], says: str
) -> None:
    path = tmp_path / "platform.yaml"
    path.write_text(platform.settings.to_yaml().replace(*change, 1))

    done = orderkit("list", platform_file=path)

    assert (done.code, says in done.err) == (2, True), done.err


def test_an_unknown_order_names_the_nearest(orderkit: Command, team: str) -> None:
    assert orderkit("order", "garage", f"team_name={team}", "stage=stage1").code == 0

    done = orderkit("status", f"garage-{team}x")

    assert (done.code, f"garage-{team}" in done.err) == (1, True)
