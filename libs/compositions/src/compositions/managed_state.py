"""
What a provider makes of a managed resource: external name, ``status.atProvider``, refusals.

The embedded platform's twins and simulations (`compositions.simulation`) show the same values.
They are computed, never drawn: the same resource has the same identifiers and the same password in
every process. Addresses and accounts are invented.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from ground.errors import shorten
from ground.names import Files
from ground.objects.kube_objects import (
    EXTERNAL_NAME,
    Kind,
    Manifest,
    annotations_of,
    dig,
    metadata,
    plural_of,
)
from ground.objects.values import ABSENT, shown
from kubeschema.known import Layer, files_of, read_behaviours, read_layer
from kubeschema.known.managed_behaviour import Behaviour, Behaviours, behaviour_of
from kubeschema.pruning import PRESERVE

__all__ = [
    "FAIL",
    "FAILURES",
    "ManagedKinds",
    "ManagedValues",
    "assigned_name",
    "at_provider",
    "default_name",
    "failure_message",
    "failure_of",
    "password_of",
    "reference_forms",
    "replacement_refusal",
    "replacements",
]

FAIL = "embedded.orderkit.dev/fail"
"""Annotation of a managed resource: how its twin is to fail (`FAILURES`)."""
FAILURES: Mapping[str, str] = {
    "quota": "{verb} failed: QuotaExceeded: the quota of the account for {kind} is used up",
    "notfound": "{verb} failed: NotFound: what {kind} '{name}' needs does not exist in the cloud",
    "throttled": "observe failed: Throttling: Rate exceeded",
    "denied": "{verb} failed: AccessDenied: the provider's identity may not {verb} {kind}",
    "slow": "",
    "vanished": "observe failed: NotFound: {kind} '{name}' was deleted outside of Crossplane",
}
"""By their name: what the condition Synced says. '' is no error: it takes while it is asked for."""
_TWIN_WORDS = " (asked for by the annotation {annotation})"
_ACCOUNT = "123456789012"
_SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
_PROJECT, _REGION = "twin-project", "twin-1"
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_REFERENCES = re.compile(r"(Refs?|Selector)$")


@dataclass(frozen=True, slots=True)
class ManagedValues:
    """The values that texts of a `Behaviour` may name."""

    managed: Manifest
    external_name: str = ""
    password: str = ""
    revision: int = 1
    """How often the external resource was made or changed."""
    for_provider: Mapping[str, Any] = field(default_factory=dict)
    at_provider: Mapping[str, Any] = field(default_factory=dict)

    def rendered(self, template: Any, seed: str = "") -> Any:
        """
        Fill in a template: texts, and maps and lists of them.

        A text that is one placeholder becomes its value, of any type; without one, None. An entry
        of a map whose value is None is left out. In a longer text, what has no value is empty.
        """
        if isinstance(template, Mapping):
            entries = {key: self.rendered(entry, seed) for key, entry in template.items()}
            return {key: entry for key, entry in entries.items() if entry is not None}
        if isinstance(template, list):
            return [self.rendered(entry, seed) for entry in template]
        if not isinstance(template, str):
            return template
        sole_placeholder = _PLACEHOLDER.fullmatch(template)
        if sole_placeholder:
            return self._value(sole_placeholder[1], seed)
        return _PLACEHOLDER.sub(lambda match: str(self._value(match[1], seed) or ""), template)

    def _value(self, placeholder: str, seed: str) -> Any:
        origin, _, path = placeholder.partition(".")
        if path:
            source = self.for_provider if origin == "forProvider" else self.at_provider
            return dig(source, *path.split("."))
        digest = hashlib.sha512(
            f"{seed or self.external_name} {template_key(self.managed)}".encode()
        )
        if placeholder.startswith("hex"):
            return digest.hexdigest()[: int(placeholder[3:])]
        if placeholder.startswith("digits"):
            length = int(placeholder[6:])
            return str(int(digest.hexdigest(), 16))[:length]
        values: Mapping[str, Any] = {
            "name": metadata(self.managed).get("name", ""),
            "region": self._first_of("region", "location") or _REGION,
            "account": _ACCOUNT,
            "project": self._first_of("project") or _PROJECT,
            "subscription": _SUBSCRIPTION,
            "externalName": self.external_name,
            "password": self.password,
            "revision": self.revision,
            "uuid": str(uuid.UUID(bytes=digest.digest()[:16])),
        }
        return values.get(placeholder)

    def _first_of(self, *names: str) -> str:
        values = (self.for_provider.get(name) for name in names)
        return next((value for value in values if isinstance(value, str) and value), "")


def template_key(managed: Manifest) -> str:
    """Return what distinguishes a resource from others of its name: its kind."""
    return str(Kind.of(managed))


def assigned_name(behaviour: Behaviour, values: ManagedValues, seed: str) -> str:
    """Return the external name that the cloud chooses; another seed gives another one."""
    kind = Kind.of(values.managed).kind.lower()
    return str(values.rendered(behaviour.identifier or f"{kind}-{{hex17}}", seed))


def default_name(managed: Manifest) -> str:
    """Return the external name of a kind whose resources are named by people."""
    return str(annotations_of(managed).get(EXTERNAL_NAME) or metadata(managed)["name"])


def at_provider(
    schema: Mapping[str, Any], behaviour: Behaviour, values: ManagedValues
) -> dict[str, Any]:
    """
    Return ``status.atProvider``: what the provider was given, identifiers, what is declared.

    Args:
        schema: Of ``status.atProvider``. Fields that it does not declare are left out; one that
            declares none shows everything, and the identifiers of the kind's cloud.
    """
    fields: Mapping[str, Any] = schema.get("properties") or {}
    is_open = not fields or bool(schema.get(PRESERVE))
    shown_fields = {
        name: value
        for name, value in values.for_provider.items()
        if (name in fields or is_open) and not _REFERENCES.search(name)
    }
    computed: dict[str, Any] = {"id": values.external_name}
    clouds = Kind.of(values.managed).group.split(".")
    for name, template in _identifiers(values).items():
        if name in fields or (not fields and _CLOUD_IDENTIFIERS.get(name) in clouds):
            computed |= values.rendered({name: template})
    declared = replace(values, at_provider={**shown_fields, **computed})
    state = {**shown_fields, **computed, **declared.rendered(behaviour.observed)}
    return {name: value for name, value in state.items() if name in fields or is_open}


_CLOUD_IDENTIFIERS = {"arn": "aws", "selfLink": "gcp"}


def _identifiers(values: ManagedValues) -> Mapping[str, str]:
    kind = Kind.of(values.managed)
    service = kind.group.partition(".")[0]
    name = values.external_name
    arn = (
        f"arn:aws:{service}:{{forProvider.region}}:{{account}}:{kind.kind.lower()}/{{externalName}}"
    )
    link = f"https://www.googleapis.com/{service}/v1/projects/{{project}}"
    return {
        "arn": "{externalName}" if name.startswith("arn:") else arn,
        "selfLink": f"{link}/{{region}}/{plural_of(kind.kind)}/{{externalName}}",
        "tagsAll": "{forProvider.tags}",
    }


def replacements(
    paths: Iterable[str], old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """
    Yield the fields of ``forProvider`` among these that differ: path, old value, new value.

    A field that `new` does not set keeps its value, so it does not differ.
    """
    for path in paths:
        steps = path.split(".")
        before, after = _at(old, steps), _at(new, steps)
        if after is not ABSENT and before != after:
            yield path, before, after


@dataclass(frozen=True, slots=True)
class ManagedKinds:
    """The managed kinds of a pack's ``schemas/``, for simulations."""

    layer: Layer
    behaviours: Behaviours

    @classmethod
    def of_pack(cls, files: Files) -> Self:
        """
        Read them from a pack's files.

        Raises:
            InvalidInputError: A file of ``schemas/`` cannot be read.
        """
        return cls(read_layer(files_of(files)), read_behaviours(files))

    def made(self, managed: Manifest) -> Manifest:
        """
        Return a managed resource with the external name and ``atProvider`` that its twin gives it.

        Of an unknown kind it is returned as it is.
        """
        kind = Kind.of(managed)
        known_kind = self.layer.get((kind.group, kind.kind))
        for_provider = dig(managed, "spec", "forProvider")
        if (
            known_kind is None
            or kind.version not in known_kind.validator.versions
            or not isinstance(for_provider, dict)
        ):
            return managed
        behaviour = behaviour_of(self.behaviours, kind.group, kind.kind)
        values = ManagedValues(managed, password=password_of(managed), for_provider=for_provider)
        notes, meta = annotations_of(managed), metadata(managed)
        assigned = behaviour.assigned and not notes.get(EXTERNAL_NAME)
        name = assigned_name(behaviour, values, str(meta.get("uid"))) if assigned else ""
        name = name or default_name(managed)
        schema = known_kind.validator.schema(kind.version)
        shown_schema = dig(schema, "properties", "status", "properties", "atProvider", default={})
        state = at_provider(shown_schema, behaviour, replace(values, external_name=name))
        status = {**(managed.get("status") or {}), "atProvider": state}
        annotated = {**meta, "annotations": {**notes, EXTERNAL_NAME: name}}
        return {**managed, "metadata": annotated, "status": status}


def failed_status(failure: str, managed: Manifest) -> Manifest:
    """Return the status of a resource that fails as asked (`FAILURES`) from the start."""
    message = failure_message(failure, managed, "create")
    synced = ("False", "ReconcileError", message) if message else ("True", "ReconcileSuccess", "")
    conditions = (("Synced", *synced), ("Ready", "False", "Creating", ""))
    return {
        "conditions": [
            {"type": type_, "status": status, "reason": reason, "message": text}
            for type_, status, reason, text in conditions
        ]
    }


def reference_forms(path: str) -> tuple[str, ...]:
    """Return the references and selectors that would set a field."""
    singular = path.removesuffix("s")
    return tuple(
        dict.fromkeys((f"{path}Ref", f"{singular}Refs", f"{path}Selector", f"{singular}Selector"))
    )


def _at(value: Any, steps: list[str]) -> Any:
    """Return the value below map keys; of a list those of its entries."""
    for position, step in enumerate(steps):
        if isinstance(value, list):
            entries = [_at(entry, steps[position:]) for entry in value]
            return entries if any(entry is not ABSENT for entry in entries) else ABSENT
        if not isinstance(value, Mapping) or step not in value:
            return ABSENT
        value = value[step]
    return value


def replacement_refusal(path: str, old: Any, new: Any) -> str:
    """Return what a provider made with upjet says instead of replacing a resource."""
    argument = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", path).lower()
    before, after = ('""' if value is ABSENT else f'"{_text(value)}"' for value in (old, new))
    return (
        "update failed: async update failed: refuse to update the external resource because the "
        "following update requires replacing it: cannot change the value of the argument "
        f'"{argument}" from {before} to {after}'
    )


def _text(value: Any) -> str:
    return shorten(value) if isinstance(value, str) else shown(value)


def failure_of(managed: Manifest) -> str:
    """Return how the twin of a resource is to fail; '' if nothing, or nothing known, is asked."""
    text = str(annotations_of(managed).get(FAIL) or "")
    return text if text in FAILURES else ""


def failure_message(failure: str, managed: Manifest, verb: str) -> str:
    """Return what Synced says in a failure that was asked for; '' if it is no error."""
    kind = Kind.of(managed).kind
    text = FAILURES[failure].format(kind=kind, name=metadata(managed).get("name"), verb=verb)
    return text and text + _TWIN_WORDS.format(annotation=FAIL)


def password_of(managed: Manifest) -> str:
    """Return the password that a twin gives a resource: stable, and opens nothing."""
    seed = f"{metadata(managed).get('uid')} {template_key(managed)}"
    return f"twin-{hashlib.sha256(seed.encode()).hexdigest()[:24]}"
