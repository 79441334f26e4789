"""
The Secrets of a cloud twin's managed resources: those it reads, and the connection Secret.

Used by ``cloud_twin``.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from compositions.managed_state import password_of
from ground.objects.kube_objects import (
    Kind,
    Manifest,
    ObjectKey,
    controller,
    controller_reference,
    dig,
    metadata,
    secret_references,
)
from orderkit_standins.crossplane.reconciler_context import ReconcilerContext
from orderkit_standins.providers.managed_reconciler import ManagedError

SECRET = Kind("", "v1", "Secret")
OWNER = "cloud-twin"
"""Who writes what the twin applies."""
AGAIN_S = 0.3
"""How soon a refused resource is looked at again."""


@dataclass(frozen=True, slots=True)
class CloudSecrets:
    """Reads and writes Secrets for managed resources."""

    site: ReconcilerContext

    def publish(self, managed: Manifest, connection: dict[str, Any]) -> None:
        """
        Write the connection Secret.

        Raises:
            ManagedError: Somebody else's Secret has its name.
        """
        reference = dig(managed, "spec", "writeConnectionSecretToRef")
        if not reference:
            return
        meta = metadata(managed)
        key = ObjectKey(SECRET, reference["name"], _namespace(managed, reference))
        present = self.site.cluster.get(key)
        if present is not None and (controller(present) or {}).get("uid") != meta["uid"]:
            raise ManagedError(
                "cannot publish connection details: existing secret is not controlled by UID "
                f'"{meta["uid"]}"'
            )
        self._write(key, connection, controller_reference(managed, uid=meta["uid"]))

    def _write(
        self, key: ObjectKey, texts: dict[str, Any], owner: dict[str, Any] | None = None
    ) -> None:
        encoded = {
            name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()
        }
        owners = {"ownerReferences": [owner]} if owner else {}
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": key.name, "namespace": key.namespace, **owners},
            "data": encoded,
            **({"type": "connection.crossplane.io/v1alpha1"} if owner else {}),
        }
        self.site.cluster.apply(secret, owner=OWNER)

    def password(self, managed: Manifest) -> str:
        """Return the password in the Secret that forProvider names, else a stable one."""
        reference = dig(managed, "spec", "forProvider", "passwordSecretRef", default={})
        return self._text(managed, reference) or password_of(managed)

    def _text(self, managed: Manifest, reference: Any) -> str:
        name = str(dig(reference, "name", default=""))
        secret = name and self.site.cluster.get(
            ObjectKey(SECRET, name, _namespace(managed, reference))
        )
        encoded = dig(secret or {}, "data", str(dig(reference, "key", default="")), default="")
        return base64.b64decode(encoded).decode(errors="replace")

    def check(self, managed: Manifest) -> None:
        """
        Read the Secrets that forProvider names; make a password where upjet would.

        Raises:
            ManagedError: A Secret or its key does not exist.
        """
        for_provider = dig(managed, "spec", "forProvider", default={})
        for field, reference in secret_references(for_provider):
            if self._text(managed, reference):
                continue
            home = _namespace(managed, reference)
            if field == "passwordSecretRef" and for_provider.get("autoGeneratePassword"):
                key = ObjectKey(SECRET, reference["name"], home)
                self._write(key, {reference["key"]: password_of(managed)})
                continue
            raise ManagedError(
                f'connect failed: cannot load the sensitive parameter "{field}": key '
                f'"{reference["key"]}" of Secret "{home}/{reference["name"]}" not found',
                again_s=AGAIN_S,
            )


def _namespace(managed: Manifest, reference: Any) -> str:
    own_namespace = metadata(managed).get("namespace")
    return str(own_namespace or dig(reference, "namespace", default="") or "")
