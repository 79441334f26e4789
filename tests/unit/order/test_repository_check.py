"""An order's repository without an XR: what is read to explain it, and what the hint says."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml
from tests.unit.order.test_xrcheck import KIT, XRD

from ground.argocd.sync_rules import HELM_HOOK, HINT, HOOK, hook_annotation
from ground.shapes import changed
from kubeschema.validate.file_check import Definitions, SourceFile
from kubeschema.validate.findings import Finding, FindingSeverity, Reason
from orderkit.core.kit.kit_file import Direction, How, KitChange
from orderkit.core.kit.pack import Kit
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


_DEFINITION = SourceFile(PurePosixPath("xrd.yaml"), yaml.safe_dump(XRD).encode(), is_named=True)
DEFINED = Definitions.of([_DEFINITION])


def found_in(
    files: Mapping[str, bytes | None],
    kit: Kit = KIT,
    definitions: Definitions = DEFINED,
    old: dict[str, Any] | None = None,
) -> list[tuple[str, str, str, str]]:
    """Return file, reason, message and hint of what is wrong; None is a symbolic link."""
    paths = {PurePosixPath(path): data for path, data in files.items()}
    repository = OrderRepository("disk-a", kit, sorted(paths), paths.get, PurePosixPath("repo"))
    outcome = check_repository(repository, definitions, lambda _: old)
    return [
        (str(entry.file), str(about.reason), about.message, about.hint)
        for entry in outcome.findings
        if isinstance(about := entry.about, Finding)
    ]


def disk(name: str = "disk-a", *, namespace: str = "", **spec: Any) -> bytes:
    meta = {"name": name} | ({"namespace": namespace} if namespace else {})
    kind = {"apiVersion": "example.org/v1", "kind": "XDisk"}
    return yaml.safe_dump({**kind, "metadata": meta, "spec": {"teamName": "a", **spec}}).encode()


GOOD = disk()
POD = b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}'
RESTORE = "restore the file (see: git log -- manifests), or end the order: orderkit destroy disk-a"
BACK = "git rm manifests && mkdir manifests"


@pytest.mark.parametrize(
    ("files", "file", "told", "hint"),
    [
        ({}, "manifests", "no file of manifests/ holds the order's XDisk", RESTORE),
        ({"manifests/a.yaml": b"# none"}, "manifests/a.yaml",
         "holds no object, so the order's XDisk is missing", RESTORE),
        ({"manifests/sub/a.yml": GOOD}, "manifests/sub/a.yml",
         "holds the order's XDisk, but Argo CD reads only files directly in manifests/",
         "move it back: git mv manifests/sub/a.yml manifests/"),
        ({"a.yaml": b"{", "b.yaml": None, "c.yaml": GOOD}, "c.yaml",
         "holds the order's XDisk, but Argo CD reads only files directly in manifests/",
         "move it back: git mv c.yaml manifests/"),
        ({".github/a.yaml": GOOD, "a.txt": GOOD}, "manifests",
         "no file of manifests/ holds the order's XDisk", RESTORE),
        ({"manifests": b"x"}, "manifests", "is a file, not a folder", RESTORE),
        ({"manifests": None}, "manifests", "is a symbolic link, not a folder", RESTORE),
        ({"manifests": b"x", "old.yml": GOOD}, "manifests", "is a file, not a folder",
         f"put a folder in its place: {BACK} && git mv old.yml manifests/"),
    ],
)  # fmt: skip
def test_a_missing_xr_is_told_where_it_is_looked_for(
    files: Mapping[str, bytes | None], file: str, told: str, hint: str
) -> None:
    first = found_in(files)[0]

    assert first == (f"repo/{file}", "no-xr", told, hint)


def test_a_submodule_explains_a_missing_xr_and_is_told_of() -> None:
    submodules, missing = found_in({".gitmodules": b"x"})

    assert missing[3] == (f"commit the file itself: Orderkit does not read submodules; {RESTORE}")
    assert submodules[:3] == (
        "repo/.gitmodules",
        "not-read",
        "names submodules: none is delivered, and Argo CD fails if it cannot fetch them",
    )
    assert not submodules[3].startswith("move")


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("manifests/values.txt", "rename it to end in .yaml, or remove it"),
        ("manifests/sub/b.yaml", "move it: git mv manifests/sub/b.yaml manifests/"),
        ("manifests/.gitkeep", ""),
        ("manifests/README.md", ""),
        ("manifests/LICENSE", ""),
        ("docs/b.yaml", ""),
        ("b.yaml", ""),
    ],
)
def test_files_that_argo_cd_passes_over_are_told_of(path: str, hint: str) -> None:
    found = found_in({"manifests/a.yaml": GOOD, path: b"b: 1"})

    told = (f"repo/{path}", "not-read", "is not delivered", hint)
    assert found == ([told] if hint else [])


def test_a_file_that_holds_the_moved_xr_is_told_of_once() -> None:
    assert len(found_in({"manifests/sub/a.yaml": GOOD})) == 1


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"manifests/a.yaml": GOOD}, []),
        ({"manifests/a.yml": GOOD, "manifests/b.json": POD}, ["manifests/b.json"]),
        ({"manifests/a.yaml": GOOD + b"---\n" + disk("disk-b")}, ["manifests/a.yaml"]),
        ({"manifests/0.yaml": disk("disk-b"), "manifests/a.yaml": GOOD}, ["manifests/0.yaml"]),
    ],
)
def test_what_is_delivered_beside_the_xr_is_another_order(
    files: Mapping[str, bytes], told: list[str]
) -> None:
    found = [entry for entry in found_in(files) if "and nothing else" in entry[2]]

    assert [entry[0] for entry in found] == [f"repo/{file}" for file in told]
    assert all(entry[2].startswith("order disk-a delivers one XDisk and") for entry in found)


HOMED = changed(KIT, xr_namespace="{teamName}-disks")


@pytest.mark.parametrize(
    ("kit", "xr", "told"),
    [
        (KIT, disk("disk-b"), 'is "disk-b", but the XR of disk-a is "disk-a"'),
        (KIT, disk(namespace="elsewhere"), ""),
        (HOMED, disk(namespace="a-disks"), ""),
        (
            HOMED,
            disk(namespace="elsewhere"),
            'is "elsewhere", but the order\'s fields make it "a-disks"',
        ),
        (changed(KIT, xr_name="teamName"), disk("a"), ""),
        (changed(KIT, xr_name="teamName"), disk(), 'is "disk-a", but the XR of disk-a is "a"'),
    ],
)
def test_an_xr_with_another_name_is_another_xr(kit: Kit, xr: bytes, told: str) -> None:
    found = found_in({"manifests/a.yaml": xr}, kit)
    messages = [entry[2] for entry in found if entry[1] == "not-the-orders"]

    assert messages == ([told] if told else [])


NEVER = KitChange(name="size", fields=("size",), direction=Direction.NEVER, how=How.DIRECT)
FIXED = changed(KIT, changes=(NEVER,))


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        (None, {"size": 2}, []),
        ({"teamName": "a", "size": 1}, {"size": 2}, ["spec.size"]),
        ({"teamName": "a", "size": 2}, {"size": 2}, []),
        ({"teamName": "a", "size": 2, "gone": 3}, {"size": 2}, []),
        ({"teamName": "a", "size": 2}, {"size": "x"}, ["spec.size"]),
    ],
)
def test_a_change_that_the_kit_forbids_is_to_be_put_back(
    old: dict[str, Any] | None, new: dict[str, Any], paths: list[str]
) -> None:
    paths_ = {PurePosixPath("manifests/a.yaml"): disk(**new)}
    repository = OrderRepository("disk-a", FIXED, sorted(paths_), paths_.get, PurePosixPath())
    before = None if old is None else {"spec": old}

    outcome = check_repository(repository, DEFINED, lambda _: before)
    found = [entry.about for entry in outcome.findings]

    assert [about.path for about in found] == paths
    for about in found:
        assert isinstance(about, Finding)
        if about.reason is Reason.TRANSITION:
            assert about.hint.startswith(f"put back {old and old['size']}")


@pytest.mark.parametrize(
    ("option", "severity"),
    [("Force=true", FindingSeverity.ERROR), ("Prune=false", FindingSeverity.WARNING)],
)
def test_an_annotation_that_steers_argo_cd_is_an_error_if_it_destroys(
    option: str, severity: FindingSeverity
) -> None:
    xr = yaml.safe_load(GOOD)
    xr["metadata"]["annotations"] = {"argocd.argoproj.io/sync-options": option}
    files = {PurePosixPath("manifests/a.yaml"): yaml.safe_dump(xr).encode()}
    repository = OrderRepository("disk-a", KIT, sorted(files), files.get, PurePosixPath())

    (found,) = (entry.about for entry in check_repository(repository, DEFINED).findings)

    assert isinstance(found, Finding)
    assert (found.reason, found.severity) == (Reason.STEERS, severity)
