"""
The verbs on objects: get, list, create, update, patch, delete, deletecollection.

Plain functions from a parsed request to a response; they block shortly and run in the server's
thread pool. Watches are in ``watching``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from starlette.responses import Response

from ground.objects.kube_objects import EVENT, Manifest, dig, labels_of, metadata
from orderkit.ports.cluster import Propagation
from orderkit_standins.cluster.admission import ADMIN, Account
from orderkit_standins.cluster.cluster import EmbeddedCluster
from orderkit_standins.cluster.http import exchange
from orderkit_standins.cluster.http.exchange import Representation, RequestTarget
from orderkit_standins.cluster.http.tables import partial, table
from orderkit_standins.cluster.kinds import ServedKind
from orderkit_standins.cluster.lifecycle import Deletion, Strictness, Write, place_of, shaped
from orderkit_standins.cluster.patches import json_patch, merge_patch, strategic_merge
from orderkit_standins.cluster.refusals import BadRequest, NotFound, UnsupportedMediaType
from orderkit_standins.cluster.selectors import FieldTest, LabelTest, field_selector, label_selector


@dataclass(frozen=True, slots=True)
class ClusterRequest:
    """One request, parsed as far as every verb needs it."""

    target: RequestTarget
    query: Mapping[str, str]
    body: bytes
    content_type: str
    accept: str
    user_agent: str
    account: Account = ADMIN

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() in {"true", "1"}

    @property
    def wants(self) -> Representation:
        return exchange.representation(self.accept)

    @property
    def include(self) -> str:
        return self.query.get("includeObject") or "Metadata"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a collection are meant."""

    labels: LabelTest | None
    fields: FieldTest | None

    def __call__(self, manifest: Manifest) -> bool:
        return self.has_labels(labels_of(manifest)) and self.has_fields(manifest)

    def has_labels(self, labels: Mapping[str, str]) -> bool:
        return self.labels is None or self.labels(labels)

    def has_fields(self, manifest: Manifest) -> bool:
        return self.fields is None or self.fields(manifest)


def selection(call: ClusterRequest) -> Selection:
    """
    Read the selectors of a request.

    Raises:
        BadRequest: One of them cannot be read.
    """
    fields = field_selector(
        call.query.get("fieldSelector", ""), events=call.target.served.kind == EVENT
    )
    if call.target.name:
        name, field_test = call.target.name, fields
        fields = lambda m: metadata(m)["name"] == name and (field_test is None or field_test(m))  # noqa: E731 - one name for both cases
    return Selection(label_selector(call.query.get("labelSelector", "")), fields)


def shown(served: ServedKind, manifest: Manifest) -> Manifest:
    """Return a stored object as this version shows it (shares everything below the top)."""
    version = served.kind.api_version
    if served.shaped_on_read:
        return shaped(served, manifest)
    if manifest.get("apiVersion") == version:
        return manifest
    return {**manifest, "apiVersion": version}


def get(cluster: EmbeddedCluster, call: ClusterRequest) -> Response:
    """
    Answer one object.

    Raises:
        NotFound: It does not exist.
    """
    target = call.target
    stored = cluster.store.get(place_of(target.served, target.where, target.name))
    if stored is None:
        raise NotFound(target.served.subject(target.name))
    return _object(call, stored)


def _object(
    call: ClusterRequest, manifest: Manifest, *, code: int = 200, write: Write | None = None
) -> Response:
    served = call.target.served
    warnings = write.warnings if write is not None else ()
    body = shown(served, manifest)
    if call.wants == "table":
        version = metadata(manifest).get("resourceVersion", "")
        body = table(served, [body], version=version, include=call.include)
    elif call.wants == "partial":
        body = partial(body)
    return exchange.document(body, code=code, warnings=warnings)


def list_(cluster: EmbeddedCluster, call: ClusterRequest) -> Response:
    """
    Answer a collection. ``limit`` is accepted; everything comes in one page.

    Raises:
        BadRequest: A selector cannot be read.
    """
    served, selected = call.target.served, selection(call)
    with cluster.store.lock:
        version = str(cluster.store.version)
        stored = cluster.store.scan(served.kind.group, served.kind.kind, call.target.namespace)
    items = [shown(served, manifest) for manifest in stored if selected(manifest)]
    if call.wants == "table":
        return exchange.document(table(served, items, version=version, include=call.include))
    if call.wants == "partial":
        return exchange.document(
            {
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": {"resourceVersion": version},
                "items": [partial(item) for item in items],
            }
        )
    return exchange.document(
        {
            "kind": f"{served.kind.kind}List",
            "apiVersion": served.kind.api_version,
            "metadata": {"resourceVersion": version},
            "items": items,
        }
    )


def create(cluster: EmbeddedCluster, call: ClusterRequest) -> Response:
    """
    Create an object.

    Raises:
        Refusal: See ``Writes.create``.
    """
    manifest = exchange.read_object(call.body, call.content_type, call.target)
    write = _write(call)
    return _object(
        call, cluster.writes.create(call.target.served, manifest, write), code=201, write=write
    )


def update(cluster: EmbeddedCluster, call: ClusterRequest) -> Response:
    """
    Replace an object or its status.

    Raises:
        Refusal: See ``Writes.change``.
    """
    target, write = call.target, _write(call)
    manifest = exchange.read_object(call.body, call.content_type, target)
    new = cluster.writes.change(
        target.served, target.where, target.name, lambda _live: manifest, write
    )
    return _object(call, new, write=write)


def patch(cluster: EmbeddedCluster, call: ClusterRequest) -> Response:
    """
    Patch an object or its status in one of four formats.

    Raises:
        UnsupportedMediaType: An unknown format, or strategic merge on a custom kind.
        Refusal: See ``Writes.change`` and ``Writes.apply``.
    """
    target, write = call.target, _write(call)
    if _media_type(call) == exchange.APPLY_PATCH:
        return _apply(cluster, call, write)
    edit = _edit(call)
    new = cluster.writes.change(target.served, target.where, target.name, edit, write)
    return _object(call, new, write=write)


def _media_type(call: ClusterRequest) -> str:
    return call.content_type.partition(";")[0].strip().lower()


def _apply(cluster: EmbeddedCluster, call: ClusterRequest, write: Write) -> Response:
    target = call.target
    if not call.query.get("fieldManager"):
        raise BadRequest(
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required '
            "for apply patch"
        )
    manifest = exchange.read_object(call.body, "application/yaml", target)
    exists = cluster.store.get(place_of(target.served, target.where, target.name)) is not None
    new = cluster.writes.apply(target.served, manifest, write, force=call.flag("force"))
    return _object(call, new, code=200 if exists else 201, write=write)


def _edit(call: ClusterRequest) -> Callable[[Manifest], Manifest]:
    served = call.target.served
    match _media_type(call):
        case exchange.JSON_PATCH:
            make: Callable[[Manifest, Any], Any] = json_patch
        case exchange.MERGE_PATCH:
            make = merge_patch
        case exchange.STRATEGIC_PATCH if not served.custom:
            make = lambda live, change: strategic_merge(live, change, served.typed)  # noqa: E731 - one name for all formats
        case _:
            strategic = [] if served.custom else [exchange.STRATEGIC_PATCH]
            accepted = [exchange.JSON_PATCH, exchange.MERGE_PATCH, *strategic, exchange.APPLY_PATCH]
            raise UnsupportedMediaType(accepted)
    change = exchange.read_document(call.body, "application/json")

    def edit(live: Manifest) -> Manifest:
        new = make(live, change)
        if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
            raise BadRequest("the patched object is not a Kubernetes object")
        return exchange.within_depth(new)

    return edit


def _write(call: ClusterRequest) -> Write:
    agent = call.user_agent.partition("/")[0] or "unknown"
    strictness = call.query.get("fieldValidation") or "Warn"
    if strictness not in {"Strict", "Warn", "Ignore"}:
        raise BadRequest(
            f'fieldValidation: Unsupported value: "{strictness}": supported values: "Ignore", '
            '"Warn", "Strict"'
        )
    return Write(
        owner=call.query.get("fieldManager") or agent,
        subresource=call.target.subresource,
        dry_run=_dry_run(call.query.get("dryRun")),
        strictness=cast("Strictness", strictness),
        account=call.account,
    )


def _dry_run(text: object) -> bool:
    if text not in {None, "", "All"}:
        raise BadRequest(f'dryRun: Unsupported value: "{text}": supported values: "All"')
    return text == "All"


def delete(cluster: EmbeddedCluster, call: ClusterRequest) -> Response:
    """
    Delete an object: a Status when it is gone, the object when finalizers hold it.

    Raises:
        Refusal: See ``Writes.delete``.
    """
    target = call.target
    deleted = cluster.writes.delete(target.served, target.where, target.name, _deletion(call))
    if not deleted.is_gone:
        return _object(call, deleted.manifest)
    uid = metadata(deleted.manifest)["uid"]
    return exchange.document(exchange.success(target.served.subject(target.name), uid))


def delete_collection(cluster: EmbeddedCluster, call: ClusterRequest) -> Response:
    """
    Delete every selected object of a collection; answers the list of them.

    Raises:
        Refusal: See ``Writes.delete``.
    """
    served, selected, how = call.target.served, selection(call), _deletion(call)
    stored = cluster.store.scan(served.kind.group, served.kind.kind, call.target.namespace)
    items = []
    for manifest in filter(selected, stored):
        namespace, name = metadata(manifest).get("namespace", ""), metadata(manifest)["name"]
        try:
            items.append(
                shown(served, cluster.writes.delete(served, namespace, name, how).manifest)
            )
        except NotFound:
            continue  # somebody was faster, which is what was wanted
    return exchange.document(
        {
            "kind": f"{served.kind.kind}List",
            "apiVersion": served.kind.api_version,
            "metadata": {"resourceVersion": str(cluster.store.version)},
            "items": items,
        }
    )


_PROPAGATIONS = ("Background", "Foreground", "Orphan")


def _deletion(call: ClusterRequest) -> Deletion:
    options = exchange.read_document(call.body, call.content_type) if call.body else {}
    if not isinstance(options, dict):
        raise BadRequest("DeleteOptions must be an object")
    policy = options.get("propagationPolicy") or call.query.get("propagationPolicy") or None
    orphan = options.get("orphanDependents", call.flag("orphanDependents") or None)
    if policy is None and orphan is not None:
        policy = "Orphan" if orphan else "Background"
    if policy is not None and policy not in _PROPAGATIONS:
        raise BadRequest(
            f'propagationPolicy: Unsupported value: "{policy}": supported values: "Foreground", '
            '"Background", "Orphan"'
        )
    dry_run = (options.get("dryRun") or [call.query.get("dryRun")])[0]
    return Deletion(
        propagation=cast("Propagation | None", policy),
        uid=dig(options, "preconditions", "uid") or "",
        resource_version=dig(options, "preconditions", "resourceVersion") or "",
        dry_run=_dry_run(dry_run),
        owner=call.user_agent.partition("/")[0],
        account=call.account,
    )


Verb = Callable[[EmbeddedCluster, ClusterRequest], Response]
ON_OBJECT: Mapping[str, Verb] = {"GET": get, "PUT": update, "PATCH": patch, "DELETE": delete}
ON_COLLECTION: Mapping[str, Verb] = {"GET": list_, "POST": create, "DELETE": delete_collection}
