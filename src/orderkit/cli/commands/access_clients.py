"""Edit the clients' file of a platform: ``orderkit access add``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ground.errors import InvalidInputError, NotFoundError
from ground.names import check_label, check_person
from orderkit.adapters.state_folder import write_atomically
from orderkit.adapters.tokens.access_tokens import new_token
from orderkit.cli.connecting import load_settings
from orderkit.core.platform.service_access import (
    RIGHTS,
    Client,
    digest_of,
    read_clients,
    write_clients,
)


@dataclass(frozen=True, slots=True)
class NewClient:
    """A client to create a token for."""

    name: str
    teams: tuple[str, ...]
    everywhere: bool
    rights: tuple[str, ...]
    requester: str | None
    days: int


def add_client(new_client: NewClient, platform_file: str | None) -> tuple[str, Path]:
    """
    Put a client into the file that platform.yaml names; return its token and the file.

    Raises:
        NotFoundError: platform.yaml names no file. InvalidInputError: a name or the file.
    """
    file = load_settings(platform_file).service.access.tokens_file
    if file is None:
        raise NotFoundError(
            "platform.yaml names no file of clients",
            hint="spec.service.access.tokensFile: clients.yaml",
        )
    path, token = Path(file), new_token()
    clients = (
        read_clients(path.read_text(encoding="utf-8"), name=path.name) if path.exists() else ()
    )
    client = _client(new_client, token)
    other_clients = [other for other in clients if other.name != client.name]
    write_atomically(path, write_clients([*other_clients, client]), mode=0o600)
    return token, path


def _client(new_client: NewClient, token: str) -> Client:
    if not new_client.teams and not new_client.everywhere:
        raise InvalidInputError("--team", "", "is missing", hint="--team NAME, or --everywhere")
    expires = (datetime.now(UTC) + timedelta(days=new_client.days)).date()
    return Client(
        name=check_label("name", new_client.name),
        digest=digest_of(token),
        requester=check_person(new_client.requester or f"user:default/{new_client.name}"),
        teams=tuple(check_label("--team", team) for team in new_client.teams),
        rights=frozenset(right for right in RIGHTS if right in new_client.rights),
        platform=new_client.everywhere,
        expires=expires,
    )
