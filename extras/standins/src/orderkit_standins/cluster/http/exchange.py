"""
Requests to the Kubernetes API and its responses: URLs, bodies, ``Status`` objects, warnings.

A path names kind, namespace, name and subresource. A request's body is JSON, YAML, or the protobuf
of a few built-in kinds. It is checked for what every endpoint needs: that it is an object of the
kind, name and namespace the URL speaks of. A response has the representation that was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from starlette.responses import Response

from ground.errors import shorten
from ground.objects.kube_objects import Manifest, metadata
from orderkit_standins.cluster.definitions import KindRegistry
from orderkit_standins.cluster.documents import decode, encode
from orderkit_standins.cluster.http import protobuf
from orderkit_standins.cluster.kinds import ServedKind
from orderkit_standins.cluster.refusals import (
    ApiRefusal,
    BadRequest,
    RefusalSubject,
    UnsupportedMediaType,
)
from yamlfiles.manifests import ManifestError, ManifestLimits, depth_exceeds, parse_documents

Subresource = Literal["", "status", "finalize"]
_NAMESPACES = "namespaces"


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """What a request is about. `name` empty: the collection; `namespace` None: everywhere."""

    served: ServedKind
    namespace: str | None
    name: str
    subresource: Subresource

    @property
    def where(self) -> str:
        return self.namespace or ""


def find_target(registry: KindRegistry, path: str) -> RequestTarget | None:
    """Return what a path means, or None if nothing is served there."""
    match [step for step in path.split("/") if step]:
        case ["api", version, *steps_below]:
            group = ""
        case ["apis", group, version, *steps_below]:
            pass
        case _:
            return None
    match steps_below:
        case [plural, namespace, *below] if plural == _NAMESPACES and len(below) > 0:
            if not group and below[0] in {"status", "finalize"} and len(below) == 1:
                return _target(registry, (group, version, plural), None, [namespace, *below])
            return _target(registry, (group, version, below[0]), namespace, below[1:])
        case [plural, *below]:
            return _target(registry, (group, version, plural), None, below)
        case _:
            return None


def _target(
    registry: KindRegistry, resource: tuple[str, str, str], namespace: str | None, below: list[str]
) -> RequestTarget | None:
    served = registry.resource(*resource)
    if served is None or len(below) > 2:  # noqa: PLR2004 - name and subresource
        return None
    name, sub = [*below, "", ""][:2]
    if served.namespaced != (namespace is not None) and (name or not served.namespaced):
        return None
    match sub:
        case "":
            return RequestTarget(served, namespace, name, "")
        case "status" if served.has_status:
            return RequestTarget(served, namespace, name, "status")
        case "finalize" if served.plural == _NAMESPACES:
            return RequestTarget(served, namespace, name, "finalize")
        case _:
            return None


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


JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


_HALF_A_CHARACTER = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB]")
"""JSON's escape for characters beyond 16 bits comes in two halves; YAML knows no such halves."""


BODY_MAX_BYTES = 3 * 1024 * 1024
"""As a real API server."""
T = TypeVar("T")
DEPTH_MAX = 200
"""How deep objects may nest; a real API server reads 10,000 levels."""
_YAML_LIMITS = ManifestLimits(BODY_MAX_BYTES, DEPTH_MAX, events=100_000, aliases=100)


def read_document(body: bytes, content_type: str) -> Any:
    """
    Return the body as plain data.

    Raises:
        BadRequest: It cannot be read. UnsupportedMediaType: it is protobuf of another kind.
    """
    try:
        if "protobuf" in content_type:
            return protobuf.read_object(body)
        is_json = body.lstrip().startswith(b"{")
        if "yaml" in content_type and is_json and _HALF_A_CHARACTER.search(body):
            raise BadRequest(
                "error decoding YAML: error converting YAML to JSON: yaml: found invalid Unicode "
                "character escape code"
            )
        if "yaml" in content_type and not is_json:
            return _read_yaml(body)
        return within_depth(decode(body))
    except protobuf.UnknownMessageError as error:
        raise UnsupportedMediaType(["application/json", "application/yaml"]) from error
    except (ValueError, ManifestError, RecursionError) as error:
        raise BadRequest(f"the object provided is unrecognized: {error}") from error


def _read_yaml(body: bytes) -> object:
    documents = parse_documents("the body", body, limits=_YAML_LIMITS)
    if len(documents) > 1:
        raise BadRequest("the object provided is unrecognized: it has several documents")
    return documents[0][0] if documents else None


def within_depth(document: T) -> T:
    """
    Return the document, which may come from a patch, if this server can work with it.

    Raises:
        BadRequest: It nests too deep.
    """
    if depth_exceeds(document, DEPTH_MAX):
        raise BadRequest(f"the object provided nests deeper than {DEPTH_MAX} levels")
    return document


def read_object(body: bytes, content_type: str, target: RequestTarget) -> Manifest:
    """
    Return the body as an object of the target's kind, its namespace filled in.

    Raises:
        BadRequest: It is not an object, or of another kind, name or namespace than the URL says.
    """
    manifest = read_document(body, content_type)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("metadata", {}), dict):
        raise BadRequest("the object provided is unrecognized: it is not a Kubernetes object")
    kind = target.served.kind
    stated_kind = (manifest.get("apiVersion", kind.api_version), manifest.get("kind", kind.kind))
    if stated_kind != (kind.api_version, kind.kind):
        raise BadRequest(
            f"the object provided ({stated_kind[0]}, {stated_kind[1]}) does not match the "
            f"kind served here ({kind.api_version}, {kind.kind})"
        )
    fields = manifest.setdefault("metadata", {})
    if target.name and fields.setdefault("name", target.name) != target.name:
        raise BadRequest(
            f"the name of the object ({fields['name']}) does not match the name on the URL "
            f"({target.name})"
        )
    if target.namespace is not None and not fields.get("namespace"):
        fields["namespace"] = target.namespace
    if target.namespace is not None and metadata(manifest)["namespace"] != target.namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return manifest
