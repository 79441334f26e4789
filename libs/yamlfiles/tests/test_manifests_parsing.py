"""Manifests from files that anybody may have pushed."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from yamlfiles.manifests import ManifestError, ManifestLimits, looks_like_manifest, parse_manifests

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"


def one(text: str, path: str = "a.yaml") -> Any:
    """Parse a file that holds one object."""
    (manifest,) = parse_manifests(path, text.encode())
    return manifest


@dataclass(frozen=True)
class Scalar:
    reason: str
    text: str
    value: object


SCALARS = [
    Scalar("a word is text", "stage2", "stage2"),
    Scalar("true and its YAML 1.1 friends are flags", "[true, Yes, on, y]", [True] * 4),
    Scalar("false and its friends are flags", "[False, no, OFF, N]", [False] * 4),
    Scalar("mixed case is text", "yEs", "yEs"),
    Scalar("nothing, tilde and null are null", "[~, null, ]", [None, None]),
    Scalar("quoted words are text", "['yes', \"null\", '12']", ["yes", "null", "12"]),
    Scalar("whole numbers", "[0, -7, +3, 1_000]", [0, -7, 3, 1000]),
    Scalar("octal in both spellings, hex, binary", "[017, 0o17, 0x1F, -0b11]", [15, 15, 31, -3]),
    Scalar("a digit that is none in octal makes a decimal fraction", "089", 89.0),
    Scalar("fractions and exponents, unlike PyYAML", "[1.5, 1e3, .5, 1.]", [1.5, 1000.0, 0.5, 1.0]),
    Scalar("base 60 is text, unlike PyYAML", "1:20", "1:20"),
    Scalar(
        "a date stays text",
        "[2026-11-21, 2026-11-21T10:00:00Z]",
        ["2026-11-21", "2026-11-21T10:00:00Z"],
    ),
    Scalar("a version is text", "1.2.3", "1.2.3"),
    Scalar("beyond 64 bits a number loses precision, as in Go", "18446744073709551616", 2.0**64),
    Scalar(
        "explicit tags rule",
        "[!!str 12, !!int '12', !!bool 'true', !!float 3]",
        ["12", 12, True, 3],
    ),
    Scalar("a dash alone is text", "'-'", "-"),
    Scalar("block text keeps its lines", "|\n    a\n    b\n", "a\nb\n"),
]


@pytest.mark.parametrize("case", SCALARS, ids=lambda case: case.reason)
def test_scalars_mean_what_they_mean_to_kubernetes(case: Scalar) -> None:
    assert one(f"{HEAD}spec:\n  v: {case.text}\n")["spec"]["v"] == case.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("!!float 1.5", 1.5), ("!!float 1", 1), ("!!int 1", 1), ("!!null ~", None),
        ("!!bool true", True), ("!!str 1", "1"), ("!!str true", "true"),
    ],
)  # fmt: skip
def test_a_tag_of_yaml_that_fits_its_text_is_read(text: str, value: object) -> None:
    found = one(f"{HEAD}x: {text}\n")["x"]

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("!!int 1.5", "'1.5' is not an int"), ("!!int true", "'true' is not an int"),
        ("!!float x", "'x' is not a float"), ("!!float true", "'true' is not a float"),
        ("!!null 0", "'0' is not a null"), ("!!bool 1", "'1' is not a bool"),
        ("!!bool x", "'x' is not a bool"),
    ],
)  # fmt: skip
def test_a_tag_of_yaml_that_does_not_fit_its_text_is_refused(text: str, told: str) -> None:
    with pytest.raises(ManifestError, match=told):
        one(f"{HEAD}x: {text}\n")


def test_keys_are_always_text() -> None:
    manifest = one(f"{HEAD}data:\n  1: a\n  yes: b\n  ~: c\n  1.5: d\n")

    assert manifest["data"] == {"1": "a", "true": "b", "null": "c", "1.5": "d"}


def test_a_stream_gives_its_objects_in_order_without_empty_documents() -> None:
    text = f"---\n# nothing\n---\n{HEAD}---\n{HEAD.replace('name: a', 'name: b')}---\n"

    manifests = parse_manifests("a.yaml", text.encode())

    assert [manifest["metadata"]["name"] for manifest in manifests] == ["a", "b"]


def test_a_list_gives_its_items() -> None:
    item = json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})

    manifest = one(f"apiVersion: v1\nkind: List\nitems: [{item}]\n")

    assert manifest["kind"] == "Secret"


def test_a_byte_order_mark_and_windows_lines_are_fine() -> None:
    assert one("\ufeff" + HEAD.replace("\n", "\r\n"))["metadata"] == {"name": "a"}


def test_anchors_and_merges_are_expanded_into_copies() -> None:
    text = f"{HEAD}x: &x {{a: 1, b: 2}}\nb: {{<<: *x, b: 3}}\nc: {{<<: [*x, {{c: 4}}]}}\nd: *x\n"

    manifest = one(text)

    assert manifest["b"] == {"a": 1, "b": 3}
    assert manifest["c"] == {"a": 1, "b": 2, "c": 4}
    assert manifest["d"] == manifest["x"]
    assert manifest["d"] is not manifest["x"]


@dataclass(frozen=True)
class Bad:
    reason: str
    text: str
    line: int | None
    message: str
    path: str = "a.yaml"


BOMB = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
DEEP_ALIAS = f"x: &x {'[' * 40}{']' * 40}\ny: {'[' * 40}*x{']' * 40}\n"
JSON_HEAD = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"d":'

REFUSED = [
    Bad("broken YAML", f"{HEAD} data: 1\n", 5, "did not find expected"),
    Bad("a tab as indentation", f"{HEAD}\tx: 1\n", 5, "violates indentation"),
    Bad("a key twice", f"{HEAD}data: {{x: 1, x: 2}}\n", 5, "key 'x' is given twice"),
    Bad("a key twice in two spellings", f"{HEAD}data: {{1: a, '1': b}}\n", 5, "given twice"),
    Bad("no kind", "apiVersion: v1\nmetadata: {name: a}\n", 1, "apiVersion or kind is missing"),
    Bad("no map", f"{HEAD}---\n- 1\n", 5, "is not a map"),
    Bad(
        "metadata that is not a map", "apiVersion: v1\nkind: A\nmetadata: [1]\n", 1, "metadata of A"
    ),
    Bad("an unknown anchor", f"{HEAD}x: *nobody\n", 5, "nobody"),
    Bad("an alias bomb", HEAD + BOMB, None, "more than"),
    Bad("a merge of no map", f"{HEAD}x: &x 1\ny: {{<<: *x}}\n", 6, "is not a map"),
    Bad("deep nesting", f"{HEAD}x: {'[' * 200}{']' * 200}\n", 5, "deeper than 64"),
    Bad("deep nesting that could crash libyaml", "- " * 40_000, 1, "deeper than 64"),
    Bad("too many nodes", HEAD + "x: [" + "1," * 60_000 + "]\n", 5, "more than 50000"),
    Bad("too many bytes", HEAD + "#" * 1_000_001, None, "larger than 1000000 bytes"),
    Bad("an infinity", f"{HEAD}x: .inf\n", 5, "cannot be written as JSON"),
    Bad("a number beyond all numbers", f"{HEAD}x: 1e999\n", 5, "too large"),
    Bad("a private tag", f"{HEAD}x: !secret a\n", 5, "tag !secret is not supported"),
    Bad("a Python tag", f"{HEAD}x: !!python/object/apply:os.system [id]\n", 5, "not supported"),
    Bad("a tag its text does not fit", f"{HEAD}x: !!int abc\n", 5, "is not an int"),
    Bad("a key that is a list", f"{HEAD}x: {{[1]: 2}}\n", 5, "a key that is"),
    Bad(
        "a key that repeats a map",
        f"{HEAD}x: &x {{a: 1}}\ny: {{*x : 1}}\n",
        6,
        "a key that is a map",
    ),
    Bad("deep nesting by an alias", f"{HEAD}{DEEP_ALIAS}", 6, "nested deeper than 64 levels"),
    Bad("an unresolved merge", f"{HEAD}x: 1\n{'<' * 7} HEAD\n", 6, "begins with '<<<<<<<'"),
    Bad("a control character", f"{HEAD}x: \x01\n", None, "control characters"),
    Bad("broken JSON", JSON_HEAD + "}", 1, "Expecting value", "a.json"),
    Bad("a key twice in JSON", JSON_HEAD + '{"x":1,"x":2}}', None, "given twice", "a.json"),
    Bad("deep JSON", JSON_HEAD + "[" * 5000 + "]" * 5000 + "}", None, "deeper", "a.json"),
    Bad("rather deep JSON", JSON_HEAD + "[" * 70 + "]" * 70 + "}", None, "deeper", "a.json"),
    Bad("NaN in JSON", JSON_HEAD + "NaN}", None, "is not JSON", "a.json"),
    Bad("a number of 5000 digits in JSON", JSON_HEAD + "1" * 5000 + "}", None, "digits", "a.json"),
    Bad("half a character in JSON", JSON_HEAD + '"\\ud800"}', None, "character", "a.json"),
    Bad("two values in JSON", JSON_HEAD + "1}{}", 1, "Extra data", "a.json"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.reason)
def test_bad_files_are_refused_quickly_with_file_and_line(case: Bad) -> None:
    start = time.thread_time()  # what it costs, not how long a busy machine lets it wait

    with pytest.raises(ManifestError) as caught:
        parse_manifests(case.path, case.text.encode())

    assert time.thread_time() - start < 2
    assert caught.value.line == case.line or case.line is None
    assert case.message in str(caught.value)
    assert str(caught.value).startswith(case.path)
    assert caught.value.hint


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ManifestError, match="not UTF-8"):
        parse_manifests("a.yaml", b"\xff\xfe\x00")


def test_limits_are_the_callers() -> None:
    with pytest.raises(ManifestError, match="larger than 10 bytes"):
        parse_manifests("a.yaml", HEAD.encode(), limits=ManifestLimits(size_bytes=10))


def test_only_what_names_the_three_keys_looks_like_a_manifest() -> None:
    assert looks_like_manifest(HEAD.encode())
    assert not looks_like_manifest(b"values: 1\n")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(
        st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Co", "Cn", "Zl", "Zp"))
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcdefxz01 -:#", max_size=6), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_json_and_yaml_give_the_same_object(value: object) -> None:
    manifest = {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "spec": value}

    assert one(json.dumps(manifest), "a.json") == manifest
    assert one(json.dumps(manifest, ensure_ascii=False)) == manifest


@given(VALUES)
def test_block_yaml_with_quoted_text_survives(value: object) -> None:
    manifest = {"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "spec": value}

    assert one(yaml.dump(manifest, Dumper=Quoting, allow_unicode=True)) == manifest


@given(st.binary(max_size=400))
def test_any_bytes_give_objects_or_one_kind_of_error(data: bytes) -> None:
    for path in ("a.yaml", "a.json"):
        try:
            parse_manifests(path, data)
        except ManifestError as error:
            assert str(error).startswith(path)  # noqa: PT017 - any other error fails the test


class Quoting(yaml.SafeDumper):
    """Quotes all text, so that only structure is tested."""


Quoting.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)
