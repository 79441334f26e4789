"""
Guards that a change removes: policies, quotas, deletion protection, backups.

Two kinds of guards are known: objects that restrict others (network policies, quotas, admission
policies), and fields that protect the data of the object they belong to. What a guard protected is
not looked at: its removal alone is worth a second look.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ground.objects.kube_objects import dig, labels_of
from orderkit.core.order.change import ABSENT, differences
from orderkit.core.plan.assembly import Assembly
from orderkit.core.plan.dangers.danger_codes import Code, Danger
from orderkit.core.plan.object_texts import key_text
from orderkit.core.plan.outcome_objects import Pair, objects_of, pairs_of

_GUARD_KINDS = {
    "NetworkPolicy": "traffic that it blocked is allowed",
    "PodDisruptionBudget": "one eviction may stop every Pod at once",
    "ResourceQuota": "its namespace has no quota any more",
    "LimitRange": "containers have no default limits any more",
    "Usage": "what it protected may be deleted",
    "ClusterUsage": "what it protected may be deleted",
    "ValidatingAdmissionPolicy": "its checks no longer apply",
    "ValidatingAdmissionPolicyBinding": "its checks no longer apply",
    "Policy": "its checks no longer apply",
    "ClusterPolicy": "its checks no longer apply",
    "BucketPublicAccessBlock": "the bucket may be made public",
}
"""By kind in any group: Kyverno and the cloud providers each have groups of their own."""
_GUARD_LABELS = re.compile(
    r"pod-security\.kubernetes\.io/(enforce|audit|warn)(-version)?\Z|istio(-injection|\.io/rev)\Z"
    r"|linkerd\.io/inject\Z"
)
"""Labels of Namespaces that restrict or encrypt what runs in them."""
_GUARD_FIELDS: Mapping[str, object] = {
    "deletionProtection": False, "deletionProtectionEnabled": False, "forceDestroy": True,
    "skipFinalSnapshot": True, "deleteAutomatedBackups": True, "objectLockEnabled": False,
    "storageEncrypted": False, "backupRetentionPeriod": 0, "purgeProtectionEnabled": False,
    "forceDelete": True,
}  # fmt: skip
"""Fields that protect data, each with the value that switches the protection off."""
_GUARD_BLOCKS = {"versioning", "softDeletePolicy", "retentionPolicy", "backupConfiguration"}
"""Objects of fields that protect data as long as they are there."""


def guard_dangers(before: Assembly, after: Assembly) -> Iterator[Danger]:
    """Yield guards that the change removes or switches off."""
    kept = {(obj.path, obj.kind.kind) for obj in objects_of(after)}
    for obj in objects_of(before):
        consequence = _GUARD_KINDS.get(obj.kind.kind)
        if consequence and (obj.path, obj.kind.kind) not in kept:
            message = f"{key_text(obj.manifest)} is removed: {consequence}"
            yield Danger(obj.path, Code.UNGUARDED, message)
    for pair in pairs_of(before, after):
        yield from _changed_labels(pair)
        yield from _unprotected(pair)


def _changed_labels(pair: Pair) -> Iterator[Danger]:
    if pair.kind.kind != "Namespace":
        return
    was, now = labels_of(pair.old), labels_of(pair.new)
    for key in sorted(key for key in was if _GUARD_LABELS.match(key)):
        if was[key] != now.get(key):
            message = f"{key_text(pair.new)}: {key} {was[key]} → {now.get(key, 'none')}"
            yield Danger(pair.path, Code.UNGUARDED, message)


def _unprotected(pair: Pair) -> Iterator[Danger]:
    specs = (dig(manifest, "spec", default=None) or {} for manifest in (pair.old, pair.new))
    for field in differences(*specs, into_lists=True):
        names = [str(step) for step in field.steps]
        in_block = bool(_GUARD_BLOCKS & set(names))
        disabled = is_listed_value(_GUARD_FIELDS, names[-1], field.new)
        removed = field.new is ABSENT and (in_block or _was_guard(names[-1], field.old))
        if disabled or removed or (in_block and field.new is False):
            message = f"{key_text(pair.new)}: spec.{field}: this removes a protection of its data"
            yield Danger(pair.path, Code.UNPROTECTED, message)


def _was_guard(name: str, value: object) -> bool:
    """Return whether a field protected data while it had this value."""
    return value is True and _GUARD_FIELDS.get(name) is False


def is_listed_value(table: Mapping[str, object], name: str, value: object) -> bool:
    """Return whether a field has exactly the value of a table; 0 is not false there."""
    return name in table and type(value) is type(table[name]) and value == table[name]
