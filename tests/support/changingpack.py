"""The reference pack with a garage of more fields, so that there is something to change."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml

from orderkit.adapters.folders.pack_folder import reference_pack

FIELDS: dict[str, Any] = {
    "budget": {"type": "integer", "minimum": 0},
    "guests": {"type": "array", "items": {"type": "string"}},
    "note": {"type": "string", "maxLength": 40},
    "colour": {"type": "string"},
    "motto": {"type": "string"},
    "plate": {"type": "string"},
    "laps": {"type": "integer"},
    "level": {"type": "string", "enum": ["low", "middle", "high"]},
    "serial": {
        "type": "string",
        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "serial is for ever"}],
    },
    "pit": {
        "type": "object",
        "properties": {"bays": {"type": "integer"}, "lift": {"type": "boolean"}},
    },
}
CHANGES: list[dict[str, Any]] = [
    {"name": "stage", "fields": ["stage"]},
    {"name": "budget", "fields": ["budget"], "direction": "grow"},
    {"name": "details", "fields": ["guests", "note", "pit", "serial", "laps"]},
    {"name": "level", "fields": ["level"], "direction": "step"},
    {
        "name": "paint",
        "fields": ["colour", "motto"],
        "how": "review",
        "warning": "The bay is closed while the paint dries.",
    },
    {"name": "plate", "fields": ["plate"], "direction": "never"},
]
LIFT = '''"""The bay, and a room for the lift while there is one; a level without it is refused."""

from __future__ import annotations

from .bay import station as bay


def station(request):
    response = bay(request)
    spec = request.xr["spec"]
    pit = spec.get("pit") or {}
    room = {"name": f"lift-{spec['teamName']}"}
    if pit.get("lift"):
        response.want("lift", {"apiVersion": "v1", "kind": "Namespace", "metadata": room})
    elif pit.get("bays") == 99:
        response.fatal("99 bays need a lift")
    return response
'''


def changing_pack(target: Path) -> Path:
    """Copy the reference pack to `target` and give its garage more fields."""
    source = reference_pack()
    target.mkdir()
    shutil.copy(source / "pack.yaml", target)
    for part in ("templates", "stations", "gitops"):
        shutil.copytree(source / part, target / part)
    definition = target / "gitops" / "apis" / "garage" / "definition.yaml"
    xrd = yaml.safe_load(definition.read_text())
    schema = xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"].update(FIELDS)
    definition.write_text(yaml.safe_dump(xrd, sort_keys=False))
    kit = target / "templates" / "garage" / "kit.yaml"
    found = yaml.safe_load(kit.read_text())
    found["spec"]["changes"] = CHANGES
    kit.write_text(yaml.safe_dump(found, sort_keys=False))
    stations = target / "stations" / "garage"
    (stations / "station.py").rename(stations / "bay.py")
    (stations / "station.py").write_text(LIFT)
    return target
