"""
Which fields of an object somebody applied: the object, cut down to what ``managedFields`` says.

The notation is the API server's: ``f:name`` is a map's key, ``k:{...}`` an element of a list with
keys, ``v:...`` an element of a set, ``.`` the thing itself; an empty set means all that is below.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Manifest = dict[str, Any]
COMPOSED = "apiextensions.crossplane.io/composed/"
"""How the field managers of composed resources begin, one for each XR."""


def applied_fields(found: Manifest) -> Manifest:
    """Return the object with the fields that the XRs of Crossplane applied, and no others."""
    cut: Manifest = {"apiVersion": found["apiVersion"], "kind": found["kind"]}
    for entry in found["metadata"].get("managedFields") or ():
        ours = entry["manager"].startswith(COMPOSED) and entry["operation"] == "Apply"
        if ours and not entry.get("subresource"):
            cut |= _cut(found, entry["fieldsV1"])
    return cut


def _cut(value: Any, fields: Mapping[str, Any]) -> Any:
    below = {key: inner for key, inner in fields.items() if key != "."}
    if not below and "." not in fields:
        return value
    if isinstance(value, dict):
        names = {key.removeprefix("f:"): inner for key, inner in below.items()}
        return {name: _cut(value[name], inner) for name, inner in names.items() if name in value}
    if isinstance(value, list):
        return [
            _cut(item, inner) for item in value for key, inner in below.items() if _is(item, key)
        ]
    return value


def _is(item: Any, key: str) -> bool:
    sort, _, text = key.partition(":")
    wanted = json.loads(text)
    if sort == "v":
        return bool(item == wanted)
    return isinstance(item, dict) and all(item.get(name) == value for name, value in wanted.items())
