"""Files of a kit against their sources, their style and the price table of the pack."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

import labkit
import pytest

from kubeschema.validate.findings import Located, sentence
from orderkit_workshop.check.file_checks import (
    check_generated,
    check_pack_files,
    check_prices,
    check_style,
    in_style,
)
from orderkit_workshop.check.rule_codes import KitRule

SUBJECT = labkit.subject({}, {})
STYLE = """\
rules:
  indentation: {spaces: 2}
  line-length: {max: 20}
  comments: {level: warning}
"""
PRICES = "gitops/prices.yaml"
TABLE = """\
apiVersion: orderkit.dev/v1alpha1
kind: PriceTable
metadata: {name: p}
spec:
  currency: EUR
  source: us
  date: 2026-11-01
  prices:
    - {kind: Disk, price: "1"}
"""


def told(found: list[Located]) -> list[tuple[str, str]]:
    return [(str(getattr(entry.about, "reason", "")), sentence(entry)) for entry in found]


@pytest.mark.parametrize(
    ("files", "messages"),
    [
        ({"a": b"1", "b": b"2"}, []),
        ({"a": b"1"}, ["b: is missing"]),
        ({"a": b"0", "b": b"2"}, ["a: differs from its sources"]),
        ({"a": b"1", "b": b"2", "c": b"3"}, []),
    ],
)
def test_files_of_a_pack_are_what_its_kits_generate(
    files: dict[str, bytes], messages: list[str]
) -> None:
    expected = {PurePosixPath("b"): b"2", PurePosixPath("a"): b"1"}

    found = check_pack_files({PurePosixPath(k): v for k, v in files.items()}, expected)

    assert told(list(found)) == [(str(KitRule.DRIFT), message) for message in messages]


@pytest.mark.parametrize(
    ("table", "place", "message"),
    [
        (None, "", ""),
        (TABLE, "", ""),
        (TABLE.replace("EUR", "XXQ"), f"{PRICES}:5", "'XXQ' is refused"),
        (TABLE.replace("2026-11-01", "2026-11-31"), f"{PRICES}:9", "is not a day of the calendar"),
        (TABLE.replace("prices:", "prices: ["), f"{PRICES}:9", "is not valid YAML"),
        ("\x00", f"{PRICES}:1", "is not valid YAML"),
    ],
)
def test_a_price_table_is_told_with_the_line_of_its_fault(
    table: str | None, place: str, message: str
) -> None:
    subject = labkit.subject({PRICES: table}, {})

    found = told(list(check_prices(subject)))

    assert len(found) == bool(message)
    for rule, text in found:
        assert rule == str(KitRule.PRICES)
        assert text.startswith(f"{place}: "), text
        assert text.count(f"{PRICES}:") == 1, text
        assert message in text
        assert "\n" not in text


FILES = {
    "templates/lab/a.yaml": "a:\n   b: 1\n",
    "templates/lab/b.yml": "a: 1 #b\n",
    "templates/lab/skeleton/c.yaml": "a:\n   b: 1\n",
    "templates/lab/d.txt": "a:\n   b: 1\n",
    "templates/other/e.yaml": "a:\n   b: 1\n",
    "day2/lab/f.yaml": "a:   1\nb:\n   - 1\n",
    "gitops/apis/lab/g.yaml": "a: [\n",
    "gitops/apis/labs/h.yaml": "a:\n   b: 1\n",
}


def test_hand_written_files_of_a_kit_keep_the_packs_style() -> None:
    subject = labkit.subject(FILES, {})
    style = "rules:\n  indentation: {spaces: 2}\n  comments: {level: warning}\n"

    found = {
        (str(entry.file), entry.line, str(getattr(entry.about, "reason", "")))
        for entry in check_style(subject, style)
    }

    assert found == {
        ("templates/lab/a.yaml", 2, str(KitRule.YAML_STYLE)),
        ("templates/lab/b.yml", 1, str(KitRule.YAML_STYLE_WARNING)),
        ("day2/lab/f.yaml", 3, str(KitRule.YAML_STYLE)),
    }
    ignored = f"ignore: [templates/]\n{style}"
    assert {str(entry.file) for entry in check_style(subject, ignored)} == {"day2/lab/f.yaml"}


def test_a_style_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no such rule"):
        list(check_style(SUBJECT, "rules: {nope: {}}"))


LONG = b"a: " + b"x" * 30 + b"\n"


@pytest.mark.parametrize(
    ("texts", "chosen"),
    [
        ([b"a: 1\n", b"b: 2\n"], b"a: 1\n"),
        ([b"a:\n   b: 1\n", b"b: 2\n"], b"b: 2\n"),
        ([b"a:\n   b: 1\n", b"b:\n   c: 2\n"], b"b:\n   c: 2\n"),
        ([LONG, b"b: 2\n"], b"# yamllint disable rule:line-length\n" + LONG),
        ([b"a: 1 #b\n", b"b: 2\n"], b"a: 1 #b\n"),
    ],
)
def test_the_first_text_that_layout_can_keep_is_taken(texts: list[bytes], chosen: bytes) -> None:
    assert in_style(texts, STYLE) == chosen


def test_a_generated_file_that_differs_is_told_with_its_first_line() -> None:
    assert SUBJECT.kit is not None
    path = next(iter(sorted(labkit.generated(labkit.TEXTS))))
    data = labkit.generated(labkit.TEXTS)[path]
    lines = data.decode().splitlines()

    def lines_of(text: str | None) -> list[tuple[str, int | None]]:
        files = {**SUBJECT.pack.files}
        files.pop(path, None)
        if text is not None:
            files[path] = text.encode()
        subject = replace(SUBJECT, pack=replace(SUBJECT.pack, files=files))
        assert subject.kit is not None
        found = check_generated(subject, subject.kit)
        return [(sentence(one).rpartition(": ")[2], one.line) for one in found if one.file == path]

    assert lines_of(data.decode()) == []
    changed_ = "\n".join([*lines[:3], "x", *lines[4:]]) + "\n"
    assert lines_of(changed_) == [("differs from its sources", 4)]
    assert lines_of("\n".join(lines[:-1]) + "\n") == [("differs from its sources", len(lines))]
    assert [message for message, _ in lines_of(None)] == ["is missing"]
