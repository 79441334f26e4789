"""``orderkit run``: templates from files and of the published pack, with and without a platform."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pytest
from commands import Command, Done
from templates import log, step, template

from ground.names import RepoId
from ground.objects.kube_objects import CONFIG_MAP, ObjectKey
from orderkit.cli.main import run
from orderkit.ports.forge import FileChange, Operation
from orderkit_standins.serve_platform import Running

FORM = {
    "required": ["name"],
    "properties": {
        "name": {"type": "string"},
        "size": {"type": "integer", "default": 1},
        "token": {"type": "string", "ui:field": "Secret"},
    },
}
SKELETON = {
    "README.md": "# ${{ values.name }} ${{ values.size }}\n",
    "run.sh": "#!/bin/sh\n",
}
FETCH = step(
    "fetch",
    "fetch:template",
    url="./skeleton",
    values={"name": "${{ parameters.name }}", "size": "${{ parameters.size }}"},
)
SAY = log("say", "hello ${{ parameters.name }}")
SECRET = "command-canary"


@pytest.fixture
def alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Run ``orderkit ARGUMENTS`` where no platform was ever started."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "no-state"))
    for name in ("ORDERKIT_STATE", "ORDERKIT_PLATFORM"):
        monkeypatch.delenv(name, raising=False)

    def command(*arguments: str) -> Done:
        capsys.readouterr()
        code = run(list(arguments))
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return command


Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a template.yaml with the skeleton beside it; return its folder."""

    def written(text: str) -> Path:
        folder = tmp_path / "template"
        (folder / "skeleton").mkdir(parents=True)
        (folder / "template.yaml").write_text(text)
        for name, content in SKELETON.items():
            (folder / "skeleton" / name).write_text(content)
        (folder / "skeleton" / "run.sh").chmod(0o755)
        return folder

    return written


def rendered(folder: Path) -> str:
    return (folder / "README.md").read_text()


def test_a_template_that_only_renders_needs_no_platform(
    alone: Command, write: Write, tmp_path: Path
) -> None:
    output = {"links": [{"title": "Look", "url": "http://x.example"}], "text": [{"content": "ok"}]}
    folder, out = write(template(FETCH, SAY, parameters=FORM, output=output)), tmp_path / "out"

    done = alone("run", str(folder), "-p", "name=yes", "-p", "size=2", "--out", str(out))

    assert (done.code, done.out) == (0, "Look: http://x.example\nok\n")
    assert "hello yes" in done.err
    assert rendered(out) == "# yes 2\n"
    assert (out / "run.sh").stat().st_mode & 0o111
    assert not (out / "README.md").stat().st_mode & 0o111


def test_values_come_from_a_file_and_assignments_win(
    alone: Command, write: Write, tmp_path: Path
) -> None:
    folder, out = write(template(FETCH, parameters=FORM)), tmp_path / "out"
    (tmp_path / "values.yaml").write_text("name: file\nsize: 7\n")

    done = alone(
        "run",
        str(folder / "template.yaml"),
        "--values",
        str(tmp_path / "values.yaml"),
        "-p",
        "name=flag",
        "--out",
        str(out),
    )

    assert (done.code, rendered(out)) == (0, "# flag 7\n")


def test_a_file_of_several_documents_runs_the_template_that_is_named(
    alone: Command, write: Write
) -> None:
    first = template(SAY, parameters=FORM)
    more = "kind: Location\nmetadata: {name: more}\nspec: {targets: [./other.yaml]}\n"
    other = first.replace("name: t\n", "name: other\n")
    file = write(f"{first}\n---\n{more}") / "template.yaml"

    one = alone("run", str(file), "-p", "name=x")
    file.write_text(f"{first}\n---\n{more}---\n{other}")
    several = alone("run", str(file), "-p", "name=x")
    chosen = alone("run", str(file), "-p", "name=x", "--template-name", "other")

    assert (one.code, several.code, chosen.code) == (0, 2, 0)
    assert "2 Templates: t, other; one is run" in several.err
    assert "choose one: --template-name t" in several.err


def test_json_names_steps_outputs_and_files(alone: Command, write: Write) -> None:
    folder = write(template(FETCH, SAY, parameters=FORM, output={"n": "${{ parameters.size }}"}))

    found = alone("run", str(folder), "-p", "name=x", "--json").json

    assert found["schema"] == "orderkit.run/v1"
    assert [(s["id"], s["state"]) for s in found["steps"]] == [("fetch", "done"), ("say", "done")]
    assert found["output"] == {"n": 1}
    assert found["files"] == [
        {"path": "README.md", "sizeBytes": 6, "executable": False},
        {"path": "run.sh", "sizeBytes": 10, "executable": True},
    ]


@pytest.mark.parametrize("source", ["file", "env", "named"])
def test_a_secret_is_used_and_never_printed(
    alone: Command, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    folder = write(
        template(log("a", "is ${{ secrets.token }} in ${{ parameters.token }}"), parameters=FORM)
    )
    (tmp_path / "token").write_text(SECRET + "\n")
    monkeypatch.setenv("token", SECRET)
    monkeypatch.setenv("MY_TOKEN", SECRET)
    how = {"file": f"@{tmp_path / 'token'}", "env": "env", "named": "env:MY_TOKEN"}[source]

    for more in ([], ["--json"], ["--dry-run"]):
        done = alone("run", str(folder), "-p", "name=x", "--secret", f"token={how}", *more)
        assert done.code == 0
        assert "***" in done.out + done.err
        assert SECRET not in done.out + done.err


def test_a_dry_run_says_what_would_be_called(alone: Command, write: Write, tmp_path: Path) -> None:
    publish = step("publish", "publish:gitea", repoUrl="h?owner=o&repo=r", description="d")
    folder, out = write(template(FETCH, publish, parameters=FORM)), tmp_path / "out"

    done = alone("run", str(folder), "-p", "name=x", "--dry-run", "--out", str(out))

    assert done.code == 0
    assert 'publish  publish:gitea  would be called\n  repoUrl: "h?owner=o&repo=r"' in done.out
    assert rendered(out) == "# x 1\n"


def test_a_dry_run_plans_on_files_of_a_fetch_that_needs_a_platform(
    alone: Command, write: Write
) -> None:
    url = "https://git.example.org/a/b/tree/main/skeleton"
    fetch = step("f", "fetch:template", url=url, targetPath="docs", values={})

    def planned(source: str) -> Done:
        move = step("m", "fs:rename", files=[{"from": source, "to": "docs/index.md"}])
        file.write_text(template(fetch, move))
        return alone("run", str(file), "--dry-run")

    file = write("") / "template.yaml"

    below, elsewhere = planned("docs/template.md"), planned("other.md")
    assert below.code == 0, below.err
    assert "m  fs:rename  cannot run here" in below.out
    assert (elsewhere.code, "'other.md' is not in the workspace" in elsewhere.err) == (2, True)


class Bad(NamedTuple):
    reason: str
    arguments: list[str]
    code: int
    message: str


BAD = [
    Bad("a step that needs a platform", ["PUBLISH", "-p", "name=x"], 2, "needs a platform"),
    Bad("a missing parameter", ["FETCH"], 2, "name is missing"),
    Bad("an unknown parameter", ["FETCH", "-p", "nmae=x"], 2, "did you mean 'name'"),
    Bad("no assignment", ["FETCH", "-p", "name"], 2, "is not FIELD=VALUE"),
    Bad(
        "a number that is none", ["FETCH", "-p", "name=x", "-p", "size=big"], 2, "is not an integer"
    ),
    Bad("a secret on the command line", ["FETCH", "--secret", f"token={SECRET}"], 2, "a file or a"),
    Bad("a secret as a parameter", ["FETCH", "-p", f"token={SECRET}"], 2, "is a secret of the"),
    Bad("a variable that is not set", ["FETCH", "--secret", "x=env:NO_SUCH"], 2, "is not set"),
    Bad("a secret that is not text", ["FETCH", "--secret", "x=@BYTES"], 2, "is not UTF-8 text"),
    Bad("a secret file that is not there", ["FETCH", "--secret", "x=@/no/such"], 1, "cannot be"),
    Bad(
        "a values file that is not a map",
        ["FETCH", "--values", "LIST"],
        2,
        "is not a map of values",
    ),
    Bad("no template", ["/no/such/template.yaml"], 1, "no such file"),
    Bad("a folder without a template", ["EMPTY"], 1, "has no template.yaml"),
    Bad("a folder that is not empty", ["FETCH", "-p", "name=x", "--out", "FULL"], 4, "not empty"),
    Bad("no folder to write to", ["FETCH", "-p", "name=x", "--out", "/no/such/x"], 4, "above it"),
    Bad("a platform that is not there", ["FETCH", "--platform", "/no/p.yaml"], 1, "no platform"),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.reason)
def test_bad_input_has_its_own_message(
    alone: Command, write: Write, tmp_path: Path, case: Bad
) -> None:
    publish = step("publish", "publish:gitea", repoUrl="h?owner=o&repo=r", description="d")
    steps = [publish] if case.arguments[0] == "PUBLISH" else [FETCH]
    folder = write(template(*steps, parameters=FORM))
    (tmp_path / "empty").mkdir()
    (tmp_path / "list").write_text("- a\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xfd\xfc")
    words = {
        "x=@BYTES": f"x=@{tmp_path / 'bytes'}",
        "FETCH": folder,
        "PUBLISH": folder,
        "EMPTY": tmp_path / "empty",
        "FULL": folder,
        "LIST": tmp_path / "list",
    }

    done = alone("run", *(str(words.get(word, word)) for word in case.arguments))

    assert done.code == case.code, done.err
    assert case.message in done.err
    assert SECRET not in done.out + done.err


def test_a_strangers_skeleton_cannot_use_up_the_machine(alone: Command, write: Write) -> None:
    """Loops over loops end by the renderer's own bounds or by the child's limits."""
    folder = write(template(FETCH, parameters=FORM))
    loops = "".join(f"{{% for {name} in range(90000) %}}" for name in "abcd")
    (folder / "skeleton" / "bomb").write_text(loops + "x" + "{% endfor %}" * 4)

    done = alone("run", str(folder), "-p", "name=x")

    assert done.code == 2
    assert "bomb" in done.err or "stopped" in done.err


def test_a_strangers_error_names_file_and_line(alone: Command, write: Write) -> None:
    folder = write(template(FETCH, parameters=FORM))
    (folder / "skeleton" / "bad.txt").write_text("one\n${{ values.absent }}\n")

    done = alone("run", str(folder), "-p", "name=x")

    assert done.code == 2
    assert "bad.txt:2:1" in done.err


def test_links_in_a_skeleton_are_refused(alone: Command, write: Write) -> None:
    folder = write(template(FETCH, parameters=FORM))
    (folder / "skeleton" / "link").symlink_to("/etc/passwd")

    done = alone("run", str(folder), "-p", "name=x")

    assert done.code == 4
    assert "symbolic link" in done.err


def test_a_template_of_the_pack_runs_by_the_name_of_its_kit(
    orderkit: Command, platform: Running, team: str
) -> None:
    arguments = ("run", "garage", "-p", f"team_name={team}", "-p", "stage=stage2", "--json")

    first, second = orderkit(*arguments), orderkit(*arguments)

    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert first.json["output"] == second.json["output"]
    assert len(platform.platform.forge.commits(RepoId(team, f"garage-{team}"))) == 1


def test_a_dry_run_of_the_packs_template_publishes_nothing(orderkit: Command, team: str) -> None:
    done = orderkit("run", "garage", "-p", f"team_name={team}", "-p", "stage=stage1", "--dry-run")

    assert done.code == 0, done.err
    assert "publish  publish:gitea  would be called" in done.out


def test_an_unknown_template_names_the_known(orderkit: Command) -> None:
    done = orderkit("run", "garag")

    assert done.code == 1
    assert "garage" in done.err


PUBLISH = step(
    "publish",
    "publish:gitea",
    repoUrl="HOST?owner=TEAM&repo=${{ parameters.name }}",
    description="d",
)


def test_publishing_again_finds_the_repository_even_after_commits(
    orderkit: Command, platform: Running, team: str, write: Write
) -> None:
    forge = platform.platform.forge
    host = forge.base_url.removeprefix("http://")
    plain = step("fetch", "fetch:template:file", url="skeleton/README.md", targetPath="README.md")
    plain["input"]["values"] = {"name": "${{ parameters.name }}", "size": 1}
    text = template(
        plain, PUBLISH, parameters=FORM, output={"c": "${{ steps.publish.output.commitHash }}"}
    )
    folder = write(text.replace("HOST", host).replace("TEAM", team))
    arguments = ("run", str(folder), "-p", "name=cart", "--json")
    first = orderkit(*arguments)
    later = FileChange(PurePosixPath("later"), b"x", None)
    forge.write(RepoId(team, "cart"), [later], Operation("later", "user:default/t", "later"))

    second = orderkit(*arguments)
    (folder / "skeleton" / "README.md").write_text("other\n")
    third = orderkit(*arguments)

    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert first.json["output"]["c"] == second.json["output"]["c"]
    assert third.code == 3
    assert "was not made from these files" in third.err


def config_map(name: str, **data: Any) -> dict[str, Any]:
    metadata = {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def apply(**inputs: Any) -> str:
    return template(step("apply", "cnoe:kubernetes:apply", clusterName="local", **inputs))


def test_objects_are_applied_to_the_cluster_once(
    orderkit: Command, platform: Running, team: str, write: Write
) -> None:
    one, two = f"{team}-one", f"{team}-two"
    documents = f"{json.dumps(config_map(one, a='1'))}\n---\n{json.dumps(config_map(two))}\n"
    folder = write(apply(manifestString=documents, namespaced=True))
    key = ObjectKey(CONFIG_MAP, one, "default")

    assert orderkit("run", str(folder)).code == 0
    first = platform.platform.cluster.get(key)
    assert orderkit("run", str(folder)).code == 0

    assert first is not None
    assert first["data"] == {"a": "1"}
    assert platform.platform.cluster.get(key) == first
    assert platform.platform.cluster.get(ObjectKey(CONFIG_MAP, two, "default")) is not None


def test_an_object_from_the_workspace_is_applied(
    orderkit: Command, platform: Running, team: str, write: Write
) -> None:
    fetch = step("f", "fetch:plain:file", url="skeleton/README.md", targetPath="m.yaml")
    inputs = {"manifestPath": "./m.yaml", "namespaced": True, "clusterName": "local"}
    folder = write(template(fetch, step("apply", "cnoe:kubernetes:apply", **inputs)))
    (folder / "skeleton" / "README.md").write_text(json.dumps(config_map(f"{team}-three")))

    assert orderkit("run", str(folder)).code == 0

    key = ObjectKey(CONFIG_MAP, f"{team}-three", "default")
    assert platform.platform.cluster.get(key) is not None


class Refused(NamedTuple):
    reason: str
    inputs: dict[str, Any]
    message: str


REFUSED = [
    Refused("no cluster", {"clusterName": "", "manifestString": "a: b"}, "would apply nothing"),
    Refused("two sources", {"manifestString": "a: b", "manifestObject": {}}, "not exactly one"),
    Refused("no source", {}, "not exactly one"),
    Refused("nothing in it", {"manifestString": "# nothing\n"}, "holds no object"),
    Refused("no object", {"manifestString": "a: b"}, "kind"),
    Refused("no YAML", {"manifestString": "a: ["}, "manifestString"),
    Refused("a file that is not there", {"manifestPath": "none.yaml"}, "is not in the workspace"),
    Refused(
        "a name that changes",
        {"manifestObject": {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "x-"}}},
        "every run would make another",
    ),
    Refused(
        "a kind that is not served",
        {"manifestObject": {"apiVersion": "x.example/v1", "kind": "No", "metadata": {"name": "n"}}},
        "No",
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.reason)
def test_an_object_is_refused(orderkit: Command, write: Write, case: Refused) -> None:
    inputs = {"clusterName": "local", "namespaced": True, **case.inputs}
    done = orderkit("run", str(write(template(step("apply", "cnoe:kubernetes:apply", **inputs)))))

    assert done.code != 0
    assert case.message in done.err
