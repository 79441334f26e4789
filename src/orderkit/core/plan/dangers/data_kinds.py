"""
Which kinds hold data: a table of common kinds, and what a pack declares.

``pack.yaml`` and ``kit.yaml`` extend the table (``spec.plan.dataKinds``) and take precedence over
it. A kind that is in neither is taken for one without data.
"""

from __future__ import annotations

import re

from orderkit.core.objects.kube_objects import Kind
from orderkit.core.plan.pack_rules import ANY_GROUP, Laws

_HOLDS_DATA = re.compile(
    r"""PersistentVolume(Claim)?|Bucket|Database(Instance)?|DBInstance|DBCluster|RDSInstance
    |FlexibleServer|SpannerInstance
    |Instance(?=\.(sql|rds|redis|spanner|alloydb|filestore|memcache|bigtable|ec2|compute))
    |Cluster(?=\.(rds|redshift|docdb|neptune|elasticache|alloydb|kafka|msk|postgresql|memorydb
        |container|eks|dataproc|opensearch))
    |KubernetesCluster|ReplicationGroup|Domain(?=\.(opensearch|elasticsearch))
    |(Managed)?Disk|(EBS)?Volume|FileSystem|FileShare|Filesystem|Table|Dataset(?=\.bigquery)
    |StorageAccount|Container(?=\.storage)|Repository|Registry|KeyRing|CryptoKey|Key(?=\.kms)|Vault
    |Account(?=\.(cosmosdb|storage))|Snapshot|VolumeSnapshot|Backup(Vault)?
    |Topic(?=\.(pubsub|kafka|sns|servicebus))|Queue|Stream(?=\.kinesis)
    |Secret(?=\.(secretsmanager|secretmanager))|LogGroup|UserPool
    |Kafka(?=\.kafka)|Postgres(Cluster|ql)|postgresql(?=\.acid)|InnoDBCluster|PerconaXtraDBCluster
    |MongoDB(Community)?|RedisCluster|Elasticsearch|CassandraDatacenter
    |CustomResourceDefinition|CompositeResourceDefinition|Namespace""",
    re.VERBOSE,
)
_WHY = {
    "Namespace": "everything in it is deleted too",
    "CustomResourceDefinition": "every object of that kind is deleted too",
    "CompositeResourceDefinition": "every XR of that kind is deleted too, with all it composes",
    "KubernetesCluster": "everything that runs in it is deleted too",
}


def holds_data(kind: Kind, laws: Laws) -> bool:
    """Say whether objects of a kind hold data."""
    for group in (kind.group, ANY_GROUP):
        declared = laws.data_kinds.get((group, kind.kind))
        if declared is not None:
            return declared
    match = _HOLDS_DATA.match(f"{kind.kind}.{kind.group}")
    return match is not None and match.end() == len(kind.kind)


def what_is_lost(kind: Kind) -> str:
    """Describe what is lost when an object of a kind is deleted."""
    return _WHY.get(kind.kind, "its data is lost")
