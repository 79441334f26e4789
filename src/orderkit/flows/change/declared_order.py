"""
Order what a file declares: an XR of a kit, as somebody would apply it to a cluster.

Everything is checked before anything is written, and all problems are reported together. The XR is
turned into answers of the kit's form, so that the order is the same as one from a portal. If the
order lives already, the file is compared with its newest commit: the same values write nothing, and
other values are a change under the kit's rules, which only ``change`` makes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any

from ground.errors import (
    AlreadyOrderedError,
    InvalidInputError,
    OrderkitError,
    TooFastError,
    every,
    raise_problems,
)
from ground.names import TeamName, check_requester
from ground.objects.kube_objects import Kind, Manifest, metadata
from ground.objects.values import ABSENT, with_value
from ground.suggestions import did_you_mean
from kubeschema import field_paths
from kubeschema.validate import Finding, Validator
from orderkit.core.kit.change_forms import by_form_names, order_data
from orderkit.core.kit.compositions import choice_findings
from orderkit.core.kit.form_values import merged, names_alone
from orderkit.core.kit.literals import YAML_PARAMETER
from orderkit.core.kit.model import Kit
from orderkit.core.kit.xrd_fields import KitField, fields_of
from orderkit.core.order.change import FieldDifference, FieldEdit, differences
from orderkit.core.order.ledger import OrderEntry, team_namespace
from orderkit.flows.change import Changed, ChangeRequest, change
from orderkit.flows.order import placing
from orderkit.flows.order.live_order import find_living, read_xr
from orderkit.flows.order.placing import Ordered, TaskRequest
from orderkit.flows.platform import Platform, ledger_snapshot, published_pack
from orderkit.flows.template.published_templates import TemplateSource, kit_template
from orderkit.ports.forge import agent_notes
from orderkit.ports.requesters import Requester
from orderkit.ports.urgency import background
from softwaretemplates.template import check_fixed, read_assignments
from yamlfiles.positions import LocatedManifest, located_manifests

_TEAM_NAMESPACE = team_namespace(TeamName(""))
_KEYS = {"apiVersion", "kind", "metadata", "spec"}
_EMPTY: tuple[Any, ...] = ([], {}, None)
"""What a form treats as not entered."""
_TURNS = 5
"""How often the forge's limit is waited for, for one order of many."""
_INDEX = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class DeclaredFile:
    """A file with an XR, and ``field=value`` texts for what it does not hold."""

    name: str
    data: bytes
    assignments: Mapping[str, str]
    """By form parameter; they win over the file."""
    requester: str
    number: int | None = None
    """Which of its objects, from 0; None: it has one."""


@dataclass(frozen=True, slots=True)
class DeclaredOrder:
    """The order that a file declares, checked against form and XRD."""

    entry: OrderEntry
    kit: Kit
    values: Mapping[str, Any]
    """Answers of the kit's form."""
    spec: Mapping[str, Any]
    """The spec that the order will have, or should have if it lives already."""
    only_later: tuple[FieldDifference, ...]
    """Fields that only changes of a living order set."""
    requester: Requester


@dataclass(frozen=True, slots=True)
class ChangeTerms:
    """How a living order with other values is changed; not at all without `is_allowed`."""

    is_allowed: bool = False
    reason: str = ""
    accept_loss: bool = False


@dataclass(frozen=True, slots=True)
class Declared:
    """What became of it: `ordered`, or `changed` if a living order has, or had, other values."""

    entry: OrderEntry
    ordered: Ordered | None = None
    changed: Changed | None = None

    @property
    def result(self) -> str:
        """What became of it, in a word."""
        if self.changed is not None:
            number = f" #{self.changed.pull.number}" if self.changed.pull else ""
            return f"{self.changed.state}{number}"
        return "ordered" if self.ordered and self.ordered.created else "unchanged"


# --- reading


def read_every(platform: Platform, file: DeclaredFile) -> tuple[DeclaredOrder, ...]:
    """
    Read a file with any number of orders, and check all of them. Nothing is written.

    Raises:
        InvalidInputError, SeveralProblemsError: What is refused in any of them; or one is there
            twice.
        ManifestError: The file is not a readable manifest.
    """
    count = len(located_manifests(file.name, file.data))
    if count <= 1:
        return (read_declared(platform, file),)
    parts = [replace(file, number=number) for number in range(count)]
    found = every([partial(read_declared, platform, part) for part in parts])
    names = [declared.entry.order for declared in found]
    for name in sorted({name for name in names if names.count(name) > 1}):
        hint = "write each order once"
        raise InvalidInputError("--file", name, f"is declared twice in {file.name}", hint=hint)
    return tuple(found)


def read_declared(platform: Platform, file: DeclaredFile) -> DeclaredOrder:
    """
    Read a file and check it. Nothing is written.

    Raises:
        InvalidInputError, SeveralProblemsError: What the file, the form or the XRD refuse.
        ManifestError: The file is not a readable manifest.
    """
    requester = Requester(check_requester(file.requester))
    located = _only_object(file)
    kit = _kit_of(platform, file, located)
    source = kit_template(platform, kit.name)
    xr = located.manifest
    values, spec = _answers(source, kit, xr, file)
    secrets = list(_secrets(kit, spec))
    findings = _findings(kit, xr, spec, but=[problem.field for problem in secrets])
    refused = [_refusal(file, located, spec, finding) for finding in findings]
    problems: list[OrderkitError] = [*_strange_keys(xr), *secrets, *refused]
    stand_ins = [InvalidInputError(_parameter(kit, finding), None, "") for finding in findings]
    form_problems = source.template.problems(values, stand_ins)[len(stand_ins) :]
    stand_in_names = {stand_in.field.partition(".")[0] for stand_in in stand_ins}
    problems += (p for p in form_problems if _first_name(p) not in stand_in_names)
    every([lambda: check_fixed(source.template, values)], problems)
    entry = OrderEntry(kit.team(values), kit.order_id(values))
    every([lambda: _check_place(kit, entry, xr, spec)])
    task = TaskRequest(kit.name, values, requester, f"order-{entry.order}")
    rendered = placing.rendered_xr(platform, source, task)["spec"]
    only_later = _only_later(kit, file, located, names_alone(kit, spec), rendered)
    for difference in only_later:
        rendered = with_value(rendered, difference.steps, difference.old)
    return DeclaredOrder(entry, kit, values, rendered, only_later, requester)


def _only_object(file: DeclaredFile) -> LocatedManifest:
    objects = located_manifests(file.name, file.data)
    if file.number is not None:
        return objects[file.number]
    if len(objects) != 1:
        raise InvalidInputError(
            "--file", file.name, f"holds {len(objects)} objects, and an order is one",
            hint="write one XR of a kit into it; give each order a file of its own",
        )  # fmt: skip
    return objects[0]


def _kit_of(platform: Platform, file: DeclaredFile, located: LocatedManifest) -> Kit:
    kind = Kind.of(located.manifest)
    pack = published_pack(platform)
    kits = {(kit.kind.group, kit.kind.kind): kit for kit in pack.kits()}
    kit = kits.get((kind.group, kind.kind))
    if kit is None:
        names = {f"{name} ({group})": name for group, name in kits}
        kind_text = f"{kind.kind} ({kind.group})"
        raise InvalidInputError(
            "kind", kind_text, f"is not of a kit of this platform ({file.name}:{located.line})",
            hint=did_you_mean(kind_text, names, f"kinds: {', '.join(names)}"),
        )  # fmt: skip
    pack.check_only(kit.name)
    return kit


def _answers(
    source: TemplateSource, kit: Kit, xr: Manifest, file: DeclaredFile
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the answers of the form, and the spec with what was given beside the file."""
    declared_spec = xr.get("spec")
    spec = dict(declared_spec) if isinstance(declared_spec, dict) else {}
    name, namespace = (str(metadata(xr).get(key) or "") for key in ("name", "namespace"))
    team = namespace.removeprefix(_TEAM_NAMESPACE)
    team = team if team != namespace and kit.namespaced and not kit.xr_namespace else ""
    data = order_data(kit, spec, order=name, team=team)
    identity = {kit.name_parameters[0]: name} if not kit.name_from else {}
    identity |= {} if kit.team_from else {kit.team_parameter: team}
    data = {key: value for key, value in data.items() if identity.get(key) != ""}
    assignments = by_form_names(kit, source.template.properties, file.assignments)
    values = read_assignments(source.template, assignments, data)
    assigned = {
        parameter: values[parameter]
        for parameter in assignments
        if parameter not in identity and parameter != YAML_PARAMETER
    }
    return values, merged(spec, names_alone(kit, kit.by_field(assigned)))


def _strange_keys(xr: Manifest) -> Iterator[InvalidInputError]:
    """Yield what an order has no place for: its kit writes labels, the cluster its status."""
    for key in sorted(xr.keys() - _KEYS):
        yield InvalidInputError(key, xr[key], "is not part of an order", hint="leave it out")
    for key in sorted(metadata(xr).keys() - {"name", "namespace"}):
        value = metadata(xr)[key]
        rule = "is written by the kit, not by whoever orders"
        yield InvalidInputError(f"metadata.{key}", value, rule, hint="leave it out")


def _secrets(kit: Kit, spec: Mapping[str, Any]) -> Iterator[InvalidInputError]:
    for top in fields_of(kit).top:
        for field in top.secrets():
            path = field.path.partition("[]")[0]
            if field_paths.value_at({"spec": spec}, f"spec.{path}") is not None:
                rule = (
                    "looks like a secret, and everybody who may read the repository could read it"
                )
                way_out = "put it into a Secret and refer to that"
                yield InvalidInputError(f"spec.{path}", "***", rule, hint=way_out)


def _findings(kit: Kit, xr: Manifest, spec: Mapping[str, Any], *, but: list[str]) -> list[Finding]:
    """Return what the XRD refuses; the platform fills in hidden fields, the kit the name."""
    meta = {"name": "order", **metadata(xr)}
    judged = {**xr, "metadata": meta, "spec": spec}
    findings = (*Validator(kit.xrd).check(judged).findings, *choice_findings(kit, judged))
    skipped = [*but, *(f"spec.{path}" for path in kit.hidden)]
    return [f for f in findings if not any(_is_at(f.path, path) for path in skipped)]


def _is_at(path: str, above: str) -> bool:
    return path == above or path.startswith((f"{above}.", f"{above}["))


def _refusal(
    file: DeclaredFile, located: LocatedManifest, spec: Mapping[str, Any], finding: Finding
) -> InvalidInputError:
    value = field_paths.value_at({**located.manifest, "spec": spec}, finding.path)
    rule = f"is refused: {finding.message}{_place(file, located, finding.path)}"
    return InvalidInputError(finding.path, value, rule, hint=finding.hint)


def _place(file: DeclaredFile, located: LocatedManifest, path: str) -> str:
    mark = located.find(field_paths.steps_of(path))
    return f" ({PurePath(file.name).name}:{(mark or (located.line, 0))[0]})"


def _parameter(kit: Kit, finding: Finding) -> str:
    path = finding.path.removeprefix("spec.")
    return kit.parameter(_INDEX.sub(r".\1", path))


def _first_name(problem: OrderkitError) -> str:
    return problem.field.partition(".")[0] if isinstance(problem, InvalidInputError) else ""


def _check_place(kit: Kit, entry: OrderEntry, xr: Manifest, spec: Mapping[str, Any]) -> None:
    """Refuse a name or a namespace that is not the order's; both may be left out."""
    problems = []
    name, namespace = (metadata(xr).get(key) for key in ("name", "namespace"))
    expected = kit.xr_name_of(entry.order, spec)
    if name not in (None, expected, entry.order, entry.order.removeprefix(f"{kit.name}-")):
        rule = f"is not '{expected}', the name that these values give the order"
        problems.append(InvalidInputError("metadata.name", name, rule, hint="leave it out"))
    home = kit.namespace_of(spec) or team_namespace(entry.team) if kit.namespaced else None
    if namespace not in (None, home):
        rule = (
            f"is not '{home}', where this order lives" if home else "has no place: its XR has none"
        )
        problems.append(
            InvalidInputError("metadata.namespace", namespace, rule, hint="leave it out")
        )
    raise_problems(problems)


def _only_later(
    kit: Kit,
    file: DeclaredFile,
    located: LocatedManifest,
    spec: Mapping[str, Any],
    rendered: Mapping[str, Any],
) -> tuple[FieldDifference, ...]:
    """
    Return the fields that only changes set, which the rendered order therefore lacks.

    Raises:
        InvalidInputError, SeveralProblemsError: The file sets what the order would silently lack.
    """
    later, problems = [], []
    for difference in differences(spec, rendered):
        if difference.old is ABSENT or difference.old in _EMPTY:
            continue
        if any(field.hints.ask == "later" for field in _fields_at(kit, difference)):
            later.append(difference)
            continue
        path = f"spec.{difference.path}"
        rule = f"is not asked for by the order's form{_place(file, located, path)}"
        problems.append(InvalidInputError(path, difference.old, rule, hint="leave it out"))
    raise_problems(problems)
    return tuple(later)


def _fields_at(kit: Kit, difference: FieldDifference) -> list[KitField]:
    """Return the field of a difference and those around it."""
    path = ".".join(str(step) for step in difference.steps)
    return [field for field in fields_of(kit).walk() if _is_at(path, field.path)]


# --- ordering


def is_living(platform: Platform, declared: DeclaredOrder) -> bool:
    """Say whether the order is delivered, and neither ending nor waiting for approval."""
    entry, paths = declared.entry, ledger_snapshot(platform).blobs
    is_elsewhere = entry.end_path in paths or entry.waiting_path in paths
    return entry.application_path in paths and not is_elsewhere


def place_declared(
    platform: Platform,
    declared: DeclaredOrder,
    terms: ChangeTerms,
    *,
    on_step: Callable[[str, str], None],
) -> Declared:
    """
    Order what a file declares, or bring a living order to it. Idempotent; does not wait.

    Raises:
        AlreadyOrderedError: The order has other values in a way that no change can mend.
        InvalidInputError: A new order cannot have a field that only changes set.
        OrderkitError: What `placing.order` and `flows.change.change` raise.
    """
    lives = is_living(platform, declared)
    if lives:
        changed = _changed(platform, declared, terms)
        if changed.state != "unchanged":
            return Declared(declared.entry, changed=changed)
    elif declared.only_later:
        field = declared.only_later[0]
        raise InvalidInputError(
            f"spec.{field.path}", field.old, "is set by changes of a live order only",
            hint="leave it out, order, and put it in again",
        )  # fmt: skip
    request = TaskRequest(
        declared.kit.name,
        declared.values,
        declared.requester,
        on_step=lambda event: on_step(event.step, event.summary),
    )
    ordered = None
    try:
        ordered = placing.order(platform, request, wait_s=None)
    except AlreadyOrderedError:
        if not lives:  # else changes since it was ordered made it what the file says
            raise
    return Declared(declared.entry, ordered)


def place_in_turn(
    platform: Platform,
    declared: DeclaredOrder,
    terms: ChangeTerms,
    *,
    on_step: Callable[[str, str], None],
) -> Declared:
    """
    Do what `place_declared` does for one of many: behind people, and as fast as the forge allows.

    Raises:
        TooFastError: The forge took nothing, however often it was asked when it had said.
        OrderkitError: See `place_declared`.
    """
    for _ in range(_TURNS - 1):
        try:
            with background():
                return place_declared(platform, declared, terms, on_step=on_step)
        except TooFastError as error:
            platform.clock.sleep(error.seconds)
    # the last time, so that its refusal is raised
    with background():
        return place_declared(platform, declared, terms, on_step=on_step)


def planned_change(platform: Platform, declared: DeclaredOrder) -> Changed:
    """Return the change that would bring a living order to the file. Nothing is written."""
    return _changed(platform, declared, ChangeTerms())


def _changed(platform: Platform, declared: DeclaredOrder, terms: ChangeTerms) -> Changed:
    """Change a living order to what the file says; only plan it if no change is allowed."""
    order = declared.entry.order
    live = find_living(platform, order)
    if live.kit.name != declared.kit.name:
        raise AlreadyOrderedError(
            f"{order} is an order of kit '{live.kit.name}'", hint="order under another name"
        )
    head = platform.forge.head(live.repository)
    if head is None:
        return Changed(order=order, state="unchanged", operation="")
    current = read_xr(platform, live, head).xr.get("spec") or {}
    edits = tuple(
        FieldEdit(difference.path, "unset")
        if difference.new is ABSENT
        else FieldEdit(difference.path, "set", difference.new)
        for difference in differences(current, declared.spec, maps_whole=True)
        if _is_declared(declared, difference)
    )
    if not edits:
        return Changed(order=order, state="unchanged", operation="", commit=head)
    request = ChangeRequest(
        order=order,
        edits=edits,
        requester=declared.requester,
        base=head,
        reason=terms.reason,
        dry_run=not terms.is_allowed,
        accept_loss=terms.accept_loss,
        trailers=agent_notes(declared.requester.agent),
    )
    return change(platform, request)


def _is_declared(declared: DeclaredOrder, difference: FieldDifference) -> bool:
    """Say whether a difference is the file's business, not the platform's or a later change's."""
    fields = _fields_at(declared.kit, difference)
    if not fields or any(field.hidden for field in fields):
        return False
    set_later = any(field.hints.ask == "later" or field.unseen for field in fields)
    return not set_later or difference.new is not ABSENT
