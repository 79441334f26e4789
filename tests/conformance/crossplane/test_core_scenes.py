"""The lives of orders: on a live core as recorded, and on our assembly as on the live core."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.conformance.crossplane import cores, scenes
from tests.conformance.crossplane.judging import (
    RECORD_VARIABLE,
    expected,
    record,
    recorded,
    unlike,
)
from tests.conformance.crossplane.playing import SCENES, Outcome, play_all

Outcomes = dict[str, Outcome]
PLAYS = (scenes,)
"""Importing them registers what they hold."""


@pytest.fixture(scope="module")
def on_embedded(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    with cores.embedded(tmp_path_factory.mktemp("scenes"), expected) as core:
        return play_all(core, SCENES)


@pytest.fixture(scope="module")
def on_live() -> Outcomes:
    named = os.environ.get(cores.CORE_VARIABLE)
    if not named:
        pytest.skip(f"no live core: {cores.CORE_VARIABLE} names none")
    records = bool(os.environ.get(RECORD_VARIABLE))
    with cores.live(Path(named), lambda _scene, _step: None) as core:
        outcomes = play_all(core, SCENES)
    for name, outcome in outcomes.items():
        if records and not outcome.failure:
            record(name, outcome)
    return outcomes


@pytest.mark.parametrize("name", SCENES)
def test_embedded_core_does_as_recorded(on_embedded: Outcomes, name: str) -> None:
    outcome = on_embedded[name]
    assert not outcome.failure, outcome.failure
    wanted = {step: expected(name, step) for step in recorded(name)[0]}
    assert unlike(wanted, outcome.accounts) == {}
    assert outcome.events == recorded(name)[1]


@pytest.mark.parametrize("name", SCENES)
def test_real_core_does_as_recorded(on_live: Outcomes, name: str) -> None:
    outcome = on_live[name]
    assert not outcome.failure, outcome.failure
    assert unlike(recorded(name)[0], outcome.accounts) == {}
    assert outcome.events == recorded(name)[1]
