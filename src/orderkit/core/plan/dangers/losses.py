"""
Objects that a change deletes or leaves behind.

Deleting a managed resource deletes the external resource unless its policies keep it.
``deletionPolicy`` counts only for kinds that have it: the namespaced family (``….m.…``) has none.
Nested XRs that this plan cannot expand are judged by their resourceRefs.

`holds_data` has a table of common kinds that hold data. ``pack.yaml`` and ``kit.yaml`` extend the
table (``spec.plan.dataKinds``) and take precedence over it. A kind in neither is assumed to hold no
data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compositions.composed import composed_keys
from ground.objects.kube_objects import (
    EXTERNAL_NAME,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
    metadata,
    wrapped_object,
)
from orderkit.core.plan.assembly import Assembly, is_same, key_text, pairs_of
from orderkit.core.plan.composed_tree import ANY_GROUP, PackRules
from orderkit.core.plan.dangers.danger_codes import Code, Danger, DangerContext

DATA_KINDS = frozenset(
    [
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Volume",
        "EBSVolume",
        "Disk",
        "ManagedDisk",
        "FileSystem",
        "Filesystem",
        "FileShare",
        "Snapshot",
        "VolumeSnapshot",
        "Backup",
        "BackupVault",
        "Bucket",
        "StorageAccount",
        "Repository",
        "Registry",
        "Database",
        "DatabaseInstance",
        "DBInstance",
        "DBCluster",
        "RDSInstance",
        "FlexibleServer",
        "SpannerInstance",
        "KubernetesCluster",
        "ReplicationGroup",
        "Table",
        "Queue",
        "KeyRing",
        "CryptoKey",
        "Vault",
        "LogGroup",
        "UserPool",
        "PostgresCluster",
        "Postgresql",
        "InnoDBCluster",
        "PerconaXtraDBCluster",
        "MongoDB",
        "MongoDBCommunity",
        "RedisCluster",
        "Elasticsearch",
        "CassandraDatacenter",
        "CustomResourceDefinition",
        "CompositeResourceDefinition",
        "Namespace",
    ]
)
"""Kinds that hold data in every group."""
DATA_KINDS_BY_GROUP = {
    "Account": frozenset({"cosmosdb", "storage"}),
    "Cluster": frozenset(
        [
            "rds",
            "redshift",
            "docdb",
            "neptune",
            "elasticache",
            "alloydb",
            "kafka",
            "msk",
            "postgresql",
            "memorydb",
            "opensearch",
            "eks",
            "container",
            "containeraws",
            "containerazure",
            "dataproc",
        ]
    ),
    "Container": frozenset({"storage"}),
    "Dataset": frozenset({"bigquery"}),
    "Domain": frozenset({"opensearch", "elasticsearch"}),
    "Instance": frozenset(
        [
            "sql",
            "rds",
            "redis",
            "spanner",
            "alloydb",
            "filestore",
            "memcache",
            "bigtable",
            "ec2",
            "compute",
        ]
    ),
    "Kafka": frozenset({"kafka"}),
    "Key": frozenset({"kms"}),
    "Secret": frozenset({"secretsmanager", "secretmanager"}),
    "Stream": frozenset({"kinesis", "kinesisvideo"}),
    "Topic": frozenset({"pubsub", "pubsublite", "kafka", "sns", "servicebus"}),
    "postgresql": frozenset({"acid"}),
}
"""Kinds whose name is used for much else: they hold data in groups that begin with these labels."""
_WHY = {
    "Namespace": "everything in it is deleted too",
    "CustomResourceDefinition": "every object of that kind is deleted too",
    "CompositeResourceDefinition": "every XR of that kind is deleted too, with all it composes",
    "KubernetesCluster": "everything that runs in it is deleted too",
}


def holds_data(kind: Kind, laws: PackRules) -> bool:
    """Return whether objects of a kind hold data."""
    for group in (kind.group, ANY_GROUP):
        declared = laws.data_kinds.get((group, kind.kind))
        if declared is not None:
            return declared
    service = kind.group.partition(".")[0]
    return kind.kind in DATA_KINDS or service in DATA_KINDS_BY_GROUP.get(kind.kind, ())


def what_is_lost(kind: Kind) -> str:
    """Describe what is lost when an object of a kind is deleted."""
    return _WHY.get(kind.kind, "its data is lost")


_CLUSTERS_FINALIZERS = {"foregroundDeletion", "orphan", "kubernetes"}
_CROSSPLANES_FINALIZERS = ("finalizer.managedresource.crossplane.io", "composite.apiextensions")


def loss_dangers(before: Assembly, after: Assembly, context: DangerContext) -> Iterator[Danger]:
    """Yield what is deleted, left behind, or managed in another place."""
    yield from _removals(before, after, context)
    yield from _replacements(before, after, context)
    yield from _moved_to_other_provider(before, after, context)


def _removals(before: Assembly, after: Assembly, context: DangerContext) -> Iterator[Danger]:
    path_by_key = {ObjectKey.of(manifest): path for path, manifest in after.resources.items()}
    removed = [path for path in before.resources if path not in after.resources]
    for path in removed:
        manifest = before.resources[path]
        again = path_by_key.get(ObjectKey.of(manifest))
        if again is not None:
            message = (
                f"{key_text(manifest)} is deleted and recreated: its logical name is '{again}' now"
            )
            yield Danger(path, Code.MADE_AGAIN, message)
        yield from deletion_dangers(path, manifest, context)
        yield from _live_object_dangers(path, before, context)


def deletion_dangers(path: str, manifest: Manifest, context: DangerContext) -> Iterator[Danger]:
    """Yield the dangers of deleting a resource, or what a provider-kubernetes Object wraps."""
    if not is_deleted_with_it(manifest):
        message = f"{key_text(manifest)} is orphaned: it stays, but nothing manages it any more"
        yield Danger(path, Code.ABANDONED, message)
        return
    inner = wrapped_object(manifest)
    if inner is not None:
        yield from deletion_dangers(path, inner, context)
        return
    kind = Kind.of(manifest)
    if holds_data(kind, context.laws):
        message = f"{key_text(manifest)} is deleted: {what_is_lost(kind)}"
        yield Danger(path, Code.DATA_LOSS, message)
    yield from _claims(path, manifest)


def _claims(path: str, manifest: Manifest) -> Iterator[Danger]:
    """Volume claims of a StatefulSet stay unless its retention policy deletes them."""
    claims = dig(manifest, "spec", "volumeClaimTemplates", default=None)
    if Kind.of(manifest).kind != "StatefulSet" or not claims:
        return
    retained = dig(manifest, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
    if retained == "Delete":
        message = (
            f"{key_text(manifest)} is deleted together with its volume claims: their data is lost"
        )
        yield Danger(path, Code.DATA_LOSS, message)
    else:
        message = (
            f"the volume claims of {key_text(manifest)} stay, but nothing manages them any more"
        )
        yield Danger(path, Code.ABANDONED, message)


def _live_object_dangers(path: str, before: Assembly, context: DangerContext) -> Iterator[Danger]:
    """Yield what only the object in the cluster shows: finalizers, and what an XR composes."""
    living = before.observed.get(path)
    if living is None:
        return
    finalizers = [
        str(finalizer)
        for finalizer in metadata(living).get("finalizers") or ()
        if finalizer not in _CLUSTERS_FINALIZERS
        and not str(finalizer).startswith(_CROSSPLANES_FINALIZERS)
    ]
    if finalizers:
        message = (
            f"{key_text(living)} is deleted only after {', '.join(finalizers)} is removed: this "
            "may hang"
        )
        yield Danger(path, Code.FINALIZER, message)
    below = [nested for nested in before.resources if nested.startswith(f"{path}/")]
    refs = list(composed_keys(living))
    if below or refs:
        count = len(below) or len(refs)
        message = f"{key_text(living)} is deleted with the {count} resources composed for it"
        yield Danger(path, Code.NESTED, message)
    for key in refs if not below else ():
        if holds_data(key.kind, context.laws):
            message = f"{key_text(living)} is deleted together with {key}: {what_is_lost(key.kind)}"
            yield Danger(path, Code.DATA_LOSS, message)


def is_deleted_with_it(manifest: Manifest) -> bool:
    """Return whether deleting the object deletes what it manages (managed resources may not)."""
    policies: Sequence[str] = dig(manifest, "spec", "managementPolicies", default=None) or ["*"]
    has_policy = ".m." not in Kind.of(manifest).group
    orphaned = has_policy and dig(manifest, "spec", "deletionPolicy") == "Orphan"
    return not orphaned and bool({"*", "Delete"} & set(policies))


def _replacements(before: Assembly, after: Assembly, context: DangerContext) -> Iterator[Danger]:
    for path in before.resources.keys() & after.resources.keys():
        old, new = before.resources[path], after.resources[path]
        old_kind, new_kind = Kind.of(old), Kind.of(new)
        inner, became = wrapped_object(old), wrapped_object(new)
        if (old_kind.group, old_kind.kind) != (new_kind.group, new_kind.kind):
            message = (
                f"{key_text(old)} is left behind: '{path}' is {key_text(new)} now, "
                "and Crossplane no longer tracks the old object"
            )
            yield Danger(path, Code.ABANDONED, message)
            yield from _replaced(path, inner or old, context)
        elif inner is not None and became is not None and not is_same(inner, became):
            message = f"{key_text(inner)} is left behind: the Object wraps {key_text(became)} now"
            yield Danger(path, Code.ABANDONED, message)
            yield from _replaced(path, inner, context)


def _replaced(path: str, manifest: Manifest, context: DangerContext) -> Iterator[Danger]:
    """An object that replaces one with data starts without that data."""
    if holds_data(Kind.of(manifest), context.laws):
        message = (
            f"{key_text(manifest)} is replaced: its data stays behind, and the new object starts "
            "empty"
        )
        yield Danger(path, Code.DATA_LOSS, message)


def _moved_to_other_provider(
    before: Assembly, after: Assembly, context: DangerContext
) -> Iterator[Danger]:
    for pair in pairs_of(before, after):
        old_config, new_config = (_config(manifest) for manifest in (pair.old, pair.new))
        if old_config != new_config:
            message = (
                f"{key_text(pair.new)}: {new_config} instead of {old_config}: the provider "
                "looks for it there, creates it again, and leaves the old one behind"
            )
            yield Danger(pair.path, Code.PROVIDER, message)
            yield from _replaced(pair.path, wrapped_object(pair.old) or pair.old, context)
        was, now = (
            annotations_of(manifest).get(EXTERNAL_NAME) for manifest in (pair.old, pair.new)
        )
        if was and was != now:
            message = f"{key_text(pair.new)} points to {now or 'another resource'} instead of {was}"
            yield Danger(pair.path, Code.ABANDONED, f"{message}, which is left behind")
            yield from _replaced(pair.path, wrapped_object(pair.old) or pair.old, context)


def _config(manifest: Manifest) -> str:
    """Return kind and name of the provider configuration, with the defaults of the family."""
    reference = dig(manifest, "spec", "providerConfigRef", default=None) or {}
    family = "ClusterProviderConfig" if ".m." in Kind.of(manifest).group else "ProviderConfig"
    return f"{reference.get('kind') or family} {reference.get('name') or 'default'}"
