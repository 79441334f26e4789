"""OCI registries on this machine: a small one of our own, and the real one of docker-registry."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import io
import json
import shutil
import socket
import ssl
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any

import requests

from orderkit_standins.loopback_certificate import Certificate

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
USER, PASSWORD = "puller", "open-sesame"
# of that password, by htpasswd -B
HTPASSWD = "puller:$2y$05$abcdefghijklmnopqrstuutXu9KzOt.1yBoZUeFWoT/914/JfszCO\n"


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def archive(files: Mapping[str, bytes], *, plain: bool = False) -> bytes:
    """Return a tar archive, gzipped unless it is to be plain."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue() if plain else gzip.compress(buffer.getvalue(), mtime=0)


@dataclass
class Pushed:
    """Pushes packages to a registry over its HTTP API."""

    url: str
    auth: tuple[str, str] | None = None

    @property
    def host(self) -> str:
        return self.url.partition("://")[2]

    def blob(self, path: str, data: bytes) -> str:
        begun = requests.post(f"{self.url}/v2/{path}/blobs/uploads/", auth=self.auth, timeout=20)
        assert begun.status_code == 202, begun.text
        where = begun.headers["Location"]
        where = where if where.startswith("http") else self.url + where
        done = requests.put(
            where + ("&" if "?" in where else "?") + f"digest={digest(data)}",
            data=data,
            headers={"Content-Type": "application/octet-stream"},
            auth=self.auth,
            timeout=20,
        )
        assert done.status_code == 201, done.text
        return digest(data)

    def manifest(self, path: str, tag: str, manifest: Mapping[str, Any]) -> str:
        body = json.dumps(manifest).encode()
        done = requests.put(
            f"{self.url}/v2/{path}/manifests/{tag or digest(body)}",
            data=body,
            headers={"Content-Type": manifest["mediaType"]},
            auth=self.auth,
            timeout=20,
        )
        assert done.status_code == 201, done.text
        return digest(body)

    def image(
        self,
        path: str,
        tag: str,
        *layers: bytes,
        marked: int = -1,
        labels: bool = False,
        program: Mapping[str, Any] = MappingProxyType({}),
    ) -> str:
        """Push an image; `marked` is the layer with the package, marked by annotation or label."""
        digests = [self.blob(path, layer) for layer in layers]
        config: dict[str, Any] = {"architecture": "amd64", "os": "linux", "config": {**program}}
        if labels:
            config["config"] = {"Labels": {f"io.crossplane.xpkg:{digests[marked]}": "base"}}
        config_data = json.dumps(config).encode()
        described = [
            {
                "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                "digest": layer_digest,
                "size": len(layer),
            }
            for layer, layer_digest in zip(layers, digests, strict=True)
        ]
        if marked >= 0 and not labels:
            described[marked]["annotations"] = {"io.crossplane.xpkg": "base"}
        return self.manifest(
            path,
            tag,
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": {
                    "mediaType": "application/vnd.oci.image.config.v1+json",
                    "digest": self.blob(path, config_data),
                    "size": len(config_data),
                },
                "layers": described,
            },
        )

    def index(self, path: str, tag: str, manifests: Mapping[str, str]) -> str:
        entries = [
            {
                "mediaType": MANIFEST,
                "digest": manifest_digest,
                "size": 1,
                "platform": {"os": "linux", "architecture": architecture},
            }
            for architecture, manifest_digest in manifests.items()
        ]
        body = {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}
        return self.manifest(path, tag, body)


@dataclass
class OwnRegistry:
    """What the small registry holds, whom it asks for a token, and what it spoils."""

    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    login: str = ""
    """'': anybody; basic: a user; anonymous: a token for anybody; token: a token for a user."""
    spoil: Callable[[str, bytes], bytes] = lambda _path, data: data
    redirect: str = ""
    """Where blobs are, instead of here."""
    realm: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Path and Authorization of each GET."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    registry: OwnRegistry

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _refused(self) -> bool:
        registry, sent = self.registry, self.headers.get("Authorization", "")
        pair = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if registry.login == "basic" and sent != f"Basic {pair}":
            self._answer(401, WWW_Authenticate='Basic realm="here"')
        elif registry.login in ("anonymous", "token") and sent != "Bearer granted":
            realm = registry.realm or f"http://{self.headers['Host']}/token"
            challenge = f'Bearer realm="{realm}",service="here",scope="repository:other:*"'
            self._answer(401, WWW_Authenticate=challenge)
        else:
            return False
        return True

    def _token(self) -> None:
        pair = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.registry.login == "token" and self.headers.get("Authorization") != f"Basic {pair}":
            self._answer(401)
        else:
            self._answer(200, b'{"token": "granted"}')

    def do_GET(self) -> None:
        registry = self.registry
        registry.requests.append((self.path, self.headers.get("Authorization", "")))
        if self.path.startswith("/token"):
            self._token()
        elif self._refused():
            pass
        elif "/blobs/" in self.path:
            data = registry.blobs.get(self.path.rpartition("/")[2])
            if registry.redirect:
                self._answer(307, Location=registry.redirect + self.path)
            elif data is None:
                self._answer(404)
            else:
                self._answer(200, registry.spoil(self.path, data))
        else:
            kind, data = registry.manifests.get(self.path, ("", b""))
            if not kind:
                self._answer(404, b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}')
            else:
                spoilt = registry.spoil(self.path, data)
                promised = {"Docker_Content_Digest": digest(data)}
                self._answer(200, spoilt, Content_Type=kind, **promised)

    def do_POST(self) -> None:
        body = self._body()
        if self.path.startswith("/token"):
            self.registry.requests.append((self.path, body.decode()))
            is_user = "refresh_token=identity-of-puller" in body.decode()
            self._answer(200 if is_user else 401, b'{"access_token": "granted"}')
            return
        self._answer(202, Location=f"{self.path}one")

    def do_PUT(self) -> None:
        data = self._body()
        if "/blobs/" in self.path:
            self.registry.blobs[self.path.rpartition("digest=")[2]] = data
        else:
            kind, base = self.headers["Content-Type"], self.path.rpartition("/")[0]
            self.registry.manifests[self.path] = kind, data
            self.registry.manifests[f"{base}/{digest(data)}"] = kind, data
        self._answer(201)


@contextlib.contextmanager
def own_registry(
    registry: OwnRegistry | None = None, certificate: Certificate | None = None
) -> Iterator[tuple[OwnRegistry, Pushed]]:
    """Run a small registry, with TLS if it has a certificate."""
    registry = registry or OwnRegistry()
    handler = type("Handler", (_Handler,), {"registry": registry})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.server, certificate.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "https" if certificate else "http"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield registry, Pushed(f"{scheme}://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()


def real_registry_program() -> str | None:
    return shutil.which("docker-registry")


@contextlib.contextmanager
def real_registry(program: str, folder: Path, *, login: bool = False) -> Iterator[Pushed]:
    """Run docker-registry on a port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings: dict[str, Any] = {
        "version": "0.1",
        "log": {"level": "error"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "stored")}},
        "http": {"addr": f"127.0.0.1:{port}", "secret": "none"},
    }
    if login:
        (folder / "htpasswd").write_text(HTPASSWD)
        settings["auth"] = {"htpasswd": {"realm": "here", "path": str(folder / "htpasswd")}}
    (folder / "registry.yml").write_text(json.dumps(settings))
    with (folder / "registry.log").open("wb") as log:
        process = subprocess.Popen(
            [program, "serve", str(folder / "registry.yml")], stdout=log, stderr=log
        )
    pushed = Pushed(f"http://127.0.0.1:{port}", (USER, PASSWORD) if login else None)
    try:
        _wait(pushed, process, folder)
        yield pushed
    finally:
        process.terminate()
        process.wait(20)


def _wait(pushed: Pushed, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(requests.ConnectionError):
            requests.get(f"{pushed.url}/v2/", timeout=5)
            return
        time.sleep(0.05)
    raise AssertionError((folder / "registry.log").read_text())
