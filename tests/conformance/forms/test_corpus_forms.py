"""
Forms of the corpus: both validators read them, and what is entered is what the XR holds.

Of each kit many forms are filled in with random answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from chances import Chances
from corpuspack import BAKED, Made, kit_names, made
from formanswers import TEAMS, fill
from tests.engines.process import Engines

from ground.objects.kube_objects import Manifest
from kubeschema.validate import Reason, Validator
from orderkit.core.kit.change_forms import form_data
from orderkit.core.kit.kit_file import KitChange
from orderkit.core.kit.xrd_fields import fields_of

SHORT, FULL = 3, 300


@pytest.fixture(scope="module", params=kit_names())
def kit(request: pytest.FixtureRequest) -> Made:
    return made(request.param)


@pytest.fixture(scope="module")
def filled(kit: Made, chances: Chances) -> list[dict[str, Any]]:
    return fill(kit, chances.count(SHORT, FULL))


def test_form_and_backend_read_the_schema_and_take_the_answers(
    kit: Made, filled: list[dict[str, Any]], engines: Engines
) -> None:
    jobs = []
    for values in filled:
        for page in kit.pages:
            conditional = {name for _, name in _shown(page)}
            known = {*page["properties"], *conditional}
            jobs.append((page, {name: values[name] for name in values if name in known}))

    verdicts = engines.ask("judge", jobs=jobs)

    wrong = [
        (job, verdict)
        for job, verdict in zip(jobs, verdicts, strict=True)
        if verdict != {"jsonschema": True, "ajv": True}
    ]
    assert not wrong, wrong[0]


def _shown(page: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        (question, name)
        for question, asked in (page.get("dependencies") or {}).items()
        for branch in asked["oneOf"]
        for name in branch["properties"]
    ]


def test_a_form_of_a_change_shows_what_was_entered(kit: Made, filled: list[dict[str, Any]]) -> None:
    for values in filled:
        xr = kit.order(values)

        entered = {name: values[name] for name in values if name in _parameters(kit)}
        assert _told(kit, _read_back(kit, xr)) == _told(kit, entered)


def _parameters(kit: Made) -> dict[str, str]:
    """Return the form's parameters that are fields of the XR, and those fields."""
    return {kit.kit.parameter(field.name): field.name for field in fields_of(kit.kit).top}


def _read_back(kit: Made, xr: Manifest) -> dict[str, Any]:
    """Return what the form of a change of every field would open with."""
    every = KitChange("all", tuple(f.path for f in fields_of(kit.kit).top if f.visible), "All")
    data = form_data(kit.kit, every, order=xr["metadata"]["name"], base="b", spec=xr["spec"])
    shown = {name: value for name, value in data.items() if name in _parameters(kit)}
    return shown | {p: xr["spec"][f] for p, f in _parameters(kit).items() if f in _unasked(kit)}


def _unasked(kit: Made) -> set[str]:
    """Return the fields that no change asks for: they name the order, or are the platform's."""
    return {*kit.kit.hidden, *kit.kit.name_from, kit.kit.team_from, kit.kit.xr_name}


def _told(kit: Made, values: Mapping[str, Any]) -> Any:
    """Leave out what says nothing: defaults of the form, and what is empty."""
    return _bare(kit.template.validate({**values, **_needed(kit, values)}))


def _bare(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    kept = {name: _bare(inner) for name, inner in value.items()}
    return {name: inner for name, inner in kept.items() if inner not in ("", [], {})}


def _needed(kit: Made, values: Mapping[str, Any]) -> dict[str, Any]:
    known = {**TEAMS, **BAKED}
    return {n: known[n] for n in known if n in kit.template.properties and n not in values}


TOLD = {
    "dashboard": "an embedded object has apiVersion and kind; the form takes any keys",
    "dataset": "0.15 is not a multiple of 0.05 to the API server, which divides as machines do",
    "dnsrecord": "oneOf: the page says that exactly one is needed",
    "flag": "optionalOldSelf: the help says what holds at first",
    "notebook": "allOf and not: the help says that more is checked",
    "stream": "oneOf and anyOf: the help says so",
}
"""Kits whose forms take more than their XRDs, beyond rules in CEL and formats."""


def test_what_a_form_takes_the_xrd_takes_or_the_form_tells_of_more(
    filled: list[dict[str, Any]], kit: Made
) -> None:
    validator = Validator(kit.kit.xrd)
    findings = [
        finding
        for values in filled
        for finding in validator.check(kit.order(values)).findings
        if not (finding.reason is Reason.RULE or finding.rule.startswith("format "))
    ]

    assert not findings or kit.kit.name in TOLD, findings
