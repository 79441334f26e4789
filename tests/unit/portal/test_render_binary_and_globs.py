"""Binary detection as isbinaryfile 5.0.7 (recorded), and the globs of copyWithoutTemplating."""

from __future__ import annotations

import pytest

from orderkit.core.portal.render import UnsupportedError
from orderkit.core.portal.render.binary import is_binary
from orderkit.core.portal.render.globs import compile_glob


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


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("*.yaml", "a.yaml", True),
        ("*.yaml", "d/a.yaml", False),
        ("**/*.yaml", "a.yaml", True),
        ("**/*.yaml", "d/e/.a.yaml", True),
        ("chart/**", "chart/a/b", True),
        ("chart/**", "charts/a", False),
        ("./a", "a", True),
        ("a?c", "abc", True),
        ("[ab]c", "bc", True),
        ("[!ab]c", "bc", False),
        ("*.{png,jpg}", "x.jpg", True),
        ("a.b", "axb", False),
    ],
)
def test_globs(glob: str, path: str, *, matches: bool) -> None:
    assert bool(compile_glob(glob).fullmatch(path)) is matches


@pytest.mark.parametrize("glob", ["!a", "+(a|b)", "a{b"])
def test_other_globs_are_refused(glob: str) -> None:
    with pytest.raises(UnsupportedError):
        compile_glob(glob)
