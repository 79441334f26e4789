"""Users of a forge besides the platform's account: strangers, members and reviewers."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

PASSWORD = "Stranger-pw-12345"
TIMEOUT_S = 60


@dataclass(frozen=True)
class ForgeUser:
    """Somebody who calls the forge's API with a password."""

    url: str
    login: str
    password: str = field(default=PASSWORD, repr=False)

    def call(self, method: str, path: str, body: object = None) -> requests.Response:
        """Send one request to ``/api/v1`` and return the answer, whatever it is."""
        return requests.request(
            method,
            f"{self.url}/api/v1{path}",
            json=body,
            auth=(self.login, self.password),
            timeout=TIMEOUT_S,
        )

    def api(self, method: str, path: str, body: object = None) -> Any:
        """Send one request that must succeed; return its JSON, or None without a body."""
        answer = self.call(method, path, body)
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None


def embedded_admin(url: str, state: Path) -> ForgeUser:
    """Return the site admin of an embedded forge: the platform's own account."""
    secret = (state / "credentials" / "forge-password").read_text().strip()
    return ForgeUser(url, "orderkit", secret)


def new_user(admin: ForgeUser, prefix: str = "stranger") -> ForgeUser:
    """Add an ordinary user."""
    return named_user(admin, f"{prefix}-{secrets.token_hex(3)}")


def named_user(admin: ForgeUser, login: str) -> ForgeUser:
    """Add an ordinary user of that login."""
    user = ForgeUser(admin.url, login)
    body = {
        "username": user.login,
        "password": user.password,
        "email": f"{user.login}@example.org",
        "must_change_password": False,
    }
    admin.api("POST", "/admin/users", body)
    return user
