"""
One HTTP request to a portal or a service: time-outs, no redirects, a size cap, no proxies.

A connection per request: calls are few, and nothing stays open behind a command. Credentials go
over plain HTTP to this machine only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import requests

from ground.errors import RemoteError, UnreachableError, shorten
from ground.secrets import redact
from orderkit.adapters.http import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, read_capped

ANSWER_MAX_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class BackstageResponse:
    """A complete answer, whatever its status. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """
        Return the body as JSON.

        Raises:
            RemoteError: It is none.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise RemoteError(
                f"the portal answered {self.status} without JSON: {self.text}",
                hint="does the address point to Backstage's backend?",
            ) from error

    @property
    def text(self) -> str:
        """What the server says went wrong: cut, on one line, without secrets."""
        try:
            document = json.loads(self.body)
            message = document["error"]["message"]
        except (ValueError, RecursionError, KeyError, TypeError):
            message = self.body[:1000].decode(errors="replace")
        return shorten(redact(str(message)), limit=400)


def send(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    timeout_s: float = READ_TIMEOUT_S,
    ca_file: PurePath | None = None,
) -> BackstageResponse:
    """
    Send one request, once.

    Args:
        ca_file: The certificates to trust; None: those that requests trusts.

    Raises:
        UnreachableError: No complete answer in time; it may have been carried out.
        RemoteError: The answer is too large.
    """
    address = url.partition("?")[0]
    with requests.Session() as session:
        session.trust_env = False
        try:
            with session.request(
                method,
                url,
                headers=dict(headers),
                data=body,
                timeout=(CONNECT_TIMEOUT_S, timeout_s),
                allow_redirects=False,
                stream=True,
                verify=str(ca_file) if ca_file else True,
            ) as response:
                return BackstageResponse(
                    response.status_code,
                    {name.lower(): value for name, value in response.headers.items()},
                    read_capped(response, ANSWER_MAX_BYTES),
                )
        except requests.exceptions.SSLError as error:
            raise UnreachableError(
                f"no trusted TLS connection to {address}: its certificate is not of a trusted CA,"
                " or for another host",
                hint="platform.yaml can name the certificate of a private CA: caFile",
            ) from error
        except requests.exceptions.Timeout as error:
            raise UnreachableError(
                f"{address} did not answer within {timeout_s:g} s", hint="repeat the command"
            ) from error
        except (requests.exceptions.RequestException, OSError) as error:
            raise UnreachableError(
                f"no server answers at {address}", hint="is the platform running? orderkit up"
            ) from error
