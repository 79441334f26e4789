"""The kind of forge that platform.yaml names."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from ground.errors import InvalidInputError
from ground.names import RepoId
from orderkit.adapters.forge_choice import connect_forge
from orderkit.core.platform import settings
from orderkit.core.platform.forge_kinds import KINDS, ForgeKind
from orderkit.core.platform.settings import ForgeApp, ForgeSettings, PlatformSettings

TEXT = """
apiVersion: orderkit.dev/v1alpha1
kind: Platform
metadata: {name: it}
spec:
  forge: {url: "https://forge.example"%s}
  cluster: {kubeconfig: kubeconfig}
  portal: {url: "https://portal.example", tokenFile: portal-token}
  service: {url: "https://service.example", tokenFile: service-token}
"""


def read(more: str) -> PlatformSettings:
    return settings.parse(TEXT % more, folder=PurePosixPath("/etc/orderkit"))


def test_without_a_kind_the_forge_is_gitea() -> None:
    assert read("").forge.kind == "gitea"


def test_github_needs_a_token_or_an_app(tmp_path: Path) -> None:
    app = ForgeApp(7, tmp_path / "key.pem")

    connected = connect_forge(ForgeSettings("https://github.com", kind="github", app=app), None)

    assert connected.base_url == "https://github.com"
    assert connected.credentials_source == "the GitHub App of platform.yaml"
    assert not connected.capabilities.can_make_organisations


@pytest.mark.parametrize("name", ["app", "argocdApp"])
def test_a_github_app_is_for_github(name: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"forge\.{name}: '7' is for GitHub"):
        read(f", {name}: {{id: 7, privateKeyFile: key.pem}}")


def test_the_key_of_an_app_lies_beside_platform_yaml() -> None:
    app = read(", kind: github, app: {id: 7, privateKeyFile: key.pem}").forge.app

    assert app is not None
    assert app.private_key_file == PurePosixPath("/etc/orderkit/key.pem")


@pytest.mark.parametrize(
    ("kind", "folder", "commit"),
    [
        ("gitea", "/src/branch/main/", "/commit/c"),
        ("github", "/blob/main/", "/commit/c"),
        ("gitlab", "/-/blob/main/", "/-/commit/c"),
    ],
)
def test_each_kind_has_its_pages(kind: ForgeKind, folder: str, commit: str) -> None:
    pages = KINDS[kind].pages

    assert pages.folder("R", "main") == f"R{folder}"
    assert pages.commit_page("R", "c") == f"R{commit}"


def test_a_group_of_gitlab_is_part_of_every_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORDERKIT_FORGE_TOKEN", "a-token-of-a-group")
    forge = read(", kind: gitlab, group: acme/platform").forge

    assert forge.address == "https://forge.example/acme/platform"
    connected = connect_forge(
        ForgeSettings("https://forge.example", kind="gitlab", group="acme/platform"),
        None,
        None,
    )
    assert connected.base_url == forge.address
    assert connected.repository_named("acme/platform/ae86/x") == RepoId("ae86", "x")
    assert connected.repository_named("acme/other/ae86/x") is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (", group: acme", "is for GitLab, and forge.kind is gitea"),
        (", kind: gitlab, group: acme/..", "is no path of a group"),
        (", kind: gitlab, group: /acme", "forge.group"),
    ],
)
def test_what_is_no_group_is_refused(more: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read(more)


def test_names_with_subgroups_are_for_gitlab() -> None:
    text = TEXT % "%s" + "  packRepository: shop/web/pack\n"

    gitlab = settings.parse(text % ", kind: gitlab", folder=PurePosixPath("/etc"))
    assert gitlab.pack == RepoId("shop/web", "pack")
    with pytest.raises(InvalidInputError, match="has more than two parts, and gitea two"):
        settings.parse(text % "", folder=PurePosixPath("/etc"))


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_what_works_on_gitea_only_is_refused_in_a_sentence(kind: ForgeKind) -> None:
    natural = (TEXT % f", kind: {kind}").replace("portal-token}", "portal-token, profile: natural}")

    with pytest.raises(InvalidInputError, match=f"does not work on {kind} yet: its templates"):
        settings.parse(natural, folder=PurePosixPath("/etc"))
    with pytest.raises(InvalidInputError, match="are those of a Gitea"):
        read(f", kind: {kind}, credentials: idpbuilder")
