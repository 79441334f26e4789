"""
A kit as its XRD and kit.yaml say it, with every default filled in.

Plain values that other modules of this package project into files; ``core.kit.kit_reader`` makes
them. Field paths are dotted property paths below ``spec`` of the XR.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from orderkit.core.names import OrderId, TeamName, check_label
from orderkit.core.objects.kube_objects import Kind, Manifest, dig
from orderkit.core.schema.xrd import scope_of, xr_kind
from orderkit.core.yaml.documents import DataKinds

FieldPath = str
"""``teamName``, ``storage.sizeGb``: properties below ``spec``, dotted."""
NAME_PARAMETER, TEAM_PARAMETER = "name", "team"
"""The form's own parameters, where no field gives the order's name or team."""
_PART = re.compile(r"([a-z0-9-]*)(?:\{([A-Za-z0-9_.]+)\})?")
_TEAM_PREFIX = "group:default/"
"""What the catalog's picker puts in front of a team."""


class Direction(StrEnum):
    """How far a change may go."""

    ANY = "any"
    GROW = "grow"
    STEP = "step"
    NEVER = "never"


class How(StrEnum):
    """How a change reaches the branch: committed at once, or by a pull request."""

    DIRECT = "direct"
    REVIEW = "review"


@dataclass(frozen=True, slots=True)
class Picker:
    """A field that is chosen from the catalog."""

    kind: Literal["entity", "owner"]
    filter: tuple[Mapping[str, Any], ...] = ()
    value: Literal["reference", "name"] = "reference"
    """What of the entity the field holds."""


@dataclass(frozen=True, slots=True)
class Refers:
    """A field that names an object of the cluster, which must be there when it is entered."""

    api_version: str
    kind: str
    ready: str = ""
    """A path in the object, dotted, that must be true; empty: being there is enough."""


@dataclass(frozen=True, slots=True)
class When:
    """A field is shown only if `field` has one of `values`."""

    field: FieldPath
    values: tuple[str | int | float | bool, ...]


@dataclass(frozen=True, slots=True)
class Hints:
    """How one field looks in the form; empty or None: as the XRD gives it."""

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


@dataclass(frozen=True, slots=True)
class Hidden:
    """A field that gets a value of the platform when the pack is published."""

    value: str
    """The value's name in platform.yaml."""
    pattern: str = ""
    """What the value must match; empty: the XRD's pattern."""

    @property
    def sentinel(self) -> str:
        """What stands in the pack until the value is baked."""
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
    """Asking for what holds already is refused."""


@dataclass(frozen=True, slots=True)
class First:
    """What an order becomes before its end begins, because no function runs for a deleted XR."""

    set: Mapping[FieldPath, str | int | float | bool]
    until: Mapping[str, Any] = field(default_factory=dict)
    """Paths in the XR's status, dotted, and the values that are waited for."""
    why: str = ""
    requested: bool = False
    """A person asked for it when they typed the order's id: no review is waited for."""


@dataclass(frozen=True, slots=True)
class Survivor:
    """Something that outlives an order, in words."""

    text: str
    unless: Mapping[FieldPath, Any] = field(default_factory=dict)
    """It does not if these fields have these values."""
    name: str = ""
    """How the request to end an order asks for it to go too; empty: that cannot be asked."""
    ask: str = ""
    """What the form of the end asks for then, in words."""

    def holds(self, spec: Mapping[str, Any]) -> bool:
        """Say whether it outlives an order with this ``spec``."""
        conditions = self.unless.items()
        return not conditions or any(
            dig(spec, *path.split(".")) != value for path, value in conditions
        )


@dataclass(frozen=True, slots=True)
class End:
    """What is left of an order that has ended, and what comes first."""

    repository: Literal["archive", "delete"] = "archive"
    survives: tuple[Survivor, ...] = ()
    first: First | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """Where the XR's status says that whoever uses it has to stop. Paths below ``status``."""

    paused: FieldPath
    cause: FieldPath
    exhausted: tuple[str, ...]
    """Causes that mean: what was paid for is used up."""


@dataclass(frozen=True, slots=True)
class Lease:
    """How long an order lives, for example ``30d``; empty: without end."""

    default: str = ""
    maximum: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """An order as somebody could place it: values of the form."""

    name: str
    title: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class KindRef:
    """A kind that stations compose or read. `resource` is its plural; empty: not said."""

    api_version: str
    kind: str
    resource: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """What the platform offers: a form, a skeleton, an XRD, and how orders are named."""

    name: str
    xrd: Manifest
    title: str = ""
    description: str = ""
    owner: str = "group:default/platform"
    type: str = "service"
    tags: tuple[str, ...] = ()
    name_from: tuple[FieldPath, ...] = ()
    """Fields that give the order its name; empty: the form asks for it."""
    team_from: FieldPath = ""
    """The field that names the team; empty: the form asks for it."""
    xr_name: str = "order"
    xr_namespace: str = ""
    """Namespace of the XR, with ``{field}`` for a field's value; empty: as it is delivered."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Top-level field -> form parameter, where they differ."""
    pages: tuple[Page, ...] = ()
    fields: Mapping[FieldPath, Hints] = field(default_factory=dict)
    hidden: Mapping[FieldPath, Hidden] = field(default_factory=dict)
    links: tuple[Link, ...] = ()
    changes: tuple[KitChange, ...] = ()
    """Empty: every visible field may change, directly."""
    end: End = field(default_factory=End)
    lease: Lease = field(default_factory=Lease)
    gate: Gate | None = None
    examples: tuple[Example, ...] = ()
    composes: tuple[KindRef, ...] = ()
    requires: tuple[KindRef, ...] = ()
    data_kinds: DataKinds = field(default_factory=dict)
    """Kinds of which the kit says that they hold data, or do not."""
    facts: tuple[Manifest, ...] = ()
    """Objects that stations find when the kit is tried; never delivered."""

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
        """Texts of the XR's namespace, each with the field whose value follows it, or nothing."""
        parts = _PART.findall(self.xr_namespace)
        return tuple((text, path) for text, path in parts if text or path)

    def namespace_of(self, spec: Mapping[str, Any]) -> str:
        """Return the XR's namespace as its fields make it; empty if kit.yaml says none."""
        return "".join(
            text + (_text(spec, path) if path else "") for text, path in self.namespace_parts
        )

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

    @property
    def team_parameter(self) -> str:
        """The form parameter that names the team, dotted."""
        return self.parameter(self.team_from) if self.team_from else self._own(TEAM_PARAMETER)

    def _own(self, name: str) -> str:
        """Return the name of a parameter of the form itself: no field has it."""
        field_parameters = {
            self.aliases.get(field, field) for field in self.spec_schema.get("properties", {})
        }
        return f"order_{name}" if name in field_parameters else name

    def parameter(self, path: FieldPath) -> str:
        """Return the form parameter that carries a field, dotted like the field."""
        head, dot, subpath = path.partition(".")
        return f"{self.aliases.get(head, head)}{dot}{subpath}"

    def order_id(self, parameters: Mapping[str, object]) -> OrderId:
        """
        Name an order by its parameters.

        Raises:
            InvalidInputError: The result is no RFC 1123 label.
        """
        names = self.name_parameters
        suffix = "-".join(_text(parameters, name) for name in names)
        return OrderId(check_label(" and ".join(names), f"{self.name}-{suffix}"))

    def team(self, parameters: Mapping[str, object]) -> TeamName:
        """
        Return the team that orders; a reference ``group:default/<team>`` is read as its name.

        Raises:
            InvalidInputError: It is no RFC 1123 label.
        """
        name = self.team_parameter
        return TeamName(check_label(name, _text(parameters, name).removeprefix(_TEAM_PREFIX)))


def _text(parameters: Mapping[str, object], name: str) -> str:
    value = dig(parameters, *name.split("."))
    return "" if value is None else str(value)


def spelt_out(name: str) -> str:
    """
    Write an identifier as a title: ``sizeGb`` is "Size Gb", ``XAgentBudget`` is "Agent Budget".

    The ``X`` that Crossplane's kinds begin with by habit is left out.
    """
    bare = re.sub(r"^X(?=[A-Z])", "", name)
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[-_.]+", " ", bare).split()
    return " ".join(word[:1].upper() + word[1:] for word in words)


def plural_of(kind: str) -> str:
    """Return a plausible plural of a kind, lower case, by English rules."""
    name = kind.lower()
    if name.endswith("endpoints"):
        return name
    if name.endswith(("s", "x", "z", "ch", "sh")):
        return f"{name}es"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}s"
