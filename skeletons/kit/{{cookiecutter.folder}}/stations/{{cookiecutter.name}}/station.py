{%- if cookiecutter.namespaced -%}
"""
Assemble an order of `{{ cookiecutter.name }}`: the ConfigMap ``settings`` beside it in its namespace.

A start that works: replace the ConfigMap by what the kit is really made of, one `want` per object.
`stations/README.md` has the rules; `orderkit kit test` shows what an edit does to every scenario.
"""
{%- else -%}
"""
Assemble an order of `{{ cookiecutter.name }}`: a Namespace and, once that exists, a ConfigMap in it.

A start that works: replace the ConfigMap by what the kit is really made of, one `want` per object.
What lives in the Namespace waits until it is observed, because Crossplane applies in random order
and gives up the whole round at the first missing namespace. `stations/README.md` has the rules;
`orderkit kit test` shows what an edit does to every scenario.
"""
{%- endif %}

from __future__ import annotations

import json
from typing import Any

from orderkit.stations import StationRequest, StationResponse

FIELDS = (
{%- for field in cookiecutter.fields %}
    {{ field | tojson }},
{%- endfor %}
)
"""What the ConfigMap tells of the order."""


def station(request: StationRequest) -> StationResponse:
{%- if cookiecutter.namespaced %}
    """Want the settings."""
    response = StationResponse.to(request)
    name = str(request.xr["metadata"]["name"])
    response.want("settings", settings(f"{name}-settings", request.xr))
{%- if cookiecutter.tells %}
    response.merge_status({"settings": f"{name}-settings"})
{%- endif %}
    return response


def settings(name: str, xr: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the order as text: a ConfigMap holds nothing else."""
    spec = xr["spec"]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": xr["metadata"].get("namespace", "")},
        "data": {field: text(spec[field]) for field in FIELDS if field in spec},
    }
{%- else %}
    """Want the namespace always, what lives in it as soon as it exists."""
    response = StationResponse.to(request)
    home = str(request.xr["metadata"]["name"])
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}}
    response.want("namespace", namespace)
    if request.observed_resource("namespace") is not None:
        response.want("settings", settings(home, request.xr["spec"]))
{%- if cookiecutter.tells %}
    response.merge_status({"namespace": home})
{%- endif %}
    return response


def settings(namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the order as text: a ConfigMap holds nothing else."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": namespace},
        "data": {field: text(spec[field]) for field in FIELDS if field in spec},
    }
{%- endif %}


def text(value: object) -> str:
    """Return a value as text, the same every time."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
