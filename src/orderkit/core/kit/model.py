"""A kit: the content of its XRD and kit.yaml with all defaults; ``pack`` makes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ground.names import OrderId, TeamName, check_label
from ground.objects.kube_objects import Kind, Manifest, dig
from kubeschema.xrd import default_composition, machinery_path, scope_of, xr_kind
from orderkit.core.kit.kit_file import AcceptedDanger, KitFile
from orderkit.core.kit.kit_file_parts import FieldPath

DEFAULT_OWNER = "group:default/platform"
"""Who owns the template of a kit in the catalog."""
NAME_PARAMETER, TEAM_PARAMETER = "name", "team"
"""The form's own parameters, used if no field holds the order's name or team."""
COMPOSITION = "composition"
"""The short name of the field that names an order's Composition."""
_PART = re.compile(r"([a-z0-9-]*)(?:\{([A-Za-z0-9_.]+)\})?")
_TEAM_PREFIX = "group:default/"
"""The prefix that the catalog's picker adds to a team."""


class Kit(KitFile, frozen=True, kw_only=True):
    """An offer of the platform: form, skeleton, XRD, and the naming of its orders."""

    xrd: Manifest
    tags: tuple[str, ...] = ()
    owner: str = DEFAULT_OWNER

    @property
    def public_keys(self) -> frozenset[str]:
        """Keys of the order's Secrets whose values everybody may see."""
        return frozenset(self.secrets.public)

    @property
    def accepts(self) -> tuple[AcceptedDanger, ...]:
        """Dangers of plans that are listed as accepted."""
        return self.plan.accepts

    @property
    def data_kinds(self) -> Mapping[tuple[str, str], bool]:
        """Whether kinds hold data, by group and kind, as the kit declares."""
        return self.plan.holds_data

    @property
    def kind(self) -> Kind:
        """The XR's kind, at the referenceable version."""
        return xr_kind(self.xrd)

    @property
    def namespaced(self) -> bool:
        """Whether the XR lives in a namespace."""
        return scope_of(self.xrd) == "Namespaced"

    @property
    def namespace_parts(self) -> tuple[tuple[str, FieldPath], ...]:
        """Literal parts of the XR's namespace, each with the field that follows it, if any."""
        parts = _PART.findall(self.xr_namespace)
        return tuple((text, path) for text, path in parts if text or path)

    def namespace_of(self, spec: Mapping[str, Any]) -> str:
        """Return the XR's namespace, computed from its fields; empty without ``xrNamespace``."""
        return "".join(
            text + (_text(spec, path) if path else "") for text, path in self.namespace_parts
        )

    def xr_name_of(self, order: str, spec: Mapping[str, Any]) -> str:
        """Return the name of an order's XR: the order's id, or the field in ``xrName``."""
        return order if self.xr_name == "order" else _text(spec, self.xr_name)

    @property
    def schema(self) -> dict[str, Any]:
        """The author's ``openAPIV3Schema`` at the referenceable version."""
        version = next(v for v in self.xrd["spec"]["versions"] if v.get("referenceable"))
        schema: dict[str, Any] = dig(version, "schema", "openAPIV3Schema", default={})
        return schema

    @property
    def spec_schema(self) -> dict[str, Any]:
        """The XRD's schema of ``spec`` at the referenceable version."""
        schema: dict[str, Any] = dig(self.schema, "properties", "spec", default={})
        return self.with_offered(schema)

    @property
    def composition_path(self) -> FieldPath:
        """The field that names an order's Composition; empty: no order names one."""
        if not self.compositions:
            return ""
        return ".".join((*machinery_path(self.xrd)[1:], "compositionRef", "name"))

    @property
    def offered(self) -> tuple[str, ...]:
        """The Compositions that an order may name."""
        return tuple(composition.name for composition in self.compositions)

    def with_offered(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a schema of ``spec`` with the field that chooses among the Compositions."""
        if not self.compositions:
            return schema
        field: dict[str, Any] = {"type": "string", "enum": list(self.offered)}
        field["description"] = "Which of its Compositions assembles the order."
        if default := default_composition(self.xrd):
            field["default"] = default
        head, *steps = self.composition_path.split(".")
        for step in reversed(steps):
            field = {"type": "object", "properties": {step: field}}
        return {**schema, "properties": {**(schema.get("properties") or {}), head: field}}

    def full_path(self, path: FieldPath) -> FieldPath:
        """Return a field's path; ``composition`` is short for the one that names it."""
        if path != COMPOSITION or not self.compositions:
            return path
        is_own = path in self.spec_schema["properties"] or path in self.aliases.values()
        return path if is_own else self.composition_path

    @property
    def status_schema(self) -> dict[str, Any]:
        """The XRD's schema of ``status`` at the referenceable version."""
        schema: dict[str, Any] = dig(self.schema, "properties", "status", default={})
        return schema

    @property
    def name_parameters(self) -> tuple[str, ...]:
        """The form parameters whose values name the order, dotted."""
        name_parameter = self._own(NAME_PARAMETER)
        return tuple(map(self.parameter, self.name_from)) or (name_parameter,)

    def name_prefix(self, parameter: str) -> str:
        """Return what is removed from the value of a parameter that names the order."""
        for path in self.name_from:
            hints = self.fields.get(path)
            if self.parameter(path) == parameter and hints and hints.picker:
                return hints.picker.prefix
        return ""

    @property
    def team_parameter(self) -> str:
        """The form parameter that names the team, dotted."""
        return self.parameter(self.team_from) if self.team_from else self._own(TEAM_PARAMETER)

    def _own(self, name: str) -> str:
        """Return the name of the form's own parameter that no field uses."""
        properties = dict(self.spec_schema.get("properties", {}))
        if self.unfold:
            properties |= dig(properties, self.unfold, "properties", default={})
        field_parameters = {self.aliases.get(field, field) for field in properties}
        return f"order_{name}" if name in field_parameters else name

    def parameter(self, path: FieldPath) -> str:
        """Return the form parameter that carries a field, dotted like the field."""
        if self.unfold:
            path = path.removeprefix(f"{self.unfold}.")
        head, dot, subpath = path.partition(".")
        return f"{self.aliases.get(head, head)}{dot}{subpath}"

    def by_field(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return a form's values by the XRD's fields; unknown parameters keep their names."""
        names = {parameter: name for name, parameter in self.aliases.items()}
        properties = self.spec_schema.get("properties", {})
        inner = dig(properties, self.unfold, "properties", default={}) if self.unfold else {}
        spec: dict[str, Any] = {}
        for parameter, value in values.items():
            name = names.get(parameter, parameter)
            if name in inner and name not in properties:
                group = spec.get(self.unfold)
                spec[self.unfold] = {**(group if isinstance(group, dict) else {}), name: value}
            else:
                spec[name] = value
        return spec

    def order_id(self, parameters: Mapping[str, object]) -> OrderId:
        """
        Return the order's id for the form's parameters.

        Raises:
            InvalidInputError: The result is not an RFC 1123 label.
        """
        names = self.name_parameters
        suffix = "-".join(
            _text(parameters, name).removeprefix(self.name_prefix(name)) for name in names
        )
        return OrderId(check_label(" and ".join(names), f"{self.name}-{suffix}"))

    def team(self, parameters: Mapping[str, object]) -> TeamName:
        """
        Return the ordering team; of a reference ``group:default/<team>`` only the name.

        Raises:
            InvalidInputError: It is not an RFC 1123 label.
        """
        name = self.team_parameter
        return TeamName(check_label(name, _text(parameters, name).removeprefix(_TEAM_PREFIX)))


def _text(parameters: Mapping[str, object], name: str) -> str:
    value = dig(parameters, *name.split("."))
    return "" if value is None else str(value)
