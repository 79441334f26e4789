"""
Fields that cannot change once they are set: the API server or the provider refuses the new value.

A table of the kinds of Kubernetes 1.36 and Crossplane, and of fields that clouds fix when a
resource is created; a pack names those of its managed kinds (``replaces`` of behaviour.yaml). Rules
of CRDs (``oldSelf``) are judged by their schemas (``core.plan.judging``). A provider never replaces
a resource: it reports an error until the old value is back, or until somebody deletes the resource.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from compositions.managed_state import reference_forms, replacements
from ground.objects import quantities
from ground.objects.kube_objects import Kind, dig
from ground.objects.quantities import NoQuantity, Unsure
from ground.objects.values import Steps, path_text
from orderkit.core.order.change import ABSENT, differences, same, shown, value_at
from orderkit.core.plan.assembly import Assembly, Pair, key_text, pairs_of
from orderkit.core.plan.dangers.danger_codes import Code, Danger, DangerContext
from orderkit.core.plan.dangers.losses import holds_data, what_is_lost

_RBAC = "rbac.authorization.k8s.io"
_STORAGE = "storage.k8s.io"
_IMMUTABLE: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {
    ("", "Service"): (("spec", "clusterIP"), ("spec", "clusterIPs")),
    ("", "Secret"): (("type",),),
    ("", "PersistentVolume"): (
        ("spec", "csi"), ("spec", "nfs"), ("spec", "hostPath"), ("spec", "local"),
        ("spec", "volumeMode"), ("spec", "nodeAffinity"),
    ),
    ("", "PersistentVolumeClaim"): (
        ("spec", "accessModes"), ("spec", "storageClassName"), ("spec", "volumeName"),
        ("spec", "volumeMode"), ("spec", "selector"), ("spec", "dataSource"),
        ("spec", "dataSourceRef"),
    ),
    ("apps", "Deployment"): (("spec", "selector"),),
    ("apps", "ReplicaSet"): (("spec", "selector"),),
    ("apps", "DaemonSet"): (("spec", "selector"),),
    ("apps", "StatefulSet"): (
        ("spec", "selector"), ("spec", "serviceName"), ("spec", "volumeClaimTemplates"),
        ("spec", "podManagementPolicy"),
    ),
    ("batch", "Job"): (
        ("spec", "template"), ("spec", "selector"), ("spec", "completions"),
        ("spec", "completionMode"), ("spec", "managedBy"), ("spec", "podFailurePolicy"),
    ),
    (_RBAC, "RoleBinding"): (("roleRef",),),
    (_RBAC, "ClusterRoleBinding"): (("roleRef",),),
    (_STORAGE, "StorageClass"): (
        ("provisioner",), ("parameters",), ("reclaimPolicy",), ("volumeBindingMode",),
    ),
    (_STORAGE, "CSIDriver"): (("spec", "attachRequired"), ("spec", "volumeLifecycleModes")),
    ("scheduling.k8s.io", "PriorityClass"): (("value",), ("preemptionPolicy",)),
    ("networking.k8s.io", "IngressClass"): (("spec", "controller"),),
    ("node.k8s.io", "RuntimeClass"): (("handler",),),
    ("discovery.k8s.io", "EndpointSlice"): (("addressType",),),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (
        ("spec", "group"), ("spec", "scope"), ("spec", "names", "kind"),
        ("spec", "names", "plural"),
    ),
    ("apiextensions.crossplane.io", "CompositeResourceDefinition"): (
        ("spec", "group"), ("spec", "scope"), ("spec", "names"), ("spec", "enforcedCompositionRef"),
    ),
    ("apiextensions.crossplane.io", "Composition"): (("spec", "compositeTypeRef"),),
}  # fmt: skip
"""What the API server of Kubernetes 1.36, and Crossplane 2.3's schemas, refuse to change."""
_NEVER_FILLED_IN = {
    "volumeClaimTemplates", "serviceName", "parameters", "data", "binaryData", "immutable",
}  # fmt: skip
"""Fields of the table that the API server does not set itself: it refuses to add or remove them."""

_CLOUD_FIELDS = (
    "location", "region", "project", "availabilityZone", "zone", "engine", "storageEncrypted",
    "kmsKeyId", "masterUsername", "username", "dbName", "databaseVersion", "hierarchicalNamespace",
    "resourceGroupName", "storageAccountName", "name",
)  # fmt: skip
"""Fields of ``spec.forProvider`` that are fixed at creation, for kinds that hold data."""

_SIZES = re.compile(
    r"(storage|capacity|size|sizeGb|sizeGiB|diskSize(Gb)?|allocatedStorage|storageGb|storageMb"
    r"|volumeSize|maxSizeGb|retentionPeriod|backupRetentionPeriod|messageRetentionDuration"
    r"|retention(Days|InDays|Hours|Seconds))\Z",
    re.IGNORECASE,
)
_POD_RESOURCES = {"requests", "limits"}


def immutable_dangers(
    before: Assembly, after: Assembly, context: DangerContext
) -> Iterator[Danger]:
    """Yield changes of immutable fields, and storage that would shrink."""
    for pair in pairs_of(before, after):
        yield from _replacing(pair, context)
        for steps in _steps(pair, context):
            was, now = value_at(pair.old, steps), value_at(pair.new, steps)
            if steps[-1] in _NEVER_FILLED_IN:
                was, now = (None if value is ABSENT else value or None for value in (was, now))
            if was is not ABSENT and now is not ABSENT and not same(was, now):
                message = f"{key_text(pair.new)}: {path_text(steps)} cannot change once it is set"
                yield Danger(pair.path, Code.IMMUTABLE, message)
        yield from _shrinking(pair, context)


def _steps(pair: Pair, context: DangerContext) -> Sequence[tuple[str, ...]]:
    kind = pair.kind
    steps = _IMMUTABLE.get((kind.group, kind.kind), ())
    sealed: Any = pair.old.get("immutable")
    if sealed is True and kind.group == "" and kind.kind in {"ConfigMap", "Secret"}:
        return (*steps, ("data",), ("binaryData",), ("stringData",), ("immutable",))
    if dig(pair.new, "spec", "forProvider") is not None and holds_data(kind, context.laws):
        replaced = context.laws.behaviour(kind).replaces
        names = (name for name in _CLOUD_FIELDS if name not in replaced)
        return (*steps, *(("spec", "forProvider", name) for name in names))
    return steps


def _replacing(pair: Pair, context: DangerContext) -> Iterator[Danger]:
    """Yield changes that only a new resource could have, and what to do."""
    old, new = (dig(m, "spec", "forProvider", default=None) or {} for m in (pair.old, pair.new))
    declared = context.laws.behaviour(pair.kind).replaces
    forms = [form for path in declared for form in reference_forms(path)]
    changed = [path for path, *_ in replacements(declared, old, new)]
    changed += [path for path, was, _ in replacements(forms, old, new) if was is not ABSENT]
    for path in changed:
        yield Danger(
            pair.path,
            Code.REPLACES,
            f"{key_text(pair.new)}: another value of spec.forProvider.{path} needs another "
            "resource, and a provider never replaces one: this one stays as it is, unsynced, until "
            "somebody deletes it (Crossplane then makes it anew) or puts the old value back",
        )
    if changed and holds_data(pair.kind, context.laws):
        message = f"{key_text(pair.new)} can only be replaced: {what_is_lost(pair.kind)}"
        yield Danger(pair.path, Code.DATA_LOSS, message)


def _shrinking(pair: Pair, context: DangerContext) -> Iterator[Danger]:
    stateful = pair.kind.kind == "StatefulSet"
    if not (stateful or holds_data(pair.kind, context.laws)):
        return
    spec = (dig(manifest, "spec", default=None) or {} for manifest in (pair.old, pair.new))
    for field in differences(*spec, into_lists=True):
        if _is_size(field.steps) and _is_less(field.new, field.old):
            message = (
                f"{key_text(pair.new)}: spec.{field.path} from {shown(field.old)} to "
                f"{shown(field.new)}: {_refusal(pair.kind)}"
            )
            yield Danger(pair.path, Code.SHRINKS, message)


def _refusal(kind: Kind) -> str:
    if kind.kind in {"PersistentVolumeClaim", "StatefulSet"}:
        return "a volume can only grow; the API server refuses this"
    return "smaller or shorter: the provider refuses it or data is lost"


def _is_size(steps: Steps) -> bool:
    texts = [str(step) for step in steps]
    return any(_SIZES.match(text) for text in texts) and not (
        _POD_RESOURCES & set(texts) and texts[-1] != "storage"
    )


def _is_less(new: Any, old: Any) -> bool:
    for read in (_seconds, _quantity):  # of two durations, 2m is minutes and no thousandths
        new_amount, old_amount = read(new), read(old)
        if new_amount is not None and old_amount is not None:
            return new_amount < old_amount
    return False


def _seconds(value: Any) -> float | None:
    match = re.fullmatch(r"(\d+)(s|m|h|d|w)", str(value))
    return float(match[1]) * _SECONDS[match[2]] if match else None


def _quantity(value: Any) -> float | None:
    try:
        return float(quantities.parse(str(value)))
    except (NoQuantity, Unsure):
        return None


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
