"""The wheels, installed without the checkout: the product alone, and with its extras."""

from __future__ import annotations

import os
import site
import subprocess
import sys
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LIBRARIES = sorted(ROOT.glob("libs/*"))
EXTRAS = sorted(ROOT.glob("extras/*"))
SERVICE = {"itsdangerous", "jwt", "starlette", "uvicorn"}
"""What the extra ``service`` brings."""
COMMAND = "from orderkit.cli.main import main; main()"
Run = Callable[..., subprocess.CompletedProcess[str]]


def installed(folder: Path, *projects: Path, without: AbstractSet[str] = frozenset()) -> Run:
    """Install wheels into a folder of their own; return what runs `orderkit` with only these."""
    packages, others = folder / "packages", folder / "others"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--target", packages, *projects], check=True
    )
    others.mkdir()
    for place in map(Path, site.getsitepackages()):
        for entry in place.iterdir():
            if not ("orderkit" in entry.name or entry.suffix == ".pth" or entry.name in without):
                (others / entry.name).symlink_to(entry)
    starts = f"import sys; sys.path[:0] = [{str(packages)!r}, {str(others)!r}]; {COMMAND}"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", starts, *arguments],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "COLUMNS": "100"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return installed(tmp_path_factory.mktemp("product"), *LIBRARIES, ROOT, without=SERVICE)


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        (("up",), "embedded"),
        (("up", "--team", "rx7"), "embedded"),
        (("demo", "--help"), "embedded"),
        (("init", "pack"), "workshop"),
        (("kit", "check", "--json"), "workshop"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_a_command_of_an_extra_names_it(product: Run, command: tuple[str, ...], extra: str) -> None:
    done = product(*command)

    assert done.returncode == 2
    assert f"orderkit {command[0]} comes with the extra '{extra}'" in done.stderr
    assert f"pip install 'orderkit[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_product_alone_has_help_edits_and_renders(product: Run, tmp_path: Path) -> None:
    text, skeleton = tmp_path / "xr.yaml", tmp_path / "skeleton"
    text.write_text("spec:\n  stage: stage1  # for now\n")
    skeleton.mkdir()
    (skeleton / "readme.md").write_text("${{ values.name }}\n")

    assert "bootstrap" in product("--help").stdout
    edited = product("edit", str(text), "spec.stage=stage2", "--in-place")
    assert edited.returncode == 0, edited.stderr
    assert text.read_text() == "spec:\n  stage: stage2  # for now\n"
    values = tmp_path / "values.yaml"
    values.write_text("name: ae86\n")
    rendered = product(
        "render", str(skeleton), "--values", str(values), "--out", str(tmp_path / "out")
    )
    assert rendered.returncode == 0, rendered.stderr
    assert (tmp_path / "out" / "readme.md").read_text() == "ae86\n"


def test_a_command_whose_library_is_missing_names_the_extra(product: Run) -> None:
    done = product("serve")

    assert done.returncode == 2
    assert "pip install 'orderkit[service]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_with_the_workshop_a_pack_starts_and_its_kits_are_checked(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("workshop")
    run = installed(folder, *LIBRARIES, ROOT, *EXTRAS)

    started = run("init", "pack", "--no-git")
    assert started.returncode == 0, started.stderr
    made = run("kit", "new", "bay", "--pack", "pack", "--field", "size:integer", "--no-input")
    assert made.returncode == 0, made.stdout + made.stderr
    checked = run("kit", "check", "--pack", "pack")
    assert checked.returncode == 0, checked.stdout + checked.stderr
