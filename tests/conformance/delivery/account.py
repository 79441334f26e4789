"""
An event log as a short text that two deliverers can be compared by.

The text has one part per step of a scenario. A part says in which order each Application's
objects were created, changed, deleted and, where a scenario held them, gone; what its sync status
and its operation went through; and in which words it ended the part.

Left out is what two runs of one deliverer do not share: times, uids, commit ids (``c1`` is a
scenario's first commit), addresses, files of the deliverer; the order inside one kind of one wave
(those may be done at once); how often something was written, or synced again because a look came
too early; the results of what went well (a second sync replaces them) and of an object pruned
twice; health on the way; and what an Application that is going says of itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

from tests.conformance.delivery.builders import HOLD
from tests.conformance.delivery.eventlog import Event, per_object

from ground.argocd.delivery_obstacles import tracker
from ground.argocd.sync_rules import wave_of
from ground.objects.kube_objects import (
    APPLICATION,
    TRACKING_ID,
    Kind,
    Manifest,
    annotations_of,
    dig,
    labels_of,
    metadata,
)

Facts = dict[str, dict[str, str]]
"""What happened: step, subject (``objects``, ``shop sync`` ...), text."""

_COURSES = {
    "sync": ("sync", "status"),
    "operation": ("operationState", "phase"),
}
_TOLD = ("SyncFailed", "PruneSkipped")
_CLOCK = re.compile(r"\b\d{4}-\d\d-\d\dT[\d:]{8}Z(?=\.)")
_TIMES_RETRIED = re.compile(r"attempt #\d+")
_FILE = re.compile(r"/dev/shm/\d+")  # noqa: S108 - the real one's own file, in its words
_SUCCESS = re.compile(r"(?<=successfully synced) \([a-z ]+\)")
_WAITED_FOR = re.compile(r"(?<=waiting for healthy state of ).*")  # the next or this wave's first
_ON_ITS_WAY = "Retrying operation"
_NONE = "none"
_NOT_CONTENT = frozenset({"metadata", "status", "operation"})


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a scenario: its title and the cluster's version when it began."""

    title: str
    since: int


@dataclass(slots=True)
class Vocabulary:
    """How names of one run are written down."""

    words: dict[str, str] = field(default_factory=dict)

    def plain(self, text: str) -> str:
        """Replace what differs between runs, the longest first."""
        for found in sorted(self.words, key=len, reverse=True):
            text = text.replace(found, self.words[found])
        return " ".join(_FILE.sub("<file>", _CLOCK.sub("<time>", text)).split())


@dataclass(frozen=True, slots=True)
class _Happening:
    version: int
    verb: str
    kind: Kind
    name: str
    wave: int
    app: str
    """Who delivered the object; empty: nobody said so."""

    @property
    def together(self) -> tuple[object, ...]:
        """What may be done in any order has this in common."""
        if self.verb in ("create", "change"):
            return "apply", self.kind, self.wave
        return self.verb, self.wave

    def __str__(self) -> str:
        return f"{self.verb} {self.kind.kind}/{self.name}"


def account(steps: list[Step], events: list[Event], words: Vocabulary) -> Facts:
    """Tell what happened in each step, in the server's order across all objects."""
    facts: Facts = {}
    happenings = sorted(_happenings(events, words), key=lambda one: one.version)
    courses = sorted(_applications(events, words).items())
    for step, end in _spans(steps):
        told = facts.setdefault(step.title, {})
        within = [one for one in happenings if step.since < one.version <= end]
        for app in sorted({one.app for one in within}):
            mine = [one for one in within if one.app == app]
            told[f"{app or 'nobody'} objects"] = ", ".join(_ordered(mine))
        for name, states in courses:
            before = [state for version, state in states if version <= step.since]
            during = [state for version, state in states if step.since < version <= end]
            told.update(_application(name, before, during, words))
    return facts


def _spans(steps: list[Step]) -> Iterator[tuple[Step, float]]:
    for step, later in pairwise([*steps, None]):
        assert step is not None
        yield step, later.since if later else float("inf")


def _ordered(happenings: list[_Happening]) -> Iterator[str]:
    for _, group in groupby(happenings, key=lambda one: one.together):
        yield from sorted(map(str, group))


def _happenings(events: list[Event], words: Vocabulary) -> Iterator[_Happening]:
    for history in per_object(events).values():
        held = HOLD in metadata(history[0].manifest).get("finalizers", ())
        before: Manifest | None = None
        for event in history:
            now = event.manifest
            name, app = (words.plain(text) for text in (metadata(now)["name"], tracker(now)))
            for verb in _verbs(before, now, gone=event.gone, held=held):
                yield _Happening(event.version, verb, Kind.of(now), name, wave_of(now), app)
            before = now


def _verbs(before: Manifest | None, now: Manifest, *, gone: bool, held: bool) -> Iterator[str]:
    if before is None:
        yield "create"
    elif not gone and not _is_leaving(now) and _content(before) != _content(now):
        yield "change"
    if (gone or _is_leaving(now)) and not (before and _is_leaving(before)):
        yield "delete"
    if gone and held:
        yield "gone"


def _is_leaving(manifest: Manifest) -> bool:
    return bool(metadata(manifest).get("deletionTimestamp"))


def _content(manifest: Manifest) -> str:
    parts = {key: value for key, value in manifest.items() if key not in _NOT_CONTENT}
    marks = annotations_of(manifest).get(TRACKING_ID)
    return json.dumps([_filled(parts), labels_of(manifest), marks], sort_keys=True)


def _filled(value: Any) -> Any:
    """Leave out what is empty: the real one writes an Application's spec anew without it."""
    if isinstance(value, list):
        return list(map(_filled, value))
    if not isinstance(value, dict):
        return value
    return {key: found for key, one in value.items() if (found := _filled(one))}


def _applications(
    events: Iterable[Event], words: Vocabulary
) -> dict[str, list[tuple[int, Manifest]]]:
    found: dict[str, list[tuple[int, Manifest]]] = {}
    for event in events:
        kind = Kind.of(event.manifest)
        if (kind.group, kind.kind) == (APPLICATION.group, APPLICATION.kind):
            name = words.plain(str(metadata(event.manifest)["name"]))
            state = {} if event.gone else event.manifest
            found.setdefault(name, []).append((event.version, state))
    return found


def _application(
    name: str, before: list[Manifest], during: list[Manifest], words: Vocabulary
) -> Iterator[tuple[str, str]]:
    """Tell the courses through a step and the words at its end."""
    states = [*before[-1:], *during]
    if not states or not any(states):
        return
    last = states[-1]
    if not last or _is_leaving(last):
        yield f"{name} end", "leaving" if last else "gone"
        return
    for subject, path in _COURSES.items():
        course = [str(dig(state, "status", *path) or "") for state in states if state]
        yield f"{name} {subject}", " > ".join(_once(filter(None, course))) or _NONE
    for subject, text in _words(dig(last, "status") or {}, _message(states)).items():
        yield f"{name} {subject}", words.plain(text)


def _once(course: Iterable[str]) -> list[str]:
    """Tell a course without repetitions, single ones and pairs (synced, out of it, synced)."""
    found: list[str] = []
    for one in course:
        found.append(one)
        for length in (1, 2):
            if found[-length:] == found[-2 * length : -length]:
                del found[-length:]
    return found


def _words(status: Mapping[str, Any], message: str) -> dict[str, str]:
    state = dig(status, "operationState") or {}
    conditions = [f"{one['type']}: {one['message']}" for one in status.get("conditions") or ()]
    results = sorted(
        _result(one)
        for one in dig(state, "syncResult", "resources") or ()
        if (one["status"] in _TOLD or one.get("hookPhase") == "Failed")
        and not _pruned_twice(one, state)
    )
    resources = sorted(map(_resource, status.get("resources") or ()))
    revisions = [one["revision"] for one in status.get("history") or ()]
    return {
        "health": str(dig(status, "health", "status") or _NONE),
        "health says": str(dig(status, "health", "message") or _NONE),
        "revision": str(dig(status, "sync", "revision") or _NONE),
        "operates at": str(dig(state, "syncResult", "revision") or _NONE),
        "message": message,
        "conditions": "; ".join(sorted(conditions)) or _NONE,
        "results": "; ".join(results) or _NONE,
        "resources": "; ".join(resources) or _NONE,
        "history": ", ".join(revision for revision, _ in groupby(revisions)) or _NONE,
    }


def _pruned_twice(entry: Mapping[str, Any], state: Mapping[str, Any]) -> bool:
    """
    Say whether a result is left over from a try that found its own object gone already.

    The real one looks again when it has written that an operation succeeded. If its cache then
    still shows what it just pruned, it begins an operation that prunes it once more, fails, and
    succeeds at its retry with nothing left to do; the result stays (observed on Argo CD 3.2.11,
    in one of four runs beside six busy processes).
    """
    gone = f' "{entry["name"]}" not found'
    return state.get("phase") == "Succeeded" and str(entry.get("message")).endswith(gone)


def _message(states: list[Manifest]) -> str:
    """Tell the last message of an operation that is not just on its way into the next try."""
    said = [str(dig(state, "status", "operationState", "message") or _NONE) for state in states]
    last = next((text for text in reversed(said) if not text.startswith(_ON_ITS_WAY)), said[-1])
    return _WAITED_FOR.sub("something", _SUCCESS.sub("", _TIMES_RETRIED.sub("attempt #n", last)))


def _result(entry: Mapping[str, Any]) -> str:
    what = f"{entry['kind']}/{entry['name']}"
    phases = " ".join(filter(None, (entry.get("status"), entry.get("hookPhase"))))
    return f"{what} {phases}: {entry.get('message') or _NONE}"


def _resource(entry: Mapping[str, Any]) -> str:
    prunes = " requires pruning" if entry.get("requiresPruning") else ""
    return f"{entry['kind']}/{entry['name']} {entry.get('status')}{prunes}"


def written(facts: Facts) -> str:
    """Write an account as the text that is kept."""
    lines: list[str] = []
    for title, told in facts.items():
        lines += [f"== {title}", *(f"{subject}: {text}" for subject, text in told.items()), ""]
    return "\n".join(lines)


def read(text: str) -> Facts:
    """Read what `written` wrote."""
    facts: Facts = {}
    told: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("== "):
            told = facts.setdefault(line.removeprefix("== "), {})
        elif line:
            subject, _, value = line.partition(": ")
            told[subject] = value
    return facts
