"""
A function that runs as a separate process, called over gRPC as Crossplane calls it.

`RemoteFunction` has the interface of a station, so a pipeline treats it like one in this process.
Every call has a time limit. A function that does not answer is *opaque*, and the reason names its
address; a function that answers with an error fails its step with Crossplane's message.

The connection is plain text, or TLS with certificates on both sides as in Crossplane. There are no
retries.

Requests are as Crossplane writes them (`request_message`): the tag is a hash of the request, and
the capabilities are listed. Schemas are not among them, because a plan cannot provide them. A
function that requests something unsupported is opaque; the error names what it asked for.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Mapping
from pathlib import Path

import crossplane.function.proto.v1.run_function_pb2 as fnv1
import grpc

from compositions.function_processes import FunctionProcess
from compositions.station import (
    OpaqueError,
    Result,
    Selector,
    Severity,
    StationRequest,
    StationResponse,
)
from ground.errors import NotFoundError, shorten
from ground.objects.kube_objects import Condition, ConditionStatus
from ground.objects.values import copied
from orderkit.adapters.functions.function_messages import read_state, read_struct, write_state

_CAPABILITIES = (
    fnv1.CAPABILITY_CAPABILITIES,
    fnv1.CAPABILITY_REQUIRED_RESOURCES,
    fnv1.CAPABILITY_CONDITIONS,
)
_STATUSES: Mapping[int, ConditionStatus] = {
    fnv1.STATUS_CONDITION_TRUE: "True",
    fnv1.STATUS_CONDITION_FALSE: "False",
}


def request_message(
    request: StationRequest, named_old: Collection[str] = ()
) -> fnv1.RunFunctionRequest:
    """
    Write a request.

    Args:
        named_old: Requirements that the function asks for as ``extra_resources`` (`old_names`):
            Crossplane answers there, too.

    Raises:
        ValueError, TypeError: It contains data that cannot be sent.
    """
    message = fnv1.RunFunctionRequest()
    write_state(message.observed, request.observed)
    write_state(message.desired, request.desired)
    message.context.update(copied(request.context, "context"))
    if request.input:
        message.input.update(copied(request.input, "input"))
    for name, manifests in request.required.items():
        items = message.required_resources[name].items
        for manifest in manifests:
            items.add().resource.update(copied(manifest, f"required.{name}"))
        if name in named_old:
            message.extra_resources[name].CopyFrom(message.required_resources[name])
    for name, data in request.credentials.items():
        message.credentials[name].credential_data.data.update(data)
    tag = hashlib.sha256(message.SerializeToString(deterministic=True)).hexdigest()
    message.meta.tag = tag
    message.meta.capabilities.extend(_CAPABILITIES)
    return message


def response_of(message: fnv1.RunFunctionResponse) -> StationResponse:
    """
    Read an answer.

    Raises:
        UnreadableRequestError: It contains data that no Kubernetes object can hold.
        OpaqueError: It requests something that is not supported here.
    """
    requirements = message.requirements
    # functions that also serve Crossplane 1 state them twice (function-go-templating 0.12.2)
    new, old = dict(requirements.resources), dict(requirements.extra_resources)
    for name in old.keys() & new.keys():
        if old[name] != new[name]:
            raise OpaqueError(f"asks for different objects as extra and as required {name}")
    if requirements.schemas:
        raise OpaqueError("asks for schemas")
    return StationResponse(
        desired=read_state(message.desired, "desired"),
        context=read_struct(message.context, "context"),
        results=[_result(result) for result in message.results],
        conditions=[_condition(condition) for condition in message.conditions],
        requirements={
            name: _selector(requirement) for name, requirement in sorted({**old, **new}.items())
        },
        ttl_s=message.meta.ttl.ToTimedelta().total_seconds(),
    )


def old_names(message: fnv1.RunFunctionResponse) -> frozenset[str]:
    """Return the requirements that an answer states under the name of Crossplane 1."""
    return frozenset(message.requirements.extra_resources)


def _result(message: fnv1.Result) -> Result:
    is_known = message.severity in {severity_kind.value for severity_kind in Severity}
    severity = Severity(message.severity) if is_known else Severity.UNSPECIFIED
    return Result(severity, message.message, message.reason)


def _condition(message: fnv1.Condition) -> Condition:
    status = _STATUSES.get(message.status, "Unknown")
    return Condition(message.type, status, message.reason, message.message)


def _selector(message: fnv1.ResourceSelector) -> Selector:
    return Selector(
        message.api_version,
        message.kind,
        message.match_name,
        dict(message.match_labels.labels),
        message.namespace if message.HasField("namespace") else None,
    )


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
