"""What we write reads back as the same value in YAML 1.1 and YAML 1.2."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from yamlfiles import yaml11

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
