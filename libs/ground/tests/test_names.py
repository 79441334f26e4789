"""Names, references, ids of blobs, quantities and patterns: what is one, and what is refused."""

from __future__ import annotations

import subprocess
from decimal import Decimal

import pytest

from ground.errors import InvalidInputError
from ground.names import (
    LABEL_MAX,
    REFERENCE_MAX,
    blob_sha,
    check_label,
    check_person,
    check_requester,
    fold_reference,
)
from ground.objects.quantities import NoQuantity, Unsure, parse
from ground.regular_expressions import compile_pattern, program_size
from ground.suggestions import did_you_mean
from ground.unified_diff import unified_diff

LONG = "a" * LABEL_MAX


@pytest.mark.parametrize("value", ["a", "a-1", "0", LONG])
def test_a_label_is_returned(value: str) -> None:
    assert check_label("name", value) == value


@pytest.mark.parametrize(
    ("value", "longest", "told"),
    [
        ("", 63, "name: '' is not an RFC 1123 label"),
        ("-a", 63, "name: '-a' is not an RFC 1123 label"),
        ("a-", 63, "name: 'a-' is not an RFC 1123 label"),
        ("A", 63, "name: 'A' is not an RFC 1123 label"),
        ("a\n", 63, "name: 'a\\n' is not an RFC 1123 label"),
        (f"{LONG}a", 63, f"name: '{LONG}a' is not an RFC 1123 label"),
        ("abcd", 3, "name: 'abcd' has 4 characters"),
        ("ABCD", 3, "name: 'ABCD' is not an RFC 1123 label"),
        (f"{LONG}a", 3, f"name: '{LONG}a' is not an RFC 1123 label"),
    ],
)
def test_what_is_no_label_is_refused(value: str, longest: int, told: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        check_label("name", value, longest=longest)

    assert str(refused.value).startswith(told)
    assert check_label("name", "abc", longest=3) == "abc"


LONGEST = "user:default/" + "x" * (REFERENCE_MAX - len("user:default/"))


@pytest.mark.parametrize(
    "reference", ["user:default/eve", "User:a-b.c/E_v.e+x@y.z", "group:default/a", LONGEST]
)
def test_a_reference_to_a_person_is_returned(reference: str) -> None:
    assert check_person(reference) == reference


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "eve",
        "user:eve",
        "user:default/",
        "user:-a/x",
        "user:a/b c",
        "user:a/b\n",
        f"{LONGEST}x",
    ],
)
def test_what_is_no_reference_is_refused_with_what_fits_a_message(reference: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        check_requester(reference)

    assert refused.value.field == "requester"
    assert refused.value.value == reference[:REFERENCE_MAX]
    assert refused.value.rule == "is not a catalog reference of at most 300 characters"


@pytest.mark.parametrize("reference", ["user:default/unknown", "User:Default/UNKNOWN"])
def test_nobody_is_called_unknown(reference: str) -> None:
    assert check_requester(reference) == reference
    with pytest.raises(InvalidInputError) as refused:
        check_person(reference)
    assert str(refused.value) == f"requester: '{reference}' means that no requester is known"


def test_references_are_compared_in_lower_case_if_that_is_safe() -> None:
    assert fold_reference("User:Default/Eve") == "user:default/eve"
    assert fold_reference("User:default/\u212ate") == "User:default/\u212ate"


@pytest.mark.parametrize("data", [b"", b"abc\n"])
def test_the_id_of_a_blob_is_gits(data: bytes) -> None:
    command = ["git", "hash-object", "--stdin"]
    by_git = subprocess.run(command, input=data, capture_output=True, check=True).stdout.decode()

    assert blob_sha(data) == by_git.strip()
    assert len(blob_sha(data, like="0" * 64)) == 64
    assert blob_sha(data, like="0" * 40) == blob_sha(data)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.", "1"), (".5", "0.5"), ("+1", "1"), ("1n", "1e-9"), ("1u", "1e-6"), ("1e-9", "1e-9"),
        ("1E2", "100"), ("1E", "1e18"), ("7Ei", str(7 * 2**60)),
        ("9223372036854775807", str(2**63 - 1)),
        ("-9223372036854775807", str(1 - 2**63)),
    ],
)  # fmt: skip
def test_a_quantity_is_read_exactly(text: str, value: str) -> None:
    assert parse(text) == Decimal(value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1.1.1", "quantities must match the regular expression"),
        ("a", "quantities must match the regular expression"),
        ("1ki", "unable to parse quantity's suffix"),
        ("1ee", "unable to parse quantity's suffix"),
    ],
)
def test_what_the_server_does_not_read_is_told_in_its_words(text: str, told: str) -> None:
    with pytest.raises(NoQuantity) as refused:
        parse(text)
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (".", "'.' is an unusual quantity"),
        ("1e1000", "e1000 is a large exponent"),
        ("1e-10", "is beyond what a quantity holds exactly"),
        ("9223372036854775808", "is beyond what a quantity holds exactly"),
        ("8Ei", "is beyond what a quantity holds exactly"),
        ("-8Ei", "is beyond what a quantity holds exactly"),
    ],
)
def test_what_the_server_would_change_gives_no_verdict(text: str, told: str) -> None:
    with pytest.raises(Unsure) as refused:
        parse(text)
    assert told in str(refused.value)


def test_a_pattern_that_takes_too_long_is_refused_with_its_value() -> None:
    pattern = compile_pattern("(?=^(a|a|aa)+b)a")
    text = "a" * 80

    with pytest.raises(InvalidInputError) as refused:
        pattern.search(text)

    assert refused.value.value == "(?=^(a|a|aa)+b)a"
    assert refused.value.rule == f"needs more than 0.2 s for '{text[:40]}'"


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        (r"[\w-z]", r"'\w-z' (character 2) is not a JavaScript pattern"),
        (r"[a-\w]", r"'a-\w' (character 2) is not a JavaScript pattern"),
        ("a[b", "''"),
        (r"[\S]", r"'\S]' (character 2)"),
        (r"a\_b", r"'\_b' (character 2)"),
    ],
)
def test_a_pattern_that_engines_read_differently_is_refused_where_it_begins(
    pattern: str, told: str
) -> None:
    with pytest.raises(ValueError, match="is not a JavaScript pattern") as refused:
        compile_pattern(pattern)
    assert str(refused.value).startswith(told)


def test_the_size_of_a_pattern_is_re2s() -> None:
    assert program_size("a") < program_size("a{100}") < program_size("(") == float("inf")


@pytest.mark.parametrize(
    ("name", "names", "hint"),
    [
        ("sise", ["size", "side", "x"], "did you mean 'size'?"),
        ("zebra", ["size"], "sizes: size"),
        ("a", [], "sizes: size"),
        (1, [10, 2], "did you mean '10'?"),
    ],
)
def test_the_nearest_name_is_suggested(name: object, names: list[object], hint: str) -> None:
    assert did_you_mean(name, names, "sizes: size") == hint


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (b"a\n", b"a\n", []),
        (None, b"a\n", ["--- old", "+++ new", "@@ -0,0 +1 @@", "+a"]),
        (b"a\n", None, ["--- old", "+++ new", "@@ -1 +0,0 @@", "-a"]),
        (
            b"a\nb",
            b"a\nc\n",
            [
                *("--- old", "+++ new", "@@ -1,2 +1,2 @@", " a", "-b"),
                *("\\ No newline at end of file", "+c"),
            ],
        ),
    ],
)
def test_a_difference_is_written_as_diff_writes_it(
    before: bytes | None, after: bytes | None, lines: list[str]
) -> None:
    assert unified_diff(before, after, "old", "new").splitlines() == lines
