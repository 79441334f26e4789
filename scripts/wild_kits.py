"""
Walk XRDs and Compositions of other people's repositories through a kit's life, and count.

Each XRD with its Composition is imported into an empty pack, checked, ordered on an embedded
platform, changed, and ended; each plan is compared with what then happened. Nothing is fetched and
nothing of the material is kept: FOLDER holds one folder for each repository, brought by hand.
docs/conformance-public.md has the table.

    .venv/bin/python scripts/wild_kits.py FOLDER RESULTS.json [--only TEXT] [--part I/N]
    .venv/bin/python scripts/wild_kits.py --count RESULTS.json...
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import hashlib
import io
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from functioncases import answer_of  # noqa: E402 - the path comes first
from planproof.comparing import Difference, Sort, compare  # noqa: E402 - the path comes first
from planproof.proving import acted  # noqa: E402
from planproof.reading import Outcome, Reader, Seen  # noqa: E402

from compositions.composed import World, steps_of  # noqa: E402
from compositions.composition_choice import connection_namespace  # noqa: E402
from compositions.function_twins.choice import function_name  # noqa: E402
from compositions.python_functions import functions_here, packages_of, runs_here  # noqa: E402
from compositions.simulation import SimulatedWorld, simulate  # noqa: E402
from compositions.station import Station, StationRequest, StationResponse  # noqa: E402
from ground.errors import OrderkitError  # noqa: E402
from orderkit.adapters.folders.pack_folder import read_folder  # noqa: E402
from orderkit.adapters.functions.local_functions import (  # noqa: E402
    program_function,
    program_functions,
)
from orderkit.adapters.functions.program_store import add_program, program_start  # noqa: E402
from orderkit.cli.main import run  # noqa: E402
from orderkit.core.kit.compositions import name_shown  # noqa: E402
from orderkit.core.kit.kit_file import Direction  # noqa: E402
from orderkit.core.kit.model import Kit  # noqa: E402
from orderkit.core.kit.pack import read_pack  # noqa: E402
from orderkit.core.kit.xrd_fields import fields_of  # noqa: E402
from orderkit.core.order.change import FieldEdit  # noqa: E402
from orderkit.core.plan import Plan  # noqa: E402
from orderkit.flows.change.plan_requests import plan_edits  # noqa: E402
from orderkit.flows.change.request import ChangeRequest  # noqa: E402
from orderkit.flows.order.live_order import placed_xr  # noqa: E402
from orderkit.flows.plan.order_plan import plan_assignments  # noqa: E402
from orderkit.ports.requesters import Requester  # noqa: E402
from orderkit_standins.platform import Ports  # noqa: E402
from orderkit_standins.providers.provider_objects import TWINS  # noqa: E402
from orderkit_standins.serve_platform import (  # noqa: E402
    EmbeddedRunRequest,
    Running,
    running,
)
from orderkit_workshop.check import KitUnderCheck, PackFacts  # noqa: E402
from orderkit_workshop.check.kit_under_check import steps_in  # noqa: E402
from orderkit_workshop.check.trial_runs import orders_of  # noqa: E402
from orderkit_workshop.registry.images import image_of_file  # noqa: E402

Manifest = dict[str, Any]
Row = dict[str, Any]
TEAM, REQUESTER = "ae86", "user:default/wild"
GROUP = "apiextensions.crossplane.io"
WALK_S, READY_S, QUIET_S, END_S = 240, 40, 0.6, 60
NESTED_MAX, TRIES, ORDERS_MAX = 8, 4, 6


@dataclass(frozen=True)
class Document:
    """An object of a repository, and the file that it is in."""

    path: Path
    manifest: Manifest

    @property
    def name(self) -> str:
        return str((self.manifest.get("metadata") or {}).get("name") or "")


@dataclass
class Repository:
    """What a repository has of Crossplane."""

    folder: Path
    xrds: list[Document] = field(default_factory=list)
    compositions: list[Document] = field(default_factory=list)
    functions: list[Document] = field(default_factory=list)
    facts: list[Document] = field(default_factory=list)

    def compositions_of(self, xrd: Document) -> list[Document]:
        """Return the Compositions of an XRD, the nearest file first."""
        spec = xrd.manifest.get("spec") or {}
        wanted = (spec.get("group"), (spec.get("names") or {}).get("kind"))
        found = [each for each in self.compositions if _composite_kind(each.manifest) == wanted]
        return sorted(found, key=lambda each: (_distance(each.path, xrd.path), str(each.path)))

    def definition_of(self, group: str, kind: str, near: Path) -> Document | None:
        """Return the XRD that defines a kind, the nearest file first."""
        found = [
            each
            for each in self.xrds
            if each.manifest["spec"].get("group") == group
            and (each.manifest["spec"].get("names") or {}).get("kind") == kind
        ]
        near_first = sorted(found, key=lambda each: (_distance(each.path, near), str(each.path)))
        return next(iter(near_first), None)


def _composite_kind(composition: Manifest) -> tuple[str, str]:
    ref = (composition.get("spec") or {}).get("compositeTypeRef") or {}
    return str(ref.get("apiVersion")).partition("/")[0], str(ref.get("kind"))


def _distance(one: Path, other: Path) -> int:
    return len(set(one.parts) ^ set(other.parts))


def read_repository(folder: Path) -> Repository:
    """Read what a checkout has of Crossplane; files that are not YAML are left out."""
    found = Repository(folder)
    for path in sorted([*folder.rglob("*.yaml"), *folder.rglob("*.yml")]):
        if not path.is_file() or path.is_symlink():
            continue
        text = path.read_text("utf-8", errors="replace")
        if not re.search(
            r"\b(CompositeResourceDefinition|Composition|Function|EnvironmentConfig)\b", text
        ):
            continue
        with contextlib.suppress(yaml.YAMLError, ValueError, RecursionError):
            for manifest in list(yaml.load_all(text, Loader=yaml.CSafeLoader)):
                _sort(found, path, manifest)
    return found


def _sort(found: Repository, path: Path, manifest: object) -> None:
    if not isinstance(manifest, dict):
        return
    group, kind = str(manifest.get("apiVersion")).partition("/")[0], manifest.get("kind")
    shelves = {
        (GROUP, "CompositeResourceDefinition"): found.xrds,
        (GROUP, "Composition"): found.compositions,
        ("pkg.crossplane.io", "Function"): found.functions,
    }
    if (group, kind) == (GROUP, "EnvironmentConfig"):
        found.facts.append(Document(path, manifest))
    shelf = shelves.get((group, str(kind)))
    if shelf is not None and isinstance(manifest.get("spec"), dict):
        shelf.append(Document(path, manifest))


@dataclass
class Walk:
    """One XRD with its Composition, on its way."""

    repository: Repository
    xrd: Document
    composition: Document | None
    folder: Path
    row: Row
    only_check: bool = False
    programs: Path | None = None
    beside: Path | None = None
    local_configs: list[Manifest] = field(default_factory=list)
    """To be made once the team's namespace is there."""

    @property
    def pack(self) -> Path:
        return self.folder / "pack"

    def go(self) -> None:
        """Take every step that the ones before allow."""
        if not self._imported(self.xrd, self.composition, "thing", self.row):
            return
        self._add_programs()
        self._check()
        kit = read_pack(read_folder(self.pack)).kit("thing")
        self.row["checked"] = not self.row["errors"]
        if self.composition is not None and self.beside is not None:
            self._compare_twins(kit)
        if self.composition is None or not self.row["checked"] or self.only_check:
            return
        self._import_nested(kit)
        self._add_programs()
        if foreign := self._foreign():
            self.row["order"] = f"does not run here: {', '.join(foreign)}"
            return
        self._add_configs()
        kit = read_pack(read_folder(self.pack)).kit("thing")
        if not kit.examples:
            self.row["order"] = "no example order could be made"
            return
        request = EmbeddedRunRequest(
            self.folder / "state", self.pack, Ports(0, 0, 0, 0), (TEAM,), twins=TWINS
        )
        with running(request, on_step=lambda *_: None) as platform:
            for config in self.local_configs:
                platform.platform.cluster.apply(config, owner="wild")
            Life(self.row, platform, kit).live()

    def _imported(self, xrd: Document, composition: Document | None, name: str, row: Row) -> bool:
        files = [xrd.path] + ([composition.path] if composition else [])
        arguments = ["kit", "import", *dict.fromkeys(map(str, files))]
        if composition is not None:
            arguments += [*map(str, self._function_files(composition, files))]
            arguments += [*map(str, self._example_files(xrd, files))]
            arguments += ["--composition", composition.name]
            if "pipeline" not in composition.manifest["spec"]:
                arguments.append("--convert")
        code, out, err = command(*arguments, "--name", name, "--pack", str(self.pack), "--json")
        row["import"] = code
        if code:
            row["import_error"] = err.strip()[-900:]
            return False
        answer = json.loads(out)
        row["errors"] = [text for text in answer["findings"] if " error: " in text]
        row["findings"] = answer["findings"]
        row["next"] = answer["next"]
        return True

    def _example_files(self, xrd: Document, given: Sequence[Path]) -> list[Path]:
        """Return the nearest file that has an order of the XRD's, and no other XRD."""
        spec = xrd.manifest["spec"]
        names = [(spec.get(key) or {}).get("kind") for key in ("names", "claimNames")]
        wanted = re.compile(rf"^kind: *({'|'.join(filter(None, names))}) *$", re.MULTILINE)
        group = re.compile(rf"^apiVersion: *{re.escape(spec.get('group', ''))}/", re.MULTILINE)
        found = []
        for path in sorted(self.repository.folder.rglob("*.y*ml")):
            if path.is_file() and path not in given and path.stat().st_size < 1 << 16:
                text = path.read_text("utf-8", errors="replace")
                if wanted.search(text) and group.search(text) and "{{" not in text:
                    found.append(path)
        if xrd is self.xrd:
            self.row["example_file"] = bool(found)
        return sorted(found, key=lambda path: _distance(path, xrd.path))[:1]

    def _function_files(self, composition: Document, given: Sequence[Path]) -> list[Path]:
        """Return files of the repository that name packages of the Composition's functions."""
        needed = {step.function for step in steps_of(composition.manifest["spec"])}
        files = {
            each.path: each.name
            for each in self.repository.functions
            if each.name in needed and each.path not in given
        }
        full = {each.path for each in (*self.repository.xrds, *self.repository.compositions)}
        chosen: dict[str, Path] = {}
        for path, name in sorted(files.items(), key=lambda i: _distance(i[0], composition.path)):
            if path not in full:
                chosen.setdefault(name, path)
        return list(dict.fromkeys(chosen.values()))

    def _check(self) -> None:
        """Check again, with the programs that are at hand now."""
        if not self.row.get("programs"):
            return
        _, out, err = command("kit", "check", "thing", "--pack", str(self.pack), "--json")
        found = json.loads(out)["findings"] if out else [{"severity": "error", "message": err}]
        lacking = sorted(
            {match.groups() for each in found if (match := _UNDECLARED.match(each["message"]))}
        )
        if lacking and not self.row.get("declared"):
            self._declare(lacking)
            self._check()
            return
        texts = [
            f"{each.get('file')}:{each.get('line')}: {each['severity']}: {each.get('path')}: "
            f"{each['message']}: {each.get('advice')}"
            for each in found
        ]
        self.row["findings"] = texts
        self.row["errors"] = [text for text in texts if " error: " in text]

    def _declare(self, lacking: Sequence[tuple[str, ...]]) -> None:
        """Add to spec.composes what the check found, and generate the kit's files."""
        path = self.pack / "templates" / "thing" / "kit.yaml"
        text = re.sub(r"^  composes: \[\]\n", "", path.read_text(), flags=re.MULTILINE)
        entries = [f"    - {{apiVersion: {version}, kind: {kind}}}\n" for kind, version in lacking]
        if "\n  composes:\n" not in text:
            text = text.rstrip("\n") + "\n  composes:\n"
        head, tail = text.split("\n  composes:\n")
        path.write_text(f"{head}\n  composes:\n{''.join(entries)}{tail}")
        command("kit", "generate", "thing", "--pack", str(self.pack))
        self.row["declared"] = [kind for kind, _ in lacking]

    def _import_nested(self, kit: Kit) -> None:
        """Add what defines the composite kinds that the kit composes."""
        todo, known = list(kit.composes), {(kit.kind.group, kit.kind.kind)}
        while todo and len(known) <= NESTED_MAX:
            ref = todo.pop()
            pair = (ref.api_version.partition("/")[0], ref.kind)
            xrd = self.repository.definition_of(*pair, self.xrd.path)
            if pair in known or xrd is None:
                continue
            known.add(pair)
            name, row = f"part-{len(known)}", Row()
            composition = next(iter(self.repository.compositions_of(xrd)), None)
            before = shutil.copytree(self.pack, self.folder / f"before-{name}")
            if composition and self._imported(xrd, composition, name, row) and not row["errors"]:
                self.row.setdefault("nested", []).append(pair[1])
                todo += read_pack(read_folder(self.pack)).kit(name).composes
            else:  # an import writes to the whole pack
                shutil.rmtree(self.pack)
                before.rename(self.pack)
                self.row.setdefault("nested_failed", []).append([pair[1], row])

    def _compare_twins(self, kit: Kit) -> None:
        """Ask the twin and the real function the same, for a few orders of the kit."""
        subject = KitUnderCheck("thing", PackFacts(read_pack(read_folder(self.pack)).files))
        facts, asked = subject.pack, self.row.setdefault("asked", {})
        for doc in subject.compositions:
            steps = steps_in(doc) or ()
            names = [step.function for step in steps]
            functions = dict(functions_here({}, facts.packages, names).functions)
            for name in names:
                real = _program(
                    (self.beside or Path()) / f"{function_name(name, facts.packages)}.xpkg"
                )
                if real is not None and name in functions:
                    kind = function_name(name, facts.packages)
                    counts = asked.setdefault(kind, {"calls": 0, "differ": []})
                    functions[name] = _both(functions[name], real, counts)
            around = SimulatedWorld(
                existing=[d.manifest for d in facts.docs if d.manifest.get("metadata")],
                scopes=facts.xr_scopes,
                managed=facts.managed_kinds,
                composition=name_shown(kit.xrd, doc.manifest),
                connection=connection_namespace(kit.xrd, doc.manifest),
            )
            foreign = dict.fromkeys(set(names) - functions.keys(), "elsewhere")
            world = World(functions, foreign=foreign, passing=True)
            for order in orders_of(subject, kit).orders[:ORDERS_MAX]:
                simulate(order.xr, steps, world, around)

    def _add_programs(self) -> None:
        """Bring the programs of functions that are at hand, as a person with a registry would."""
        for name, package in packages_of(read_pack(read_folder(self.pack)).files).items():
            file = (self.programs or Path()) / f"{function_name(name, {name: package})}.xpkg"
            if self.programs is not None and file.is_file():
                code, _, err = command(
                    "functions", "add", str(file), "--name", name, "--pack", str(self.pack)
                )
                self.row.setdefault("programs", []).append(err.strip()[-300:] if code else name)

    def _foreign(self) -> list[str]:
        """Return the functions of the pack that nothing runs here."""
        files = read_pack(read_folder(self.pack)).files
        packages, programs = packages_of(files), program_functions(files)
        return [n for n in packages if n not in programs and not runs_here(n, packages)]

    def _add_configs(self) -> None:
        """Deliver what kit check says that nothing delivers: configs, and facts of the checkout."""
        out = "\n".join(self.row["findings"])
        folder = self.pack / "gitops" / "config" / "wild"
        wanted = sorted({match.groups() for match in _MISSING.finditer(out.replace('\\"', '"'))})
        for number, (kind, group, name, home) in enumerate(wanted):
            version = "v1alpha1" if "kubernetes" in group else "v1beta1"
            meta = {"name": name, **({"namespace": f"team-{TEAM}"} if home else {})}
            config = {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": meta}
            if home:
                self.local_configs.append({**config, "spec": {}})
            else:
                _write(folder / f"config-{number}.yaml", {**config, "spec": {}})
        text = json.dumps(self.composition.manifest, default=str) if self.composition else ""
        if "EnvironmentConfig" in text:
            for number, fact in enumerate(self.repository.facts):
                manifest = {**fact.manifest, "apiVersion": f"{GROUP}/v1beta1"}
                _write(folder / f"fact-{number}.yaml", manifest)
        self.row["configs"] = [name for _, _, name, _ in wanted]


def _program(file: Path) -> Station | None:
    """Return the program of a package's file, kept in the cache of this user."""
    if not file.is_file():
        return None
    with image_of_file(file) as image:
        digest = image.digest
        if (found := program_function(digest)) is not None:
            return found
        add_program(digest, program_start(image.config), image.layers)
    return program_function(digest)


def _both(twin: Station, real: Station, counts: dict[str, Any]) -> Station:
    def run(request: StationRequest) -> StationResponse:
        true = answer_of(real(copy.deepcopy(request)))
        response = twin(copy.deepcopy(request))
        counts["calls"] += 1
        if (ours := answer_of(response)) != true and len(counts["differ"]) < TRIES:
            counts["differ"].append([json.dumps(each, default=str) for each in (ours, true)])
        return response

    return run


def _write(path: Path, manifest: Manifest) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(manifest))


_MISSING = re.compile(
    r"needs ((?:Cluster)?ProviderConfig)\.(\S+) \"([^\"]+)\"( in the order's namespace)?"
)
_UNDECLARED = re.compile(r"(\S+) of (\S+) is composed but not declared")
_MACHINERY = re.compile(
    r"composition(Ref|RevisionRef|UpdatePolicy)|resourceRefs|writeConnectionSecretToRef"
)


def _matters(difference: Difference) -> bool:
    """Say whether a difference is a plan's: not Crossplane's own fields, nor a version's name."""
    if difference.sort is Sort.SPEC and _MACHINERY.match(difference.path):
        return False
    if difference.path.endswith(" metadata.ownerReferences[0].name"):
        return False  # of a nested XR, whose own name is compared
    one, other = difference.foretold, difference.found
    if difference.sort is Sort.IDENTITY:
        return bool(one[1:] != other[1:])
    nothing: tuple[Any, ...] = (None, "(nothing)", {}, [])
    return not difference.path.endswith(" apiVersion") and not (one in nothing and other in nothing)


def command(*arguments: str) -> tuple[int, str, str]:
    """Run one command of Orderkit in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = run(list(arguments))
        except SystemExit as ended:
            code = int(ended.code or 0)
    return code, out.getvalue(), err.getvalue()


@dataclass
class Life:
    """An order on a running platform: planned, placed, changed, ended."""

    row: Row
    running: Running
    kit: Kit

    def live(self) -> None:
        values = {**self.kit.examples[0].values}
        texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in values.items()}
        platform = self.running.platform
        try:
            draft, plan = plan_assignments(platform, "thing", texts, REQUESTER)
        except OrderkitError as error:
            self.row["plan_error"] = f"{error} {error.hint}"
            return
        self.row["foretold"] = _verdict(plan)
        self.row["faults"] = [str(fault) for fault in plan.faults]
        xr = placed_xr(draft.kit, draft.entry.team, draft.xr)
        settings = str(self.running.embedded.state.folder / "platform.yaml")
        words = [f"{name}={text}" for name, text in texts.items()]
        code, _, err = command(
            "order", "thing", *words, "--timeout", str(READY_S), "--requester", REQUESTER,
            "--platform", settings,
        )  # fmt: skip
        self.row["order"] = code
        if code:
            self.row["order_error"] = err.strip()[-1200:]
        kubeconfig = self.running.embedded.state.folder / "kubeconfig"
        with Reader(kubeconfig) as reader:
            found = self._look(reader, xr)
            if found is None:
                self.row["order_error"] = self.row.get("order_error") or "no XR came"
                return
            self.row["parts"] = len(found.parts)
            self.row["ready"] = _is_ready(found)
            self.row["synced"] = _said(found.xr, "Synced")
            self.row["xr_ready"] = _said(found.xr, "Ready")
            parts = {path: _said(part, "Synced") for path, part in found.parts.items()}
            self.row["failing"] = {p: said for p, said in parts.items() if said[:5] == "False"}
            self._compare("new", plan, None, found)
            if self.row["ready"]:
                self._change(reader, xr, found, settings)
        code, _, err = command(
            "destroy", draft.entry.order, "--yes", "--confirm", draft.entry.order,
            "--timeout", str(END_S), "--requester", REQUESTER, "--platform", settings,
        )  # fmt: skip
        self.row["end"] = code
        if code:
            self.row["end_error"] = err.strip()[-900:]

    def _compare(self, step: str, plan: Plan, before: Outcome | None, found: Outcome) -> None:
        differing = [*compare(plan.after, found), *acted(plan, before, found)]
        told = [str(each) for each in differing if _matters(each)]
        self.row[f"{step}_differs"] = told[:30] if _verdict(plan) == "Ready" else []
        foretold, came = _verdict(plan), "Ready" if _is_ready(found) else "not Ready"
        self.row[f"{step}_agrees"] = foretold == came

    def _change(self, reader: Reader, xr: Manifest, before: Outcome, settings: str) -> None:
        (order,) = self._orders(settings)
        for path, value in _other_values(self.kit, before.xr):
            text = f"{path}={value if isinstance(value, str) else json.dumps(value)}"
            common = ("--platform", settings, "--requester", REQUESTER)
            code, _, err = command("change", order, text, "--dry-run", "--accept-loss", *common)
            if code:
                self.row.setdefault("change_refused", []).append([text, err.strip()[-400:]])
                if len(self.row["change_refused"]) >= TRIES:
                    return
                continue
            self.row["change"] = text
            plan = self._plan_of(order, path, value)
            self.row["change_foretold"] = _verdict(plan)
            code, _, err = command(
                "change",
                order,
                text,
                "--direct",
                "--accept-loss",
                "--timeout",
                str(READY_S),
                *common,
            )
            self.row["change_code"] = code
            if code:
                self.row["change_error"] = err.strip()[-900:]
            found = self._look(reader, xr)
            if found is not None:
                self._compare("change", plan, before, found)
            return
        self.row["change"] = "no field could be changed"

    def _plan_of(self, order: str, path: str, value: Any) -> Plan:
        edits = (FieldEdit(path, "set", value),)
        request = ChangeRequest(order=order, edits=edits, requester=Requester(REQUESTER))
        return plan_edits(self.running.platform, request)

    def _orders(self, settings: str) -> list[str]:
        _, out, _ = command("list", "--json", "--platform", settings)
        return [str(each["order"]) for each in json.loads(out)["orders"]]

    def _look(self, reader: Reader, xr: Manifest) -> Outcome | None:
        """Return the order once nothing moves, or after a while."""
        kind, meta = str(xr["kind"]), xr["metadata"]
        last, moved_s, begun_s = "", time.monotonic(), time.monotonic()
        while time.monotonic() - begun_s < READY_S and time.monotonic() - moved_s < QUIET_S:
            time.sleep(0.1)
            if (now := reader.revision()) != last:
                last, moved_s = now, time.monotonic()
        reader.discover()
        seen: Seen = reader.look()
        return seen.outcome(kind, meta["name"], meta.get("namespace") or "")


def _verdict(plan: Plan) -> str:
    return "not Ready" if plan.faults else plan.readiness


def _said(manifest: Manifest, type_: str) -> str:
    for said in (manifest.get("status") or {}).get("conditions") or ():
        if said["type"] == type_:
            return f"{said['status']} {said.get('reason')} {said.get('message') or ''}"[:900]
    return ""


def _is_ready(found: Outcome) -> bool:
    return all(_said(found.xr, type_).startswith("True") for type_ in ("Synced", "Ready"))


def _other_values(kit: Kit, xr: Manifest) -> Iterator[tuple[str, Any]]:
    """Yield fields that may be changed, each with another value that its schema allows."""
    versions = kit.xrd["spec"]["versions"]
    schema = versions[0]["schema"]["openAPIV3Schema"]["properties"].get("spec") or {}
    shown = tuple(field.path for field in fields_of(kit).walk() if not field.hidden)
    allowed = [c.fields for c in kit.changes if c.direction is not Direction.NEVER]
    for paths in allowed or [shown]:
        for path in paths:
            inner, present = schema, xr.get("spec") or {}
            for step in path.split("."):
                inner = (inner.get("properties") or {}).get(step) or {}
                present = present.get(step) if isinstance(present, dict) else None
            for value in _values(inner, present):
                yield path, value


def _values(schema: Mapping[str, Any], present: Any) -> Iterator[Any]:
    kind = schema.get("type")
    if "enum" in schema:
        yield from (each for each in schema["enum"] if each != present)
    elif kind == "boolean":
        yield not present
    elif kind == "integer":
        yield (present if isinstance(present, int) else 0) + 1
    elif kind == "string" and not ({"pattern", "format"} & schema.keys()):
        yield "other"


def walk_all(folder: Path, results: Path, given: argparse.Namespace) -> None:
    """Walk each XRD once, in a process of its own, and write what became of it."""
    rows: list[Row] = []
    seen: set[str] = set()
    number = 0
    index, _, parts = given.part.partition("/")
    wanted = set(given.paths.read_text().splitlines()) if given.paths else set()
    with tempfile.TemporaryDirectory(prefix="wild-kits-") as work:
        empty = Path(work) / "empty"
        command("init", str(empty), "--no-git")
        for repository in sorted(path for path in folder.iterdir() if path.is_dir()):
            known = read_repository(repository)
            for xrd in known.xrds:
                nearest = next(iter(known.compositions_of(xrd)), xrd)
                both = json.dumps([xrd.manifest, nearest.manifest], default=str)
                digest = hashlib.sha256(both.encode()).hexdigest()
                alone = sum(each.path == xrd.path for each in known.xrds) == 1
                if digest in seen or not alone:
                    continue
                seen.add(digest)
                number += 1
                path = str(xrd.path.relative_to(folder))
                if number % given.every or number // given.every % int(parts) != int(index):
                    continue
                if given.only not in path or (given.paths and path not in wanted):
                    continue
                folders = (empty, Path(work) / "walk")
                rows.append(_apart(known, xrd, path, folders, given))
                results.write_text(json.dumps(rows, indent=1))
    print(table(rows))


def _apart(
    known: Repository,
    xrd: Document,
    path: str,
    folders: tuple[Path, Path],
    given: argparse.Namespace,
) -> Row:
    """Walk in a child, which is killed when it takes too long."""
    empty, work = folders
    composition = next(iter(known.compositions_of(xrd)), None)
    row = Row(path=path, composition=composition.name if composition else None)
    if composition is not None:
        spec = composition.manifest["spec"]
        row["mode"] = "Pipeline" if "pipeline" in spec else "Resources"
        row["functions"] = [function_name(step.function, {}) for step in steps_of(spec)]
        row["of_kind"] = len(known.compositions_of(xrd))
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(empty, work / "pack")
    begun_s = time.monotonic()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(WALK_S)
        try:
            Walk(
                known, xrd, composition, work, row, given.only_check, given.programs, given.beside
            ).go()
        except BaseException:  # noqa: BLE001 - it is what the row says
            row["crash"] = traceback.format_exc()[-2000:]
        (work / "row.json").write_text(json.dumps(row, default=str))
        os._exit(0)
    os.waitpid(child, 0)
    with contextlib.suppress(OSError, ValueError):
        row = json.loads((work / "row.json").read_text())
    row.setdefault("import", None)
    row["seconds"] = round(time.monotonic() - begun_s, 1)
    return row


def _names_no_package(row: Row) -> bool:
    words = ("no Function '", "is not a full image name")
    return any(word in text for text in row["errors"] for word in words)


def table(rows: Sequence[Row]) -> str:
    """Return the counts."""
    paired = [row for row in rows if row.get("composition")]
    imported = [row for row in paired if row["import"] == 0]
    checked = [row for row in imported if row.get("checked")]
    ordered = [row for row in checked if "parts" in row]
    ready = [row for row in ordered if row.get("ready")]
    changed = [row for row in ready if "change_code" in row]
    compared = [row["new_agrees"] for row in ordered if "new_agrees" in row]
    compared += [row["change_agrees"] for row in changed if "change_agrees" in row]
    unknown = [row for row in imported if _names_no_package(row)]
    others = [row for row in checked if isinstance(row.get("order"), str)]
    foreign = [row for row in others if row["order"].startswith("does not run here")]
    wrong = [
        text
        for row in ordered
        for step in ("new", "change")
        for text in row.get(f"{step}_differs", ())
        if "/ " in text and "'(nothing)' / " not in text and "has another value: {} / " not in text
    ]
    counts = {
        "XRDs": len(rows),
        "repositories": len({row["path"].split("/")[0] for row in rows}),
        "with a Composition": len(paired),
        "imported": len(imported),
        "no error": len(checked),
        "a function's package is in no file": len(unknown),
        "another error": len(imported) - len(checked) - len(unknown),
        "a function does not run here": len(foreign),
        "no example": len(others) - len(foreign),
        "a kind that it composes could not be imported": sum("nested_failed" in r for r in paired),
        "ordered": len(ordered),
        "Ready": len(ready),
        "changed": len(changed),
        "ended": sum(row.get("end") == 0 for row in ordered),
        "plans": len(compared),
        "plans that agree": sum(compared),
        "fields that plans had wrong": len(wrong),
        "killed or crashed": sum("crash" in row or row["import"] is None for row in rows),
    }
    asked: Counter[str] = Counter()
    for row in rows:
        for name, each in (row.get("asked") or {}).items():
            asked[f"calls of {name}"] += each["calls"]
            asked[f"Compositions with {name}"] += bool(each["calls"])
            asked[f"answers of {name} that differ"] += len(each["differ"])
    counts |= asked
    lines = [f"{count:5} {name}" for name, count in counts.items()]
    causes = Counter(
        re.sub(r"'[^']*'|[0-9]+", "_", text.split(" error: ")[1])[:90]
        for row in imported
        for text in row["errors"][:1]
    )
    return "\n".join([*lines, *(f"{n:4} {text}" for text, n in causes.most_common(12))])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[1])
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path, nargs="*")
    parser.add_argument("--only", default="")
    parser.add_argument("--paths", type=Path, help="a file with the XRDs to walk, a line for each")
    parser.add_argument("--part", default="0/1", help="I/N: this of so many shares")
    parser.add_argument("--every", type=int, default=1, help="of so many XRDs, one")
    parser.add_argument("--programs", type=Path, help="packages: <function>.xpkg")
    parser.add_argument("--beside", type=Path, help="packages of functions that twins play")
    parser.add_argument("--only-check", action="store_true")
    parser.add_argument("--count", action="store_true")
    given = parser.parse_args()
    if given.count:
        files = [given.folder, *given.results]
        print(table([row for path in files for row in json.loads(path.read_text())]))
        return
    walk_all(given.folder, given.results[0], given)


if __name__ == "__main__":
    main()
