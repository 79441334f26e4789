"""
Run public templates of other people to their end on the faces of GitHub and GitLab, and count.

Each v1beta3 Template below FOLDER is run, not only planned: its form is filled in, github.com and
gitlab.com in its text become the embedded forge, and what a template takes for granted
(organisations, repositories to propose to) is made when it asks for it. Nothing is fetched and
nothing of the material is kept: FOLDER holds one checkout for each repository, brought by hand.
docs/conformance-public.md has the table.

    .venv/bin/python scripts/wild_templates.py FOLDER RESULTS.json [--lenient]
    .venv/bin/python scripts/wild_templates.py --count RESULTS.json
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from changingpack import changing_pack  # noqa: E402 - the path comes first
from hypothesis import HealthCheck, find, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from ground.names import RepoId  # noqa: E402
from orderkit.cli.main import run  # noqa: E402
from orderkit.core.platform.forge_kinds import ForgeKind  # noqa: E402
from orderkit.flows.template.actions import ACTIONS  # noqa: E402
from orderkit.ports.forge import FileChange, Operation  # noqa: E402
from orderkit_standins.platform import Ports  # noqa: E402
from orderkit_standins.serve_platform import (  # noqa: E402
    EmbeddedRunRequest,
    Running,
    running,
)

RUN_S = 90
REPAIRS = 8
"""How many things that a template takes for granted are made for it."""
TEAM = "ae86"
HOSTS = re.compile(
    r"(https?://)?(?<![\w.-])(?:www\.)?(?:github\.com|gitlab[\w-]*(?:\.[\w-]+)+)(?![.\w])"
)
TRIES = (
    *("cart", "Cart", "cart-1", "1", "1.0", "1.0.0", "org.example", "10.0.0.0/16"),
    *("a@example.org", "https://example.org", "2026-01-31", "123456789012", "ABC-1"),
)


@dataclass
class Outcome:
    """What became of one template."""

    repository: str
    path: str
    name: str
    forge: str
    ended: bool
    why: str = ""
    actions: tuple[str, ...] = ()


def templates_in(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield each Template with its file, in order."""
    for path in sorted({*folder.rglob("*.yaml"), *folder.rglob("*.yml")}):
        try:
            text = path.read_text()
            if "scaffolder.backstage.io/v1beta3" not in text:
                continue
            documents = list(yaml.load_all(text, Loader=yaml.CSafeLoader))
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            continue
        for document in documents:
            if isinstance(document, dict) and document.get("kind") == "Template":
                yield path, document


# --- the form


@dataclass
class Answering:
    """Fills forms in, with values that are new for each template."""

    host: str
    number: int

    @property
    def name(self) -> str:
        """A name that no other template has used."""
        return f"cart{self.number}"

    def page(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return answers to a page or an object, and to what they bring up."""
        found: dict[str, Any] = {}
        for name, inner in (schema.get("properties") or {}).items():
            if isinstance(inner, dict) and inner.get("ui:field") != "Secret":
                found[name] = self.value(name, inner)
        for question, asked in (schema.get("dependencies") or {}).items():
            for branch in asked.get("oneOf") or () if isinstance(asked, dict) else ():
                known = (branch.get("properties") or {}).get(question) or {}
                wanted = known.get("enum", [known["const"]] if "const" in known else [])
                if question in found and found[question] in wanted:
                    found |= {**self.page(branch), question: found[question]}
        return found

    def value(self, name: str, schema: Mapping[str, Any]) -> Any:
        """Return an answer to one field."""
        field = str(schema.get("ui:field") or "")
        default, allowed = schema.get("default"), schema.get("enum")
        is_text = schema.get("type") != "string" or isinstance(default, str)
        if default not in ("", None) and is_text and default in (allowed or [default]):
            return default
        if "const" in schema or allowed:
            return schema.get("const", (allowed or [None])[0])
        if "Picker" in field:
            return self._picked(name, field, schema)
        by_type = {"boolean": self._flag, "object": self._object, "array": self._list}
        by_type |= {"integer": self._number, "number": self._number}
        return by_type.get(schema.get("type", "string"), self._text)(name, schema)

    def _picked(self, name: str, field: str, schema: Mapping[str, Any]) -> Any:
        """Return what a picker of Backstage gives."""
        if "RepoUrlPicker" in field:
            return f"{self.host}?owner={TEAM}&repo={self.name}"
        if "NamePicker" in field or schema.get("type", "string") != "string":
            return self._list(name, schema) if schema.get("type") == "array" else self.name
        is_owner = "Owner" in field or "Group" in field or "owner" in name.lower()
        return f"group:default/{TEAM}" if is_owner else f"component:default/{self.name}"

    def _flag(self, _: str, schema: Mapping[str, Any]) -> bool:
        return bool(schema.get("default"))

    def _number(self, _: str, schema: Mapping[str, Any]) -> int:
        return int(schema.get("minimum", 1))

    def _object(self, _: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        return self.page(schema)

    def _list(self, name: str, schema: Mapping[str, Any]) -> list[Any]:
        items = schema.get("items") or {}
        return [self.value(name, items)] * max(int(schema.get("minItems", 1)), 1)

    def _text(self, name: str, schema: Mapping[str, Any]) -> str:
        low = name.lower()
        guess = self.name
        if schema.get("format") == "uri" or low.endswith("url"):
            guess = "https://example.org"
        elif any(word in low for word in ("host",)):
            guess = self.host
        elif any(word in low for word in ("org", "owner", "group", "namespace")):
            guess = TEAM
        elif schema.get("format") == "date":
            guess = "2026-01-31"
        least, most = int(schema.get("minLength", 0)), int(schema.get("maxLength", 500))
        pattern = schema.get("pattern")
        rule = re.compile(pattern or "", re.ASCII)
        letters_only = "cart" + "".join(chr(97 + int(digit)) for digit in str(self.number))
        for text in (guess, self.name, letters_only, letters_only.capitalize(), *TRIES):
            if rule.search(text) and least <= len(text) <= most:
                return text
        return str(
            find(
                st.from_regex(
                    rule, alphabet=st.characters(codec="ascii", exclude_categories=["C"])
                ),
                lambda text: least <= len(text) <= most,
                settings=settings(database=None, suppress_health_check=list(HealthCheck)),
            )
        )


def answers(document: Mapping[str, Any], answering: Answering) -> dict[str, Any]:
    """Return answers to all pages."""
    parameters = (document.get("spec") or {}).get("parameters") or []
    pages = parameters if isinstance(parameters, list) else [parameters]
    found: dict[str, Any] = {}
    for page in pages:
        if isinstance(page, dict):
            found |= {key: value for key, value in answering.page(page).items() if key not in found}
    return found


def secrets_of(document: Mapping[str, Any]) -> list[str]:
    """Return the names of a template's secrets: fields of the form, and those of its schema."""
    spec = document.get("spec") or {}
    parameters = spec.get("parameters") or []
    pages = parameters if isinstance(parameters, list) else [parameters]
    fields = [(page.get("properties") or {}) for page in pages if isinstance(page, dict)]
    named = [n for f in fields for n, s in f.items() if (s or {}).get("ui:field") == "Secret"]
    return [*named, *((spec.get("secrets") or {}).get("schema") or {}).get("properties", {})]


# --- running


@dataclass
class Site:
    """A platform with a forge of one kind."""

    running: Running
    platform_file: Path
    folder: Path
    options: tuple[str, ...] = ()
    """More options of ``orderkit run``."""

    @property
    def host(self) -> str:
        """The forge as a template names it, with the group that holds the platform."""
        return self.running.platform.forge.base_url.partition("://")[2]

    def checkout(self, source: Path) -> Path:
        """Return a copy of a repository in which GitHub and GitLab are this forge."""
        copy = self.folder / source.name
        if not copy.exists():
            shutil.copytree(source, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            for path, _ in templates_in(copy):
                path.write_text(HOSTS.sub(self._renamed, path.read_text()))
        return copy

    def _renamed(self, match: re.Match[str]) -> str:
        return f"http://{self.host}" if match[1] else self.host

    def ensure(self, problem: str) -> bool:
        """Make what an error says is missing; say whether something was made."""
        forge = self.running.platform.forge
        if match := _ORGANISATION.search(problem):
            return forge.ensure_org(next(group for group in match.groups() if group))
        if match := _REPOSITORY.search(problem):
            repo = RepoId.parse(match[1])
            if repo is None:
                return False
            forge.ensure_org(repo.owner)
            forge.ensure_repo(repo, description="")
            change = FileChange(PurePosixPath("README.md"), b"here before\n", None)
            forge.write(repo, [change], Operation(f"made-{repo.name}", "user:default/t", "Made"))
            return True
        if match := _ENTITY.search(problem) or _ENTITY_404.search(problem):
            return self.register(match[1], match[2])
        return False

    def register(self, kind: str, name: str) -> bool:
        """Have the catalog know an entity, from a file of the platform's organisation."""
        platform = self.running.platform
        repo = RepoId(platform.ledger.owner, f"made-{kind}-{name}")
        if platform.forge.repo(repo) is not None:
            return False
        platform.forge.ensure_repo(repo, description="")
        entity = {
            "apiVersion": "backstage.io/v1alpha1",
            "kind": _KINDS.get(kind, kind.capitalize()),
            "metadata": {"name": name, "labels": {"git-org": TEAM}},
            "spec": {
                "type": "service",
                "lifecycle": "production",
                "owner": f"group:default/{TEAM}",
                "system": "default",
                "definition": "x",
                "children": [],
                "profile": {},
            },
        }
        change = FileChange(PurePosixPath("e.yaml"), yaml.safe_dump(entity).encode(), None)
        platform.forge.write(repo, [change], Operation(f"made-{name}", "user:default/t", "Made"))
        url = f"{platform.forge.base_url}/{repo}"
        folder = platform.forge.capabilities.pages.folder(url, "main")
        platform.catalog.register(f"{folder}e.yaml")
        return True


_ORGANISATION = re.compile(r"(?:no organisation|organisation|group) '?([\w.-]+)'? does not exist|"
                           r"no organisation ([\w.-]+)")  # fmt: skip
_ENTITY_404 = re.compile(r"/entities/by-name/(\w+)/default/([\w.-]+): the service answered 404")
_ENTITY = re.compile(r"\b(\w+):default/([\w.-]+)'?: the catalog has no such entity")
_KINDS = {"api": "API"}
_REPOSITORY = re.compile(r"'([\w.-]+/[\w.-]+)' does not exist on the forge")


def walked(site: Site, path: Path, checkout: Path, document: Mapping[str, Any], number: int) -> str:
    """Run a template; return why it did not come to its end, or nothing."""
    try:
        values = answers(document, Answering(site.host, number))
    except Exception as error:  # noqa: BLE001  a form that nobody could fill in
        return f"form: {type(error).__name__}: {error}"
    with tempfile.TemporaryDirectory() as folder:
        value_file, secret_file = Path(folder) / "values.json", Path(folder) / "secret"
        value_file.write_text(json.dumps(values, default=str))
        secret_file.write_text("a-secret-of-the-walk")
        command = ["run", str(path), "--repository", str(checkout), "--values", str(value_file)]
        command += ["--platform", str(site.platform_file), *site.options]
        command += ["--requester", f"user:default/{TEAM}"]
        command += ["--template-name", str(document["metadata"]["name"])]
        for name in secrets_of(document):
            command += ["--secret", f"{name}=@{secret_file}"]
        problem = ""
        for _ in range(REPAIRS):
            problem = _attempt(command)
            if not problem or not site.ensure(problem):
                break
        return problem


def _attempt(command: list[str]) -> str:
    said = io.StringIO()
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(RUN_S)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            code = run(command)
    except Exception as error:  # noqa: BLE001  our own fault is an outcome too
        return f"bug: {type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    text = said.getvalue().strip()
    at = text.rfind("error:")
    return "" if code == 0 else f"exit {code}: {text[max(at, 0) :][:600]}"


def _too_long(*_: object) -> None:
    raise TimeoutError(f"not done after {RUN_S} s")


@contextlib.contextmanager
def site_of(kind: ForgeKind, folder: Path, options: tuple[str, ...]) -> Iterator[Site]:
    """Start a platform."""
    folder.mkdir(parents=True)
    request = EmbeddedRunRequest(
        folder / "state", changing_pack(folder / "pack"), Ports(0, 0, 0, 0), (TEAM,), forge=kind
    )
    with running(request, on_step=lambda *_: None) as found:
        site = Site(found, folder / "state" / "platform.yaml", folder / "checkouts", options)
        site.register("user", TEAM)  # who runs the templates
        yield site


def walk(folder: Path, only: str, options: tuple[str, ...]) -> list[Outcome]:
    """Run every template below a folder."""
    outcomes: list[Outcome] = []
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sites: dict[ForgeKind, Site] = {}
        for repository in sorted(path for path in folder.iterdir() if path.is_dir()):
            for path, document in templates_in(repository):
                if only not in str(path):
                    continue
                kind = _kind(document)
                if kind not in sites:
                    sites[kind] = stack.enter_context(site_of(kind, scratch / kind, options))
                outcome = _outcome(sites[kind], repository, path, document, len(outcomes) + 1)
                outcomes.append(outcome)
                what = "ended" if outcome.ended else repr(outcome.why[:300])
                print(f"{len(outcomes):4} {what}  {repository.name}/{outcome.path}", flush=True)
    return outcomes


def _kind(document: Mapping[str, Any]) -> ForgeKind:
    return "gitlab" if any(a.startswith("publish:gitlab") for a in _actions(document)) else "github"


def _actions(document: Mapping[str, Any]) -> tuple[str, ...]:
    steps = (document.get("spec") or {}).get("steps") or []
    return tuple(sorted({str(step.get("action")) for step in steps if isinstance(step, dict)}))


def _outcome(
    site: Site, repository: Path, path: Path, document: Mapping[str, Any], number: int
) -> Outcome:
    """Run one template in the copy of its repository."""
    checkout, name = site.checkout(repository), document["metadata"]["name"]
    own = checkout / path.relative_to(repository)
    named = [d for p, d in templates_in(checkout) if p == own and d["metadata"]["name"] == name]
    why = walked(site, own, checkout, named[0], number) if named else "cannot be read"
    file = str(path.relative_to(repository))
    return Outcome(
        repository.name, file, str(name), _kind(document), not why, why, _actions(document)
    )


def count(outcomes: list[Outcome]) -> str:
    """Return the table of docs/conformance-public.md."""
    known = [outcome for outcome in outcomes if set(outcome.actions) <= ACTIONS.keys()]
    ended = sum(outcome.ended for outcome in outcomes)
    whys: Counter[str] = Counter()
    for outcome in outcomes:
        if not outcome.ended:
            unknown = sorted(set(outcome.actions) - ACTIONS.keys())
            whys["an action that Orderkit does not know" if unknown else outcome.why[:90]] += 1
    lines = [
        f"{len(outcomes)} templates of {len({o.repository for o in outcomes})} repositories",
        f"{len(known)} use only actions that Orderkit knows",
        f"{ended} run to their end",
        *(f"{number:4} {why}" for why, number in whys.most_common()),
    ]
    return "\n".join(lines)


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--lenient", action="store_true", help="as of 'orderkit run'")
    parser.add_argument("--dry-run", action="store_true", help="as of 'orderkit run'")
    parser.add_argument("--count", action="store_true")
    given = parser.parse_args()
    if not given.count:
        flags = {"--lenient": given.lenient, "--dry-run": given.dry_run}
        found = walk(
            given.folder, given.only, tuple(name for name, is_on in flags.items() if is_on)
        )
        given.results.write_text(json.dumps([asdict(outcome) for outcome in found], indent=1))
    outcomes = [Outcome(**entry) for entry in json.loads(given.results.read_text())]
    print(count(outcomes))


if __name__ == "__main__":
    main()
