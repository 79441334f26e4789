"""What a platform does with modules that few commands need: each is imported when it is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softwaretemplates.render import FileOutcome, Tree, TreeOptions


class LazyRenderer:
    """Import the renderer once something has to be rendered: few commands do."""

    def __call__(
        self, files: Tree, values: Mapping[str, Any] | None, options: TreeOptions
    ) -> list[FileOutcome]:
        from orderkit.adapters.processes.confined_rendering import judge_confined

        return judge_confined(files, values, options)


def run_program(program: str, order: Mapping[str, Any]) -> Mapping[str, str | None]:
    """Import what runs programs once a campaign has one."""
    from orderkit.adapters.processes import confined_edits

    return confined_edits.run_program(program, order)
