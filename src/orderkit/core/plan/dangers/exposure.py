"""
What a change opens: secrets in readable places, wider access, and guards that are removed.

Secrets are looked for in ConfigMaps, annotations, arguments and the order's status. Two signs: the
value of a known Secret appears elsewhere, or a key of a ConfigMap has the name of a secret. Values
that are easy to guess appear everywhere (``secret_values``): of those, only what stations made of
them counts. The value itself is never written into the message.

Access is bindings, roles, cloud policies, networks and privileges of Pods. Only wider access
counts, also where a new resource brings it. The words are those of the large clouds; a policy
document is read where it is JSON.

Two kinds of guards are known: objects that restrict others (network policies, quotas, admission
policies), and fields that protect the data of the object they belong to. What a guard protected is
not looked at: its removal alone is worth a second look.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ground.objects.kube_objects import Kind, Manifest, dig, labels_of, wrapped_object
from ground.objects.values import value_at
from orderkit.core.order.change import ABSENT, differences
from orderkit.core.plan.assembly import (
    Assembly,
    OutcomeObject,
    Pair,
    key_text,
    objects_of,
    pairs_of,
)
from orderkit.core.plan.dangers.danger_codes import Code, Danger, DangerContext
from orderkit.core.plan.dangers.workloads import pod_specs
from orderkit.core.secret_values import SECRET_NAME, SecretTexts, leaves, secrets_in, values_of

_REFERENCE_NAME = re.compile(r"(name|ref|path|file|url|key-?name)s?\Z", re.IGNORECASE)


def secret_values(before: Assembly, after: Assembly, context: DangerContext) -> frozenset[str]:
    """Return the decoded values of all known Secrets that are hard to guess."""
    public = before.secret_traces.public_keys | after.secret_traces.public_keys
    objects = [*context.existing, *before.observed.values(), *after.observed.values()]
    objects += [obj.manifest for side in (before, after) for obj in objects_of(side)]
    traced = before.secret_traces.values | after.secret_traces.values
    return frozenset({*values_of(objects, public=public), *traced})


def exposure_dangers(
    before: Assembly, after: Assembly, secrets: Collection[str]
) -> Iterator[Danger]:
    """Yield places that expose a secret now and did not before."""
    was = dict(_readable_texts(before)) if secrets else {}
    for field_key, texts in _readable_texts(after) if secrets else ():
        path, field = field_key
        is_exposed, was_exposed = (
            _holds(field_texts, secrets) for field_texts in (texts, was.get(field_key, []))
        )
        if is_exposed and not was_exposed:
            about = after.resources.get(path, after.xr)
            message = f"{key_text(about)}: {field} contains the value of a Secret"
            yield Danger(path, Code.EXPOSED, message)
    for path, field in sorted(set(_copies(after)) - set(_copies(before))):
        about = after.resources.get(path, after.xr)
        message = f"{key_text(about)}: {field} contains the value of a Secret"
        yield Danger(path, Code.EXPOSED, message)
    for path, manifest in after.resources.items():
        yield from _secret_like_keys(path, manifest, before.resources.get(path))


def _copies(assembly: Assembly) -> Iterator[tuple[str, str]]:
    """Yield path and top-level field where a value that is easy to guess was copied to."""
    values = SecretTexts((), words=assembly.secret_traces.easy)
    for path, steps in assembly.secret_traces.fields if values else ():
        manifest = assembly.resources.get(path, {}) if path else assembly.xr
        if steps and manifest and not any(secrets_in(manifest)):
            texts = leaves(value_at(manifest, steps))
            if any(map(values.in_text, texts)):
                yield path, str(steps[0])


def _holds(texts: Iterable[str], secrets: Collection[str]) -> bool:
    return any(value in text for text in texts for value in secrets)


def _readable_texts(assembly: Assembly) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Yield the texts that readers of an object see, by path and top-level field."""
    for obj in objects_of(assembly):
        if obj.kind.kind == "Secret" or wrapped_object(obj.manifest) is not None:
            continue
        for key, value in obj.manifest.items():
            if key not in {"apiVersion", "kind"}:
                yield (obj.path, obj.field(key)), list(leaves(value))
    yield ("", "status"), list(leaves(assembly.xr.get("status") or {}))


def _secret_like_keys(path: str, manifest: Manifest, old: Manifest | None) -> Iterator[Danger]:
    kind = Kind.of(manifest)
    if (kind.group, kind.kind) != ("", "ConfigMap"):
        return
    old_data = (old or {}).get("data") or {}
    for key, value in (manifest.get("data") or {}).items():
        is_secret_key = SECRET_NAME.search(str(key)) and not _REFERENCE_NAME.search(str(key))
        if is_secret_key and value and key not in old_data:
            message = f"{key_text(manifest)}: data.{key} is named like a secret"
            yield Danger(path, Code.EXPOSED, message)


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


_EVERYBODY = {
    "allUsers", "allAuthenticatedUsers", "system:anonymous", "system:unauthenticated",
    "system:authenticated", "system:serviceaccounts", "public-read", "public-read-write",
    "authenticated-read", "0.0.0.0/0", "::/0", "Internet",
}  # fmt: skip
_POWERFUL_ROLES = {
    "cluster-admin", "admin", "roles/owner", "roles/editor", "Owner", "Contributor",
    "User Access Administrator", "arn:aws:iam::aws:policy/AdministratorAccess",
}  # fmt: skip
_POWERFUL_VERBS = {"*", "escalate", "bind", "impersonate"}
_OPENINGS: Mapping[str, object] = {
    "publiclyAccessible": True, "publicNetworkAccessEnabled": True, "blockPublicAcls": False,
    "blockPublicPolicy": False, "ignorePublicAcls": False, "restrictPublicBuckets": False,
    "allowNestedItemsToBePublic": True, "publicAccessPrevention": "inherited",
    "uniformBucketLevelAccess": False, "privileged": True, "hostNetwork": True, "hostPID": True,
    "hostIPC": True, "allowPrivilegeEscalation": True, "endpointPublicAccess": True,
    "automountServiceAccountToken": True,
}  # fmt: skip
"""Fields, at any depth, each with the value that widens access."""
_SERVICES = {"LoadBalancer", "NodePort"}


def access_dangers(before: Assembly, after: Assembly) -> Iterator[Danger]:
    """Yield what grants more access than before."""
    was = {(obj.path, obj.prefix): obj for obj in objects_of(before)}
    for obj in objects_of(after):
        old = was.get((obj.path, obj.prefix))
        yield from _granted(obj, old)
        yield from _opened(obj, old)


def _granted(obj: OutcomeObject, old: OutcomeObject | None) -> Iterator[Danger]:
    new_grants = set(_grants(obj.manifest)) - (set(_grants(old.manifest)) if old else set())
    for grant in sorted(new_grants):
        yield Danger(obj.path, Code.ACCESS, f"{key_text(obj.manifest)}: {grant}")


def _grants(manifest: Manifest) -> Iterator[str]:
    """Yield, as sentences, what an object grants to everybody, or grants broadly."""
    if wrapped_object(manifest) is not None:
        return  # the wrapped object is judged instead
    inspected = dig(manifest, "spec", "ingress") if _is_network_policy(manifest) else manifest
    yield from (f"{text} means everybody" for text in _texts(inspected) if text in _EVERYBODY)
    yield from _roles(manifest)
    for pod in pod_specs(manifest):
        for volume in pod.get("volumes") or ():
            if isinstance(volume, dict) and volume.get("hostPath"):
                yield f"mounts {dig(volume, 'hostPath', 'path')} of the node"
    if dig(manifest, "spec", "type") in _SERVICES and manifest.get("kind") == "Service":
        yield f"is reachable from outside the cluster ({dig(manifest, 'spec', 'type')})"


def _is_network_policy(manifest: Manifest) -> bool:
    """Return whether it is a NetworkPolicy: its egress rules grant no access."""
    return manifest.get("kind") == "NetworkPolicy"


def _roles(manifest: Manifest) -> Iterator[str]:
    role = dig(manifest, "roleRef", "name")
    if role in _POWERFUL_ROLES:
        yield f"binds {role}"
    for_provider = dig(manifest, "spec", "forProvider", default=None) or {}
    for name in ("role", "roleDefinitionName", "policyArn"):
        if for_provider.get(name) in _POWERFUL_ROLES:
            yield f"grants {for_provider[name]}"
    yield from _policy(for_provider.get("policy") or for_provider.get("assumeRolePolicy"))
    rules = manifest.get("rules")
    for rule in rules if isinstance(rules, list) else ():
        yield from _rule(rule)


def _rule(rule: object) -> Iterator[str]:
    verbs = dig(rule, "verbs", default=None) or ()
    resources = dig(rule, "resources", default=None) or ()
    about = ", ".join(map(str, resources))
    for verb in verbs:
        if verb in _POWERFUL_VERBS:
            yield f"may use {'every verb' if verb == '*' else verb} on {about}"
    if "*" in resources:
        yield "has a rule for every resource"
    if (
        "secrets" in resources
        and not dig(rule, "resourceNames")
        and {"get", "list", "watch", "*"} & {*verbs}
    ):
        yield "may read every Secret"


def _policy(text: object) -> Iterator[str]:
    try:
        policy = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return
    statements = dig(policy, "Statement", default=None) or ()
    for statement in statements if isinstance(statements, list) else (statements,):
        if dig(statement, "Effect") != "Allow":
            continue
        principal = dig(statement, "Principal")
        who = [principal, *(principal.values() if isinstance(principal, dict) else ())]
        if "*" in who:
            yield "its policy lets everybody in"
        if dig(statement, "Action") == "*":
            yield "its policy allows every action"


def _texts(value: object) -> Iterator[str]:
    """Yield every text of an object but its metadata."""
    if isinstance(value, dict):
        for key, entry in value.items():
            if key not in {"metadata", "status", "data", "description"}:
                yield from _texts(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _texts(entry)
    elif isinstance(value, str):
        yield value


def _opened(obj: OutcomeObject, old: OutcomeObject | None) -> Iterator[Danger]:
    if wrapped_object(obj.manifest) is not None:
        return
    spec = dig(obj.manifest, "spec", default=None) or {}
    was: Any = dig(old.manifest, "spec", default=None) or {} if old else {}
    for field in differences(was, spec, into_lists=True):
        if is_listed_value(_OPENINGS, str(field.steps[-1]), field.new):
            message = f"{key_text(obj.manifest)}: spec.{field} widens access"
            yield Danger(obj.path, Code.ACCESS, message)
