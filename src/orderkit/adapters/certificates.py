"""
Certificates in files: when they expire, and the authority of a cluster that idpbuilder made.

`ends_of` and `kubeconfig_certificates` find when the certificates expire that platform.yaml and a
kubeconfig name. They read local files only. Tokens have no date and are ignored.

`authority_file` lets a client trust the authority of a cluster that idpbuilder made, instead of
checking no certificate. idpbuilder keeps its self-signed authority in Secret
``default/idpbuilder-cert``, key ``ca.crt``. It is not a secret; a copy goes into the user's cache,
under a name made of its content, because clients want a file.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ground.errors import InvalidInputError, NotFoundError
from ground.objects.kube_objects import Kind, ObjectKey, dig
from orderkit.adapters.state_folder import write_atomically
from orderkit.ports.cluster import Cluster


def ends_of(pem: bytes) -> Iterator[dt.datetime]:
    """
    Yield the end of each certificate in a PEM text.

    Raises:
        ValueError: It holds none that can be read.
    """
    from cryptography import x509  # lazy: heavy

    for certificate in x509.load_pem_x509_certificates(pem):
        yield certificate.not_valid_after_utc


def kubeconfig_certificates(path: Path, context: str | None) -> Iterator[tuple[str, bytes]]:
    """
    Yield the certificates that one context of a kubeconfig uses, as PEM with a name for people.

    Raises:
        OSError, ValueError: The file or one of those it names cannot be read.
    """
    try:
        kubeconfig = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not YAML") from error
    name = context or dig(kubeconfig, "current-context")
    context_entry = _entry_by_name(kubeconfig, "contexts", name).get("context") or {}
    cluster = (
        _entry_by_name(kubeconfig, "clusters", context_entry.get("cluster")).get("cluster") or {}
    )
    user = _entry_by_name(kubeconfig, "users", context_entry.get("user")).get("user") or {}
    for subject, entry, key in (
        ("the cluster's authority", cluster, "certificate-authority"),
        ("our client certificate", user, "client-certificate"),
    ):
        pem = _pem(entry, key, path.parent)
        if pem:
            yield subject, pem


def _entry_by_name(kubeconfig: Any, section: str, name: object) -> dict[str, Any]:
    entries = dig(kubeconfig, section, default=()) or ()
    return next((dict(entry) for entry in entries if entry.get("name") == name), {})


def _pem(entry: dict[str, Any], key: str, folder: Path) -> bytes:
    if data := entry.get(f"{key}-data"):
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{key}-data is not base64 text") from error
    return (folder / entry[key]).read_bytes() if entry.get(key) else b""


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
