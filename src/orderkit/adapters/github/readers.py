"""
With what Argo CD reads an organisation on GitHub: a second App, which may only read contents.

GitHub makes no accounts by its API. Argo CD knows Apps itself (``githubAppID`` and so on in a
Secret) and renews their tokens. The App of platform.yaml, ``forge.argocdApp``, reads every
organisation where it is installed: narrower per team is only another App for each.
"""

from __future__ import annotations

from pathlib import Path

from ground.errors import AccessError, NotFoundError
from ground.secrets import register
from orderkit.adapters.forges.transport import path_of
from orderkit.adapters.github.calls import GitHubCalls
from orderkit.core.platform.settings import ForgeApp
from orderkit.ports.forge import ReaderAccount


class GitHubReaders(GitHubCalls):
    """The part of the port about credentials that read one organisation."""

    _argocd_app: ForgeApp | None

    def add_reader(self, org: str) -> ReaderAccount:
        """
        Return the App that platform.yaml names for Argo CD; nothing is made. See the port.

        Raises:
            NotFoundError: No such organisation, or the App's key cannot be read.
            AccessError: platform.yaml names no such App.
        """
        app = self._argocd_app
        if app is None:
            raise AccessError(
                f"add an account that reads {org}: GitHub makes none by its API",
                hint="name a GitHub App that may read (forge.argocdApp in platform.yaml), or a"
                " folder with a token for each team: forge.teamTokenFolder",
            )
        if self._optional(path_of("orgs", org), f"look for organisation {org}") is None:
            raise NotFoundError(f"there is no organisation {org}")
        secret = app_secret(app, self._http.base_url, self._http.api_url)
        return ReaderAccount(f"github-app-{app.id}", "", secret)

    def remove_reader(self, org: str, name: str) -> None:
        """Do nothing: the App is the owner's, and Argo CD's Secret goes. See the port."""


def app_secret(app: ForgeApp, base_url: str, api_url: str) -> dict[str, str]:
    """
    Return the entries of Argo CD's Secret for a GitHub App (Argo CD, "Private Repositories").

    Args:
        base_url: Where people find GitHub.
        api_url: Where its API is; "/PATH" means below `base_url`.

    Raises:
        NotFoundError: The App's key cannot be read.
    """
    try:
        key = Path(app.private_key_file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(
            f"the key of GitHub App {app.id} cannot be read from {app.private_key_file}",
            hint="check forge.argocdApp.privateKeyFile in platform.yaml",
        ) from error
    register(key)
    secret = {"githubAppID": str(app.id), "githubAppPrivateKey": key}
    if app.installation:
        secret["githubAppInstallationID"] = str(app.installation)
    url = f"{base_url}{api_url}" if api_url.startswith("/") else api_url
    if url != "https://api.github.com":
        secret["githubAppEnterpriseBaseUrl"] = url
    return secret
