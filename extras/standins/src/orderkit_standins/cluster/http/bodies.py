"""
Request bodies: JSON, YAML, or the protobuf of a few built-in kinds.

Checked for what every endpoint needs: that it is an object of the kind, name and namespace
the URL speaks of.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

from ground.objects.kube_objects import Manifest, metadata
from orderkit_standins.cluster.documents import decode
from orderkit_standins.cluster.http import protobuf
from orderkit_standins.cluster.http.api_paths import RequestTarget
from orderkit_standins.cluster.refusals import BadRequest, UnsupportedMediaType
from yamlfiles.manifests import ManifestError, ManifestLimits, depth_exceeds, parse_documents

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
