"""
``catalog:register``, ``catalog:fetch`` and ``catalog:write``.

On Gitea, a ``catalogInfoPath`` with a leading slash is refused, because Backstage then loses the
branch of the URL and fails (measured). The default, ``/catalog-info.yaml``, has one: set the path.
``catalog:write`` adds the annotation that names the template, as Backstage does.
"""

from __future__ import annotations

import re
from typing import Any

from ground.errors import InvalidInputError, NotFoundError, OrderkitError
from ground.names import fold_reference
from orderkit.flows.template.actions.action_context import (
    ANYTHING,
    FLAG,
    MAP,
    TEXT,
    TEXTS,
    ActionContext,
    Inputs,
    Outputs,
    TemplateAction,
    inputs_schema,
    outputs_schema,
)
from orderkit.flows.template.actions.fetch_folder import target_path
from softwaretemplates.npm_yaml import dump
from softwaretemplates.render import SkeletonFile

_SOURCE_TEMPLATE = "backstage.io/source-template"
_REF = re.compile(r"(?:(?P<kind>[^:/]+):)?(?:(?P<namespace>[^:/]+)/)?(?P<name>[^:/]+)\Z")


def _register(context: ActionContext, inputs: Inputs) -> Outputs:
    has_root = context.services.forge.capabilities.pages.has_root
    target = _target(inputs, has_root=has_root)
    try:
        refs = list(context.services.catalog.register(target))
    except OrderkitError as error:
        if not inputs.get("optional"):
            raise
        context.log(f"not registered: {error}")
        return {"catalogInfoUrl": target}
    context.log(f"registered {', '.join(refs) or target}")
    components = [ref for ref in refs if ref.startswith("component:")]
    outputs: Outputs = {"catalogInfoUrl": target}
    if refs:
        outputs["entityRef"] = (components or refs)[0]
    return outputs


def _target(inputs: Inputs, *, has_root: bool) -> str:
    url, contents = inputs.get("catalogInfoUrl"), inputs.get("repoContentsUrl")
    if url and not contents:
        return str(url)
    if not contents or url:
        raise InvalidInputError(
            "catalogInfoUrl", url, "is needed, or repoContentsUrl with catalogInfoPath, not both"
        )
    path = inputs.get("catalogInfoPath", "/catalog-info.yaml")
    if path.startswith("/") and not has_root:
        raise InvalidInputError(
            "catalogInfoPath",
            path,
            "starts with a slash; the branch would be lost",
            hint=f"write '{path.lstrip('/')}'",
        )
    return f"{contents.rstrip('/')}/{path.lstrip('/')}"


def _fetch(context: ActionContext, inputs: Inputs) -> Outputs:
    ref_input, ref_inputs = inputs.get("entityRef"), inputs.get("entityRefs")
    if not ref_input and ref_inputs is None:
        if inputs.get("optional"):
            return {}
        raise InvalidInputError("entityRef", ref_input, "is missing, and so is entityRefs")
    outputs: Outputs = {}
    if ref_input:
        outputs["entity"] = _entity(context, ref_input, inputs)
    if ref_inputs is not None:
        outputs["entities"] = [_entity(context, ref, inputs) for ref in ref_inputs]
    return outputs


def _entity(context: ActionContext, ref: str, inputs: Inputs) -> Any:
    entity = context.services.catalog.entity(_full_ref(ref, inputs))
    if entity is None and not inputs.get("optional"):
        raise NotFoundError(
            f"{ref}: the catalog has no such entity",
            hint="check the reference, or set optional: true to go on with null",
        )
    context.log(f"{ref} {'is not in the catalog' if entity is None else 'fetched'}")
    return entity


def _full_ref(ref: str, inputs: Inputs) -> str:
    """Complete a reference, lower case, as the catalog compares them."""
    parts = _REF.match(ref)
    kind = (parts and parts["kind"]) or inputs.get("defaultKind")
    if parts is None or not kind:
        raise InvalidInputError(
            "entityRef",
            ref,
            "is not an entity reference with a kind",
            hint="write component:default/name, or set defaultKind",
        )
    namespace = parts["namespace"] or inputs.get("defaultNamespace") or "default"
    return fold_reference(f"{kind}:{namespace}/{parts['name']}")


def _write(context: ActionContext, inputs: Inputs) -> Outputs:
    target = target_path(inputs.get("filePath", "catalog-info.yaml"))
    entity = dict(inputs["entity"])
    metadata = dict(entity.get("metadata") or {})
    annotations = dict(metadata.get("annotations") or {})
    metadata["annotations"] = {**annotations, _SOURCE_TEMPLATE: context.template_ref}
    entity["metadata"] = metadata
    context.put(target, SkeletonFile(dump(entity).encode()))
    context.log(f"wrote {target}")
    return {}


CATALOG_REGISTER = TemplateAction(
    "catalog:register",
    inputs_schema(
        (), catalogInfoUrl=TEXT, repoContentsUrl=TEXT, catalogInfoPath=TEXT, optional=FLAG
    ),
    _register,
    outputs_schema(entityRef=TEXT, catalogInfoUrl=TEXT),
    remote=True,
)
CATALOG_FETCH = TemplateAction(
    "catalog:fetch",
    inputs_schema(
        (),
        entityRef=TEXT,
        entityRefs=TEXTS,
        optional=FLAG,
        defaultKind=TEXT,
        defaultNamespace=TEXT,
    ),
    _fetch,
    outputs_schema(entity=ANYTHING, entities={"type": "array", "items": ANYTHING}),
    dry_run=True,
    remote=True,
)
CATALOG_WRITE = TemplateAction(
    "catalog:write",
    inputs_schema(("entity",), filePath=TEXT, entity=MAP),
    _write,
    dry_run=True,
    writes=lambda inputs: [inputs.get("filePath", "catalog-info.yaml")],
)
