"""
The path of every write into the store.

The steps: prune and default; validate (schema, metadata, rules of the kind, admission); record the
field owners; store the object if it changed. Each method is one critical section under the store's
lock, so read-decide-write is atomic and optimistic concurrency is exact.

Returned manifests are the store's own: callers copy before they hand them out.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from ground.objects.kube_objects import (
    CRD,
    DELETION_ATTEMPT,
    NAMESPACE,
    Manifest,
    annotations_of,
    metadata,
)
from ground.objects.values import clone
from kubeschema.admission import Operation
from kubeschema.cel import BLOCKING
from kubeschema.pruning import default, prune
from kubeschema.structural import problems, type_problems
from orderkit_standins.cluster import definitions, field_ownership, write_rules
from orderkit_standins.cluster.admission import Admission, AdmissionRequest
from orderkit_standins.cluster.definitions import KindRegistry
from orderkit_standins.cluster.documents import encode, meta
from orderkit_standins.cluster.kinds import OBJECT_META, ServedKind
from orderkit_standins.cluster.lifecycle import (
    PROTECTED_NAMESPACES,
    Deleted,
    Deletion,
    Write,
    bool_differs,
    desired,
    held,
    marked,
    only_subresource,
    place_of,
    presented,
    protected,
    shaped,
    shared_view,
    skeleton,
    stamp,
    without_empty_metadata,
    without_nulls,
)
from orderkit_standins.cluster.refusals import (
    AlreadyExists,
    BadRequest,
    Cause,
    Conflict,
    Forbidden,
    InUse,
    Invalid,
    NamespaceMissing,
    NotAllowed,
    NotFound,
    TerminatingNamespace,
    WrongType,
)
from orderkit_standins.cluster.store import ObjectStore, StorageKey
from orderkit_standins.cluster.write_rules import metadata_faults

Edit = Callable[[Manifest], Manifest]


class Writes:
    """Every way to change the store."""

    def __init__(self, store: ObjectStore, registry: KindRegistry, admission: Admission) -> None:
        self._store, self._registry, self._admission = store, registry, admission

    def create(self, served: ServedKind, manifest: Manifest, write: Write) -> Manifest:
        """
        Store a new object.

        Raises:
            AlreadyExists: Its name is taken. BadRequest, Invalid, Forbidden: it is refused.
            NamespaceMissing: Its namespace does not exist.
        """
        new = self._normalised(served, manifest)
        if metadata(new).get("resourceVersion"):
            raise BadRequest("resourceVersion should not be set on objects to be created")
        self._name(served, new)
        with self._store.lock:
            return self._create(served, new, write, author=_author(served, write))

    def change(
        self, served: ServedKind, namespace: str, name: str, edit: Edit, write: Write
    ) -> Manifest:
        """
        Replace an object by what `edit` makes of it. `edit` gets a copy it may keep.

        Raises:
            NotFound: It does not exist.
            Conflict: The result carries another resourceVersion or uid.
            BadRequest, Invalid, Forbidden: It is refused.
        """
        if served.namespaced and not namespace:
            raise BadRequest("an empty namespace may not be set during update")
        store_key = place_of(served, namespace, name)
        with self._store.lock:
            old = self._existing(served, store_key)
            live = (
                presented(served, old)
                if write.strictness == "Ignore"
                else prune(served.typed, shared_view(served, old))[0]  # a copy, too
            )
            new = self._normalised(served, edit(live))
            self._refuse_other_identity(served, store_key, old, new)
            return self._update(served, store_key, old, new, write, author=_author(served, write))

    def apply(
        self, served: ServedKind, manifest: Manifest, write: Write, *, force: bool
    ) -> Manifest:
        """
        Server-side apply: create the object, or make exactly these fields the owner's.

        Raises:
            ApplyConflict: Another manager owns a field, and `force` is False.
            WrongType: A value does not fit its schema at all.
            NotFound: The write is for the status and the object does not exist.
            BadRequest, Invalid, Forbidden, NamespaceMissing, Conflict: It is refused.
        """
        config = self._normalised(served, manifest)
        if not metadata(config).get("name"):
            raise BadRequest("metadata.name is required to apply an object")
        if metadata(config).get("managedFields"):
            raise BadRequest("metadata.managedFields must be nil")
        _refuse_wrong_types(served, config)
        config = without_nulls(only_subresource(served, config, write))
        store_key = place_of(
            served, metadata(config).get("namespace", ""), metadata(config)["name"]
        )
        author = _author(served, write)
        with self._store.lock:
            old = self._store.get(store_key)
            if old is None and write.subresource:
                raise NotFound(served.subject(store_key.name))
            live = skeleton(served, store_key) if old is None else shared_view(served, old)
            stated_version, uid = (
                metadata(config).get("resourceVersion"),
                metadata(config).get("uid"),
            )
            if old is None and uid:
                raise Conflict(
                    served.subject(store_key.name),
                    f"uid mismatch: the provided object specified uid {uid}, and no existing "
                    "object was found",
                )
            new = field_ownership.apply(
                live,
                config,
                served.typed,
                author,
                force=force,
                subject=served.subject(store_key.name),
            )
            if old is None:
                return self._create(served, new, write, author=None)
            if stated_version:
                meta(new)["resourceVersion"] = stated_version
            if uid:
                meta(new)["uid"] = uid
            self._refuse_other_identity(served, store_key, old, new)
            return self._update(served, store_key, old, new, write, author=None)

    def delete(self, served: ServedKind, namespace: str, name: str, how: Deletion) -> Deleted:
        """
        Delete an object, or mark it for deletion if finalizers hold it.

        Raises:
            NotFound: It does not exist. Conflict: a precondition does not hold.
            Forbidden: It may not be deleted.
        """
        store_key = place_of(served, namespace, name)
        with self._store.lock:
            old = self._existing(served, store_key)
            self._check_preconditions(served, old, how)
            if served.kind == NAMESPACE and name in PROTECTED_NAMESPACES:
                raise Forbidden(
                    f'namespaces "{name}" is forbidden: this namespace may not be deleted',
                    subject=served.subject(name),
                )
            write = Write(how.owner, dry_run=how.dry_run, account=how.account)
            try:
                self._admit(served, None, old, write)
            except InUse:
                # a Usage may ask for this deletion to be repeated when it is gone (replayDeletion)
                self._note_attempt(served, store_key, old, how)
                raise
            new = marked(served, old, how)
            is_gone = not held(served, new)
            if how.dry_run or (not is_gone and new == old):
                return Deleted(old if new == old else new, is_gone)
            return Deleted(self._commit(served, store_key, new, is_gone=is_gone), is_gone)

    def _note_attempt(
        self, served: ServedKind, store_key: StorageKey, old: Manifest, how: Deletion
    ) -> None:
        """Record a deletion that a Usage refused, as Crossplane's webhook does."""
        propagation = how.propagation or "Background"
        if how.dry_run or annotations_of(old).get(DELETION_ATTEMPT) == propagation:
            return
        new = clone(old)
        meta(new)["annotations"] = {**annotations_of(old), DELETION_ATTEMPT: propagation}
        self._commit(served, store_key, new)

    # -- the steps

    def _normalised(self, served: ServedKind, manifest: Manifest) -> Manifest:
        """Return an object whose metadata may be changed; `_shaped` copies the rest."""
        kind = served.kind
        new = {"apiVersion": "", "kind": "", **manifest}
        new["apiVersion"], new["kind"] = kind.api_version, kind.kind
        new["metadata"] = dict(metadata(manifest))
        fields = meta(new)
        if not served.namespaced:
            fields.pop("namespace", None)
        for name in ("name", "generateName", "namespace", "uid", "resourceVersion"):
            if not isinstance(fields.get(name, ""), str | None):
                raise BadRequest(f"metadata.{name}: expected string, got {encode(fields[name])}")
        return new

    def _name(self, served: ServedKind, new: Manifest) -> None:
        fields = meta(new)
        if not fields.get("name") and fields.get("generateName"):
            fields["name"] = f"{fields['generateName']}{secrets.token_hex(3)[:5]}"
        if not fields.get("name"):
            raise Invalid(
                served.subject(""),
                [
                    Cause(
                        "metadata.name",
                        "Required value: name or generateName is required",
                        "FieldValueRequired",
                    )
                ],
            )

    def _existing(self, served: ServedKind, store_key: StorageKey) -> Manifest:
        stored = self._store.get(store_key)
        if stored is None:
            raise NotFound(served.subject(store_key.name))
        return stored

    def _create(
        self,
        served: ServedKind,
        new: Manifest,
        write: Write,
        *,
        author: field_ownership.Author | None,
    ) -> Manifest:
        store_key = place_of(served, metadata(new).get("namespace") or "", metadata(new)["name"])
        self._refuse_bad_place(served, store_key)
        if served.has_status:
            new.pop("status", None)
        owned = metadata(new).get("managedFields")
        new = self._shaped(served, new, None, write)
        if self._store.get(store_key) is not None:
            raise AlreadyExists(served.subject(store_key.name))
        fields = stamp(served, new)
        if author is not None:
            field_ownership.record_update(None, new, served.typed, author)
        else:
            fields["managedFields"] = owned
        self._admit(served, new, None, write)
        return new if write.dry_run else self._commit(served, store_key, new, created=True)

    def _update(
        self,
        served: ServedKind,
        store_key: StorageKey,
        old: Manifest,
        new: Manifest,
        write: Write,
        *,
        author: field_ownership.Author | None,
    ) -> Manifest:
        new = protected(served, old, new, write)
        owned = metadata(new).get("managedFields")
        new = self._shaped(served, new, old, write)
        fields = meta(new)
        if author is not None:
            field_ownership.record_update(old, new, served.typed, author)
        elif owned is not None:
            fields["managedFields"] = owned
        new["apiVersion"] = old["apiVersion"]
        if new == old and not bool_differs(new, old):
            return old
        if served.has_generation and desired(served, new) != desired(served, old):
            fields["generation"] = fields.get("generation", 0) + 1
        self._admit(served, new, old, write)
        is_gone = bool(fields.get("deletionTimestamp")) and not held(served, new)
        return new if write.dry_run else self._commit(served, store_key, new, is_gone=is_gone)

    def _shaped(
        self, served: ServedKind, new: Manifest, old: Manifest | None, write: Write
    ) -> Manifest:
        new, unknown = prune(served.typed, new)
        _report_unknown(served, unknown, write, created=old is None)
        new = without_empty_metadata(default(served.typed, new))
        new = write_rules.prepare(served.kind, new, old, finalize=write.subresource == "finalize")
        faults = metadata_faults(served, new, old)
        faults += _schema_faults(served, new, old, write)
        if not faults:
            faults = write_rules.faults(served.kind, new, old)
        if faults:
            refusal = Invalid(served.subject(str(metadata(new).get("name", ""))), faults)
            refusal.warnings = tuple(write.warnings)
            raise refusal
        return definitions.established(new) if served.kind == CRD else new

    def _refuse_bad_place(self, served: ServedKind, store_key: StorageKey) -> None:
        subject = served.subject(store_key.name)
        if served.namespaced:
            if not store_key.namespace:
                raise BadRequest("an empty namespace may not be set during creation")
            namespace = self._store.get(StorageKey("", "Namespace", "", store_key.namespace))
            if namespace is None:
                raise NamespaceMissing(store_key.namespace)
            if metadata(namespace).get("deletionTimestamp"):
                raise TerminatingNamespace(subject, store_key.namespace)
        if served.custom:
            definition = self._store.get(StorageKey(CRD.group, CRD.kind, "", subject.resource))
            if definition is not None and definitions.terminating(definition):
                raise NotAllowed(
                    "create not allowed while custom resource definition is terminating",
                    subject=subject,
                )

    def _refuse_other_identity(
        self, served: ServedKind, store_key: StorageKey, old: Manifest, new: Manifest
    ) -> None:
        was, becomes = metadata(old), metadata(new)
        subject = served.subject(store_key.name)
        if becomes.get("name", store_key.name) != store_key.name:
            raise BadRequest(
                f"the name of the object ({becomes['name']}) does not match the name on the URL "
                f"({store_key.name})"
            )
        if (becomes.get("namespace") or store_key.namespace) != store_key.namespace:
            raise BadRequest(
                "the namespace of the provided object does not match the namespace sent on the "
                "request"
            )
        uid = becomes.get("uid")
        if uid and uid != was["uid"]:
            raise Conflict(
                subject,
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
                f"{was['uid']}",
            )
        stated_version = becomes.get("resourceVersion")
        if served.custom and not stated_version:
            fault = "Invalid value: 0x0: must be specified for an update"
            raise Invalid(subject, [Cause("metadata.resourceVersion", fault)])
        if stated_version and stated_version != was["resourceVersion"]:
            raise Conflict(subject)

    def _check_preconditions(self, served: ServedKind, old: Manifest, how: Deletion) -> None:
        fields = metadata(old)
        subject = served.subject(fields["name"])
        if how.uid and how.uid != fields["uid"]:
            raise Conflict(
                subject,
                f"Precondition failed: UID in precondition: {how.uid}, UID in object meta: "
                f"{fields['uid']}",
            )
        if how.resource_version and how.resource_version != fields["resourceVersion"]:
            raise Conflict(
                subject,
                "Precondition failed: ResourceVersion in precondition: "
                f"{how.resource_version}, ResourceVersion in object meta: "
                f"{fields['resourceVersion']}",
            )

    def _admit(
        self,
        served: ServedKind,
        new: Manifest | None,
        old: Manifest | None,
        write: Write,
    ) -> None:
        operation: Operation = "UPDATE"
        if new is None or old is None:
            operation = "DELETE" if new is None else "CREATE"
        request = AdmissionRequest(
            operation,
            served.kind,
            served.plural,
            write.subresource,
            write.owner,
            new,
            old,
            write.dry_run,
            write.account,
        )
        write.warnings.extend(self._admission(request))

    def _commit(
        self,
        served: ServedKind,
        store_key: StorageKey,
        new: Manifest,
        *,
        created: bool = False,
        is_gone: bool = False,
    ) -> Manifest:
        if is_gone:
            stored = self._store.commit("DELETED", store_key, new)
        else:
            stored = self._store.commit("ADDED" if created else "MODIFIED", store_key, new)
        if served.kind == CRD:
            self._definition_changed(stored, is_gone=is_gone)
        return stored

    def _definition_changed(self, definition: Manifest, *, is_gone: bool) -> None:
        if is_gone:
            self._registry.forget(metadata(definition)["name"])
        else:
            self.define(definition)

    def define(self, definition: Manifest) -> None:
        """Serve a definition; objects that are there already show by its schema from now on."""
        self._registry.define(definition)
        served = definitions.stored_kind(definition)
        if not served.shaped_on_read:
            group, kind = served.kind.group, served.kind.kind
            self._store.reshape(group, kind, lambda manifest: shaped(served, manifest))


def _schema_faults(
    served: ServedKind, new: Manifest, old: Manifest | None, write: Write
) -> list[Cause]:
    """Judge structure, then CEL rules where the structure leaves them something to judge."""
    schema_problems = problems(served.schema, new)
    if served.rules is not None and not any(p.reason in BLOCKING for p in schema_problems):
        before = default(served.typed, old) if old is not None else None
        verdicts = served.rules.check(new, before)
        schema_problems = sorted({*schema_problems, *verdicts.problems})
        write.warnings.extend(
            f"{gap.path}: rule not evaluated: {gap.rule} ({gap.why})" for gap in verdicts.gaps
        )
    return [Cause(p.path, p.message, p.reason) for p in schema_problems]


def _author(served: ServedKind, write: Write) -> field_ownership.Author:
    return field_ownership.Author(write.owner, served.kind.api_version, write.subresource)


def _refuse_wrong_types(served: ServedKind, config: Manifest) -> None:
    type_faults = [f"{p.path}: {p.message}" for p in type_problems(served.typed, config)]
    type_faults += [
        f".metadata{p.path}: {p.message}" for p in type_problems(OBJECT_META, metadata(config))
    ]
    if not type_faults:
        return
    namespace, name = metadata(config).get("namespace", ""), metadata(config).get("name", "")
    about = f"{namespace}/{name}; {served.kind.api_version}, Kind={served.kind.kind}"
    why = (
        type_faults[0]
        if len(type_faults) == 1
        else "errors:\n" + "\n".join(f"  {line}" for line in type_faults)
    )
    raise WrongType(f"failed to create typed patch object ({about}): {why}")


def _report_unknown(served: ServedKind, unknown: list[str], write: Write, *, created: bool) -> None:
    if not unknown or write.strictness == "Ignore":
        return
    texts = [f'unknown field "{path}"' for path in unknown]
    if write.strictness == "Warn":
        write.warnings.extend(texts)
        return
    kind = served.kind
    handled = (
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
        if created
        else ""
    )
    raise BadRequest(f"{handled}strict decoding error: {', '.join(texts)}")
