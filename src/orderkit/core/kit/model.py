"""
The model of a kit: the content of its XRD and kit.yaml with all defaults.

Plain values that ``core.kit.kit_reader`` makes. Field paths are dotted property paths below
``spec`` of the XR.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from ground.names import OrderId, TeamName, check_label
from ground.objects.kube_objects import Kind, Manifest, dig
from kubeschema.xrd import scope_of, xr_kind
from orderkit.core.kit.lease_approval_windows import Approval, Lease, MaintenanceWindow
from yamlfiles.documents import DataKinds

FieldPath = str
"""``teamName``, ``storage.sizeGb``: properties below ``spec``, dotted."""
NAME_PARAMETER, TEAM_PARAMETER = "name", "team"
"""The form's own parameters, used if no field holds the order's name or team."""
_PART = re.compile(r"([a-z0-9-]*)(?:\{([A-Za-z0-9_.]+)\})?")
_TEAM_PREFIX = "group:default/"
"""The prefix that the catalog's picker adds to a team."""


class Direction(StrEnum):
    """How far a change may go."""

    ANY = "any"
    GROW = "grow"
    STEP = "step"
    NEVER = "never"


class How(StrEnum):
    """How a change reaches the branch: directly, or by a pull request."""

    DIRECT = "direct"
    REVIEW = "review"


@dataclass(frozen=True, slots=True)
class Picker:
    """A field that is chosen from the catalog."""

    kind: Literal["entity", "owner"]
    filter: tuple[Mapping[str, Any], ...] = ()
    value: Literal["reference", "name"] = "reference"
    """The part of the entity that the field holds."""

    @property
    def prefix(self) -> str:
        """What the field's references begin with; empty if the field holds whole references."""
        kinds = {str(entity_filter.get("kind", "")).lower() for entity_filter in self.filter}
        is_name = self.value == "name" and len(kinds) == 1
        return f"{kinds.pop()}:default/" if is_name else ""


@dataclass(frozen=True, slots=True)
class Refers:
    """A field that names an object of the cluster, which must exist when it is entered."""

    api_version: str
    kind: str
    ready: str = ""
    """A dotted path in the object that must be true; empty: it only has to exist."""


@dataclass(frozen=True, slots=True)
class When:
    """A field is shown only if `field` has one of `values`."""

    field: FieldPath
    values: tuple[str | int | float | bool, ...]


@dataclass(frozen=True, slots=True)
class Hints:
    """How a field looks in the form; empty or None: as in the XRD."""

    title: str = ""
    help: str = ""
    placeholder: str = ""
    widget: str = ""
    autofocus: bool = False
    error: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    picker: Picker | None = None
    refers: Refers | None = None
    ask: Literal["order", "later"] = "order"
    """``later``: only forms of changes show it."""
    when: When | None = None
    advanced: bool | None = None
    """Whether it is on the last page; None: if its name or the XRD says so."""
    secret: bool | None = None
    """Whether it holds a secret, which no form asks for; None: if its name says so."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """A field that publishing fills with a value of the platform."""

    value: str
    """The value's name in platform.yaml."""
    pattern: str = ""
    """The pattern of the value; empty: the XRD's pattern."""

    @property
    def sentinel(self) -> str:
        """The placeholder in the pack that publishing replaces."""
        return f"__ORDERKIT_{self.value}__"


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the form."""

    title: str
    fields: tuple[FieldPath, ...]
    description: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A link that is shown when the order is placed; either `url` or `entity_ref`."""

    title: str
    url: str = ""
    entity_ref: str = ""
    icon: str = ""


@dataclass(frozen=True, slots=True)
class AtLeast:
    """A number of the XR's status below which the field of a change may not be set."""

    path: FieldPath
    """Below ``status``, dotted."""
    title: str
    why: str


@dataclass(frozen=True, slots=True)
class KitChange:
    """A change of a living order."""

    name: str
    title: str
    fields: tuple[FieldPath, ...]
    direction: Direction = Direction.ANY
    who: tuple[str, ...] = ("team",)
    """``team``, ``requester``, ``platform`` or references of the catalog."""
    how: How = How.DIRECT
    warning: str = ""
    differs: bool = False
    """A request for the present value is refused."""
    at_least: AtLeast | None = None


@dataclass(frozen=True, slots=True)
class First:
    """A change before the end of an order, because no function runs for a deleted XR."""

    set: Mapping[FieldPath, str | int | float | bool]
    until: Mapping[str, Any] = field(default_factory=dict)
    """Dotted paths in the XR's status, and the values to wait for."""
    why: str = ""
    requested: bool = False
    """A person confirmed it with the order's id: no review is needed."""


@dataclass(frozen=True, slots=True)
class Survivor:
    """Something that outlives an order, in words."""

    text: str
    unless: Mapping[FieldPath, Any] = field(default_factory=dict)
    """It does not outlive the order if these fields have these values."""
    name: str = ""
    """The name by which an end can remove it too; empty: it cannot."""
    ask: str = ""
    """The question in the form of the end."""

    def holds(self, spec: Mapping[str, Any]) -> bool:
        """Say whether it outlives an order with this ``spec``."""
        conditions = self.unless.items()
        return not conditions or any(
            dig(spec, *path.split(".")) != value for path, value in conditions
        )


@dataclass(frozen=True, slots=True)
class End:
    """What remains of an ended order, and what happens before its end."""

    repository: Literal["archive", "delete"] = "archive"
    survives: tuple[Survivor, ...] = ()
    first: First | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """The paths below ``status`` that tell the user of an XR to stop."""

    paused: FieldPath
    cause: FieldPath
    exhausted: tuple[str, ...]
    """Causes that mean that the budget is used up."""


@dataclass(frozen=True, slots=True)
class KitOutput:
    """A value that people order the kit for, below the XR's status or in a Secret."""

    name: str
    title: str
    path: FieldPath = ""
    """Below ``status``; empty for a Secret's value."""
    secret_name: str = ""
    """The name of a connection Secret, with ``{spec.field}`` for a value; empty: `path`."""
    secret_namespace: str = ""
    """Likewise; empty: that of the XR, or of the Secret that the order composes."""
    secret_key: str = ""
    is_secret: bool = False
    """Shown to the team's members only, and only when they ask for it."""
    is_link: bool = False


@dataclass(frozen=True, slots=True)
class KitFact:
    """A value below the XR's status that is worth seeing."""

    name: str
    title: str
    path: FieldPath
    unit: str = ""
    format: Literal["", "number", "percent", "bytes"] = ""
    is_spend: bool = False
    """It is money that was really spent, as the kit measures it."""


@dataclass(frozen=True, slots=True)
class KitAttention:
    """What somebody should look at although the order is Ready."""

    when: str
    """A CEL condition over ``spec``, ``status`` and ``metadata`` of the XR."""
    sentence: str
    """With ``{status.field}`` for a value."""
    change: str = ""
    """The change that helps; empty: none."""
    button: str = ""


@dataclass(frozen=True, slots=True)
class Import:
    """How orders take over resources that exist in the cloud: first observed, then managed."""

    names: Mapping[str, FieldPath]
    """Composed part -> the field with the external name of what it takes over, if it does."""
    manage: FieldPath
    """The field that is true once the parts may change what they took over."""


@dataclass(frozen=True, slots=True)
class AcceptedDanger:
    """A danger of plans that the kit accepts for all of its orders."""

    code: str
    part: str
    """Path of the part in plans; ``*`` stands for any text."""
    reason: str
    words: str = ""
    """Only if the danger's sentence has these words."""


@dataclass(frozen=True, slots=True)
class Example:
    """An example order: values of the form."""

    name: str
    title: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class KindRef:
    """A kind that stations compose or read. `resource` is its plural; empty: not given."""

    api_version: str
    kind: str
    resource: str = ""
    binds: tuple[str, ...] = ()
    """Names of the roles that composed bindings refer to; empty: any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """An offer of the platform: form, skeleton, XRD, and the naming of its orders."""

    name: str
    xrd: Manifest
    title: str = ""
    description: str = ""
    owner: str = "group:default/platform"
    type: str = "service"
    tags: tuple[str, ...] = ()
    name_from: tuple[FieldPath, ...] = ()
    """Fields that name the order; empty: the form asks for a name."""
    team_from: FieldPath = ""
    """The field that names the team; empty: the form asks for the team."""
    xr_name: str = "order"
    xr_namespace: str = ""
    """Namespace of the XR, with ``{field}`` for a field's value; empty: that of the Application."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Top-level field -> form parameter, where they differ."""
    unfold: FieldPath = ""
    """A top-level group whose fields stand in the form as if they were beside it."""
    yaml_fields: tuple[FieldPath, ...] = ()
    """Optional fields that the form takes together, as one text of YAML."""
    pages: tuple[Page, ...] = ()
    fields: Mapping[FieldPath, Hints] = field(default_factory=dict)
    hidden: Mapping[FieldPath, Hidden] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    changes: tuple[KitChange, ...] = ()
    """Empty: every visible field may change, directly."""
    end: End = field(default_factory=End)
    lease: Lease = field(default_factory=Lease)
    gate: Gate | None = None
    imports: Import | None = None
    approval: Approval = field(default_factory=Approval)
    windows: tuple[MaintenanceWindow, ...] = ()
    """Empty: changes are delivered at any time."""
    examples: tuple[Example, ...] = ()
    composes: tuple[KindRef, ...] = ()
    requires: tuple[KindRef, ...] = ()
    public_keys: frozenset[str] = frozenset()
    """Keys of the order's Secrets whose values everybody may see."""
    data_kinds: DataKinds = field(default_factory=dict)
    """Whether kinds hold data, as the kit declares."""
    accepts: tuple[AcceptedDanger, ...] = ()
    """Dangers of plans that are listed as accepted."""
    outputs: tuple[KitOutput, ...] = ()
    facts: tuple[KitFact, ...] = ()
    attention: tuple[KitAttention, ...] = ()
    fixtures: tuple[Manifest, ...] = ()
    """Objects for stations when ``kit check`` runs them; never delivered."""

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
        return schema

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
