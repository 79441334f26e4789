"""
The errors of the embedded API server.

Each class is a port error (so flows and reconcilers handle it as they would a real API
server's) and carries what a Kubernetes ``Status`` needs: code, reason, subject, causes. The
texts are those of kube-apiserver 1.36, word for word, because people search for them.
"""

# ruff: noqa: N818 - the class names are the reasons of a Kubernetes Status

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ground.errors import AccessError, ConflictError, NotFoundError, OrderkitError
from ground.objects.kube_objects import Kind
from orderkit.ports.cluster import (
    ApplyConflictError,
    ExpiredError,
    InvalidObjectError,
    NoSuchKindError,
    NoSuchNamespaceError,
    WrongTypeError,
)


@dataclass(frozen=True, slots=True)
class RefusalSubject:
    """The subject of a refusal: ``plural.group`` and a name, as used in the messages."""

    kind: str
    group: str
    plural: str
    name: str

    @property
    def resource(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


@dataclass(frozen=True, slots=True)
class Cause:
    """One field and what is wrong with it."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class ApiRefusal(OrderkitError):
    """Base of all answers that are a ``Status`` of kind Failure."""

    code: int = 500
    reason: str = "InternalError"

    def __init__(
        self, message: str, *, subject: RefusalSubject | None = None, causes: Sequence[Cause] = ()
    ) -> None:
        super().__init__(message)
        self.subject, self.causes = subject, tuple(causes)
        self.warnings: tuple[str, ...] = ()
        """Warnings for the client, sent as ``Warning`` headers."""


class BadRequest(ApiRefusal, InvalidObjectError):
    code, reason = 400, "BadRequest"


class PatchRefused(ApiRefusal, InvalidObjectError):
    """A JSON patch that cannot be applied to the object."""

    code, reason = 422, "Invalid"


class RequestEntityTooLarge(ApiRefusal, InvalidObjectError):
    code, reason = 413, "RequestEntityTooLarge"


class Forbidden(ApiRefusal, AccessError):
    code, reason = 403, "Forbidden"


class TerminatingNamespace(Forbidden):
    """The namespace is being deleted; nothing can be created in it."""

    retryable = True

    def __init__(self, subject: RefusalSubject, namespace: str) -> None:
        super().__init__(
            f'{subject.resource} "{subject.name}" is forbidden: unable to create new content in '
            f"namespace {namespace} because it is being terminated",
            subject=subject,
            causes=[
                Cause(
                    "metadata.namespace",
                    f"namespace {namespace} is being terminated",
                    "NamespaceTerminating",
                )
            ],
        )


class NotFound(ApiRefusal, NotFoundError):
    code, reason = 404, "NotFound"

    def __init__(self, subject: RefusalSubject) -> None:
        super().__init__(f'{subject.resource} "{subject.name}" not found', subject=subject)


class NamespaceMissing(ApiRefusal, NoSuchNamespaceError):
    code, reason = 404, "NotFound"

    def __init__(self, namespace: str) -> None:
        super().__init__(
            f'namespaces "{namespace}" not found',
            subject=RefusalSubject("namespaces", "", "namespaces", namespace),
        )


class KindMissing(ApiRefusal, NoSuchKindError):
    code, reason = 404, "NotFound"

    def __init__(self, kind: Kind) -> None:
        super().__init__(f'no matches for kind "{kind.kind}" in version "{kind.api_version}"')


class NotAllowed(ApiRefusal, OrderkitError):
    code, reason = 405, "MethodNotAllowed"


class AlreadyExists(ApiRefusal, ConflictError):
    code, reason = 409, "AlreadyExists"

    def __init__(self, subject: RefusalSubject) -> None:
        super().__init__(f'{subject.resource} "{subject.name}" already exists', subject=subject)


class Conflict(ApiRefusal, ConflictError):
    code, reason = 409, "Conflict"

    def __init__(self, subject: RefusalSubject, why: str = "") -> None:
        why = why or (
            "the object has been modified; please apply your changes to the latest version "
            "and try again"
        )
        super().__init__(
            f'Operation cannot be fulfilled on {subject.resource} "{subject.name}": {why}',
            subject=subject,
        )


class ApplyConflict(ApiRefusal, ApplyConflictError):
    code, reason = 409, "Conflict"


class Expired(ApiRefusal, ExpiredError):
    code, reason = 410, "Expired"

    def __init__(self, since: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {since} ({oldest})")


class UnsupportedMediaType(ApiRefusal, InvalidObjectError):
    code, reason = 415, "UnsupportedMediaType"

    def __init__(self, accepted: Sequence[str]) -> None:
        super().__init__(
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join(accepted)
        )


class Invalid(ApiRefusal, InvalidObjectError):
    code, reason = 422, "Invalid"

    def __init__(self, subject: RefusalSubject, causes: Sequence[Cause]) -> None:
        texts = [str(cause) for cause in causes]
        why = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        super().__init__(
            f'{subject.qualified_kind} "{subject.name}" is invalid: {why}',
            subject=subject,
            causes=causes,
        )


class DeniedByPolicy(ApiRefusal, InvalidObjectError):
    """An admission policy refuses it."""

    def __init__(self, subject: RefusalSubject, reason_text: str, reason: str) -> None:
        message = f'{subject.resource} "{subject.name}" is forbidden: {reason_text}'
        super().__init__(message, subject=subject, causes=[Cause("", reason_text, "")])
        self.reason, self.code = reason, _CODES.get(reason, 422)


class InUse(ApiRefusal):
    """Crossplane's webhook refuses to delete what a Usage protects."""

    code = 409

    def __init__(self, subject: RefusalSubject, why: str) -> None:
        webhook = 'admission webhook "nousages.protection.crossplane.io" denied the request'
        super().__init__(f"{webhook}: {why}", subject=subject)
        self.reason = "Conflict"


_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}
"""By the reason that a policy's validation names."""


class WrongType(ApiRefusal, WrongTypeError):
    """Server-side apply cannot read the object as its schema; the real server says 500 too."""
