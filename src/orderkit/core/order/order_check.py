"""
Check the files of an order: before they are written, and as its repository has them.

Before anything is written the XR in ``manifests/`` must have the kit's kind and the right name, and
``kubeschema.validate`` must accept it; all findings are raised. Rules that cannot be evaluated here
are left to the API server.

A repository must have valid objects, and one XR where Argo CD reads it. ``orderkit validate``,
``orderkit status`` and the commit status of a push all use this, so that a fault has the same
explanation everywhere. Pure; files are untrusted and bounded by ``yamlfiles.manifests``.
"""

from __future__ import annotations

import difflib
import heapq
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath
from typing import Any

from ground.argocd import sync_rules
from ground.argocd.sync_rules import steering_annotations
from ground.errors import InvalidInputError, RefusedError, raise_problems, shorten
from ground.names import OrderId
from ground.objects.kube_objects import Kind, Manifest, metadata
from ground.objects.values import shown
from kubeschema.field_paths import value_at
from kubeschema.validate import Validator
from kubeschema.validate.file_check import (
    Definitions,
    OldObject,
    SourceFile,
    ValidatedObject,
    ValidationOutcome,
    validate,
)
from kubeschema.validate.findings import Finding, FindingSeverity, Located, Reason, located
from orderkit.core.kit.compositions import choice_findings
from orderkit.core.kit.model import Kit
from orderkit.core.order.change import differences, judge_rules
from orderkit.core.order.order_file import MANIFESTS
from yamlfiles.manifests import ManifestError, parse_manifests

_LINE_BREAKS = re.compile("\x85|\u2028|\u2029".encode())


def check_order_files(
    kit: Kit,
    order: OrderId,
    files: Mapping[PurePosixPath, bytes],
    validator: Validator | None = None,
) -> Manifest:
    """
    Return the order's XR, proved to fit its XRD.

    Args:
        validator: The kit's validator, if the caller has one already.

    Raises:
        InvalidInputError: No XR or more than one, another name, or a value the XRD refuses.
        SeveralProblemsError: The XRD refuses several values.
        ManifestError: A file below ``manifests/`` is not a readable manifest.
    """
    _check_breaks(files)
    xr = _only_xr(kit, files)
    _check_name(kit, order, xr)
    raise_problems(
        [
            InvalidInputError(
                _field(kit, finding.path),
                value_at(xr, finding.path),
                f"is refused: {finding.message}",
                hint=finding.hint,
            )
            for finding in (
                *(validator or Validator(kit.xrd)).check(xr).findings,
                *choice_findings(kit, xr),
            )
        ]
    )
    return xr


def _check_breaks(files: Mapping[PurePosixPath, bytes]) -> None:
    """Refuse characters that some YAML readers treat as line breaks and replace by spaces."""
    for path, data in files.items():
        match = _LINE_BREAKS.search(data) if path.suffix in (".yaml", ".yml") else None
        if match:
            raise InvalidInputError(
                str(path),
                match[0].decode(),
                "is a line break for some YAML readers, so the text would change",
                hint="write a normal line break or a space",
            )


def _check_name(kit: Kit, order: OrderId, xr: Manifest) -> None:
    """Refuse an XR whose name or namespace is not the one that kit.yaml prescribes."""
    spec = xr.get("spec") or {}
    expected, name = kit.xr_name_of(order, spec), metadata(xr).get("name")
    if name != expected:
        origin = "the order's id" if kit.xr_name == "order" else kit.xr_name
        raise InvalidInputError(
            "metadata.name",
            name,
            f"is not {origin} '{expected}'",
            hint=f"metadata.name: {expected}",
        )
    home = kit.namespace_of(spec)
    namespace = metadata(xr).get("namespace")
    if home and namespace != home:
        raise InvalidInputError(
            "metadata.namespace",
            namespace,
            f"is not '{home}', the namespace of this order",
            hint=f"metadata.namespace: {home}",
        )


def _only_xr(kit: Kit, files: Mapping[PurePosixPath, bytes]) -> Manifest:
    xrs = [
        manifest
        for path in sorted(files)
        if path.is_relative_to(MANIFESTS) and path.suffix in (".yaml", ".yml", ".json")
        for manifest in parse_manifests(str(path), files[path])
        if Kind.of(manifest) == kit.kind
    ]
    if len(xrs) != 1:
        raise InvalidInputError(
            "manifests/",
            len(xrs),
            f"objects of {kit.kind}; an order has exactly one",
            hint=f"keep one {kit.kind} in manifests/, and order the others with 'orderkit order'",
        )
    return xrs[0]


def _field(kit: Kit, path: str) -> str:
    """Return the form parameter of a field if it has another name than the XRD property."""
    name = path.removeprefix("spec.")
    return kit.parameter(name) if name in kit.aliases else path


SUFFIXES = (".yaml", ".yml", ".json")
_KEEP = ".gitkeep"
_TEXTS = ("README", "LICENSE")
_SHOWN_MAX = 80
_FILES_MAX = 50
_CANDIDATES_MAX = 50
SUBMODULES = PurePosixPath(".gitmodules")


@dataclass(frozen=True, slots=True)
class OrderRepository:
    """A repository at one commit, or in a folder, and the order that it belongs to."""

    order: str
    kit: Kit
    paths: Sequence[PurePosixPath]
    """All files, relative to the repository, sorted."""
    read: Callable[[PurePosixPath], bytes | None]
    """Returns a file's bytes; None if it is a symbolic link."""
    root: PurePath
    """What messages put before a file."""

    def is_xr(self, manifest: Manifest) -> bool:
        """Say whether an object is of the kit's kind, in whatever version."""
        kind = Kind.of(manifest)
        return (kind.group, kind.kind) == (self.kit.kind.group, self.kit.kind.kind)

    def sources(self) -> Iterator[SourceFile]:
        """Yield the files that Argo CD reads: those directly in ``manifests/``."""
        delivered = [path for path in self.paths if _is_delivered(path)]
        for path in delivered[:_FILES_MAX]:
            data = self.read(path)
            yield SourceFile(self.root / path, data, is_named=True, is_link=data is None)


def _is_delivered(path: PurePosixPath) -> bool:
    return path.parent == MANIFESTS and path.suffix in SUFFIXES


def check_repository(
    repository: OrderRepository, definitions: Definitions, old_xr: OldObject = lambda _: None
) -> ValidationOutcome:
    """
    Judge everything that a repository delivers.

    Args:
        old_xr: Returns what an object was before the change, None if that is not known.
    """
    outcome = validate(repository.sources(), definitions, old_of=old_xr)
    xrs = [judged for judged in outcome.objects if repository.is_xr(judged.document.manifest)]
    own = next((xr for xr in xrs if xr.report.name == repository.order), xrs[0] if xrs else None)
    if own is not None:
        kit = repository.kit
        findings = [*_name_findings(repository, own), *_change_findings(kit, own)]
        findings += choice_findings(kit, own.document.manifest, own.old)
        outcome.add(located(own.file, own.document, finding.path, finding) for finding in findings)
    elif not outcome.findings:
        outcome.add([_missing_xr(repository, outcome)])
    outcome.add(
        located(file, document, "kind", _other_object(repository, document.manifest))
        for file, document in outcome.documents
        if own is None or document is not own.document
        if own is not None or definitions.validator(Kind.of(document.manifest))
    )
    outcome.add(
        located(file, document, "metadata.annotations", finding)
        for file, document in outcome.documents
        for finding in (*_hook_findings(document.manifest), *_steering(document.manifest))
    )
    explained = {entry.file for entry in outcome.findings}
    outcome.add(entry for entry in _misplaced(repository) if entry.file not in explained)
    return outcome


def _name_findings(repository: OrderRepository, own: ValidatedObject) -> Iterator[Finding]:
    kit, manifest = repository.kit, own.document.manifest
    spec = own.report.result.get("spec")
    fields: dict[str, Any] = spec if isinstance(spec, dict) else {}
    expected = kit.xr_name_of(repository.order, fields)
    why = "the order's id" if kit.xr_name == "order" else f"spec.{kit.xr_name}"
    name, namespace = (metadata(manifest).get(key) for key in ("name", "namespace"))
    if isinstance(name, str) and name != expected:
        yield Finding(
            "metadata.name",
            Reason.NOT_THE_ORDERS,
            f'is "{shorten(name, limit=_SHOWN_MAX)}", but the XR of {repository.order} is'
            f' "{shorten(expected, limit=_SHOWN_MAX)}"',
            rule=f"equals {why}",
            value=shorten(name, limit=_SHOWN_MAX),
            hint="put the name back: with another one it is another XR",
        )
    home = kit.namespace_of(fields)
    if home and namespace != home:
        yield Finding(
            "metadata.namespace",
            Reason.NOT_THE_ORDERS,
            f'is "{shorten(str(namespace), limit=_SHOWN_MAX)}", but the order\'s fields make it'
            f' "{shorten(home, limit=_SHOWN_MAX)}"',
            rule=f"xrNamespace of kit {kit.name}",
            value=shorten(str(namespace), limit=_SHOWN_MAX),
            hint="put the namespace back: in another one it is another XR",
        )


def _change_findings(kit: Kit, own: ValidatedObject) -> Iterator[Finding]:
    """Yield what the kit's rules say about each field that differs from before."""
    if own.old is None:
        return
    declared = kit.spec_schema.get("properties") or {}
    old, new = (
        {name: value for name, value in (xr.get("spec") or {}).items() if name in declared}
        for xr in (own.old, own.report.result)
    )
    explained = {finding.path for finding in own.report.findings}
    for difference in differences(old, new):
        path = f"spec.{difference.path}"
        try:
            judge_rules(kit, [difference])
        except (RefusedError, InvalidInputError) as error:
            if path in explained:
                continue
            back = f"put back {shown(difference.old)}"
            yield Finding(
                path,
                Reason.TRANSITION,
                str(error),
                rule=f"changes of kit {kit.name}",
                value=difference.new_shown,
                hint=f"{back}; {error.hint}" if error.hint else back,
            )


def _other_object(repository: OrderRepository, manifest: Manifest) -> Finding:
    name = shorten(str(metadata(manifest).get("name") or ""), limit=_SHOWN_MAX)
    return Finding(
        "",
        Reason.NOT_THE_ORDERS,
        f"order {repository.order} delivers one {repository.kit.kind.kind} and nothing else",
        rule="one XR in an order",
        value=f"{Kind.of(manifest).kind} {name}".strip(),
        hint="remove this object; a second XR is a second order",
    )


def _hook_findings(manifest: Manifest) -> Iterator[Finding]:
    if refusal := sync_rules.hook_refusal(manifest):
        yield Finding(
            "metadata.annotations",
            Reason.HOOK,
            refusal,
            rule="has no hooks",
            value=sync_rules.hook_annotation(manifest),
            hint=sync_rules.HINT,
        )


def _steering(manifest: Manifest) -> Iterator[Finding]:
    for found in steering_annotations(manifest):
        severity = FindingSeverity.ERROR if found.is_dangerous else FindingSeverity.WARNING
        yield Finding(
            "metadata.annotations",
            Reason.STEERS,
            str(found),
            rule="leaves its delivery to Orderkit",
            hint=found.hint,
            severity=severity,
        )


def _missing_xr(repository: OrderRepository, outcome: ValidationOutcome) -> Located:
    """Explain that a repository delivers no XR: moved, emptied or deleted."""
    kind = repository.kit.kind.kind
    rule = f"one {kind} in {MANIFESTS}/"
    moved = next((path for path in _candidates(repository) if _holds_xr(repository, path)), None)
    empty = next(iter(outcome.empty), None)
    hint = (
        f"restore the file (see: git log -- {MANIFESTS}), or end the order: "
        f"orderkit destroy {repository.order}"
    )
    message = f"no file of {MANIFESTS}/ holds the order's {kind}"
    if moved:
        message = f"holds the order's {kind}, but Argo CD reads only files directly in {MANIFESTS}/"
        hint = f"move it back: {move_command(moved)}"
    elif empty:
        message = f"holds no object, so the order's {kind} is missing"
    if MANIFESTS in repository.paths:
        is_link = repository.read(MANIFESTS) is None
        message = f"is {'a symbolic link' if is_link else 'a file'}, not a folder"
        back = f"git rm {MANIFESTS} && mkdir {MANIFESTS}"
        hint = f"put a folder in its place: {back} && {move_command(moved)}" if moved else hint
        moved = None
    elif not moved and not empty and SUBMODULES in repository.paths:
        hint = f"commit the file itself: Orderkit does not read submodules; {hint}"
    file = repository.root / moved if moved else empty or repository.root / MANIFESTS
    return Located(file, None, None, "", Finding("", Reason.NO_XR, message, rule, "", hint))


def move_command(path: PurePosixPath) -> str:
    """Return the command that moves a file to where it is delivered; its name may be hostile."""
    return f"git mv {shlex.quote(f'./{path}' if str(path)[0] == '-' else str(path))} {MANIFESTS}/"


def _candidates(repository: OrderRepository) -> list[PurePosixPath]:
    """Return where a moved XR may be, the likeliest names first, and not more than are read."""
    matcher = difflib.SequenceMatcher(b=f"{repository.kit.kind.kind.lower()}.yaml")

    def distance(path: PurePosixPath) -> tuple[bool, float, int]:
        matcher.set_seq1(path.name.lower())
        return MANIFESTS.name not in path.parts, -matcher.quick_ratio(), len(path.parts)

    paths = (
        path
        for path in repository.paths
        if path.suffix in SUFFIXES and not _is_delivered(path) and not path.parts[0].startswith(".")
    )
    return heapq.nsmallest(_CANDIDATES_MAX, paths, key=distance)


def _holds_xr(repository: OrderRepository, path: PurePosixPath) -> bool:
    try:
        manifests = parse_manifests(str(path), repository.read(path) or b"")
    except ManifestError:
        return False
    return any(repository.is_xr(manifest) for manifest in manifests)


def _misplaced(repository: OrderRepository) -> Iterator[Located]:
    """Yield the files below ``manifests/`` that Argo CD passes over."""
    rule = f"{MANIFESTS}/*.yaml, .yml or .json"
    if SUBMODULES in repository.paths:
        message = "names submodules: none is delivered, and Argo CD fails if it cannot fetch them"
        hint = f"commit the files themselves and remove the submodule: git rm {SUBMODULES} FOLDER"
        finding = Finding("", Reason.NOT_READ, message, rule, "", hint)
        yield Located(repository.root / SUBMODULES, None, None, "", finding)
    for path in repository.paths[:_FILES_MAX]:
        if not path.is_relative_to(MANIFESTS) or path.name == _KEEP or path.stem in _TEXTS:
            continue
        if _is_delivered(path):
            continue
        hint = "rename it to end in .yaml, or remove it"
        if path.parent != MANIFESTS:
            hint = f"move it: {move_command(path)}"
        finding = Finding("", Reason.NOT_READ, "is not delivered", rule, path.name, hint)
        yield Located(repository.root / path, None, None, "", finding)
