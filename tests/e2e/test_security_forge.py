"""
The attacks of ``tests/security`` on the forge again, with a real Gitea as the forge.

The platform's account is an ordinary user there, and its site admin somebody else.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace

import mixedplatform
import pytest
from commands import Command, in_process
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from forgeusers import ForgeUser, new_user
from lab.realgitea import Gitea, add_token, add_user, serving
from published import Up
from tests.security import test_forge_ownership as ownership
from tests.security import test_four_eyes as four_eyes

from orderkit.adapters.folders.pack_folder import pack_commit, read_folder, reference_pack
from orderkit.core.platform.settings import LOCAL_REGISTRY
from orderkit.flows.forge_protection import foreign_access
from orderkit.flows.install.bootstrapping import BootstrapRequest, bootstrap
from orderkit.flows.install.pack_rendering import PlatformValues
from orderkit_standins.platform import BOT_SCOPES

SCOPES = tuple(scope for scope in BOT_SCOPES if "admin" not in scope)
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEJ0SVzK8wU2tOUkk7XgT9qZ0P6zqQkM7h1mE1aBcDeF stranger"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def gitea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gitea]:
    with serving(tmp_path_factory.mktemp("gitea")) as started:
        yield started


@pytest.fixture(scope="module")
def platform(gitea: Gitea, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A bootstrapped platform on the real Gitea, with the reference pack."""
    state = tmp_path_factory.mktemp("mixed") / "state"
    state.mkdir()
    bot = add_user(gitea, f"orderkit-{secrets.token_hex(3)}")
    pack = reference_pack()
    wanted = mixedplatform.Wanted(state, pack, gitea.url, bot[0], add_token(gitea.url, bot, SCOPES))
    files = read_folder(pack)
    values = PlatformValues(gitea.url, pack_commit(pack, files), LOCAL_REGISTRY)
    with mixedplatform.running(wanted) as started:
        request = BootstrapRequest(files, values, "user:default/guest")
        bootstrap(started.platform, request, on_step=lambda *_: None)
        yield started


@pytest.fixture
def orderkit(platform: Up, capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(platform.state / "platform.yaml", capsys)


@pytest.fixture(scope="module")
def forge_admin(gitea: Gitea) -> ForgeUser:
    return ForgeUser(gitea.url, gitea.user, gitea.password)


@pytest.fixture
def stranger(forge_admin: ForgeUser) -> ForgeUser:
    return new_user(forge_admin)


@pytest.fixture
def new_name() -> Callable[[], str]:
    return lambda: f"rival-{next(_numbers):03d}"


@pytest.fixture
def rename(forge_admin: ForgeUser) -> Callable[[ForgeUser, str], ForgeUser]:
    """Give a user another login, as the user could unless the forge forbids it."""

    def change(user: ForgeUser, login: str) -> ForgeUser:
        forge_admin.api("POST", f"/admin/users/{user.login}/rename", {"new_username": login})
        return replace(user, login=login)

    return change


people, review = four_eyes.people, four_eyes.review
for _tests in (ownership, four_eyes):
    globals().update(
        {name: test for name, test in vars(_tests).items() if name.startswith("test_")}
    )


def test_a_deploy_key_that_may_write_is_seen(platform: Up, forge_admin: ForgeUser) -> None:
    """The embedded forge has no deploy keys. Another key of the title is another one."""
    ledger = platform.platform.ledger
    path = f"/repos/{ledger}/keys"
    holders: list[str] = []
    for public in (KEY, another_key()):
        key = forge_admin.api("POST", path, {"title": "mine", "key": public, "read_only": False})
        (grant,) = foreign_access(platform.platform, ledger, adopted=holders)
        forge_admin.api("DELETE", f"{path}/{key['id']}")
        assert grant.holder.startswith("deploy-key:mine:SHA256:")
        assert grant.right == "write"
        holders.append(grant.holder)


def another_key() -> str:
    public = Ed25519PrivateKey.generate().public_key()
    return public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
