"""
Accounts on Gitea that may read one organisation and nothing else, for Argo CD.

Gitea has no token for one organisation: a token may do what its account may. So each organisation
gets an account of its own, restricted (it sees nothing public either) and a member of one team
that may read. Only a site admin can make accounts.

Called through ``client.GiteaForge``; ``ports.access.ForgeAccess`` documents the contract.
"""

from __future__ import annotations

import secrets
from contextlib import suppress

from ground.errors import AccessError, NotFoundError
from ground.secrets import register
from orderkit.adapters.forges.calls import FORBIDDEN, MISSING, checked, done, object_in, text_in
from orderkit.adapters.forges.transport import Credentials, path_of
from orderkit.adapters.gitea.teams import GiteaAccess
from orderkit.ports.forge import ReaderAccount, TeamRight

READERS = "argocd"
"""The organisation's team that the account is in."""
_ORG_MAX = 20
"""How much of the organisation's name the account's shows: Gitea allows 40 characters."""


class GiteaReaders(GiteaAccess):
    """The part of the port about accounts that read one organisation."""

    def add_reader(self, org: str) -> ReaderAccount:
        """
        Make an account that may read this organisation only, with a token. See the port.

        Raises:
            NotFoundError: No such organisation.
            AccessError: Our credentials may not make accounts.
        """
        doing = f"add an account that reads {org}"
        name = f"argocd-{org[:_ORG_MAX].rstrip('-_.')}-{secrets.token_hex(5)}"
        password = f"{secrets.token_urlsafe(32)}aA1!"
        register(password)
        body = {
            "username": name,
            "password": password,
            "email": f"{name}@noreply.invalid",
            "must_change_password": False,
            "restricted": True,
            "visibility": "private",
        }
        answer = self._http.send("POST", "/admin/users", body=body)
        if answer.status == FORBIDDEN:
            raise AccessError(
                f"{doing}: {answer.text}",
                hint="use credentials of a forge admin (scope write:admin) for this command, or "
                "name a folder with a token for each team: forge.teamTokenFolder in platform.yaml",
            )
        checked(answer, doing)
        self.ensure_access(org, READERS, right=TeamRight.READ, members=[name])
        token = {"name": "argocd", "scopes": ["read:repository"]}
        own = Credentials(user=name, password=password)
        made = self._http.send("POST", path_of("users", name, "tokens"), body=token, as_=own)
        secret = text_in(object_in(checked(made, doing), doing), "sha1")
        register(secret)
        return ReaderAccount(name, secret)

    def remove_reader(self, org: str, name: str) -> None:
        """
        Remove the account and its token. Idempotent. See the port.

        Raises:
            AccessError: Our credentials may not remove accounts.
        """
        with suppress(NotFoundError):  # the organisation went before it
            self.ensure_access(org, READERS, right=TeamRight.READ, members=[])
        answer = self._http.send("DELETE", path_of("admin", "users", name))
        if answer.status != MISSING:
            done(answer, f"remove the account {name}")
