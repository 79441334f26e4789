"""
Kinds that hold data: a table of common kinds, extended by what a pack declares.

``pack.yaml`` and ``kit.yaml`` extend the table (``spec.plan.dataKinds``) and take precedence over
it. A kind in neither is assumed to hold no data.
"""

from __future__ import annotations

from ground.objects.kube_objects import Kind
from orderkit.core.plan.pack_rules import ANY_GROUP, PackRules

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
