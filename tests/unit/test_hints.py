"""An expected error has a hint of its own that can be typed."""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from pathlib import Path

import pytest

from ground import errors
from ground.errors import InvalidInputError
from orderkit.adapters.folders.pack_folder import read_folder
from orderkit.core.kit.pack import read_pack
from orderkit.core.plan.cost_statement import month_of, period_of
from softwaretemplates.template import parse_template

ROOT = Path(__file__).parents[2]
EXPECTED = {
    name
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, errors.OrderkitError)
}
WITHOUT_HINT = {"src": 262, "libs": 27, "extras": 70}
"""How many places of each house make an error without a hint. These numbers may only fall."""


def without_hint(path: Path) -> int:
    """Count the calls of an error's class that pass no hint."""
    text = path.read_text()
    if not any(name in text for name in EXPECTED):
        return 0
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return sum(
        ast.unparse(call.func).removeprefix("errors.") in EXPECTED
        for call in calls
        if isinstance(call.func, ast.Name | ast.Attribute)
        and not {"hint", None} & {keyword.arg for keyword in call.keywords}
    )


def test_errors_without_a_hint_only_get_fewer() -> None:
    counted: Counter[str] = Counter()
    for house in WITHOUT_HINT:
        for path in (ROOT / house).rglob("*.py"):
            if "tests" not in path.parts:
                counted[house] += without_hint(path)

    assert counted <= Counter(WITHOUT_HINT), "a new error needs a hint that can be typed"


@pytest.mark.parametrize("text", ["2026-13", "2026", "October", "2026-10-01"])
def test_a_month_that_is_none_says_how_to_write_one(text: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^--month: '{text}' is not a month") as refused:
        month_of(text)

    assert refused.value.hint == "--month 2026-10"


def test_a_time_that_is_none_names_its_option() -> None:
    begin, _ = month_of("2026-10")
    with pytest.raises(InvalidInputError, match=r"^until: 'soon' is not a time$") as refused:
        period_of("", "soon", begin)

    assert refused.value.hint.startswith("--until 2026-10-01")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("nosuch", "use one of: garage"), ("garrage", "did you mean 'garage'?")],
)
def test_an_unknown_kit_is_answered_with_those_that_exist(name: str, hint: str) -> None:
    pack = read_pack(read_folder(ROOT))

    assert pack.unknown_kit(name).hint == hint


@pytest.mark.parametrize(
    ("values", "hint", "form_hint"),
    [
        ({"commit": "a" * 40}, "stage=VALUE: one of: one, two", "one of: one, two"),
        ({"stage": "one", "commit": "abc"}, "leave commit out: the form sets it", ""),
        ({"stage": "one", "commit": "__COMMIT__"}, "is not set", ""),
    ],
    ids=["a missing field", "a value of the platform", "a value that nobody baked"],
)
def test_a_refused_form_says_what_to_type(
    values: dict[str, str], hint: str, form_hint: str
) -> None:
    template = parse_template(_FORM.encode(), name="template.yaml")
    with pytest.raises(InvalidInputError) as refused:
        template.validate(values)

    assert (refused.value.hint, refused.value.form_hint) == (hint, form_hint)


_FORM = """\
apiVersion: scaffolder.backstage.io/v1beta3
kind: Template
metadata: {name: form}
spec:
  type: service
  parameters:
    - required: [stage]
      properties:
        stage: {type: string, enum: [one, two]}
        commit:
          type: string
          default: __COMMIT__
          pattern: ^[0-9a-f]{40}$
          ui:widget: hidden
          errorMessage: {pattern: is not set}
  steps: []
"""
