"""
What a plan asks the cluster, and its outcome judged by schemas, names and rights there.

A `Lookup` has the cluster reads that a plan needs; their order is here, too. They are answered by a
cluster, by a recorded snapshot, or by a cluster's objects read in bulk.

`judged` judges an outcome. What the cluster does not answer is reported as unknown; the pack's own
part is judged anyway. It reads only what the order needs: the CRDs of the kinds it composes, by
name, and the OpenAPI documents of built-in kinds, once per connection.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from compositions.composed import RESOURCE_NAME_ANNOTATION, composed_keys
from compositions.composition_choice import with_stored_choice
from compositions.granted_rights import is_aggregated
from compositions.python_functions import NOT_RUN_HERE
from compositions.resource_builders import SEED_SELECTOR, STAND_IN_SEED
from compositions.simulation import lookup_in
from compositions.station import Selector
from ground.errors import OrderkitError
from ground.objects.kube_objects import (
    CRD,
    FUNCTION,
    NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    condition,
    controller,
    dig,
    labels_of,
    metadata,
)
from kubeschema.known import (
    GroupKind,
    KnownKind,
    Layer,
    SchemaSet,
    built_in,
    known_kind,
    openapi_kind,
)
from orderkit.core.plan import Assembly, AssemblyContext
from orderkit.core.plan.assembly import selector_text
from orderkit.core.plan.judging import (
    JudgingFacts,
    WantedFacts,
    judge,
    missing_rights,
    wanted_facts,
)
from orderkit.ports.cluster import NoSuchKindError, ObjectList

NOT_ASKED = "the cluster was not asked: nothing that exists is taken into account"


class Lookup(Protocol):
    """The methods of ``ports.cluster.Cluster`` that a plan needs; the same contract applies."""

    def get(self, key: ObjectKey) -> Manifest | None: ...

    def list(self, kind: Kind, *, namespace: str | None = None) -> ObjectList: ...

    def plural(self, kind: Kind) -> str | None: ...

    def serves(self, kind: Kind) -> bool: ...

    def openapi(self, group: str, version: str) -> Mapping[str, Any] | None: ...


def get(cluster: Lookup | None, key: ObjectKey) -> Manifest | None:
    """Return an object; None also while its kind is not served."""
    try:
        return cluster.get(key) if cluster is not None else None
    except NoSuchKindError:
        return None


def living(cluster: Lookup | None, xr: Manifest) -> tuple[Manifest | None, tuple[str, ...]]:
    """Return the XR in the cluster, and what remains unknown if there is none."""
    if cluster is None:
        return None, (NOT_ASKED,)
    try:
        manifest = get(cluster, ObjectKey.of(xr))
    except OrderkitError as error:
        return None, (f"the cluster could not be asked: {error}",)
    if manifest is None:
        return None, ("the cluster does not have this order yet",)
    return manifest, ()


def not_run_there(cluster: Lookup | None, functions: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the functions of which the cluster says that it does not run them, and why."""
    for name in sorted(functions):
        with suppress(OrderkitError):  # then nothing is known of it
            function = get(cluster, ObjectKey(FUNCTION, name))
            health = condition(function or {}, "Healthy") or {}
            if health.get("reason") == NOT_RUN_HERE:
                yield name, str(health.get("message", ""))


def observed_of(
    cluster: Lookup | None, xr: Manifest, is_xr: Callable[[Manifest], bool], above: str = ""
) -> Iterator[tuple[str, Manifest]]:
    """Yield what an XR of the cluster composes there, by path, nested XRs followed."""
    for key in composed_keys(xr):
        manifest = get(cluster, key)
        name = annotations_of(manifest or {}).get(RESOURCE_NAME_ANNOTATION)
        if manifest is None or not name or "/" in name or _is_foreign(manifest, xr):
            continue
        yield f"{above}{name}", manifest
        if is_xr(manifest):
            yield from observed_of(cluster, manifest, is_xr, f"{above}{name}/")


def _is_foreign(part: Manifest, xr: Manifest) -> bool:
    """Say whether something else owns an object that an XR refers to: Crossplane ignores it."""
    owner, uid = controller(part), metadata(xr).get("uid")
    return bool(owner and uid and owner.get("uid") != uid)


def looked_up(cluster: Lookup | None, selector: Selector) -> list[Manifest]:
    """Return the objects that a station's selector matches."""
    # never read: what follows from the seed of passwords is masked, so any will do
    if selector == SEED_SELECTOR:
        return [STAND_IN_SEED]
    kind = Kind.parse(selector.api_version, selector.kind)
    if selector.name:
        manifest = get(cluster, ObjectKey(kind, selector.name, selector.namespace or ""))
        return [manifest] if manifest is not None else []
    try:
        objects = cluster.list(kind, namespace=selector.namespace) if cluster is not None else None
    except NoSuchKindError:
        return []
    return list(lookup_in(objects.items)(selector)) if objects is not None else []


def as_living(
    xr: Manifest,
    root: Manifest | None,
    xrd: Manifest | None = None,
    *,
    applied: Manifest | None = None,
) -> Manifest:
    """
    Return an XR of Git as the object it is in the cluster: same uid, same status.

    Args:
        xrd: With it, also with the Composition and revision that Crossplane has chosen.
        applied: The XR that Git had before.
    """
    if root is None:
        return xr
    if xrd:
        xr = with_stored_choice(xr, root, xrd, applied=applied)
    kept = {key: value for key, value in metadata(root).items() if key in {"uid", "generation"}}
    labels = {**labels_of(root), **labels_of(xr)}
    meta: dict[str, Any] = {**metadata(xr), **kept, "labels": labels}
    living_xr = {**xr, "metadata": meta}
    return {**living_xr, "status": root["status"]} if root.get("status") else living_xr


class AnsweredQuestions:
    """Looks up what stations require, each object once. A station must not see a failure."""

    def __init__(self, cluster: Lookup | None) -> None:
        self._place = cluster
        self._found: dict[str, list[Manifest]] = {}
        self._error: OrderkitError | None = None

    @property
    def objects(self) -> list[Manifest]:
        """All objects that were looked up."""
        return [manifest for manifests in self._found.values() for manifest in manifests]

    def look(self, selector: Selector) -> list[Manifest]:
        name = selector_text(selector)
        if name not in self._found and self._error is None:
            try:
                self._found[name] = looked_up(self._place, selector)
            except OrderkitError as error:
                self._error = error
        return self._found.get(name, [])

    def check(self) -> None:
        """Raise the error of a failed look-up."""
        if self._error is not None:
            raise self._error


_CLUSTER_ROLE = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole")
_CLUSTER_ROLE_BINDING = Kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding")
_CONFIG_VERSIONS = ("v1beta1", "v1alpha1", "v1")
_CROSSPLANES_HOME = "crossplane-system"
_OWN_ACCOUNT = "InjectedIdentity"
"""Where a config of provider-kubernetes takes its credentials from: the provider's own account."""


def judged(
    cluster: Lookup | None,
    workshop: AssemblyContext,
    before: Assembly,
    after: Assembly,
    *,
    made_paths: Collection[str] | None = None,
) -> Assembly:
    """
    Return the outcome with everything that is wrong with it, and what could not be judged.

    Args:
        made_paths: Paths of what the order has in the cluster; None: all that it was to have.
    """
    laws = workshop.laws
    facts = JudgingFacts(
        schemas=_schemas(laws.supplied, laws.delivered, built_in()),
        assembled=workshop.blueprints.keys(),
        roles=laws.roles,
        behaviours=laws.behaviours,
        existing_paths=made_paths,
    )
    unanswered: list[str] = []
    if cluster is not None:
        desk = _AnsweredQuestions(cluster, workshop)
        facts = desk.looked_up(facts, wanted_facts(before, after, existing_paths=made_paths))
        unanswered = desk.unanswered
    verdict = judge(before, after, facts)
    return replace(verdict, unknowns=tuple(dict.fromkeys((*verdict.unknowns, *unanswered))))


def _schemas(supplied: Layer, *layers: Layer) -> SchemaSet:
    """Return all layers; of a kind that was passed for this plan, only what was passed."""
    if supplied:
        layers = tuple(
            {name: known for name, known in layer.items() if name not in supplied}
            for layer in layers
        )
    return SchemaSet((supplied, *layers))


def with_schemas(workshop: AssemblyContext, schemas: Layer) -> AssemblyContext:
    """Return the workshop with kinds that go before the cluster's and the pack's."""
    laws = replace(workshop.laws, supplied=schemas)
    return replace(workshop, laws=laws, scopes={**workshop.scopes, **laws.scopes})


_lock = threading.Lock()
_kept: weakref.WeakKeyDictionary[Lookup, dict[object, KnownKind | None]] = (
    weakref.WeakKeyDictionary()
)
"""By connection: built-in kinds by kind, CRDs by uid and resourceVersion."""


@dataclass(slots=True)
class _AnsweredQuestions:
    """Reads what one judgement needs; notes what has no answer."""

    cluster: Lookup
    workshop: AssemblyContext
    unanswered: list[str] = field(default_factory=list)

    def looked_up(self, facts: JudgingFacts, facts_needed: WantedFacts) -> JudgingFacts:
        """Return the facts with what the cluster knows."""
        served = dict(self._served(facts_needed.kinds))
        laws = self.workshop.laws
        unserved = [kind for kind in facts_needed.composed if self._is_unserved(kind, served)]
        facts = replace(
            facts,
            schemas=_schemas(laws.supplied, served, laws.delivered, built_in()),
            unserved=frozenset(unserved),
            unserved_inside=frozenset(
                (kind, config)
                for kind, config in facts_needed.wrapped
                if self._is_unserved(kind, served) and self._makes_here(config)
            ),
            missing_namespaces=frozenset(
                name
                for name in facts_needed.namespaces
                if self._is_missing(ObjectKey(NAMESPACE, name))
            ),
            missing=frozenset(filter(self._is_absent, facts_needed.references)),
            living=dict(self._living(facts_needed.keys)),
        )
        lacking = any(missing_rights(kind, facts) for kind in facts_needed.composed)
        return replace(facts, roles=[*facts.roles, *self._roles()]) if lacking else facts

    def _served(self, kinds: Iterable[Kind]) -> Iterator[tuple[GroupKind, KnownKind]]:
        for kind in sorted(kinds):
            try:
                known_kind = self._known_kind(kind)
            except OrderkitError as error:
                self.unanswered.append(f"the cluster's schema of {kind} could not be read: {error}")
                continue
            if known_kind is not None:
                yield (kind.group, kind.kind), known_kind

    def _known_kind(self, kind: Kind) -> KnownKind | None:
        plural = self.cluster.plural(kind)
        if plural is None:
            return None
        crd = self._get(ObjectKey(CRD, f"{plural}.{kind.group}")) if kind.group else None
        if crd is not None:
            meta = metadata(crd)
            return self._remembered(
                (meta.get("uid"), meta.get("resourceVersion")), lambda: known_kind(crd)
            )
        return self._remembered(kind, lambda: self._documented(kind))

    def _documented(self, kind: Kind) -> KnownKind | None:
        document = self.cluster.openapi(kind.group, kind.version)
        return openapi_kind(document, kind) if document else None

    def _remembered(
        self, key: object, read_kind: Callable[[], KnownKind | None]
    ) -> KnownKind | None:
        with _lock:
            kept = _kept.setdefault(self.cluster, {})
            if key in kept:
                return kept[key]
        known_kind = read_kind()
        with _lock:
            kept[key] = known_kind
        return known_kind

    def _is_unserved(self, kind: Kind, served: Mapping[GroupKind, KnownKind]) -> bool:
        """Return whether the cluster does not have a kind, and the pack does not deliver it."""
        group_kind, laws = (kind.group, kind.kind), self.workshop.laws
        delivered = None if group_kind in laws.described else laws.delivered.get(group_kind)
        if group_kind in served or (delivered and kind.version in delivered.validator.versions):
            return False
        try:
            return not self.cluster.serves(kind)
        except OrderkitError:
            return False  # its schema's error is reported already

    def _is_missing(self, key: ObjectKey) -> bool:
        try:
            return self.cluster.get(key) is None
        except OrderkitError as error:
            self.unanswered.append(f"{key} could not be looked up: {error}")
            return False

    def _is_absent(self, key: ObjectKey) -> bool:
        """Say whether a config or a Secret does not exist; False if that cannot be known."""
        try:
            return self._referred(key) is None
        except OrderkitError:
            return False  # we may not look, for example at a Secret

    def _makes_here(self, config: ObjectKey) -> bool:
        """Say whether an Object with this config makes things in this cluster, not in another."""
        try:
            found = self._referred(config)
        except OrderkitError:
            return False
        return bool(dig(found or {}, "spec", "credentials", "source") == _OWN_ACCOUNT)

    def _referred(self, key: ObjectKey) -> Manifest | None:
        """
        Return what a reference leads to, in a version that is served.

        Raises:
            OrderkitError: None is, or the cluster does not say.
        """
        versions = (key.kind.version,) if key.kind.version else _CONFIG_VERSIONS
        kinds = [replace(key.kind, version=version) for version in versions]
        served = next((kind for kind in kinds if self.cluster.serves(kind)), None)
        if served is None:
            raise NoSuchKindError(str(key.kind))
        return self.cluster.get(replace(key, kind=served))

    def _living(self, keys: Iterable[ObjectKey]) -> Iterator[tuple[ObjectKey, Manifest]]:
        for key in sorted(keys):
            try:
                manifest = self._get(key)
            except OrderkitError as error:
                self.unanswered.append(f"whether {key} exists could not be read: {error}")
                continue
            if manifest is not None:
                yield key, manifest

    def _roles(self) -> list[Manifest]:
        """Return what Crossplane's accounts may do: aggregated roles, and what is bound to them."""
        try:
            roles = self.cluster.list(_CLUSTER_ROLE).items
            bindings = self.cluster.list(_CLUSTER_ROLE_BINDING).items
        except OrderkitError as error:
            self.unanswered.append(f"the cluster's rights could not be read: {error}")
            return []
        bound = {
            (binding.get("roleRef") or {}).get("name")
            for binding in bindings
            for subject in binding.get("subjects") or ()
            if subject.get("namespace") == _CROSSPLANES_HOME
            and str(subject.get("name", "")).startswith("crossplane")
        }
        return [
            role for role in roles if is_aggregated(role) or metadata(role).get("name") in bound
        ]

    def _get(self, key: ObjectKey) -> Manifest | None:
        try:
            return self.cluster.get(key)
        except NoSuchKindError:
            return None
