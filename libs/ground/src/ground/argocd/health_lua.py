"""
The health checks that Argo CD runs for a pack's objects, in Lua.

Argo CD runs a check without Lua's libraries for text and numbers and gives it the object as
``obj``. One that is being deleted never gets here: Argo CD says Progressing itself. A layer's check
is for waves, so Degraded means that nothing changes until somebody changes Git, and everything that
may come right by itself is Progressing. An order's check is for eyes, so a pipeline that fails is
Degraded at once.

``argocd.health`` judges the same way for the embedded platform; one table of cases holds for both.
"""

from __future__ import annotations

__all__ = [
    "APPLICATION",
    "CONFIGURED",
    "DEFINITION",
    "LAYER_LABEL",
    "PACKAGE",
    "RECONCILED",
    "REVISION",
]

LAYER_LABEL = "orderkit.dev/layer"
"""On an Application that others wait for. An order has none: a bad one must look red alone."""

APPLICATION = f"""\
-- An Application is as healthy as it says. One that others wait for (a layer) must also have
-- been applied: Argo CD calls it Healthy before it looked, and when it cannot read its files.
local status = obj.status or {{}}
local sync, operation = status.sync or {{}}, status.operationState or {{}}
if (obj.metadata.labels or {{}})["{LAYER_LABEL}"] ~= nil then
  local said = operation.message or ""
  if sync.status == nil or sync.status == "Unknown" then
    local first = (status.conditions or {{}})[1] or {{}}
    return {{status = "Progressing", message = first.message or "not compared yet"}}
  end
  if operation.phase == "Running" or operation.phase == "Terminating" then
    return {{status = "Progressing", message = said}}
  end
  if sync.status ~= "Synced" then
    if operation.phase == nil then
      return {{status = "Progressing", message = "not applied yet"}}
    end
    if (operation.syncResult or {{}}).revision ~= sync.revision then
      return {{status = "Progressing", message = "a newer commit is not applied yet"}}
    end
    if operation.phase ~= "Succeeded" then  -- all retries are used up
      return {{status = "Degraded", message = said}}
    end
  end
end
local health = status.health or {{}}
if health.status == nil then
  return {{status = "Progressing", message = "not assessed yet"}}
end
return {{status = health.status, message = health.message or ""}}
"""

_CONDITIONS = """\
local status, found = obj.status or {}, {}
for _, c in ipairs(status.conditions or {}) do found[c.type] = c end
local function older(c)
  return c.observedGeneration ~= nil and c.observedGeneration ~= obj.metadata.generation
end
local function progressing(message)
  return {status = "Progressing", message = message or ""}
end
"""

_PAUSED = """\
local synced = found["Synced"]
if synced ~= nil and synced.reason == "ReconcilePaused" then
  return {status = "Suspended", message = synced.message or ""}
end
"""

DEFINITION = f"""\
-- An XRD is ready when the CRD of this generation is; a stale Established lies.
{_CONDITIONS}\
local c = found["Established"]
if c == nil then return progressing("condition Established is not there yet") end
if older(c) then return progressing("condition Established is of an older generation") end
if c.status == "True" then return {{status = "Healthy", message = ""}} end
if c.status == "False" then return {{status = "Degraded", message = c.message or ""}} end
return progressing(c.message)
"""

PACKAGE = f"""\
-- A package pulls, unpacks and starts by itself: nothing here says that it never will.
-- After a new version is wanted, the conditions still speak of the one before.
{_CONDITIONS}{_PAUSED}\
for _, name in ipairs({{"Installed", "Healthy"}}) do
  local c = found[name]
  if c == nil then return progressing("condition " .. name .. " is not there yet") end
  if older(c) then return progressing("condition " .. name .. " is of an older generation") end
  if c.reason == "InactivePackageRevision" then  -- waits for a person
    return {{status = "Suspended", message = c.message or ""}}
  end
  if c.status ~= "True" then return progressing(c.message) end
end
if status.currentIdentifier ~= nil and status.currentIdentifier ~= obj.spec.package then
  return progressing("still installed: " .. status.currentIdentifier)
end
return {{status = "Healthy", message = ""}}
"""

REVISION = f"""\
-- A Composition has no status; its revisions say whether their functions can do what is asked.
{_CONDITIONS}\
local c = found["ValidPipeline"]
if c == nil then return progressing("condition ValidPipeline is not there yet") end
if c.status == "True" then return {{status = "Healthy", message = ""}} end
if c.status == "False" then return {{status = "Degraded", message = c.message or ""}} end
return progressing(c.message)
"""

RECONCILED = f"""\
-- Synced and Ready at this generation: Ready keeps its last value when a pipeline fails.
-- Responsive is said when a round begins: one that began before a change says the others of it.
{_CONDITIONS}{_PAUSED}\
if synced ~= nil and synced.status == "False" and not older(synced) then
  return {{status = "Degraded", message = synced.message or ""}}
end
for _, name in ipairs({{"Synced", "Ready"}}) do
  local c = found[name]
  if c == nil then return progressing("condition " .. name .. " is not there yet") end
  if c.status ~= "True" or older(c) then return progressing(c.message) end
end
if found["Responsive"] ~= nil and older(found["Responsive"]) then
  return progressing("a round with the newest values has not begun yet")
end
return {{status = "Healthy", message = ""}}
"""

CONFIGURED = """\
-- It only says how to log in: it has no conditions, and waiting for some would last for ever.
return {status = "Healthy", message = ""}
"""
