"""
The one place where a write can be refused for a reason beyond its schema.

An `Admission` is called for every create, update and delete, dry runs included, after defaulting
and validation and before anything is stored. `Policies` is the one a cluster has by default: it
enforces the ValidatingAdmissionPolicies of the cluster at once (a real server needs a moment). An
expression that cannot be evaluated exactly (``kubeschema.admission``) is handled by the policy's
``failurePolicy``, with a message. What a Usage protects is not deleted, as by Crossplane's webhook.

An `Account` is who writes, as admission policies see it (``request.userInfo``). Rights are not
checked.

Not here: other webhooks, MutatingAdmissionPolicies, the ``authorizer``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ground.objects.kube_objects import (
    CLUSTER_USAGE,
    IN_USE,
    NAMESPACE,
    USAGE,
    Kind,
    Manifest,
    ObjectKey,
    dig,
    labels_of,
    metadata,
    used_by,
)
from kubeschema.admission import BINDING, POLICY, Operation, Policy, Review, judge
from orderkit_standins.cluster.refusals import DeniedByPolicy, InUse, RefusalSubject
from orderkit_standins.cluster.store import ObjectStore, StorageKey

_PREFIX = "system:serviceaccount:"
_EVERYBODY = "system:authenticated"


@dataclass(frozen=True, slots=True)
class Account:
    """A user name with its groups."""

    name: str
    groups: tuple[str, ...] = (_EVERYBODY,)


def impersonated(name: str, groups: tuple[str, ...] = ()) -> Account:
    """Return the account that a request is for; a service account's groups follow its name."""
    parts = name.removeprefix(_PREFIX).split(":")
    if not groups and name.startswith(_PREFIX) and all(parts) and len(parts) == 2:  # noqa: PLR2004 - namespace and name
        groups = "system:serviceaccounts", f"system:serviceaccounts:{parts[0]}"
    return Account(name, tuple(dict.fromkeys((*groups, _EVERYBODY))))


ADMIN = Account("admin", ("system:masters", _EVERYBODY))
COLLECTOR = impersonated("system:serviceaccount:kube-system:generic-garbage-collector")


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """A write before it happens. The manifests are shared: admission must not change them."""

    operation: Operation
    kind: Kind
    plural: str
    subresource: str
    owner: str
    new: Manifest | None
    old: Manifest | None
    dry_run: bool = False
    account: Account = ADMIN

    @property
    def meta(self) -> dict[str, object]:
        """The metadata of the object that is written or deleted."""
        return metadata(self.new or self.old or {})


Admission = Callable[[AdmissionRequest], Sequence[str]]
"""Return warnings to admit; raise one of ``refusals`` to refuse."""


class Policies:
    """Enforces the policies of a store."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._compiled: dict[str, tuple[str, Policy]] = {}

    def __call__(self, request: AdmissionRequest) -> Sequence[str]:
        """
        Judge a write.

        Raises:
            DeniedByPolicy: A policy refuses it. InUse: it deletes what a Usage protects.
        """
        if request.operation == "DELETE":
            self._refuse_in_use(request)
        bindings = self._store.scan(BINDING.group, BINDING.kind)
        if not bindings:
            return ()
        names = {str(dig(binding, "spec", "policyName")) for binding in bindings}
        stored_policies = self._store.scan(POLICY.group, POLICY.kind)
        policies = {
            metadata(p)["name"]: self._policy(p)
            for p in stored_policies
            if metadata(p)["name"] in names
        }
        ruling = judge(policies, bindings, self._review(request), self._list_objects)
        if ruling.denials:
            subject = RefusalSubject(
                request.kind.kind, request.kind.group, request.plural, str(request.meta.get("name"))
            )
            denial = DeniedByPolicy(subject, ruling.denials[0].sentence, ruling.denials[0].reason)
            denial.warnings = tuple(ruling.warnings)
            raise denial
        return [*ruling.warnings, *ruling.skipped]

    def _refuse_in_use(self, request: AdmissionRequest) -> None:
        """Do what Crossplane's webhook does, which is called for objects with the label."""
        if labels_of(request.old or {}).get(IN_USE) != "true":
            return
        key = ObjectKey.of(request.old or {})
        usages = [
            usage
            for kind in (USAGE, CLUSTER_USAGE)
            for usage in self._store.scan(kind.group, kind.kind)
            if _names(usage, key)
        ]
        if not usages:
            return
        first = usages[0]
        meta, by = metadata(first), dig(first, "spec", "by")
        home = f' (in namespace "{meta["namespace"]}")' if meta.get("namespace") else ""
        reason = f'with reason: "{dig(first, "spec", "reason", default="")}"'
        user = f"by resource {used_by(first, 'by').kind.kind}/{used_by(first, 'by').name}"
        raise InUse(
            RefusalSubject(request.kind.kind, request.kind.group, request.plural, key.name),
            f"This resource is in-use by {len(usages)} usage(s), including the "
            f'*v1beta1.{first["kind"]} "{meta["name"]}"{home} {user if by else reason}.',
        )

    def _policy(self, manifest: Manifest) -> Policy:
        """Return a policy, compiled once per version of it."""
        name, version = metadata(manifest)["name"], metadata(manifest)["resourceVersion"]
        compiled = self._compiled.get(name)
        if compiled is None or compiled[0] != version:
            compiled = self._compiled[name] = version, Policy(manifest)
        return compiled[1]

    def _review(self, request: AdmissionRequest) -> Review:
        namespace = str(request.meta.get("namespace") or "")
        store_key = StorageKey(NAMESPACE.group, NAMESPACE.kind, "", namespace)
        return Review(
            operation=request.operation,
            kind=request.kind,
            plural=request.plural,
            name=str(request.meta.get("name") or ""),
            new=request.new,
            old=request.old,
            namespace=namespace,
            subresource=request.subresource,
            user=request.account.name,
            groups=request.account.groups,
            dry_run=request.dry_run,
            namespace_object=self._store.get(store_key) if namespace else None,
        )

    def _list_objects(self, kind: Kind, namespace: str | None) -> Sequence[Manifest]:
        return list(self._store.scan(kind.group, kind.kind, namespace))


def _names(usage: Manifest, key: ObjectKey) -> bool:
    """Return whether a Usage is about an object, in whatever version either was written."""
    used_key = used_by(usage, "of")
    same_kind = (used_key.kind.group, used_key.kind.kind) == (key.kind.group, key.kind.kind)
    return same_kind and (used_key.name, used_key.namespace) == (key.name, key.namespace)
