"""GitHub Apps: who they are, and which of them signed a request."""

from __future__ import annotations

from dataclasses import dataclass, field

from orderkit_standins.forge.api.calls import ApiError, Call

BOT = "[bot]"
"""What the login of an App's account ends with."""


@dataclass(frozen=True, slots=True)
class InstalledApp:
    """A GitHub App that is installed in every organisation."""

    id: int
    slug: str
    public_key: str
    """PEM."""
    lacks: tuple[str, ...] = ()
    """Permissions that it was not given."""


@dataclass(slots=True)
class Apps:
    """The Apps of one forge, in memory: whoever starts the forge names them."""

    known: dict[int, InstalledApp] = field(default_factory=dict)

    def has_account(self, name: str) -> bool:
        """Say whether an account is an App's."""
        return any(app.slug == name for app in self.known.values())

    def caller(self, call: Call) -> InstalledApp:
        """
        Return the App that signed a request.

        Raises:
            ApiError: 401, none did, or its time is over.
        """
        import jwt

        token = call.request.headers.get("authorization", "").partition(" ")[2]
        try:
            issuer = str(jwt.decode(token, options={"verify_signature": False}).get("iss"))
            app = self.known[int(issuer)]
            jwt.decode(token, app.public_key, algorithms=["RS256"], options={"require": ["exp"]})
        except (jwt.PyJWTError, ValueError, KeyError) as error:
            raise ApiError(401, "A JSON web token could not be decoded") from error
        return app
