"""
A twin of a cloud's provider: managed resources come to exist, and after a while they are ready.

What exists "in the cloud" is kept in the cluster itself, as cluster-scoped ``ExternalResource``
objects: they outlive the managed resource where its policies lack Delete, and show what is left.
Any kind of any group may be given; ``forProvider`` is taken as it is, and copied into
``status.atProvider``. A connection secret is written with a text that opens nothing.

Not here: checks of ``forProvider``, references and selectors between resources, drift, late
initialisation, imports by external name of what the twin did not make.

Started by ``packages``.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from datetime import datetime

from orderkit.adapters.embedded.crossplane.reconciler_context import ReconcilerContext
from orderkit.adapters.embedded.providers.crds import crd
from orderkit.adapters.embedded.providers.managed import (
    UNAVAILABLE,
    Allowed,
    Twin,
    VisitOutcome,
)
from orderkit.core.objects.conditions import AVAILABLE, CREATING
from orderkit.core.objects.kube_objects import (
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
    metadata,
)

EXTERNAL = Kind("cloud.embedded.orderkit.dev", "v1alpha1", "ExternalResource")
EXTERNAL_NAME = "crossplane.io/external-name"
OWNER = "cloud-twin"
_SECRET_KEYS = ("private_key", "attribute.private_key")


@dataclass(frozen=True, slots=True)
class CloudSettings:
    """The kinds of a twin, and how long its resources take to become ready."""

    kinds: tuple[Kind, ...]
    delay_s: float


def external_crd() -> Manifest:
    """Return the CRD of what exists in the cloud."""
    text = {"type": "string"}
    spec = {
        "type": "object",
        "properties": {
            "apiVersion": text,
            "kind": text,
            "externalName": text,
            "createdAt": text,
            "forProvider": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    return crd(EXTERNAL, namespaced=False, spec=spec)


class CloudTwin(Twin):
    """The controllers of the managed kinds of one provider."""

    def __init__(self, site: ReconcilerContext, settings: CloudSettings) -> None:
        super().__init__(site)
        self._delay_s = settings.delay_s
        self._look_after({f"cloud/{kind}": kind for kind in settings.kinds}, workers=1)

    def _visit(self, managed: Manifest, policies: Allowed) -> VisitOutcome:
        name = annotations_of(managed).get(EXTERNAL_NAME)
        if not name:
            annotation = {EXTERNAL_NAME: metadata(managed)["name"]}
            self._site.patch_metadata(managed, {"annotations": annotation})
            return VisitOutcome(CREATING, again_s=0.0)
        existing = self._site.cluster.get(record_key(managed, name))
        if existing is None and not policies.create:
            return VisitOutcome(UNAVAILABLE)
        created = str(dig(existing or {}, "spec", "createdAt", default="")) or self._now()
        if existing is None or policies.update:
            self._site.cluster.apply(_record(managed, name, created), owner=OWNER)
        left_s = self._delay_s - self._age_s(created)
        if left_s > 0:
            return VisitOutcome(CREATING, again_s=left_s)
        self._write_secret(managed, name)
        at_provider = {**dig(managed, "spec", "forProvider", default={}), "id": name}
        return VisitOutcome(AVAILABLE, status={"atProvider": at_provider})

    def _now(self) -> str:
        return self._site.clock.now().isoformat()

    def _age_s(self, created: str) -> float:
        return (self._site.clock.now() - datetime.fromisoformat(created)).total_seconds()

    def _leave(self, managed: Manifest, policies: Allowed) -> bool:
        name = annotations_of(managed).get(EXTERNAL_NAME)
        if not name or not policies.delete:
            return True
        return not self._site.cluster.delete(record_key(managed, name))

    def _write_secret(self, managed: Manifest, name: str) -> None:
        reference = dig(managed, "spec", "writeConnectionSecretToRef", default=None)
        if not reference:
            return
        encoded_text = base64.b64encode(f"of the embedded platform, for {name}".encode()).decode()
        meta = metadata(managed)
        owner = {
            "apiVersion": managed["apiVersion"],
            "kind": managed["kind"],
            "name": meta["name"],
            "uid": meta["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": reference["name"],
                "namespace": reference.get("namespace") or meta.get("namespace"),
                "ownerReferences": [owner],
            },
            "type": "connection.crossplane.io/v1alpha1",
            "data": dict.fromkeys(_SECRET_KEYS, encoded_text),
        }
        self._site.cluster.apply(secret, owner=OWNER)


def record_key(managed: Manifest, external_name: str) -> ObjectKey:
    """Return where the twin keeps what a managed resource stands for."""
    kind = Kind.of(managed)
    digest = hashlib.sha256(f"{kind} {external_name}".encode()).hexdigest()[:8]
    readable = re.sub(r"[^a-z0-9]+", "-", f"{kind.kind}-{external_name}".lower()).strip("-")[:50]
    return ObjectKey(EXTERNAL, f"{readable}-{digest}")


def _record(managed: Manifest, external_name: str, created: str) -> Manifest:
    return {
        "apiVersion": EXTERNAL.api_version,
        "kind": EXTERNAL.kind,
        "metadata": {"name": record_key(managed, external_name).name},
        "spec": {
            "apiVersion": managed["apiVersion"],
            "kind": managed["kind"],
            "externalName": external_name,
            "createdAt": created,
            "forProvider": dig(managed, "spec", "forProvider", default={}),
        },
    }
