"""What we write reads back as the same value in YAML 1.1 and YAML 1.2."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from ground.errors import InvalidInputError
from yamlfiles import yaml11, yaml12

TEXTS = [
    *("yes", "no", "on", "off", "null", "~", "true", "True", "NO", "y", "n"),
    *("1e3", "0x10", "0o17", "017", "1_000", "12:30", "1.5", ".5", "5.", "+1", "-0", "1.5e3"),
    *("2026-11-21", "", " x", "x ", "# no", "a: b", "- x", "{", "[", "*a", "&a", "!t", "%", "@"),
    *("multi\nline", "trailing\n", "tab\tinside", '"', "'", "\\", "é", "🚗", "=", "<<", ".inf"),
]


def read_12(text: str) -> object:
    return YAML(typ="safe", pure=True).load(text)


@pytest.mark.parametrize("text", TEXTS)
def test_text_stays_text_in_both_dialects(text: str) -> None:
    written = yaml11.dump({"value": text})

    assert yaml.safe_load(written) == {"value": text}
    assert read_12(written) == {"value": text}


@given(st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=20))
def test_any_text_stays_text(text: str) -> None:
    written = yaml11.dump({"value": text})

    assert yaml.safe_load(written) == {"value": text}
    assert read_12(written) == {"value": text}


@given(st.from_regex(r"[-+.0-9eExo_:a-fA-F]{1,12}", fullmatch=True))
def test_whatever_looks_like_a_number_stays_text(text: str) -> None:
    written = yaml11.dump({"value": text})

    assert yaml.safe_load(written) == {"value": text}
    assert read_12(written) == {"value": text}


@pytest.mark.parametrize("text", ["y", "Y", "n", "N"])
def test_what_only_go_yaml_reads_as_boolean_is_quoted(text: str) -> None:
    assert f"'{text}'" in yaml11.dump({"value": text})


def test_a_text_with_several_documents_is_no_file_of_one() -> None:
    with pytest.raises(InvalidInputError, match="f: 2 documents; one is expected"):
        yaml12.load(b"a: 1\n---\nb: 1\n", name="f")
    assert yaml12.load_all(b"a: 1\n---\n---\nb: 1\n", name="f") == [{"a": 1}, {"b": 1}]
    assert yaml12.load(b"", name="f") is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("- 1\n", "f: [1] is not a map"),
        ("a: 1\nb: 2\nbb: 3\n", "f:3: 'bb' is not a known key"),
        ("a: 1\nb: x\n", "f:2: b: 'x' is refused: 'x' is not of type 'integer'"),
        ("a: [\n", "f is not valid YAML: "),
        ("[" * 70 + "]" * 70, "f: '' is nested deeper than "),
        ("a: &a [*a]\n", "f: '*a' stands inside its own node"),
    ],
)
def test_a_file_is_refused_with_the_line_of_its_fault(text: str, told: str) -> None:
    schema = {
        "properties": {"a": {}, "b": {"type": "integer"}},
        "additionalProperties": False,
    }

    with pytest.raises(InvalidInputError) as refused:
        yaml11.load(text, name="f", schema=schema)

    assert str(refused.value).startswith(told)


@pytest.mark.parametrize(
    ("steps", "line"),
    [((), 1), (("a",), 2), (("a", "b"), 3), (("a", "b", 1), 4), (("a", "x"), 2), (("c", "x"), 5)],
)
def test_a_value_has_the_line_of_its_key_or_of_the_nearest_above(
    steps: tuple[str | int, ...], line: int
) -> None:
    assert yaml11.line_of("# head\na:\n  b: [1,\n    2]\nc: 1\n", steps) == line
