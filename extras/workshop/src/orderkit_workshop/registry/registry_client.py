"""
HTTP to one OCI registry: manifests and blobs of one repository, proved by their digests.

Follows the OCI distribution specification, and Docker's token flow for credentials: a 401 names a
service that gives out a token, to anybody or to a user. We ask for the right to pull from our
repository, whatever the registry proposes. A blob may be a redirect to a store; credentials stay
behind. Every answer has a limit.

Credentials come from Docker's configuration file (`credentials_for`). ``docker login`` and
compatible tools write them: into the file itself, or into a credential helper that it names (the
protocol of docker-credential-helpers).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests

from ground.errors import (
    AccessError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    RemoteError,
    UnreachableError,
    shorten,
)
from ground.objects.kube_objects import dig
from ground.secrets import redact, register
from orderkit.adapters.http import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, is_loopback, read_capped

_HELPER = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_HELPER_S = 20
_FILE_MAX_BYTES = 1_000_000
_TOKEN_USER = "<token>"  # noqa: S105 - how helpers mark an identity token
_NONE_STORED = "credentials not found"
"""What a helper prints if it has none for a registry."""


@dataclass(frozen=True, slots=True)
class RegistryCredentials:
    """A name with its password, or a token that buys others. Never printed."""

    user: str = ""
    password: str = ""
    identity_token: str = ""

    def __repr__(self) -> str:
        return f"RegistryCredentials(user={self.user!r})"


def docker_config_file() -> Path:
    """Return where Docker keeps its configuration for this user."""
    folder = os.environ.get("DOCKER_CONFIG")
    return (Path(folder) if folder else Path.home() / ".docker") / "config.json"


def credentials_for(registry: str, config_file: Path) -> RegistryCredentials | None:
    """
    Return the credentials for a registry's host; None if there are none.

    Raises:
        InvalidInputError: The file cannot be read.
        OrderkitError: The credential helper that it names fails.
    """
    config = _config(config_file)
    helper = dig(config, "credHelpers", registry) or config.get("credsStore")
    for key in (registry, f"https://{registry}", f"https://{registry}/v1/"):
        entry = dig(config, "auths", key)
        if isinstance(entry, dict) and (entry.get("auth") or entry.get("identitytoken")):
            return _stored(entry, config_file)
    return _helped(str(helper), registry) if helper else None


def _config(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > _FILE_MAX_BYTES:
            raise InvalidInputError(str(file), None, f"has more than {_FILE_MAX_BYTES} bytes")
        config = json.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInputError(str(file), None, f"cannot be read: {error}") from error
    return config if isinstance(config, dict) else {}


def _stored(entry: dict[str, Any], file: Path) -> RegistryCredentials:
    try:
        pair = base64.b64decode(str(entry.get("auth", "")), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise InvalidInputError(str(file), None, "has credentials that are not base64") from error
    user, _, password = pair.partition(":")
    return _registered(user, password.rstrip("\0"), str(entry.get("identitytoken", "")))


def _registered(user: str, password: str, identity_token: str) -> RegistryCredentials:
    register(password)
    register(identity_token)
    return RegistryCredentials(user, password, identity_token)


def _helped(helper: str, registry: str) -> RegistryCredentials | None:
    """Ask a credential helper, which prints a user and a secret as JSON."""
    # it becomes the name of a program
    if not _HELPER.match(helper):
        raise InvalidInputError("credential helper", helper, "is not the name of a helper")
    program = f"docker-credential-{helper}"
    try:
        process = subprocess.run(  # noqa: S603 - the user's own configuration names it
            [program, "get"],
            input=registry.encode(),
            capture_output=True,
            check=False,
            timeout=_HELPER_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise OrderkitError(f"{program} cannot be run: {error}", hint="docker login") from error
    if process.returncode:
        # helpers print their errors to standard output
        reason = process.stdout.decode(errors="replace") or process.stderr.decode(errors="replace")
        if _NONE_STORED in reason:
            return None
        raise OrderkitError(f"{program} failed: {shorten(redact(reason))}", hint="docker login")
    try:
        answer = json.loads(process.stdout)
        user, secret = str(answer["Username"]), str(answer["Secret"])
    except (ValueError, KeyError, TypeError) as error:
        raise OrderkitError(f"{program} printed no credentials", hint="docker login") from error
    is_token = user == _TOKEN_USER
    return _registered("" if is_token else user, "" if is_token else secret, secret * is_token)


MANIFEST_MAX_BYTES = 4_000_000
"""Each registry takes a manifest of this size (OCI's distribution specification)."""
_TOKEN_MAX_BYTES = 1_000_000
_REDIRECTS_MAX = 5
_OK, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _TOO_MANY = 200, 401, 403, 404, 429
_REDIRECTS = (301, 302, 303, 307, 308)
_CHALLENGE_FIELD = re.compile(r'(\w+)="([^"]*)"')
_TYPES = ", ".join(
    f"application/vnd.{name}+json"
    for name in (
        "oci.image.index.v1",
        "docker.distribution.manifest.list.v2",
        "oci.image.manifest.v1",
        "docker.distribution.manifest.v2",
    )
)
_LOG_IN = "log in with 'docker login {}', or ask for the right to pull"


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class RegistryClient:
    """One repository of one registry. Not safe to use from several threads."""

    def __init__(
        self, registry: str, path: str, *, config_file: Path, ca_file: Path | None = None
    ) -> None:
        """
        Prepare; nothing is sent.

        Args:
            registry: Host, perhaps with port and scheme. Without a scheme: https, and http on this
                machine.

        Raises:
            RefusedError: Plain HTTP to another machine.
            InvalidInputError: `ca_file` is not a file.
        """
        if ca_file is not None and not ca_file.is_file():
            raise InvalidInputError(
                "--ca-file",
                str(ca_file),
                "is not a file",
                hint="--ca-file FILE, the certificate in PEM",
            )
        self._base = _base_url(registry)
        self._host = urlsplit(self._base).netloc
        self._path, self._config_file = path, config_file
        self._verify: str | bool = str(ca_file) if ca_file else True
        self._authorization = ""

    def manifest(self, reference: str) -> tuple[str, dict[str, Any]]:
        """
        Return digest and content of a manifest.

        Args:
            reference: A tag or a digest.

        Raises:
            NotFoundError, AccessError, RefusedError, RemoteError: As `Packages.fetch`.
        """
        answer = self._get(f"manifests/{reference}", MANIFEST_MAX_BYTES, accept=_TYPES)
        digest = _digest(answer.body)
        promised = (
            reference if ":" in reference else answer.headers.get("docker-content-digest", digest)
        )
        self._prove(f"manifest {reference}", digest, promised)
        try:
            manifest = json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise RemoteError(f"{self._host}: manifest {reference} is not JSON") from error
        if not isinstance(manifest, dict):
            raise RemoteError(f"{self._host}: manifest {reference} is not an object")
        return digest, manifest

    def blob(self, digest: str, limit_bytes: int) -> bytes:
        """
        Return a blob.

        Raises:
            NotFoundError, AccessError, RefusedError, RemoteError: As `Packages.fetch`.
        """
        answer = self._get(f"blobs/{digest}", limit_bytes, accept="*/*")
        self._prove(f"blob {digest}", _digest(answer.body), digest)
        return answer.body

    def _prove(self, subject: str, digest: str, promised: str) -> None:
        if digest != promised:
            raise RefusedError(
                f"{self._host}/{self._path}: {subject} has the digest {digest}, not {promised}",
                hint="the registry, or something on the way to it, changes what it stores",
            )

    def _get(self, resource_path: str, limit_bytes: int, *, accept: str) -> _Answer:
        url = f"{self._base}/v2/{self._path}/{resource_path}"
        answer = self._send(url, limit_bytes, accept)
        if answer.status == _UNAUTHORIZED:
            self._authorization = self._new_authorization(
                answer.headers.get("www-authenticate", "")
            )
            answer = self._send(url, limit_bytes, accept)
        self._judge(answer, resource_path)
        return answer

    def _judge(self, answer: _Answer, resource_path: str) -> None:
        repository = f"{self._host}/{self._path}"
        if answer.status in (_UNAUTHORIZED, _FORBIDDEN):
            hint = _LOG_IN.format(self._host)
            raise AccessError(f"{repository}: the registry denies the pull", hint=hint)
        if answer.status == _NOT_FOUND:
            raise NotFoundError(
                f"{repository} has no {resource_path.replace('/', ' ')}",
                hint="compare path and version with the registry's page of the package",
            )
        if answer.status == _TOO_MANY:
            raise RemoteError(
                f"{repository}: the registry limits our requests", hint="try again later"
            )
        if answer.status != _OK:
            text = shorten(redact(answer.body[:1000].decode(errors="replace")))
            raise RemoteError(f"{repository}: {resource_path} answered {answer.status}: {text}")

    def _send(self, url: str, limit_bytes: int, accept: str) -> _Answer:
        for _ in range(_REDIRECTS_MAX + 1):
            # identity: what we prove is what is stored
            headers = {"Accept": accept, "Accept-Encoding": "identity"}
            if self._authorization and urlsplit(url).netloc == self._host:
                headers["Authorization"] = self._authorization
            answer = self._send_once(url, limit_bytes, headers)
            if answer.status not in _REDIRECTS:
                return answer
            url = self._checked(urljoin(url, answer.headers.get("location", "")), "redirect")
        raise RemoteError(f"{self._host} redirects more than {_REDIRECTS_MAX} times")

    def _send_once(
        self,
        url: str,
        limit_bytes: int,
        headers: Mapping[str, str],
        *,
        form: Mapping[str, str] | None = None,
    ) -> _Answer:
        host = urlsplit(url).netloc
        with requests.Session() as session:
            session.trust_env = False  # a netrc would replace our credentials
            try:
                with session.request(
                    "GET" if form is None else "POST",
                    url,
                    headers=dict(headers),
                    data=form,
                    timeout=(CONNECT_TIMEOUT_S, READ_TIMEOUT_S),
                    # redirects are followed by hand: credentials stay behind
                    allow_redirects=False,
                    stream=True,
                    verify=self._verify,
                ) as response:
                    body = read_capped(response, limit_bytes)
                    names = {name.lower(): value for name, value in response.headers.items()}
                    return _Answer(response.status_code, names, body)
            except requests.exceptions.SSLError as error:
                raise UnreachableError(
                    f"no trusted TLS connection to {host}: its certificate is not of a trusted CA,"
                    " or for another host",
                    hint="--ca-file names the certificate of a private CA",
                ) from error
            except (requests.exceptions.RequestException, OSError) as error:
                raise UnreachableError(
                    f"no registry answers at {host}", hint="repeat the command"
                ) from error

    def _checked(self, url: str, label: str) -> str:
        """Return an address that the registry named, if it is as safe as its own."""
        parts = urlsplit(url)
        is_plain_here = parts.scheme == "http" and is_loopback(self._hostname)
        safe = parts.scheme == "https" or (is_plain_here and is_loopback(parts.hostname or ""))
        if not safe or not parts.hostname or parts.username or parts.password:
            raise RefusedError(f"{self._host} names a {label} that is not https: {parts.hostname}")
        return url

    @property
    def _hostname(self) -> str:
        return urlsplit(self._base).hostname or ""

    def _new_authorization(self, challenge: str) -> str:
        """Return what the registry's challenge asks for."""
        scheme, _, parameters = challenge.partition(" ")
        credentials = credentials_for(self._host, self._config_file)
        if scheme.lower() == "basic":
            if credentials is None or not credentials.password:
                hint = _LOG_IN.format(self._host)
                raise AccessError(f"{self._host} wants a user and a password", hint=hint)
            return _basic(credentials)
        fields = dict(_CHALLENGE_FIELD.findall(parameters))
        if scheme.lower() != "bearer" or "realm" not in fields:
            raise RemoteError(f"{self._host}: unknown way to log in: {shorten(challenge)}")
        return f"Bearer {self._token(fields, credentials)}"

    def _token(self, fields: Mapping[str, str], credentials: RegistryCredentials | None) -> str:
        realm = self._checked(fields["realm"], "token service")
        # whatever scope the registry proposes: only to pull from our repository
        query = {"service": fields.get("service", ""), "scope": f"repository:{self._path}:pull"}
        headers = {"Accept": "application/json"}
        form = None
        if credentials is not None and credentials.identity_token:
            form = {
                **query,
                "grant_type": "refresh_token",
                "client_id": "orderkit",
                "refresh_token": credentials.identity_token,
            }
        elif credentials is not None:
            headers["Authorization"] = _basic(credentials)
        url = realm if form else requests.Request("GET", realm, params=query).prepare().url
        answer = self._send_once(url or realm, _TOKEN_MAX_BYTES, headers, form=form)
        if answer.status in (_UNAUTHORIZED, _FORBIDDEN):
            hint = _LOG_IN.format(self._host)
            raise AccessError(f"{self._host}: its token service refuses us", hint=hint)
        try:
            document = json.loads(answer.body)
            token = str(document.get("token") or document["access_token"])
        except (ValueError, KeyError, AttributeError, RecursionError) as error:
            raise RemoteError(
                f"{self._host}: its token service answered {answer.status} without a token"
            ) from error
        # it goes into a header
        if not token.isprintable() or " " in token:
            raise RemoteError(
                f"{self._host}: its token service answered a text that is not a token"
            )
        register(token)
        return token


def _base_url(registry: str) -> str:
    scheme, separator, host = registry.rpartition("://")
    hostname = urlsplit(f"//{host}").hostname or ""
    if not separator:
        scheme = "http" if is_loopback(hostname) else "https"
    if scheme == "http" and not is_loopback(hostname):
        raise RefusedError(
            f"{host}: a registry over plain HTTP",
            hint="use https; --ca-file names the certificate of a private CA",
        )
    if scheme not in ("http", "https") or not hostname or "/" in host or "@" in host:
        raise InvalidInputError(
            "--registry",
            redact(registry),
            "is not the host of a registry",
            hint="--registry xpkg.example.com",
        )
    return f"{scheme}://{host}"


def _basic(credentials: RegistryCredentials) -> str:
    pair = f"{credentials.user}:{credentials.password}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
