"""
The gRPC server of a pack's stations, as a real Crossplane calls it.

It speaks ``FunctionRunnerService`` in v1 and v1beta1 (the messages are the same), with the
certificates that Crossplane mounts into a function: callers need a certificate of ``ca.crt``. A
request is passed to a station's process unchanged; only the step's input is read here. Every
failure after the connection is a fatal result with a readable message. There are no health service
and no metrics.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import crossplane.function.proto.v1.run_function_pb2 as fnv1
import grpc
from crossplane.function import runtime
from grpc_reflection.v1alpha import reflection

from ground.errors import InvalidInputError, NotFoundError, OrderkitError
from orderkit.adapters.functions.function_messages import (
    UnreadableRequestError,
    parsed,
    refusal,
    station_named,
)
from orderkit.adapters.processes.station_workers import CallLimits, StoppedError, Workers

CERTIFICATES = ("tls.crt", "tls.key", "ca.crt")
MESSAGE_MAX_BYTES = 4 << 20
"""The same limit as in Crossplane's own functions."""
_SERVICES = (
    "apiextensions.fn.proto.v1.FunctionRunnerService",
    "apiextensions.fn.proto.v1beta1.FunctionRunnerService",
)
_NO_STATION = "(none named)"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FunctionServerOptions:
    """Stations to serve, address, certificates and limits."""

    stations: Path
    address: str
    certificates: Path | None
    """Folder with tls.crt, tls.key and ca.crt; None: no TLS at all, for development."""
    limits: CallLimits = field(default_factory=CallLimits)
    message_max_bytes: int = MESSAGE_MAX_BYTES


def serve(options: FunctionServerOptions, *, ready: Callable[[int], None]) -> None:
    """
    Serve until SIGTERM or SIGINT; then finish the running requests and return.

    Args:
        ready: Called once with the port on which it listens.

    Raises:
        NotFoundError: A certificate file is missing.
        InvalidInputError: The address is not usable, or a certificate is invalid.
        OrderkitError: The stations cannot be imported.
    """
    asyncio.run(_serve(options, ready))


async def _serve(options: FunctionServerOptions, ready: Callable[[int], None]) -> None:
    workers = Workers(options.stations, options.limits)
    server = _server(options, workers)
    port = _listen(server, options)
    asked_to_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_stop.set)
    try:
        await workers.start()
        await server.start()
        ready(port)
        await asked_to_stop.wait()
    finally:
        await server.stop(grace=options.limits.answer_s)
        await workers.stop()


def _server(server_options: FunctionServerOptions, workers: Workers) -> grpc.aio.Server:
    options = [
        ("grpc.max_receive_message_length", server_options.message_max_bytes),
        ("grpc.max_send_message_length", server_options.message_max_bytes),
        ("grpc.so_reuseport", 0),
    ]
    server = grpc.aio.server(options=options)
    handler = grpc.unary_unary_rpc_method_handler(
        _answering(workers, server_options.message_max_bytes)
    )
    for service in _SERVICES:
        handlers = {"RunFunction": handler}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    reflection.enable_server_reflection((*_SERVICES, reflection.SERVICE_NAME), server)
    return server


def _answering(workers: Workers, max_bytes: int) -> Callable[[bytes, object], Awaitable[bytes]]:
    async def answer(data: bytes, _context: object) -> bytes:
        try:
            request = parsed(data)
        # no gRPC error: it explains nothing to the reader of the XR
        except UnreadableRequestError as error:
            return refusal(fnv1.RunFunctionRequest(), str(error))
        station = station_named(request) or _NO_STATION
        try:
            reply = await workers.run(station, data)
        except OrderkitError as error:
            level = logging.WARNING if isinstance(error, StoppedError) else logging.ERROR
            logger.log(level, "%s", error)
            return refusal(request, str(error))
        if len(reply) > max_bytes:
            limit = f"{max_bytes / (1 << 20):g} MiB"
            problem = f'station "{station}" answers with {len(reply)} bytes, more than {limit}'
            # without the desired state of the request, which may itself be what is too large
            return refusal(fnv1.RunFunctionRequest(meta=request.meta), problem)
        return reply

    return answer


def _listen(server: grpc.aio.Server, options: FunctionServerOptions) -> int:
    try:
        if options.certificates is None:
            port = server.add_insecure_port(options.address)
        else:
            # read once: Crossplane issues them for years
            port = server.add_secure_port(options.address, _credentials(options.certificates))
    except RuntimeError as error:
        raise InvalidInputError(
            "--address", options.address, "cannot be listened on", hint="HOST:PORT, a free one"
        ) from error
    return int(port)


def _credentials(folder: Path) -> grpc.ServerCredentials:
    for name in CERTIFICATES:
        if not (folder / name).is_file():
            raise NotFoundError(
                f"{folder / name} is missing",
                hint=f"--tls-certs-dir holds {', '.join(CERTIFICATES)}, as Crossplane mounts them",
            )
    certificate, key, root = (str(folder / name) for name in CERTIFICATES)
    try:
        ssl.create_default_context(cafile=root).load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise InvalidInputError(
            "--tls-certs-dir",
            str(folder),
            f"are no certificate and key in PEM format: {error}",
            hint="tls.crt and tls.key belong together, ca.crt is the root of the callers",
        ) from error
    return runtime.load_credentials(str(folder))
