"""
Actions on the portal: ``http:backstage:request`` and ``catalog:*``.

``http:backstage:request`` sends one HTTP request through the portal. It is like Roadie's action,
with one difference: if the service refuses, the error contains the status and the service's short
message, not only "Unable to complete request". ``idempotencyKey`` and ``useBackstageToken``
configure the portal's task recovery and tokens, and have no effect here.

``catalog:register`` refuses, on Gitea, a ``catalogInfoPath`` with a leading slash, because
Backstage then loses the branch of the URL and fails (measured). The default,
``/catalog-info.yaml``, has one: set the path. ``catalog:fetch`` reads an entity. ``catalog:write``
adds the annotation that names the template, as Backstage does.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlencode

from ground.errors import InvalidInputError, NotFoundError, OrderkitError, RemoteError, shorten
from ground.names import fold_reference
from orderkit.flows.template.actions.action_context import (
    ANYTHING,
    FLAG,
    MAP,
    NUMBER,
    TEXT,
    TEXTS,
    ActionContext,
    Inputs,
    Outputs,
    TemplateAction,
    inputs_schema,
    outputs_schema,
)
from orderkit.flows.template.actions.workspace_actions import target_path
from orderkit.ports.portal import PortalResponse
from softwaretemplates.npm_yaml import dump
from softwaretemplates.render import SkeletonFile
from softwaretemplates.render.javascript import text, to_json

_METHODS = ["GET", "HEAD", "OPTIONS", "POST", "UPDATE", "DELETE", "PUT", "PATCH"]
_BAD = 400
_ILLEGAL = re.compile(r"[^\t\x20-\x7e\x80-\xff]")
"""A character that HTTP does not allow in a header, as in npm's node-fetch."""


class RequestFailedError(RemoteError):
    """The service answered with an error status."""

    def __init__(self, message: str, *, code: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


def _request(context: ActionContext, inputs: Inputs) -> Outputs:
    path = inputs["path"] if inputs["path"].startswith("/") else f"/{inputs['path']}"
    if inputs.get("logRequestPath", True):
        context.log(f"{inputs['method']} {path}")
    query = urlencode({key: text(value) for key, value in inputs.get("params", {}).items()})
    headers = {name: text(value) for name, value in inputs.get("headers", {}).items()}
    illegal = [value for value in headers.values() if _ILLEGAL.search(value)]
    if illegal:  # a template's own sentence may fail a task this way (core.portal.refusal_step)
        raise RemoteError(f"{shorten(illegal[0], limit=1_000)} is not a legal HTTP header value")
    response = context.services.portal.request(
        inputs["method"],
        f"{path}?{query}" if query else path,
        headers=headers,
        body=_body(inputs.get("body"), headers),
        timeout_s=inputs.get("timeout", 60_000) / 1000,
    )
    body = _parsed(response)
    if response.code >= _BAD:
        failure = _failure(inputs["method"], path, response.code, body)
        context.log(str(failure))
        if not inputs.get("continueOnBadResponse"):
            raise failure
        return {"code": response.code, "headers": {}, "body": body}
    return {"code": response.code, "headers": dict(response.headers), "body": body}


def _body(value: Any, headers: dict[str, str]) -> bytes | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value.encode()
    kinds = [content.lower() for name, content in headers.items() if name.lower() == "content-type"]
    if not any("json" in kind for kind in kinds):
        raise InvalidInputError(
            "body",
            value,
            "is not text and no JSON content type is set",
            hint="add the header content-type: application/json; the portal would send "
            "'[object Object]'",
        )
    return str(to_json(value)).encode()


def _parsed(response: PortalResponse) -> Any:
    if "application/json" not in response.headers.get("content-type", ""):
        return {"message": response.body.decode(errors="replace")}
    try:
        return json.loads(response.body) if response.body else {}
    except ValueError as error:
        raise RemoteError(
            f"the service announced JSON and sent {shorten(repr(response.body[:200]))}"
        ) from error


def _failure(method: str, path: str, code: int, body: Any) -> RequestFailedError:
    message, hint = _words(body)
    return RequestFailedError(
        f"{method} {path}: the service answered {code}: {message}", code=code, hint=hint
    )


def _words(body: Any) -> tuple[str, str]:
    """Find the readable message, and a hint, in a service's error body."""
    if isinstance(body, dict):
        error = body.get("error")
        inner = error if isinstance(error, dict) else body
        message = inner.get("message") or (error if isinstance(error, str) else "")
        hint = inner.get("hint")
        if isinstance(message, str) and message:
            return shorten(message, limit=500), shorten(hint) if isinstance(hint, str) else ""
    return shorten(json.dumps(body, ensure_ascii=False)), ""


HTTP_BACKSTAGE_REQUEST = TemplateAction(
    "http:backstage:request",
    inputs_schema(
        ("path", "method"),
        path=TEXT,
        method={"enum": _METHODS},
        headers=MAP,
        params=MAP,
        body=ANYTHING,
        logRequestPath=FLAG,
        continueOnBadResponse=FLAG,
        timeout=NUMBER,
        useBackstageToken=FLAG,
        idempotencyKey=TEXT,
    ),
    _request,
    outputs_schema(code=NUMBER, headers=MAP, body=ANYTHING),
    remote=True,
)


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
    # with it, Backstage loses the branch of the URL and fails (measured on Gitea)
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
