"""
What a cloud twin's resources point to: other resources of the cloud, and Secrets.

References and selectors are resolved as upjet's providers do. ``vpcIdRef: {name: a}`` sets
``vpcId`` to what the VPC ``a`` is called in the cloud; a selector sets the reference first. What is
set already stays, unless the policy says ``Always``.

Secrets are those that a resource reads, and its connection Secret.
"""

from __future__ import annotations

import base64
import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compositions.managed_state import password_of
from ground.objects.kube_objects import (
    EXTERNAL_NAME,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    controller,
    controller_reference,
    dig,
    metadata,
    plural_of,
    secret_references,
)
from kubeschema.known.managed_behaviour import is_modern
from kubeschema.pruning import PRESERVE
from orderkit_standins.crossplane.reconciler_context import ReconcilerContext
from orderkit_standins.providers.managed_reconciler import ManagedError
from orderkit_standins.providers.played_kinds import ManagedLibrary, Schema

_REFERENCE = re.compile(r"(?P<stem>.+?)(?P<form>Refs|Ref|Selector)")
_SECRETS = re.compile(r".*(Secret|ConfigMap)(Key)?Refs?|(secret|configMap)(Key)?Ref")
_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True)
class _Place:
    """One field that may be set by reference: the map that holds it, and its names there."""

    holder: dict[str, Any]
    schema: Schema
    plain: str
    stem: str

    @property
    def is_many(self) -> bool:
        return (
            dig(self.schema, "properties", self.plain, "type") == "array"
            or f"{self.stem}Refs" in self.holder
        )


@dataclass(frozen=True, slots=True)
class Resolution:
    """What resolving gave."""

    for_provider: dict[str, Any]
    """With all values."""
    patch: dict[str, Any]
    """What belongs back into the spec: a merge patch of forProvider."""


class References:
    """Resolves references with what a cluster has."""

    def __init__(self, site: ReconcilerContext, library: ManagedLibrary) -> None:
        self._site, self._library = site, library

    def resolve(self, managed: Manifest) -> Resolution:
        """
        Return ``forProvider`` with the values of all references.

        Raises:
            ManagedError: A referent does not exist or has no value yet.
        """
        kind = Kind.of(managed)
        resolved = copy.deepcopy(dig(managed, "spec", "forProvider", default={}))
        schema = self._library.schema(kind, "spec", "forProvider")
        for ref_field in _places(resolved, schema):
            self._fill(managed, kind, ref_field)
        patch = _patch(dig(managed, "spec", "forProvider", default={}), resolved)
        return Resolution(resolved, patch)

    def referred(self, kind: Kind, for_provider: dict[str, Any]) -> Iterator[tuple[Kind, str]]:
        """Yield kind and value of every field that refers, or could, to another resource."""
        schema = self._library.schema(kind, "spec", "forProvider")
        for ref_field in _places(for_provider, schema):
            value = ref_field.holder.get(ref_field.plain)
            texts = value if isinstance(value, list) else [value]
            for text in filter(lambda entry: isinstance(entry, str), texts):
                for referent in self._referents(kind, ref_field):
                    yield referent, str(text)

    def _referents(self, kind: Kind, ref_field: _Place) -> list[Kind]:
        properties = ref_field.schema.get("properties") or {}
        forms = (properties.get(f"{ref_field.stem}{form}") for form in ("Ref", "Refs", "Selector"))
        texts = (str(dig(form, "description", default="")) for form in forms if form)
        return self._library.referents(kind, ref_field.plain, next(filter(None, texts), ""))

    def _fill(self, managed: Manifest, kind: Kind, ref_field: _Place) -> None:
        holder, is_list = ref_field.holder, ref_field.is_many
        selector = holder.get(f"{ref_field.stem}Selector")
        form = f"{ref_field.stem}{'Refs' if is_list else 'Ref'}"
        references = holder.get(form)
        if isinstance(references, Mapping):
            references = [references]
        policy = dig(selector or (references or [{}])[0], "policy", default={}) or {}
        always = policy.get("resolve") == "Always"
        if holder.get(ref_field.plain) and not always:
            return
        if not selector and not references:
            return
        referents = self._referents(kind, ref_field)
        if not referents and not ref_field.schema.get("properties"):
            return  # of an open schema: it may be anything
        try:
            if selector and (always or not references):
                objects = self._selected(managed, referents, selector)
                references = [_reference_to(managed, referent) for referent in objects]
                holder[form] = references if is_list else references[0]
            else:
                objects = [
                    self._named(managed, referents, reference) for reference in references or ()
                ]
            values = [self._value(kind, ref_field.plain, referent) for referent in objects]
        except ManagedError as error:
            if policy.get("resolution") == "Optional":
                return
            place_name = f"mg.Spec.ForProvider.{ref_field.plain[:1].upper()}{ref_field.plain[1:]}"
            message = f"cannot resolve references: {place_name}: {error}"
            raise ManagedError(message, again_s=_AGAIN_S) from error
        holder[ref_field.plain] = values if is_list else values[0]

    def _named(self, managed: Manifest, kinds: list[Kind], reference: Any) -> Manifest:
        name, first = str(dig(reference, "name", default="")), kinds[0] if kinds else None
        for kind in kinds:
            referent = self._site.cluster.serves(kind) and self._site.cluster.get(
                ObjectKey(kind, name, _home(managed, kind, reference))
            )
            if referent:
                return referent
        if first is None:
            raise ManagedError(
                "the twin does not know the kind of what is referred to: name it in "
                "schemas/behaviour.yaml, references"
            )
        resource = f"{plural_of(first.kind)}.{first.group}"
        raise ManagedError(f'cannot get referenced resource: {resource} "{name}" not found')

    def _selected(
        self, managed: Manifest, kinds: list[Kind], selector: Mapping[str, Any]
    ) -> list[Manifest]:
        for kind in filter(self._site.cluster.serves, kinds):
            home = _home(managed, kind, selector)
            if objects := self._site.selected(managed, kind, home, selector):
                return objects
        raise ManagedError("no resources matched selector")

    def _value(self, kind: Kind, plain: str, referent: Manifest) -> str:
        """Return a referent's value for a field: by behaviour.yaml, else by the field's name."""
        declared = self._library.reference(kind, plain).field
        stem = plain.removesuffix("s")
        path = declared or next(
            (
                name
                for end, name in (("Arn", "arn"), ("SelfLink", "selfLink"))
                if stem.endswith(end)
            ),
            "",
        )
        assigned = self._library.behaviour(Kind.of(referent)).assigned
        if not path and stem.endswith("Id") and not assigned:
            path = "id"
        value = (
            dig(referent, "status", "atProvider", *path.split("."))
            if path
            else annotations_of(referent).get(EXTERNAL_NAME)
        )
        if not value:
            raise ManagedError(
                "referenced field was empty (referenced resource may not yet be ready)"
            )
        return str(value)


def without_references(for_provider: Any) -> Any:
    """Return what a cloud gets: no references, selectors or names of Secrets."""
    if isinstance(for_provider, list):
        return [without_references(entry) for entry in for_provider]
    if not isinstance(for_provider, dict):
        return for_provider
    return {
        name: without_references(value)
        for name, value in for_provider.items()
        if not (_SECRETS.fullmatch(name) or _is_reference(name, value))
    }


def _is_reference(name: str, value: object) -> bool:
    if not _REFERENCE.fullmatch(name) or _SECRETS.fullmatch(name):
        return False
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict) and not {"name", "matchLabels", "matchControllerRef"}.isdisjoint(
        first
    )


def _places(value: Any, schema: Schema) -> Iterator[_Place]:
    """Yield each field that a reference in the value, or its schema, could set."""
    if isinstance(value, list):
        for entry in value:
            yield from _places(entry, schema.get("items") or {})
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    stems = {}
    for name in (*value, *properties):
        match = _REFERENCE.fullmatch(name)
        if (
            match
            and not _SECRETS.fullmatch(name)
            and (name in properties or _is_reference(name, value[name]))
        ):
            stems[match["stem"]] = match["form"]
    for stem, form in stems.items():
        plain = _plain(stem, form, schema)
        if plain:
            yield _Place(value, schema, plain, stem)
    for name, entry in list(value.items()):
        if not _is_reference(name, entry):
            inner = properties.get(name) or schema.get("additionalProperties") or {}
            yield from _places(entry, inner if isinstance(inner, dict) else {})


def _plain(stem: str, form: str, schema: Schema) -> str:
    """Return the field that a reference sets; '' if the schema has none such."""
    names = (stem, f"{stem}s", f"{stem}es", f"{stem[:-1]}ies")
    properties = schema.get("properties") or {}
    declared = next((name for name in names if name in properties), "")
    if declared or (properties and not schema.get(PRESERVE)):
        return declared
    return f"{stem}s" if form == "Refs" else stem


def _home(managed: Manifest, kind: Kind, reference: Any) -> str:
    if not is_modern(kind):
        return ""
    return str(dig(reference, "namespace", default="") or metadata(managed).get("namespace") or "")


def _reference_to(managed: Manifest, referent: Manifest) -> dict[str, str]:
    home = str(metadata(referent).get("namespace") or "")
    elsewhere = home and home != metadata(managed).get("namespace")
    return {"name": metadata(referent)["name"], **({"namespace": home} if elsewhere else {})}


def _patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch from one map to another."""
    patch: dict[str, Any] = {}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, Mapping):
            inner = _patch(old, value)
            patch |= {name: inner} if inner else {}
        # not in lists of maps: Crossplane owns such a list as a whole, and would undo it for ever
        elif value != old and not (isinstance(old, list) and old and isinstance(old[0], dict)):
            patch[name] = value
    return patch


SECRET = Kind("", "v1", "Secret")
OWNER = "cloud-twin"
"""Who writes what the twin applies."""
AGAIN_S = 0.3
"""How soon a refused resource is looked at again."""


@dataclass(frozen=True, slots=True)
class CloudSecrets:
    """Reads and writes Secrets for managed resources."""

    site: ReconcilerContext

    def publish(self, managed: Manifest, connection: dict[str, Any]) -> None:
        """
        Write the connection Secret.

        Raises:
            ManagedError: Somebody else's Secret has its name.
        """
        reference = dig(managed, "spec", "writeConnectionSecretToRef")
        if not reference:
            return
        meta = metadata(managed)
        key = ObjectKey(SECRET, reference["name"], _namespace(managed, reference))
        present = self.site.cluster.get(key)
        if present is not None and (controller(present) or {}).get("uid") != meta["uid"]:
            raise ManagedError(
                "cannot publish connection details: existing secret is not controlled by UID "
                f'"{meta["uid"]}"'
            )
        self._write(key, connection, controller_reference(managed, uid=meta["uid"]))

    def _write(
        self, key: ObjectKey, texts: dict[str, Any], owner: dict[str, Any] | None = None
    ) -> None:
        encoded = {
            name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()
        }
        owners = {"ownerReferences": [owner]} if owner else {}
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": key.name, "namespace": key.namespace, **owners},
            "data": encoded,
            **({"type": "connection.crossplane.io/v1alpha1"} if owner else {}),
        }
        self.site.cluster.apply(secret, owner=OWNER)

    def password(self, managed: Manifest) -> str:
        """Return the password in the Secret that forProvider names, else a stable one."""
        reference = dig(managed, "spec", "forProvider", "passwordSecretRef", default={})
        return self._text(managed, reference) or password_of(managed)

    def _text(self, managed: Manifest, reference: Any) -> str:
        name = str(dig(reference, "name", default=""))
        secret = name and self.site.cluster.get(
            ObjectKey(SECRET, name, _namespace(managed, reference))
        )
        encoded = dig(secret or {}, "data", str(dig(reference, "key", default="")), default="")
        return base64.b64decode(encoded).decode(errors="replace")

    def check(self, managed: Manifest) -> None:
        """
        Read the Secrets that forProvider names; make a password where upjet would.

        Raises:
            ManagedError: A Secret or its key does not exist.
        """
        for_provider = dig(managed, "spec", "forProvider", default={})
        for field, reference in secret_references(for_provider):
            if self._text(managed, reference):
                continue
            home = _namespace(managed, reference)
            if field == "passwordSecretRef" and for_provider.get("autoGeneratePassword"):
                key = ObjectKey(SECRET, reference["name"], home)
                self._write(key, {reference["key"]: password_of(managed)})
                continue
            raise ManagedError(
                f'connect failed: cannot load the sensitive parameter "{field}": key '
                f'"{reference["key"]}" of Secret "{home}/{reference["name"]}" not found',
                again_s=AGAIN_S,
            )


def _namespace(managed: Manifest, reference: Any) -> str:
    own_namespace = metadata(managed).get("namespace")
    return str(own_namespace or dig(reference, "namespace", default="") or "")
