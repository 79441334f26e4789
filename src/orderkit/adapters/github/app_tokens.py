"""
Act as a GitHub App: a signed token of the App, and a token for each organisation, renewed in time.

An installation's token ends after an hour. The App's own token (RS256, ten minutes at most) is only
used to ask for those. Read from GitHub's page "Authenticating as a GitHub App installation".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ground.errors import AccessError, InvalidInputError, NotFoundError
from ground.secrets import register

_EARLY_S, _LIFE_S, _SKEW_S = 300.0, 540, 60
"""How long before its end a token is renewed; how long ours lives; how wrong clocks may be."""
Ask = Callable[[str, str], Any]
"""Sends a request as the App itself, by method and path; returns the JSON of a success, or None."""


@dataclass(slots=True)
class AppTokens:
    """The tokens of one App. Safe to use from threads."""

    app_id: int
    key_file: Path
    installation: int | None = None
    """The only one; None: that of each organisation."""
    _tokens: dict[str, tuple[str, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def app_token(self) -> str:
        """
        Return a token of the App itself.

        Raises:
            NotFoundError: The key cannot be read, or PyJWT is not installed.
            InvalidInputError: It is no private key.
        """
        try:
            import jwt
        except ImportError as error:
            raise NotFoundError(
                "a GitHub App needs PyJWT", hint="pip install 'orderkit[service]'"
            ) from error
        try:
            key = self.key_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise NotFoundError(
                f"the key of GitHub App {self.app_id} cannot be read from {self.key_file}",
                hint="check forge.app.privateKeyFile in platform.yaml",
            ) from error
        now = int(time.time())
        claims = {"iat": now - _SKEW_S, "exp": now + _LIFE_S, "iss": str(self.app_id)}
        try:
            token = jwt.encode(claims, key, algorithm="RS256")
        except (ValueError, TypeError, jwt.PyJWTError) as error:
            raise InvalidInputError(
                "forge.app.privateKeyFile", str(self.key_file), "holds no RSA private key"
            ) from error
        register(token)
        return str(token)

    def token(self, owner: str, ask: Ask) -> str:
        """
        Return a token for an organisation; "" means any.

        Raises:
            AccessError: The App is not installed there.
            OrderkitError: The App's own token cannot be made, or `ask` fails.
        """
        name = owner.lower()
        with self._lock:
            found = self._tokens.get(name)
            if found is None or found[1] - _EARLY_S < time.time():
                found = self._tokens[name] = self._new(name, ask)
            return found[0]

    def forget(self) -> None:
        """Ask anew for every token: the forge no longer knows one."""
        with self._lock:
            self._tokens.clear()

    def _new(self, owner: str, ask: Ask) -> tuple[str, float]:
        installation = self.installation or self._installation(owner, ask)
        made = ask("POST", f"/app/installations/{installation}/access_tokens") or {}
        token, ends = str(made.get("token") or ""), str(made.get("expires_at") or "")
        if not token:
            raise AccessError(f"GitHub App {self.app_id}: no token for '{owner}'")
        register(token)
        return token, datetime.fromisoformat(ends).timestamp() if ends else time.time() + 3600

    def _installation(self, owner: str, ask: Ask) -> int:
        if owner:
            found = ask("GET", f"/orgs/{owner}/installation")
        else:
            found = next(iter(ask("GET", "/app/installations") or ()), None)
        if not found:
            raise AccessError(
                f"GitHub App {self.app_id} is not installed in {owner or 'any organisation'}",
                hint="have an owner of the organisation install it, for all repositories",
            )
        return int(found["id"])
