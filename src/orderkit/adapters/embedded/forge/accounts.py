"""
Users, organisations, tokens, and who somebody is who brings credentials.

Passwords are hashed with scrypt; tokens are 160 random bits (or given by the platform), so
a plain SHA-256 of them is enough and fast. A verified password is remembered for the life
of the process under a keyed digest, because git asks with it three times per push.

Called by the HTTP API and by ``EmbeddedForge`` at start-up. It decides who, never what is
allowed (``api.access``).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import sqlite3
import threading
from dataclasses import dataclass

from orderkit.adapters.embedded.forge.store import Store
from orderkit.adapters.embedded.forge.teams import Teams
from orderkit.core.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError

NAME = re.compile(r"[A-Za-z0-9](?:[-._]?[A-Za-z0-9])*\Z")
NAME_MAX = 40
RESERVED = frozenset(
    """
    .well-known api assets attachments avatar avatars captcha explore favicon.ico ghost
    gitea-actions issues login manifest.json metrics milestones notifications org pulls
    repo repo-avatars robots.txt sitemap.xml ssh_info swagger.v1.json user v2
    """.split()  # noqa: SIM905  a list of words reads better as words
)
_SCRYPT_N, _SCRYPT_R, _SCRYPT_P = 2**14, 8, 1

RESOURCES = (
    "activitypub",
    "admin",
    "issue",
    "misc",
    "notification",
    "organization",
    "package",
    "repository",
    "user",
)
SCOPES = frozenset(
    {"all", "public-only"} | {f"{verb}:{what}" for verb in ("read", "write") for what in RESOURCES}
)


@dataclass(frozen=True, slots=True)
class Account:
    """A user or an organisation (Gitea keeps both in one name space)."""

    id: int
    name: str
    is_org: bool
    admin: bool
    email: str
    description: str
    visibility: str


@dataclass(frozen=True, slots=True)
class Token:
    """An access token without its secret."""

    id: int
    name: str
    last_eight: str
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Actor:
    """Who calls. `scopes` None: a password, which may do all that its user may."""

    account: Account | None
    scopes: frozenset[str] | None = None
    by_token: bool = False

    @property
    def public_only(self) -> bool:
        return self.scopes is not None and "public-only" in self.scopes


ANONYMOUS = Actor(None)


class BadCredentialsError(Exception):
    """The token or password belongs to nobody."""


class Accounts:
    """Users, organisations and tokens in the store, and through `teams` who belongs where."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.teams = Teams(store)
        self._seen: set[bytes] = set()
        self._seen_key = secrets.token_bytes(32)
        self._lock = threading.Lock()

    def find(self, name: str) -> Account | None:
        """Return the account with this name, whatever its case, or None."""
        row = self._store.row("SELECT * FROM accounts WHERE lower_name = ?", name.lower())
        return _account(row) if row else None

    def by_id(self, account_id: int) -> Account:
        """
        Return an account.

        Raises:
            NotFoundError: No such account.
        """
        row = self._store.row("SELECT * FROM accounts WHERE id = ?", account_id)
        if row is None:
            raise NotFoundError(f"no account {account_id}")
        return _account(row)

    def name_by_email(self, email: str) -> str:
        """Return the name of the user with a mail address, empty if there is none."""
        row = self._store.row(
            "SELECT name FROM accounts WHERE is_org = 0 AND email = ?", email.lower()
        )
        return str(row["name"]) if row else ""

    def create_user(self, name: str, password: str, *, admin: bool = False) -> Account:
        """
        Create a user.

        Raises:
            InvalidInputError: A bad or reserved name.
            ConflictError: The name is taken.
        """
        check_name(name)
        return self._create(name, is_org=False, admin=admin, password=hash_password(password))

    def ensure_user(self, name: str, password: str, *, admin: bool = False) -> Account:
        """
        Make sure the user exists with this password and role. Idempotent.

        Raises:
            InvalidInputError: A bad name, or an organisation has it.
        """
        found = self.find(name)
        if found is None:
            return self.create_user(name, password, admin=admin)
        if found.is_org:
            raise InvalidInputError("user", name, "is the name of an organisation")
        if self.check_password(name, password) is None:
            self._store.change(
                "UPDATE accounts SET password = ? WHERE id = ?", hash_password(password), found.id
            )
        self._store.change("UPDATE accounts SET admin = ? WHERE id = ?", int(admin), found.id)
        return self.by_id(found.id)

    def create_org(
        self, name: str, owner: Account, *, description: str = "", visibility: str = "public"
    ) -> Account:
        """
        Create an organisation with one owner, both or nothing.

        Raises:
            InvalidInputError: A bad or reserved name.
            ConflictError: The name is taken.
        """
        check_name(name)
        with self._store.transaction():
            org = self._create(name, is_org=True, description=description, visibility=visibility)
            self.teams.create_owners(org.id, owner.id)
        return org

    def orgs(self) -> list[Account]:
        """Return all organisations, oldest first."""
        rows = self._store.rows("SELECT * FROM accounts WHERE is_org = 1 ORDER BY id")
        return [_account(row) for row in rows]

    def change_org(
        self, org: Account, *, description: str | None = None, visibility: str | None = None
    ) -> Account:
        """
        Change what is given.

        Raises:
            NotFoundError: It was deleted meanwhile.
        """
        self._store.change(
            "UPDATE accounts SET description = coalesce(?, description),"
            " visibility = coalesce(?, visibility) WHERE id = ?",
            description,
            visibility,
            org.id,
        )
        return self.by_id(org.id)

    def delete_org(self, org: Account) -> None:
        """
        Remove an organisation with its teams and webhooks.

        Raises:
            RefusedError: It still owns repositories.
        """
        try:
            self._store.change("DELETE FROM accounts WHERE id = ? AND is_org = 1", org.id)
        except sqlite3.IntegrityError as error:
            raise RefusedError(
                f"user still has ownership of repositories [uid: {org.id}]"
            ) from error

    def is_owner(self, org_id: int, user_id: int) -> bool:
        """Say whether a user owns an organisation."""
        return any(team.owns for team in self.teams.of_user(user_id, org_id=org_id))

    def is_member(self, org_id: int, user_id: int) -> bool:
        """Say whether a user is in any team of an organisation."""
        return bool(self.teams.of_user(user_id, org_id=org_id))

    def _create(  # one INSERT, named columns
        self,
        name: str,
        *,
        is_org: bool,
        admin: bool = False,
        password: str = "",
        description: str = "",
        visibility: str = "public",
    ) -> Account:
        try:
            new_id = self._store.insert(
                "INSERT INTO accounts"
                " (name, lower_name, is_org, admin, password, email, description, visibility)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                name,
                name.lower(),
                int(is_org),
                int(admin),
                password,
                "" if is_org else f"{name.lower()}@noreply.localhost",
                description,
                visibility,
            )
        except sqlite3.IntegrityError as error:
            raise ConflictError(f"user already exists [name: {name}]") from error
        self._store.change("DELETE FROM account_redirects WHERE lower_name = ?", name.lower())
        return self.by_id(new_id)

    # Tokens

    def create_token(self, user: Account, name: str, scopes: tuple[str, ...]) -> tuple[Token, str]:
        """
        Create a token and return it with its secret, which is stored hashed only.

        Raises:
            InvalidInputError: No scope, or an unknown one.
            ConflictError: The user has a token of that name.
        """
        secret = secrets.token_hex(20)
        return self._insert_token(user, name, secret, scopes), secret

    def ensure_token(self, user: Account, name: str, secret: str, scopes: tuple[str, ...]) -> Token:
        """
        Make sure the user has this token with this secret and these scopes. Idempotent.

        Raises:
            InvalidInputError: No scope, or an unknown one.
            ConflictError: Another token has this secret.
        """
        _check_scopes(scopes)
        for token in self.tokens(user):
            if token.name == name:
                if token.scopes == scopes and self._digest_of(token.id) == _digest(secret):
                    return token
                self.delete_token(user, token.id)
        return self._insert_token(user, name, secret, scopes)

    def tokens(self, user: Account) -> list[Token]:
        """Return a user's tokens without their secrets, oldest first."""
        rows = self._store.rows("SELECT * FROM tokens WHERE account_id = ? ORDER BY id", user.id)
        return [_token(row) for row in rows]

    def delete_token(self, user: Account, token_id: int) -> bool:
        """Remove a token. True if it was there."""
        sql = "DELETE FROM tokens WHERE account_id = ? AND id = ?"
        return self._store.change(sql, user.id, token_id) > 0

    def _digest_of(self, token_id: int) -> str:
        row = self._store.row("SELECT digest FROM tokens WHERE id = ?", token_id)
        return str(row["digest"]) if row else ""

    def _insert_token(
        self, user: Account, name: str, secret: str, scopes: tuple[str, ...]
    ) -> Token:
        _check_scopes(scopes)
        try:
            new_id = self._store.insert(
                "INSERT INTO tokens (account_id, name, digest, last_eight, scopes)"
                " VALUES (?, ?, ?, ?, ?)",
                user.id,
                name,
                _digest(secret),
                secret[-8:],
                ",".join(scopes),
            )
        except sqlite3.IntegrityError as error:
            raise ConflictError("access token name has been used already") from error
        return Token(new_id, name, secret[-8:], scopes)

    # Who is it

    def check_token(self, secret: str) -> Actor | None:
        """Return the actor behind a token, or None."""
        row = self._store.row(
            "SELECT account_id, scopes FROM tokens WHERE digest = ?", _digest(secret)
        )
        if row is None:
            return None
        scopes = frozenset(str(row["scopes"]).split(","))
        return Actor(self.by_id(row["account_id"]), scopes, by_token=True)

    def check_password(self, name: str, password: str) -> Actor | None:
        """Return the actor behind a name and password, or None."""
        row = self._store.row(
            "SELECT * FROM accounts WHERE lower_name = ? AND is_org = 0", name.lower()
        )
        if row is None or not row["password"]:
            return None
        stored = str(row["password"])
        seen = hmac.digest(self._seen_key, f"{stored}\0{password}".encode(), "sha256")
        with self._lock:
            known = seen in self._seen
        if not known and not verify_password(password, stored):
            return None
        with self._lock:
            self._seen.add(seen)
        return Actor(_account(row))

    def check_basic(self, name: str, password: str) -> Actor | None:
        """
        Return the actor behind basic credentials, or None.

        As in Gitea the password may be a token, and the name may be one if there is no
        password.
        """
        for secret in (password, "" if password not in ("", "x-oauth-basic") else name):
            actor = self.check_token(secret) if secret else None
            if actor:
                return actor
        return self.check_password(name, password)


def check_name(name: str) -> None:
    """
    Refuse account names that Gitea refuses.

    Raises:
        InvalidInputError: Bad characters, too long, or reserved.
    """
    if not NAME.match(name) or len(name) > NAME_MAX:
        raise InvalidInputError("username", name, "is no name (letters, digits, single -_.)")
    if name.lower() in RESERVED:
        raise InvalidInputError("username", name, "is reserved")


def hash_password(password: str) -> str:
    """Return ``scrypt$n$r$p$salt$key``."""
    salt = secrets.token_bytes(16)
    key = _scrypt(password, salt, _SCRYPT_N, _SCRYPT_R, _SCRYPT_P)
    return f"scrypt${_SCRYPT_N}${_SCRYPT_R}${_SCRYPT_P}${salt.hex()}${key.hex()}"


def verify_password(password: str, stored: str) -> bool:
    """Compare in constant time."""
    _, n, r, p, salt, key = stored.split("$")
    found = _scrypt(password, bytes.fromhex(salt), int(n), int(r), int(p))
    return hmac.compare_digest(found, bytes.fromhex(key))


def _scrypt(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=2**26, dklen=32)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _check_scopes(scopes: tuple[str, ...]) -> None:
    if not scopes:
        raise InvalidInputError("scopes", list(scopes), "access token must have a scope")
    for scope in scopes:
        if scope not in SCOPES:
            raise InvalidInputError("scopes", scope, "invalid access token scope provided")


def _account(row: sqlite3.Row) -> Account:
    return Account(
        id=row["id"],
        name=row["name"],
        is_org=bool(row["is_org"]),
        admin=bool(row["admin"]),
        email=row["email"],
        description=row["description"],
        visibility=row["visibility"],
    )


def _token(row: sqlite3.Row) -> Token:
    return Token(row["id"], row["name"], row["last_eight"], tuple(str(row["scopes"]).split(",")))
