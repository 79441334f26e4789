"""
Place an order, or run any other scaffolder template: one story for the command line and portals.

A template comes from the platform's published pack or from a file. Its values pass the form; a
kit's order is checked against the ledger, the XRD and its team's limits before anything is written.
The steps then run as the portal would run them: the pack is the program. Everything they write is
*ensure*: after a crash at any point the same command finishes the same order, and a second order of
the same id with other values is refused.

The step that registers the order is answered in this process (``flows.order.template_services``),
by the very flow that the service runs. It goes to the service over HTTP in two cases: platform.yaml
says that the service registers (``spec.service.registers``), or the forge does not let these
credentials write the ledger.

`ProvidedEntity` is the catalog of a portal whose plugin reads orders from the service, as an
order's steps see it. Registering the order's own location as well would give one entity from two
sources. So ``catalog:register`` returns the plugin's entity and registers nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ground.errors import IncompleteError, InvalidInputError, RemoteError, every
from ground.names import CommitSha, OrderId, RepoId, TeamName, check_requester  # fmt: skip
from ground.objects.kube_objects import Manifest
from orderkit.core.kit.change_forms import by_form_names
from orderkit.core.kit.form_values import merged, read_settings, yaml_roots
from orderkit.core.kit.literals import YAML_PARAMETER
from orderkit.core.kit.model import Kit
from orderkit.core.order import order_file
from orderkit.core.order.ledger import OrderEntry
from orderkit.core.order.order_check import check_order_files
from orderkit.flows.order import cost_limit, order_report
from orderkit.flows.order.awaiting import FailsTooLong, until_ready
from orderkit.flows.order.live_order import placed_xr
from orderkit.flows.order.order_report import KnownReads, OrderReport
from orderkit.flows.order.registration_check import check_free, check_references
from orderkit.flows.order.template_services import RegisteringPortal, publish, publish_files
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.flows.team.limit_check import check_may_order, check_values
from orderkit.flows.template import scaffolder
from orderkit.flows.template.published_templates import (
    TemplateSource,
    kit_template,
    published_template,
)
from orderkit.flows.template.scaffolder import (
    PublishRequest,
    Services,
    StepEvent,
    TaskOptions,
    TaskResult,
)
from orderkit.ports.catalog import Catalog, Location
from orderkit.ports.forge import Forge
from orderkit.ports.portal import Portal
from orderkit.ports.requesters import Requester
from softwaretemplates.template import Template, check_fixed, read_assignments


@dataclass(frozen=True, slots=True)
class ProvidedEntity:
    """A `catalog` that gets the entity of `order` from a plugin of the portal."""

    catalog: Catalog
    order: OrderId

    def register(self, target: str) -> Sequence[str]:  # noqa: ARG002 - nothing is read from there
        """Return the entity that the plugin makes."""
        return [f"component:default/{self.order}"]

    def unregister(self, target: str) -> bool:
        """Remove a location from the time before the plugin."""
        return self.catalog.unregister(target)

    def locations(self) -> Sequence[Location]:
        return self.catalog.locations()

    def entity(self, ref: str) -> Manifest | None:
        return self.catalog.entity(ref)


SECRET_SHOWN = "*" * 10
"""What the form posts in the place of a secret (measured)."""

OnStep = Callable[[StepEvent], None]
Permit = Callable[[TeamName | None], None]


@dataclass(frozen=True, slots=True)
class TaskRequest:
    """
    What somebody asks for: a template of the pack, by its folder or name, and form values.

    `id` is the asker's own of the task; empty: made from template, values and requester.
    `authorization` goes along with what the steps send through the portal's proxy, as it would from
    the portal. `permit` raises unless the caller may order for the team that the values name; None:
    the template is not a kit's, and names no team.
    """

    template: str
    values: Mapping[str, Any]
    requester: Requester
    id: str = ""
    authorization: str = field(default="", repr=False)
    permit: Permit = field(default=lambda _: None, repr=False)
    assignments: Mapping[str, str] = field(default_factory=dict)
    """``field=value`` texts, for `order` and `run`; they win over `values`."""
    options: TaskOptions = field(default_factory=TaskOptions)
    on_step: OnStep = lambda _event: None


@dataclass(frozen=True, slots=True)
class TaskDone:
    """`created` is False where the same order was there already."""

    template: str
    entry: OrderEntry | None
    """None: it is not a kit's template."""
    created: bool
    result: TaskResult
    commit: CommitSha | None = None
    """What the order's repository holds, as it was published."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """`created` is False when the same order was there already. `report` is its state now."""

    order: OrderId
    team: TeamName
    repository: RepoId
    commit: CommitSha
    created: bool
    report: OrderReport
    outputs: Mapping[str, Any]


def _entry_of(source: TemplateSource, parameters: Mapping[str, Any]) -> OrderEntry | None:
    """Name the order of a kit's template by its values."""
    if source.kit is None:
        return None
    values = source.template.validate(parameters)
    return OrderEntry(source.kit.team(values), source.kit.order_id(values))


def order(
    platform: Platform,
    request: TaskRequest,
    *,
    on_wait: Callable[[str], object] | None = None,
    wait_s: float | None = 120.0,
) -> Ordered:
    """
    Place an order of a kit, or find the same one placed, and wait until it is Ready.

    Idempotent, resumable.

    Args:
        on_wait: Told again and again what is waited for.
        wait_s: None: do not wait.

    Raises:
        NotFoundError: No such kit or team.
        RefusedError: The team may not have it: its kits, or one of its limits.
        InvalidInputError: A value the form, the XRD or the naming rules refuse.
        AlreadyOrderedError: Another order has this id, or it is ending.
        IncompleteError: It is placed but not Ready in time.
    """
    check_requester(request.requester.ref)
    source = kit_template(platform, request.template)
    assignments = by_form_names(source.kit, source.template.properties, request.assignments)
    values = read_assignments(source.template, assignments, request.values)
    entry = _entry_of(source, values)
    if entry is None:
        raise AssertionError("a kit's template names an order")
    task = replace(request, values=values, id=f"order-{entry.order}")
    done = _place(platform, source, task, entry, _portal(platform, request))
    head = done.commit or platform.forge.head(entry.repository)
    if head is None:
        raise InvalidInputError(
            "template.yaml", request.template, f"published no {entry.repository}"
        )
    if wait_s is not None:
        report = until_ready(
            platform,
            entry.order,
            timeout_s=wait_s,
            is_hopeless=FailsTooLong(platform.clock),
            on_wait=on_wait,
        )
    else:
        report = order_report.status(platform, entry.order, KnownReads(pack=source.pack))
    head = report.state.head or head
    return Ordered(
        entry.order, entry.team, entry.repository, head, done.created, report, done.result.outputs
    )


def run(source: TemplateSource, request: TaskRequest, platform: Platform | None) -> TaskResult:
    """
    Run a template as its form would be answered; without a platform if its steps need none.

    Raises:
        InvalidInputError: A value, a secret or an input is refused.
        AlreadyOrderedError: A repository to publish holds something else.
        IncompleteError: An order is published and not registered; the same command finishes it.
        OrderkitError: What a step raises.
    """
    task = replace(request, values=_values(source.template, request))
    if platform is None:
        return _run(source, task, services=None)
    entry = None if task.options.dry_run else _entry_of(source, task.values)
    return _place(platform, source, task, entry, _portal(platform, task)).result


def _task_id(template: Template, parameters: Mapping[str, Any], requester: Requester) -> str:
    """Name the task by what it does, so that the same command is the same task."""
    identity = json.dumps([template.entity["ref"], parameters, requester.ref], sort_keys=True)
    return f"run-{hashlib.sha256(identity.encode()).hexdigest()[:20]}"


def run_task(platform: Platform, request: TaskRequest) -> TaskDone:
    """
    Run a template of the pack for a portal. Idempotent; returns when the order is registered.

    Raises:
        NotFoundError: No such template or team.
        InvalidInputError: A value that form, XRD or naming rules refuse, or that the platform sets.
        AlreadyOrderedError: The order exists with other values, ended, or is another team's.
        IncompleteError: The order is published and not registered; the same request finishes it.
        RefusedError: What `permit` says, or the team may not have it.
    """
    source = published_template(platform, request.template)
    check_fixed(source.template, request.values)
    entry = _entry_of(source, request.values)
    request.permit(entry.team if entry else None)
    return _place(platform, source, request, entry, _registering(platform, request))


@dataclass(frozen=True, slots=True)
class OrderDraft:
    """An order as it would be written, checked, and not written."""

    entry: OrderEntry
    kit: Kit
    xr: Manifest


def draft(platform: Platform, request: TaskRequest) -> OrderDraft:
    """
    Return the order that form values would make. Nothing is written.

    Raises:
        InvalidInputError: The template is no kit's, or what `run_task` says.
        OrderkitError: What else `run_task` raises before it writes.
    """
    source = published_template(platform, request.template)
    check_fixed(source.template, request.values)
    entry, kit = _entry_of(source, request.values), source.kit
    if entry is None or kit is None:
        raise InvalidInputError("template", request.template, "is not a kit's")
    request.permit(entry.team)
    snapshot = ledger_snapshot(platform)
    check_free(entry, snapshot.blobs)
    team = check_may_order(platform, entry, kit.name, snapshot, source.pack)
    xr = rendered_xr(platform, source, request)
    check_values(team, kit, xr)
    cost_limit.check_new(platform, team, entry, placed_xr(kit, entry.team, xr), snapshot.blobs)
    check_references(platform.cluster, kit, xr["spec"])
    return OrderDraft(entry, kit, xr)


def rendered_xr(platform: Platform, source: TemplateSource, request: TaskRequest) -> Manifest:
    """
    Return the XR that a kit's skeleton makes of form values, proved to fit its XRD.

    A dry run sends no requests, also not the one that reads the YAML of a form: its fields are
    added afterwards.

    Raises:
        InvalidInputError: A value that form, XRD or naming rules refuse.
    """
    entry, kit = _entry_of(source, request.values), source.kit
    if entry is None or kit is None:
        raise AssertionError("a kit's template names an order")
    roots = yaml_roots(kit)
    text = request.values.get(YAML_PARAMETER) if roots else None
    values = {name: v for name, v in request.values.items() if not text or name != YAML_PARAMETER}
    task = replace(request, values=values, options=TaskOptions(dry_run=True))
    services = _services(platform, _registering(platform, request))
    workspace = _run(source, task, services).workspace
    xr = check_order_files(kit, entry.order, {path: f.data for path, f in workspace.items()})
    return {**xr, "spec": merged(xr["spec"], read_settings(kit, text, roots))} if text else xr


def _portal(platform: Platform, task: TaskRequest) -> Portal:
    """Return where a command's steps send their requests (see the module's docstring)."""
    return platform.portal if platform.service_registers else _registering(platform, task)


def _registering(platform: Platform, task: TaskRequest) -> RegisteringPortal:
    return RegisteringPortal(platform, task.requester, task.authorization, task.permit)


def _place(
    platform: Platform,
    source: TemplateSource,
    task: TaskRequest,
    entry: OrderEntry | None,
    portal: Portal,
) -> TaskDone:
    """
    Run the steps; of an order (`entry`) first check that the ledger lets its team have it.

    Raises:
        NotFoundError: The team is not in the ledger.
        RefusedError: The team may not have it: its kits, or one of its limits.
        AlreadyOrderedError: Another order has this id, or it is ending.
        IncompleteError: It is published and not registered; the same again finishes it.
        OrderkitError: What a step raises.
    """
    kit = source.kit
    if entry is None or kit is None:
        result = _run(source, task, _services(platform, portal))
        return TaskDone(source.template.name, None, created=False, result=result)
    before_ledger = ledger_snapshot(platform)
    check_free(entry, before_ledger.blobs)
    team = check_may_order(platform, entry, kit.name, before_ledger, source.pack)
    before = platform.forge.head(entry.repository)

    published: list[CommitSha] = []

    def publish_checked(request: PublishRequest) -> CommitSha:
        """Publish what fits the XRD; if it is new, also the limits and the cluster."""
        xr = check_order_files(kit, entry.order, request.files)
        # only of a new order: a repetition must be able to finish what is published
        if before is None:
            placed, paths = placed_xr(kit, entry.team, xr), before_ledger.blobs
            checks = (
                lambda: check_values(team, kit, xr),
                lambda: cost_limit.check_new(platform, team, entry, placed, paths),
                lambda: check_references(platform.cluster, kit, xr["spec"]),
            )
            every(checks)
        is_own = request.repo == entry.repository
        commit = publish(platform.forge, request, before if is_own else None)
        published.extend([commit] if is_own else ())
        return commit

    try:
        services = _services(platform, portal, entry, publish_checked)
        result = _run(source, task, services)
    except RemoteError as error:
        if before is None and _published(platform.forge, entry.repository):
            raise IncompleteError(
                f"{entry.order} is published but not delivered yet: {error}",
                hint=f"{error.hint}; then repeat the same command"
                if error.hint
                else "repeat the command",
            ) from error
        raise
    created = before is None or entry.application_path not in before_ledger.blobs
    return TaskDone(source.template.name, entry, created, result, next(iter(published), None))


def _published(forge: Forge, repo: RepoId) -> bool:
    """Say whether the repository has a commit, as far as the forge can be asked."""
    try:
        return forge.head(repo) is not None
    except RemoteError:
        return False  # the forge itself is the trouble; its own error says so


def _services(
    platform: Platform,
    portal: Portal,
    entry: OrderEntry | None = None,
    publish_order: Callable[[PublishRequest], CommitSha] | None = None,
) -> Services:
    """Return what steps may use; of an order, with what checks it before it is published."""
    catalog = platform.catalog
    if entry is not None and platform.portal_reads_orders:
        catalog = ProvidedEntity(catalog, entry.order)

    def publish_rendered(request: PublishRequest) -> CommitSha:
        is_order = order_file.PATH in request.files
        return (publish if is_order else publish_files)(platform.forge, request)

    return Services(
        forge=platform.forge,
        catalog=catalog,
        cluster=platform.cluster,
        portal=portal,
        confined=platform.confined,
        publish=publish_order or publish_rendered,
        own_repositories=frozenset({platform.ledger, platform.pack_repo}),
        size_limit=platform.size_limit,
    )


def _run(source: TemplateSource, task: TaskRequest, services: Services | None) -> TaskResult:
    by = task.requester
    return scaffolder.run(
        source.template,
        task.values,
        files=source.folder,
        services=services,
        user=scaffolder.User(by.ref, proof=by.proof, agent=by.agent),
        task_id=task.id or _task_id(source.template, task.values, by),
        on_step=task.on_step,
        options=task.options,
    )


# --- values


def _values(template: Template, request: TaskRequest) -> dict[str, Any]:
    """Put values, assignments and the asterisks of secret fields together."""
    parameters = read_assignments(template, request.assignments, request.values)
    for name, schema in template.properties.items():
        if schema.get("ui:field") != "Secret":
            continue
        if name in parameters and parameters[name] != SECRET_SHOWN:
            raise InvalidInputError(
                name,
                scaffolder.MASK,
                "is a secret of the form, not a parameter",
                hint=f"pass it with --secret {name}=@FILE or --secret {name}=env",
            )
        if name in request.options.secrets:
            parameters[name] = SECRET_SHOWN
    return parameters
