"""
Credentials for registries, from Docker's configuration file.

``docker login`` and compatible tools write them: into the file itself, or into a credential helper
that it names (the protocol of docker-credential-helpers).
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ground.errors import InvalidInputError, OrderkitError, shorten
from ground.objects.kube_objects import dig
from ground.secrets import redact, register

_HELPER = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_HELPER_S = 20
_FILE_MAX_BYTES = 1_000_000
_TOKEN_USER = "<token>"  # noqa: S105 - how helpers mark an identity token
_NONE_STORED = "credentials not found"
"""What a helper prints if it has none for a registry."""


@dataclass(frozen=True, slots=True)
class RegistryCredentials:
    """A name with its password, or a token that buys others. Never printed."""

    user: str = ""
    password: str = ""
    identity_token: str = ""

    def __repr__(self) -> str:
        return f"RegistryCredentials(user={self.user!r})"


def docker_config_file() -> Path:
    """Return where Docker keeps its configuration for this user."""
    folder = os.environ.get("DOCKER_CONFIG")
    return (Path(folder) if folder else Path.home() / ".docker") / "config.json"


def credentials_for(registry: str, config_file: Path) -> RegistryCredentials | None:
    """
    Return the credentials for a registry's host; None if there are none.

    Raises:
        InvalidInputError: The file cannot be read.
        OrderkitError: The credential helper that it names fails.
    """
    config = _config(config_file)
    helper = dig(config, "credHelpers", registry) or config.get("credsStore")
    for key in (registry, f"https://{registry}", f"https://{registry}/v1/"):
        entry = dig(config, "auths", key)
        if isinstance(entry, dict) and (entry.get("auth") or entry.get("identitytoken")):
            return _stored(entry, config_file)
    return _helped(str(helper), registry) if helper else None


def _config(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > _FILE_MAX_BYTES:
            raise InvalidInputError(str(file), None, f"has more than {_FILE_MAX_BYTES} bytes")
        config = json.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInputError(str(file), None, f"cannot be read: {error}") from error
    return config if isinstance(config, dict) else {}


def _stored(entry: dict[str, Any], file: Path) -> RegistryCredentials:
    try:
        pair = base64.b64decode(str(entry.get("auth", "")), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise InvalidInputError(str(file), None, "has credentials that are not base64") from error
    user, _, password = pair.partition(":")
    return _registered(user, password.rstrip("\0"), str(entry.get("identitytoken", "")))


def _registered(user: str, password: str, identity_token: str) -> RegistryCredentials:
    register(password)
    register(identity_token)
    return RegistryCredentials(user, password, identity_token)


def _helped(helper: str, registry: str) -> RegistryCredentials | None:
    """Ask a credential helper, which prints a user and a secret as JSON."""
    if not _HELPER.match(helper):
        raise InvalidInputError("credential helper", helper, "is not the name of a helper")
    program = f"docker-credential-{helper}"
    try:
        process = subprocess.run(  # noqa: S603 - the user's own configuration names it
            [program, "get"],
            input=registry.encode(),
            capture_output=True,
            check=False,
            timeout=_HELPER_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise OrderkitError(f"{program} cannot be run: {error}", hint="docker login") from error
    if process.returncode:
        reason = process.stdout.decode(errors="replace") or process.stderr.decode(errors="replace")
        if _NONE_STORED in reason:
            return None
        raise OrderkitError(f"{program} failed: {shorten(redact(reason))}", hint="docker login")
    try:
        answer = json.loads(process.stdout)
        user, secret = str(answer["Username"]), str(answer["Secret"])
    except (ValueError, KeyError, TypeError) as error:
        raise OrderkitError(f"{program} printed no credentials", hint="docker login") from error
    is_token = user == _TOKEN_USER
    return _registered("" if is_token else user, "" if is_token else secret, secret * is_token)
