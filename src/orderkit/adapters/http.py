"""
What our HTTP clients share: checks of addresses, and a cap on answers.

Sessions, retries and the meaning of answers are theirs.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

import requests

from ground.errors import InvalidInputError, RefusedError, RemoteError
from ground.secrets import redact

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 30.0
_CHUNK_BYTES = 64 * 1024


def check_url(field: str, url: str, *, allow_http: bool | None = None) -> str:
    """
    Return a base URL without its last slash.

    Args:
        allow_http: What platform.yaml says about plain HTTP; None if it has no key for it.

    Raises:
        InvalidInputError: No http(s) address, or one with user, query or fragment.
        RefusedError: Plain HTTP to another machine without `allow_http`.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidInputError(field, redact(url), "is not a http(s) address")
    if parts.username or parts.password or parts.query or parts.fragment:
        host_url = f"{parts.scheme}://{parts.hostname}"
        raise InvalidInputError(field, host_url, "must have no user, query or fragment")
    if parts.scheme == "http" and not allow_http and not is_loopback(parts.hostname):
        lab = "; in a lab network only: allowHttp: true beside url in platform.yaml"
        raise RefusedError(
            f"{parts.hostname}: credentials over plain HTTP",
            hint=f"use https{'' if allow_http is None else lab}",
        )
    return url.rstrip("/")


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def read_capped(response: requests.Response, limit_bytes: int) -> bytes:
    """
    Read a streamed answer.

    Raises:
        RemoteError: It is larger than `limit_bytes`.
    """
    chunks, size = [], 0
    for chunk in response.iter_content(_CHUNK_BYTES):
        size += len(chunk)
        if size > limit_bytes:
            raise RemoteError(f"the answer is larger than {limit_bytes} bytes")
        chunks.append(chunk)
    return b"".join(chunks)
