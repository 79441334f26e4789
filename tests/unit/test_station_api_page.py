"""The pages on stations have every public name of ``orderkit.stations``; their examples run."""

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

PAGE = "\n".join(
    (Path(__file__).parents[2] / "docs" / name).read_text()
    for name in ("station-api.md", "station-parts.md")
)
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
CLASSES = [
    getattr(orderkit.stations, name)
    for name in orderkit.stations.__all__
    if inspect.isclass(getattr(orderkit.stations, name))
    and name not in {"Manifest", "SettingError"}
]
FUNCTIONS = [
    name
    for name in orderkit.stations.__all__
    if inspect.isfunction(getattr(orderkit.stations, name))
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


def documented_calls(text: str) -> list[tuple[str, list[str]]]:
    """Return the calls with their arguments, without the defaults, which may have commas."""
    return [
        (name, re.findall(r"(?:^|, )\*{0,2}(\w+)(?==|,|$)", re.sub(r"\(\)|\{\}", "", arguments)))
        for name, arguments in re.findall(r"`(\w+)\(((?:[^()`]|\(\))*)\)`", text)
    ]


@pytest.mark.parametrize("class_name", ["StationResponse", "Parts", "Settings"])
def test_a_documented_call_has_the_methods_arguments(class_name: str) -> None:
    class_ = getattr(orderkit.stations, class_name)
    calls = [call for call in documented_calls(SECTIONS[class_name]) if hasattr(class_, call[0])]

    assert calls
    for name, arguments in calls:
        parameters = inspect.signature(getattr(class_, name)).parameters
        assert (name, arguments) == (name, [p for p in parameters if p != "self"])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_shown_with_its_arguments(name: str) -> None:
    calls = {tuple(arguments) for call, arguments in documented_calls(PAGE) if call == name}

    assert tuple(inspect.signature(getattr(orderkit.stations, name)).parameters) in calls


def test_the_example_runs() -> None:
    module = ModuleType("station_api_page")
    exec(EXAMPLES[0], vars(module))  # noqa: S102 - our own page
    observed = State(Resource({"metadata": {"name": "b"}}))

    first = module.station(StationRequest(observed))
    site = {"data": {"region": "eu"}}
    last = module.station(StationRequest(observed, required={"site": (site,)}))
    without = module.station(StationRequest(observed, required={"site": ()}))

    assert list(first.requirements) == ["site"]
    assert set(last.desired.resources) == {"bucket", "region"}
    assert "is missing" in without.results[0].message


def test_the_example_of_a_cluster_creates_in_order_and_protects() -> None:
    module = ModuleType("station_api_page")
    exec(EXAMPLES[1], vars(module))  # noqa: S102 - our own page
    xr = {"metadata": {"name": "c", "namespace": "team-a"}, "spec": {"owner": "ann"}}
    context = {
        "orderkit.dev/settings": {
            "values": {"location": "europe-west1", "certManager": "v1.19.0"},
            "layers": {},
        }
    }
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    observed: dict[str, Resource] = {}
    rounds = []
    for _ in range(4):
        request = StationRequest(State(Resource(xr), dict(observed)), context=context)
        response = module.cluster_station(request)
        rounds.append(set(response.desired.resources))
        for name, part in response.desired.resources.items():
            observed[name] = Resource({**part.resource, **ready})

    assert rounds[0] == {"cluster"}
    assert rounds[1] - rounds[0] >= {"pool", "helm"}
    assert "cert-manager" in rounds[2]
    assert {"usage-helm-by-cert-manager", "usage-cluster-by-pool"} <= rounds[3]
    assert response.desired.composite.resource["status"] == {"phase": "Ready"}


def test_the_example_of_a_password_waits_for_the_seed() -> None:
    module = ModuleType("station_api_page")
    exec(EXAMPLES[2], vars(module))  # noqa: S102 - our own page

    response = module.password_station(StationRequest(State(Resource({"metadata": {"name": "b"}}))))

    assert response.desired.resources == {}
    assert list(response.requirements) == ["orderkit-password-seed"]
