"""The public API for packs: its names, and that packs, skeletons and pages use nothing else."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.houses import HOUSES

import orderkit.controllers
import orderkit.stations
import orderkit_standins.testing

ROOT = Path(__file__).parents[2]
PUBLIC = {"orderkit.stations", "orderkit.controllers", "orderkit_standins.testing"}
STATIONS = """
KEEP MANAGE OBSERVE Chart Condition ConditionStatus ManagementAction Manifest Parts Phase
ProviderConfigRef Ready Resource Result SecretKey Selector SettingError Settings Severity State
Station StationRequest StationResponse generated_password layered_settings managed manifest
provider_config release secret
"""
CONTROLLERS = """
CONFIG_MAP LABEL_MAX LEASE AccessError BlobSha Candidate Catalog Clock Cluster CommitSha Condition
ConflictError Connection FileChange Forge IncompleteError InvalidInputError InvalidObjectError Kind
LeaderElection Loop Manifest NotFoundError ObjectKey Operation OrderkitError RefusedError
RemoteError RepoId SystemClock UnreachableError Work annotations_of blob_sha check_label check_url
condition connect dig dump_yaml labels_of load_yaml merge_conditions metadata read_capped redact
register_secret shorten stop_on_signals
"""
TESTING = """
Controller ExpectationError Story TrialOrder TrialPlatform expect permissive_crd trial_platform wait
"""
IMPORT = re.compile(r"^\s*(?:from|import)\s+(orderkit[\w.]*)", re.MULTILINE)
CONTROLLER_FOLDER = ROOT / "packs" / "agents" / "controllers"
STATION_FOLDERS = ("stations", "packs/agents/stations")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(orderkit.stations.__all__, STATIONS, id="stations"),
        pytest.param(orderkit.controllers.__all__, CONTROLLERS, id="controllers"),
        pytest.param(orderkit_standins.testing.__all__, TESTING, id="testing"),
    ],
)
def test_the_public_names_are_these(names: list[str], expected: str) -> None:
    """Who changes this list changes the API: docs/public-api.md and the changelog follow."""
    assert sorted(names) == sorted(expected.split())


@pytest.mark.parametrize(
    "module", [orderkit.stations, orderkit.controllers, orderkit_standins.testing]
)
def test_every_public_class_and_function_has_a_docstring(module: object) -> None:
    names: list[str] = vars(module)["__all__"]
    values = {name: vars(module)[name] for name in names}
    undocumented = [
        name
        for name, value in values.items()
        if (inspect.isclass(value) or inspect.isfunction(value)) and not value.__doc__
    ]

    assert undocumented == []


def imported_modules(text: str) -> set[str]:
    """Return the modules that a Python file imports, at any depth."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module == "orderkit":
            modules |= {f"orderkit.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module)
    return modules


def orderkit_imports(text: str) -> set[str]:
    ours = {house.package for house in HOUSES}
    return {module for module in imported_modules(text) if module.partition(".")[0] in ours}


def python_files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def test_packs_import_the_public_api_only() -> None:
    paths = list(python_files("packs", "stations"))
    private = {
        str(path.relative_to(ROOT)): modules
        for path in paths
        if (modules := orderkit_imports(path.read_text()) - PUBLIC)
    }

    assert len(paths) > 30
    assert private == {}


def test_stations_import_the_stations_api_only() -> None:
    paths = [path for folder in STATION_FOLDERS for path in python_files(folder)]

    assert set().union(*(orderkit_imports(path.read_text()) for path in paths)) == {
        "orderkit.stations"
    }


def test_skeletons_and_pages_show_the_public_api_only() -> None:
    """Skeletons are templates and pages are Markdown, so their lines are read, not parsed."""
    paths = [path for path in (ROOT / "skeletons").rglob("*") if path.is_file()]
    paths += [*(ROOT / "docs").rglob("*.md"), *(ROOT / "packs").rglob("*.md")]
    shown = {str(path): set(IMPORT.findall(path.read_text())) for path in paths}

    assert {path: names - PUBLIC for path, names in shown.items() if names - PUBLIC} == {}
    assert sum("orderkit.stations" in names for names in shown.values()) >= 4


def test_the_controllers_declare_what_they_import() -> None:
    """They are a distribution of their own, outside the tool's wheel."""
    project = tomllib.loads((CONTROLLER_FOLDER / "pyproject.toml").read_text())["project"]
    declared = {re.split(r"[^\w-]", text, maxsplit=1)[0] for text in project["dependencies"]}
    packages = {"whisperops", "orderkit_standins", *sys.stdlib_module_names}  # of the extra `demo`
    used = {
        module.partition(".")[0]
        for path in CONTROLLER_FOLDER.rglob("*.py")
        for module in imported_modules(path.read_text())
    }

    assert used - packages == declared
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert tool["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/orderkit"]
