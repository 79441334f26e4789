"""Show a run: its steps, the calls of a dry run, outputs, files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orderkit.cli.output import Progress, emit_json, say
from orderkit.flows.template.scaffolder import StepEvent, TaskResult
from softwaretemplates.render.tree import EXECUTABLE_MODE

_STATES = {
    "done": "ran",
    "planned": "would be called",
    "unknown": "cannot run here",
    "skipped": "skipped",
    "failed": "failed",
}


@dataclass(frozen=True, slots=True)
class RunDestination:
    """How it was run, and where its files went."""

    dry_run: bool
    folder: str | None


class Steps:
    """Collects events, and shows them on a terminal."""

    def __init__(self, *, as_json: bool) -> None:
        self.events: list[StepEvent] = []
        self._progress = Progress(enabled=False if as_json else None)

    def __call__(self, event: StepEvent) -> None:
        self.events.append(event)
        self._progress(event.step, f"{_STATES[event.state]}: {event.summary}")


def show_run(
    result: TaskResult, events: list[StepEvent], destination: RunDestination, as_json: bool
) -> None:
    """Show what a run came to: outputs, links and texts; of a dry run each step's inputs."""
    if as_json:
        emit_json("orderkit.run/v1", _object(result, events, destination))
        return
    if destination.dry_run:
        for event in events:
            _show_step(event)
    for line in result.log:
        say(line, err=True)
    _show_outputs(result.outputs)
    _show_files(result, destination)


def _object(
    result: TaskResult, events: list[StepEvent], destination: RunDestination
) -> dict[str, Any]:
    return {
        "dryRun": destination.dry_run,
        "steps": [
            {
                "id": event.step,
                "action": event.action,
                "state": event.state,
                "summary": event.summary,
                "inputs": [dict(inputs) for inputs in event.inputs],
                "output": dict(result.steps.get(event.step, {})),
            }
            for event in events
        ],
        "output": dict(result.outputs),
        "log": list(result.log),
        "files": [
            {
                "path": str(path),
                "sizeBytes": file.size,
                "executable": file.mode == EXECUTABLE_MODE,
            }
            for path, file in sorted(result.workspace.items())
        ],
        "out": destination.folder,
    }


def _show_step(event: StepEvent) -> None:
    say(f"{event.step}  {event.action}  {_STATES[event.state]}")
    if event.state == "unknown":
        say(f"  {event.summary}; its outputs are unknown")
    for inputs in event.inputs:
        for name, value in inputs.items():
            say(f"  {name}: {json.dumps(value, ensure_ascii=False)}")


def _show_outputs(outputs: Mapping[str, Any]) -> None:
    for link in _maps(outputs.get("links")):
        target = link.get("url") or link.get("entityRef")
        if target:  # the portal shows no link without a target either
            say(f"{link.get('title') or 'link'}: {target}")
    for text in _maps(outputs.get("text")):
        if text.get("title"):
            say(f"{text['title']}:")
        content = text.get("content", text.get("markdown", ""))
        say(content if isinstance(content, str) else json.dumps(content))
    for name, value in outputs.items():
        if name not in {"links", "text"}:
            text_shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            say(f"{name}: {text_shown}")


def _maps(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _show_files(result: TaskResult, destination: RunDestination) -> None:
    if destination.folder:
        say(f"{len(result.workspace)} files written to {destination.folder}", err=True)
    elif result.workspace:
        say(f"{len(result.workspace)} files in the workspace; --out DIR keeps them", err=True)
