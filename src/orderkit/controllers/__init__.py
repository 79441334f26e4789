"""
The public API for controllers: processes of a pack that run beside the platform.

A controller keeps facts in the cluster that stations then read, for example the objects of a
bucket or what an agent has spent. It connects with `connect`, does its work in passes of a `Loop`,
and elects a leader with `LeaderElection` if several replicas run.

What the tool guarantees:

- `Cluster` and `Forge` are the ports that Orderkit itself uses; one test suite checks every
  implementation, and the docstring of each method says what it raises.
- Writes to the forge compare the blob id that was read, and an `Operation` with the same id is
  carried out once.
- Everything the outside world does wrong is an `OrderkitError`: ``exit_code``, ``retryable``
  and ``hint`` say what a program and a person can do. Other exceptions are bugs.
- `redact` masks every secret that was passed to `register_secret`. `connect` registers the
  credentials it reads.

Everything else of ``orderkit`` is private, except `orderkit.stations`. docs/public-api.md has an
example.
"""

from __future__ import annotations

from ground.errors import (
    AccessError,
    ConflictError,
    IncompleteError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    RemoteError,
    UnreachableError,
    shorten,
)
from ground.names import LABEL_MAX, BlobSha, CommitSha, RepoId, blob_sha, check_label
from ground.objects.kube_objects import (
    CONFIG_MAP,
    Condition,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    condition,
    dig,
    labels_of,
    metadata,
)
from ground.objects.kube_objects import merged as merge_conditions
from ground.secrets import redact
from ground.secrets import register as register_secret
from orderkit.adapters.http import check_url, read_capped
from orderkit.controllers.running import Connection, Loop, Work, connect, stop_on_signals
from orderkit.flows.leader_election import LEASE, Candidate, LeaderElection
from orderkit.ports.catalog import Catalog
from orderkit.ports.clock import Clock, SystemClock
from orderkit.ports.cluster import Cluster, InvalidObjectError
from orderkit.ports.forge import FileChange, Forge, Operation
from yamlfiles.yaml11 import dump as dump_yaml
from yamlfiles.yaml11 import load as load_yaml

__all__ = [
    "CONFIG_MAP",
    "LABEL_MAX",
    "LEASE",
    "AccessError",
    "BlobSha",
    "Candidate",
    "Catalog",
    "Clock",
    "Cluster",
    "CommitSha",
    "Condition",
    "ConflictError",
    "Connection",
    "FileChange",
    "Forge",
    "IncompleteError",
    "InvalidInputError",
    "InvalidObjectError",
    "Kind",
    "LeaderElection",
    "Loop",
    "Manifest",
    "NotFoundError",
    "ObjectKey",
    "Operation",
    "OrderkitError",
    "RefusedError",
    "RemoteError",
    "RepoId",
    "SystemClock",
    "UnreachableError",
    "Work",
    "annotations_of",
    "blob_sha",
    "check_label",
    "check_url",
    "condition",
    "connect",
    "dig",
    "dump_yaml",
    "labels_of",
    "load_yaml",
    "merge_conditions",
    "metadata",
    "read_capped",
    "redact",
    "register_secret",
    "shorten",
    "stop_on_signals",
]
