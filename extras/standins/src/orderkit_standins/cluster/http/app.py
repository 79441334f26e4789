"""
The ASGI app of the embedded cluster: authentication, routing, discovery, refusals as ``Status``.

Requests carry the token as ``Authorization: Bearer``, or as the password of Basic (`kubeconfig`
writes both). ``/version`` and the health endpoints are open. Everybody who knows the token may do
everything, also as another account (``Impersonate-User``).

What is served is told as clients ask for it: ``/version``, ``/api``, ``/apis`` and below. Computed
from the registry at each request, so a new definition is visible at once. The aggregated form of
newer clients is not offered; they fall back to this one.
"""

from __future__ import annotations

import base64
import binascii
import logging
import re
import secrets
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from ground.objects.kube_objects import Manifest
from orderkit.web.serving import BodyTooLargeError, read_body
from orderkit_standins.cluster import openapi
from orderkit_standins.cluster.admission import ADMIN, Account, impersonated
from orderkit_standins.cluster.cluster import VERSION_TEXT, EmbeddedCluster
from orderkit_standins.cluster.definitions import KindRegistry
from orderkit_standins.cluster.http import exchange, resources
from orderkit_standins.cluster.http.exchange import BODY_MAX_BYTES, RequestTarget, find_target
from orderkit_standins.cluster.http.watching import WatchResponse
from orderkit_standins.cluster.kinds import ServedKind
from orderkit_standins.cluster.refusals import ApiRefusal, RequestEntityTooLarge

VERSION: Manifest = {
    "major": "1",
    "minor": "37",
    "gitVersion": VERSION_TEXT,
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "cpython",
    "platform": "embedded",
}

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def core_versions() -> Manifest:
    """Answer ``/api``."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list(registry: KindRegistry) -> Manifest:
    """Answer ``/apis``."""
    groups = dict.fromkeys(served.kind.group for served in registry.all() if served.kind.group)
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(registry, name) for name in groups],
    }


def group(registry: KindRegistry, name: str) -> Manifest | None:
    """Answer ``/apis/<group>``."""
    if not any(served.kind.group == name for served in registry.all()):
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(registry, name)}


def _group(registry: KindRegistry, name: str) -> Manifest:
    served = {kind.kind.version for kind in registry.all() if kind.kind.group == name}
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for version in sorted(served, key=_priority)
    ]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _priority(version: str) -> tuple[int, int, int, str]:
    """
    Return the key that puts the preferred version of a group first.

    Stable before beta before alpha, then the higher number; other names last, by alphabet.
    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#version-priority
    """
    found = re.fullmatch(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?", version)
    if not found:
        return (3, 0, 0, version)
    stage = {"": 0, "beta": 1, "alpha": 2}[found[2] or ""]
    return (stage, -int(found[1]), -int(found[3] or 0), "")


def resource_list(registry: KindRegistry, group_name: str, version: str) -> Manifest | None:
    """Answer ``/api/v1`` and ``/apis/<group>/<version>``."""
    kinds = [
        served
        for served in registry.all()
        if (served.kind.group, served.kind.version) == (group_name, version)
    ]
    if not kinds:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": kinds[0].kind.api_version,
        "resources": [entry for served in kinds for entry in _resources(served)],
    }


def _resources(served: ServedKind) -> list[Manifest]:
    entry: Manifest = {
        "name": served.plural,
        "singularName": served.singular,
        "namespaced": served.namespaced,
        "kind": served.kind.kind,
        "verbs": _VERBS,
    }
    if served.short_names:
        entry["shortNames"] = list(served.short_names)
    if served.categories:
        entry["categories"] = list(served.categories)
    if not served.has_status:
        return [entry]
    status = {
        "name": f"{served.plural}/status",
        "singularName": "",
        "namespaced": served.namespaced,
        "kind": served.kind.kind,
        "verbs": ["get", "patch", "update"],
    }
    return [entry, status]


logger = logging.getLogger(__name__)

USER = "orderkit"
"""User name in kubeconfigs; the server looks at the token only."""
_OPEN_PATHS = frozenset({"/version", "/healthz", "/readyz", "/livez"})
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


def cluster_app(cluster: EmbeddedCluster, *, token: str) -> ASGIApp:
    """
    Return the Kubernetes API of a cluster.

    Close the cluster before the server stops: that ends its watches at once.
    """

    async def endpoint(request: Request) -> Response:
        if request.url.path not in _OPEN_PATHS and not _knows(request, token):
            return exchange.document(exchange.UNAUTHORIZED, code=401)
        try:
            return await _answer(cluster, request)
        except ApiRefusal as refusal:
            body, code = exchange.status_of(refusal), refusal.code
            return exchange.document(body, code=code, warnings=refusal.warnings)
        except Exception:
            logger.exception("%s %s", request.method, request.url.path)
            return exchange.document(exchange.INTERNAL_ERROR, code=500)

    if not token:
        raise ValueError("the embedded cluster needs a token")
    return Starlette(routes=[Route("/{path:path}", endpoint, methods=_METHODS)])


def kubeconfig(url: str, token: str) -> Manifest:
    """Return a kubeconfig for kubectl and for the Python client."""
    parts = urlsplit(url)
    server = parts._replace(netloc=f"{USER}:{token}@{parts.netloc}").geturl()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": USER, "cluster": {"server": server}}],
        "users": [{"name": USER, "user": {"token": token}}],
        "contexts": [
            {"name": USER, "context": {"cluster": USER, "user": USER, "namespace": "default"}}
        ],
        "current-context": USER,
    }


def _knows(request: Request, token: str) -> bool:
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    # kubectl never sends a bearer token over plain HTTP, but the user part of the server's URL
    if scheme.lower() == "basic":
        try:
            credentials = base64.b64decode(credentials).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return False
    return secrets.compare_digest(credentials.strip().encode(), token.encode())


async def _answer(cluster: EmbeddedCluster, request: Request) -> Response:
    path = request.url.path
    fixed = _FIXED.get(path.rstrip("/") or "/")
    if fixed is not None:
        return await run_in_threadpool(fixed, cluster, request)
    target = find_target(cluster.registry, path)
    if target is not None:
        return await _resource(cluster, request, target)
    description = await run_in_threadpool(_described, cluster, path)
    if description is None:
        return exchange.document(exchange.NO_SUCH_PATH, code=404)
    return exchange.document(description)


def _account(request: Request) -> Account:
    """Return who the request is for."""
    name = request.headers.get("impersonate-user")
    groups = tuple(request.headers.getlist("impersonate-group"))
    return impersonated(name, groups) if name else ADMIN


async def _resource(cluster: EmbeddedCluster, request: Request, target: RequestTarget) -> Response:
    try:
        body = await read_body(request, BODY_MAX_BYTES)
    except BodyTooLargeError as error:
        text = f"Request entity too large: limit is {BODY_MAX_BYTES}"
        raise RequestEntityTooLarge(text) from error
    call = resources.ClusterRequest(
        target=target,
        query=request.query_params,
        body=body,
        content_type=request.headers.get("content-type", "application/json"),
        accept=request.headers.get("accept", "*/*"),
        user_agent=request.headers.get("user-agent", ""),
        account=_account(request),
    )
    if request.method == "GET" and call.flag("watch"):
        return WatchResponse(cluster, call)
    verbs = resources.ON_OBJECT if target.name else resources.ON_COLLECTION
    verb = verbs.get(request.method)
    if verb is None or (target.subresource and request.method == "DELETE"):
        return exchange.document(exchange.NO_SUCH_METHOD, code=405)
    return await run_in_threadpool(verb, cluster, call)


def _described(cluster: EmbeddedCluster, path: str) -> Manifest | None:
    """Answer discovery and OpenAPI paths that name a group."""
    registry = cluster.registry
    match [step for step in path.split("/") if step]:
        case ["api", version]:
            return resource_list(registry, "", version)
        case ["apis", name]:
            return group(registry, name)
        case ["apis", name, version]:
            return resource_list(registry, name, version)
        case ["openapi", "v3", "api", version]:
            return openapi.document_v3(registry, "", version)
        case ["openapi", "v3", "apis", name, version]:
            return openapi.document_v3(registry, name, version)
        case _:
            return None


def _health(cluster: EmbeddedCluster, _request: Request) -> Response:
    closed = cluster.store.closed
    return PlainTextResponse("closed" if closed else "ok", status_code=500 if closed else 200)


_Fixed = Callable[[EmbeddedCluster, Request], Response]
_FIXED: dict[str, _Fixed] = {
    "/version": lambda _cluster, _request: exchange.document(VERSION),
    "/api": lambda _cluster, _request: exchange.document(core_versions()),
    "/apis": lambda cluster, _request: exchange.document(group_list(cluster.registry)),
    "/openapi/v3": lambda cluster, _request: exchange.document(openapi.index_v3(cluster.registry)),
    "/healthz": _health,
    "/readyz": _health,
    "/livez": _health,
}
