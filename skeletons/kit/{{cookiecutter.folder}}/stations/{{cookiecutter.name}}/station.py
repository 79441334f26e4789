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

from orderkit.stations import Manifest, Parts, StationRequest, StationResponse, manifest

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
    parts = Parts(request, response)
    parts.want("settings", settings(request.xr["spec"]))
{%- if cookiecutter.tells %}
    response.merge_status({"settings": parts.name("settings")})
{%- endif %}
    return response
{%- else %}
    """Want the namespace always, what lives in it as soon as it exists."""
    response = StationResponse.to(request)
    home = str(request.xr["metadata"]["name"])
    response.want("namespace", manifest("v1", "Namespace", home))
    inside = Parts(request, response, namespace=home, after=("namespace",))
    inside.want("settings", settings(request.xr["spec"]))
{%- if cookiecutter.tells %}
    response.merge_status({"namespace": home})
{%- endif %}
    return response
{%- endif %}


def settings(spec: dict[str, Any]) -> Manifest:
    """Return the fields of the order as text: a ConfigMap holds nothing else."""
    data = {field: text(spec[field]) for field in FIELDS if field in spec}
    return manifest("v1", "ConfigMap", data=data)


def text(value: object) -> str:
    """Return a value as text, the same every time."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
