"""A running ``orderkit serve`` uses changed settings and secrets without a restart."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from platformsettings import settings_with
from servedprocess import ServedProcess, served_process
from starlette.types import Receive, Scope, Send

from ground.errors import InvalidInputError
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.core.platform.settings import PlatformSettings
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.loopback_certificate import ensure_certificate
from orderkit_standins.platform import Ports
from orderkit_standins.serve_platform import EmbeddedRunRequest, Running, running

DEADLINE_S = 90.0


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    state = tmp_path_factory.mktemp("rotation") / "state"
    request = EmbeddedRunRequest(state, reference_pack(), Ports(0, 0, 0, 0), ("ae86",))
    with running(request, on_step=lambda *_: None) as found:
        yield found


@pytest.fixture
def settings(platform: Running, tmp_path: Path) -> PlatformSettings:
    """The platform's settings with secrets of their own, mounted as a kubelet does."""
    forge_token = Path(str(platform.settings.forge.token_file)).read_bytes()
    mount(tmp_path, {"service-secret": b"first-secret-0123456789", "forge-token": forge_token})
    return settings_with(
        platform.settings,
        service__token_file=tmp_path / "service-secret",
        forge__token_file=tmp_path / "forge-token",
    )


def mount(folder: Path, files: dict[str, bytes]) -> None:
    """Write files as a kubelet updates a volume: all at once, by a link that is replaced."""
    version = folder / f"..{time.monotonic_ns()}"
    version.mkdir()
    for name, data in files.items():
        (version / name).write_bytes(data)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path("..data") / name)
    link = folder / "..data_tmp"
    link.symlink_to(version.name)
    link.replace(folder / "..data")


@pytest.fixture
def service(settings: PlatformSettings, tmp_path: Path) -> Iterator[ServedProcess]:
    (tmp_path / "platform.yaml").write_text(settings.to_yaml())
    with served_process(tmp_path / "platform.yaml", tmp_path) as found:
        found.wait_until_ready()
        yield found


def await_that(holds: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.1)


def status(service: ServedProcess, secret: str) -> int:
    return service.ask("GET", "/v1/orders", secret).status_code


def test_a_secret_that_is_replaced_counts_and_no_request_fails(
    service: ServedProcess, tmp_path: Path
) -> None:
    first, second = "first-secret-0123456789", "second-secret-987654321"
    failed: list[int] = []
    done = threading.Event()

    def ask_all_the_time() -> None:
        while not done.is_set():
            code = service.ask("GET", "/healthz").status_code
            failed.extend([code] if code != 200 else [])

    asking = threading.Thread(target=ask_all_the_time)
    asking.start()
    token = (tmp_path / "forge-token").read_bytes()
    assert (status(service, first), status(service, second)) == (200, 401)

    mount(tmp_path, {"service-secret": second.encode(), "forge-token": token})
    await_that(lambda: status(service, second) == 200, "the new secret counts")

    done.set()
    asking.join()
    assert status(service, first) == 401
    assert failed == []
    assert service.process.poll() is None
    for secret in (first, second):
        assert secret not in service.log.read_text()


def test_settings_that_are_broken_change_nothing_until_they_are_whole(
    service: ServedProcess, settings: PlatformSettings, tmp_path: Path
) -> None:
    file, secret = tmp_path / "platform.yaml", "first-secret-0123456789"
    file.write_text("spec: {forge: []}\n")

    await_that(lambda: "are not used" in service.log.read_text(), "the log says why")
    assert status(service, secret) == 200

    teams = settings_with(settings, service__public_url="https://new.example.org")
    file.write_text(teams.to_yaml())
    await_that(
        lambda: "the new ones count" in service.log.read_text(), "whole settings count again"
    )
    assert status(service, secret) == 200


def test_a_token_of_the_forge_that_is_replaced_is_used(
    service: ServedProcess, tmp_path: Path
) -> None:
    good = (tmp_path / "forge-token").read_bytes()
    secret = b"first-secret-0123456789"
    mount(tmp_path, {"service-secret": secret, "forge-token": b"0" * 40})

    def forge_check() -> tuple[int, str]:
        answer = service.ask("GET", "/readyz")
        return answer.status_code, answer.json()["checks"]["forge"]

    await_that(lambda: forge_check() == (503, "access"), "a bad token is seen")

    mount(tmp_path, {"service-secret": secret, "forge-token": good})
    await_that(lambda: service.ask("GET", "/readyz").status_code == 200, "a good one is used")
    assert status(service, secret.decode()) == 200


def test_a_process_ends_soon_after_a_renewal(settings: PlatformSettings, tmp_path: Path) -> None:
    (tmp_path / "platform.yaml").write_text(settings.to_yaml())
    token = (tmp_path / "forge-token").read_bytes()
    with served_process(tmp_path / "platform.yaml", tmp_path) as service:
        mount(tmp_path, {"service-secret": b"third-secret-0123456789", "forge-token": token})
        await_that(lambda: status(service, "third-secret-0123456789") == 200, "it counts")
    assert service.process.returncode == 0


async def hello(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Answer nothing: only the handshake counts here."""


def test_a_certificate_that_is_replaced_is_shown_to_new_connections(tmp_path: Path) -> None:
    folders = tmp_path / "first", tmp_path / "second"
    for folder in folders:
        folder.mkdir()
    first, second = map(ensure_certificate, folders)
    server = HttpServer(hello, bind("service", 0), first)
    server.start()
    try:
        shown = ssl.get_server_certificate(("127.0.0.1", server.port))
        first.server.write_bytes(second.server.read_bytes())
        with pytest.raises(InvalidInputError, match="does not fit its --key"):
            server.reread_certificate()
        assert ssl.get_server_certificate(("127.0.0.1", server.port)) == shown
        first.key.write_bytes(second.key.read_bytes())
        server.reread_certificate()
        assert ssl.get_server_certificate(("127.0.0.1", server.port)) != shown
    finally:
        server.stop()
