"""
The authority of a cluster that idpbuilder made, so that clients trust it and check certificates.

idpbuilder keeps its self-signed authority in Secret ``default/idpbuilder-cert``, key ``ca.crt``. It
is not a secret; a copy goes into the user's cache, under a name made of its content, because
clients want a file.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from pathlib import Path

from ground.errors import InvalidInputError, NotFoundError
from ground.objects.kube_objects import Kind, ObjectKey, dig
from orderkit.adapters.state_folder import write_atomically
from orderkit.ports.cluster import Cluster

SECRET = ObjectKey(Kind("", "v1", "Secret"), "idpbuilder-cert", "default")
_KEY = "ca.crt"


def authority_file(cluster: Cluster) -> Path:
    """
    Return a file with the authority's certificate.

    Raises:
        NotFoundError: The cluster has no such Secret.
        InvalidInputError: It holds no certificate.
    """
    secret = cluster.get(SECRET)
    if secret is None:
        raise NotFoundError(
            "idpbuilder's authority is not in the cluster: no Secret default/idpbuilder-cert",
            hint="check cluster.context in platform.yaml, or name forge.caFile",
        )
    try:
        pem = base64.b64decode(dig(secret, "data", _KEY, default=""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise InvalidInputError(str(SECRET), _KEY, "is not base64 text") from error
    if "BEGIN CERTIFICATE" not in pem:
        raise InvalidInputError(str(SECRET), _KEY, "holds no certificate")
    path = _cache() / f"idpbuilder-{hashlib.sha256(pem.encode()).hexdigest()[:16]}.pem"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, pem)
    return path


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "orderkit"
