"""Hostile skeletons and values through the real command: nothing leaves the target folder."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from ground import secrets
from orderkit.adapters.processes.confined_rendering import ChildLimits, judge_confined
from orderkit.cli import main
from softwaretemplates.render import LimitError, SkeletonFile, TreeOptions

PLAIN = {"a.txt": "x"}


@dataclass(frozen=True)
class Case:
    reason: str
    files: Mapping[str, str | bytes] = field(default_factory=lambda: PLAIN)
    values: Mapping[str, Any] = field(default_factory=dict)
    code: int = 0
    """Exit code: 2 malformed or beyond a limit, 4 refused for safety."""
    after: Mapping[str, str] = field(default_factory=dict)
    """The whole tree, if it is written."""
    says: str = ""


def named(name: str) -> dict[str, Any]:
    return {"name": name}


IN_NAME = {"d/${{ values.name }}": "x"}
PRINTED = {"a": "${{ values.name }}"}

CASES = [
    Case("a value climbs out of the folder", IN_NAME, named("../../escaped"), 4),
    Case("a folder's name is a climbing value", {"${{ values.name }}/f": "x"}, named("../x"), 4),
    Case("code in a value stays text", PRINTED, named("{{7*7}}${{ 7*7 }}"), 0,
         {"a": "{{7*7}}${{ 7*7 }}"}),
    Case("code in a value in a name stays text", {"${{ values.name }}": "x"},
         named("${{ 7*7 }}"), 0, {"${{ 7*7 }}": "x"}),
    Case("a template reaches for Python's objects", {"a": "${{ ''.__class__.__mro__ }}"}, {}, 0,
         {"a": ""}),
    Case("a template calls Python's objects", {"a": "${{ values.x.__init__.__globals__.os() }}"},
         {"x": 1}, 2, says="method"),
    Case("a template reaches a function's code", {"a": "${{ range.__globals__ }}"}, {}, 2,
         says="function"),
    Case("hooks are files and nothing more",
         {"hooks/pre_gen_project.sh": "touch ../../../ran", "a": "x"}, {}, 0,
         {"hooks/pre_gen_project.sh": "touch ../../../ran", "a": "x"}),
    Case("an absolute value drops the file, as Backstage does",
         {"${{ values.name }}": "x", "a": ""}, named("/etc/owned"), 0, {"a": ""}),
    Case("NUL in a name", IN_NAME, named("a\0b"), 4, says="control"),
    Case("a newline in a name", IN_NAME, named("a\nb"), 4, says="control"),
    Case("a name of 300 characters", IN_NAME, named("a" * 300), 4, says="255"),
    Case("a path of 1,200 characters", IN_NAME, named("a/" * 600 + "b"), 4, says="1024"),
    Case("names that differ by case", {"${{ values.name }}": "1", "readme": "2"},
         named("README"), 4, says="already"),
    Case("names that differ by composition", {"${{ values.name }}": "1", "\u00e9": "2"},
         named("e\u0301"), 4, says="already"),
    Case("a file where another has a folder", {"${{ values.name }}": "1", "b/c": "2"},
         named("b"), 4, says="folder"),
    Case("a device's name", IN_NAME, named("con.txt"), 4, says="device"),
    Case("git's folder", IN_NAME, named("../.git/hooks/pre-commit"), 4),
    Case("git's folder in capitals", IN_NAME, named(".GIT"), 4, says="git"),
    Case("git's folder with invisible characters", IN_NAME, named(".g\u200bit"), 4, says="format"),
    Case("text that turns around", IN_NAME, named("exe.\u202etxt"), 4, says="format"),
    Case("backslashes", IN_NAME, named("..\\..\\x"), 4, says="backslash"),
    Case("dots of another width are letters", IN_NAME, named("\uff0e\uff0e"), 0,
         {"d/\uff0e\uff0e": "x"}),
    Case("deep nesting", {"a": "${{ " + "(" * 5000 + "1" + ")" * 5000 + " }}"}, {}, 2,
         says="deeper"),
    Case("deep blocks", {"a": "{% if 1 %}" * 5000}, {}, 2, says="deeper"),
    Case("loops in loops", {"a": "{% for a in range(99999) %}" * 2 + "{% endfor %}" * 2}, {}, 2,
         says="rounds"),
    Case("a giant range", {"a": "${{ range(1000000000) }}"}, {}, 2, says="range"),
    Case("a text that doubles", {"a": "{% set x = 'aaaaaaaa' %}" + "{% set x = x + x %}" * 40}, {},
         2, says="characters"),
    Case("a text that is padded", {"a": "${{ 'a' | center(900000000) }}"}, {}, 2, says="center"),
    Case("a text that is replaced", {"a": "{% set x = 'a' | center(99999) | replace(' ', 'b' | "
         "center(99999)) %}"}, {}, 2, says="replace"),
    Case("giant output", {"a": "{% for a in range(99999) %}" + "x" * 999 + "{% endfor %}"},
         {}, 2, says="output"),
    Case("a regular expression that never ends",
         {"a": "${{ values.name | replace(r/(a+)+$/g, '') }}"}, named("a" * 40 + "!"), 2,
         says="regular expression"),
    Case("macros that call themselves",
         {"a": "{% macro m() %}${{ m() }}{% endmacro %}${{ m() }}"}, {}, 2, says="levels deep"),
    Case("secrets are no value of a skeleton", {"a": "${{ secrets.token }}"}, {}, 2,
         says="secrets"),
    Case("a value that was never passed", {"a": "${{ values.nme }}"}, named("x"), 2, says="nme"),
    Case("prototypes of JavaScript", {"a": "${{ values['__proto__'].polluted }}"}, {}, 2,
         says="__proto__"),
    Case("a template of five megabytes", {"a": b"{# #}" + b"x" * (5 << 20)}, {}, 2,
         says="at most"),
    Case("twenty megabytes of output from little",
         {f"f{at}": "${{ values.name | center(99999) }}" * 30 for at in range(7)}, named("x"), 2,
         says="bytes are rendered"),
]  # fmt: skip


@dataclass(frozen=True)
class World:
    """A folder with the skeleton, the values, and things that must not change."""

    root: Path

    @property
    def out(self) -> Path:
        return self.root / "place" / "out"

    def write(self, files: Mapping[str, str | bytes], values: Mapping[str, Any]) -> None:
        for name, data in files.items():
            path = self.root / "skeleton" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data.encode() if isinstance(data, str) else data)
        (self.root / "values.json").write_text(json.dumps(values))

    def render(self, *flags: str) -> int:
        skeleton, values = self.root / "skeleton", self.root / "values.json"
        arguments = ["render", str(skeleton), "--values", str(values), "--out", str(self.out)]
        return main.run([*arguments, *flags])

    def everything(self, *, but: Path | None = None) -> dict[str, bytes]:
        files = (path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink())
        outside = (path for path in files if but is None or but not in path.parents)
        return {str(path): path.read_bytes() for path in outside}


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "skeleton").mkdir()
    (tmp_path / "place").mkdir()
    (tmp_path / "secret").write_text("canary")
    (tmp_path / "values.json").write_text("{}")
    return World(tmp_path)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_hostile(case: Case, world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.write(case.files, case.values)
    before = world.everything()

    code = world.render()

    assert (code, case.says in capsys.readouterr().err) == (case.code, True)
    assert world.everything(but=world.out) == before
    if code == 0:
        found = {str(path.relative_to(world.out)): path.read_text() for path in files(world.out)}
        assert found == case.after
    else:
        assert list((world.root / "place").iterdir()) == []


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_what_is_only_copied_is_read_in_pieces(world: World) -> None:
    world.write({"a": "${{ values.name }}"}, named("cart"))
    with (world.root / "skeleton" / "video.mp4").open("wb") as stream:
        stream.truncate(100 << 20)
    for at in range(600):
        (world.root / "skeleton" / f"f{at}").touch()

    tracemalloc.start()
    code = world.render()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert code == 0
    assert (world.out / "video.mp4").stat().st_size == 100 << 20
    assert (world.out / "a").read_text() == "cart"
    assert most < 32 << 20


@pytest.mark.parametrize("link", ["/etc/passwd", "../../secret", "../secret", ".git/config"])
def test_a_link_that_leaves_the_tree_is_refused(world: World, link: str) -> None:
    (world.root / "skeleton" / "link").symlink_to(link)

    assert world.render() == 4
    assert not world.out.exists()


def test_a_link_inside_the_tree_is_copied_not_followed(world: World) -> None:
    world.write({"real/${{ values.name }}": "x"}, named("file"))
    (world.root / "skeleton" / "link").symlink_to("real/file")

    assert world.render() == 0
    assert os.readlink(world.out / "link") == "real/file"  # noqa: PTH115 - as it is


def test_a_pipe_in_a_skeleton_is_refused_not_waited_for(world: World) -> None:
    os.mkfifo(world.root / "skeleton" / "pipe")

    assert world.render() == 4


def test_a_link_in_the_target_is_not_written_through(world: World) -> None:
    world.write({"d/secret": "owned"}, {})
    world.out.mkdir()
    (world.out / "d").symlink_to(world.root)

    assert world.render("--replace") == 4
    assert (world.root / "secret").read_text() == "canary"


def test_a_linked_file_in_the_target_is_replaced_not_written_through(world: World) -> None:
    world.write({"a": "new"}, {})
    world.out.mkdir()
    (world.out / "a").symlink_to(world.root / "secret")

    assert world.render("--replace") == 0
    assert (world.root / "secret").read_text() == "canary"
    assert (world.out / "a").read_text() == "new"


def test_a_target_that_is_a_link_is_refused(world: World) -> None:
    world.write(PLAIN, {})
    world.out.symlink_to(world.root / "skeleton")

    assert world.render() == 4


def test_a_secret_in_a_value_is_masked_in_errors(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    secrets.register("canary-s3cr3t-value")
    world.write(IN_NAME, named("../canary-s3cr3t-value"))

    assert world.render() == 4
    assert "canary-s3cr3t-value" not in capsys.readouterr().err


def test_values_that_explode_are_refused(world: World) -> None:
    world.write(PLAIN, {})
    lines = ["a0: &a0 [x, x]"] + [
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)
    ]
    bomb = world.root / "values.yaml"
    bomb.write_text("\n".join(lines))
    arguments = ["render", str(world.root / "skeleton"), "--out", str(world.out)]

    assert main.run([*arguments, "--values", str(bomb)]) == 2


SLOW = (
    "{% set x = 'a' | center(99999) %}{% set x = x + x + x + x %}"
    "{% for i in range(99999) %}{% set y = x | replace(' ', 'b') | upper %}{% endfor %}"
)
LARGE = (
    "{% set x = 'a' | center(99999) %}{% set l = [] %}"
    "{% for i in range(99999) %}{% set n = l.push(x ~ i) %}{% endfor %}"
)


@pytest.mark.parametrize(
    ("source", "limits", "reason"),
    [
        (SLOW, ChildLimits(cpu_s=1), "processor time"),
        (SLOW, ChildLimits(wall_s=0.5), "time on the wall"),
        (LARGE, ChildLimits(memory_bytes=300 << 20), "memory"),
        ("${{ 'a' | center(99999) }}", ChildLimits(output_bytes=1000), "output"),
    ],
)
def test_a_child_is_stopped_when_it_uses_too_much(
    source: str, limits: ChildLimits, reason: str
) -> None:
    tree = {PurePosixPath("a"): SkeletonFile(source.encode())}

    with pytest.raises(LimitError, match="was stopped"):
        judge_confined(tree, {}, TreeOptions(), limits), reason
