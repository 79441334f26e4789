"""mypy --strict accepts packs that are written against the public API, and finds their mistakes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs/public-api.md").read_text(), re.DOTALL)
# What the API re-exports from these layers is not followed: with it, mypy would take ten times as
# long. `make check` checks the agents' pack against the whole tool.
CONFIG = """
[mypy]
strict = true
[mypy-orderkit.adapters.*,orderkit.cli.*,orderkit.flows.*,orderkit.web.*]
follow_imports = skip
"""
MISTAKES = {
    "a manifest that is text": (
        (
            "from orderkit.stations import StationRequest, StationResponse\n"
            "def station(request: StationRequest) -> StationResponse:\n"
            "    response = StationResponse.to(request)\n"
            "    response.want('part', 'text')\n"
            "    return response\n"
        ),
        'Argument 2 to "want"',
    ),
    "a condition that is neither True, False nor Unknown": (
        "from orderkit.stations import Condition\nCondition('Ready', 'Maybe', 'Because')\n",
        'Argument 2 to "Condition"',
    ),
    "a key that is text": (
        (
            "from orderkit.controllers import Cluster\n"
            "def run_pass(cluster: Cluster) -> str:\n"
            "    return cluster.get('ConfigMap/a')\n"
        ),
        'Argument 1 to "get"',
    ),
    "an interval that is text": (
        "from orderkit.controllers import SystemClock, Loop\nLoop(print, SystemClock(), '30s')\n",
        'Argument 3 to "Loop"',
    ),
    "a private name": (
        "from orderkit.stations import station_runner\n",
        'has no attribute "station_runner"',
    ),
}


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What mypy says about the examples and about each mistake, by file: one run for all."""
    folder = tmp_path_factory.mktemp("typing")
    (folder / "mypy.ini").write_text(CONFIG)
    files = {"examples.py": "\n".join(EXAMPLES)}
    files |= {f"mistake{number}.py": text for number, (text, _) in enumerate(MISTAKES.values())}
    for name, text in files.items():
        (folder / name).write_text(text)
    cache = ROOT / ".cache" / "mypy-public-api"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(cache), *files],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert "checked" in done.stdout, done.stdout + done.stderr
    lines = [line.partition(":") for line in done.stdout.splitlines()]
    return {name: "\n".join(text for file, _, text in lines if file == name) for name in files}


def test_the_examples_of_the_page_are_strictly_typed(complaints: dict[str, str]) -> None:
    assert EXAMPLES
    assert complaints["examples.py"] == ""


@pytest.mark.parametrize("reason", MISTAKES)
def test_mypy_finds_a_mistake(complaints: dict[str, str], reason: str) -> None:
    number = list(MISTAKES).index(reason)

    assert MISTAKES[reason][1] in complaints[f"mistake{number}.py"]
