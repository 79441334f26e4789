"""
Random templates over the whole grammar: equal bytes where both engines agree, or refused.

The seed stands in the report's header; the figures at its end. `make soak` takes ten times
as many templates.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from chances import Chances
from tests.conformance.render.comparing import Outcome, rarely_taken, run
from tests.engines.process import Engines

from softwaretemplates.render import BACKSTAGE, COOKIECUTTER, Delimiters

SHORT, FULL = 10_000, 100_000
REFUSED_MOST, TAKEN_LEAST = 0.02, 50

Figure = Callable[[str], None]


def _run(
    engines: Engines, chances: Chances, figure: Figure, name: str, *, lifelike: bool
) -> Outcome:
    began = time.monotonic()
    count = chances.count(SHORT, FULL)
    found = run(engines, chances.random(f"render {name}"), count, lifelike=lifelike)
    figure(f"{name}: {found}\n{time.monotonic() - began:.1f} s")
    return found


@pytest.fixture(scope="module")
def lifelike(engines: Engines, chances: Chances, figure: Figure) -> Outcome:
    return _run(engines, chances, figure, "as people write them", lifelike=True)


@pytest.fixture(scope="module")
def flat(engines: Engines, chances: Chances, figure: Figure) -> Outcome:
    return _run(engines, chances, figure, "all productions alike", lifelike=False)


@pytest.mark.timeout(300)
def test_templates_as_people_write_them_render_alike(lifelike: Outcome) -> None:
    assert not lifelike.broken, lifelike.smallest()


@pytest.mark.timeout(300)
def test_templates_of_the_whole_grammar_render_alike_or_are_refused(flat: Outcome) -> None:
    assert not flat.broken, flat.smallest()


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("trimBlocks", replace(BACKSTAGE, trim_blocks=True)),
        ("lstripBlocks", replace(BACKSTAGE, lstrip_blocks=True)),
        ("both", replace(BACKSTAGE, trim_blocks=True, lstrip_blocks=True)),
        ("cookiecutterCompat", COOKIECUTTER),
    ],
)
@pytest.mark.timeout(300)
def test_templates_with_options_render_alike_or_are_refused(
    engines: Engines, chances: Chances, figure: Figure, name: str, mode: Delimiters
) -> None:
    for lifelike in (True, False):
        choices = chances.random(f"render {name} {lifelike}")
        count = chances.count(SHORT // 25, FULL // 10)
        found = run(engines, choices, count, lifelike=lifelike, delimiters=mode)
        figure(f"{name}: {found}")

        assert not found.broken, found.smallest()


def test_two_percent_are_refused_at_most(lifelike: Outcome) -> None:
    assert lifelike.refused <= REFUSED_MOST, str(lifelike)


def test_every_production_is_taken_often(lifelike: Outcome, flat: Outcome, figure: Figure) -> None:
    rare = rarely_taken(lifelike, flat, least=TAKEN_LEAST)
    figure(f"productions taken less than {TAKEN_LEAST} times: {len(rare)}")

    assert not rare, "\n".join(rare)
