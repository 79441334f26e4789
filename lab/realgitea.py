"""
A real Gitea as a plain process: SQLite, the loopback only, one site admin with a token.

It has what the contract needs and nothing that disturbs it: no registration, mail, SSH, cron,
actions or packages; webhooks may reach the loopback. Its state lies in a folder of the caller;
its log is kept in ``.cache/logs``. It ends with the process that started it.

Used by the fixture ``real_gitea`` of ``tests/conftest.py``.
"""

from __future__ import annotations

import contextlib
import functools
import getpass
import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

import requests
from lab.binaries import built, keep_log
from lab.daemons import Daemon, DaemonError
from lab.loopback import HOST, free_ports, taken

ADMIN = "warden"
_READY_S = 180.0
_COMMAND_S = 120.0
_ATTEMPTS = 3
_FROM_ENVIRONMENT = "ORDERKIT_TEST_GITEA_"


@dataclass(frozen=True, slots=True)
class Gitea:
    """A Gitea that serves, and how to enter it as its site admin."""

    url: str
    user: str
    password: str = field(repr=False)
    token: str = field(repr=False)
    """Of scope ``all``."""


def named_by_environment(environment: Mapping[str, str]) -> Gitea | None:
    """
    Return the Gitea that ``ORDERKIT_TEST_GITEA_URL``, ``_USER``, ``_PASSWORD``, ``_TOKEN`` name.

    Raises:
        KeyError: There is a URL and one of the others is missing.
    """
    url = environment.get(f"{_FROM_ENVIRONMENT}URL")
    if not url:
        return None
    parts = [environment[_FROM_ENVIRONMENT + part] for part in ("USER", "PASSWORD", "TOKEN")]
    return Gitea(url.rstrip("/"), *parts)


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Gitea]:
    """
    Start a new Gitea with its state in `folder`, hand it out ready, stop it at the end.

    Raises:
        NotBuiltError: ``make lab`` was not run.
        DaemonError: It does not start; the message shows the end of its log.
    """
    log = folder / "gitea.log"
    with contextlib.ExitStack() as undo:
        undo.callback(keep_log, log)
        url = undo.enter_context(_started(folder, log))
        password = secrets.token_urlsafe(16)
        _create_admin(folder, password)
        token = add_token(url, (ADMIN, password), ["all"])
        yield Gitea(url, ADMIN, password, token)


@contextlib.contextmanager
def _started(folder: Path, log: Path) -> Iterator[str]:
    """Start it on a free port; on another one if somebody takes that in between."""
    for attempt in range(1, _ATTEMPTS + 1):
        url = _configure(folder, free_ports(1)[0])
        command = [*_gitea(folder), "web"]
        with Daemon("Gitea", command, log=log, environment=_environment(folder)) as daemon:
            try:
                daemon.wait_until(functools.partial(_answers, url), timeout_s=_READY_S)
            except DaemonError as error:
                if taken(str(error)) and attempt < _ATTEMPTS:
                    continue
                raise
            yield url
            return


def _gitea(folder: Path) -> list[str]:
    return [str(built("gitea") / "gitea"), "--config", str(folder / "app.ini")]


def _environment(folder: Path) -> dict[str, str]:
    """Return an environment in which neither Gitea nor its git sees this machine's settings."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GITEA_WORK_DIR": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "NO_PROXY": HOST,
    }


def _configure(folder: Path, port: int) -> str:
    """Write app.ini for a port; return the address."""
    url = f"http://{HOST}:{port}"
    sections = _configuration(folder, url, port)
    text = "".join(
        (f"[{section}]\n" if section else "") + "".join(f"{k} = {v}\n" for k, v in keys.items())
        for section, keys in sections.items()
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "app.ini").write_text(text)
    return url


def _configuration(folder: Path, url: str, port: int) -> dict[str, dict[str, object]]:
    off: dict[str, object] = {"ENABLED": "false"}
    return {
        "": {
            "RUN_MODE": "prod",
            "RUN_USER": getpass.getuser(),
            "I_AM_BEING_UNSAFE_RUNNING_AS_ROOT": "true",  # CI is often root; it never leaves HOST
            "WORK_PATH": folder,
        },
        "server": {
            "HTTP_ADDR": HOST,
            "HTTP_PORT": port,
            "ROOT_URL": f"{url}/",
            "DOMAIN": HOST,
            "OFFLINE_MODE": "true",
            "DISABLE_SSH": "true",
            "STATIC_ROOT_PATH": built("gitea") / "static",
            "GRACEFUL_HAMMER_TIME": "5s",
        },
        "database": {
            "DB_TYPE": "sqlite3",
            "PATH": folder / "gitea.sqlite",
            "SQLITE_JOURNAL_MODE": "WAL",
        },
        "repository": {"ROOT": folder / "repositories", "DEFAULT_BRANCH": "main"},
        "security": {
            "INSTALL_LOCK": "true",
            "SECRET_KEY": secrets.token_hex(16),
            "PASSWORD_HASH_ALGO": "pbkdf2$1000$50",  # cheap: nobody attacks a test
        },
        "service": {"DISABLE_REGISTRATION": "true"},
        "webhook": {"ALLOWED_HOST_LIST": "loopback"},
        "indexer": {"ISSUE_INDEXER_TYPE": "db"},
        "session": {"PROVIDER": "memory"},
        "log": {"MODE": "console", "LEVEL": "Info"},
        "oauth2": {"JWT_SECRET": secrets.token_urlsafe(32)},
        **dict.fromkeys(("packages", "actions", "cron", "cron.update_checker"), off),
    }


def _create_admin(folder: Path, password: str) -> None:
    arguments = ["admin", "user", "create", "--admin", "--username", ADMIN, "--password", password]
    arguments += ["--email", f"{ADMIN}@example.org", "--must-change-password=false"]
    done = subprocess.run(
        [*_gitea(folder), *arguments],
        env=_environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=_COMMAND_S,
    )
    if done.returncode:
        raise DaemonError(f"Gitea makes no admin: {done.stdout[-1000:]}{done.stderr[-1000:]}")


def add_user(gitea: Gitea, name: str) -> tuple[str, str]:
    """Add an ordinary user; return login and password."""
    password = secrets.token_urlsafe(16)
    body = {
        "username": name,
        "password": password,
        "email": f"{name}@example.org",
        "must_change_password": False,
    }
    _create(gitea.url, "admin/users", body, (gitea.user, gitea.password))
    return name, password


def make_admin(gitea: Gitea, name: str) -> None:
    """Let a user administer the site."""
    body = {"admin": True, "login_name": name, "source_id": 0}
    with _session() as session:
        url, auth = f"{gitea.url}/api/v1/admin/users/{name}", (gitea.user, gitea.password)
        session.patch(url, json=body, auth=auth, timeout=_COMMAND_S).raise_for_status()


def add_token(url: str, user: tuple[str, str], scopes: Sequence[str]) -> str:
    """Add a token of a user, given by login and password."""
    body = {"name": secrets.token_hex(6), "scopes": list(scopes)}
    return str(_create(url, f"users/{user[0]}/tokens", body, user)["sha1"])


def _create(url: str, path: str, body: object, auth: tuple[str, str]) -> dict[str, Any]:
    with _session() as session:
        answer = session.post(f"{url}/api/v1/{path}", json=body, auth=auth, timeout=_COMMAND_S)
    if answer.status_code != HTTPStatus.CREATED:
        raise DaemonError(f"Gitea refuses POST {path}: {answer.status_code} {answer.text[:500]}")
    found: dict[str, Any] = answer.json()
    return found


def _answers(url: str) -> bool:
    with _session() as session, contextlib.suppress(requests.RequestException):
        found: int = session.get(f"{url}/api/v1/version", timeout=5).status_code
        return found == HTTPStatus.OK
    return False


def _session() -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    return session
