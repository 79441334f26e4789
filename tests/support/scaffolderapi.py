"""Backstage's scaffolder over HTTP, as its front end uses it: forms, dry runs, tasks."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import requests

_TIMEOUT_S = 60
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of the backend."""

    status: int
    body: Any


@dataclass(frozen=True, slots=True)
class DryFile:
    """A file a dry run left in the workspace."""

    data: bytes
    executable: bool


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a dry run came to."""

    files: Mapping[PurePosixPath, DryFile]
    output: Mapping[str, Any]
    log: str


@dataclass(frozen=True, slots=True)
class Task:
    """A task that ended: `completed` or `failed`; its log, one line an event."""

    id: str
    status: str
    output: Mapping[str, Any]
    log: str
    error: str = ""
    """What the banner on its page says."""


class Scaffolder:
    """The scaffolder for one signed-in guest."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session = requests.Session()
        self._session.trust_env = False
        token = self._call("POST", "/api/auth/guest/refresh").body["backstageIdentity"]["token"]
        self._session.headers["Authorization"] = f"Bearer {token}"

    def close(self) -> None:
        self._session.close()

    def form(self, template: str) -> list[dict[str, Any]]:
        """Return the pages of a template's form."""
        path = f"/api/scaffolder/v2/templates/default/template/{template}/parameter-schema"
        steps: list[dict[str, Any]] = self._call("GET", path).body["steps"]
        return [step["schema"] for step in steps]

    def entity(self, ref: str) -> Answer:
        """Look an entity up in the catalog: ``kind/namespace/name``."""
        return self._call("GET", f"/api/catalog/entities/by-name/{ref}")

    def dry_run(
        self,
        template: Mapping[str, Any],
        values: Mapping[str, Any],
        files: Mapping[PurePosixPath, bytes],
    ) -> DryRun:
        """Run a template on the files beside it; nothing is written anywhere."""
        answer = self.try_dry_run(template, values, files)
        assert answer.status == requests.codes.ok, answer.body
        found = {
            PurePosixPath(entry["path"]): DryFile(
                base64.b64decode(entry["base64Content"]), entry["executable"]
            )
            for entry in answer.body["directoryContents"]
        }
        log = "\n".join(entry["body"]["message"] for entry in answer.body["log"])
        return DryRun(found, answer.body["output"], log)

    def try_dry_run(
        self,
        template: Mapping[str, Any],
        values: Mapping[str, Any],
        files: Mapping[PurePosixPath, bytes],
    ) -> Answer:
        """Run a template that may fail."""
        contents = [
            {"path": str(path), "base64Content": base64.b64encode(data).decode()}
            for path, data in files.items()
        ]
        body = {"template": template, "values": values, "directoryContents": contents}
        return self._call("POST", "/api/scaffolder/v2/dry-run", body)

    def start(self, template: str, values: Mapping[str, Any]) -> Answer:
        """Ask for a task, as the form's last button does."""
        body = {"templateRef": f"template:default/{template}", "values": values, "secrets": {}}
        return self._call("POST", "/api/scaffolder/v2/tasks", body)

    def run(self, template: str, values: Mapping[str, Any], *, timeout_s: float = 60) -> Task:
        """Run a task to its end."""
        answer = self.start(template, values)
        assert answer.status == requests.codes.created, answer.body
        return self.wait(answer.body["id"], timeout_s=timeout_s)

    def retry(self, task: str, *, timeout_s: float = 60) -> Task:
        """Start a task again that failed, as the button on its page does; run it to its end."""
        answer = self._call("POST", f"/api/scaffolder/v2/tasks/{task}/retry", {"secrets": {}})
        assert answer.status == requests.codes.created, answer.body
        return self.wait(task, timeout_s=timeout_s)

    def cancel(self, task: str) -> None:
        """Cancel a task, as the button on its page does."""
        answer = self._call("POST", f"/api/scaffolder/v2/tasks/{task}/cancel", {})
        assert answer.status == requests.codes.ok, answer.body

    def log(self, task: str) -> str:
        """Return what a task logged so far."""
        events = self._call("GET", f"/api/scaffolder/v2/tasks/{task}/events").body
        return "\n".join(event["body"].get("message", "") for event in events)

    def wait(self, task: str, *, timeout_s: float = 60) -> Task:
        """Wait for a task's end."""
        end = time.monotonic() + timeout_s
        while True:
            status = self._call("GET", f"/api/scaffolder/v2/tasks/{task}").body["status"]
            if status not in {"open", "processing"}:
                return self._ended(task, status)
            assert time.monotonic() < end, f"task {task} is {status} after {timeout_s:g} s"
            time.sleep(_POLL_S)

    def _ended(self, task: str, status: str) -> Task:
        events = self._call("GET", f"/api/scaffolder/v2/tasks/{task}/events").body
        log = "\n".join(event["body"].get("message", "") for event in events)
        last = [event["body"] for event in events if event["type"] == "completion"]
        end = last[-1] if last else {}
        error = (end.get("error") or {}).get("message", "")
        return Task(task, status, end.get("output") or {}, log, error)

    def _call(self, method: str, path: str, body: object = None) -> Answer:
        with self._session.request(
            method, self._url + path, json=body, timeout=_TIMEOUT_S
        ) as response:
            try:
                return Answer(response.status_code, response.json())
            except ValueError:
                return Answer(response.status_code, response.text)
