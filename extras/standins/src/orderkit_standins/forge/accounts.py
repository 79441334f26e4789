"""
Users, organisations and tokens; authenticate credentials.

Passwords are hashed with scrypt; tokens are 160 random bits (or given by the platform), so a plain
SHA-256 of them is enough and fast. A verified password is remembered for the life of the process
under a keyed digest, because git asks with it three times per push.

It only authenticates; ``api.access`` authorises.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import sqlite3
import threading
from dataclasses import dataclass

from ground.errors import ConflictError, InvalidInputError, NotFoundError
from orderkit_standins.forge.store import Store, load
from orderkit_standins.forge.teams import Teams

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
"""Of scrypt's paper, for sign-ins where a person waits; they take 16 MiB of memory."""
RESOURCES = (
    *("activitypub", "admin", "issue", "misc", "notification"),
    *("organization", "package", "repository", "user"),
)
SCOPES = frozenset({"all", *(f"{verb}:{what}" for verb in ("read", "write") for what in RESOURCES)})


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
    read_only: bool
    """Reads what others may read, and changes nothing, whatever rights others gave it."""


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
    def may_write(self) -> bool:
        """Whether the caller may change anything at all."""
        return self.account is not None and not self.account.read_only


ANONYMOUS = Actor(None)


class Accounts:
    """Users, organisations and tokens in the store."""

    def __init__(self, store: Store, teams: Teams) -> None:
        self._store, self._teams = store, teams
        self._verified: set[bytes] = set()
        self._verified_key = secrets.token_bytes(32)
        self._lock = threading.Lock()

    def find(self, name: str) -> Account | None:
        """Return the account with this name, ignoring case, or None."""
        row = self._store.row("SELECT * FROM accounts WHERE lower_name = ?", name.lower())
        return load(Account, row) if row else None

    def find_user(self, name: str) -> Account | None:
        """Return the user with this name, ignoring case, or None."""
        account = self.find(name)
        return None if account is None or account.is_org else account

    def by_id(self, account_id: int) -> Account:
        """
        Return an account.

        Raises:
            NotFoundError: No such account.
        """
        row = self._store.row("SELECT * FROM accounts WHERE id = ?", account_id)
        if row is None:
            raise NotFoundError(f"no account {account_id}")
        return load(Account, row)

    def name_by_email(self, email: str) -> str:
        """Return the name of the user with a mail address, empty if there is none."""
        sql = "SELECT name FROM accounts WHERE is_org = 0 AND email = ?"
        row = self._store.row(sql, email.lower())
        return str(row["name"]) if row else ""

    def create_user(self, name: str, password: str, *, admin: bool = False) -> Account:
        """
        Create a user.

        Raises:
            InvalidInputError: A bad or reserved name.
            ConflictError: The name is taken.
        """
        email = f"{name.lower()}@noreply.localhost"
        hashed = hash_password(password)
        return self._create(name, is_org=False, admin=admin, password=hashed, email=email)

    def ensure_user(
        self, name: str, password: str, *, admin: bool = False, read_only: bool = False
    ) -> Account:
        """
        Make sure the user exists with this password and role. Idempotent.

        Raises:
            InvalidInputError: A bad name, or an organisation has it.
        """
        account = self.find(name) or self.create_user(name, password)
        if account.is_org:
            raise InvalidInputError("user", name, "is the name of an organisation")
        if self.check_password(name, password) is None:
            self._store.update("accounts", account.id, password=hash_password(password))
        self._store.update("accounts", account.id, admin=admin, read_only=read_only)
        return self.by_id(account.id)

    def delete_user(self, user: Account) -> None:
        """
        Remove a user with all tokens.

        Raises:
            ConflictError: The user is in an organisation, or owns or wrote something.
        """
        if self._store.row("SELECT 1 FROM team_members WHERE account_id = ?", user.id):
            raise ConflictError(f"user still has membership of organizations [uid: {user.id}]")
        try:
            self._store.change("DELETE FROM accounts WHERE id = ?", user.id)
        except sqlite3.IntegrityError as error:
            raise ConflictError(
                f"user still has ownership of repositories [uid: {user.id}]"
            ) from error

    def create_org(
        self, name: str, owner: Account, *, description: str = "", visibility: str = "public"
    ) -> Account:
        """
        Create an organisation with one owner, both or nothing.

        Raises:
            InvalidInputError: A bad or reserved name.
            ConflictError: The name is taken.
        """
        with self._store.transaction():
            org = self._create(name, is_org=True, description=description, visibility=visibility)
            self._teams.create_owners(org.id, owner.id)
        return org

    def _create(self, name: str, **values: object) -> Account:
        check_name(name)
        try:
            account_id = self._store.insert(
                "accounts", name=name, lower_name=name.lower(), **values
            )
        except sqlite3.IntegrityError as error:
            raise ConflictError(f"user already exists [name: {name}]") from error
        return self.by_id(account_id)

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
                row = self._store.row("SELECT digest FROM tokens WHERE id = ?", token.id)
                if token.scopes == scopes and row and row["digest"] == _digest(secret):
                    return token
                self.delete_token(user, token.id)
        return self._insert_token(user, name, secret, scopes)

    def tokens(self, user: Account) -> list[Token]:
        """Return a user's tokens without their secrets, oldest first."""
        rows = self._store.rows("SELECT * FROM tokens WHERE account_id = ? ORDER BY id", user.id)
        return [load(Token, row, scopes=tuple(str(row["scopes"]).split(","))) for row in rows]

    def delete_token(self, user: Account, token_id: int) -> bool:
        """Remove a token. True if it existed."""
        sql = "DELETE FROM tokens WHERE account_id = ? AND id = ?"
        return self._store.change(sql, user.id, token_id) > 0

    def _insert_token(
        self, user: Account, name: str, secret: str, scopes: tuple[str, ...]
    ) -> Token:
        _check_scopes(scopes)
        values = {"digest": _digest(secret), "last_eight": secret[-8:], "scopes": ",".join(scopes)}
        try:
            token_id = self._store.insert("tokens", account_id=user.id, name=name, **values)
        except sqlite3.IntegrityError as error:
            raise ConflictError("access token name has been used already") from error
        return Token(token_id, name, secret[-8:], scopes)

    # Credentials

    def check_token(self, secret: str) -> Actor | None:
        """Return the actor behind a token, or None."""
        sql = "SELECT account_id, scopes FROM tokens WHERE digest = ?"
        row = self._store.row(sql, _digest(secret))
        if row is None:
            return None
        scopes = frozenset(str(row["scopes"]).split(","))
        if not scopes <= SCOPES:  # a scope of an earlier release that no longer exists
            return None
        return Actor(self.by_id(row["account_id"]), scopes, by_token=True)

    def check_password(self, name: str, password: str) -> Actor | None:
        """Return the actor behind a name and password, or None."""
        sql = "SELECT * FROM accounts WHERE lower_name = ? AND is_org = 0"
        row = self._store.row(sql, name.lower())
        if row is None or not row["password"]:
            return None
        stored = str(row["password"])
        digest = hmac.digest(self._verified_key, f"{stored}\0{password}".encode(), "sha256")
        with self._lock:
            verified = digest in self._verified
        if not verified and not verify_password(password, stored):
            return None
        with self._lock:
            self._verified.add(digest)
        return Actor(load(Account, row))

    def check_basic(self, name: str, password: str) -> Actor | None:
        """Return the actor behind basic credentials, or None."""
        # as in Gitea the password may be a token, and the name may be one if there is no password
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
        raise InvalidInputError("username", name, "is not a name (letters, digits, single -_.)")
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
    computed = _scrypt(password, bytes.fromhex(salt), int(n), int(r), int(p))
    return hmac.compare_digest(computed, bytes.fromhex(key))


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
