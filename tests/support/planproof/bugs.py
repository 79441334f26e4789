"""
Bugs sown into the runner, each of which the comparison must see.

A bug replaces one function of the code that plans and applies by a broken one, for one side alone:
the thread that plans, or all others, which apply. What it must show is part of it; a bug that shows
something else only, or nothing, means that the comparison is blind there.
"""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from compositions.composed import COMPOSITE_LABEL, RESOURCE_NAME_ANNOTATION
from ground.objects.kube_objects import AVAILABLE
from orderkit.core.plan import Guess
from planproof.comparing import Sort

Function = Callable[..., Any]
PLACED, CHANGED, ORPHANED = "placed", "changed", "its dataset gone"
"""The steps of the life in which bugs are looked for."""


@dataclass(frozen=True)
class Bug:
    """One thing that a runner could get wrong."""

    name: str
    where: str
    """``module:name`` or ``module:Class.name`` of what is broken."""
    broken: Callable[[Function], Function]
    """Makes the broken function of the true one."""
    shows: Sort
    at: str
    """How the path of a difference begins."""
    step: str = PLACED


@contextlib.contextmanager
def sown(bug: Bug, side: str = "plan") -> Iterator[None]:
    """Break one side (``plan``: this thread; ``apply``: the others) until the block ends."""
    module, _, path = bug.where.partition(":")
    owner: Any = importlib.import_module(module)
    *holders, name = path.split(".")
    for holder in holders:
        owner = getattr(owner, holder)
    original = vars(owner)[name]
    true: Any = original.fget if isinstance(original, property) else original
    broken, planner = bug.broken(true), threading.get_ident()

    def either(*args: Any, **more: Any) -> Any:
        is_planner = threading.get_ident() == planner
        return (broken if is_planner == (side == "plan") else true)(*args, **more)

    setattr(owner, name, property(either) if isinstance(original, property) else either)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _instead(answer: Any) -> Callable[[Function], Function]:
    """Answer always the same."""
    return lambda _: lambda *_, **__: answer


def _after(spoil: Callable[..., Any]) -> Callable[[Function], Function]:
    """Do what is right, then spoil it: `spoil` gets the answer and the arguments."""
    return lambda true: lambda *args, **more: spoil(true(*args, **more), *args)


def _without(key: str, part: str) -> Callable[[Function], Function]:
    def spoil(answer: Any, _name: str, meta: dict[str, Any], _xr: Any) -> Any:
        meta[part].pop(key)
        return answer

    return _after(spoil)


def _nothing_placed(answer: Any, _name: str, _kind: Any, meta: dict[str, Any], *_: Any) -> Any:
    meta.pop("namespace", None)
    return answer


def _mirrored(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _mirrored(entry) for key, entry in value.items()}
    return [_mirrored(entry) for entry in reversed(value)] if isinstance(value, list) else value


def _unlabelled(manifest: dict[str, Any]) -> dict[str, Any]:
    manifest["metadata"]["labels"].pop("whisperops.io/owner", None)
    return manifest


def _kept(answer: Any, floor: Any, *_: Any) -> Any:
    left = {path: each for path, each in floor.live.observed.items() if path.startswith("reader-")}
    return replace(answer, resources={**left, **answer.resources})


def _context_lost(answer: Any, run: Any, *_: Any) -> Any:
    run._context = {}  # noqa: SLF001 - it is broken on purpose
    return answer


def _old_fields(answer: Any, _xr: Any, root: Mapping[str, Any] | None, *_: Any) -> Any:
    return {**answer, "spec": {**(root or {}).get("spec", {}), **answer["spec"]}}


def _statusless(answer: Any, *_: Any) -> Any:
    return {key: part for key, part in answer.items() if key != "status"}


_CORE, _FLOW = "orderkit.core", "orderkit.flows.composing.planner"
_ASKING = "orderkit.flows.composing.cluster_questions"
_CROSSPLANE = "compositions"
_META = f"{_CROSSPLANE}.composed"
BUGS = (
    Bug(
        "a generated name without the logical name in it", f"{_META}:child_name",
        lambda true: lambda prefix, uid, _: true(prefix, uid, ""),
        Sort.IDENTITY, "reader-of-", CHANGED,
    ),
    Bug(
        "a generated name told although the uid is not known yet", f"{_FLOW}:with_guesses",
        lambda _: lambda found, *_: found, Sort.IDENTITY, "reader-of-",
    ),
    Bug(
        "a value called unknown that is known", f"{_FLOW}:with_guesses",
        _after(lambda found, *_: replace(found, guesses=(Guess("prompts", "data.description"),))),
        Sort.UNKNOWN, "prompts data.description",
    ),
    Bug(
        "a default of the XRD lost", "kubeschema.validate.object_check:Validator.check",
        _after(lambda report, _, xr, *__: replace(report, result=xr)),
        Sort.SPEC, "enforcement",
    ),
    Bug(
        "a dropped resource not deleted", f"{_CORE}.plan.composed_tree:_XrAssembly._whole",
        _after(_kept), Sort.MISSING, "reader-of-", CHANGED,
    ),
    Bug(
        "a gate that never opens", f"{_CROSSPLANE}.simulation:_cluster_after", _instead({}),
        Sort.EXTRA, "prompts",
    ),
    Bug(
        "a nested XR not expanded",
        f"{_CORE}.plan.composed_tree:_XrAssembly._nested",
        _instead(None),
        Sort.EXTRA, "budget/",
    ),
    Bug(
        "readiness assumed",
        f"{_CROSSPLANE}.composed:Composed.ready_condition", _instead(AVAILABLE),
        Sort.CONDITION, "Ready", ORPHANED,
    ),
    Bug(
        "the state of a living order not passed on", f"{_FLOW}:as_living", _after(_statusless),
        Sort.REFUSAL, "", ORPHANED,
    ),
    Bug(
        "a required resource not looked up", f"{_ASKING}:looked_up", _instead([]),
        Sort.REFUSAL, "",
    ),
    Bug(
        "a namespace lost", f"{_META}:_set_namespace", _after(_nothing_placed),
        Sort.IDENTITY, "bucket",
    ),
    Bug(
        "a nested XR taken to be as ready as a bucket",
        f"{_CORE}.plan.composed_tree:_XrAssembly._nested_status",
        _instead(None), Sort.CONDITION, "budget ",
    ),
    Bug(
        "the status not fed back", f"{_CROSSPLANE}.simulation:_with_status",
        lambda _: lambda xr, _: xr, Sort.STATUS, "",
    ),
    Bug(
        "a label lost", f"{_META}:_set_labels", _without(COMPOSITE_LABEL, "labels"),
        Sort.FIELD, "prompts metadata.labels",
    ),
    Bug(
        "an annotation lost", f"{_META}:_set_labels",
        _without(RESOURCE_NAME_ANNOTATION, "annotations"),
        Sort.FIELD, "bucket metadata.annotations",
    ),
    Bug(
        "the owner lost", f"{_META}:_set_controller", _instead(None),
        Sort.FIELD, "namespace metadata.ownerReferences",
    ),
    Bug(
        "a list in another order", f"{_META}:with_metadata",
        _after(lambda dressed, *_, **__: (_mirrored(dressed[0]), dressed[1])),
        Sort.FIELD, "sandbox spec.template",
    ),
    Bug(
        "a field that was removed still there", f"{_FLOW}:as_living", _after(_old_fields),
        Sort.FIELD, "budget spec.windowStart", CHANGED,
    ),
    Bug(
        "a station's condition lost", f"{_CROSSPLANE}.pipeline:_Run.result",
        _after(lambda found, *_: replace(found, conditions=())), Sort.CONDITION, "DatasetFound",
    ),
    Bug(
        "the context not handed on", f"{_CROSSPLANE}.pipeline:_Run.step", _after(_context_lost),
        Sort.REFUSAL, "",
    ),
)  # fmt: skip
"""Each on the plan side, beside a true apply side."""
APPLIED = (
    Bug(
        "a dropped resource not deleted",
        f"{_CROSSPLANE}.pipeline:composed.is_controlled_by",
        _instead(answer=False), Sort.EXTRA, "reader-of-",
    ),
    Bug(
        "a station's label lost", f"{_META}:with_metadata",
        _after(lambda dressed, *_, **__: (_unlabelled(dressed[0]), dressed[1])),
        Sort.FIELD, "dashboard metadata.labels",
    ),
    Bug(
        "never ready", f"{_CROSSPLANE}.parts:is_ready", _instead(answer=False),
        Sort.CONDITION, "Ready",
    ),
)  # fmt: skip
"""Each on the apply side, beside a true plan; shown by a change to another dataset."""
