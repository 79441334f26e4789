"""Actions on files: single files, modes, renames, listings, entities, clean documents."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pytest
from templates import step, template

from ground.errors import InvalidInputError, NotFoundError, OrderkitError, RefusedError
from ground.names import RepoId
from orderkit.flows.template import scaffolder
from orderkit.flows.template.actions.action_context import (
    FETCHED_FILES_MAX,
    ActionContext,
    ForgeFolder,
    source_of,
)
from softwaretemplates.render import LimitError, RenderError, SkeletonFile
from yamlfiles.manifests import ManifestError

EXECUTABLE = 0o100755
FILES: dict[str, bytes | SkeletonFile] = {
    "plain.txt": b"as ${{ it }} is\r\n",
    "page.txt": b"hello ${{ values.name }}\n",
    "bytes.bin": b"\x00\xff\xfe",
    "s/a/one": b"1",
    "s/a/deep/two": b"2",
    "link": SkeletonFile(b"", symlink="plain.txt"),
    "s/run.sh": SkeletonFile(b"#!/bin/sh\n", EXECUTABLE),
}


def tree(world: Any, *steps: dict[str, Any]) -> dict[str, bytes]:
    done = world.run(template(*steps), {}, FILES)
    return {str(path): file.data for path, file in sorted(done.workspace.items())}


def test_a_single_file_is_fetched_as_it_is(world: Any) -> None:
    found = tree(world, step("a", "fetch:plain:file", url="./plain.txt", targetPath="./x/y.txt"))

    assert found == {"x/y.txt": b"as ${{ it }} is\r\n"}


def test_a_single_file_is_rendered_and_its_path_is_not(world: Any) -> None:
    one = step(
        "a", "fetch:template:file", url="page.txt", targetPath="x/page", values={"name": "you"}
    )

    assert tree(world, one) == {"x/page": b"hello you\n"}


def test_an_existing_file_stays_unless_replace(world: Any) -> None:
    def page(identifier: str, name: str, **more: Any) -> dict[str, Any]:
        return step(
            identifier,
            "fetch:template:file",
            url="page.txt",
            targetPath="p",
            values={"name": name},
            **more,
        )

    assert tree(world, page("a", "1"), page("b", "2")) == {"p": b"hello 1\n"}
    assert tree(world, page("a", "1"), page("b", "2", replace=True)) == {"p": b"hello 2\n"}


def test_a_single_file_comes_from_the_forge_too(world: Any) -> None:
    repo = RepoId("o", "r")
    world.forge.ensure_org("o")
    world.forge.ensure_repo(repo, description="")
    world.push(repo, {"kit/file.txt": "from the forge"})
    url = world.url(repo, "kit/file.txt")

    assert tree(world, step("a", "fetch:plain:file", url=url, targetPath="f")) == {
        "f": b"from the forge"
    }


def test_what_comes_from_the_forge_has_a_limit_that_can_be_raised(world: Any) -> None:
    repo = RepoId("o", "r")
    world.forge.ensure_org("o")
    world.forge.ensure_repo(repo, description="")
    world.push(repo, {f"kit/{name}.bin": "\0" * 700_000 for name in "abc"})
    fetched = step("one", "fetch:plain", url=world.url(repo, "kit"))
    rest = step("two", "fetch:plain:file", url=world.url(repo, "kit/a.bin"), targetPath="d.bin")

    with pytest.raises(LimitError) as refused:
        world.run(template(fetched), {}, size_limit=1 << 20)
    assert str(refused.value) == (
        "kit/b.bin: has 700000 bytes, with which 1400000 bytes are fetched; at most 1048576 are "
        "allowed"
    )
    assert "raise the limit: --size-limit 2, or templates.sizeMiB: 2" in refused.value.hint
    with pytest.raises(LimitError, match="the files of all steps have 2800000 bytes together"):
        world.run(template(fetched, rest), {}, size_limit=2_200_000)

    assert len(world.run(template(fetched, rest), {}, size_limit=3 << 20).workspace) == 4


def test_modes_survive_fetching_and_renaming(world: Any) -> None:
    steps = template(
        step("a", "fetch:template", url="s", values={}),
        step("b", "fs:rename", files=[{"from": "run.sh", "to": "bin/run"}]),
    )

    found = world.run(steps, {}, FILES).workspace

    assert found[PurePosixPath("bin/run")].mode == EXECUTABLE
    assert found[PurePosixPath("a/one")].mode == 0o100644


COMPAT = b"{{ cookiecutter.name }} ${{ cookiecutter.name }} {{ cookiecutter.list | jsonify }}\n"


@pytest.mark.parametrize("action", ["fetch:template", "fetch:template:file"])
def test_templates_of_cookiecutter_are_rendered_its_way(world: Any, action: str) -> None:
    inputs: dict[str, Any] = {
        "cookiecutterCompat": True,
        "values": {"name": "n", "list": [1, "a"]},
        "url": "c" if action == "fetch:template" else "c/page",
        "targetPath": "." if action == "fetch:template" else "page",
    }

    done = world.run(template(step("a", action, **inputs)), {}, {"c/page": COMPAT})

    assert done.workspace[PurePosixPath("page")].data == b'n $n [1,"a"]\n'


def pushed(world: Any, tmp_path: Path, make: Callable[[Path], None]) -> str:
    """Push a folder with the real git; return its address on the forge."""
    repo = RepoId("o", "r")
    world.forge.ensure_org("o")
    world.forge.ensure_repo(repo, description="")
    copy = tmp_path / "copy"
    (copy / "kit").mkdir(parents=True)
    make(copy / "kit")
    remote = world.forge.base_url.replace("://", "://bot:bot-password@") + f"/{repo}.git"
    who = ("-c", "user.name=t", "-c", "user.email=t@x.example")
    for command in (
        ("init", "-q", "-b", "main"),
        ("add", "-A"),
        (*who, "commit", "-q", "-m", "x"),
        ("push", "-q", remote, "main"),
    ):
        subprocess.run(["git", *command], cwd=copy, check=True, capture_output=True)
    return str(world.url(repo, "kit"))


def test_modes_survive_fetching_from_the_forge(world: Any, tmp_path: Path) -> None:
    def make(folder: Path) -> None:
        (folder / "run").write_text("x")
        (folder / "run").chmod(0o755)
        (folder / "page").write_text("${{ values.n }}")

    url = pushed(world, tmp_path, make)
    found = world.run(template(step("a", "fetch:template", url=url, values={"n": 1})), {}).workspace

    assert {str(path): file.mode for path, file in found.items()} == {
        "run": EXECUTABLE,
        "page": 0o100644,
    }


def test_no_more_files_are_fetched_than_a_step_may(world: Any, tmp_path: Path) -> None:
    def make(folder: Path) -> None:
        for number in range(FETCHED_FILES_MAX + 1):
            (folder / str(number)).touch()

    url = pushed(world, tmp_path, make)

    with pytest.raises(LimitError, match="kit: has 5001 files; at most 5000 are fetched"):
        world.run(template(step("a", "fetch:plain", url=url)), {})


def test_a_link_on_the_forge_is_refused_not_dropped(world: Any, tmp_path: Path) -> None:
    url = pushed(world, tmp_path, lambda folder: (folder / "link").symlink_to("/etc/passwd"))

    with pytest.raises(RefusedError, match="symbolic link"):
        world.run(template(step("a", "fetch:plain", url=url)), {})


def test_an_executable_is_not_published_as_a_plain_file(world: Any) -> None:
    host = world.forge.base_url.removeprefix("http://")
    world.forge.ensure_org("o")
    publish = step("p", "publish:gitea", repoUrl=f"{host}?owner=o&repo=r", description="d")

    with pytest.raises(RefusedError, match=r"run\.sh: is executable"):
        world.run(template(step("a", "fetch:plain", url="s"), publish), {}, FILES)

    assert world.forge.repo(RepoId("o", "r")) is None


class Bad(NamedTuple):
    reason: str
    steps: tuple[dict[str, Any], ...]
    error: type[OrderkitError]
    message: str


def fetched(*more: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return (step("s", "fetch:plain", url="s"), *more)


def rename(source: str, target: str, **more: Any) -> dict[str, Any]:
    return step("r", "fs:rename", files=[{"from": source, "to": target, **more}])


NO_API = {"kind": "ConfigMap", "metadata": {"name": "x"}}
BAD = [
    Bad(
        "the mode would be lost",
        (step("a", "fetch:plain:file", url="s/run.sh", targetPath="x"),),
        InvalidInputError,
        "is executable",
    ),
    Bad(
        "a link",
        (step("a", "fetch:plain:file", url="link", targetPath="x"),),
        RefusedError,
        "link: is a symbolic link",
    ),
    Bad(
        "no such file",
        (step("a", "fetch:plain:file", url="none", targetPath="x"),),
        InvalidInputError,
        "is not a file",
    ),
    Bad(
        "a folder is not a file",
        (step("a", "fetch:plain:file", url="s", targetPath="x"),),
        InvalidInputError,
        "is not a file",
    ),
    Bad(
        "a target outside",
        (step("a", "fetch:plain:file", url="plain.txt", targetPath="../x"),),
        RefusedError,
        "leaves its folder",
    ),
    Bad(
        "a source outside",
        (step("a", "fetch:template:file", url="../x", targetPath="x"),),
        InvalidInputError,
        "leaves the folder of template",
    ),
    Bad(
        "a binary would be destroyed",
        (step("a", "fetch:template:file", url="bytes.bin", targetPath="x"),),
        RefusedError,
        "is not UTF-8",
    ),
    Bad(
        "a value that is missing",
        (step("a", "fetch:template:file", url="page.txt", targetPath="x"),),
        RenderError,
        r"page\.txt:1",
    ),
    Bad(
        "a file where a folder is",
        fetched(step("a", "fetch:plain:file", url="plain.txt", targetPath="a")),
        RefusedError,
        "is a folder",
    ),
    Bad(
        "a folder where a file is",
        fetched(step("a", "fetch:plain:file", url="plain.txt", targetPath="a/one/x")),
        RefusedError,
        "'a/one' is a file",
    ),
    Bad(
        "two inputs that exclude each other",
        (
            step(
                "a",
                "fetch:template",
                url="s",
                templateFileExtension=True,
                copyWithoutTemplating=[],
            ),
        ),
        InvalidInputError,
        "cannot stand beside",
    ),
    Bad("a rename onto a file", fetched(rename("run.sh", "a/one")), InvalidInputError, "exists"),
    Bad("a rename onto a folder", fetched(rename("run.sh", "a")), InvalidInputError, "exists"),
    Bad(
        "a rename into itself",
        fetched(rename("a", "a/b", overwrite=True)),
        InvalidInputError,
        "inside it",
    ),
    Bad(
        "a listing of nothing",
        fetched(step("l", "fs:readdir", paths=["none"])),
        InvalidInputError,
        "is not a folder",
    ),
    Bad(
        "a listing outside",
        fetched(step("l", "fs:readdir", paths=["../x"])),
        RefusedError,
        "leaves its folder",
    ),
    Bad("too long a wait", (step("w", "debug:wait", minutes=11),), InvalidInputError, "660"),
    Bad("a wait into the past", (step("w", "debug:wait", seconds=-1),), InvalidInputError, "-1"),
    Bad(
        "an entity nobody can look up",
        (step("f", "catalog:fetch", entityRef="name"),),
        InvalidInputError,
        "is not an entity reference with a kind",
    ),
    Bad(
        "an entity that is not there",
        (step("f", "catalog:fetch", entityRef="group:none"),),
        NotFoundError,
        "no such entity",
    ),
    Bad("nothing to look up", (step("f", "catalog:fetch"),), InvalidInputError, "entityRef"),
    Bad(
        "an entity that is printed otherwise",
        (step("w", "catalog:write", entity={"metadata": {"description": "a \nb"}}),),
        RefusedError,
        "several lines",
    ),
    Bad(
        "an object of no API version",
        (
            step(
                "k",
                "cnoe:kubernetes:apply",
                namespaced=False,
                clusterName="local",
                manifestObject=NO_API,
            ),
        ),
        ManifestError,
        "manifestObject: not a Kubernetes object: apiVersion or kind is missing",
    ),
    Bad(
        "a document that is not YAML",
        (step("c", "cnoe:utils:sanitize", document="a: ["),),
        InvalidInputError,
        "document",
    ),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.reason)
def test_bad_input_has_its_own_message(world: Any, case: Bad) -> None:
    with pytest.raises(case.error, match=case.message):
        world.run(template(*case.steps), {}, FILES)


def test_a_branch_of_the_forge_that_is_not_there_is_refused(world: Any) -> None:
    fetch = step("a", "fetch:plain", url=world.url(RepoId("o", "none"), "x"))

    with pytest.raises(InvalidInputError, match="names a repository or branch that does not"):
        world.run(template(fetch), {})


def test_a_rename_with_overwrite_replaces_as_a_whole(world: Any) -> None:
    found = tree(world, *fetched(rename("a/deep", "run.sh", overwrite=True)))

    assert found == {"a/one": b"1", "run.sh/two": b"2"}


def test_delete_takes_files_by_pattern_and_folders_by_name(world: Any) -> None:
    def left(*patterns: str) -> set[str]:
        return set(tree(world, *fetched(step("d", "fs:delete", files=list(patterns)))))

    assert left("a") == {"run.sh"}
    assert left("*") == {"a/one", "a/deep/two"}
    assert left("**/t*", "none") == {"a/one", "run.sh"}


def test_a_listing_names_files_and_folders(world: Any) -> None:
    def found(**more: Any) -> Any:
        steps = template(*fetched(step("l", "fs:readdir", **more)))
        return world.run(steps, {}, FILES).steps["l"]

    flat = found(paths=["."])
    assert [entry["path"] for entry in flat["files"]] == ["run.sh"]
    assert flat["folders"] == [{"name": "a", "path": "a", "fullPath": "/workspace/a"}]
    deep = found(paths=["a"], recursive=True)
    assert [entry["path"] for entry in deep["files"]] == ["a/deep/two", "a/one"]
    assert [entry["name"] for entry in deep["folders"]] == ["deep"]


def test_waiting_takes_its_time(world: Any) -> None:
    assert world.run(template(step("w", "debug:wait", milliseconds=5)), {}).log == (
        "waiting 0.005 s",
    )


def test_an_entity_is_written_as_the_portal_writes_it(world: Any) -> None:
    entity = {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "Component",
        "metadata": {"name": "true", "annotations": {"a/b": "1"}, "tags": []},
        "spec": {"owner": "group:default/x", "n": 1.0, "none": None},
    }

    assert tree(world, step("w", "catalog:write", entity=entity))["catalog-info.yaml"] == (
        b"apiVersion: backstage.io/v1alpha1\n"
        b"kind: Component\n"
        b"metadata:\n"
        b'  name: "true"\n'
        b"  annotations:\n"
        b'    a/b: "1"\n'
        b"    backstage.io/source-template: template:default/t\n"
        b"  tags: []\n"
        b"spec:\n"
        b"  owner: group:default/x\n"
        b"  n: 1\n"
        b"  none: null\n"
    )


GROUP = """\
apiVersion: backstage.io/v1alpha1
kind: Group
metadata: {name: g}
spec: {type: team, children: []}
"""


def test_entities_are_fetched_from_the_catalog(world: Any) -> None:
    repo = RepoId("platform", "groups")
    world.forge.ensure_org(repo.owner)
    world.forge.ensure_repo(repo, description="")
    world.push(repo, {"catalog-info.yaml": GROUP})
    world.catalog.register(world.url(repo))
    steps = template(
        step("one", "catalog:fetch", entityRef="G", defaultKind="Group"),
        step("many", "catalog:fetch", entityRefs=["group:g", "group:none"], optional=True),
        step("none", "catalog:fetch", optional=True),
    )

    found = world.run(steps, {}).steps

    assert found["one"]["entity"]["metadata"]["name"] == "g"
    assert [e and e["kind"] for e in found["many"]["entities"]] == ["Group", None]
    assert found["none"] == {}


def test_a_document_loses_what_is_empty(world: Any) -> None:
    document = "a: {b: {}, c: null}\nd: [ {}, 1 ]\ne: ''\nf: 0\ng: false\n"

    found = world.run(template(step("c", "cnoe:utils:sanitize", document=document)), {}).steps

    assert found["c"]["sanitized"] == 'd:\n  - 1\ne: ""\nf: 0\ng: false\n'


def test_urls_of_a_published_template_lead_into_its_repository(world: Any) -> None:
    repo = RepoId("o", "pack")
    world.forge.ensure_org("o")
    world.forge.ensure_repo(repo, description="a pack")
    world.push(repo, {"shared/f": "a", "templates/t/template.yaml": "x"})
    place = PurePosixPath("templates/t")
    folder = ForgeFolder(world.forge, repo, world.forge.head(repo), place, trusted=True)
    user = scaffolder.User("user:default/tester")
    services = world.services()
    context = ActionContext(folder, "", services, user, "task", print, services.confined)

    for url in ("../../shared", "/shared", "./../../shared/"):
        source = source_of(context, url)
        assert [(str(path), file.data) for path, file in source.tree().items()] == [("f", b"a")]
        assert source.folder.trusted
    with pytest.raises(InvalidInputError, match="leaves the template's repository"):
        source_of(context, "../../../shared")
