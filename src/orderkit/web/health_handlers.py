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
from orderkit.core.telemetry import counts
from orderkit.flows.platform import ledger_snapshot
from orderkit.web.messages import Ready
from orderkit.web.metrics import counts_text, model_text, notifications_text, orders_text
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse

_KEPT_S = 5.0
_ANSWER_S = 3.0
"""How long an answer waits for the checks: less than the probes of the installed service do."""


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
        self._checks: dict[str, _Check] = {}

    def __call__(self, service: Service, _call: ServiceRequest) -> ServiceResponse:
        """Answer 200 if everything that is needed answers, else 503."""
        # one request checks, and the others meanwhile get the last result
        if time.monotonic() >= self._until and self._lock.acquire(blocking=False):
            try:
                self._check_all(service)
                self._until = time.monotonic() + _KEPT_S
            finally:
                self._lock.release()
        model = service.model.state()
        checks = {name: check.result for name, check in self._checks.items()}
        checks = checks or {"service": "being checked"}
        checks["model"] = "ok" if model.is_complete else "incomplete"
        ready = all(result == "ok" for result in checks.values())
        answer = Ready(ready, checks, round(model.age_s, 1))
        return ServiceResponse(200 if ready else 503, answer.to_json())

    def _check_all(self, service: Service) -> None:
        """Ask everything at once."""
        former, deadline_s = self._checks, time.monotonic() + _ANSWER_S
        checks = {
            # what was asked before and has not answered is not asked again
            name: former[name] if name in former and former[name].is_alive() else _Check(look)
            for name, look in _looks(service).items()
        }
        for check in checks.values():
            check.join(max(0.0, deadline_s - time.monotonic()))
        self._checks = checks


class _Check(threading.Thread):
    """One look in a thread: a network that swallows packets must not hold the answer up."""

    def __init__(self, look: Callable[[], Any]) -> None:
        super().__init__(name="readiness", daemon=True)
        self.result = "no answer"
        """Ok or the error by name, without addresses, because anybody may read it."""
        self._look = look
        self.start()

    def run(self) -> None:
        try:
            self.result = "ok" if self._look() else "not served"
        except OrderkitError as error:
            self.result = type(error).__name__.removesuffix("Error").lower()


def _looks(service: Service) -> dict[str, Callable[[], Any]]:
    """Return by name what answers if the service can work."""
    platform, requesters = service.platform, service.options.access.requesters
    looks: dict[str, Callable[[], Any]] = {
        "forge": lambda: ledger_snapshot(platform),
        "cluster": lambda: platform.cluster.serves(APPLICATION),
    }
    if requesters is not None:
        looks["signers"] = requesters.describe
    return looks
