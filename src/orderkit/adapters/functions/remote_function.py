"""
A function that runs as a separate process, called over gRPC as Crossplane calls it.

`RemoteFunction` has the interface of a station, so a pipeline treats it like one in this process.
Every call has a time limit. A function that does not answer is *opaque*, and the reason names its
address; a function that answers with an error fails its step with Crossplane's message.

The connection is plain text, or TLS with certificates on both sides as in Crossplane. There are no
retries, and the function gets no schemas. Used by plans and ``kit test``.
"""

from __future__ import annotations

import threading
from pathlib import Path

import crossplane.function.proto.v1.run_function_pb2 as fnv1
import grpc

from compositions.function_processes import FunctionProcess
from compositions.station import OpaqueError, StationRequest, StationResponse
from ground.errors import NotFoundError, shorten
from orderkit.adapters.functions.outgoing_requests import old_names, request_message, response_of

CERTIFICATES = ("tls.crt", "tls.key", "ca.crt")
_METHOD = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction"
_MESSAGE_MAX_BYTES = 16 << 20
_SILENT = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.UNIMPLEMENTED,
}


class FunctionCallError(Exception):
    """The function answered with a gRPC error; the message is the one Crossplane shows."""


class SilenceError(OpaqueError):
    """Nothing answers, or not in time."""


class RemoteFunction:
    """A station in another process. Safe to call from several threads; close it after use."""

    def __init__(self, process: FunctionProcess) -> None:
        """
        Prepare; nothing is sent yet.

        Raises:
            NotFoundError: A certificate file is missing.
        """
        self._process = process
        self._lock = threading.Lock()
        self._old_names: frozenset[str] = frozenset()
        """Requirements that it asks for under the name of Crossplane 1."""
        self._channel = _channel(process)
        self._call = self._channel.unary_unary(
            _METHOD,
            request_serializer=fnv1.RunFunctionRequest.SerializeToString,
            response_deserializer=fnv1.RunFunctionResponse.FromString,
        )

    def __call__(self, request: StationRequest) -> StationResponse:
        """
        Call the function.

        Raises:
            OpaqueError: It does not answer in time, or needs data that a plan cannot provide.
            FunctionCallError: It answers with an error.
            ValueError, TypeError: Request or answer contain data that cannot be converted.
        """
        message = request_message(request, self._old_names)
        try:
            answer: fnv1.RunFunctionResponse = self._call(message, timeout=self._process.timeout_s)
        except grpc.RpcError as error:
            raise self._failed(error) from error
        self._old_names |= old_names(answer)
        return response_of(answer)

    def _failed(self, error: grpc.RpcError) -> Exception:
        code, details = error.code(), shorten(str(error.details()))
        if code in _SILENT:
            return SilenceError(
                f"the process at {self._process.address} does not answer within "
                f"{self._process.timeout_s:g} s ({code.name}: {details})"
            )
        words = "".join(word.capitalize() for word in code.name.split("_"))
        return FunctionCallError(f"rpc error: code = {words} desc = {details}")

    def close(self) -> None:
        """Close the connection. Calling it again does nothing."""
        with self._lock:
            self._channel.close()


def _channel(process: FunctionProcess) -> grpc.Channel:
    options = [
        ("grpc.max_receive_message_length", _MESSAGE_MAX_BYTES),
        ("grpc.max_send_message_length", _MESSAGE_MAX_BYTES),
        ("grpc.enable_http_proxy", 0),
    ]
    if process.certificates is None:
        return grpc.insecure_channel(process.address, options=options)
    certificate, key, root = (_read(Path(process.certificates) / name) for name in CERTIFICATES)
    credentials = grpc.ssl_channel_credentials(root, key, certificate)
    return grpc.secure_channel(process.address, credentials, options=options)


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise NotFoundError(
            f"{path} is missing", hint=f"the folder of certificates holds {', '.join(CERTIFICATES)}"
        )
    return path.read_bytes()
