"""Binary detection as isbinaryfile 5.0.7 (recorded), and the globs of copyWithoutTemplating."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from softwaretemplates.render import UnsupportedError
from softwaretemplates.render.tree_files import is_binary, matching


@pytest.mark.parametrize(
    ("data", "binary", "reason"),
    [
        (b"", False, "empty"),
        (b"plain text\n", False, "ASCII"),
        ("héllo wörld 😀".encode(), False, "UTF-8"),
        (b"a\0b", True, "a NUL"),
        (b"x" * 600 + b"\0", False, "a NUL behind the first 512 bytes"),
        (b"\xef\xbb\xbf\0", False, "a byte order mark wins"),
        (b"\xff\xfea\0", False, "UTF-16"),
        (b"%PDF-1.4", True, "PDF"),
        (b"\x01\x02\x03\x04abc", True, "control bytes"),
        (b"\x1b[31mred\x1b[0m and a long line of ordinary text behind it", False, "few escapes"),
        (bytes(range(128, 256)), True, "no UTF-8"),
    ],
)
def test_binary(data: bytes, *, binary: bool, reason: str) -> None:
    assert is_binary(data) is binary, reason


TREE = (
    "a", "a.txt", "b.yaml", "p.txt", "(p).txt", ".dot", ".hid/x", "sub/c.yaml", "sub/deep/d.yaml",
    "q[1].txt", "q1.txt", "v+w.txt", "e{}.txt", "${{ values.name }}.txt",
)  # fmt: skip
PATHS = [PurePosixPath(name) for name in TREE]


@pytest.mark.parametrize(
    ("glob", "matched"),
    [
        ("*.yaml", "b.yaml"),
        ("**/*.yaml", "b.yaml sub/c.yaml sub/deep/d.yaml"),
        ("*", "a a.txt b.yaml p.txt (p).txt .dot q[1].txt q1.txt v+w.txt e{}.txt T"),
        ("sub/**", "sub/c.yaml sub/deep/d.yaml"),
        ("**/deep/**", "sub/deep/d.yaml"),
        ("sub", "sub/c.yaml sub/deep/d.yaml"),
        ("./sub/", "sub/c.yaml sub/deep/d.yaml"),
        ("*/", ""),
        (".*", ".dot"),
        ("*/**", ".hid/x sub/c.yaml sub/deep/d.yaml"),
        ("{sub,.hid}/**", ".hid/x sub/c.yaml sub/deep/d.yaml"),
        ("{sub,a.txt}", "a.txt"),
        ("{a,{b,c}}.{txt,yaml}", "a.txt b.yaml"),
        ("sub//c.yaml", "sub/c.yaml"),
        ("./*.yaml", "b.yaml"),
        ("?", "a"),
        ("[ab].*", "a.txt b.yaml"),
        ("[!a]*.txt", "p.txt (p).txt q[1].txt q1.txt v+w.txt e{}.txt T"),
        ("[^a].*", "b.yaml p.txt"),
        ("[a-c].*", "a.txt b.yaml"),
        ("q[1].txt", "q[1].txt q1.txt"),
        ("sub[!a]c.yaml", ""),
        ("v+w.txt", "v+w.txt"),
        ("missing.txt", ""),
        ("missing/", ""),
    ],
)
def test_globs_match_what_globby_matches(glob: str, matched: str) -> None:
    """Recorded from globby 11.1.0 with the options of Backstage. T is the name with a template."""
    names = {"${{ values.name }}.txt" if name == "T" else name for name in matched.split()}

    assert {str(path) for path in matching([glob], PATHS)} == names


@pytest.mark.parametrize(
    ("glob", "reason"),
    [
        ("!a", "it is negated"),
        ("+(a|b)", "'(' is not a plain character"),
        ("(p).txt", "'(' is not a plain character"),
        ('"a".txt', "is not a plain character"),
        ("a\\*", "is not a plain character"),
        ("a{b", "a brace has no alternatives"),
        ("e{}.txt", "a brace has no alternatives"),
        ("{1..3}", "a brace has no alternatives"),
        ("${{ values.name }}.txt", "its braces are marks too; write * for the expression"),
        ("./a.txt", "Backstage finds no file by './a.txt'; write 'a.txt'"),
        ("a.txt/", "'a.txt' is a file and no folder, so Backstage fails"),
        ("a.txt/**", "'a.txt' is a file and no folder, so Backstage fails"),
        ("{a.txt,b}/*", "'a.txt' is a file and no folder, so Backstage fails"),
        ("[ab]/**", "the part before '/**' matches 'a', which is a file"),
        ("/a.txt", "paths as they stand in the skeleton"),
        ("../a.txt", "paths as they stand in the skeleton"),
        ("sub/./c.yaml", "paths as they stand in the skeleton"),
        ("sub/../a.txt", "paths as they stand in the skeleton"),
        ("**.txt", "'**' is not a whole part of the path"),
        ("a**", "'**' is not a whole part of the path"),
        ("[[:alpha:]]", "'[' and ']' hold letters"),
        ("[ab]+", "no '+' follows"),
        ("x" * 256, "longer than 255 bytes"),
    ],
)
def test_globs_that_mean_something_else_than_they_look_like_are_refused(
    glob: str, reason: str
) -> None:
    with pytest.raises(UnsupportedError, match="the glob") as refused:
        matching([glob], PATHS)

    assert reason in refused.value.problem


def test_too_many_alternatives_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="more than 1000 alternatives"):
        matching(["{a,b,c,d}" * 6], PATHS)
