"""
Convert Crossplane's messages (apiextensions.fn.proto.v1) to the types of a station, and back.

Converted are state, context, input, required resources, conditions, results and time to live. Whole
numbers become integers, as in ``compositions.pipeline`` for a station in process. Data that a
Kubernetes object cannot hold is refused in both directions. Credentials, schemas and
``extra_resources`` are ignored, since stations have no access to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import crossplane.function.proto.v1.run_function_pb2 as fnv1
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Struct, Value

from compositions.station import (
    Ready,
    Resource,
    Result,
    Selector,
    Severity,
    State,
    Station,
    StationRequest,
    StationResponse,
)
from ground.objects.kube_objects import Condition, ConditionStatus, Manifest
from ground.objects.values import copied

_READY = {
    Ready.UNSPECIFIED: fnv1.READY_UNSPECIFIED,
    Ready.TRUE: fnv1.READY_TRUE,
    Ready.FALSE: fnv1.READY_FALSE,
}
_SEVERITIES = {
    Severity.UNSPECIFIED: fnv1.SEVERITY_UNSPECIFIED,
    Severity.FATAL: fnv1.SEVERITY_FATAL,
    Severity.WARNING: fnv1.SEVERITY_WARNING,
    Severity.NORMAL: fnv1.SEVERITY_NORMAL,
}
_STATUSES: dict[ConditionStatus, fnv1.Status] = {
    "True": fnv1.STATUS_CONDITION_TRUE,
    "False": fnv1.STATUS_CONDITION_FALSE,
    "Unknown": fnv1.STATUS_CONDITION_UNKNOWN,
}


class UnreadableRequestError(ValueError):
    """The bytes are not a request, or it contains data that no Kubernetes object can hold."""


def parsed(data: bytes) -> fnv1.RunFunctionRequest:
    """
    Read a request from the wire.

    Raises:
        UnreadableRequestError: It is not a request, or is nested deeper than protobuf reads (100
            messages).
    """
    try:
        return fnv1.RunFunctionRequest.FromString(data)
    except DecodeError as error:
        raise UnreadableRequestError(f"the request cannot be read: {error}") from error


def station_named(message: fnv1.RunFunctionRequest) -> str:
    """Return the name in the step's input, or "". Does not check it."""
    name = message.input.fields.get("name")
    return name.string_value if name is not None else ""


def answered(station: Station, data: bytes) -> bytes:
    """Run a station on a request from the wire; every failure becomes a fatal result."""
    try:
        message = parsed(data)
    except UnreadableRequestError as error:
        return refusal(fnv1.RunFunctionRequest(), str(error))
    try:
        request = request_of(message)
    except UnreadableRequestError as error:
        return refusal(message, str(error))
    try:
        response = station(request)
        return response_message(message, response).SerializeToString()
    except Exception as error:  # noqa: BLE001 - a station may return whatever it likes
        name = station_named(message)
        return refusal(message, f'station "{name}" returned data that cannot be sent: {error}')


def refusal(message: fnv1.RunFunctionRequest, why: str) -> bytes:
    """Return the answer that stops the pipeline and changes no existing resource."""
    response = fnv1.RunFunctionResponse(desired=message.desired, context=message.context)
    response.meta.tag = message.meta.tag
    response.results.add(severity=fnv1.SEVERITY_FATAL, message=_sendable(why))
    return response.SerializeToString()


def _sendable(text: str) -> str:
    """Replace what UTF-8 cannot encode, because protobuf refuses it."""
    return text.encode(errors="replace").decode()


def request_of(message: fnv1.RunFunctionRequest) -> StationRequest:
    """
    Read a request.

    Raises:
        UnreadableRequestError: A number is not finite or beyond 2^53.
    """
    return StationRequest(
        observed=read_state(message.observed, "observed"),
        desired=read_state(message.desired, "desired"),
        context=read_struct(message.context, "context"),
        input=read_struct(message.input, "input"),
        required={
            name: tuple(read_struct(item.resource, f"required.{name}") for item in resources.items)
            # protobuf maps have no order, and an answer must not depend on one
            for name, resources in sorted(message.required_resources.items())
        },
    )


def read_state(message: fnv1.State, path: str) -> State:
    """
    Read a state; `path` names it in messages.

    Raises:
        UnreadableError: As `request_of`.
    """
    return State(
        _resource(message.composite, f"{path}.composite"),
        {
            name: _resource(resource, f"{path}.resources.{name}")
            for name, resource in sorted(message.resources.items())
        },
    )


def _resource(message: fnv1.Resource, path: str) -> Resource:
    return Resource(
        read_struct(message.resource, path),
        _ready(message.ready),
        dict(message.connection_details),
    )


def _ready(number: int) -> Ready:
    try:
        return Ready(number)
    except ValueError:  # a value of a later protocol version
        return Ready.UNSPECIFIED


def read_struct(struct: Struct, path: str) -> dict[str, Any]:
    """
    Return plain data with sorted keys.

    Protobuf maps have no order, and an answer must not depend on one.

    Raises:
        UnreadableError: As `request_of`.
    """
    try:
        data: dict[str, Any] = copied(_map(struct), path)  # whole numbers become integers there
    except ValueError as error:
        raise UnreadableRequestError(f"{path} cannot be read: {error}") from error
    return data


def _map(struct: Struct) -> dict[str, Any]:
    """Convert in one walk: protobuf's conversion through JSON takes three times as long."""
    fields = struct.fields
    return {key: _value(fields[key]) for key in sorted(fields)}


def _value(value: Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return value.string_value
    if kind == "struct_value":
        return _map(value.struct_value)
    if kind == "list_value":
        return [_value(item) for item in value.list_value.values]
    if kind == "number_value":
        return value.number_value
    return value.bool_value if kind == "bool_value" else None


def response_message(
    request: fnv1.RunFunctionRequest, response: StationResponse
) -> fnv1.RunFunctionResponse:
    """
    Write a station's response; it carries the request's tag.

    Raises:
        ValueError, TypeError: It contains data that cannot be sent (NotPlainError names its path).
    """
    message = fnv1.RunFunctionResponse()
    message.meta.tag = request.meta.tag
    message.meta.ttl.FromTimedelta(timedelta(seconds=response.ttl_s))
    write_state(message.desired, response.desired)
    message.context.update(copied(response.context, "context"))
    message.results.extend(_result(result) for result in response.results)
    message.conditions.extend(_condition(condition) for condition in response.conditions)
    _write_requirements(message.requirements, response.requirements)
    return message


def write_state(message: fnv1.State, state: State) -> None:
    """
    Write a state into a message.

    Raises:
        ValueError, TypeError: As `response_message`.
    """
    _write_resource(message.composite, state.composite, "the XR")
    for name, resource in state.resources.items():
        _write_resource(message.resources[name], resource, name)


def _write_resource(message: fnv1.Resource, resource: Resource, path: str) -> None:
    manifest: Manifest = copied(resource.resource, path)
    message.resource.update(manifest)
    message.ready = _READY[Ready(resource.ready)]
    for key, value in resource.connection_details.items():
        message.connection_details[key] = value


def _write_requirements(message: fnv1.Requirements, selectors: Mapping[str, Selector]) -> None:
    for name, selector in selectors.items():
        target = message.resources[name]
        target.api_version, target.kind = selector.api_version, selector.kind
        if selector.namespace is not None:
            target.namespace = selector.namespace
        if selector.name:
            target.match_name = selector.name
        elif selector.labels:
            target.match_labels.labels.update(selector.labels)


def _result(result: Result) -> fnv1.Result:
    message = fnv1.Result(
        severity=_SEVERITIES[Severity(result.severity)], message=_sendable(result.message)
    )
    if result.reason:
        message.reason = result.reason
    return message


def _condition(condition: Condition) -> fnv1.Condition:
    message = fnv1.Condition(
        type=condition.type, status=_STATUSES[condition.status], reason=condition.reason
    )
    if condition.message:
        message.message = _sendable(condition.message)
    return message
