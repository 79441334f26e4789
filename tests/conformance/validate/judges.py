"""
Who answers: `kubeschema.validate`, and any API server that speaks HTTP.

The API server is the embedded or a real one.
"""

from __future__ import annotations

import base64
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import requests
import yaml
from tests.conformance.validate.cases import GROUP, VERSION, Case, Verdict

from kubeschema.validate import Reason, Validator
from orderkit_standins.cluster.definitions import faults as definition_faults

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_SKIPPED = "some validation rules were not checked"
_DEADLINE_S, _TIMEOUT_S = 120.0, 60.0


class Judge(Protocol):
    def judge(self, case: Case) -> Verdict: ...


class Ours:
    """`kubeschema.validate`, without a server. Unknown fields are left out: servers drop them."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[Validator, tuple[tuple[str, str], ...]]] = {}

    def judge(self, case: Case) -> Verdict:
        validator, faults = self._validator(case)
        if faults:
            return Verdict("definition-refused", faults=faults)
        old, gaps = None, 0
        if case.old is not None:
            before = validator.check(case.manifest(case.old))
            gaps = len(before.not_evaluated)
            if _faults(before):
                return Verdict("old-refused", not_evaluated=gaps)
            old = before.result
        report = validator.check(case.manifest(case.new), old)
        found, gaps = _faults(report), gaps + len(report.not_evaluated)
        if found:
            return Verdict("refused", faults=found, not_evaluated=gaps)
        return Verdict("accepted", report.result.get("spec"), not_evaluated=gaps)

    def _validator(self, case: Case) -> tuple[Validator, tuple[tuple[str, str], ...]]:
        if case.schema_key not in self._made:
            definition = case.definition()
            faults = tuple(sorted((c.field, c.message) for c in definition_faults(definition)))
            self._made[case.schema_key] = (Validator(definition), faults)
        return self._made[case.schema_key]


def _faults(report: Any) -> tuple[tuple[str, str], ...]:
    return tuple(
        sorted(
            (f.path if f.place is None else f.place, f.message)
            for f in report.findings
            if f.reason != Reason.UNKNOWN_FIELD
        )
    )


class Server:
    """An API server behind a kubeconfig. Objects are only tried, except those to change."""

    def __init__(self, kubeconfig: Path) -> None:
        read = yaml.safe_load(kubeconfig.read_text())
        cluster, user = read["clusters"][0]["cluster"], read["users"][0]["user"]
        self._url = cluster["server"].rstrip("/")
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {user['token']}"
        self._authority = tempfile.NamedTemporaryFile(suffix=".crt")  # noqa: SIM115 - closed in close
        if "certificate-authority" in cluster:
            self._session.verify = cluster["certificate-authority"]
        elif "certificate-authority-data" in cluster:
            self._authority.write(base64.b64decode(cluster["certificate-authority-data"]))
            self._authority.flush()
            self._session.verify = self._authority.name
        self._refused: dict[str, Verdict | None] = {}
        self._served: set[str] = set()

    def close(self) -> None:
        self._session.close()
        self._authority.close()

    def version(self) -> str:
        """Return the server's version, ``v1.36.1``."""
        return str(self._call("GET", "/version").json()["gitVersion"])

    def definition_refusal(self, crd: dict[str, Any]) -> str:
        """Offer a definition without keeping it; return what the server has against it."""
        answer = self._call("POST", f"{_DEFINITIONS}?dryRun=All", crd)
        return "" if answer.ok else str(answer.json()["message"])

    def prepare(self, cases: Iterable[Case]) -> None:
        """Define all kinds at once: a real server takes a while to serve each."""
        for case in cases:
            if case.schema_key not in self._refused:
                self._refused[case.schema_key] = self._define(case)

    def judge(self, case: Case) -> Verdict:
        self.prepare([case])
        refused = self._refused[case.schema_key]
        if refused:
            return refused
        if case.schema_key not in self._served:
            self._wait(case)
            self._served.add(case.schema_key)
        return self._try(case)

    def _try(self, case: Case) -> Verdict:
        path = f"/apis/{GROUP}/{VERSION}/k{case.schema_key}s"
        new = case.manifest(case.new)
        if case.old is None:
            return _read(self._call("POST", f"{path}?dryRun=All&fieldValidation=Ignore", new))
        made = self._call("POST", f"{path}?fieldValidation=Ignore", case.manifest(case.old))
        if not made.ok:
            assert made.status_code == requests.codes.unprocessable, made.text
            return Verdict("old-refused", not_evaluated=_gaps(made))
        try:
            new["metadata"] = made.json()["metadata"]
            target = f"{path}/{case.name}?dryRun=All&fieldValidation=Ignore"
            verdict = _read(self._call("PUT", target, new))
            return replace(verdict, not_evaluated=verdict.not_evaluated + _gaps(made))
        finally:
            self._call("DELETE", f"{path}/{case.name}")

    def _define(self, case: Case) -> Verdict | None:
        """Define the kind; return why it is refused."""
        answer = self._call("POST", _DEFINITIONS, case.definition())
        if answer.status_code in {201, 409}:
            return None
        return Verdict("definition-refused", faults=_read(answer).faults)

    def _wait(self, case: Case) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        path = f"/apis/{GROUP}/{VERSION}/k{case.schema_key}s"
        probe = f"{path}?dryRun=All&fieldValidation=Ignore"
        while self._call("POST", probe, case.manifest({})).status_code == requests.codes.not_found:
            assert time.monotonic() < deadline, f"{path} is not served"
            time.sleep(0.05)

    def _call(self, method: str, path: str, body: Any = None) -> requests.Response:
        return self._session.request(method, self._url + path, json=body, timeout=_TIMEOUT_S)


def _gaps(answer: requests.Response) -> int:
    """Count the rules that the embedded server says it did not evaluate; a real one has none."""
    return answer.headers.get("Warning", "").count("rule not evaluated")


def _read(answer: requests.Response) -> Verdict:
    body, gaps = answer.json(), _gaps(answer)
    if answer.ok:
        return Verdict("accepted", body.get("spec"), not_evaluated=gaps)
    causes = (body.get("details") or {}).get("causes") or ()
    assert causes, f"no causes in {answer.status_code} {body.get('message')}"
    faults = [
        (str(cause.get("field") or "").replace("<nil>", ""), cause["message"])
        for cause in causes
        if _SKIPPED not in cause["message"]
    ]
    return Verdict("refused", faults=tuple(sorted(faults)), not_evaluated=gaps)
