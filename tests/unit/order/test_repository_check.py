"""An order's repository without an XR: what is read to explain it, and what the hint says."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath

import pytest
import yaml
from tests.unit.order.test_xrcheck import KIT

from orderkit.core.order.repository_check import OrderRepository, check_repository
from orderkit.core.schema.validate.file_check import Definitions
from orderkit.core.schema.validate.findings import Finding

XR = yaml.safe_dump(
    {"apiVersion": "example.org/v1", "kind": "XDisk", "metadata": {"name": "disk-a"}}
).encode()
OTHER = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


def moved_hint(xr_path: str, *, others: int = 0) -> tuple[str, int]:
    """Return the hint about an XR at a wrong place, and how many files were read for it."""
    files = {PurePosixPath(f"values/{number:04}/app.yaml"): OTHER for number in range(others)}
    files[PurePosixPath(xr_path)] = XR
    reads: list[PurePosixPath] = []

    def read(path: PurePosixPath) -> bytes:
        reads.append(path)
        return files[path]

    repository = OrderRepository("disk-a", KIT, sorted(files), read, PurePosixPath())
    findings = check_repository(repository, Definitions.of(())).findings
    about = findings[0].about
    assert isinstance(about, Finding)
    return about.hint, len(reads)


def test_a_moved_xr_among_three_thousand_files_costs_at_most_fifty_reads() -> None:
    moved = moved_hint("zz/old/my-xdisk.yaml", others=3000)
    unlikely = moved_hint("zz/old/qqqq.json", others=3000)

    assert moved == ("move it back: git mv zz/old/my-xdisk.yaml manifests/", 1)
    assert unlikely[0].startswith("restore the file")
    assert unlikely[1] == 50


@pytest.mark.parametrize("folder", ["", "manifests/sub/"], ids=["outside", "below"])
@pytest.mark.parametrize("name", ["a; rm -rf ~.yaml", "$(id).yaml", "-f.yaml", "it's.yaml"])
def test_a_pushed_file_name_is_one_word_of_the_command(folder: str, name: str) -> None:
    hint, _ = moved_hint(folder + name)

    words = shlex.split(hint.partition(": ")[2])
    assert len(words) == 4
    assert (words[0], PurePosixPath(words[2]), words[3]) == (
        "git", PurePosixPath(folder + name), "manifests/",
    )  # fmt: skip
    assert not words[2].startswith("-")
