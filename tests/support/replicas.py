"""Replicas of the service beside one platform: forks of one process, so that a start is quick."""

from __future__ import annotations

import itertools
import re
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
import yaml
from tests.crash.processes import Process, Zygote

from ground.names import RepoId
from orderkit.cli.connecting import SECRET_HEADER, load_settings, token
from orderkit.flows.platform import Platform

_START_S, _STOP_S, _ANSWER_S = 120.0, 90.0, 120.0


@dataclass(frozen=True)
class ServedPlatform:
    """A bootstrapped platform, embedded or real, whose garages change directly."""

    file: Path
    """Its platform.yaml, which every replica reads."""
    platform: Platform

    @property
    def authority(self) -> Path:
        """The certificate of the API server's authority; the server's own lies beside it."""
        return Path(self._server["certificate-authority"])

    @property
    def ports(self) -> dict[str, int]:
        """Where the parts listen that a replica needs."""
        addresses = {
            "forge": self.platform.forge.base_url,
            "cluster": self._server["server"],
        }
        return {part: urlsplit(address).port or 0 for part, address in addresses.items()}

    def commits(self, team: str) -> int:
        """Return how many commits the order of a team has."""
        return len(self.platform.forge.commits(RepoId(team, f"garage-{team}"), limit=1000))

    @property
    def _server(self) -> dict[str, str]:
        kubeconfig = yaml.safe_load(
            Path(load_settings(str(self.file)).cluster.kubeconfig).read_text()
        )
        found: dict[str, str] = kubeconfig["clusters"][0]["cluster"]
        return found


@dataclass(frozen=True)
class Client:
    """A program that asks the service at an address, as the portal."""

    url: str
    secret: str

    def ask(self, method: str, path: str, *, key: str = "", **body: Any) -> requests.Response:
        """Send a request over a connection of its own; with a key, it is one operation."""
        headers = {SECRET_HEADER: self.secret, "Connection": "close"}
        if key:
            headers["Idempotency-Key"] = key
        with requests.Session() as session:
            session.trust_env = False
            return session.request(
                method,
                f"{self.url}{path}",
                headers=headers,
                json={**body, "requester": "user:default/ada"} if body else None,
                timeout=_ANSWER_S,
            )

    def place(self, team: str) -> requests.Response:
        values = {"team_name": team, "stage": "stage1"}
        return self.ask("POST", "/v1/tasks", template="garage", values=values, id=team)

    def change(self, team: str, stage: str, key: str) -> requests.Response:
        path = f"/v1/orders/garage-{team}/changes"
        return self.ask("POST", path, key=key, values={"stage": stage}, how="direct")

    def readiness(self) -> tuple[int, dict[str, str]]:
        """Return the status of ``/readyz``, and what it says of each part."""
        answer = self.ask("GET", "/readyz")
        return answer.status_code, answer.json()["checks"]


@dataclass(frozen=True)
class Replica(Client):
    """One replica, asked past any balancer."""

    process: Process

    def end(self) -> int:
        """Ask it to end, as a kubelet does; return its exit code."""
        self.process.signal(signal.SIGTERM)
        return self.process.wait(_STOP_S)


def started(process: Process, secret: str) -> Replica:
    """Return a replica once it listens."""
    deadline_s = time.monotonic() + _START_S
    while not (found := re.search(r"runs: (\S+)", process.text())):
        assert process.poll() is None, process.text()
        assert time.monotonic() < deadline_s, process.text()
        time.sleep(0.02)
    return Replica(found[1], secret, process)


class Replicas:
    """Starts replicas, and kills what still runs."""

    def __init__(self, platform_file: Path, folder: Path) -> None:
        self.secret = token(load_settings(str(platform_file)).service)
        self._file, self._folder, self._zygote = platform_file, folder, Zygote()
        self._numbers = itertools.count(1)

    def start(self, redirect: Mapping[int, int] | None = None) -> Replica:
        """Start one; ports of the platform are led elsewhere as `redirect` says."""
        log = self._folder / f"replica-{next(self._numbers)}.log"
        command = ["serve", "--platform", str(self._file), "--port=0"]
        return started(self._zygote.start(command, log, redirect=redirect), self.secret)

    def close(self) -> None:
        self._zygote.close()


def until(holds: Any, what: str, within_s: float) -> float:
    """Wait until a call is true; return how many seconds that took."""
    began_s = time.monotonic()
    while not holds():
        assert time.monotonic() - began_s < within_s, what
        time.sleep(0.1)
    return time.monotonic() - began_s
