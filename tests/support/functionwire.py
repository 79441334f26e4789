"""A client of the function server: certificates, a process, requests and answers over gRPC."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import crossplane.function.proto.v1.run_function_pb2 as fnv1
import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from google.protobuf import json_format
from lab.daemons import Daemon

from compositions.station import (
    Ready,
    Resource,
    Result,
    Selector,
    Severity,
    State,
    StationRequest,
    StationResponse,
)
from ground.objects.kube_objects import Condition, ConditionStatus
from ground.objects.values import copied

V1, V1BETA1 = "apiextensions.fn.proto.v1", "apiextensions.fn.proto.v1beta1"
START_S, CALL_S = 120.0, 120.0
_READY = {
    Ready.UNSPECIFIED: fnv1.READY_UNSPECIFIED,
    Ready.TRUE: fnv1.READY_TRUE,
    Ready.FALSE: fnv1.READY_FALSE,
}
_WORDS: dict[int, ConditionStatus] = {
    fnv1.STATUS_CONDITION_TRUE: "True",
    fnv1.STATUS_CONDITION_FALSE: "False",
    fnv1.STATUS_CONDITION_UNKNOWN: "Unknown",
}


class Authority:
    """Signs certificates, as Crossplane's root does for functions and for itself."""

    def __init__(self, name: str = "authority") -> None:
        self._name, self._key = name, ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._signed(
            name, self._key, x509.BasicConstraints(ca=True, path_length=None)
        )

    def mounted(self, folder: Path, name: str) -> Path:
        """Write tls.crt, tls.key and ca.crt into a folder, as Crossplane mounts them."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName(
            [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
        )
        folder.mkdir(parents=True)
        pem = serialization.Encoding.PEM
        (folder / "tls.crt").write_bytes(self._signed(name, key, names).public_bytes(pem))
        (folder / "ca.crt").write_bytes(self._certificate.public_bytes(pem))
        secret = key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (folder / "tls.key").write_bytes(secret)
        return folder

    def _signed(
        self, subject: str, key: ec.EllipticCurvePrivateKey, role: x509.ExtensionType
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self._name)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(role, critical=True)
            .sign(self._key, hashes.SHA256())
        )


class FunctionServer:
    """``orderkit stations`` as a process; its port is known once it says so."""

    def __init__(self, log: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "orderkit", "stations", "--address", "127.0.0.1:0"]
        self.daemon = Daemon("orderkit stations", [*command, *arguments], log=log)
        self.daemon.wait_until(lambda: bool(self._said()), timeout_s=START_S)

    def _said(self) -> str:
        found = re.search(r"127\.0\.0\.1:(\d+), (?:mutual|WITHOUT)", self.daemon.text())
        return found[1] if found else ""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._said()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.daemon.stop()


@dataclass(frozen=True)
class Client:
    """Calls a function; use as a context manager."""

    channel: grpc.Channel
    service: str = V1

    @classmethod
    def plain(cls, address: str, service: str = V1) -> Self:
        return cls(grpc.insecure_channel(address), service)

    @classmethod
    def trusted(cls, address: str, folder: Path, *, own: bool = True) -> Self:
        """Trust the folder's ca.crt, and show its certificate unless `own` is False."""
        ca, key, shown = ((folder / n).read_bytes() for n in ("ca.crt", "tls.key", "tls.crt"))
        made = grpc.ssl_channel_credentials(ca, key if own else None, shown if own else None)
        return cls(grpc.secure_channel(address, made))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.channel.close()

    def send(self, data: bytes, *, timeout_s: float = CALL_S) -> bytes:
        """Send bytes as they are; raises grpc.RpcError."""
        reply: bytes = self._call(data, timeout=timeout_s)
        return reply

    def begin(self, asked: fnv1.RunFunctionRequest) -> grpc.Future:
        """Send a request and do not wait for the answer."""
        found: grpc.Future = self._call.future(asked.SerializeToString(), timeout=CALL_S)
        return found

    @property
    def _call(self) -> grpc.UnaryUnaryMultiCallable:
        return self.channel.unary_unary(f"/{self.service}.FunctionRunnerService/RunFunction")

    def message(self, asked: fnv1.RunFunctionRequest) -> fnv1.RunFunctionResponse:
        return fnv1.RunFunctionResponse.FromString(self.send(asked.SerializeToString()))

    def ask(self, request: StationRequest) -> StationResponse:
        return response_of(self.message(request_message(request)))


def refused_with(error: grpc.RpcError) -> grpc.StatusCode:
    """Return the status of a call that failed."""
    code: grpc.StatusCode = error.code()
    return code


def request_message(request: StationRequest, *, tag: str = "") -> fnv1.RunFunctionRequest:
    """Write a request as Crossplane does."""
    message = fnv1.RunFunctionRequest()
    message.meta.tag = tag
    _write(message.observed, request.observed)
    _write(message.desired, request.desired)
    message.context.update(request.context)
    message.input.update(request.input)
    for name, items in request.required.items():
        message.required_resources[name].SetInParent()
        for item in items:
            message.required_resources[name].items.add().resource.update(item)
    return message


def _write(message: fnv1.State, state: State) -> None:
    _write_resource(message.composite, state.composite)
    for name, resource in state.resources.items():
        _write_resource(message.resources[name], resource)


def _write_resource(message: fnv1.Resource, resource: Resource) -> None:
    message.resource.update(resource.resource)
    message.ready = _READY[resource.ready]
    message.connection_details.update(resource.connection_details)


def response_of(message: fnv1.RunFunctionResponse) -> StationResponse:
    """Read an answer back into a station's words."""
    return StationResponse(
        desired=State(
            _resource(message.desired.composite),
            {name: _resource(found) for name, found in message.desired.resources.items()},
        ),
        context=_plain(message.context),
        results=[Result(Severity(r.severity), r.message, r.reason) for r in message.results],
        conditions=[
            Condition(c.type, _WORDS[c.status], c.reason, c.message) for c in message.conditions
        ],
        requirements={
            name: Selector(
                s.api_version,
                s.kind,
                s.match_name,
                dict(s.match_labels.labels),
                s.namespace if s.HasField("namespace") else None,
            )
            for name, s in message.requirements.resources.items()
        },
        ttl_s=message.meta.ttl.ToTimedelta().total_seconds(),
    )


def _resource(message: fnv1.Resource) -> Resource:
    return Resource(
        _plain(message.resource), Ready(message.ready), dict(message.connection_details)
    )


def _plain(struct: Any) -> dict[str, Any]:
    found: dict[str, Any] = copied(json_format.MessageToDict(struct))
    return found


def normal(response: StationResponse) -> StationResponse:
    """Return an answer given in process as the pipeline takes it: as if over a wire."""

    def resource(found: Resource) -> Resource:
        return Resource(copied(found.resource), Ready(found.ready), dict(found.connection_details))

    return StationResponse(
        desired=State(
            resource(response.desired.composite),
            {name: resource(found) for name, found in response.desired.resources.items()},
        ),
        context=copied(response.context),
        results=response.results,
        conditions=response.conditions,
        requirements=response.requirements,
        ttl_s=response.ttl_s,
    )


def piped(request: StationRequest) -> StationRequest:
    """
    Return a request as the pipeline hands it to a station in process: a copy, 5.0 as 5.

    With maps sorted, as they come from the wire: in process they keep their own order.
    """

    def state(found: State) -> State:
        resources = {name: resource(each) for name, each in found.resources.items()}
        return State(resource(found.composite), resources)

    def resource(found: Resource) -> Resource:
        return Resource(plain(found.resource), found.ready, dict(found.connection_details))

    def plain(value: Any) -> Any:
        return json.loads(json.dumps(copied(value), sort_keys=True))

    return StationRequest(
        observed=state(request.observed),
        desired=state(request.desired),
        context=plain(request.context),
        input=plain(request.input),
        required={name: tuple(map(plain, found)) for name, found in request.required.items()},
    )


def station_input(name: str, **more: Any) -> Mapping[str, Any]:
    """Return a step's input that names a station."""
    return {"apiVersion": "stations.orderkit.dev/v1alpha1", "kind": "Station", "name": name, **more}
