"""What ``orderkit plan`` can be asked, as calls of flows: edits, a file, two commits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from orderkit.cli.inputs import edits, read_one
from orderkit.core.crossplane.function_processes import processes_of
from orderkit.core.plan import Plan
from orderkit.flows.change import ChangeRequest
from orderkit.flows.change.plan_requests import plan_between, plan_edits, plan_xr
from orderkit.flows.plan.order_plan import Basis
from orderkit.flows.plan.recording import save
from orderkit.flows.platform import Platform, default_requester
from orderkit.ports.requesters import Requester


@dataclass(frozen=True, slots=True)
class Asking:
    """One order of a platform, and by what its plans are made."""

    platform: Platform
    order: str
    basis: Basis

    def of(
        self,
        assignments: tuple[str, ...],
        file: Path | None,
        commits: tuple[str | None, str | None],
        requester: str | None,
    ) -> Plan:
        """Return the plan of what was given: two commits, a file, or edits."""
        base, head = commits
        if head:
            return self.between(base, head)
        return self.of_file(file) if file else self.of_edits(assignments, requester)

    def of_edits(self, assignments: tuple[str, ...], requester: str | None) -> Plan:
        """Return the plan of FIELD=VALUE; raises like `plan_edits`."""
        who = Requester(requester or default_requester())
        wanted = ChangeRequest(order=self.order, edits=edits(assignments), requester=who)
        return plan_edits(self.platform, wanted, basis=self.basis)

    def of_file(self, file: Path) -> Plan:
        """
        Return the plan of a whole other XR.

        Raises:
            InvalidInputError: The file holds none, or several.
            What `plan_xr` says.
        """
        return plan_xr(self.platform, self.order, read_one(file), basis=self.basis)

    def between(self, base: str | None, head: str) -> Plan:
        """Return the plan of the step between two commits; raises like `plan_between`."""
        return plan_between(self.platform, self.order, base, head, basis=self.basis)

    def save(self, file: Path) -> None:
        """
        Write down what the plan was made from, if a recorder was given.

        Raises:
            InvalidInputError: The file cannot be written.
        """
        if self.basis.recorder is not None:
            pack = self.platform.forge.head(self.platform.pack_repo) or ""
            save(self.basis.recorder.snapshot(pack=pack), file)


def calling(platform: Platform, texts: tuple[str, ...]) -> Platform:
    """
    Return the platform with functions that plans shall call, given as NAME=HOST:PORT.

    Raises:
        InvalidInputError: A text is none.
    """
    return replace(platform, functions=(*platform.functions, *processes_of(texts)))
