"""
Order a kit: interpret the platform's own template, as the portal would, then wait for Ready.

The template is read from the published pack, so this proves the portal's path. Everything it
writes is *ensure*: after a crash at any point the same command finishes the same order; a
second order of the same id with other values is refused before anything is written.

Called by ``orderkit order``, the demo, the probe of a bootstrap and, in parts, by ``interpreting``
and ``portal_tasks``.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from orderkit.core.errors import IncompleteError, InvalidInputError, RemoteError
from orderkit.core.kit.pack import Kit, Pack
from orderkit.core.names import CommitSha, OrderId, RepoId, TeamName, check_requester
from orderkit.core.order import ledger
from orderkit.core.order.order_check import check_order_files
from orderkit.core.order.team_file import TeamFile
from orderkit.core.portal.profile import natural_path
from orderkit.core.portal.template import Template, parse_template
from orderkit.flows.argocd.refreshing import RepeatedRefresh
from orderkit.flows.order import listing
from orderkit.flows.order.listing import OrderReport
from orderkit.flows.order.publishing import publish
from orderkit.flows.order.reference_check import check_references
from orderkit.flows.platform import Platform, ledger_snapshot, published_pack
from orderkit.flows.team.limit_check import check_may_order, check_values, unknown_team
from orderkit.flows.template import scaffolder
from orderkit.flows.waiting import until

BRANCH = "main"


@dataclass(frozen=True, slots=True)
class OrderRequest:
    """What a person asks for: a kit, ``field=value`` texts, and for whom."""

    kit: str
    assignments: Mapping[str, str]
    requester: str
    wait: bool = True
    timeout_s: float = 120.0


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


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A request understood: nothing is written yet."""

    pack: Pack
    kit: Kit
    template: Template
    parameters: dict[str, Any]
    order: OrderId
    team: TeamName


OnStep = Callable[[str, str], None]


def order(platform: Platform, wanted: OrderRequest, *, on_step: OnStep) -> Ordered:
    """
    Place an order, or find the same one placed. Idempotent, resumable.

    Raises:
        NotFoundError: No such kit or team.
        RefusedError: The team may not have it: its kits, or one of its limits.
        InvalidInputError: A value the form, the XRD or the naming rules refuse.
        AlreadyOrderedError: Another order has this id.
        IncompleteError: It is placed but not Ready in time.
    """
    check_requester(wanted.requester)
    prepared = _prepare(platform, wanted)
    entry = ledger.OrderEntry(prepared.team, prepared.order)
    seen = ledger_snapshot(platform)
    if ledger.team_path(prepared.team) not in seen.blobs:
        raise unknown_team(prepared.team, list(ledger.teams(seen.blobs)))
    team = check_may_order(platform, entry, prepared.kit.name, seen)
    before = platform.forge.head(entry.repository)
    try:
        result = _interpret(platform, prepared, wanted, on_step, team)
    except RemoteError as error:
        if before is None and published(platform, entry.repository):
            raise half_done(prepared.order, error) from error
        raise
    head = platform.forge.head(entry.repository)
    if head is None:
        raise InvalidInputError(
            "template.yaml", prepared.kit.name, f"published no {entry.repository}"
        )
    report = _wait(platform, entry, wanted)
    created = before is None or entry.application_path not in seen.blobs
    return Ordered(
        prepared.order, prepared.team, entry.repository, head, created, report, result.outputs
    )


def _interpret(
    platform: Platform,
    prepared: _Prepared,
    wanted: OrderRequest,
    on_step: OnStep,
    team: TeamFile,
) -> scaffolder.TaskResult:
    return scaffolder.run(
        prepared.template,
        prepared.parameters,
        files=prepared.pack.folder(f"templates/{prepared.kit.name}"),
        services=_services(platform, prepared, team),
        user=scaffolder.User(wanted.requester),
        task_id=f"order-{prepared.order}",
        on_step=lambda event: on_step(event.step, event.summary),
    )


def published(platform: Platform, repo: RepoId) -> bool:
    """Say whether the repository has a commit, as far as the forge can be asked."""
    try:
        return platform.forge.head(repo) is not None
    except RemoteError:
        return False  # the forge itself is the trouble; its own error says so


def half_done(order: OrderId, error: RemoteError) -> IncompleteError:
    """Make the error for an order that is in its repository and not in the ledger."""
    return IncompleteError(
        f"{order} is published but not delivered yet: {error}",
        hint=f"{error.hint}; then repeat the same command" if error.hint else "repeat the command",
    )


def _prepare(platform: Platform, wanted: OrderRequest) -> _Prepared:
    pack = published_pack(platform, kit=wanted.kit)
    kit = pack.kit(wanted.kit)
    path = natural_path(PurePosixPath("templates", kit.name), pack.files)
    if path not in pack.files:
        raise InvalidInputError(str(path), None, f"is missing in pack '{pack.name}'")
    template = parse_template(pack.files[path], name=str(path))
    parameters = template.validate(read_assignments(template, wanted.assignments))
    return _Prepared(
        pack, kit, template, parameters, kit.order_id(parameters), kit.team(parameters)
    )


def read_assignments(template: Template, assignments: Mapping[str, str]) -> dict[str, Any]:
    """
    Turn ``field=value`` texts into form values of the type their field has.

    Text fields keep their text whatever it looks like: a team named ``yes`` stays a string.

    Raises:
        InvalidInputError: Unknown field (the nearest is named), or no JSON of that type.
    """
    known = template.properties
    found: dict[str, Any] = {}
    for field, text in assignments.items():
        if field not in known:
            near = difflib.get_close_matches(field, known, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"fields: {', '.join(known)}"
            raise InvalidInputError(field, text, "is no field of this form", hint=hint)
        found[field] = _typed(field, text, known[field].get("type", "string"))
    return found


def _typed(field: str, text: str, type_: str) -> object:
    if type_ == "string":
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInputError(
            field, text, f"is no {type_}", hint='write it as JSON, for example 3, true, ["a"]'
        ) from error


def _services(platform: Platform, prepared: _Prepared, team: TeamFile) -> scaffolder.Services:
    def publish_order(request: scaffolder.PublishRequest) -> scaffolder.Published:
        """Check what was rendered, then make sure it stands in the repository."""
        xr = check_order_files(prepared.kit, prepared.order, request.files)
        if platform.forge.head(request.repo) is None:
            check_values(team, prepared.kit, xr)
            check_references(platform, prepared.kit, xr["spec"])
        commit = publish(platform.forge, request)
        url = f"{platform.forge.base_url}/{request.repo}"
        return scaffolder.Published(f"{url}.git", f"{url}/src/branch/{BRANCH}/", commit)

    return scaffolder.Services(
        forge=platform.forge,
        catalog=platform.catalog,
        cluster=platform.cluster,
        portal=platform.portal,
        publish=publish_order,
    )


def _wait(platform: Platform, entry: ledger.OrderEntry, wanted: OrderRequest) -> OrderReport:
    def look() -> OrderReport:
        return listing.status(platform, entry.order)

    if not wanted.wait:
        return look()
    asking = RepeatedRefresh(platform)

    def ask(report: OrderReport) -> None:
        """The ledger's team has not taken the order up: its refresh may have been lost."""
        if report.state.phase == "Registered":
            asking.look(ledger.team_application(entry.team))

    return until(
        platform.clock,
        look,
        lambda report: report.state.ready,
        timeout_s=wanted.timeout_s,
        what=f"{entry.order}: becoming Ready",
        why_not=lambda report: f"{report.state.phase}: {report.state.reason}",
        on_look=ask,
    )
