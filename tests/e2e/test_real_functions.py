"""A real function, built by the lab from its modules, beside our twin and in a pack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import functionimages
import pytest
from functionprograms import own_cache
from lab.binaries import built

from compositions.parts import auto_ready
from compositions.station import Ready, Resource, State, Station, StationRequest
from ground.objects.kube_objects import Manifest
from orderkit.adapters.functions.local_functions import program_function
from orderkit.adapters.functions.program_store import add_program, program_start
from orderkit.adapters.processes.confined_program import UNCONFINED
from orderkit.cli.main import run
from orderkit_workshop.registry.images import image_of_file

NAME = "function-auto-ready"
XR = {"apiVersion": "a.example.org/v1", "kind": "X", "metadata": {"name": "x"}}


@pytest.fixture(scope="module")
def package(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the function's package, as a file."""
    if not request.config.getoption("--e2e"):
        pytest.skip("a real function: needs --e2e")
    folder = tmp_path_factory.mktemp("package")
    program = (built("functions") / NAME).read_bytes()
    meta = functionimages.PACKAGE.replace(functionimages.NAME.encode(), NAME.encode())
    return functionimages.package_file(
        folder / "package.xpkg",
        {"function": program, "package.yaml": meta},
        {"Entrypoint": ["/function"]},
    )


@pytest.fixture(scope="module")
def real(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    with own_cache(tmp_path_factory.mktemp("cache")), image_of_file(package) as image:
        add_program(image.digest, program_start(image.config), image.layers)
        function = program_function(image.digest)
        assert function is not None
        results = function(StationRequest(State(Resource(XR)))).results
        if any(UNCONFINED in result.message for result in results):
            pytest.skip(results[0].message)
        yield function


def part(*conditions: tuple[str, str]) -> Manifest:
    return {
        "apiVersion": "b.example.org/v1",
        "kind": "Part",
        "metadata": {"name": "part"},
        "status": {"conditions": [{"type": kind, "status": text} for kind, text in conditions]},
    }


@pytest.mark.parametrize("ready", list(Ready))
@pytest.mark.parametrize(
    "observed",
    [
        None,
        part(),
        part(("Ready", "True")),
        part(("Ready", "False")),
        part(("Ready", "Unknown")),
        part(("Synced", "False"), ("Ready", "True")),
        part(("Ready", "False"), ("Ready", "True")),
    ],
    ids=["absent", "silent", "ready", "not ready", "unknown", "not synced", "twice"],
)
def test_the_twin_judges_parts_as_the_real_function_does(
    real: Station, observed: Manifest | None, ready: Ready
) -> None:
    desired = State(resources={"part": Resource(part(), ready)})
    before = State(Resource(XR), {} if observed is None else {"part": Resource(observed)})

    said, told = real(StationRequest(before, desired)), auto_ready(StationRequest(before, desired))

    judged = [response.desired.resources["part"].ready for response in (said, told)]
    assert judged[0] is judged[1]


def test_a_pack_runs_the_real_function(
    real: Station, package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del real  # skips where nothing can be confined
    pack = tmp_path / "mine"
    at = ("--pack", str(pack))
    assert run(["init", str(pack), "--no-git"]) == 0

    assert run(["functions", "add", str(package), *at]) == 0
    capsys.readouterr()
    assert run(["functions", *at, "--json"]) == 0

    rows = json.loads(capsys.readouterr().out)["functions"]
    assert {row["name"]: row["runs"] for row in rows}[NAME] == "program"
