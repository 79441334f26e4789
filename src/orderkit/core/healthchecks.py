"""
Argo CD's health checks of a pack: one entry of ``argocd-cm`` per kind that its kits define.

Without one, Argo CD counts an order as healthy before it is begun. `with_kind` adds an entry as
text at the end of the file and leaves every other byte alone; `without_kinds` takes all of them
out. The Lua itself is the same for each kind; ``core.health`` judges in the same way.

Called by ``flows.starting`` and by what adds kits to a pack.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from orderkit.core.errors import InvalidInputError
from orderkit.core.manifests import parse_manifests
from orderkit.core.objects import CONFIG_MAP, Kind, Manifest

SETTINGS = PurePosixPath("gitops", "argocd", "argocd-cm.yaml")
KEY = "resource.customizations.health.{group}_{kind}"
_KITS = "  # one key per kind that the kits define; the text is the same for each\n"
_LUA = """\
    local function observed(c)
      return c.observedGeneration == nil or c.observedGeneration == obj.metadata.generation
    end
    local found = {}
    if obj.status ~= nil and obj.status.conditions ~= nil then
      for _, c in ipairs(obj.status.conditions) do found[c.type] = c end
    end
    local synced = found["Synced"]
    if synced ~= nil and synced.status == "False" and observed(synced) then
      return {status = "Degraded", message = synced.message or ""}
    end
    for _, name in ipairs({"Synced", "Ready"}) do
      local c = found[name]
      if c == nil then
        return {status = "Progressing", message = "condition " .. name .. " is not there yet"}
      end
      if c.status ~= "True" or not observed(c) then
        return {status = "Progressing", message = c.message or ""}
      end
    end
    return {status = "Healthy", message = ""}
"""


def without_kinds(data: bytes) -> bytes:
    """
    Return the settings without the entries of kits; what else they hold stays.

    Raises:
        InvalidInputError: The line below which they stand is missing.
    """
    kept, line, _ = data.decode().partition(_KITS)
    if not line:
        raise InvalidInputError(str(SETTINGS), None, f"lacks the line '{_KITS.strip()}'")
    return f"{kept}{line}".encode()


def with_kind(data: bytes, kind: Kind) -> bytes:
    """
    Return the settings with an entry for a kind; the same bytes if it has one.

    Raises:
        InvalidInputError: The file is not laid out so that an entry can be added at its end.
    """
    key = KEY.format(group=kind.group, kind=kind.kind)
    before = _entries(data)
    if key in before:
        return data
    text = data.decode()
    added = f"{text}{'' if text.endswith(chr(10)) else chr(10)}  {key}: |\n{_LUA}".encode()
    wanted = {**before, key: "".join(line[4:] for line in _LUA.splitlines(keepends=True))}
    if _entries(added) != wanted:
        raise InvalidInputError(
            str(SETTINGS),
            key,
            "cannot be added at the end of the file",
            hint="let data: be the last key there, indented by two; or add the entry by hand",
        )
    return added


def _entries(data: bytes) -> dict[str, str]:
    found: list[Manifest] = [
        manifest
        for manifest in parse_manifests(str(SETTINGS), data)
        if Kind.of(manifest) == CONFIG_MAP
    ]
    if len(found) != 1:
        raise InvalidInputError(str(SETTINGS), len(found), "ConfigMaps: one is needed")
    return dict(found[0].get("data") or {})
