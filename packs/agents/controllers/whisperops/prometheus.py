"""
Query Prometheus (or Mimir, or Thanos) for raw samples; accept only complete, valid answers.

An instant query with a range selector returns the samples as they were scraped; ``increase`` would
extrapolate, which is wrong for money. An answer is an error if it is not Prometheus' JSON, partial
(warnings), too large, or has a value that a counter cannot have. The same cause always gives the
same message, because messages end up in records; details are logged.

Called by ``metering`` and ``counting``.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import requests

from orderkit.controllers import (
    AccessError,
    RemoteError,
    UnreachableError,
    check_url,
    read_capped,
    redact,
    register_secret,
    shorten,
)

ANSWER_MAX_BYTES = 16 * 1024 * 1024
_CONNECT_TIMEOUT_S = 5.0
_OK, _UNAUTHORIZED, _FORBIDDEN, _SERVER_ERROR = 200, 401, 403, 500

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Series:
    """One series: its labels with ``__name__``, and its samples as (seconds, value), in order."""

    labels: Mapping[str, str]
    samples: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Access:
    """How a Prometheus identifies its client."""

    token: str = ""
    tenant: str = ""
    """``X-Scope-OrgID`` of Mimir."""


class Prometheus:
    """The query API below a base address, such as ``http://mimir/prometheus``."""

    def __init__(
        self,
        url: str,
        access: Access = Access(),
        *,
        allow_http: bool = False,
        read_timeout_s: float = 20.0,
    ) -> None:
        """
        Prepare; nothing is sent.

        Raises:
            InvalidInputError: `url` is not an address.
            RefusedError: A token would go over plain HTTP to another machine without `allow_http`.
        """
        self._url = check_url("prometheus", url, allow_http=allow_http or not access.token)
        register_secret(access.token)
        self._timeouts = (_CONNECT_TIMEOUT_S, read_timeout_s)
        self._headers = {"Accept": "application/json"}
        if access.token:
            self._headers["Authorization"] = f"Bearer {access.token}"
        if access.tenant:
            self._headers["X-Scope-OrgID"] = access.tenant

    def samples(self, query: str, *, at_s: float) -> list[Series]:
        """
        Return the series of a range selector, evaluated at a time.

        Raises:
            UnreachableError: No answer, or status 5xx. AccessError: 401 or 403.
            RemoteError: The answer is invalid or partial, or has a value no counter can have.
        """
        return _series(self._ask({"query": query, "time": f"{at_s:.3f}"}))

    def _ask(self, query: Mapping[str, str]) -> list[Any]:
        status, body = self._send(query)
        if status in (_UNAUTHORIZED, _FORBIDDEN):
            raise AccessError(f"Prometheus answered {status}", hint="check its token and tenant")
        if status >= _SERVER_ERROR:
            raise UnreachableError(f"Prometheus answered {status}")
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError) as error:
            logger.warning("%s: %s", self._url, redact(shorten(body.decode(errors="replace"))))
            raise RemoteError(
                f"Prometheus answered {status} and no JSON",
                hint="does the address lead to a query API, with its prefix?",
            ) from error
        return _result(answer, status)

    def _send(self, query: Mapping[str, str]) -> tuple[int, bytes]:
        try:
            with requests.Session() as session:
                session.trust_env = False
                with session.get(
                    f"{self._url}/api/v1/query",
                    params=query,
                    headers=self._headers,
                    timeout=self._timeouts,
                    allow_redirects=False,
                    stream=True,
                ) as response:
                    return response.status_code, read_capped(response, ANSWER_MAX_BYTES)
        except (requests.RequestException, OSError) as error:
            logger.warning("%s: %s", self._url, redact(shorten(str(error))))
            timed_out = isinstance(error, requests.Timeout)
            problem = "did not answer in time" if timed_out else "does not answer"
            raise UnreachableError(f"Prometheus {problem}") from error


def _result(answer: object, status: int) -> list[Any]:
    if not isinstance(answer, dict) or answer.get("status") != "success" or status != _OK:
        error_type = answer.get("errorType") if isinstance(answer, dict) else None
        raise RemoteError(f"Prometheus refused the query: {error_type or status}")
    if answer.get("warnings"):
        logger.warning("Prometheus warns: %s", shorten(str(answer["warnings"])))
        raise RemoteError("Prometheus warned that its answer may be partial")
    data = answer.get("data")
    result = data.get("result") if isinstance(data, dict) else None
    if not isinstance(data, dict) or data.get("resultType") != "matrix":
        raise RemoteError("Prometheus answered with no range of samples")
    if not isinstance(result, list):
        raise RemoteError("Prometheus answered with no list of series")
    return result


def _series(result: list[Any]) -> list[Series]:
    all_series = []
    for entry in result:
        try:
            labels = {str(key): str(value) for key, value in entry["metric"].items()}
            samples = [(float(at_s), float(value)) for at_s, value in entry["values"]]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RemoteError("Prometheus answered with an invalid series") from error
        if not all(math.isfinite(at_s) and _is_count(value) for at_s, value in samples):
            name = labels.get("__name__", "a series")
            raise RemoteError(f"Prometheus has values of {shorten(name)} that no counter has")
        all_series.append(Series(labels, tuple(sorted(samples))))
    return all_series


def _is_count(value: float) -> bool:
    return math.isfinite(value) and value >= 0
