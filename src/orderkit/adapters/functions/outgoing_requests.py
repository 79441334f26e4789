"""
Requests that we send to a function, and its answers.

Requests are as Crossplane writes them: the tag is a hash of the request, and the capabilities are
listed. Schemas are not among them, because a plan cannot provide them. A function
that requests something unsupported is opaque; the error names what it asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping

import crossplane.function.proto.v1.run_function_pb2 as fnv1

from compositions.station import (
    OpaqueError,
    Result,
    Selector,
    Severity,
    StationRequest,
    StationResponse,
)
from ground.objects.conditions import Condition, ConditionStatus
from ground.objects.plain_data import copied
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
    """
    Return the requirements that an answer states under the name of Crossplane 1.

    Functions that also serve Crossplane 1 state them twice (function-go-templating 0.12.2).
    """
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
