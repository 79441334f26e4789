"""
``catalog:register``: make the portal read a ``catalog-info.yaml``.

A ``catalogInfoPath`` with a leading slash is refused: on Gitea Backstage then loses the
branch and fails (measured). Its default, ``/catalog-info.yaml``, has one, so name the path.
"""

from __future__ import annotations

from orderkit.core.errors import InvalidInputError, OrderkitError
from orderkit.flows.actions.context import (
    FLAG,
    TEXT,
    Action,
    ActionContext,
    Inputs,
    Outputs,
    inputs_schema,
)


def _register(context: ActionContext, inputs: Inputs) -> Outputs:
    target = _target(inputs)
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


def _target(inputs: Inputs) -> str:
    url, contents = inputs.get("catalogInfoUrl"), inputs.get("repoContentsUrl")
    if url and not contents:
        return str(url)
    if not contents or url:
        raise InvalidInputError(
            "catalogInfoUrl", url, "is needed, or repoContentsUrl with catalogInfoPath, not both"
        )
    path = inputs.get("catalogInfoPath", "/catalog-info.yaml")
    if path.startswith("/"):
        raise InvalidInputError(
            "catalogInfoPath",
            path,
            "starts with a slash; the branch would be lost",
            hint=f"write '{path.lstrip('/')}'",
        )
    return f"{contents.rstrip('/')}/{path}"


CATALOG_REGISTER = Action(
    "catalog:register",
    inputs_schema(
        (), catalogInfoUrl=TEXT, repoContentsUrl=TEXT, catalogInfoPath=TEXT, optional=FLAG
    ),
    _register,
)
