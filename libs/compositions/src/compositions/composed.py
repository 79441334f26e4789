"""
Input and output of a run of a Composition pipeline, and the metadata of what it composes.

The classes are pure data: ``pipeline`` computes it, and others apply, plan or show the result.

Composed resources have names, namespace, labels and owner as Crossplane gives them. Every name is
deterministic: it follows from the XR's uid and the resource's logical name, so a repeated run finds
what the first one made. `with_metadata` is pure and never changes its arguments.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from compositions.station import Ready, Selector, Station
from ground.errors import OrderkitError
from ground.objects.kube_objects import (
    AVAILABLE,
    CREATING,
    Condition,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    controller,
    controller_reference,
    dig,
    first_and_more,
    labels_of,
    metadata,
)
from ground.objects.values import copied

__all__ = [
    "CLAIM_LABELS",
    "COMPOSE_REASON",
    "COMPOSITE_LABEL",
    "COMPOSITE_OWNER",
    "RESOURCE_NAME_ANNOTATION",
    "Composed",
    "Lookup",
    "PipelineStep",
    "World",
    "XrEvent",
    "composed_keys",
    "composed_owner",
    "is_controlled_by",
    "preview_uid",
    "references",
    "root_labelled",
    "steps_of",
]


COMPOSE_REASON = "ComposeResources"
"""Reason of events for which the function gives none."""

Lookup = Callable[[Selector], Sequence[Manifest]]
"""Looks up required resources; empty if nothing matches. May raise OrderkitError."""
ScopeOf = Callable[[Kind], bool | None]
"""Says whether a kind is namespaced; None if it is not served."""
Requirements = Mapping[str, Selector]


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """One entry of ``spec.pipeline``."""

    name: str
    function: str
    input: Mapping[str, Any] = field(default_factory=dict)
    required: Requirements = field(default_factory=dict)
    """Looked up before the first call, whatever the function requires."""
    credentials: Mapping[str, Selector] = field(default_factory=dict)
    """Secrets that a function's own program gets, by the credential's name."""
    unserved: tuple[str, ...] = ()
    """Inputs that the step passes in a cluster and that are not available here."""


@dataclass(frozen=True, slots=True)
class XrEvent:
    """One event on the XR."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class World:
    """What exists and what can be looked up while an XR is composed."""

    functions: Mapping[str, Station]
    observed: Mapping[str, Manifest] = field(default_factory=dict)
    """Composed resources by logical name."""
    connection_details: Mapping[str, dict[str, bytes]] = field(default_factory=dict)
    lookup: Lookup = lambda _: ()
    scope_of: ScopeOf = lambda _: True
    foreign: Mapping[str, str] = field(default_factory=dict)
    """Why a function that is installed does not run, by its name: its step fails, also a plan's."""
    remote: Collection[str] = ()
    """Functions that run as processes: they need all inputs of their step."""
    passing: bool = False
    """Skip and report steps that cannot run here (`Composed.opaque`), instead of failing."""
    attributed: Mapping[str, str] = field(default_factory=dict)
    """The step that composed an observed resource before, by logical name, if known."""


@dataclass(frozen=True, slots=True)
class Desired:
    """A composed resource as it will be applied."""

    manifest: Manifest
    ready: bool
    renamed: bool = False
    """The function gives another name now; the existing object keeps its name."""


@dataclass(frozen=True, slots=True)
class Composed:
    """
    The result of one run of the pipeline.

    With an `error`, nothing may be applied or deleted and the status stays; events and conditions
    that were set before a fatal result are kept.
    """

    error: str = ""
    resources: Mapping[str, Desired] = field(default_factory=dict)
    deletions: Mapping[str, Manifest] = field(default_factory=dict)
    """Observed resources that are no longer desired and controlled by this XR."""
    references: tuple[dict[str, str], ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    """The functions' own conditions, in the order they were set."""
    events: tuple[XrEvent, ...] = ()
    ready: Ready = Ready.UNSPECIFIED
    """Readiness of the XR if a function decided it."""
    ttl_s: float = 0.0
    """The smallest time to live of all steps; 0: none."""
    context: Mapping[str, Any] = field(default_factory=dict)
    requirements: tuple[Selector, ...] = ()
    opaque: Mapping[str, str] = field(default_factory=dict)
    """Why a step was skipped, by its name. Its effects are in no other field."""
    kept: Mapping[str, Manifest] = field(default_factory=dict)
    """Observed resources that an opaque step may compose: neither desired nor deleted."""
    made_by: Mapping[str, str] = field(default_factory=dict)
    """The first step that composed a resource, by logical name."""

    @property
    def ready_condition(self) -> Condition:
        """The XR's Ready: as a function decided, else whether all resources are ready."""
        if self.ready is not Ready.UNSPECIFIED:
            return AVAILABLE if self.ready is Ready.TRUE else CREATING
        unready = self.unready
        if not unready:
            return AVAILABLE
        return replace(CREATING, message=f"Unready resources: {first_and_more(unready)}")

    @property
    def unready(self) -> tuple[str, ...]:
        return tuple(sorted(n for n, desired in self.resources.items() if not desired.ready))


def steps_of(spec: Mapping[str, Any]) -> tuple[PipelineStep, ...]:
    """Read the pipeline of a Composition's or CompositionRevision's spec."""
    return tuple(
        PipelineStep(
            name=str(entry.get("step", "")),
            function=str(dig(entry, "functionRef", "name", default="")),
            input=entry.get("input") or {},
            required={
                str(requirement.get("requirementName", "")): _selector(requirement)
                for requirement in dig(entry, "requirements", "requiredResources", default=None)
                or ()
            },
            credentials=dict(_credentials(entry)),
            unserved=tuple(_unserved(entry)),
        )
        for entry in spec.get("pipeline") or ()
    )


def _credentials(entry: Mapping[str, Any]) -> Iterator[tuple[str, Selector]]:
    for credential in dig(entry, "credentials", default=None) or ():
        if dig(credential, "source") == "Secret":
            name, namespace = (
                str(dig(credential, "secretRef", key, default="")) for key in ("name", "namespace")
            )
            secret = Selector("v1", "Secret", name=name, namespace=namespace)
            yield str(dig(credential, "name", default="")), secret


def _unserved(entry: Mapping[str, Any]) -> Iterator[str]:
    if dig(entry, "requirements", "requiredSchemas", default=None):
        yield "schemas"


def _selector(requirement: Mapping[str, Any]) -> Selector:
    return Selector(
        api_version=str(requirement.get("apiVersion", "")),
        kind=str(requirement.get("kind", "")),
        name=requirement.get("name") or "",
        labels=requirement.get("matchLabels") or {},
        namespace=requirement.get("namespace"),
    )


COMPOSITE_LABEL = "crossplane.io/composite"
CLAIM_LABELS = ("crossplane.io/claim-name", "crossplane.io/claim-namespace")
RESOURCE_NAME_ANNOTATION = "crossplane.io/composition-resource-name"
COMPOSITE_OWNER = "apiextensions.crossplane.io/composite"
"""Field manager of what Crossplane writes into an XR by server-side apply."""

_NAME_MAX = 63
_HASH_LENGTH = 12
"""Crossplane's ChildName: at most 63 characters, the last 12 of a hash."""
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_SUBDOMAIN_MAX = 253
"""Kubernetes' limit of an object's name."""
_RBAC_GROUP = "rbac.authorization.k8s.io"


class MetadataError(OrderkitError):
    """A desired resource cannot become an object; the message is Crossplane's."""


def child_name(prefix: str, xr_uid: str, logical_name: str) -> str:
    """
    Return the name of a composed resource that has only a prefix.

    At most 63 characters; the prefix is cut, the 12 characters of hash never are.
    """
    suffix = hashlib.sha256((xr_uid + logical_name).encode()).hexdigest()[:_HASH_LENGTH]
    if prefix and not prefix.endswith("-"):
        prefix += "-"
    if len(prefix) + len(suffix) <= _NAME_MAX:
        return prefix + suffix
    room = _NAME_MAX - _HASH_LENGTH
    cut = prefix[:room]
    return (cut if cut.endswith("-") else prefix[: room - 1] + "-") + suffix


def preview_uid(xr: Manifest) -> str:
    """Return the uid that Crossplane's render gives an XR that has none."""
    kind, meta = Kind.of(xr), metadata(xr)
    parts = (
        f"{kind.group}/{kind.version}, Kind={kind.kind}",
        meta.get("namespace") or "",
        meta.get("name") or "",
    )
    return str(uuid.uuid5(uuid.UUID(int=0), "\0".join(parts)))


def composed_owner(xr: Manifest) -> str:
    """Return the field manager with which an XR applies its composed resources."""
    text = f"{metadata(xr).get('name', '')}{Kind.of(xr)}"
    return f"apiextensions.crossplane.io/composed/{hashlib.sha256(text.encode()).hexdigest()}"


def root_labelled(xr: Manifest) -> Manifest:
    """Return the XR with the label that names its root XR, which is itself unless it is set."""
    if labels_of(xr).get(COMPOSITE_LABEL):
        return xr
    meta = metadata(xr)
    labels = {**labels_of(xr), COMPOSITE_LABEL: meta.get("name", "")}
    return {**xr, "metadata": {**meta, "labels": labels}}


def is_controlled_by(manifest: Manifest, xr: Manifest) -> bool:
    """Return whether the object's controller is exactly this XR (its uid, not its name)."""
    owner = controller(manifest)
    return owner is not None and owner.get("uid") == metadata(xr).get("uid")


def references(resources: Iterable[Manifest], xr: Manifest) -> tuple[dict[str, str], ...]:
    """Return the XR's resourceRefs, sorted; without namespaces if the XR is namespaced."""
    keys = ("apiVersion", "kind", "name", "namespace")
    reference_list = []
    for manifest in resources:
        meta = metadata(manifest)
        reference = {
            "apiVersion": manifest["apiVersion"],
            "kind": manifest["kind"],
            "name": meta["name"],
        }
        if meta.get("namespace") and not metadata(xr).get("namespace"):
            reference["namespace"] = meta["namespace"]
        reference_list.append(reference)
    # Crossplane compares the concatenated fields; a separator would change the order.
    return tuple(sorted(reference_list, key=lambda r: "".join(r.get(key, "") for key in keys)))


def composed_keys(xr: Manifest) -> Iterator[ObjectKey]:
    """
    Yield the keys of the objects an XR composes.

    A namespaced XR composes in its own namespace.
    """
    resource_refs = dig(xr, "spec", "crossplane", "resourceRefs") or dig(
        xr, "spec", "resourceRefs", default=()
    )
    xr_namespace = str(metadata(xr).get("namespace") or "")
    for reference in resource_refs or ():
        yield ObjectKey.from_json(
            {**reference, "namespace": xr_namespace or reference.get("namespace", "")}
        )


def with_metadata(
    logical_name: str,
    resource: Manifest,
    xr: Manifest,
    *,
    observed: Manifest | None,
    scope_of: Callable[[Kind], bool | None],
) -> tuple[Manifest, str]:
    """
    Return a desired resource as it is applied, and a warning if its namespace was overridden.

    `resource` stays as it is; all but its metadata is shared with the result.

    Raises:
        MetadataError: No kind, an unusable name, another controller, or a scope that a
            namespaced XR may not compose.
    """
    meta = copied(resource.get("metadata", {}))
    manifest: Manifest = {**resource, "metadata": meta}
    kind = _kind(logical_name, manifest)
    if observed is not None:
        _take_over_name(meta, metadata(observed))
    warning = _set_namespace(logical_name, kind, meta, xr, scope_of)
    _set_labels(logical_name, meta, xr)
    _set_controller(logical_name, meta, xr)
    if not meta.get("name"):
        uid = str(metadata(xr).get("uid") or "")
        meta["name"] = child_name(meta["generateName"], uid, logical_name)
    _check_name(logical_name, kind, meta["name"])
    return manifest, warning


def _kind(logical_name: str, manifest: Manifest) -> Kind:
    try:
        return Kind.of(manifest)
    except ValueError as error:
        raise MetadataError(
            f'cannot unmarshal desired composed resource "{logical_name}" from '
            "RunFunctionResponse: Object 'Kind' or 'apiVersion' is missing"
        ) from error


def _take_over_name(meta: dict[str, Any], observed: dict[str, Any]) -> None:
    """Keep name and namespace of what exists: a rename needs a new logical name."""
    for key in ("namespace", "name", "generateName"):
        meta.pop(key, None)
        if observed.get(key):
            meta[key] = observed[key]


def _set_namespace(
    logical_name: str,
    kind: Kind,
    meta: dict[str, Any],
    xr: Manifest,
    scope_of: Callable[[Kind], bool | None],
) -> str:
    """Put what a namespaced XR composes into its namespace. Return the warning, if any."""
    home = metadata(xr).get("namespace") or ""
    if not home:
        return ""
    namespace = meta.get("namespace") or ""
    # Crossplane looks up the scope only of resources that name no namespace.
    if not namespace:
        _check_scope(logical_name, kind, meta, scope_of)
    meta["namespace"] = home
    if namespace in ("", home):
        return ""
    return (
        f'cannot create composed resource "{logical_name}" in namespace "{namespace}", '
        f'using XR namespace "{home}" instead'
    )


def _check_scope(
    logical_name: str, kind: Kind, meta: dict[str, Any], scope_of: Callable[[Kind], bool | None]
) -> None:
    namespaced = scope_of(kind)
    title = f'composed resource "{logical_name}"'
    description = f"(a {kind.kind} named {meta.get('name') or ''})"
    if namespaced is None:
        raise MetadataError(
            f"cannot check if {title} is namespaced {description}: failed to get restmapping: "
            f'no matches for kind "{kind.kind}" in version "{kind.api_version}"'
        )
    if not namespaced:
        raise MetadataError(
            f"cannot apply cluster scoped {title} {description} for a namespaced composite "
            "resource."
        )


def _set_labels(logical_name: str, meta: dict[str, Any], xr: Manifest) -> None:
    labels = labels_of(xr)
    root = labels.get(COMPOSITE_LABEL)
    if not root:
        raise MetadataError(
            f'cannot render metadata for composed resource "{logical_name}": cannot find top-level '
            f'composite resource name label "{COMPOSITE_LABEL}" in composite resource metadata'
        )
    if not meta.get("name") and not meta.get("generateName"):
        meta["generateName"] = f"{root}-"
    annotations = annotations_of({"metadata": meta})
    meta["annotations"] = {**annotations, RESOURCE_NAME_ANNOTATION: logical_name}
    claim = {key: labels[key] for key in CLAIM_LABELS if labels.get(key)}
    claim_labels = claim if len(claim) == len(CLAIM_LABELS) else {}
    meta["labels"] = {**labels_of({"metadata": meta}), COMPOSITE_LABEL: root, **claim_labels}


def _set_controller(logical_name: str, meta: dict[str, Any], xr: Manifest) -> None:
    """Make the XR the controller."""
    present = controller({"metadata": meta})
    uid = metadata(xr).get("uid") or ""
    if present is not None and present.get("uid") != uid:
        raise MetadataError(
            f'cannot render metadata for composed resource "{logical_name}": cannot set controller '
            f"reference: {meta.get('name') or logical_name} is already controlled by "
            f"{present.get('kind')} {present.get('name')} (UID {present.get('uid')})"
        )
    ours = controller_reference(xr, uid=uid)
    other_owners = [o for o in meta.get("ownerReferences") or () if o.get("uid") != uid]
    meta["ownerReferences"] = [*other_owners, ours]


def _check_name(logical_name: str, kind: Kind, name: str) -> None:
    """Check a name: an RFC 1123 subdomain; names of RBAC kinds may contain colons."""
    bare = name.replace(":", "") if kind.group == _RBAC_GROUP else name
    if len(bare) > _SUBDOMAIN_MAX or not _SUBDOMAIN.match(bare):
        raise MetadataError(
            f'cannot apply composed resource "{logical_name}" because it has an invalid name '
            f'"{name}". Must be a valid RFC 1123 subdomain name.'
        )
