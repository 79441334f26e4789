"""
A twin of function-patch-and-transform: resource templates, filled in by patches.

Follows v0.10.8 (August 2026). Supports everything its input can ask for: patch sets, patches from
and to the XR and the environment, combining patches, all policies, transforms, readiness checks and
connection details, with the result messages that people see. Accidental behaviour of the real
function is reproduced too: the readiness that an earlier step gave to the XR, or to a template
without base, is lost, and whole numbers are floats until they pass through JSON. They arrive over
the wire as floats, so the check MatchInteger never finds an integer there and warns.

Refused by name (`OpaqueError`): formats, regular expressions and values that ``go_values`` and
``transforms`` cannot compute as Go does, and input on which the function crashes. The messages
about malformed JSON and fields of a wrong type are ours.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compositions.function_twins import environment, field_paths, patch_input
from compositions.function_twins.field_paths import NoSuchFieldError, PathError, quoted
from compositions.function_twins.go_values import from_json, from_wire, json_text
from compositions.function_twins.patches import (
    Data,
    Objects,
    Patch,
    PatchError,
    is_required,
    patch_composed,
    patch_environment,
    patched,
    to_composed,
)
from compositions.station import Ready, Resource, StationRequest, StationResponse
from ground.objects.kube_objects import dig

_Data = dict[str, Any]
_SECRET_TYPE = "connection.crossplane.io/v1alpha1"  # noqa: S105 - the type of a Secret


class CheckError(Exception):
    """A readiness check that cannot be run; the message is the function's."""


def is_ready(observed: _Data, checks: Sequence[Mapping[str, Any]]) -> bool:
    """
    Return whether all checks pass; without checks, whether the condition Ready is True.

    Raises:
        CheckError: A field has another type than its check expects.
    """
    if not checks:
        return _condition(observed, "Ready") == "True"
    for number, check in enumerate(checks):
        try:
            if not _holds(observed, check):
                return False
        except NoSuchFieldError:
            return False
        except PathError as error:
            raise CheckError(f"cannot run readiness check at index {number}: {error}") from error
    return True


def _holds(observed: _Data, check: Mapping[str, Any]) -> bool:
    kind = check["type"]
    if kind == "None":
        return True
    if kind == "MatchCondition":
        condition_check = check["matchCondition"]
        return bool(_condition(observed, condition_check["type"]) == condition_check["status"])
    path = check["fieldPath"]
    if kind == "MatchString":
        return bool(field_paths.get_string(observed, path) == check["matchString"])
    value = field_paths.get(observed, path)
    if kind == "NonEmpty":
        return True
    if kind == "MatchInteger":
        if isinstance(value, bool) or not isinstance(value, int):
            raise PathError(f"{path}: not a (int64) number")
        return bool(value == check["matchInteger"])
    if not isinstance(value, bool):
        raise PathError(f"{path}: not a bool")
    return bool(value is (kind == "MatchTrue"))


def _condition(observed: _Data, type_: str) -> str:
    """Return the status of a condition; Unknown if it is missing, empty if there is no status."""
    if "status" not in observed:
        return ""
    conditions = dig(observed, "status", "conditions", default=None) or ()
    if not isinstance(conditions, list) or not all(isinstance(entry, dict) for entry in conditions):
        return ""
    for listed_condition in conditions:
        if listed_condition.get("type") == type_:
            return str(listed_condition.get("status") or "")
    return "Unknown"


def connection_details(
    observed: _Data, secret_data: Mapping[str, bytes], details: Sequence[Mapping[str, Any]]
) -> dict[str, bytes]:
    """Return the connection details for the XR. Missing values are left out."""
    published: dict[str, bytes] = {}
    for detail in details:
        kind, name = detail["type"], detail["name"]
        if kind == "FromValue":
            published[name] = detail["value"].encode()
        elif kind == "FromConnectionSecretKey":
            if detail["fromConnectionSecretKey"] in secret_data:
                published[name] = secret_data[detail["fromConnectionSecretKey"]]
        else:
            try:
                value = field_paths.get(observed, detail["fromFieldPath"])
            except PathError:
                continue
            published[name] = (value if isinstance(value, str) else json_text(value)).encode()
    return published


def keeps_details(xr: _Data) -> bool:
    """Return whether Crossplane stores connection details itself, which it does for v1 XRs only."""
    try:
        # only XRs of v2 have it
        field_paths.get(xr, "spec.crossplane")
    except PathError:
        return True
    return False


def connection_secret(
    xr: _Data, details: Mapping[str, bytes], settings: Mapping[str, Any] | None
) -> Resource:
    """
    Return the Secret with the connection details of an XR that has none of its own.

    Raises:
        PatchError: A patch of its name fails.
        OpaqueError: A patch uses something that is not supported here.
    """
    name, namespace = _reference(xr, settings or {})
    meta = {"name": name, "namespace": namespace}
    manifest: _Data = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {key: text for key, text in meta.items() if text},
        "data": {key: base64.b64encode(data).decode() for key, data in details.items()},
        "type": _SECRET_TYPE,
    }
    return Resource(manifest, Ready.TRUE)


def _reference(xr: _Data, settings: Mapping[str, Any]) -> tuple[str, str]:
    reference_of_xr = dig(xr, "spec", "writeConnectionSecretToRef", default=None)
    meta = xr.get("metadata") or {}
    if isinstance(reference_of_xr, dict):
        name, namespace = reference_of_xr.get("name") or "", reference_of_xr.get("namespace") or ""
    elif settings.get("name") or settings.get("namespace"):
        name, namespace = settings.get("name") or "", settings.get("namespace") or ""
    else:
        name, namespace = f"{meta.get('name') or ''}-connection", meta.get("namespace") or ""
    reference: _Data = {"apiVersion": "v1", "kind": "SecretReference", "name": name}
    return _patched_reference(xr, {**reference, "namespace": namespace}, settings)


def _patched_reference(xr: _Data, reference: _Data, settings: Mapping[str, Any]) -> tuple[str, str]:
    for number, patch in enumerate(settings.get("patches") or ()):
        kind = patch_input.type_of(patch)
        if kind not in {patch_input.FROM_COMPOSITE, patch_input.COMBINE_FROM_COMPOSITE}:
            raise PatchError(_secret_fault(f"unsupported patch type {kind} at index {number}"))
        try:
            reference = patched(patch, xr, reference)
        except (NoSuchFieldError, PatchError) as error:
            if kind == patch_input.FROM_COMPOSITE and not is_required(patch):
                continue
            message = f"cannot apply patch type {kind} at index {number}: {error}"
            raise PatchError(_secret_fault(message)) from error
    texts = (reference.get("name"), reference.get("namespace"))
    name, namespace = (text if isinstance(text, str) else "" for text in texts)
    return name, namespace


def _secret_fault(why: str) -> str:
    return (
        "cannot compose connection secret: cannot generate connection secret reference: "
        f"cannot apply connection secret patches: {why}"
    )


Template = Mapping[str, Any]


class _RefusedError(Exception):
    """The step ends fatally with the function's message."""


def patch_and_transform(request: StationRequest) -> StationResponse:
    """
    Render the templates of the step's input.

    Raises:
        OpaqueError: The input uses something that this twin does not do exactly.
    """
    response = StationResponse.to(request)
    why = patch_input.refusal(request.input)
    if why:
        response.fatal(why)
        return response
    try:
        _Run(request, response).run()
    except _RefusedError as error:
        response.fatal(str(error))
    return response


class _Run:
    """One run of the function."""

    def __init__(self, request: StationRequest, response: StationResponse) -> None:
        self._request, self._response = request, response
        xr: Data = from_wire(request.xr)
        self._details = dict(request.desired.composite.connection_details)
        desired: Data = from_wire(request.desired.composite.resource)
        same_kind: Data = {key: xr[key] for key in ("apiVersion", "kind") if key in xr}
        context_data = request.context.get(environment.KEY)
        env: Data = from_wire(context_data) if isinstance(context_data, dict) else {}
        self._objects = Objects(xr, {**desired, **same_kind}, environment.as_object(env))
        self._desired = dict(request.desired.resources)
        self._skipped = False

    def run(self) -> None:
        templates = list(self._templates())
        settings = self._request.input
        for number, patch in enumerate((settings.get("environment") or {}).get("patches") or ()):
            self._patch_environment(number, patch)
        for template, patches in templates:
            self._render(template, patches)
        if self._details and not keeps_details(self._objects.observed_xr):
            self._add_secret(settings.get("writeConnectionSecretToRef"))
        # Without this, Crossplane would report the XR as ready although the skipped resource is
        # missing.
        ready = Ready.FALSE if self._skipped else Ready.UNSPECIFIED
        desired = self._response.desired
        desired.composite = Resource(self._objects.desired_xr, ready, self._details)
        desired.resources = {name: self._without_connection(name) for name in self._desired}
        self._response.context = {
            **self._response.context,
            environment.KEY: self._objects.environment,
        }

    def _without_connection(self, name: str) -> Resource:
        """Return a desired resource as the function returns it: without connection details."""
        return Resource(self._desired[name].resource, self._desired[name].ready)

    def _templates(self) -> Iterator[tuple[Template, Sequence[Patch]]]:
        """Yield every template with its patches. Patch sets are expanded in place."""
        settings = self._request.input
        sets = {
            patch_set["name"]: patch_set.get("patches") or ()
            for patch_set in settings.get("patchSets") or ()
        }
        for template in settings.get("resources") or ():
            patches: list[Patch] = []
            for patch in template.get("patches") or ():
                if patch_input.type_of(patch) != patch_input.PATCH_SET:
                    patches.append(patch)
                    continue
                name = patch["patchSetName"]
                if name not in sets:
                    message = f"cannot resolve PatchSets: cannot find PatchSet by name {name}"
                    raise _RefusedError(message)
                patches += sets[name]
            yield template, patches

    def _patch_environment(self, number: int, patch: Patch) -> None:
        try:
            patch_environment(patch, self._objects)
        except (NoSuchFieldError, PatchError) as error:
            if isinstance(error, NoSuchFieldError) and not is_required(patch):
                return
            kind = patch_input.type_of(patch)
            message = (
                f"cannot apply the {quoted(kind)} environment patch at index {number}: {error}"
            )
            raise _RefusedError(message) from error

    def _render(self, template: Template, patches: Sequence[Patch]) -> None:
        name = template["name"]
        self._objects.desired = self._base(name, template.get("base"))
        self._objects.observed = None
        observed = self._request.observed.resources.get(name)
        ready = Ready.UNSPECIFIED
        if observed is not None:
            ready = self._observe(template, observed)
        for number, patch in enumerate(patches):
            if not self._apply(f"composed resource {quoted(name)}", number, patch):
                self._skipped = True
                return
        self._desired[name] = Resource(self._objects.desired, ready)

    def _base(self, name: str, base: Data | None) -> Data:
        if base is not None:
            if not base.get("kind"):
                message = f"cannot parse base template of composed resource {quoted(name)}"
                raise _RefusedError(f"{message}: Object 'Kind' is missing")
            manifest: Data = from_json(from_wire(base))
            return manifest
        if name not in self._desired:
            raise _RefusedError(
                f"composed resource {quoted(name)} has no base template, and was not produced by "
                "a previous Function in the pipeline"
            )
        earlier: Data = from_wire(self._desired[name].resource)
        return earlier

    def _observe(self, template: Template, existing: Resource) -> Ready:
        """Take over name, connection details and readiness of the existing resource."""
        observed: Data = from_wire(existing.resource)
        self._objects.observed = observed
        desired = self._objects.desired or {}
        for key in ("namespace", "name"):
            _rename(desired, key, (observed.get("metadata") or {}).get(key) or "")
        details = template.get("connectionDetails") or ()
        self._details |= connection_details(observed, existing.connection_details, details)
        try:
            ready = is_ready(observed, template.get("readinessChecks") or ())
        except CheckError as error:
            message = f"cannot check readiness of composed resource {quoted(template['name'])}"
            self._response.warning(f"{message}: {error}")
            return Ready.UNSPECIFIED
        return Ready.TRUE if ready else Ready.UNSPECIFIED

    def _apply(self, title: str, number: int, patch: Patch) -> bool:
        """Apply a patch. Return False if the resource must wait for a required source."""
        patch_title = f"{quoted(patch_input.type_of(patch))} patch at index {number}"
        try:
            patch_composed(patch, self._objects)
        except NoSuchFieldError as error:
            if not is_required(patch):
                return True
            if to_composed(patch) and self._objects.observed is None:
                self._response.warning(
                    f"not adding new {title} to desired state because {patch_title} has "
                    f"'policy.fromFieldPath: Required': {error}"
                )
                return False
            self._response.warning(
                f"cannot render {title} {patch_title}: ignoring 'policy.fromFieldPath: Required' "
                f"because 'to' resource already exists: {error}"
            )
        except PatchError as error:
            raise _RefusedError(f"cannot render {title} {patch_title}: {error}") from error
        return True

    def _add_secret(self, settings: Mapping[str, Any] | None) -> None:
        xr = self._objects.observed_xr
        try:
            secret = connection_secret(xr, self._details, settings)
        except PatchError as error:
            raise _RefusedError(str(error)) from error
        name = (xr.get("metadata") or {}).get("name") or ""
        self._desired[f"{name}-connection-secret"] = secret


def _rename(manifest: Data, key: str, text: str) -> None:
    # Like SetName and SetNamespace of Go's unstructured objects: an empty text removes the field.
    meta = manifest.setdefault("metadata", {})
    if text:
        meta[key] = text
    else:
        meta.pop(key, None)
        if not meta:
            del manifest["metadata"]
