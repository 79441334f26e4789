"""Every ``sh`` block of docs/install.md works as shown: from wheels, without the checkout."""

from __future__ import annotations

import os
import re
import signal
import site
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath

import pytest
from documentedpages import ANY_PORT, ROOT, environment

from orderkit.core.editor_schemas import EDITOR_SCHEMAS, editor_schema
from orderkit.core.platform.settings import parse

PAGE = (ROOT / "docs/install.md").read_text()
BLOCKS = [
    re.sub("^   ", "", block, flags=re.MULTILINE)
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
]
UP = "orderkit up\n"
_COMMAND_S = 280
_OTHERS_ARE_THERE = """
python3() {
  command python3 "$@"
  echo "$OTHERS" > "$(echo ~/.orderkit/lib/python3*)/site-packages/others.pth"
}
"""
"""Gives a new environment what others made, which a reader's package index would."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's home, and beside it our wheels and what others made."""
    folder = tmp_path_factory.mktemp("install")
    projects = [*ROOT.glob("libs/*"), *ROOT.glob("extras/*"), ROOT]
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    flags = ["--no-deps", "--no-build-isolation", "--wheel-dir", str(folder / "wheels")]
    subprocess.run([*pip, *flags, *map(str, projects)], check=True)
    others = folder / "others"
    others.mkdir()
    for entry in (entry for place in site.getsitepackages() for entry in Path(place).iterdir()):
        if not ("orderkit" in entry.name or entry.suffix == ".pth" or entry.name.startswith("pip")):
            (others / entry.name).symlink_to(entry)
    (folder / "home").mkdir()
    return folder / "home"


def shell(home: Path) -> dict[str, str]:
    """Return the reader's variables: no command of the checkout is on the PATH."""
    path = [str(home / ".orderkit/bin"), str(Path(sys.base_prefix, "bin")), os.environ["PATH"]]
    return {
        **environment(home),
        "PATH": os.pathsep.join(
            entry
            for entry in os.pathsep.join(path).split(os.pathsep)
            if Path(entry) != Path(sys.executable).parent
        ),
        "OTHERS": str(home.parent / "others"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(home.parent / "wheels"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


@pytest.fixture(scope="module")
def running(home: Path) -> Iterator[None]:
    """``orderkit up`` of the wheels, in the reader's other terminal."""
    command = [str(home / ".orderkit/bin/orderkit"), "up", *ANY_PORT]
    with subprocess.Popen(
        command, cwd=home, env=shell(home), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert any("Stop with ctrl-C" in line for line in process.stdout)
        yield
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 0


def test_the_page_installs_before_it_starts_a_platform() -> None:
    assert BLOCKS[0].startswith("python3 -m venv ~/.orderkit\n")
    assert BLOCKS.count(UP) == 1


@pytest.mark.parametrize("block", [block for block in BLOCKS if block != UP])
def test_the_block_works(block: str, home: Path, request: pytest.FixtureRequest) -> None:
    if BLOCKS.index(block) > BLOCKS.index(UP):
        request.getfixturevalue("running")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{_OTHERS_ARE_THERE}{block}"],
        cwd=home,
        env=shell(home),
        capture_output=True,
        text=True,
        check=False,
        timeout=_COMMAND_S,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_what_ran_was_installed(home: Path) -> None:
    command = [
        str(home / ".orderkit/bin/python"),
        "-c",
        "import orderkit; print(orderkit.__file__)",
    ]
    found = subprocess.run(command, cwd=home, capture_output=True, text=True, check=True).stdout

    assert found.startswith(str(home))


def test_the_smallest_platform_yaml_needs_neither_portal_nor_service() -> None:
    (text,) = re.findall(r"```yaml\n(# platform.yaml\n.*?)```", PAGE, re.DOTALL)

    settings = parse(text, folder=PurePath("/"))

    assert (settings.portal.url, settings.service.url) == ("", "")


def test_every_schema_is_in_the_wheel(home: Path) -> None:
    for name in EDITOR_SCHEMAS:
        command = [str(home / ".orderkit/bin/orderkit"), "schema", name]
        found = subprocess.run(command, env=shell(home), capture_output=True, text=True, check=True)
        assert found.stdout == editor_schema(name)
