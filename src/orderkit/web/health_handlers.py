"""
Handlers for monitoring: health, readiness, metrics and the OpenAPI document.

``/healthz`` says that the process answers; ``/readyz`` that forge, cluster and the signers of
tokens do, and that the live model is complete. The result of asking them is cached for a few
seconds, because anybody may request it; one request checks, and the others meanwhile get the last
result.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from ground.errors import OrderkitError
from ground.objects.kube_objects import APPLICATION
from orderkit.core.process_counts import counts
from orderkit.flows.platform import ledger_snapshot
from orderkit.web.answers import Ready
from orderkit.web.metrics import counts_text, model_text, notifications_text, orders_text
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse

_KEPT_S = 5.0


def get_healthz(_service: Service, _call: ServiceRequest) -> ServiceResponse:
    """Say that the process answers."""
    return ServiceResponse(200, "ok\n")


def get_metrics(service: Service, call: ServiceRequest) -> ServiceResponse:
    """Return the metrics, which cover all teams."""
    call.who.check("observe", None)
    live = model_text(service.model.state(), service.streams.open)
    channels = service.notifications.states() if service.notifications else ()
    orders = orders_text((row.row for row in service.model.rows()), service.platform.clock.now())
    text = service.metrics.text() + live + orders + notifications_text(channels)
    text += counts_text(counts())
    return ServiceResponse(200, text)


class Readiness:
    """The cached result of checking what the service needs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until = 0.0
        self._checks: dict[str, str] = {}

    def __call__(self, service: Service, _call: ServiceRequest) -> ServiceResponse:
        """Answer 200 if everything that is needed answers, else 503."""
        if time.monotonic() >= self._until and self._lock.acquire(blocking=False):
            try:
                self._checks = _check_all(service)
                self._until = time.monotonic() + _KEPT_S
            finally:
                self._lock.release()
        model = service.model.state()
        checks = {
            **(self._checks or {"service": "being checked"}),
            "model": "ok" if model.is_complete else "incomplete",
        }
        ready = all(result == "ok" for result in checks.values())
        answer = Ready(ready, checks, round(model.age_s, 1))
        return ServiceResponse(200 if ready else 503, answer.to_json())


def _check_all(service: Service) -> dict[str, str]:
    """Return ok or the error by name, without addresses, because anybody may read it."""
    platform, requesters = service.platform, service.options.access.requesters
    checks: dict[str, Callable[[], Any]] = {
        "forge": lambda: ledger_snapshot(platform),
        "cluster": lambda: platform.cluster.serves(APPLICATION),
    }
    if requesters is not None:
        checks["signers"] = requesters.describe
    results = {}
    for name, look in checks.items():
        try:
            results[name] = "ok" if look() else "not served"
        except OrderkitError as error:
            results[name] = type(error).__name__.removesuffix("Error").lower()
    return results
