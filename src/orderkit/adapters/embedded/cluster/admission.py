"""
The one place where a write can be refused for a reason beyond its schema.

An `Admission` is called for every create, update and delete, dry runs included, after defaulting
and validation and before anything is stored. `Policies` is the one a cluster has by default: it
enforces the ValidatingAdmissionPolicies of the cluster at once (a real server needs a moment). An
expression that cannot be evaluated exactly (``core.schema.admission``) is handled by the policy's
``failurePolicy``, with a message.

Not here: webhooks, MutatingAdmissionPolicies, the ``authorizer``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orderkit.adapters.embedded.cluster.accounts import ADMIN, Account
from orderkit.adapters.embedded.cluster.journal import StorageKey
from orderkit.adapters.embedded.cluster.refusals import DeniedByPolicy, RefusalSubject
from orderkit.adapters.embedded.cluster.store import ObjectStore
from orderkit.core.objects.kube_objects import NAMESPACE, Kind, Manifest, dig, metadata
from orderkit.core.schema.admission import BINDING, POLICY, Operation, Policy, Review, judge


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
            DeniedByPolicy: A policy refuses it.
        """
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
