"""Paths and links of a tree: which are stored, which are refused, and in which words."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from ground.errors import RefusedError
from softwaretemplates.render import (
    COOKIECUTTER,
    RenderError,
    SkeletonFile,
    TreeOptions,
    check_path,
    compile_template,
    render_tree,
)
from softwaretemplates.render.tree import check_tree, lint_tree
from softwaretemplates.render.tree_files import TakenPaths, is_binary

LONG = "/".join(["x" * 255] * 4)


@pytest.mark.parametrize(
    "path", ["a", "a/b", ".a", "...", "a..b", "com10", "x" * 255, LONG, "é", ".gitignore", "nulls"]
)
def test_a_path_that_every_system_can_store_is_accepted(path: str) -> None:
    assert check_path(path, origin="o") == PurePosixPath(path)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "is absolute or empty"),
        ("/a", "is absolute or empty"),
        (f"{LONG}/y", "is longer than 1024 bytes"),
        ("a/../b", "leaves its folder"),
        ("..", "leaves its folder"),
        ("a/.GIT/b", "would write into git's own folder"),
        ("GIT~1", "would write into git's own folder"),
        ("a\\b", "has a control, format or backslash character"),
        ("a\x7fb", "has a control, format or backslash character"),
        ("a\u200bb", "has a control, format or backslash character"),
        ("a\ud800b", "has a control, format or backslash character"),
        ("x" * 256, "has a name longer than 255 bytes"),
        ("é" * 128, "has a name longer than 255 bytes"),
        ("a/CON.txt", "has the name of a device"),
        ("lpt9", "has the name of a device"),
    ],
)
def test_a_path_that_some_system_cannot_store_is_refused(path: str, why: str) -> None:
    with pytest.raises(RefusedError) as refused:
        check_path(path, origin="o")

    shown = path if len(path) <= 80 else f"{path[:79]}…"
    assert str(refused.value) == f"o: the path {shown!r} {why}"


@pytest.mark.parametrize("length", [80, 81])
def test_a_long_path_is_cut_in_a_message(length: int) -> None:
    path = "\\" * length

    with pytest.raises(RefusedError) as refused:
        check_path(path, origin="o")

    assert ("…" in str(refused.value)) is (length > 80)


@pytest.mark.parametrize(
    ("taken", "wanted", "says"),
    [
        (["a"], "b", ""),
        (["a/b"], "a/c", ""),
        (["a"], "a", "o: renders to 'a', which 0 renders to already"),
        (["a/B"], "A/b", "o: renders to 'A/b', which 0 renders to already"),
        (["é"], "e\u0301", "o: renders to 'e\u0301', which 0 renders to already"),
        (["a"], "a/b/c", "o: 'a/b/c' and what 0 renders to are file and folder of one path"),
        (["x", "a/b"], "a/b/c", "o: 'a/b/c' and what 1 renders to are file and folder of one path"),
        (["a/b/c"], "a", "o: 'a' and what 0 renders to are file and folder of one path"),
        (["a/b/c"], "a/b", "o: 'a/b' and what 0 renders to are file and folder of one path"),
        (["ab/c"], "a", ""),
    ],
)
def test_a_path_belongs_to_one_file_on_every_system(
    taken: list[str], wanted: str, says: str
) -> None:
    paths = TakenPaths()
    for number, path in enumerate(taken):
        assert paths.claim(PurePosixPath(path), PurePosixPath(str(number))) is None

    clash = paths.claim(PurePosixPath(wanted), PurePosixPath("o"))

    assert str(clash or "") == says


def link(target: str) -> dict[PurePosixPath, SkeletonFile]:
    return {PurePosixPath("d/l"): SkeletonFile(b"", 0o120000, target)}


@pytest.mark.parametrize("target", ["x", "./x", "../x", "e/../x", "..x", "...", ".github"])
def test_a_link_inside_the_tree_is_kept_if_links_are(target: str) -> None:
    (kept,) = render_tree(link(target), {}, TreeOptions(links=True)).values()

    assert kept.symlink == target
    with pytest.raises(RefusedError, match=r"^d/l: is a symbolic link$"):
        render_tree(link(target), {})


@pytest.mark.parametrize("target", ["/etc/passwd", "../..", "../../x", "x/../../../y", "a\0b"])
def test_a_link_that_leaves_the_tree_is_refused(target: str) -> None:
    with pytest.raises(RefusedError) as refused:
        render_tree(link(target), {}, TreeOptions(links=True))

    assert str(refused.value) == f"d/l: is a symbolic link to {target!r}, which leaves the tree"


@pytest.mark.parametrize("target", [".git", "../.GIT/hooks", "a/.git/x"])
def test_a_link_into_gits_own_folder_is_refused(target: str) -> None:
    with pytest.raises(RefusedError, match=r"^d/l: is a symbolic link into git's own folder$"):
        render_tree(link(target), {}, TreeOptions(links=True))


def test_a_tree_that_we_never_write_is_refused_before_anything_is_read() -> None:
    check_tree({PurePosixPath("a/b"): SkeletonFile(b"")})
    with pytest.raises(RefusedError, match=r"^d/l: is a symbolic link$"):
        check_tree(link("x"))
    with pytest.raises(RefusedError, match="would write into git's own folder"):
        check_tree({PurePosixPath(".git/x"): SkeletonFile(b"")})


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            TreeOptions(template_file_extension=".njk", delimiters=COOKIECUTTER),
            "templateFileExtension cannot stand beside cookiecutterCompat",
        ),
        (
            TreeOptions(template_file_extension=".njk", copy_without_templating=("a",)),
            "templateFileExtension cannot stand beside copyWithoutTemplating",
        ),
    ],
)
def test_options_that_exclude_each_other_are_refused(options: TreeOptions, told: str) -> None:
    with pytest.raises(RenderError, match=told):
        render_tree({}, {}, options)


def test_a_name_that_becomes_the_folder_itself_is_refused() -> None:
    files = {PurePosixPath("${{ values.name }}"): SkeletonFile(b"x")}

    with pytest.raises(RefusedError, match=r"renders to '\.', which is the folder itself"):
        render_tree(files, {"name": "."})
    assert render_tree(files, {"name": ""}) == {}


def test_half_a_character_is_written_as_node_writes_it() -> None:
    files = {PurePosixPath("a"): SkeletonFile(b"${{ values.s }}")}

    (written,) = render_tree(files, {"s": "x\ud800y"}).values()

    assert written.data == "x\ufffdy".encode()


@pytest.mark.parametrize(
    "source",
    [
        "{% if 1 %}{% endif x %}",
        "{% for a in [] %}{% endfor x %}",
        "{% filter upper %}{% endfilter x %}",
        "{% macro m() %}{% endmacro x y %}",
        "{% set a %}{% endset x %}",
    ],
)
def test_words_behind_the_end_of_a_block_are_refused(source: str) -> None:
    with pytest.raises(RenderError, match="`x"):
        compile_template(source)


UTF8 = {"two bytes": "é", "three bytes": "☺", "four bytes": "🚀"}


@pytest.mark.parametrize("letter", UTF8.values(), ids=UTF8)
def test_letters_are_text_and_their_parts_are_not(letter: str) -> None:
    data = letter.encode()

    assert not is_binary(data * 9 + b"x")
    assert is_binary(data[:-1] * 9 + b"x")
    assert is_binary(data[:1] * 9 + b"x")
    assert is_binary(data[1:] * 9 + b"x")


@pytest.mark.parametrize(("odd", "binary"), [(10, False), (11, True)])
def test_more_than_a_tenth_of_odd_bytes_is_binary(odd: int, *, binary: bool) -> None:
    assert is_binary(b"x" * (100 - odd) + b"\x01" * odd) is binary
    assert is_binary(b"\x01" * odd + b"x" * (100 - odd)) is binary


def test_only_the_first_bytes_decide() -> None:
    assert is_binary(b"x" * 511 + b"\0")
    assert not is_binary(b"x" * 512 + b"\0")
    assert not is_binary(b"x" * 512 + b"\x01" * 512)


@pytest.mark.parametrize(
    ("path", "data", "how", "error"),
    [
        ("a", b"plain", "copied: nothing to render", ""),
        ("a", b"${{ values.x }}", "fits", ""),
        ("a", b"\0${{ values.", "copied: binary", ""),
        ("a", b"${{ values. }}", "refused", "a:1:1: expected a name behind `.`"),
        (
            "a",
            b"${{ x }}\xff" + b"x" * 99,
            "refused",
            "a: is neither UTF-8 text nor binary: byte 8",
        ),
        ("${{ x", b"", "refused", "the path ${{ x:1:1: "),
        ("${{ x }}", b"", "copied: nothing to render", ""),
        (".git/a", b"", "refused", ".git/a: the path '.git/a' would write into git's own folder"),
    ],
)
def test_a_tree_is_linted_without_values(path: str, data: bytes, how: str, error: str) -> None:
    (found,) = lint_tree({PurePosixPath(path): SkeletonFile(data)})

    assert (str(found.path), found.how) == (path, how)
    assert str(found.error or "").startswith(error)
    assert bool(found.error) is bool(error)
    assert found.file is None
