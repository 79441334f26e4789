"""Every entry of the table of refusals has a case that is refused for it, and the page is new."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from softwaretemplates.render import BACKSTAGE, COOKIECUTTER, UnsupportedError, compile_template
from softwaretemplates.render.refusals import CASES, table

VALUES = {"s": "text", "l": [1], "o": {"a": 1, "items": 2}}
ROOT = Path(__file__).parents[3]


def test_every_refusal_has_a_case() -> None:
    assert set(CASES) == set(table())


@pytest.mark.parametrize("name", list(table()))
def test_the_case_of_a_refusal_is_refused_for_it(name: str) -> None:
    refusal, source = table()[name], CASES[name]
    compat = "cookiecutter" in source
    delimiters = COOKIECUTTER if compat else BACKSTAGE
    context = {"cookiecutter" if compat else "values": VALUES}

    with pytest.raises(UnsupportedError) as refused:
        compile_template(source, delimiters).render(context)

    start, _, end = refusal.construct.partition("{}")
    assert refused.value.problem.startswith(start)
    assert f"{end} is refused: {refusal.why}" in refused.value.problem
    assert refused.value.position is not None
    assert refused.value.hint


@pytest.mark.parametrize("name", [name for name, refusal in table().items() if refusal.early])
def test_early_refusals_need_no_rendering(name: str) -> None:
    delimiters = COOKIECUTTER if "cookiecutter" in CASES[name] else BACKSTAGE

    with pytest.raises(UnsupportedError):
        compile_template(CASES[name], delimiters)


def test_the_page_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "rendering_docs.py"), "--check"]

    assert subprocess.run(command, check=False).returncode == 0
