"""
The probe order: one order goes through its whole life, by the flows that people's orders take.

Ordered from a kit's example, changed in one field (a review is merged by us), ended with its
repository deleted. It is recognised by its requester, so a run after a crash goes on with the
same order, and an order of people is never touched: then another team is tried, and without a
free one the probe is left out and says so. What stays is the tombstone in the ledger.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ground.errors import IncompleteError, OrderkitError, RefusedError, UsageError
from ground.names import CommitSha
from ground.objects.kube_objects import dig
from kubeschema.field_paths import schema_at
from orderkit.core.kit.kit_file import Direction
from orderkit.core.kit.model import Kit
from orderkit.core.kit.pack import read_pack
from orderkit.core.order import order_file
from orderkit.core.order.change import FieldEdit
from orderkit.core.order.end_record import parse as parse_end
from orderkit.core.order.ledger import OrderEntry
from orderkit.flows import change
from orderkit.flows.argocd.commit_pinning import deliver
from orderkit.flows.argocd.refreshing import application_key
from orderkit.flows.change import Changed, ChangeRequest
from orderkit.flows.change.reviewing import merge_unreviewed
from orderkit.flows.end.destroying import destroy
from orderkit.flows.end.end_request import EndRequest
from orderkit.flows.install.bootstrapping.steps import (
    BootstrapContext,
    Look,
    ProbeRequest,
    Say,
    StepVerdict,
)
from orderkit.flows.order import placing
from orderkit.flows.order.awaiting import await_commit
from orderkit.flows.order.ledger_records import registered_by
from orderkit.flows.order.live_order import find_living, read_xr
from orderkit.flows.platform import Platform, get_object, read_text, snapshot
from orderkit.ports.forge import Operation
from orderkit.ports.requesters import Requester

REQUESTER = "user:default/orderkit-probe"
"""Whose orders are probes."""
NAME = "probe"
"""What a probe order is called where its team does not name it."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """A kit with form values, and the entry of the ledger that they give."""

    kit: Kit
    values: Mapping[str, Any]
    entry: OrderEntry


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """An order has been placed, changed and ended."""

    site: BootstrapContext
    name: str = "probe"

    def look(self) -> Look:
        choice, why = _choose(self.site)
        if choice is None:
            return Look(StepVerdict.SKIP, why, "name a free one in spec.probe.values")
        summary = f"order {choice.entry.order} for team {choice.entry.team}, change it, end it"
        return Look(StepVerdict.CREATE, summary)

    def ensure(self, say: Say) -> Look:
        choice, why = _choose(self.site)
        if choice is None:
            return Look(StepVerdict.SKIP, why, "name a free one in spec.probe.values")
        return _Run(self.site, choice, say).run()


@dataclass(slots=True)
class _Run:
    site: BootstrapContext
    choice: _Choice
    say: Say
    at: str = "order"

    @property
    def _platform(self) -> Platform:
        return self.site.platform

    def run(self) -> Look:
        order, clock = self.choice.entry.order, self._platform.clock
        timings, began_s = [], clock.monotonic_s()
        for act in (self._order, self._change, self._end):
            self.at = act.__name__.strip("_")
            try:
                outcome = act()
            except OrderkitError as error:
                raise self._failed(error) from error
            now_s = clock.monotonic_s()
            timings.append(f"{outcome} in {now_s - began_s:.1f} s")
            self.say(f"{order}: {timings[-1]}")
            began_s = now_s
        return Look(StepVerdict.CREATE, f"{order} {', '.join(timings)}; nothing is left")

    def _order(self) -> str:
        if self._ending():
            return "was ending already"
        request = placing.TaskRequest(
            self.choice.kit.name, self.choice.values, Requester(REQUESTER)
        )
        self._await(placing.order(self._platform, request, wait_s=None).commit)
        return "Ready"

    def _change(self) -> str:
        if self._ending():
            return "not changed"
        order = self.choice.entry.order
        live = find_living(self._platform, order)
        head = self._platform.forge.head(live.repository)
        if head is None:
            raise IncompleteError(f"{live.repository} is empty", hint="repeat the command")
        spec = read_xr(self._platform, live, head).spec
        if len(self._platform.forge.commits(live.repository)) > 1:
            self._await(head)  # a run before this one has changed it
            return "changed"
        for edit in _edits(live.kit, spec):
            try:
                changed = self._changed(edit, head)
            except (UsageError, RefusedError):
                continue  # a rule of the kit forbids this one
            commit = self._merged(changed) or changed.commit
            if commit is not None:
                self._await(commit)
            return f"{edit.path}={edit.value} delivered"
        return "not changed (its kit has no field that a probe can change)"

    def _changed(self, edit: FieldEdit, head: CommitSha) -> Changed:
        request = ChangeRequest(
            order=self.choice.entry.order,
            edits=(edit,),
            requester=Requester(REQUESTER),
            reason="probe of the platform",
            operation=f"probe-{self.choice.entry.order}-{edit.path}-{head[:12]}",
        )
        return change.change(self._platform, request)

    def _merged(self, changed: Changed) -> CommitSha | None:
        """Merge what is reviewed: the probe is its own reviewer."""
        if changed.pull is None:
            return None
        live, pull = find_living(self._platform, self.choice.entry.order), changed.pull
        merged = Operation(f"{changed.operation}-merged", REQUESTER, pull.title)
        return merge_unreviewed(self._platform, live.repository, pull, merged)

    def _await(self, commit: CommitSha) -> None:
        """Wait for a commit; without a webhook nobody but us tells Argo CD of a merge."""
        order, timeout_s = self.choice.entry.order, self.site.wanted.timeout_s
        deliver(self._platform, self.choice.entry, commit, REQUESTER)
        await_commit(self._platform, order, commit, timeout_s=timeout_s)

    def _end(self) -> str:
        request = EndRequest(
            self.choice.entry.order,
            REQUESTER,
            repository="delete",
            timeout_s=self.site.wanted.timeout_s,
            reason="probe of the platform",
        )
        destroy(self._platform, request, on_step=lambda *_: None)
        if remains := self._remains():
            raise IncompleteError(
                f"the probe has ended, but left {remains}", hint="repeat the command"
            )
        return "ended"

    def _ending(self) -> bool:
        ledger_files = snapshot(self._platform.forge, self._platform.ledger)
        return ledger_files is not None and self.choice.entry.end_path in ledger_files.blobs

    def _failed(self, error: OrderkitError) -> OrderkitError:
        remains = self._remains() or "nothing"
        again = "repeat 'orderkit bootstrap' to continue with the same probe"
        ends = f"'orderkit destroy {self.choice.entry.order} --delete-repository' removes it"
        return IncompleteError(
            f"step '{self.at}' of {self.choice.entry.order} failed: {error};"
            f" left behind: {remains}",
            hint="; ".join(filter(None, (error.hint, again, ends))),
        )

    def _remains(self) -> str:
        """Name what is still there of the probe, as far as it can be asked."""
        entry, platform = self.choice.entry, self._platform
        prefix = f"{platform.forge.base_url}/{entry.repository}/"
        looks: dict[str, Callable[[], object]] = {
            f"repository {entry.repository}": lambda: platform.forge.repo(entry.repository),
            f"Application {entry.order}": lambda: get_object(
                platform.cluster, application_key(entry.order)
            ),
            "its catalog location": lambda: any(
                location.target.startswith(prefix) for location in platform.catalog.locations()
            ),
        }
        return ", ".join(name for name, look in looks.items() if _exists(look))


def _exists(look: Callable[[], object]) -> object:
    try:
        return look()
    except OrderkitError:
        return None


def _choose(site: BootstrapContext) -> tuple[_Choice | None, str]:
    """
    Return what to order, or why nothing can be ordered.

    Raises:
        NotFoundError: ``spec.probe.kit`` names no kit of the pack.
        InvalidInputError: The example's values name no order.
    """
    probe = site.wanted.probe or ProbeRequest()
    pack = read_pack(site.files)
    kits = [pack.kit(probe.kit)] if probe.kit else list(pack.kits())
    kit = next((kit for kit in kits if kit.examples or (probe.kit and probe.values)), None)
    if kit is None:
        return None, "no kit of the pack has an example, and spec.probe names no kit with values"
    busy = []
    for values in _candidates(kit, probe.values, site.platform.teams):
        choice = _Choice(kit, values, OrderEntry(kit.team(values), kit.order_id(values)))
        conflict = _conflict(site.platform, choice.entry)
        if not conflict:
            return choice, ""
        busy.append(conflict)
    return None, "; ".join(busy) or f"kit {kit.name}: no team may order (spec.teams)"


def _candidates(
    kit: Kit, probe_values: Mapping[str, Any], teams: Sequence[str]
) -> Iterator[Mapping[str, Any]]:
    """Yield form values: as given, for the given team or else for each team of the platform."""
    example = kit.examples[0].values if kit.examples else {}
    prefix = "group:default/" if _text(example, kit.team_parameter).startswith("group:") else ""
    for team in [None] if _text(probe_values, kit.team_parameter) else teams:
        values = copy.deepcopy({**example, **probe_values})
        if team is not None:
            _set_value(values, kit.team_parameter, f"{prefix}{team}")
        for name in kit.name_parameters:
            if name != kit.team_parameter and not _text(probe_values, name):
                _set_value(values, name, NAME)
        yield values


def _text(values: Mapping[str, Any], path: str) -> str:
    return str(dig(values, *path.split("."), default="") or "")


def _set_value(values: dict[str, Any], path: str, value: str) -> None:
    *above, last = path.split(".")
    for step in above:
        values = values.setdefault(step, {})
    values[last] = value


def _conflict(platform: Platform, entry: OrderEntry) -> str:
    """Say why an order of that id is not ours to place; empty: it is free, or a probe."""
    ledger_files = snapshot(platform.forge, platform.ledger)
    paths = ledger_files.blobs if ledger_files else {}
    if entry.end_path in paths:
        text = read_text(platform.forge, platform.ledger, entry.end_path, "main") or ""
        ours = parse_end(text, name=str(entry.end_path)).requester == REQUESTER
        return "" if ours else f"{entry.order} is ending"
    repository = platform.forge.repo(entry.repository)
    if repository is None:
        return f"{entry.order} is in the ledger" if entry.application_path in paths else ""
    if repository.archived:
        return f"{entry.repository} is archived: an order of that name has ended"
    record = platform.forge.read(entry.repository, order_file.PATH, "main")
    if record is None:
        empty = platform.forge.head(entry.repository) is None
        return "" if empty else f"{entry.repository} is not an order"
    if entry.application_path in paths:  # the record can be rewritten by whoever can push
        owner = registered_by(platform, entry)
    else:
        name = f"{entry.repository}/{order_file.PATH}"
        owner = order_file.parse(record.data, name=name).requester
    return "" if owner == REQUESTER else f"{entry.order} is an order of {owner}"


def _edits(kit: Kit, spec: Any) -> Iterator[FieldEdit]:
    """Yield edits that a probe may try: other enums, the other boolean, one more."""
    if kit.changes:
        paths = [p for c in kit.changes if c.direction is not Direction.NEVER for p in c.fields]
    else:
        paths = list(kit.spec_schema.get("properties", {}))
    fixed = {*kit.name_from, kit.team_from}
    for path in paths:
        if path in fixed or path in kit.hidden:
            continue
        schema, value = schema_at(kit.spec_schema, path), dig(spec, *path.split("."))
        for other in _other_values(schema, value):
            yield FieldEdit(path, "set", other)


def _other_values(schema: Mapping[str, Any], value: Any) -> Iterator[Any]:
    if schema.get("enum"):
        yield from (entry for entry in schema["enum"] if entry != value)
    elif schema.get("type") == "boolean":
        yield not value
    elif schema.get("type") == "integer" and isinstance(value, int):
        yield value + 1
