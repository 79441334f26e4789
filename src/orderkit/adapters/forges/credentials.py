"""
Find our credentials for the forge.

The sources are tried in this order:

1. environment: ``ORDERKIT_FORGE_TOKEN``, or ``ORDERKIT_FORGE_USER`` with ``_PASSWORD``;
2. the file that platform.yaml names;
3. idpbuilder's Secret ``gitea/gitea-credential`` in the platform's cluster;
4. git's credential helper for the forge's address, without a prompt.

Credentials never come from the command line, because other users of the machine can read it.
platform.yaml may name one source; then only that one is tried. A half-set source, or a named file
that cannot be read, is an error: the next source is not tried.

Asked again when the forge rejects our credentials: idpbuilder creates a new token when its password
changes.
"""

from __future__ import annotations

import base64
import binascii
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from ground.errors import InvalidInputError, NotFoundError, RemoteError
from ground.objects.kube_objects import Kind, ObjectKey
from ground.secrets import register
from orderkit.adapters.forges.transport import Credentials
from orderkit.ports.cluster import Cluster

TOKEN, USER, PASSWORD = (
    "ORDERKIT_FORGE_TOKEN",
    "ORDERKIT_FORGE_USER",
    "ORDERKIT_FORGE_PASSWORD",
)
Source = Literal["auto", "environment", "file", "idpbuilder", "git"]
HELPER_TIMEOUT_S = 30.0
_SECRET = ObjectKey(Kind("", "v1", "Secret"), "gitea-credential", "gitea")


@dataclass(frozen=True, slots=True)
class LocatedCredentials:
    """Credentials, and a readable description of their source."""

    credentials: Credentials
    source: str


@dataclass(frozen=True, slots=True)
class CredentialSources:
    """The possible sources of credentials for the forge at `url`."""

    url: str
    token_file: Path | None = None
    cluster: Cluster | None = None
    environment: Mapping[str, str] | None = None
    """None: this process's."""

    def find(self, source: Source = "auto") -> LocatedCredentials:
        """
        Return the credentials of the first source that has any, or of the named `source`.

        Every secret is registered for redaction.

        Raises:
            NotFoundError: No source has credentials, or the named one has none.
            InvalidInputError: A source is half set or malformed.
            RemoteError: The cluster is the named source and failed.
        """
        tries = self._tries()
        names = list(tries) if source == "auto" else [source]
        missing = []
        for name in names:
            try:
                located = tries[name]()
            except RemoteError:
                # only a silent cluster is passed over: a source that is half set is an error
                if source == "auto" and name == "idpbuilder":
                    missing.append(f"{name} (its cluster does not answer)")
                    continue
                raise
            if located is not None:
                _register(located.credentials)
                return located
            missing.append(name)
        raise NotFoundError(
            f"no credentials for the forge {self.url}; looked at: {', '.join(missing)}",
            hint=f"set {TOKEN}, or forge.tokenFile in platform.yaml",
        )

    def _tries(self) -> Mapping[str, Callable[[], LocatedCredentials | None]]:
        return {
            "environment": self._environment,
            "file": self._file,
            "idpbuilder": self._idpbuilder,
            "git": self._git,
        }

    def _environment(self) -> LocatedCredentials | None:
        variables = os.environ if self.environment is None else self.environment
        token, user, password = (
            variables.get(name, "").strip() for name in (TOKEN, USER, PASSWORD)
        )
        if token:
            return LocatedCredentials(Credentials(token=token), f"environment variable {TOKEN}")
        if bool(user) is not bool(password):
            missing = PASSWORD if user else USER
            raise InvalidInputError(
                missing, "", "is not set, though its other half is", hint=f"export {missing}=…"
            )
        if user:
            return LocatedCredentials(
                Credentials(user=user, password=password), f"environment variable {USER}"
            )
        return None

    def _file(self) -> LocatedCredentials | None:
        if self.token_file is None:
            return None
        try:
            token = self.token_file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise NotFoundError(
                f"the token for {self.url} cannot be read from {self.token_file}",
                hint="check tokenFile in platform.yaml",
            ) from error
        if not token or any(char.isspace() for char in token):
            raise InvalidInputError(
                "tokenFile",
                str(self.token_file),
                "does not hold one token",
                hint="one line with the token and nothing else",
            )
        return LocatedCredentials(Credentials(token=token), f"file {self.token_file}")

    def _idpbuilder(self) -> LocatedCredentials | None:
        secret = self.cluster.get(_SECRET) if self.cluster else None
        if secret is None:
            return None
        data = secret.get("data") or {}
        token, user, password = (_decoded(data, key) for key in ("token", "username", "password"))
        source = "idpbuilder's Secret gitea/gitea-credential"
        if token:
            return LocatedCredentials(Credentials(token=token), source)
        if user and password:
            return LocatedCredentials(Credentials(user=user, password=password), source)
        raise InvalidInputError(
            source,
            "",
            "holds neither token nor username and password",
            hint="forge.tokenFile in platform.yaml names a file with a token",
        )

    def _git(self) -> LocatedCredentials | None:
        parts = urlsplit(self.url)
        question = f"protocol={parts.scheme}\nhost={parts.netloc}\n"
        path = parts.path.strip("/")
        answer = _ask_git(question + (f"path={path}\n" if path else "") + "\n")
        fields = dict(line.split("=", 1) for line in answer.splitlines() if "=" in line)
        user, password = fields.get("username", ""), fields.get("password", "")
        if not user or not password:
            return None
        return LocatedCredentials(
            Credentials(user=user, password=password), f"git's credentials of {user}"
        )


def _ask_git(question: str) -> str:
    """Return the answer of ``git credential fill``, or "" if it would have to prompt."""
    # git would prompt, and nobody may be there to answer
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS": ""}
    try:
        result = subprocess.run(
            ["git", "-c", "core.askPass=", "credential", "fill"],  # noqa: S607  the user's git
            input=question,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=HELPER_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout if result.returncode == 0 else ""


def _decoded(data: Mapping[str, str], key: str) -> str:
    try:
        return base64.b64decode(data.get(key, ""), validate=True).decode().strip()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"gitea/gitea-credential {key}", "", "is not base64 text"
        ) from error


def _register(credentials: Credentials) -> None:
    for secret in (credentials.token, credentials.password):
        register(secret)
