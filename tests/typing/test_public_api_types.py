"""mypy --strict accepts packs that are written against the public API, and finds their mistakes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("docs/public-api.md", "docs/station-api.md", "docs/station-parts.md")
EXAMPLES = {
    page.replace("/", "_").replace("-", "_").replace(".md", ".py"): "\n".join(
        re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    )
    for page in PAGES
}
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
    "a management policy that does not exist": (
        (
            "from orderkit.stations import managed\n"
            "managed('s3.aws.m.upbound.io/v1beta1', 'Bucket', {}, policies=('Orphan',))\n"
        ),
        'Argument "policies" to "managed"',
    ),
    "dependencies that are one text": (
        (
            "from orderkit.stations import Parts\n"
            "def run(parts: Parts) -> None:\n"
            "    parts.want('pool', {}, uses={'cluster': 1}.get)\n"
        ),
        'Argument "uses" to "want"',
    ),
    "a setting of a type that no setting has": (
        (
            "from orderkit.stations import Settings\n"
            "def run(settings: Settings) -> object:\n"
            "    return settings.get('a', bytes)\n"
        ),
        'Value of type variable "T" of "get"',
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
    files = EXAMPLES | {
        f"mistake{number}.py": text for number, (text, _) in enumerate(MISTAKES.values())
    }
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


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_a_page_are_strictly_typed(complaints: dict[str, str], name: str) -> None:
    assert EXAMPLES[name]
    assert complaints[name] == ""


@pytest.mark.parametrize("reason", MISTAKES)
def test_mypy_finds_a_mistake(complaints: dict[str, str], reason: str) -> None:
    number = list(MISTAKES).index(reason)

    assert MISTAKES[reason][1] in complaints[f"mistake{number}.py"]
