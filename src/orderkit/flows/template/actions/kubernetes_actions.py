"""
``cnoe:kubernetes:apply`` and ``cnoe:utils:sanitize``, with the inputs of CNOE's actions.

Uses server-side apply with our own field manager and without force: repeating a step makes no
second object, and a field with another owner is a conflict. Without ``clusterName`` CNOE's action
silently does nothing; this one fails. A platform has one cluster, so the name is not looked up. An
object without a fixed name is refused, because every run would create another one.
"""

from __future__ import annotations

from typing import Any

from ground.errors import InvalidInputError, NotFoundError
from ground.objects.kube_objects import Kind, Manifest
from orderkit.flows.template.actions.action_context import (
    FLAG,
    MAP,
    TEXT,
    ActionContext,
    Inputs,
    Outputs,
    TemplateAction,
    inputs_schema,
    outputs_schema,
)
from orderkit.flows.template.actions.fetch_folder import target_path
from softwaretemplates.npm_yaml import dump
from yamlfiles.manifests import ManifestError, parse_manifests

FIELD_OWNER = "orderkit-scaffolder"
_SOURCES = ("manifestString", "manifestObject", "manifestPath")


def _apply(context: ActionContext, inputs: Inputs) -> Outputs:
    if not inputs.get("clusterName"):
        raise InvalidInputError(
            "clusterName",
            inputs.get("clusterName"),
            "is missing; CNOE's action would apply nothing and say so nowhere",
            hint="write clusterName: local",
        )
    manifests = [_checked(manifest, inputs) for manifest in _manifests(context, inputs)]
    for manifest in manifests:
        context.services.cluster.apply(manifest, owner=FIELD_OWNER, force=False)
        context.log(f"applied {_label(manifest)}")
    return {}


def _manifests(context: ActionContext, inputs: Inputs) -> tuple[Manifest, ...]:
    inputs_given = [name for name in _SOURCES if name in inputs]
    if len(inputs_given) != 1:
        raise InvalidInputError(
            "manifestString",
            inputs_given,
            "is not exactly one of the three inputs",
            hint=f"give one of {', '.join(_SOURCES)}",
        )
    if "manifestObject" in inputs:
        return (dict(inputs["manifestObject"]),)
    name, data = "manifestString", str(inputs.get("manifestString", "")).encode()
    if "manifestPath" in inputs:
        path = target_path(inputs["manifestPath"])
        if path not in context.workspace:
            raise NotFoundError(f"manifestPath: {path} is not in the workspace")
        name, data = str(path), context.workspace[path].data
    manifests = parse_manifests(name, data)
    if not manifests:
        raise InvalidInputError(inputs_given[0], "", "holds no object")
    return manifests


def _checked(manifest: Manifest, inputs: Inputs) -> Manifest:
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise InvalidInputError(
            "metadata.name",
            None,
            f"is missing in an object of kind {manifest.get('kind')}",
            hint="give it a name: with generateName every run would make another object",
        )
    try:
        Kind.of(manifest)
    except ValueError as error:
        raise ManifestError("manifestObject", str(error)) from error
    if inputs.get("namespaced") and not metadata.get("namespace"):
        return {**manifest, "metadata": {**metadata, "namespace": "default"}}
    return manifest


def _label(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    prefix = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{manifest['kind']} {prefix}{metadata['name']}"


def _sanitize(context: ActionContext, inputs: Inputs) -> Outputs:
    from yamlfiles import yaml12

    document = yaml12.load(inputs["document"].encode(), name="document")
    context.log("removed what is empty")
    return {"sanitized": dump(_cleaned(document))}


def _cleaned(value: Any) -> Any:
    """Drop null, empty maps and empty lists, including those that this makes empty."""
    if isinstance(value, dict):
        cleaned = {key: _cleaned(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if item not in (None, {}, [])}
    if isinstance(value, list):
        return [item for item in map(_cleaned, value) if item not in (None, {}, [])]
    return value


CNOE_KUBERNETES_APPLY = TemplateAction(
    "cnoe:kubernetes:apply",
    inputs_schema(
        ("namespaced",),
        manifestString=TEXT,
        manifestObject=MAP,
        manifestPath=TEXT,
        namespaced=FLAG,
        clusterName=TEXT,
    ),
    _apply,
    remote=True,
)
CNOE_UTILS_SANITIZE = TemplateAction(
    "cnoe:utils:sanitize",
    inputs_schema(("document",), document=TEXT),
    _sanitize,
    outputs_schema(sanitized=TEXT),
    dry_run=True,
)
