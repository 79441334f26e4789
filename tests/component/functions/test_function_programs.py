"""A function's own program: its package taken apart, chosen in a pack, and run confined."""

from __future__ import annotations

import functools
import io
import json
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import functionimages
import pytest
import yaml
from functionimages import NAME, PYTHON, Python, asked
from functionprograms import DIGEST, KIT, own_cache, tiny_function
from ociregistry import OwnRegistry, Pushed, own_registry

from compositions.composed import PipelineStep, World
from compositions.pipeline import compose
from compositions.station import Severity, Station, StationResponse
from ground.errors import RefusedError
from orderkit.adapters.functions import local_functions as program_functions_module
from orderkit.adapters.functions import program_store
from orderkit.adapters.functions.program_store import add_program, program_start, stored_program
from orderkit.cli.main import run
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, running

LABELS = {"crossplane.io/composite": "x"}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    with tiny_function(tmp_path_factory.mktemp("cache")) as function:
        yield function


def test_an_interpreter_below_tmp_serves_too(tmp_path: Path) -> None:
    """A clone below /tmp has its packages there, and perhaps its interpreter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        below = functools.partial(_linked, folder)
        prefix = below("python", PYTHON.prefix)
        program = prefix / Path(PYTHON.executable).relative_to(PYTHON.prefix)
        packages = tuple(str(below(f"{n}", each)) for n, each in enumerate(PYTHON.packages))

        with tiny_function(tmp_path, Python(str(program), str(prefix), packages)) as function:
            assert function(asked("compose")).desired.resources


def _linked(folder: Path, name: str, target: str) -> Path:
    link = folder / name
    link.symlink_to(target)
    return link


def fatal(response: StationResponse) -> str:
    (result,) = response.results
    assert result.severity is Severity.FATAL
    return result.message


def test_a_program_answers_in_the_pipeline_with_what_it_requires(tiny: Station) -> None:
    facts = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"fact": "blue"}}
    world = World({NAME: tiny}, lookup=lambda selector: [facts] if selector.name else [])
    steps = [PipelineStep(do, NAME, {"do": do}) for do in ("compose", "look up", "warn")]
    xr = {**asked("compose").xr, "metadata": {"name": "x", "uid": "1", "labels": LABELS}}

    composed = compose(xr, steps, world)

    assert not composed.error
    assert composed.resources["settings"].manifest["data"] == {"depth": "3"}
    assert [(event.type, event.message) for event in composed.events] == [
        ("Normal", 'Pipeline step "look up": blue'),
        ("Warning", 'Pipeline step "warn": take care'),
    ]
    assert composed.ttl_s == 30
    refused = compose(xr, [PipelineStep("no", NAME, {"do": "refuse"})], world)
    assert refused.error == 'pipeline step "no" returned a fatal result: not like this'


def test_a_program_that_ends_is_started_again_once_and_its_last_words_are_told(
    tiny: Station,
) -> None:
    assert fatal(tiny(asked("die"))) == (
        "the program of the function ended with exit code 7: my last words"
    )
    assert tiny(asked("compose")).desired.resources


def test_a_program_that_hangs_is_stopped(tiny: Station, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_functions_module, "CALL_S", 1.0)
    tiny(asked("die"))  # the limit belongs to a start

    assert "did not answer within 1 s" in fatal(tiny(asked("hang")))


@pytest.mark.parametrize(
    ("answer", "told"), [("garbage", "deserializing"), ("huge", "larger than max")]
)
def test_an_answer_that_is_none_is_a_fatal_result(tiny: Station, answer: str, told: str) -> None:
    assert told in fatal(tiny(asked(answer)))


@dataclass(frozen=True)
class Layers:
    """Layers with links that lead out, and what becomes of them."""

    reason: str
    layers: Sequence[Sequence[tuple[str, str]]]
    """Name and target of links; of a file: nothing."""
    wanted: Mapping[str, bool] | str
    """Paths that are there or not, or what is told."""


UNPACKED = [
    Layers("above the root", [[("../x", "")]], "outside of it"),
    Layers("hard link to nowhere", [[("x", "=/etc/passwd")]], "not in the image"),
    Layers("through a link", [[("a", "/outside"), ("a/x", "")]], {"outside/x": True}),
    Layers("a link above", [[("a", "../../.."), ("a/x", "")]], {"x": True}),
    Layers("a loop", [[("a", "b"), ("b", "a"), ("a/x", "")]], "links"),
    Layers("a whiteout", [[("d/x", ""), ("d/y", "")], [("d/.wh.x", "")]], {"d/x": False}),
    Layers(
        "an opaque folder",
        [[("d/x", "")], [("d/y", ""), ("d/.wh..wh..opq", "")]],
        {"d/x": False, "d/y": True},
    ),
    Layers("a whiteout above", [[(".wh...", "")]], "outside of it"),
    Layers("a link for a mount", [[("tmp", "/etc")]], {"tmp": True}),
]


def packed(entries: Sequence[tuple[str, str]]) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, target in entries:
            member = tarfile.TarInfo(name)
            member.type = tarfile.REGTYPE
            if target:
                member.type = tarfile.LNKTYPE if target.startswith("=") else tarfile.SYMTYPE
                member.linkname = target.removeprefix("=")
            tar.addfile(member)
    buffer.seek(0)
    return buffer


@pytest.mark.parametrize("case", UNPACKED, ids=lambda case: case.reason)
def test_layers_stay_in_their_folder(case: Layers, tmp_path: Path) -> None:
    start = program_start({"Entrypoint": ["/x"]})
    layers = [packed(entries) for entries in case.layers]
    with own_cache(tmp_path / "cache"):
        if isinstance(case.wanted, str):
            with pytest.raises(RefusedError, match=case.wanted):
                add_program(DIGEST, start, layers)
            assert stored_program(DIGEST) is None
            assert not list(program_store.store_folder().iterdir())
            return
        root = add_program(DIGEST, start, layers)[0].root
    for path, is_there in case.wanted.items():
        assert (root / path).exists() is is_there
    assert not (root / "tmp").is_symlink()
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("time_s", "kept_s"), [(1_700_000_000.7, 1_700_000_000), (1e30, 0), (-5, 0)]
)
def test_a_file_keeps_its_time_so_that_python_uses_compiled_modules(
    time_s: float, kept_s: int, tmp_path: Path
) -> None:
    """Without it, each start of a Python function would compile all of its modules."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo("module.py")
        member.mtime = time_s
        tar.addfile(member)
    buffer.seek(0)

    with own_cache(tmp_path / "cache"):
        root = add_program(DIGEST, program_start({"Entrypoint": ["/x"]}), [buffer])[0].root

    assert (root / "module.py").stat().st_mtime == kept_s


@pytest.mark.parametrize("left", [{"bytes_left": 2}, {"members_left": 1}], ids=["bytes", "files"])
def test_an_image_that_would_fill_the_disk_is_refused(
    left: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = functools.partial(program_store._Unpacking, **left)  # noqa: SLF001
    monkeypatch.setattr(program_store, "_Unpacking", limited)
    layer = io.BytesIO(functionimages.layer({"a": b"12", "b": b"3"}))
    with own_cache(tmp_path), pytest.raises(RefusedError, match="the image has more than"):
        add_program(DIGEST, program_start({"Entrypoint": ["/x"]}), [layer])


@pytest.fixture(scope="module")
def registry() -> Iterator[tuple[OwnRegistry, Pushed]]:
    with own_registry() as pair:
        yield pair


def pushed_package(registry: Pushed) -> str:
    """Push the small function's package; return its digest."""
    layers = (functionimages.program_layer(), functionimages.package_layer())
    return registry.image("x/function-tiny", "v1", *layers, program=functionimages.image_config())


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packs") / "mine"
    (folder.parent / "kit.yaml").write_text(KIT)
    assert run(["init", str(folder), "--no-git"]) == 0
    kit = str(folder.parent / "kit.yaml")
    assert run(["kit", "import", kit, "--name", "queue", "--pack", str(folder)]) == 0
    with (folder / "templates/queue/kit.yaml").open("a") as file:
        file.write("  composes:\n    - {apiVersion: v1, kind: ConfigMap}\n")
    assert run(["kit", "generate", "queue", "--pack", str(folder)]) == 0
    return folder


def test_a_program_of_a_registry_runs_the_kits_orders(
    registry: tuple[OwnRegistry, Pushed],
    pack: Path,
    tiny: Station,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    del tiny  # skips where nothing can be confined
    digest = pushed_package(registry[1])
    reference = f"{registry[1].host}/x/function-tiny:v1"
    at = ("--pack", str(pack))

    assert run(["functions", "add", reference, *at]) == 0
    assert run(["functions", "add", NAME, *at]) == 0, "the pack knows its package now"
    declared = yaml.safe_load((pack / f"gitops/functions/{NAME}.yaml").read_text())
    assert declared["metadata"]["annotations"] == {"orderkit.dev/runs": digest}
    assert declared["spec"]["package"] == reference
    capsys.readouterr()
    assert run(["functions", *at, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["functions"]
    assert {row["name"]: row["runs"] for row in rows}[NAME] == "program"
    assert run(["kit", "test", "queue", "--update", *at]) == 0
    assert (
        "ConfigMap" in (pack / "tests/kits/queue/first-order/expected/resources.yaml").read_text()
    )
    checked = run(["kit", "check", "queue", *at]), capsys.readouterr()
    assert checked[0] == 0, checked
    assert "1 example orders run" in checked[1].err

    request = EmbeddedRunRequest(tmp_path / "state", pack, Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as platform:
        file = ("--platform", str(platform.embedded.state.folder / "platform.yaml"))
        values = ("queue", "name=first", "team=ae86", "depth=4")
        assert run(["order", *values, "--plan", *file]) == 0
        assert run(["order", *values, *file]) == 0, capsys.readouterr().err
        assert run(["plan", "queue-first", "depth=5", *file]) == 10
        assert "in the end" not in capsys.readouterr().out.replace("in the end  Ready", "")


DEPENDENCIES = """\
apiVersion: {meta}
kind: {kind}
metadata: {{name: theirs}}
spec:
  dependsOn:
    - {{function: {host}/x/function-tiny, version: ">=v1.0.0"}}
    - apiVersion: pkg.crossplane.io/v1
      kind: Function
      package: {host}/crossplane-contrib/function-patch-and-transform
      version: ">=v0.0.0"
    - {{function: {host}/x/function-any, version: ">=v0.0.0"}}
    - {{provider: {host}/x/provider-aws-s3, version: v2.1.0}}
"""


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("crossplane.yaml", ("meta.pkg.crossplane.io/v1", "Configuration")),
        ("upbound.yaml", ("meta.dev.upbound.io/v2alpha1", "Project")),
    ],
)
def test_the_functions_that_a_configuration_depends_on_come_together(
    registry: tuple[OwnRegistry, Pushed],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    file: str,
    kind: tuple[str, str],
) -> None:
    host = registry[1].host
    layers = (functionimages.program_layer(), functionimages.package_layer())
    registry[1].image("x/function-tiny", "v1.0.0", *layers, program=functionimages.image_config())
    (tmp_path / file).write_text(DEPENDENCIES.format(meta=kind[0], kind=kind[1], host=host))
    pack = tmp_path / "pack"
    assert run(["init", str(pack), "--no-git"]) == 0
    capsys.readouterr()

    with own_cache(tmp_path / "cache"):
        assert run(["functions", "add", "--from", str(tmp_path), "--pack", str(pack)]) == 0

    said = capsys.readouterr().out
    functions = pack / "gitops" / "functions"
    tiny = yaml.safe_load((functions / "function-tiny.yaml").read_text())
    twin = yaml.safe_load((functions / "function-patch-and-transform.yaml").read_text())
    assert tiny["spec"]["package"] == f"{host}/x/function-tiny:v1.0.0"
    assert tiny["metadata"]["annotations"]["orderkit.dev/runs"] in said
    assert twin["spec"]["package"].startswith(f"{host}/crossplane-contrib/")
    assert "function-patch-and-transform  a twin plays it" in said
    assert "'>=v0.0.0' names no release: orderkit functions add" in said
    assert not (functions / "function-any.yaml").exists()
    assert f"orderkit kit schemas add {host}/x/provider-aws-s3@v2.1.0" in said


def test_what_is_no_function_for_this_machine_is_refused(
    registry: tuple[OwnRegistry, Pushed],
    pack: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain = functionimages.layer({"program": b"#!/bin/sh"})
    start = {"Entrypoint": ["/program"]}
    registry[1].image("x/runtime", "v1", plain, program=start)
    registry[1].image("x/silent", "v1", plain)
    unreadable = functionimages.layer({"package.yaml": b"kind: ["})
    registry[1].image("x/unreadable", "v1", unreadable, program=start)
    registry[1].index("x/strange", "v1", {"s390x": registry[1].image("x/strange", "", plain)})
    (tmp_path / "text.xpkg").write_text("no archive")
    told = {
        f"{registry[1].host}/x/runtime:v1": "it has no package.yaml",
        f"{registry[1].host}/x/silent:v1": "names no program to start",
        f"{registry[1].host}/x/strange:v1": "there are: s390x",
        f"{registry[1].host}/x/nothing:v1": "has no manifests v1",
        str(tmp_path / "text.xpkg"): "cannot be read as an image",
        f"{registry[1].host}/x/unreadable:v1": "package.yaml of the image cannot be read",
        "function-nowhere": "names no registry",
        "__REGISTRY__/x/tiny:__VERSION__": "registry and version the platform fills in",
    }
    before = sorted(path.read_bytes() for path in (pack / "gitops/functions").iterdir())
    with own_cache(tmp_path / "cache"):
        for package, text in told.items():
            assert run(["functions", "add", package, "--pack", str(pack)]) != 0
            assert text in capsys.readouterr().err
    after = sorted(path.read_bytes() for path in (pack / "gitops/functions").iterdir())
    assert before == after


def test_a_file_runs_a_function_that_the_pack_has(
    pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = functionimages.package_file(tmp_path / "tiny.xpkg")
    path = pack / "gitops/functions/other.yaml"
    path.write_text(
        "# ours\napiVersion: pkg.crossplane.io/v1\nkind: Function\nmetadata: {name: other}\n"
        "spec: {package: registry.example.org/x/other:v1}\n"
    )
    with own_cache(tmp_path / "cache"):
        add = ["functions", "add", str(file), "--name", "other", "--pack", str(pack)]
        assert run(add) == 0, capsys.readouterr().err
        digest = program_store.digest_of(file)
        assert stored_program(digest) is not None
    assert (
        yaml.safe_load(path.read_text())["metadata"]["annotations"]["orderkit.dev/runs"] == digest
    )
    path.unlink()


def test_a_program_needs_a_function_that_the_pack_declares(
    pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = functionimages.package_file(tmp_path / "tiny.xpkg")
    before = content(pack)

    with own_cache(tmp_path / "cache"):
        code = run(["functions", "add", str(file), "--name", "nowhere", "--pack", str(pack)])

    assert (code, "the pack has no Function nowhere" in capsys.readouterr().err) == (1, True)
    assert content(pack) == before


def test_a_file_in_the_place_of_a_new_function_is_not_replaced(
    registry: tuple[OwnRegistry, Pushed],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pushed_package(registry[1])
    pack = tmp_path / "pack"
    assert run(["init", str(pack), "--no-git"]) == 0
    path = pack / "gitops" / "functions" / "function-tiny.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("# another one's notes\n")
    package = f"{registry[1].host}/x/function-tiny:v1"
    capsys.readouterr()

    with own_cache(tmp_path / "cache"):
        code = run(["functions", "add", package, "--pack", str(pack)])

    assert (code, "is there and has no Function" in capsys.readouterr().err) == (4, True)
    assert path.read_text() == "# another one's notes\n"


def test_a_configuration_that_depends_on_nothing_brings_nothing(
    pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = DEPENDENCIES.partition("spec:")[0].format(
        meta="meta.pkg.crossplane.io/v1", kind="Configuration", host="x"
    )
    (tmp_path / "crossplane.yaml").write_text(f"{text}spec: {{}}\n")

    code = run(["functions", "add", "--from", str(tmp_path), "--pack", str(pack)])

    assert (code, "no file of --from has spec.dependsOn" in capsys.readouterr().err) == (1, True)


def content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
