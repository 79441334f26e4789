"""Trees render as fetch:template renders them; what leaves the tree is refused."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ground.errors import RefusedError
from softwaretemplates.render import (
    LimitError,
    RenderError,
    SkeletonFile,
    TreeOptions,
    UndefinedValueError,
    check_path,
    judge_tree,
    render_tree,
)

VALUES = {"name": "cart", "on": True, "off": False, "empty": "", "slash": "x/y", "climb": "../../e"}


def tree(files: Mapping[str, bytes | str]) -> dict[PurePosixPath, SkeletonFile]:
    return {
        PurePosixPath(path): SkeletonFile(data.encode() if isinstance(data, str) else data)
        for path, data in files.items()
    }


@dataclass(frozen=True)
class Case:
    reason: str
    before: dict[str, bytes | str]
    after: dict[str, bytes]
    options: TreeOptions = field(default_factory=TreeOptions)


CASES = [
    Case("paths are templates", {"${{ values.name }}.txt": "x"}, {"cart.txt": b"x"}),
    Case("an empty name drops the file", {"{% if values.off %}a{% endif %}": "x"}, {}),
    Case(
        "an empty folder name drops its files",
        {"a/{% if values.off %}b{% endif %}/c": "x", "{% if values.off %}b{% endif %}/c": "y"},
        {},
    ),
    Case("a conditional file that is wanted", {"{% if values.on %}a{% endif %}": "x"}, {"a": b"x"}),
    Case("an empty value in a name", {"${{ values.empty }}.txt": "x"}, {".txt": b"x"}),
    Case("a slash in a value makes a folder", {"${{ values.slash }}": "x"}, {"x/y": b"x"}),
    Case("dot files are rendered", {".a/.b": "${{ values.name }}"}, {".a/.b": b"cart"}),
    Case(
        "binary bytes are kept",
        {"a.png": b"\0${{ values.name }}"},
        {"a.png": b"\0${{ values.name }}"},
    ),
    Case("PDF is binary", {"a": b"%PDF-1 ${{ x }}"}, {"a": b"%PDF-1 ${{ x }}"}),
    Case(
        "a byte order mark is kept",
        {"a": b"\xef\xbb\xbf${{ values.name }}"},
        {"a": b"\xef\xbb\xbfcart"},
    ),
    Case("an empty file", {"a": ""}, {"a": b""}),
    Case("CRLF and final newlines", {"a": "x\r\n", "b": "x"}, {"a": b"x\r\n", "b": b"x"}),
    Case(
        "copyWithoutTemplating keeps contents, the path is still rendered",
        {"chart/${{ values.name }}.yaml": "${{ x }}", "b": "${{ values.name }}"},
        {"chart/cart.yaml": b"${{ x }}", "b": b"cart"},
        TreeOptions(copy_without_templating=("chart/**",)),
    ),
    Case(
        "templateFileExtension renders only those contents, and is cut off",
        {"a.njk": "${{ values.name }}", "${{ values.name }}": "${{ values.name }}"},
        {"a": b"cart", "cart": b"${{ values.name }}"},
        TreeOptions(template_file_extension=".njk"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_tree(case: Case) -> None:
    rendered = render_tree(tree(case.before), VALUES, case.options)

    assert {str(path): file.data for path, file in rendered.items()} == case.after


def test_modes_are_kept() -> None:
    before = {PurePosixPath("run.sh"): SkeletonFile(b"${{ values.name }}", 0o100755)}

    assert render_tree(before, VALUES)[PurePosixPath("run.sh")].mode == 0o100755


HOSTILE_NAMES = [
    ("../x", "parent"),
    ("a/../../x", "parent in the middle"),
    (".git/config", "git's folder"),
    (".GIT/hooks/pre-commit", "git's folder on systems that fold case"),
    ("a\0b", "NUL"),
    ("a\nb", "newline"),
    ("a\u202eb", "text that turns around"),
    ("\u200b.git/x", "invisible characters"),
    ("a" * 300, "a name of 300 characters"),
    ("a/" * 600 + "b", "a long path"),
    ("con.txt", "a device"),
    ("..\\x", "a backslash"),
]


@pytest.mark.parametrize(("name", "reason"), HOSTILE_NAMES)
def test_a_hostile_value_in_a_name_is_refused(name: str, reason: str) -> None:
    with pytest.raises(RefusedError):
        render_tree(tree({"d/${{ values.name }}": "x", "e": "y"}), {"name": name}), reason


@given(st.lists(st.sampled_from(["..", ".", "a", "", "/", "//", "~", "\\", "b"]), max_size=8))
def test_no_rendered_path_leaves_the_tree(parts: list[str]) -> None:
    try:
        rendered = render_tree(tree({"d/${{ values.name }}": "x"}), {"name": "/".join(parts)})
    except RefusedError:
        return
    for path in rendered:
        assert not path.is_absolute()
        assert ".." not in path.parts
        assert path.parts[0] == "d"


def test_links_are_refused() -> None:
    with pytest.raises(RefusedError, match="symbolic link"):
        render_tree({PurePosixPath("a"): SkeletonFile(b"", 0o120000, "/etc/passwd")}, {})


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"${{ values.name }}": "1", "cart": "2"}, "the same path"),
        ({"README": "1", "readme": "2"}, "paths that differ by case"),
        ({"a": "1", "${{ 'a' }}/b": "2"}, "a file where a folder is"),
    ],
)
def test_two_files_of_one_path_are_refused(files: dict[str, Any], reason: str) -> None:
    with pytest.raises(RefusedError):
        render_tree(tree(files), VALUES), reason


def test_text_that_is_no_utf8_is_refused_not_destroyed() -> None:
    with pytest.raises(RefusedError, match="UTF-8"):
        render_tree(tree({"a": b"caf\xe9 " + b"x" * 100}), {})


def test_an_undefined_value_names_file_line_expression_known_values_and_way_out() -> None:
    files = tree({"manifests/x.yaml": "a: 1\nb: ${{ values.team_nme | dump }}\n"})

    with pytest.raises(UndefinedValueError) as refused:
        render_tree(files, {"team_name": "ae86"})

    message = str(refused.value)
    assert message.startswith("manifests/x.yaml:2:4: values.team_nme")
    assert "${{ values.team_nme | dump }}" in message
    assert "team_name" in refused.value.hint
    assert "default" in refused.value.hint


def test_only_values_exists_in_files() -> None:
    with pytest.raises(UndefinedValueError, match="parameters"):
        render_tree(tree({"a": "${{ parameters.name }}"}), VALUES)


def test_an_error_in_a_path_names_the_path() -> None:
    with pytest.raises(RenderError, match=r"the path \$\{\{ 1 \| nope"):
        render_tree(tree({"${{ 1 | nope }}": ""}), VALUES)


MARK = b"{# #}"
SMALL = TreeOptions(size_limit=8 << 20)


@pytest.mark.parametrize(
    ("files", "problem", "way_out"),
    [
        (
            {"a": MARK + b"x" * (1 << 20)},
            "a: has 1048581 bytes to render; one file may have at most 1048576",
            "raise the limit: --size-limit 9",
        ),
        (
            {f"f{at}": MARK + b"x" * 1_000_000 for at in range(5)},
            "f4: has 1000005 bytes, with which 5000025 bytes are rendered;",
            "raise the limit: --size-limit 10",
        ),
        (
            {f"f{at}": "${{ values.long }}" for at in range(5)},
            "f4: has 1000000 bytes, with which 5000000 bytes are rendered;",
            "templates.sizeMiB: 10 in platform.yaml",
        ),
    ],
    ids=["a file", "a folder", "a folder, after rendering"],
)
def test_what_is_rendered_has_a_limit_that_can_be_raised(
    files: dict[str, Any], problem: str, way_out: str
) -> None:
    values = {"long": "x" * 1_000_000}

    with pytest.raises(LimitError) as refused:
        render_tree(tree(files), values, SMALL)

    assert str(refused.value).startswith(problem)
    assert way_out in refused.value.hint
    wanted = int(refused.value.hint.partition("--size-limit ")[2].partition(",")[0])
    render_tree(tree(files), values, TreeOptions(size_limit=wanted << 20))


@dataclass(frozen=True)
class Repeated:
    """The content of a large file: one piece, again and again; counts what is read at once."""

    piece: bytes
    count: int

    @property
    def size(self) -> int:
        return len(self.piece) * self.count

    def chunks(self) -> Iterator[bytes]:
        return itertools.repeat(self.piece, self.count)


@pytest.mark.parametrize(
    ("piece", "options", "how"),
    [
        (b"\0" * 65536, SMALL, "copied: binary"),
        (b"a { b }} \xc3\xbc\n" * 4096, SMALL, "copied: nothing to render"),
        (
            b"${{ x }}" * 8192,
            TreeOptions(copy_without_templating=("**",), size_limit=8 << 20),
            "copied: copyWithoutTemplating",
        ),
    ],
    ids=["binary", "text", "copyWithoutTemplating"],
)
def test_what_is_copied_has_no_limit_and_is_not_held(
    piece: bytes, options: TreeOptions, how: str
) -> None:
    content = Repeated(piece, (16 << 20) // len(piece))
    files = {PurePosixPath("${{ values.name }}"): SkeletonFile(content)}

    tracemalloc.start()
    (outcome,) = judge_tree(files, VALUES, options)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (outcome.how, str(outcome.target)) == (how, "cart")
    assert outcome.file is not None
    assert outcome.file.content is content
    assert most < 2 << 20


@pytest.mark.parametrize("at", [0, 1, 65535, 65536, 200_000])
def test_marks_and_faults_are_found_wherever_a_piece_ends(at: int) -> None:
    """A mark or a character of several bytes may lie across two pieces."""
    marked = b"x" * at + b"${{ values.name }}" + "ü€".encode() * 40_000
    broken = b"x" * 600 + b"x" * at + "ü".encode() * 40_000 + b"\xff"

    def in_pieces(data: bytes) -> SkeletonFile:
        return SkeletonFile(Pieces(data))

    rendered = render_tree({PurePosixPath("a"): in_pieces(marked)}, VALUES)
    assert rendered[PurePosixPath("a")].data == marked.replace(b"${{ values.name }}", b"cart")
    with pytest.raises(RefusedError, match=f"byte {600 + at + 80_000} cannot be read"):
        render_tree({PurePosixPath("a"): in_pieces(broken)}, VALUES)


@dataclass(frozen=True)
class Pieces:
    """Content in pieces of a prime length."""

    whole: bytes

    @property
    def size(self) -> int:
        return len(self.whole)

    def chunks(self) -> Iterator[bytes]:
        return (self.whole[at : at + 65_537] for at in range(0, len(self.whole), 65_537))


def test_check_path_accepts_ordinary_names() -> None:
    for name in ("a", ".gitignore", "a b/ü.txt", ".github/workflows/ci.yaml", "x.git"):
        assert str(check_path(name, origin="test")) == name
