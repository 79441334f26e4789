"""Keep the clients' file of a platform: ``orderkit access add``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orderkit.adapters.embedded.state import write_atomically
from orderkit.adapters.tokens.access_tokens import new_token
from orderkit.cli.connecting import load_settings
from orderkit.core.errors import InvalidInputError, NotFoundError
from orderkit.core.names import check_label, check_requester
from orderkit.core.platform.access import RIGHTS, Client, digest_of, read_clients, write_clients


@dataclass(frozen=True, slots=True)
class NewClient:
    """A client that shall get a token."""

    name: str
    teams: tuple[str, ...]
    everywhere: bool
    rights: tuple[str, ...]
    requester: str | None
    days: int


def add_client(wanted: NewClient, platform_file: str | None) -> tuple[str, Path]:
    """
    Put a client into the file that platform.yaml names; return its token and the file.

    Raises:
        NotFoundError: platform.yaml names no file. InvalidInputError: a name or the file.
    """
    file = load_settings(platform_file).access.tokens_file
    if file is None:
        raise NotFoundError(
            "platform.yaml names no file of clients",
            hint="spec.service.access.tokensFile: clients.yaml",
        )
    path, token = Path(file), new_token()
    known = read_clients(path.read_text(), name=path.name) if path.exists() else ()
    client = _client(wanted, token)
    others = [other for other in known if other.name != client.name]
    write_atomically(path, write_clients([*others, client]), mode=0o600)
    return token, path


def _client(wanted: NewClient, token: str) -> Client:
    if not wanted.teams and not wanted.everywhere:
        raise InvalidInputError("--team", "", "is missing", hint="--team NAME, or --everywhere")
    expires = (datetime.now(UTC) + timedelta(days=wanted.days)).date()
    return Client(
        name=check_label("name", wanted.name),
        digest=digest_of(token),
        requester=check_requester(wanted.requester or f"user:default/{wanted.name}"),
        teams=tuple(check_label("--team", team) for team in wanted.teams),
        rights=frozenset(right for right in RIGHTS if right in wanted.rights),
        platform=wanted.everywhere,
        expires=expires,
    )
