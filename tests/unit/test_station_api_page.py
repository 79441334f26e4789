"""docs/station-api.md has every public name of ``orderkit.stations``, and its example runs."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import orderkit.stations
from orderkit.stations import Resource, State, StationRequest

PAGE = (Path(__file__).parents[2] / "docs/station-api.md").read_text()
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
CLASSES = [
    getattr(orderkit.stations, name)
    for name in orderkit.stations.__all__
    if inspect.isclass(getattr(orderkit.stations, name)) and name != "Manifest"
]


def public_names(class_: type) -> set[str]:
    """Return the fields, members and methods of a class that are its own."""
    if issubclass(class_, enum.Enum):
        return set(class_.__members__)
    fields = {field.name for field in dataclasses.fields(class_)}  # type: ignore[arg-type]
    return fields | {
        name
        for name, value in vars(class_).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or isinstance(value, classmethod | property))
    }


def test_every_public_name_is_on_the_page() -> None:
    named = set(SECTIONS) | set(re.findall(r"`(\w+)`", PAGE))

    assert set(orderkit.stations.__all__) - named == set()


@pytest.mark.parametrize("class_", CLASSES, ids=lambda class_: class_.__name__)
def test_the_section_of_a_class_has_its_names_and_no_others(class_: type) -> None:
    section = SECTIONS[class_.__name__]
    if issubclass(class_, enum.Enum):
        documented = set(re.findall(r"`([A-Z]+)`", section))
    else:
        documented = set(re.findall(r"^\| `(\w+)", section, re.MULTILINE))

    assert documented == public_names(class_)


@pytest.mark.parametrize(
    ("name", "arguments"),
    re.findall(r"^\| `(\w+)\(([^)]*)\)", SECTIONS["StationResponse"], re.MULTILINE),
)
def test_a_documented_call_has_the_methods_arguments(name: str, arguments: str) -> None:
    method = getattr(orderkit.stations.StationResponse, name)
    shown = [argument.partition("=")[0].strip() for argument in arguments.split(",")]

    assert shown == [
        parameter for parameter in inspect.signature(method).parameters if parameter != "self"
    ]


def test_the_example_runs() -> None:
    module = ModuleType("station_api_page")
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(example, vars(module))  # noqa: S102 - our own page
    observed = State(Resource({"metadata": {"name": "b"}}))

    first = module.station(StationRequest(observed))
    site = {"data": {"region": "eu"}}
    last = module.station(StationRequest(observed, required={"site": (site,)}))
    without = module.station(StationRequest(observed, required={"site": ()}))

    assert list(first.requirements) == ["site"]
    assert set(last.desired.resources) == {"bucket", "region"}
    assert "is missing" in without.results[0].message
