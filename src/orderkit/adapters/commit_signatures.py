"""
Sign commits with an Ed25519 key in a file, and check signatures with public keys.

The file is PEM, as ``openssl genpkey -algorithm ed25519`` writes it. A file with the public half
alone checks and publishes, and cannot sign.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from ground.errors import InvalidInputError, NotFoundError
from orderkit.ports.signatures import PublicKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_FIELD = "service.signingKeyFile"


class Ed25519Signatures:
    """The signing key of a machine, if it has one. The file is read when first needed."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._private: Ed25519PrivateKey | None = None
        self._public: PublicKey | None = None

    @property
    def public_key(self) -> PublicKey | None:
        """
        The public half of the key in the file; None without a file.

        Raises:
            NotFoundError: The file cannot be read. InvalidInputError: it is not an Ed25519 key.
        """
        if self._file is not None and self._public is None:
            self._private, self._public = _read(self._file)
        return self._public

    @property
    def can_sign(self) -> bool:
        """Whether the file holds a private key."""
        return self.public_key is not None and self._private is not None

    def sign(self, statement: bytes) -> bytes:
        """
        Sign.

        Raises:
            RuntimeError: There is no private key.
        """
        if not self.can_sign or self._private is None:
            raise RuntimeError("this machine has no signing key")
        return self._private.sign(statement)

    def is_valid(self, key: PublicKey, statement: bytes, signature: bytes) -> bool:
        """Say whether a key signed a statement."""
        from cryptography.exceptions import InvalidSignature  # lazy: heavy
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(base64.b64decode(key.text)).verify(
                signature, statement
            )
        except (InvalidSignature, ValueError):
            return False
        return True


def _read(file: Path) -> tuple[Ed25519PrivateKey | None, PublicKey]:
    from cryptography.hazmat.primitives import serialization  # lazy: heavy
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

    try:
        pem = file.read_bytes()
    except OSError as error:
        raise NotFoundError(
            f"{_FIELD}: {file} cannot be read ({error.strerror})",
            hint="make one with 'openssl genpkey -algorithm ed25519', or leave the field out",
        ) from error
    try:
        is_public = b"PUBLIC KEY" in pem
        private = None if is_public else serialization.load_pem_private_key(pem, password=None)
        public = serialization.load_pem_public_key(pem) if is_public else None
    except (ValueError, TypeError) as error:
        raise _no_key(file) from error
    if isinstance(private, Ed25519PrivateKey):
        return private, public_key_of(private.public_key().public_bytes_raw())
    if isinstance(public, Ed25519PublicKey):
        return None, public_key_of(public.public_bytes_raw())
    raise _no_key(file)


def _no_key(file: Path) -> InvalidInputError:
    return InvalidInputError(
        _FIELD, str(file), "is not an Ed25519 key in PEM without a password",
        hint="make one with 'openssl genpkey -algorithm ed25519'",
    )  # fmt: skip


def public_key_of(raw: bytes) -> PublicKey:
    """Name a public key by its digest."""
    return PublicKey(hashlib.sha256(raw).hexdigest()[:12], base64.b64encode(raw).decode())


def new_signing_key() -> str:
    """Return a new private key in PEM."""
    from cryptography.hazmat.primitives import serialization  # lazy: heavy
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return (
        Ed25519PrivateKey.generate()
        .private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        .decode()
    )
