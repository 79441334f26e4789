"""
Twins answer what the real functions answer, case by case.

The real answers were recorded (the release stands in the files); where the environment names a
running function, as FUNCTION_PATCH_AND_TRANSFORM=127.0.0.1:9443, it is asked instead.
"""

from __future__ import annotations

import functools
from typing import Any

import pytest
from functionanswers import address_of, asked, recorded_answers
from functioncases import FunctionCase, answer_of, cases_of

from compositions.function_twins.choice import TWINS
from compositions.station import OpaqueError

FUNCTIONS = ("function-environment-configs", "function-extra-resources",
             "function-patch-and-transform")  # fmt: skip
CASES = [(name, case) for name in FUNCTIONS for case in cases_of(name)]


@functools.cache
def answers(function: str) -> dict[str, Any]:
    address = address_of(function)
    return asked(function, address) if address else recorded_answers(function)


@pytest.mark.parametrize(
    ("function", "case"), CASES, ids=[f"{name[9:]}: {case.reason}" for name, case in CASES]
)
def test_a_twin_answers_as_the_real_function(function: str, case: FunctionCase) -> None:
    twin = TWINS[function].station
    if case.opaque:
        with pytest.raises(OpaqueError, match=_literally(case.opaque)):
            twin(case.request())
        return
    real, ours = answers(function)[case.reason], answer_of(twin(case.request()))
    if case.loose:
        assert _severities(ours) == _severities(real) == ["FATAL"]
    elif "FATAL" in _severities(real):
        assert ours["results"] == real["results"]
    else:
        assert ours == real


def _literally(text: str) -> str:
    return "".join(f"[{char}]" if char in "()[]{}*+?." else char for char in text)


def _severities(answer: dict[str, Any]) -> list[str]:
    return [severity for severity, _ in answer["results"]]


def test_every_case_has_an_answer_and_every_answer_a_case() -> None:
    for function in FUNCTIONS:
        assert list(recorded_answers(function)) == [
            case.reason for case in cases_of(function) if not case.crash
        ]
