"""Which files of a build are published how: hashes in names, media types, caching, refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from environments.files import BuildError, built_files, content_type, has_hash, printable


@pytest.mark.parametrize(
    "name",
    [
        "main.3f2a9c1b.js",
        "main.3f2a9c1b.js.map",
        "index-BtZ3kq1F.js",
        "index-B-Z3kq_F.css",
        "chunk-4XKQ2RTB.js",
        "1dd3208c-75f1b2aa01cd.js",
        "3f2a9c1b5d6e7f80.chunk.js",
        "logo_9f8e7d6c5b4a3210.svg",
        "app.4f1aDk29sPq7Xw0LmZ3v.js",
    ],
)
def test_a_name_with_a_hash_of_its_content_may_be_kept_for_ever(name: str) -> None:
    assert has_hash(name)


@pytest.mark.parametrize(
    "name",
    [
        "app.js",
        "favorite-products.js",
        "report-20240101.json",
        "intro-Chapter1.js",
        "remoteEntry.js",
        "jquery-3.7.1.min.js",
        "UserProfile.js",
        "icon-Mp3Audio.svg",
        "polyfill-ES5Build.js",
        "Roboto-UTF8Bold.woff2",
        "deadbeef.js",  # a word of hexadecimal letters, and a hash that happens to have no digit
        "manifest.webmanifest",
        ".3f2a9c1b",
        "3f2a9c1b",
    ],
)
def test_in_doubt_a_name_holds_no_hash(name: str) -> None:
    """A file without a hash that browsers keep for a year cannot be mended."""
    assert not has_hash(name)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("index.html", "text/html; charset=utf-8"),
        ("a/app.js", "text/javascript; charset=utf-8"),
        ("app.mjs", "text/javascript; charset=utf-8"),
        ("app.js.map", "application/json; charset=utf-8"),
        ("site.webmanifest", "application/manifest+json"),
        ("logo.svg", "image/svg+xml"),
        ("font.woff2", "font/woff2"),
        ("a.wasm", "application/wasm"),
        ("data.json.gz", "application/gzip"),
        (".well-known/assetlinks", "application/octet-stream"),
    ],
)
def test_media_types_follow_from_names_alone(key: str, kind: str) -> None:
    assert content_type(key) == kind


@pytest.mark.parametrize(
    ("name", "caching"),
    [
        ("index.html", "no-cache"),
        ("about/index.html", "no-cache"),
        ("remoteEntry.js", "no-cache"),
        ("assets/index-BtZ3kq1F.js", "public, max-age=31536000, immutable"),
        ("logo.svg", "public, max-age=60, must-revalidate"),
    ],
)
def test_only_hashed_names_are_kept_for_long(name: str, caching: str, tmp_path: Path) -> None:
    for path in {"index.html", name}:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("x")

    assert {file.cache_control for file in built_files(tmp_path) if file.key == name} == {caching}


def test_a_build_without_its_page_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app.js").write_text("x")

    with pytest.raises(BuildError, match=r"has no index\.html"):
        built_files(tmp_path)


def test_a_link_out_of_the_build_is_refused(tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    dist.mkdir()
    (tmp_path / "id_rsa").write_text("secret")
    (dist / "index.html").write_text("x")
    (dist / "key.txt").symlink_to(tmp_path / "id_rsa")

    with pytest.raises(BuildError, match="leads out of the folder"):
        built_files(dist)


def test_a_name_that_is_not_utf_8_is_refused_and_shown_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("x")
    (tmp_path / "a\udcff\x1b[2J\n.js").write_text("x")

    with pytest.raises(BuildError, match="not UTF-8") as refused:
        built_files(tmp_path)

    assert "\x1b" not in str(refused.value)
    assert str(refused.value).isprintable()


def test_names_are_shown_without_what_controls_a_terminal() -> None:
    assert printable("a\x1b[2J\n\u202eb") == "a\\x1b[2J\\n\\u202eb"
