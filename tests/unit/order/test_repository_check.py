"""An order's repository without an XR: what is read to explain it, and what the hint says."""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath

import pytest
import yaml
from tests.unit.order.test_xrcheck import KIT

from ground.argocd.sync_rules import HELM_HOOK, HINT, HOOK, hook_annotation
from kubeschema.validate.file_check import Definitions
from kubeschema.validate.findings import Finding, Reason
from orderkit.core.order.order_check import OrderRepository, check_repository

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


@pytest.mark.parametrize("name", [HOOK, HELM_HOOK])
@pytest.mark.parametrize("value", ["PostDelete", "Skip", "", "whatever", "a,b", 5, None])
@pytest.mark.parametrize("kind", ["XDisk", "ConfigMap"])
def test_a_hook_of_argocd_is_found_whatever_its_type(name: str, value: object, kind: str) -> None:
    xr, other = yaml.safe_load(XR), yaml.safe_load(OTHER)
    hook = xr if kind == "XDisk" else other
    hook["metadata"]["annotations"] = {name: value}
    files = {PurePosixPath("manifests/a.yaml"): yaml.safe_dump_all([xr, other]).encode()}
    repository = OrderRepository("disk-a", KIT, sorted(files), files.get, PurePosixPath())

    findings = [entry.about for entry in check_repository(repository, Definitions.of(())).findings]

    (found,) = (about for about in findings if getattr(about, "reason", "") is Reason.HOOK)
    assert isinstance(found, Finding)
    assert f"{kind} {hook['metadata']['name']} is a hook of Argo CD ({name}:" in found.message
    assert found.hint == HINT


@pytest.mark.parametrize("annotations", [[], "text", None, {"other": "PostDelete"}])
def test_other_annotations_make_no_hook(annotations: object) -> None:
    xr = yaml.safe_load(XR)
    xr["metadata"]["annotations"] = annotations

    assert hook_annotation(xr) == ""
