"""
A twin of any provider whose resources live in a cloud: they come to exist, and get ready.

What exists "in the cloud" is kept in the cluster itself, as cluster-scoped ``ExternalResource``
objects: they outlive the managed resource where its policies lack Delete, and show what is left.
People make them too, for what Orderkit is to import. The twin treats them as a provider treats the
cloud: it observes first, creates, updates what may be updated, and refuses what would replace a
resource. A thing that others refer to is not deleted before them. What a kind is like comes from
the pack's ``schemas/`` (``played_kinds``).

Not here: what a cloud checks beyond the schema (sizes, zones, quotas), time that an update or a
deletion takes, prices, anything that runs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from compositions.managed_state import (
    ManagedValues,
    assigned_name,
    at_provider,
    default_name,
    failure_message,
    failure_of,
    replacement_refusal,
    replacements,
)
from ground.objects.kube_objects import (
    AVAILABLE,
    CREATING,
    EXTERNAL_NAME,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
    metadata,
)
from ground.objects.values import overlaid
from kubeschema.known.managed_behaviour import OPEN
from orderkit_standins.crossplane.reconciler_context import ReconcilerContext
from orderkit_standins.providers.managed_reconciler import (
    UNAVAILABLE,
    Allowed,
    ManagedError,
    Twin,
    VisitOutcome,
)
from orderkit_standins.providers.played_kinds import ManagedLibrary, crd
from orderkit_standins.providers.references import (
    AGAIN_S,
    OWNER,
    CloudSecrets,
    References,
    without_references,
)

EXTERNAL = Kind("cloud.embedded.orderkit.dev", "v1alpha1", "ExternalResource")
CREATED = "crossplane.io/external-create-succeeded"
RECORD = "embedded.orderkit.dev/external-resource"
"""Annotation of a managed resource: the name of its ExternalResource."""
_SCOPES = (
    "region", "location", "project", "resourceGroupName", "cluster", "clusterName", "clusterId",
    "instance", "server", "serverId", "bucket", "database", "role", "zoneId", "zoneName", "vpcId",
    "namespace",
)  # fmt: skip
"""Fields of forProvider within which an external name counts."""
_PROTECTIONS = ("deletionProtection", "deletionProtectionEnabled", "disableApiTermination")


@dataclass(frozen=True, slots=True)
class CloudSettings:
    """The kinds of a twin, and how its resources behave if their kind does not say."""

    kinds: tuple[Kind, ...]
    delay_s: float
    failure: str = ""
    """How all of them fail (`failure_of`)."""


def external_crd() -> Manifest:
    """Return the CRD of what exists in the cloud."""
    text = {"type": "string"}
    spec = {
        "type": "object",
        "required": ["apiVersion", "kind", "externalName"],
        "properties": {
            **dict.fromkeys(("apiVersion", "kind", "externalName", "createdAt", "account"), text),
            "revision": {"type": "integer"},
            "forProvider": OPEN,
            "atProvider": OPEN,
            "managedBy": {"type": "object", "additionalProperties": text},
            "identifiers": {"type": "array", "items": text},
            "dependsOn": {"type": "array", "items": text},
        },
    }
    return crd(EXTERNAL, namespaced=False, spec=spec)


class CloudTwin(Twin):
    """The controller of the managed kinds of one provider."""

    def __init__(
        self, site: ReconcilerContext, settings: CloudSettings, library: ManagedLibrary
    ) -> None:
        super().__init__(site, "cloud", settings.kinds, workers=2)
        self._settings, self._library = settings, library
        self._references = References(site, library)
        self._secrets = CloudSecrets(site)
        self._observers: dict[str, set[ObjectKey]] = {}
        """By the name of an ExternalResource: the managed resources that show it."""
        self._controller.watch(
            EXTERNAL, lambda record: tuple(self._observers.get(metadata(record)["name"], ()))
        )

    def start(self) -> None:
        self._library.played[self] = frozenset(self._settings.kinds)
        super().start()

    def stop(self) -> None:
        super().stop()
        self._library.played.pop(self, None)

    def _visit(self, managed: Manifest, policies: Allowed) -> VisitOutcome:
        failure = failure_of(managed) or self._settings.failure
        self._fail(failure, managed, "throttled")
        resolution = self._references.resolve(managed)
        if resolution.patch:
            managed = self._patch_for_provider(managed, resolution.patch)
        self._secrets.check(managed)
        record = self._record_of(managed)
        if failure == "vanished":
            if record is not None:
                self._site.cluster.delete(ObjectKey.of(record))
            self._fail(failure, managed, "vanished")
        if record is None:
            return self._create(managed, resolution.for_provider, policies, failure)
        if policies.update:
            record = self._update(managed, record, resolution.for_provider, failure)
        late = self._late(managed, record) if policies.late_initialize else {}
        if late:
            managed = self._patch_for_provider(managed, late)
        return self._observed(managed, record, failure)

    # -- what exists

    def _record_of(self, managed: Manifest) -> Manifest | None:
        """Return what a managed resource stands for, if that exists."""
        name = annotations_of(managed).get(RECORD)
        record = self._site.cluster.get(ObjectKey(EXTERNAL, name)) if name else None
        external_name = self._name_of(managed)
        if record is not None and dig(record, "spec", "externalName") == external_name:
            return record
        if external_name:
            return _first(self._records(), lambda it: _is_about(it, managed, external_name))
        if annotations_of(managed).get(CREATED):
            return None
        # A creation that was interrupted: it exists, and its managed resource does not say so yet.
        uid = metadata(managed)["uid"]
        return _first(self._records(), lambda it: dig(it, "spec", "managedBy", "uid") == uid)

    def _name_of(self, managed: Manifest) -> str:
        """Return its external name; '' if the cloud has not assigned one yet."""
        if not self._library.behaviour(Kind.of(managed)).assigned:
            return default_name(managed)
        return str(annotations_of(managed).get(EXTERNAL_NAME) or "")

    def _records(self) -> tuple[Manifest, ...]:
        return self._site.cluster.list(EXTERNAL).items

    # -- changes

    def _create(
        self, managed: Manifest, for_provider: dict[str, Any], policies: Allowed, failure: str
    ) -> VisitOutcome:
        kind = Kind.of(managed)
        behaviour, notes = self._library.behaviour(kind), annotations_of(managed)
        if policies.only_observe:
            raise ManagedError(
                "observe failed: external resource does not exist", ready=UNAVAILABLE
            )
        if not policies.create:
            return VisitOutcome(UNAVAILABLE)
        if behaviour.assigned and notes.get(EXTERNAL_NAME) and not notes.get(CREATED):
            raise ManagedError(
                f"observe failed: {kind.kind} '{notes[EXTERNAL_NAME]}' does not exist, and the "
                f"cloud assigns the names of its kind: remove the annotation {EXTERNAL_NAME} to "
                "create one",
                ready=UNAVAILABLE,
            )
        self._fail(failure, managed, "quota", "notfound", "denied")
        first = dig(managed, "spec", "initProvider", default={}) or {}
        desired = without_references(overlaid(first, for_provider))
        values = ManagedValues(managed, for_provider=desired)
        name = default_name(managed)
        if behaviour.assigned:
            seed = f"{metadata(managed)['uid']} {notes.get(CREATED, '')}"
            name = assigned_name(behaviour, values, seed)
        record = self._write(managed, name, desired, created=self._site.clock.now().isoformat())
        annotations = {
            EXTERNAL_NAME: name,
            CREATED: self._site.recorder.now(),
            RECORD: metadata(record)["name"],
        }
        self._site.patch_metadata(managed, {"annotations": annotations})
        self._tell(managed, "CreatedExternalResource", "creation")
        return VisitOutcome(CREATING, again_s=0.0)

    def _update(
        self, managed: Manifest, record: Manifest, for_provider: dict[str, Any], failure: str
    ) -> Manifest:
        before = dig(record, "spec", "forProvider", default={})
        after = overlaid(before, without_references(for_provider))
        if after == before and dig(record, "spec", "managedBy"):
            return record
        if after != before:
            self._refuse_rival(managed, record)
            self._fail(failure, managed, "quota", "notfound", "denied", verb="update")
            behaviour = self._library.behaviour(Kind.of(managed))
            for path, old, new in replacements(behaviour.replaces, before, after):
                raise ManagedError(replacement_refusal(path, old, new))
            self._tell(managed, "UpdatedExternalResource", "update")
        return self._write(
            managed,
            dig(record, "spec", "externalName"),
            after,
            created=dig(record, "spec", "createdAt", default=""),
            before=record,
        )

    def _refuse_rival(self, managed: Manifest, record: Manifest) -> None:
        """Refuse an update of what another managed resource manages: providers overwrite it."""
        manager = dig(record, "spec", "managedBy") or {}
        if not manager.get("uid") or manager["uid"] == metadata(managed)["uid"]:
            return
        key = ObjectKey.from_json(manager)
        rival = self._site.cluster.get(key) if self._site.cluster.serves(key.kind) else None
        if rival is not None and metadata(rival)["uid"] == manager["uid"]:
            raise ManagedError(
                f"update failed: {key} manages '{record['spec']['externalName']}' with other "
                "values; a provider would overwrite them, and so on without end"
            )

    def _write(
        self,
        managed: Manifest,
        name: str,
        for_provider: dict[str, Any],
        *,
        created: str,
        before: Manifest | None = None,
    ) -> Manifest:
        """Write what exists in the cloud, under the name that it has there already."""
        kind = Kind.of(managed)
        values = ManagedValues(managed, name, for_provider=for_provider)
        schema = self._library.schema(kind, "status", "atProvider")
        state = at_provider(schema, self._library.behaviour(kind), values)
        identifiers = {
            name,
            *(str(state[key]) for key in ("id", "arn", "selfLink") if state.get(key)),
        }
        spec = {
            "apiVersion": managed["apiVersion"],
            "kind": managed["kind"],
            "externalName": name,
            "forProvider": for_provider,
            "account": _account(managed),
            "managedBy": {**ObjectKey.of(managed).to_json(), "uid": metadata(managed)["uid"]},
            "identifiers": sorted(identifiers),
            "dependsOn": sorted(self._needed(kind, for_provider)),
            "revision": dig(before or {}, "spec", "revision", default=0) + 1,
        }
        if created:
            spec["createdAt"] = created
        record_name = metadata(before)["name"] if before else _record_name(spec)
        manifest = {
            "apiVersion": EXTERNAL.api_version,
            "kind": EXTERNAL.kind,
            "metadata": {"name": record_name},
            "spec": spec,
        }
        return self._site.cluster.apply(manifest, owner=OWNER)

    def _needed(self, kind: Kind, for_provider: dict[str, Any]) -> Iterator[str]:
        """Yield the names of the ExternalResources that a resource refers to."""
        referred = set(self._references.referred(kind, for_provider))
        for record in self._records() if referred else ():
            spec = record["spec"]
            group = Kind.parse(spec["apiVersion"], spec["kind"])
            identifiers = {spec["externalName"], *spec.get("identifiers", ())}
            if any(
                (group.group, group.kind) == (referent.group, referent.kind)
                and value in identifiers
                for referent, value in referred
            ):
                yield metadata(record)["name"]

    def _late(self, managed: Manifest, record: Manifest) -> dict[str, Any]:
        """Return the fields of something imported that the managed resource leaves open."""
        if dig(record, "spec", "createdAt"):
            return {}
        present = dig(managed, "spec", "forProvider", default={})
        fields = self._library.schema(Kind.of(managed), "spec", "forProvider").get("properties")
        return {
            name: value
            for name, value in dig(record, "spec", "forProvider", default={}).items()
            if name not in present and (not fields or name in fields)
        }

    def _patch_for_provider(self, managed: Manifest, patch: dict[str, Any]) -> Manifest:
        version = metadata(managed)["resourceVersion"]
        changes = {"metadata": {"resourceVersion": version}, "spec": {"forProvider": patch}}
        return self._site.cluster.patch(ObjectKey.of(managed), changes, owner=OWNER)

    # -- what is shown

    def _observed(self, managed: Manifest, record: Manifest, failure: str) -> VisitOutcome:
        kind, spec = Kind.of(managed), record["spec"]
        self._observers.setdefault(metadata(record)["name"], set()).add(ObjectKey.of(managed))
        behaviour = self._library.behaviour(kind)
        values = ManagedValues(
            managed,
            spec["externalName"],
            self._secrets.password(managed),
            spec.get("revision", 1),
            spec.get("forProvider", {}),
        )
        state = at_provider(self._library.schema(kind, "status", "atProvider"), behaviour, values)
        state = overlaid(state, spec.get("atProvider", {}))
        notes = {EXTERNAL_NAME: spec["externalName"], RECORD: metadata(record)["name"]}
        if notes.items() - annotations_of(managed).items():
            self._site.patch_metadata(managed, {"annotations": notes})
        delay_s = self._settings.delay_s if behaviour.delay_s is None else behaviour.delay_s
        left_s = delay_s - self._age_s(spec.get("createdAt", ""))
        if left_s > 0 or failure == "slow":
            return VisitOutcome(CREATING, again_s=max(left_s, 1.0) if left_s > 0 else None)
        values = replace(values, at_provider=state)
        self._secrets.publish(managed, values.rendered(behaviour.connection))
        return VisitOutcome(AVAILABLE, status={"atProvider": state})

    def _age_s(self, created: str) -> float:
        """Return how long something exists; what the twin did not make always did."""
        if not created:
            return float("inf")
        return (self._site.clock.now() - datetime.fromisoformat(created)).total_seconds()

    # -- the end, and failures

    def _leave(self, managed: Manifest, policies: Allowed) -> bool:
        failure = failure_of(managed) or self._settings.failure
        self._fail(failure, managed, "throttled", "denied", verb="delete")
        record = self._record_of(managed)
        if record is None or not policies.delete:
            return True
        if failure == "slow":
            return False
        spec = record["spec"]
        for protection in _PROTECTIONS:
            if dig(spec, "forProvider", protection) is True:
                raise ManagedError(f"delete failed: OperationNotPermitted: {protection} is on")
        dependents = (
            other for other in self._records()
            if metadata(record)["name"] in dig(other, "spec", "dependsOn", default=())
        )  # fmt: skip
        for other in dependents:
            dependent = f"{other['spec']['kind']} '{other['spec']['externalName']}'"
            raise ManagedError(
                f"delete failed: DependencyViolation: {spec['kind']} '{spec['externalName']}' has "
                f"a dependent object: {dependent}",
                again_s=AGAIN_S,
            )
        self._site.cluster.delete(ObjectKey.of(record))
        self._tell(managed, "DeletedExternalResource", "deletion")
        return False

    def _fail(self, failure: str, managed: Manifest, *failures: str, verb: str = "create") -> None:
        if failure in failures:
            ready = {"throttled": None, "vanished": UNAVAILABLE}.get(failure, CREATING)
            message = failure_message(failure, managed, verb)
            failed = self._library.behaviour(Kind.of(managed)).failed
            present = dig(managed, "status", "atProvider", default={})
            status = {"atProvider": {**present, **failed}} if failed else None
            ready = ready if verb == "create" else None
            raise ManagedError(message, ready=ready, status=status)

    def _tell(self, managed: Manifest, reason: str, action: str) -> None:
        message = f"Successfully requested {action} of external resource"
        self._site.recorder.normal(managed, reason, message)


def _first(records: Iterable[Manifest], is_it: Callable[[Manifest], bool]) -> Manifest | None:
    return next(filter(is_it, records), None)


def _is_about(record: Manifest, managed: Manifest, external_name: str) -> bool:
    """Return whether a record is what a managed resource of this external name stands for."""
    spec, kind = record["spec"], Kind.of(managed)
    its_kind = Kind.parse(spec["apiVersion"], spec["kind"])
    if (its_kind.group, its_kind.kind) != (kind.group, kind.kind):
        return False
    scopes = [(spec.get("account"), _account(managed))] + [
        (dig(spec, "forProvider", name), dig(managed, "spec", "forProvider", name))
        for name in _SCOPES
    ]
    elsewhere = any(
        in_record and in_resource and in_record != in_resource for in_record, in_resource in scopes
    )
    return spec["externalName"] == external_name and not elsewhere


def _account(managed: Manifest) -> str:
    """Return whose cloud it is: an account, a cluster, a database server."""
    reference = dig(managed, "spec", "providerConfigRef", default={}) or {}
    home = (
        metadata(managed).get("namespace", "") if reference.get("kind") == "ProviderConfig" else ""
    )
    return f"{home}/{reference.get('name', 'default')}".removeprefix("/")


def _record_name(spec: dict[str, Any]) -> str:
    """Return the name of an ExternalResource, readable and its own."""
    kind, external_name = spec["kind"], spec["externalName"]
    scopes = [str(spec["forProvider"].get(name, "")) for name in _SCOPES]
    group = Kind.parse(spec["apiVersion"], kind).group
    text = " ".join((kind, group, external_name, spec["account"], *scopes))
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    readable = re.sub(r"[^a-z0-9]+", "-", f"{kind}-{external_name}".lower()).strip("-")[:50]
    return f"{readable}-{digest}"
