"""The station `{{ cookiecutter.name }}`, called as the function it is."""

from __future__ import annotations

import importlib
from typing import Any

from orderkit.stations import Resource, State, StationRequest, StationResponse

STATION = importlib.import_module("stations.{{ cookiecutter.name }}.station").station
SPEC: dict[str, Any] = {{ cookiecutter.spec }}


def assemble(**observed: dict[str, Any]) -> StationResponse:
    """Call the station for an order of which these parts exist."""
    xr = {
        "apiVersion": "{{ cookiecutter.group }}/{{ cookiecutter.version }}",
        "kind": "{{ cookiecutter.kind }}",
{%- if cookiecutter.namespaced %}
        "metadata": {"name": "{{ cookiecutter.xr_name }}", "namespace": "somewhere"},
{%- else %}
        "metadata": {"name": "{{ cookiecutter.xr_name }}"},
{%- endif %}
        "spec": SPEC,
    }
    parts = {name: Resource(manifest) for name, manifest in observed.items()}
    response: StationResponse = STATION(StationRequest(State(Resource(xr), parts)))
    return response


def desired(response: StationResponse) -> dict[str, dict[str, Any]]:
    """Return the manifests that the station wants, by logical name."""
    return {name: part.resource for name, part in response.desired.resources.items()}

{% if cookiecutter.namespaced %}
def test_the_settings_hold_every_field_as_text() -> None:
    settings = desired(assemble())["settings"]

    assert settings["metadata"]["namespace"] == "somewhere"
    assert all(isinstance(value, str) for value in settings["data"].values())
    assert set(settings["data"]) <= set(SPEC)
{% else %}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "{{ cookiecutter.xr_name }}"}}


def test_the_namespace_comes_alone_until_it_exists() -> None:
    assert list(desired(assemble())) == ["namespace"]


def test_then_the_settings_hold_every_field_as_text() -> None:
    settings = desired(assemble(namespace=NAMESPACE))["settings"]

    assert settings["metadata"]["namespace"] == "{{ cookiecutter.xr_name }}"
    assert all(isinstance(value, str) for value in settings["data"].values())
    assert set(settings["data"]) <= set(SPEC)
{% endif %}

def test_the_same_order_is_assembled_the_same_way() -> None:
    assert desired(assemble()) == desired(assemble())
