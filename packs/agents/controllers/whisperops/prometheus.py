"""
Ask a Prometheus (or Mimir, or Thanos) for raw samples, and believe only whole and sound answers.

An instant query with a range selector gives the samples as they were scraped; ``increase`` would
extrapolate, which is wrong for money. What is no answer of Prometheus, is partial (warnings), too
large, or holds a value that no counter has, is an error. Messages say the same for the same
cause each time, since they end up in records; details are logged.

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

from orderkit.adapters.http import CONNECT_TIMEOUT_S, check_url, read_capped
from orderkit.core.errors import AccessError, RemoteError, UnreachableError, shorten
from orderkit.core.secrets import redact, register

ANSWER_MAX_BYTES = 16 * 1024 * 1024
_OK, _UNKNOWN, _FORBIDDEN, _FAILED = 200, 401, 403, 500

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Series:
    """One series: its labels with ``__name__``, and its samples as (seconds, value), in order."""

    labels: Mapping[str, str]
    samples: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Access:
    """What a Prometheus wants to know of its client."""

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
            InvalidInputError: `url` is no address.
            RefusedError: A token would go over plain HTTP to another machine without `allow_http`.
        """
        self._url = check_url("prometheus", url, allow_http=allow_http or not access.token)
        register(access.token)
        self._timeouts = (CONNECT_TIMEOUT_S, read_timeout_s)
        self._headers = {"Accept": "application/json"}
        if access.token:
            self._headers["Authorization"] = f"Bearer {access.token}"
        if access.tenant:
            self._headers["X-Scope-OrgID"] = access.tenant

    def samples(self, query: str, *, at_s: float) -> list[Series]:
        """
        Return the series of a range selector, evaluated at a time.

        Raises:
            UnreachableError: No answer, or one of 5xx. AccessError: 401 or 403.
            RemoteError: An answer that is none, that is partial, or that no counter can give.
        """
        return _series(self._ask({"query": query, "time": f"{at_s:.3f}"}))

    def _ask(self, query: Mapping[str, str]) -> list[Any]:
        status, body = self._send(query)
        if status in (_UNKNOWN, _FORBIDDEN):
            raise AccessError(f"Prometheus answered {status}", hint="check its token and tenant")
        if status >= _FAILED:
            raise UnreachableError(f"Prometheus answered {status}")
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as error:
            logger.warning("%s: %s", self._url, redact(shorten(body.decode(errors="replace"))))
            raise RemoteError(
                f"Prometheus answered {status} and no JSON",
                hint="does the address lead to a query API, with its prefix?",
            ) from error
        return _result(found, status)

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
                ) as answer:
                    return answer.status_code, read_capped(answer, ANSWER_MAX_BYTES)
        except (requests.RequestException, OSError) as error:
            logger.warning("%s: %s", self._url, redact(shorten(str(error))))
            late = isinstance(error, requests.Timeout)
            said = "did not answer in time" if late else "does not answer"
            raise UnreachableError(f"Prometheus {said}") from error


def _result(found: object, status: int) -> list[Any]:
    if not isinstance(found, dict) or found.get("status") != "success" or status != _OK:
        said = found.get("errorType") if isinstance(found, dict) else None
        raise RemoteError(f"Prometheus refused the query: {said or status}")
    if found.get("warnings"):
        logger.warning("Prometheus warns: %s", shorten(str(found["warnings"])))
        raise RemoteError("Prometheus warned that its answer may be partial")
    data = found.get("data")
    result = data.get("result") if isinstance(data, dict) else None
    if not isinstance(data, dict) or data.get("resultType") != "matrix":
        raise RemoteError("Prometheus answered with no range of samples")
    if not isinstance(result, list):
        raise RemoteError("Prometheus answered with no list of series")
    return result


def _series(result: list[Any]) -> list[Series]:
    found = []
    for each in result:
        try:
            labels = {str(key): str(value) for key, value in each["metric"].items()}
            samples = [(float(at_s), float(value)) for at_s, value in each["values"]]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise RemoteError("Prometheus answered with a series that is none") from error
        if not all(math.isfinite(at_s) and _is_count(value) for at_s, value in samples):
            name = labels.get("__name__", "a series")
            raise RemoteError(f"Prometheus has values of {shorten(name)} that no counter has")
        found.append(Series(labels, tuple(sorted(samples))))
    return found


def _is_count(value: float) -> bool:
    return math.isfinite(value) and value >= 0
