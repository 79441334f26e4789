"""
Rules about the text of a pipeline: its Compositions, and the source of its stations.

Nothing else checks Compositions before orders fail. Of stations: what they import, and branches
that never run; the source is parsed, never run. ``pipeline_run_checks`` judges what a pipeline
does.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from compositions.composed import PipelineStep
from compositions.function_twins.choice import function_name
from compositions.python_functions import AUTO_READY_FUNCTION, is_own, runs_here, typed_package
from compositions.station import INPUT
from ground.errors import OrderkitError
from ground.objects.kube_objects import dig
from ground.suggestions import did_you_mean
from kubeschema.validate.findings import Located
from kubeschema.xrd import xr_kind
from orderkit.core.kit.pack import definition_path
from orderkit_workshop.check.kit_under_check import (
    Doc,
    KitUnderCheck,
    finding_at,
    misshapen,
    steps_in,
)
from orderkit_workshop.check.rule_codes import KitRule

_PREFIX = "function-"
_REMOVED = ("resources", "patchSets", "environment", "publishConnectionDetailsWithStoreConfigRef")
_STEPS_MAX = 99
"""The most that the schema of a Composition allows."""
_JUDGE_THEMSELVES = {
    "function-cel-filter",
    "function-environment-configs",
    "function-extra-resources",
    "function-kro",
    "function-patch-and-transform",
    "function-pythonic",
    "function-sequencer",
    "function-status-transformer",
    "function-tag-manager",
}
"""Functions that judge the readiness of what they compose, or compose nothing."""
_JUDGE_BY_ANNOTATION = {
    "function-go-templating": "gotemplating.fn.crossplane.io/ready",
    "function-kcl": "krm.kcl.dev/ready",
}
"""Functions that judge only what has this annotation."""
_PACKAGE = re.compile(
    r"(?:__ORDERKIT_[A-Z_]+__|[^/\s:]+\.[^/\s:]+(?::[0-9]+)?)"  # a host, or one that is baked in
    r"(?:/[^/\s:@]+)+(?::(?P<tag>[\w][\w.-]*))?(?P<digest>@sha256:[0-9a-f]{64})?\Z"
)
_MOVING = {"latest", "main", "master", "stable", "edge", "nightly"}
_KEEP = {"Prune=false", "Delete=false"}


def check_compositions(subject: KitUnderCheck) -> Iterator[Located]:
    """Check the kit's Compositions, and which of them orders get."""
    definition = subject.definition
    if definition is None or misshapen(definition.manifest):
        return
    if not subject.compositions:
        message = f"no Composition for {dig(definition.manifest, 'spec', 'names', 'kind')}"
        yield subject.in_file(KitRule.COMPOSITION_MISSING, definition.path, message)
        return
    yield from _choice(subject, definition)
    for doc in subject.compositions:
        yield from _type(subject, doc)
        yield from _mode(doc)
        yield from _protection(doc)
        yield from _pipeline(subject, doc)
    yield from _protection(definition)


def runnable(subject: KitUnderCheck, doc: Doc) -> bool:
    """Say whether every step of a Composition can run in this process."""
    steps = steps_in(doc) or ()
    return bool(steps) and all(_runs(subject, step) for step in steps)


def _runs(subject: KitUnderCheck, step: PipelineStep) -> bool:
    packages = subject.pack.packages
    if step.function in subject.pack.programs:
        return not (step.unserved or step.credentials)
    if step.function not in packages or not runs_here(step.function, packages):
        return False
    if not is_own(step.function, packages):
        return True
    station = subject.pack.stations.get(str(step.input.get("name")))
    return station is not None and not hasattr(station, "error") and _names_station(step)


def _names_station(step: PipelineStep) -> bool:
    header = (step.input.get("apiVersion"), step.input.get("kind"))
    return header == (INPUT.api_version, INPUT.kind) and isinstance(step.input.get("name"), str)


def _choice(subject: KitUnderCheck, definition: Doc) -> Iterator[Located]:
    """Find orders that would get a missing or a random Composition."""
    names = {doc.name for doc in subject.compositions}
    spec = definition.manifest["spec"]
    kit = subject.kit
    for at, name in enumerate(kit.offered if kit else ()):
        if name not in names:
            message = f"'{name}' is not a Composition of this kit in the pack"
            hint = did_you_mean(name, sorted(names), f"Compositions: {', '.join(sorted(names))}")
            path = f"spec.compositions[{at}].name"
            yield subject.in_kit(KitRule.COMPOSITION_CHOICE, path, message, hint=hint)
    if not spec.get("enforcedCompositionRef") and not (kit and kit.compositions):
        message = "without enforcedCompositionRef an XR may name another Composition"
        yield finding_at(KitRule.COMPOSITION_OPEN, definition, "spec", message)
    for key in ("enforcedCompositionRef", "defaultCompositionRef"):
        named_composition = dig(spec, key, "name")
        if named_composition is not None:
            if named_composition not in names:
                message = f"{key} names '{named_composition}', which is not in the pack"
                known = sorted(names)
                hint = did_you_mean(named_composition, known, f"Compositions: {', '.join(known)}")
                yield finding_at(
                    KitRule.COMPOSITION_CHOICE, definition, f"spec.{key}.name", message, hint=hint
                )
            return
    if len(names) > 1:
        message = (
            f"{len(names)} Compositions match ({', '.join(sorted(names))}): Crossplane picks one "
            "at "
        )
        yield finding_at(KitRule.COMPOSITION_CHOICE, definition, "spec", message + "random")


def _type(subject: KitUnderCheck, doc: Doc) -> Iterator[Located]:
    definition = subject.definition
    if definition is None:
        return
    try:
        kind = xr_kind(definition.manifest)
    except (OrderkitError, KeyError, TypeError):
        return  # reported by the rules about the XRD
    ref = dig(doc.manifest, "spec", "compositeTypeRef", default={})
    for key, expected in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        if dig(ref, key) != expected:
            message = f"compositeTypeRef.{key} is {dig(ref, key)!r}, not {expected!r}"
            hint = f"write {key}: {expected}, as {definition_path(subject.name)} says"
            path = f"spec.compositeTypeRef.{key}"
            yield finding_at(KitRule.COMPOSITION_TYPE, doc, path, message, hint=hint)


def _mode(doc: Doc) -> Iterator[Located]:
    spec = dig(doc.manifest, "spec", default={})
    mode = dig(spec, "mode", default="Pipeline")
    if mode != "Pipeline":
        message = f"mode {mode} was removed in Crossplane 2"
        yield finding_at(KitRule.COMPOSITION_MODE, doc, "spec.mode", message)
    for key in _REMOVED:
        if dig(spec, key) is not None:
            message = f"spec.{key} was removed from Compositions"
            yield finding_at(KitRule.COMPOSITION_MODE, doc, f"spec.{key}", message)


def _protection(doc: Doc) -> Iterator[Located]:
    key = "argocd.argoproj.io/sync-options"
    options = str(dig(doc.manifest, "metadata", "annotations", key, default=""))
    if not {option.strip() for option in options.split(",")} >= _KEEP:
        message = f"{doc.manifest['kind']} {doc.name} can be pruned"
        yield finding_at(KitRule.XRD_PRUNABLE, doc, "metadata.annotations", message)


def _pipeline(subject: KitUnderCheck, doc: Doc) -> Iterator[Located]:
    steps = steps_in(doc)
    if steps is None:
        yield finding_at(
            KitRule.COMPOSITION_STEPS, doc, "spec.pipeline", "the pipeline is not a list of steps"
        )
        return
    if not 1 <= len(steps) <= _STEPS_MAX:
        yield finding_at(
            KitRule.COMPOSITION_STEPS, doc, "spec", f"the pipeline has {len(steps)} steps"
        )
        return
    names = [step.name for step in steps]
    for index, step in enumerate(steps):
        at = f"spec.pipeline[{index}]"
        if not step.name or step.name in names[:index]:
            message = (
                f"step name {step.name!r} is used twice" if step.name else "a step has no name"
            )
            yield finding_at(KitRule.COMPOSITION_STEPS, doc, f"{at}.step", message)
        lacking = [key for key in ("apiVersion", "kind") if not step.input.get(key)]
        if step.input and lacking:  # the field is x-kubernetes-embedded-resource
            message = f"the input of step '{step.name}' has no {' and no '.join(lacking)}"
            hint = "copy both from the function's README: an API server refuses the Composition"
            yield finding_at(KitRule.COMPOSITION_STEPS, doc, f"{at}.input", message, hint=hint)
        yield from _function(subject, doc, step, at)
    last = f"spec.pipeline[{len(steps) - 1}]"
    for rule, step in _unjudged(steps, subject.pack.packages):
        message = f"no step of function-auto-ready follows step '{step.name}' of {step.function}"
        yield finding_at(rule, doc, last, message)
        return


def _unjudged(
    steps: Sequence[PipelineStep], packages: Mapping[str, str]
) -> Iterator[tuple[KitRule, PipelineStep]]:
    """Yield the steps whose resources nobody judges, from the last on, certain ones first."""
    unknown = []
    for step in reversed(steps):
        function = function_name(step.function, packages)
        if function == AUTO_READY_FUNCTION:
            break
        annotation = _JUDGE_BY_ANNOTATION.get(function)
        if function in _JUDGE_THEMSELVES or (annotation and annotation in str(step.input)):
            continue
        if annotation or is_own(step.function, packages):
            yield KitRule.AUTO_READY_LAST, step
        else:
            unknown.append(step)
    yield from ((KitRule.AUTO_READY_UNKNOWN, step) for step in unknown)


def _function(subject: KitUnderCheck, doc: Doc, step: PipelineStep, at: str) -> Iterator[Located]:
    functions = subject.pack.functions
    if step.function not in functions:
        message = f"step '{step.name}': no Function '{step.function}' in the pack"
        bare = {name.removeprefix(_PREFIX): name for name in functions}  # all names begin alike
        near = difflib.get_close_matches(step.function.removeprefix(_PREFIX), bare, n=1)
        known = f"functions of the pack: {', '.join(functions) or 'none'}."
        hint = f"did you mean '{bare[near[0]]}'?" if near else known
        hint += f" Or declare it: orderkit functions add HOST/PATH/{step.function}:VERSION"
        yield finding_at(
            KitRule.FUNCTION_UNDECLARED, doc, f"{at}.functionRef.name", message, hint=hint
        )
        return
    yield from _package(subject, functions[step.function])
    if step.function in subject.pack.programs:
        return
    if not runs_here(step.function, subject.pack.packages):
        message = f"step '{step.name}' calls {step.function}, which does not run here"
        command = f"orderkit functions add {typed_package(subject.pack.packages[step.function])}"
        hint = f"bring its program: {command}"
        yield finding_at(KitRule.FOREIGN_STEP, doc, f"{at}.functionRef.name", message, hint=hint)
    elif is_own(step.function, subject.pack.packages):
        yield from _station(subject, doc, step, at)


def _package(subject: KitUnderCheck, doc: Doc) -> Iterator[Located]:
    package = str(dig(doc.manifest, "spec", "package", default=""))
    read = _PACKAGE.match(package)
    tag, digest = (read["tag"], read["digest"]) if read else (None, None)
    if read is None or not (tag or digest):
        message = f"{doc.name}: package '{package}' is not a full image name"
        yield finding_at(KitRule.FUNCTION_PACKAGE, doc, "spec.package", message)
    elif tag in _MOVING and not digest:
        message = f"{doc.name}: tag '{tag}' is a moving tag"
        yield finding_at(KitRule.FUNCTION_MOVING, doc, "spec.package", message)
    elif not digest and "@" not in subject.pack.versions.get(str(tag), ""):
        message = f"{doc.name}: '{package}' has no digest"
        yield finding_at(KitRule.FUNCTION_TAG, doc, "spec.package", message)


def _station(subject: KitUnderCheck, doc: Doc, step: PipelineStep, at: str) -> Iterator[Located]:
    name = str(step.input.get("name"))
    if not _names_station(step):
        message = f"step '{step.name}' has no input of kind {INPUT.kind} with a name"
        yield finding_at(KitRule.STATION_INPUT, doc, f"{at}.input", message)
        return
    stations = subject.pack.stations
    if name not in stations:
        message = f"step '{step.name}' names station '{name}', which is not in the pack"
        known = did_you_mean(name, stations, f"stations: {', '.join(stations) or 'none'}.")
        hint = f"{known} Or add stations/{name}/station.py"
        yield finding_at(KitRule.STATION_MISSING, doc, f"{at}.input.name", message, hint=hint)
        return
    error = getattr(stations[name], "error", None)
    if error is not None:
        message = f"station '{name}' cannot be loaded: {error}"
        rule = KitRule.STATION_BROKEN
        placed = subject.in_station(rule, message)
        yield placed or finding_at(rule, doc, f"{at}.input.name", message)


_IMPURE = {
    *("asyncio", "glob", "http", "httpx", "importlib", "io", "os", "pathlib"),
    *("random", "requests", "secrets", "shutil", "socket", "sqlite3", "subprocess", "tempfile"),
    *("threading", "time", "urllib", "uuid", "kubernetes", "pygit2", "click"),
}
"""Modules for I/O and time. uuid also has pure parts, but those are rarely needed."""
_CLOCK = {"now", "utcnow", "today"}
"""Methods of datetime and date that read the clock; the others are pure."""
_OURS = {
    *("orderkit", "orderkit_standins", "orderkit_workshop"),
    *("compositions", "ground", "kubeschema", "softwaretemplates", "yamlfiles"),
}
_PUBLIC = "orderkit.stations"


def check_station_sources(subject: KitUnderCheck) -> Iterator[Located]:
    """Check the sources of the stations that the kit's Compositions name."""
    names = {
        str(step.input.get("name")) for doc in subject.compositions for step in steps_in(doc) or ()
    }
    for name in sorted(names):
        folder = PurePosixPath("stations", name.partition("/")[0])
        for path in sorted(subject.pack.files):
            if path.is_relative_to(folder) and path.suffix == ".py":
                yield from _source(subject, path, subject.pack.files[path])


def _source(subject: KitUnderCheck, path: PurePosixPath, data: bytes) -> Iterator[Located]:
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return  # reported already: the station cannot be imported
    nodes = list(ast.walk(tree))
    dated = any("datetime" in _imported(node) for node in nodes)
    for node in nodes:
        if dated and isinstance(node, ast.Attribute) and node.attr in _CLOCK:
            message = f"reads the clock: {node.attr}()"
            yield subject.in_file(KitRule.STATION_IMPORTS, path, message, line=node.lineno)
        for module in _imported(node):
            message = _doubt(module)
            if message:
                line = getattr(node, "lineno", None)
                yield subject.in_file(KitRule.STATION_IMPORTS, path, message, line=line)
        if isinstance(node, ast.Constant) and node.value == "deletionTimestamp":
            message = "reads deletionTimestamp"
            yield subject.in_file(KitRule.STATION_DELETION, path, message, line=node.lineno)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level and node.module:
        return [node.module]
    return []


def _doubt(module: str) -> str:
    if module.partition(".")[0] in _IMPURE:
        return f"imports {module}"
    if module.partition(".")[0] in _OURS and module != _PUBLIC:
        return f"imports {module}: of Orderkit, a station may import {_PUBLIC} only"
    return ""


_SETS = {"set", "frozenset", "hash", "id"}
_SET_METHODS = {"union", "intersection", "difference", "symmetric_difference"}
_KNOWN = {
    *("__future__", "base64", "collections", "copy", "dataclasses", "datetime", "decimal", "enum"),
    *("fractions", "functools", "hashlib", "ipaddress", "itertools", "json", "math", "operator"),
    *("orderkit", "re", "string", "textwrap", "typing"),
}


def may_depend_on_hashing(data: bytes) -> bool:
    """
    Say whether a station's output could depend on Python's randomised string hashes.

    True for sets, and for foreign modules, where it is unknown. A cautious guess from the source.
    """
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return False
    return any(_uses_hashes(node) for node in ast.walk(tree))


def _uses_hashes(node: ast.AST) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Name):
        return node.id in _SETS
    if isinstance(node, ast.Attribute):
        return node.attr in _SET_METHODS
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.BitXor):
        return isinstance(node.left, ast.Call) or isinstance(node.right, ast.Call)
    return any(module.partition(".")[0] not in _KNOWN for module in _imported(node))
