"""The function server's TLS: callers show a certificate of Crossplane's root, or hear nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from functionwire import Authority, Client, FunctionServer, refused_with, station_input

from compositions.station import Resource, State, StationRequest

XR = {
    "apiVersion": "blog.opsbogus.dev/v1alpha1",
    "kind": "XGarage",
    "metadata": {"name": "garage-ae86"},
    "spec": {"teamName": "ae86", "stage": "stage2"},
}
ASKED = StationRequest(State(Resource(XR)), input=dict(station_input("garage")))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    ours = Authority()
    ours.mounted(folder / "server", "function-orderkit")
    ours.mounted(folder / "crossplane", "crossplane")
    Authority("stranger").mounted(folder / "stranger", "crossplane")
    (folder / "stranger/ca.crt").write_bytes((folder / "crossplane/ca.crt").read_bytes())
    return folder


@pytest.fixture(scope="module")
def server(
    certificates: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FunctionServer]:
    log = tmp_path_factory.mktemp("secured") / "log"
    with FunctionServer(log, "--tls-certs-dir", str(certificates / "server")) as server:
        yield server


def test_crossplane_is_answered(server: FunctionServer, certificates: Path) -> None:
    with Client.trusted(server.address, certificates / "crossplane") as client:
        assert list(client.ask(ASKED).desired.resources) == ["namespace"]


@pytest.mark.parametrize("who", ["nobody", "stranger", "plain"])
def test_others_are_not(server: FunctionServer, certificates: Path, who: str) -> None:
    if who == "plain":
        client = Client.plain(server.address)
    elif who == "nobody":
        client = Client.trusted(server.address, certificates / "crossplane", own=False)
    else:
        client = Client.trusted(server.address, certificates / "stranger")
    with client, pytest.raises(grpc.RpcError) as refused:
        client.ask(ASKED)
    assert refused_with(refused.value) is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ((), 2, "no certificates, so any caller would be accepted"),
        (("--tls-certs-dir", "{empty}"), 1, "tls.crt is missing"),
        (("--tls-certs-dir", "{broken}"), 2, "are no certificate and key in PEM format"),
        (("--insecure", "--address", "no-port"), 2, "--address: 'no-port' cannot be listened on"),
        (("--insecure", "--pack", "{empty}"), 1, "stations is not a folder"),
        (("--insecure", "--pack", "x", "--stations", "y"), 2, "give one of them"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_it_says_why_it_does_not_start(
    tmp_path: Path, arguments: tuple[str, ...], code: int, text: str
) -> None:
    empty, broken = tmp_path / "empty", tmp_path / "broken"
    empty.mkdir()
    broken.mkdir()
    for name in ("tls.crt", "tls.key", "ca.crt"):
        (broken / name).write_text("no certificate")
    given = [each.format(empty=empty, broken=broken) for each in arguments]
    address = () if "--address" in given else ("--address", "127.0.0.1:0")
    done = subprocess.run(
        [sys.executable, "-m", "orderkit", "stations", *given, *address],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == code, done.stderr
    assert text in done.stderr
    assert "Traceback" not in done.stderr
