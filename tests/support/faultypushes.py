"""
What people push by mistake, and how it is explained: one table for every platform.

Each push starts from a garage's repository that is well. ``validate``, ``status`` and the commit
status must say the same.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml
from packcopies import copied_pack

from orderkit_workshop.folders.local_pack import LocalPack
from orderkit_workshop.stories.generate_kits import apply_generation, plan_generation
from yamlfiles import yaml11

FILE = "manifests/xgarage.yaml"
_SECOND = """apiVersion: blog.opsbogus.dev/v1alpha1
kind: XGarage
metadata: {name: garage-second}
spec: {teamName: second, stage: stage1}
"""
_NOTE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n"
_BOMB = "a: &a [x, x]\n" + "".join(f"k{n}: *a\n" for n in range(30))
_POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d7a' * 16}\nsize 212\n"


@dataclass(frozen=True)
class Push:
    """One push; `change` edits a clone."""

    reason: str
    change: Callable[[Path], None]
    place: str
    """File and line of the first finding, as ``validate`` shows them."""
    says: tuple[str, ...]
    """Words of the explanation: field, value, rule."""
    remedy: str = ""
    state: str = "failure"
    """Of the commit status."""
    delivered: bool = False
    """Argo CD delivers it all the same."""
    passes_argocd: bool = False
    """Argo CD delivers it, although it is faulty: the order is Ready."""
    is_pruned: bool = False
    """The API server drops what it does not know; Argo CD applies it again and again."""
    refuses_changes: bool = False
    """No change of a field makes it deliverable, so ``change`` says the same and writes nothing."""
    warns: bool = False
    """``change`` goes on and says the same."""


def pushed_pack(target: Path) -> Path:
    """Copy the reference pack; its garage has a number of doors within bounds, too."""
    pack = copied_pack(target)
    definition = pack / "gitops/apis/garage/definition.yaml"
    xrd = yaml.safe_load(definition.read_text())
    spec = xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["doors"] = {"type": "integer", "minimum": 2, "maximum": 5}
    definition.write_text(yaml11.dump(xrd))
    folder = LocalPack(pack)
    apply_generation(folder, plan_generation(folder, ["garage"]))
    return pack


def text(clone: Path) -> str:
    return (clone / FILE).read_text(encoding="utf-8")


def _replace(old: str, new: str) -> Callable[[Path], None]:
    def change(clone: Path) -> None:
        content = text(clone)
        assert old in content, content
        (clone / FILE).write_text(content.replace(old, new), encoding="utf-8")

    return change


def _append(addition: str) -> Callable[[Path], None]:
    def change(clone: Path) -> None:
        (clone / FILE).write_text(text(clone) + addition, encoding="utf-8")

    return change


def _write(path: str, content: str | bytes) -> Callable[[Path], None]:
    def change(clone: Path) -> None:
        (clone / path).parent.mkdir(exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode()
        (clone / path).write_bytes(data)

    return change


def _recode(encode: Callable[[str], bytes]) -> Callable[[Path], None]:
    def change(clone: Path) -> None:
        (clone / FILE).write_bytes(encode(text(clone)))

    return change


def _move(target: str) -> Callable[[Path], None]:
    def change(clone: Path) -> None:
        (clone / target).parent.mkdir(exist_ok=True)
        (clone / FILE).rename(clone / target)

    return change


def _annotate(name: str, value: str) -> Callable[[Path], None]:
    annotation = f'{{argocd.argoproj.io/{name}: "{value}"}}'
    return _replace("metadata:\n", f"metadata:\n  annotations: {annotation}\n")


def _link(clone: Path) -> None:
    _move("xgarage.yaml")(clone)
    (clone / FILE).parent.mkdir(exist_ok=True)
    (clone / FILE).symlink_to("../xgarage.yaml")


def _link_folder(clone: Path) -> None:
    (clone / "manifests").rename(clone / "real")
    (clone / "manifests").symlink_to("real")


def _submodule(clone: Path) -> None:
    """Add a submodule below ``manifests/`` that nobody can fetch."""
    place = "manifests/shared"
    url = "http://127.0.0.1:9/none.git"
    (clone / ".gitmodules").write_text(f'[submodule "{place}"]\n\tpath = {place}\n\turl = {url}\n')
    (clone / place).mkdir()
    link = ("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},{place}")
    subprocess.run(["git", "-C", str(clone), *link], check=True, timeout=60)


def _as_json(clone: Path) -> None:
    content = json.dumps(yaml.safe_load(text(clone)), indent=2)
    (clone / FILE).unlink()
    (clone / "manifests" / "xgarage.json").write_text(content.replace('"stage1"', '"stage1",'))


PUSHES: tuple[Push, ...] = (
    Push(
        "an unknown field",
        _append("  colour: red\n"),
        f"{FILE}:10",
        ("spec.colour", "unknown field", '"red"', "declared fields only"),
        "fields here: teamName, stage",
        is_pruned=True,
    ),
    Push(
        "a wrong type",
        _replace('"stage1"', "5"),
        f"{FILE}:9",
        ("spec.stage", "must be of type string", "value: 5"),
        'quote it: "5"',
    ),
    Push(
        "a map where a text belongs",
        _replace('stage: "stage1"', "stage: {name: stage1}"),
        f"{FILE}:9",
        ("spec.stage", "must be of type string", '{"name": "stage1"}'),
        "write a text",
    ),
    Push(
        "the wrong group",
        _replace("blog.opsbogus.dev", "blog.opsbogus.com"),
        f"{FILE}:3",
        ("apiVersion", "no XRD defines XGarage.blog.opsbogus.com", "a kind of the pack"),
        "XGarage is of apiVersion blog.opsbogus.dev/v1alpha1",
        refuses_changes=True,
    ),
    Push(
        "the wrong version",
        _replace("v1alpha1", "v1"),
        f"{FILE}:3",
        ("apiVersion", 'no matches for kind "XGarage" in version "blog.opsbogus.dev/v1"'),
        "served: blog.opsbogus.dev/v1alpha1",
    ),
    Push(
        "the wrong case of the kind",
        _replace("kind: XGarage", "kind: Xgarage"),
        f"{FILE}:4",
        ("kind", "no XRD defines Xgarage.blog.opsbogus.dev", "a kind of the pack"),
        "did you mean 'XGarage'?",
        refuses_changes=True,
    ),
    Push(
        "a namespace on a cluster-scoped XR",
        _replace("metadata:\n", "metadata:\n  namespace: team-ae86\n"),
        f"{FILE}:6",
        ("metadata.namespace", "XGarage is cluster-scoped", "team-ae86", "scope Cluster"),
        "remove the namespace",
        state="warning",
        delivered=True,
    ),
    Push(
        "the text undefined in an annotation",
        _replace("metadata:\n", "metadata:\n  annotations: {example.org/cost: undefined}\n"),
        f"{FILE}:6",
        ("metadata.annotations", '"undefined" is what a template writes'),
        "write the value, or remove the line",
        state="warning",
        delivered=True,
    ),
    Push(
        "the text undefined in a label",
        _replace("metadata:\n", "metadata:\n  labels:\n    cost: undefined\n"),
        f"{FILE}:7",
        ("metadata.labels", '"undefined" is what a template writes'),
        "write the value, or remove the line",
        state="warning",
        delivered=True,
    ),
    Push(
        "an annotation that makes Argo CD delete the XR and make it again",
        _annotate("sync-options", "Force=true,Replace=true"),
        f"{FILE}:6",
        ("sync-options: Force=true steers Argo CD: Argo CD deletes the object and makes it again",),
        "take argocd.argoproj.io/sync-options out of the annotations",
        passes_argocd=True,
        refuses_changes=True,
    ),
    Push(
        "an annotation that makes the XR a hook",
        _annotate("hook", "PreSync"),
        f"{FILE}:6",
        ("is a hook of Argo CD (argocd.argoproj.io/hook: PreSync), and an order has no hooks",),
        "take the annotation, or the object, out of manifests/",
        refuses_changes=True,
    ),
    *(
        Push(
            f"the annotation {name} of Argo CD",
            _annotate(name, value),
            f"{FILE}:6",
            (f"argocd.argoproj.io/{name}: {value} steers Argo CD: {effect}",),
            f"take argocd.argoproj.io/{name} out of the annotations",
            state="warning",
            delivered=True,
            warns=True,
        )
        for name, value, effect in (
            ("sync-options", "Prune=false", "Argo CD does not prune the object"),
            ("sync-options", "Delete=false", "Argo CD leaves the object behind"),
            ("compare-options", "IgnoreExtraneous", "Argo CD may call the order Synced"),
            ("sync-wave", "5", "an order delivers one object"),
            ("ignore-healthcheck", "true", "Argo CD leaves the object's health out"),
        )
    ),
    Push(
        "two documents in a file",
        _append(f"---\n{_NOTE}"),
        f"{FILE}:12",
        ("delivers one XGarage and nothing else", "ConfigMap note"),
        "remove this object",
        refuses_changes=True,
    ),
    Push(
        "a second XR",
        _write("manifests/second.yaml", _SECOND),
        "manifests/second.yaml:2",
        ("delivers one XGarage and nothing else", "XGarage garage-second"),
        "a second XR is a second order",
        refuses_changes=True,
    ),
    Push(
        "an empty file",
        _write(FILE, ""),
        FILE,
        ("holds no object", "the order's XGarage is missing", "one XGarage in manifests/"),
        "restore the file",
        refuses_changes=True,
    ),
    Push(
        "tabs",
        _replace("  stage:", "\tstage:"),
        f"{FILE}:9",
        ("a tab where YAML wants blanks",),
        "indent with blanks, not with tabs",
    ),
    Push(
        "a key given twice",
        _append('  stage: "stage2"\n'),
        f"{FILE}:10",
        ("key 'stage' is given twice",),
        "keep one of the two",
        passes_argocd=True,
    ),
    Push(
        "a value that is not offered",
        _replace('"stage1"', "stage9"),
        f"{FILE}:9",
        ("spec.stage", 'Unsupported value: "stage9"', '"stage1", "stage2", "stage3"'),
        'use one of "stage1", "stage2", "stage3"',
    ),
    Push(
        "a value that misses the pattern",
        _replace('teamName: "', 'teamName: "UP-'),
        f"{FILE}:8",
        ("spec.teamName", "UP-", "should match '^[a-z][a-z0-9-]{2,28}$'"),
        "keep to pattern",
    ),
    Push(
        "a missing field",
        _replace('  stage: "stage1"\n', ""),
        f"{FILE}:7",
        ("spec.stage", "Required value"),
        "add the field",
    ),
    Push(
        "a field that never changes",
        _replace('teamName: "', 'teamName: "x'),
        f"{FILE}:8",
        ("spec.teamName", "is refused: the field names", "changes of kit garage"),
        "put back",
    ),
    Push(
        "Latin-1",
        _recode(lambda content: content.replace("is the order", "é").encode("latin-1")),
        f"{FILE}:2",
        ("not UTF-8",),
        "save the file in UTF-8",
        passes_argocd=True,
    ),
    Push(
        "a byte order mark and Windows lines",
        _recode(lambda content: b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode()),
        "",
        (),
        state="success",
        delivered=True,
    ),
    Push(
        "an unresolved merge",
        _replace(
            '  stage: "stage1"\n',
            "<<<<<<< HEAD\n  stage: stage1\n=======\n  stage: stage2\n>>>>>>> theirs\n",
        ),
        f"{FILE}:9",
        ("an unresolved merge", "<<<<<<<"),
        "keep one side",
    ),
    Push(
        "a bomb of aliases",
        _append(f"---\n{_BOMB}"),
        f"{FILE}:32",
        ("more than 20 aliases",),
        "write the values out",
    ),
    Push(
        "a file moved out of manifests",
        _move("xgarage.yaml"),
        "xgarage.yaml",
        ("Argo CD reads only files directly in manifests/",),
        "git mv xgarage.yaml manifests/",
        refuses_changes=True,
    ),
    Push(
        "a file moved into a folder",
        _move("manifests/prod/xgarage.yaml"),
        "manifests/prod/xgarage.yaml",
        ("Argo CD reads only files directly in manifests/",),
        "git mv manifests/prod/xgarage.yaml manifests/",
        refuses_changes=True,
    ),
    Push(
        "a deleted file",
        lambda clone: (clone / FILE).unlink(),
        "manifests",
        ("no file of manifests/ holds the order's XGarage",),
        "orderkit destroy",
        refuses_changes=True,
    ),
    Push(
        "a symbolic link",
        _link,
        FILE,
        ("is a symbolic link",),
        "commit the file itself",
        passes_argocd=True,
        refuses_changes=True,
    ),
    Push(
        "a folder that is a symbolic link",
        _link_folder,
        "manifests",
        ("is a symbolic link, not a folder",),
        "git rm manifests && mkdir manifests && git mv real/xgarage.yaml manifests/",
        refuses_changes=True,
    ),
    Push(
        "a submodule",
        _submodule,
        ".gitmodules",
        ("names submodules", "Argo CD fails if it cannot fetch them"),
        "commit the files themselves",
        refuses_changes=True,
    ),
    Push(
        "a pointer of Git LFS",
        _write(FILE, _POINTER),
        FILE,
        ("is a pointer of Git LFS",),
        "commit the file itself",
        refuses_changes=True,
    ),
    Push(
        "a value below its minimum",
        _append("  doors: 1\n"),
        f"{FILE}:10",
        ("spec.doors", "should be greater than or equal to 2", "value: 1"),
        "keep to minimum 2",
    ),
    Push(
        "a value above its maximum",
        _append("  doors: 6\n"),
        f"{FILE}:10",
        ("spec.doors", "should be less than or equal to 5", "value: 6"),
        "keep to maximum 5",
    ),
    Push(
        "JSON with a comma too many",
        _as_json,
        "manifests/xgarage.json:10",
        ("manifests/xgarage.json",),
        "correct the file",
        refuses_changes=True,
    ),
    Push(
        "a name with a bidirectional character",
        _replace("  stage:", "  st\u202eage: stage1\n  stage:"),
        f"{FILE}:9",
        ("unknown field", "\\u202e"),
        is_pruned=True,
    ),
)
