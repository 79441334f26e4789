"""
An awkward template of another pack, through a real task: what our kits do not have.

Executable files, names that are templates, files that are dropped, binary and verbatim ones, line
endings; the actions of CNOE's portals (stand-ins with their inputs). The tree that Backstage
publishes is the tree that `render_tree` makes.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from lab.realbackstage import Backstage
from published import Up
from scaffolderapi import Scaffolder, Task

from ground.names import RepoId
from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, CONFIG_MAP, ObjectKey
from orderkit.adapters.backstage import BackstageCatalog
from orderkit.cli.connecting import token as token_of
from softwaretemplates.render import SkeletonFile, TreeOptions, render_tree

REPOSITORY, OUTCOME = RepoId("samples", "template"), RepoId("samples", "cart")
PLAIN, EXECUTABLE = 0o100644, 0o100755
VALUES = {"name": "cart", "count": 3, "tags": ["a", "b"], "extra": False}
SKELETON = {
    "README.md": (b"# ${{ values.name }}\n", PLAIN),
    "${{ values.name }}/deep/${{ values.name | upper }}.txt": (b"${{ values.count + 1 }}\n", PLAIN),
    "{% if values.extra %}dropped.txt{% endif %}": (b"never\n", PLAIN),
    "{% if not values.extra %}kept.txt{% endif %}": (b"always\n", PLAIN),
    ".hidden/.dot": (b"${{ values.tags | dump }}", PLAIN),
    "bin/run.sh": (b"#!/bin/sh\necho ${{ values.name }}\n", EXECUTABLE),
    "logo.bin": (b"\x00\x01${{ values.name }}", EXECUTABLE),
    "charts/app.yaml": (b"image: {{ .Values.image }} ${{ values.name }}\n", PLAIN),
    "charts/${{ values.name }}.yaml": (b"${{ not rendered }}\n", PLAIN),
    "helm.yaml": (b"image: {{ .Values.image }} ${{ values.name }}\n", PLAIN),
    "crlf.txt": (b"a\r\n${{ values.name }}\r\n", PLAIN),
    "bom.txt": (b"\xef\xbb\xbf${{ values.name }}\n", PLAIN),
    "no-newline.txt": ("größe ${{ values.count }}".encode(), PLAIN),
    "choice.txt": (b"{% if values.count > 2 %}many{% else %}few{% endif %}\n", PLAIN),
    "loop.txt": (b"{% for tag in values.tags %}${{ loop.index }}${{ tag }};{% endfor %}\n", PLAIN),
    "empty.txt": (b"", PLAIN),
}
OPTIONS = TreeOptions(copy_without_templating=("charts/**",))


@dataclass(frozen=True)
class Sample:
    """The awkward template as a task of Backstage ran it, and the tree it published."""

    task: Task
    tree: dict[PurePosixPath, SkeletonFile]


def _template(forge_host: str) -> dict[str, Any]:
    def step(name: str, action: str, **inputs: Any) -> dict[str, Any]:
        return {"id": name, "name": name, "action": action, "input": inputs}

    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "${{ parameters.name }}-facts", "namespace": ARGOCD_NAMESPACE},
        "data": {"facts": "${{ steps.tidy.output.sanitized }}"},
    }
    application = {
        "repoUrl": "${{ steps.publish.output.remoteUrl }}",
        "projectName": "default",
        "appName": "${{ parameters.name }}-sample",
        "argoInstance": "in-cluster",
        "path": "charts",
        "appNamespace": "default",
        "labelValue": "${{ parameters.name }}",
    }
    return {
        "apiVersion": "scaffolder.backstage.io/v1beta3",
        "kind": "Template",
        "metadata": {"name": "awkward", "title": "Awkward"},
        "spec": {
            "owner": "group:default/platform",
            "type": "service",
            "parameters": [{"properties": {name: {} for name in VALUES}}],
            "steps": [
                step(
                    "fetch",
                    "fetch:template",
                    url="./skeleton",
                    values={name: f"${{{{ parameters.{name} }}}}" for name in VALUES},
                    copyWithoutTemplating=list(OPTIONS.copy_without_templating),
                ),
                step("tidy", "cnoe:utils:sanitize", document="a: 1\nb:\nc: {d: []}\ne: ''\n"),
                step(
                    "apply",
                    "cnoe:kubernetes:apply",
                    namespaced=True,
                    clusterName="local",
                    manifestObject=config_map,
                ),
                step(
                    "publish",
                    "publish:gitea",
                    repoUrl=f"{forge_host}?owner={OUTCOME.owner}&repo=${{{{ parameters.name }}}}",
                    description="An awkward tree",
                ),
                step("deliver", "cnoe:create-argocd-app", **application),
            ],
            "output": {
                "text": [{"title": "t", "content": "${{ steps.publish.output.remoteUrl }}"}]
            },
        },
    }


@pytest.fixture(scope="module")
def sample(
    up: Up, backstage: Backstage, scaffolder: Scaffolder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sample]:
    folder = tmp_path_factory.mktemp("sample")
    _push_template(up, folder / "template")
    token = token_of(up.settings.portal)
    target = f"{up.settings.forge.url}/{REPOSITORY}/src/branch/main/template.yaml"
    catalog = BackstageCatalog(backstage.url, token=token)
    catalog.register(target)
    end = time.monotonic() + 60
    while scaffolder.entity("template/default/awkward").status != 200:
        assert time.monotonic() < end
        time.sleep(0.2)
    task = scaffolder.run("awkward", VALUES)
    assert task.status == "completed", task.log
    yield Sample(task, _clone(f"{up.settings.forge.url}/{OUTCOME}.git", folder / "outcome"))
    catalog.unregister(target)


def _push_template(up: Up, folder: Path) -> None:
    for name, (data, mode) in SKELETON.items():
        path = folder / "skeleton" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(mode & 0o777)
    host = up.settings.forge.url.partition("://")[2]
    (folder / "template.yaml").write_text(yaml.safe_dump(_template(host)))
    up.platform.forge.ensure_org(REPOSITORY.owner)
    up.platform.forge.ensure_repo(REPOSITORY, description="An awkward template")
    store = f"store --file={up.state / 'credentials' / 'git'}"
    git = _git(folder)
    git("init", "--quiet", "--initial-branch=main")
    git("-c", "core.autocrlf=false", "add", "--all")
    git("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "-m", "begun")
    url = f"{up.settings.forge.url}/{REPOSITORY}.git"
    git("-c", f"credential.helper={store}", "push", "--quiet", url, "main")


def _clone(url: str, folder: Path) -> dict[PurePosixPath, SkeletonFile]:
    git = _git(folder.parent)
    git("clone", "--quiet", url, str(folder))
    listed = _git(folder)("ls-tree", "-r", "-z", "HEAD").split("\0")
    found = {}
    for entry in filter(None, listed):
        facts, _, name = entry.partition("\t")
        found[PurePosixPath(name)] = SkeletonFile((folder / name).read_bytes(), int(facts[:6], 8))
    return found


def _git(folder: Path) -> Callable[..., str]:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        done = subprocess.run(command, check=True, capture_output=True, timeout=60)
        return done.stdout.decode()

    return git


def test_the_published_tree_is_the_tree_that_ours_renders(sample: Sample) -> None:
    """Paths, modes and bytes."""
    skeleton = {PurePosixPath(name): SkeletonFile(*file) for name, file in SKELETON.items()}

    ours = render_tree(skeleton, VALUES, OPTIONS)

    assert sample.tree == ours
    assert len(ours) == len(SKELETON) - 1


def test_a_dry_run_writes_that_tree_too(sample: Sample, scaffolder: Scaffolder) -> None:
    """Its input has no modes: every file becomes a plain one."""
    files = {PurePosixPath("skeleton", name): data for name, (data, _mode) in SKELETON.items()}

    found = scaffolder.dry_run(_template("127.0.0.1"), VALUES, files)

    expected = {path: file.data for path, file in sample.tree.items()}
    assert {path: file.data for path, file in found.files.items()} == expected


def test_the_stand_ins_of_cnoe_actions_reach_the_cluster(sample: Sample, up: Up) -> None:
    cluster = up.platform.cluster
    facts = cluster.get(ObjectKey(CONFIG_MAP, "cart-facts", ARGOCD_NAMESPACE))
    application = cluster.get(ObjectKey(APPLICATION, "cart-sample", ARGOCD_NAMESPACE))

    assert facts is not None
    assert yaml.safe_load(facts["data"]["facts"]) == {"a": 1, "e": ""}
    assert application is not None
    assert application["spec"]["source"]["repoURL"] == sample.task.output["text"][0]["content"]
