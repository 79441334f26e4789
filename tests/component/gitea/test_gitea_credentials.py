"""Where the forge's credentials come from: the order, halves, and what git knows."""

from __future__ import annotations

import base64
import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from answering import says, server

from ground.errors import AccessError, InvalidInputError, NotFoundError, UnreachableError
from ground.objects.kube_objects import Kind, ObjectKey
from ground.secrets import redact
from orderkit.adapters.forges.credentials import (
    PASSWORD,
    TOKEN,
    USER,
    CredentialSources,
    LocatedCredentials,
)
from orderkit.adapters.forges.transport import Credentials
from orderkit.adapters.gitea import GiteaForge
from orderkit.adapters.kube.cluster import KubeCluster
from orderkit_standins.cluster import EmbeddedCluster

URL = "https://forge.example.org:8443/gitea"
CANARY = "canary-credential-0123456789"


@pytest.fixture
def git_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Git's only configuration; it may name helpers."""
    path = tmp_path / "gitconfig"
    path.write_text("")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return path


@pytest.fixture
def helper(git_config: Path, tmp_path: Path) -> Path:
    """Git's own helper ``store`` with one entry for the forge's host."""
    store = tmp_path / "store"
    store.write_text(f"https://eve:{CANARY}@forge.example.org%3a8443\n")
    git_config.write_text(f'[credential]\n\thelper = "store --file={store}"\n')
    return store


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("from-the-file-0123456789\n")
    return path


def test_the_environment_comes_first(token_file: Path) -> None:
    sources = CredentialSources(URL, token_file, environment={TOKEN: CANARY})

    found = sources.find()

    assert found == LocatedCredentials(Credentials(token=CANARY), f"environment variable {TOKEN}")
    assert CANARY not in redact(f"token {CANARY}")
    assert CANARY not in repr(found)


def test_user_and_password_of_the_environment_are_taken_together(token_file: Path) -> None:
    given = {USER: "eve", PASSWORD: CANARY}

    assert CredentialSources(URL, token_file, environment=given).find().credentials == Credentials(
        user="eve", password=CANARY
    )


@pytest.mark.parametrize(
    ("given", "missing"), [({USER: "eve"}, PASSWORD), ({PASSWORD: "secret-1"}, USER)]
)
def test_half_a_pair_is_an_error_and_no_reason_to_take_another(
    token_file: Path, given: dict[str, str], missing: str
) -> None:
    with pytest.raises(InvalidInputError, match=missing):
        CredentialSources(URL, token_file, environment=given).find()


def test_the_named_file_comes_next(token_file: Path, helper: Path) -> None:
    found = CredentialSources(URL, token_file, environment={}).find()

    assert helper.exists()
    assert found.credentials == Credentials(token="from-the-file-0123456789")
    assert str(token_file) in found.source


@pytest.mark.parametrize("text", ["", "two words", "a\nb"])
def test_a_file_without_one_token_is_refused(token_file: Path, text: str) -> None:
    token_file.write_text(text)

    with pytest.raises(InvalidInputError, match="does not hold one token"):
        CredentialSources(URL, token_file, environment={}).find()


def test_a_named_file_that_cannot_be_read_is_an_error(tmp_path: Path, helper: Path) -> None:
    assert helper.exists()
    with pytest.raises(NotFoundError, match="cannot be read"):
        CredentialSources(URL, tmp_path / "none", environment={}).find()


def test_gits_helper_is_asked_last(helper: Path) -> None:
    found = CredentialSources(URL, environment={}).find()

    assert helper.exists()
    assert found == LocatedCredentials(
        Credentials(user="eve", password=CANARY), "git's credentials of eve"
    )


def test_git_never_asks_a_person(
    git_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that would ask are there, and are not run."""
    asked = tmp_path / "asked"
    program = tmp_path / "ask"
    program.write_text(f"#!/bin/sh\ntouch {asked}\necho secret\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    git_config.write_text(f"[core]\n\taskPass = {program}\n")
    for name in ("GIT_ASKPASS", "SSH_ASKPASS"):
        monkeypatch.setenv(name, str(program))

    with pytest.raises(NotFoundError, match="no credentials"):
        CredentialSources(URL, environment={}).find("git")

    assert not asked.exists()


def test_without_git_there_is_nothing(
    git_config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert git_config.exists()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("git") is None

    with pytest.raises(NotFoundError, match="looked at: environment, file, idpbuilder, git"):
        CredentialSources(URL, environment={}).find()


def test_only_the_wanted_source_is_asked(token_file: Path, helper: Path) -> None:
    sources = CredentialSources(URL, token_file, environment={TOKEN: CANARY})

    assert helper.exists()
    assert sources.find("file").credentials.token == "from-the-file-0123456789"
    assert sources.find("git").credentials.user == "eve"
    with pytest.raises(NotFoundError, match="looked at: idpbuilder"):
        sources.find("idpbuilder")


def test_this_process_s_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, CANARY)

    assert CredentialSources(URL).find().credentials.token == CANARY
    assert os.environ[TOKEN] == CANARY


@pytest.fixture
def knows_only() -> Iterator[tuple[str, list[str]]]:
    """A forge that knows the token ``new``, and what it was sent."""
    sent: list[str] = []

    def answer(handler: object) -> None:
        header = handler.headers["Authorization"]  # type: ignore[attr-defined]  # a request handler
        sent.append(header)
        known = header == "token new-token-0123"
        says(200 if known else 401, b'{"login": "eve", "message": "who?"}')(handler)  # type: ignore[arg-type]  # same

    with server(answer) as url:
        yield url, sent


def test_a_token_that_was_replaced_is_read_again(
    knows_only: tuple[str, list[str]], token_file: Path
) -> None:
    """Idpbuilder makes a new token when its password changes."""
    url, sent = knows_only
    sources = CredentialSources(url, token_file, environment={})
    old = sources.find().credentials.token
    with GiteaForge(url, token=old, renew=lambda: sources.find().credentials) as forge:
        token_file.write_text("new-token-0123")

        assert forge.user() == forge.user() == "eve"

    assert sent == [f"token {old}", "token new-token-0123", "token new-token-0123"]


def test_a_token_that_stays_bad_is_tried_once(
    knows_only: tuple[str, list[str]], token_file: Path
) -> None:
    url, sent = knows_only
    sources = CredentialSources(url, token_file, environment={})
    old = sources.find().credentials.token
    with GiteaForge(url, token=old, renew=lambda: sources.find().credentials) as forge:
        with pytest.raises(AccessError, match="bad credentials"):
            forge.user()
        token_file.unlink()
        with pytest.raises(AccessError, match="bad credentials"):
            forge.user()

    assert sent == [f"token {old}"] * 2


SECRET = ObjectKey(Kind("", "v1", "Secret"), "gitea-credential", "gitea")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    made = EmbeddedCluster(tmp_path / "cluster.sqlite")
    made.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SECRET.namespace}},
        owner="test",
    )
    yield made
    made.close()


def keep(cluster: EmbeddedCluster, **data: str) -> None:
    """Put idpbuilder's Secret into the cluster."""
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": SECRET.name, "namespace": SECRET.namespace},
            "data": {key: base64.b64encode(text.encode()).decode() for key, text in data.items()},
        },
        owner="test",
    )


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"token": f" {CANARY}\n", "username": "eve", "password": "p"}, Credentials(token=CANARY)),
        ({"username": "eve", "password": CANARY}, Credentials(user="eve", password=CANARY)),
    ],
)
def test_the_secret_of_idpbuilder_has_a_token_or_a_name_and_password(
    git_config: Path, cluster: EmbeddedCluster, data: dict[str, str], found: Credentials
) -> None:
    assert git_config.exists()
    keep(cluster, **data)

    located = CredentialSources(URL, cluster=cluster, environment={}).find()

    assert located == LocatedCredentials(found, "idpbuilder's Secret gitea/gitea-credential")


@pytest.mark.parametrize("data", [{}, {"username": "eve"}, {"password": CANARY}])
def test_half_a_secret_is_an_error_and_no_reason_to_ask_git(
    helper: Path, cluster: EmbeddedCluster, data: dict[str, str]
) -> None:
    assert helper.exists()
    keep(cluster, **data)

    with pytest.raises(InvalidInputError, match="neither token nor username and password"):
        CredentialSources(URL, cluster=cluster, environment={}).find()


def test_without_that_secret_git_is_asked(helper: Path, cluster: EmbeddedCluster) -> None:
    assert helper.exists()
    assert CredentialSources(URL, cluster=cluster, environment={}).find().credentials.user == "eve"


@pytest.fixture
def gone(tmp_path: Path) -> Iterator[KubeCluster]:
    """A cluster that does not answer."""
    with server(says(200, b"{}")) as url:
        pass
    path = tmp_path / "kubeconfig"
    entries = {"name": "x", "cluster": {"server": url}, "user": {}, "context": {"cluster": "x"}}
    path.write_text(
        json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [entries], "users": [entries],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        })
    )  # fmt: skip
    with KubeCluster.from_kubeconfig(path) as found:
        yield found


def test_a_cluster_that_does_not_answer_is_passed_over_unless_it_was_named(
    helper: Path, gone: KubeCluster
) -> None:
    sources = CredentialSources(URL, cluster=gone, environment={})

    assert sources.find().credentials.user == "eve"
    with pytest.raises(UnreachableError):
        sources.find("idpbuilder")
    helper.unlink()
    with pytest.raises(NotFoundError, match=r"idpbuilder \(its cluster does not answer\), git"):
        sources.find()
