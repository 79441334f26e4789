"""
A private authority, and a server's certificate for the loopback.

`ensure_certificate` makes a private authority and a server certificate for 127.0.0.1 once, and
keeps them. kubectl sends no token over plain HTTP, so the embedded API server speaks TLS. The
authority's key is thrown away after signing: nobody can make another certificate that kubeconfigs
trust.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from orderkit.adapters.state_folder import write_atomically
from orderkit.web.serving import HOST

_AUTHORITY = "orderkit embedded platform"
_DAYS = 3650


@dataclass(frozen=True, slots=True)
class Certificate:
    """Files in PEM: what clients trust, what the server shows, and its key."""

    authority: Path
    server: Path
    key: Path


def ensure_certificate(folder: Path, *names: str) -> Certificate:
    """
    Make the three files unless all are there; the key is readable by its owner only.

    Args:
        names: What clients call the server, besides 127.0.0.1 and localhost.
    """
    certificate = Certificate(folder / "ca.crt", folder / "server.crt", folder / "server.key")
    if not all(
        path.exists() for path in (certificate.authority, certificate.server, certificate.key)
    ):
        authority, server, key = _make(*names)
        write_atomically(certificate.key, key, mode=0o600)
        write_atomically(certificate.server, server)
        write_atomically(certificate.authority, authority)
    return certificate


def _make(*names: str) -> tuple[str, str, str]:
    """Return authority, server certificate and server key as PEM texts."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    known = [x509.IPAddress(ipaddress.ip_address(HOST)), *map(x509.DNSName, ("localhost", *names))]
    authority = _sign(
        _AUTHORITY,
        authority_key.public_key(),
        authority_key,
        x509.BasicConstraints(ca=True, path_length=0),
    )
    server = _sign(HOST, key.public_key(), authority_key, x509.SubjectAlternativeName(known))
    secret = key.private_bytes(
        Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return (
        authority.public_bytes(Encoding.PEM).decode(),
        server.public_bytes(Encoding.PEM).decode(),
        secret.decode(),
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _sign(
    subject: str,
    public: ec.EllipticCurvePublicKey,
    authority_key: ec.EllipticCurvePrivateKey,
    role: x509.ExtensionType,
) -> x509.Certificate:
    """Make a certificate; `role` says whether it is the authority or a server of some names."""
    begin = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(_AUTHORITY))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + dt.timedelta(days=_DAYS))
        .add_extension(role, critical=True)
        .add_extension(_usage(signs=subject == _AUTHORITY), critical=True)
        .add_extension(issued_by, critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
