"""A function that runs as a process: the same answers, a time limit, errors that name it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from functionwire import Authority, FunctionServer, normal, piped
from recordedrequests import recorded

from compositions.function_processes import FunctionProcess
from compositions.station import OpaqueError, Resource, State, StationRequest, station_runner
from ground.errors import NotFoundError
from orderkit.adapters.folders.pack_folder import reference_pack
from orderkit.adapters.folders.station_process import load_stations
from orderkit.adapters.functions.remote_function import RemoteFunction

PATIENT_S = 100.0
EMPTY = StationRequest(State(Resource({"apiVersion": "example.org/v1", "kind": "X"})))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FunctionServer]:
    folder = tmp_path_factory.mktemp("remote")
    certificates = Authority().mounted(folder / "certificates", "function-orderkit")
    arguments = ("--pack", str(reference_pack()), "--tls-certs-dir", str(certificates))
    with FunctionServer(folder / "log", *arguments, "--timeout", str(PATIENT_S)) as found:
        yield found


@pytest.fixture
def certificates(server: FunctionServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert server.address
    return next(tmp_path_factory.getbasetemp().glob("remote*/certificates"))


def test_a_process_answers_as_the_function_in_this_one(
    server: FunctionServer, certificates: Path
) -> None:
    run = station_runner(load_stations(reference_pack()))
    process = FunctionProcess("function-orderkit", server.address, certificates, PATIENT_S)
    remote = RemoteFunction(process)
    try:
        for request in recorded(reference_pack()):
            assert normal(remote(request)) == normal(run(piped(request)))
    finally:
        remote.close()
        remote.close()


def test_a_caller_without_certificate_gets_no_answer(server: FunctionServer) -> None:
    remote = RemoteFunction(FunctionProcess("function-orderkit", server.address, timeout_s=10))
    with pytest.raises(OpaqueError, match=f"the process at {server.address} does not answer"):
        remote(EMPTY)
    remote.close()


def test_a_process_that_accepts_and_says_nothing_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        remote = RemoteFunction(FunctionProcess("function-x", address, timeout_s=0.3))
        with pytest.raises(OpaqueError, match=r"does not answer within 0\.3 s"):
            remote(EMPTY)
        remote.close()


def test_missing_certificates_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"tls\.crt is missing"):
        RemoteFunction(FunctionProcess("function-x", "127.0.0.1:1", tmp_path))
