"""The houses: what crosses a library's wall is public, and all are of one version."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from housepages import run_example
from scripts.houses import HOUSES, LIBRARIES, House, below

import orderkit

ROOT = Path(__file__).parents[2]
USERS = tuple(ROOT / house.source for house in HOUSES) + tuple(
    ROOT / folder for folder in ("bench", "lab", "scripts", "stations", "packs")
)
PROJECTS = {house.folder: ROOT / house.folder.replace("src", ".") for house in HOUSES}


class Use(NamedTuple):
    """A name of a library that a file of another house uses."""

    file: Path
    module: str
    name: str


@functools.cache
def module_file(dotted: str) -> Path | None:
    """Return the file of a library's module; None: there is no such module."""
    package, *rest = dotted.split(".")
    for house in LIBRARIES:
        if house.package == package:
            path = (ROOT / house.source).joinpath(*rest)
            files = (path.with_suffix(".py"), path / "__init__.py")
            return next((file for file in files if file.is_file()), None)
    return None


@functools.cache
def names_in(path: Path) -> set[str]:
    """Return the names that a module binds at its top."""
    bound: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {alias.asname or alias.name for alias in node.names}
        else:
            bound |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return bound


@functools.cache
def public_names(path: Path) -> set[str]:
    """Return a module's ``__all__``; nothing where it has none."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def uses_in(path: Path, own: str) -> Iterator[Use]:
    """Yield what a file uses of libraries other than its own, through modules too."""
    tree = ast.parse(path.read_text())
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        file = module_file(node.module)
        if file is None or node.module.partition(".")[0] == own:
            continue
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            if module_file(inner) and alias.name not in names_in(file):
                modules[alias.asname or alias.name] = inner
            else:
                yield Use(path, node.module, alias.name)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in modules
        ):
            yield Use(path, modules[node.value.id], node.attr)


def all_uses() -> Iterator[Use]:
    for source in USERS:
        for path in sorted(source.rglob("*.py")):
            if "tests" not in path.relative_to(ROOT).parts:
                yield from uses_in(path, source.name)


_IMPORTED = re.compile(r"^ *(?:from|import) (\w+)", re.MULTILINE)


def test_what_crosses_the_wall_of_a_library_is_public() -> None:
    uses = tuple(all_uses())
    public = {
        module: public_names(file)
        for module in {use.module for use in uses}
        if (file := module_file(module))
    }

    hidden = [
        f"{use.file.relative_to(ROOT)}: {use.module}.{use.name}"
        for use in uses
        if use.name not in public[use.module]
    ]

    assert len(uses) > 3000
    assert hidden == []


def test_what_is_public_and_no_constant_is_documented() -> None:
    bare = [
        f"{house.package}: {path.name}: {node.name}"
        for house in LIBRARIES
        for path in (ROOT / house.source).rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and node.name in public_names(path)
        and ast.get_docstring(node) is None
    ]

    assert bare == []


@pytest.mark.parametrize("house", HOUSES, ids=lambda house: house.folder)
def test_a_house_is_of_the_one_version_and_declares_the_houses_it_imports(house: House) -> None:
    project = tomllib.loads((PROJECTS[house.folder] / "pyproject.toml").read_text())["project"]
    packages = {other.package: other for other in HOUSES}
    imported = {
        package
        for path in (ROOT / house.source).rglob("*.py")
        for package in _IMPORTED.findall(path.read_text())
    }

    used = {_distribution(packages[name]) for name in imported & set(packages)}
    declared = {
        text.replace("[service]", "")
        for text in project["dependencies"]
        if text.startswith("orderkit")
    }
    assert project.get("version", orderkit.__version__) == orderkit.__version__
    assert declared == {f"{name}=={orderkit.__version__}" for name in used - {_distribution(house)}}


@pytest.mark.parametrize("house", LIBRARIES, ids=lambda house: house.folder)
def test_the_example_of_a_library_runs_and_loads_no_house_above(
    house: House, tmp_path: Path
) -> None:
    printed, promised, packages = run_example(ROOT / house.folder, tmp_path)

    assert printed == promised
    assert packages & {other.package for other in HOUSES} <= below(house.folder)


@pytest.mark.parametrize("house", LIBRARIES, ids=lambda house: house.package)
def test_the_modules_that_the_page_of_a_library_names_are_there(house: House) -> None:
    text = (ROOT / house.folder / "README.md").read_text()
    cells = re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE)
    names = [name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)]
    whole = [n if n.startswith(house.package) else f"{house.package}.{n}" for n in names]

    assert whole
    assert [name for name in whole if module_file(name) is None] == []


def test_an_import_of_a_house_above_is_refused() -> None:
    """``make test HOUSE=libs/ground`` cannot pass by what lies above it."""
    test = "libs/yamlfiles/tests/test_placing.py"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--house", "libs/ground", test]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode != 0
    assert "ImportError: yamlfiles" in done.stdout
    assert "does not lie below libs/ground" in done.stdout


def _distribution(house: House) -> str:
    name = house.package.replace("_", "-")
    return name if name.startswith("orderkit") else f"orderkit-{name}"
