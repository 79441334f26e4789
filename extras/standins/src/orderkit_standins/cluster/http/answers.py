"""Responses: JSON, ``Status`` objects, warnings; and which representation was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from starlette.responses import Response

from ground.errors import shorten
from ground.objects.kube_objects import Manifest
from orderkit_standins.cluster.documents import encode
from orderkit_standins.cluster.refusals import ApiRefusal, RefusalSubject

_WARNINGS_MAX = 20

Representation = Literal["object", "table", "partial"]


def document(body: Manifest, *, code: int = 200, warnings: Sequence[str] = ()) -> Response:
    """Return a JSON response; each warning becomes a ``Warning`` header for kubectl to print."""
    response = Response(encode(body), status_code=code, media_type="application/json")
    for warning in warnings[:_WARNINGS_MAX]:
        response.headers.append("Warning", f'299 - "{_header_text(warning)}"')
    return response


def _header_text(text: str) -> str:
    """Return foreign text as the inside of a quoted header value."""
    plain = "".join(c if c.isascii() and c.isprintable() else "?" for c in shorten(text))
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def representation(accept: str) -> Representation:
    """Return what the first understood alternative of an Accept header asks for."""
    for alternative in accept.split(","):
        parameters = {parameter.strip().lower() for parameter in alternative.split(";")}
        if "as=table" in parameters:
            return "table"
        if parameters & {"as=partialobjectmetadata", "as=partialobjectmetadatalist"}:
            return "partial"
        if "application/json" in parameters or "*/*" in parameters:
            return "object"
    return "object"


def failure(code: int, reason: str, message: str) -> Manifest:
    """Return a Status of kind Failure."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def status_of(refusal: ApiRefusal) -> Manifest:
    """Return the Status that tells a client about a refusal."""
    status = failure(refusal.code, refusal.reason, str(refusal))
    if refusal.subject is not None or refusal.causes:
        status["details"] = _details(refusal)
    return status


def _details(refusal: ApiRefusal) -> Manifest:
    details: Manifest = {}
    subject = refusal.subject
    if subject is not None:
        kind = subject.kind if refusal.reason == "Invalid" else subject.plural
        details = {"name": subject.name, "group": subject.group, "kind": kind}
    if refusal.causes:
        details["causes"] = [
            {"reason": cause.reason, "message": cause.message, "field": cause.field}
            for cause in refusal.causes
        ]
    return details


def success(subject: RefusalSubject, uid: str) -> Manifest:
    """Return the Status of a deletion that is complete."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {
            "name": subject.name,
            "group": subject.group,
            "kind": subject.plural,
            "uid": uid,
        },
    }


NO_SUCH_PATH = failure(404, "NotFound", "the server could not find the requested resource")
NO_SUCH_METHOD = failure(
    405, "MethodNotAllowed", "the server does not allow this method on the requested resource"
)
INTERNAL_ERROR = failure(
    500,
    "InternalError",
    "an error on the server has prevented the request from succeeding; its log has the trace",
)
UNAUTHORIZED = failure(401, "Unauthorized", "Unauthorized")
