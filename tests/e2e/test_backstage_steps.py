"""Whole templates through a real backend's dry run and our interpreter: files and outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import Any

import pytest
from lab.realbackstage import GUEST
from published import Up
from scaffolderapi import Scaffolder

from ground.errors import InvalidInputError
from ground.names import CommitSha
from orderkit.adapters.processes.confined_rendering import judge_confined
from orderkit.flows.template import scaffolder as scaffolding
from softwaretemplates.render import RenderError
from softwaretemplates.render.integrations import BUILT_IN
from softwaretemplates.template import parse_template


@dataclass(frozen=True)
class Case:
    reason: str
    steps: list[dict[str, Any]]
    values: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    output: Mapping[str, Any] = field(default_factory=dict)
    pages: tuple[dict[str, Any], ...] = ()

    @property
    def template(self) -> dict[str, Any]:
        spec = {
            "type": "service",
            "owner": "group:default/platform",
            "parameters": list(self.pages) or [{"properties": {name: {} for name in self.values}}],
            "steps": [{"name": step["id"], **step} for step in self.steps],
            "output": self.output,
        }
        return {
            "apiVersion": "scaffolder.backstage.io/v1beta3",
            "kind": "Template",
            "metadata": {"name": "dry-run"},  # what a dry run calls it
            "spec": spec,
        }


def _fetch(id_: str = "fetch", /, **inputs: Any) -> dict[str, Any]:
    return {"id": id_, "action": "fetch:template", "input": {"url": "./skeleton", **inputs}}


def _write(path: str, content: str, **step: Any) -> dict[str, Any]:
    """Make a step that puts a rendered text into a file: it shows what a step sees."""
    inputs = {"url": "./one.txt", "targetPath": path, "values": {"content": content}}
    return {"id": path, "action": "fetch:template:file", "input": inputs, **step}


def _page(*names: str, when: str | None = None, required: bool = False) -> dict[str, Any]:
    """Make a page of the form; it asks for texts."""
    page = {
        "properties": {name: {"type": "string"} for name in names},
        "required": list(names) if required else [],
    }
    return page if when is None else {"when": when, **page}


CLOUD = (
    _page("cloud", required=True),
    _page("region", when="${{ parameters.cloud === 'aws' }}", required=True),
    _page("project", "zone", when="parameters.cloud === 'gcp'", required=True),
    _page("zone", when="parameters.region"),
)
SHOWN = {name: f"${{{{ parameters.{name} }}}}" for name in ("cloud", "region", "project", "zone")}
LOG = {"id": "log", "action": "debug:log", "input": {"message": "m"}}
ONE = {"one.txt": "${{ values.content | dump }}"}
THINGS = {
    "list": ["a", "b"],
    "empty": [],
    "map": {"x": 1},
    "word": "false",
    "number": 0,
    "on": True,
}

CASES = [
    Case(
        "a lone expression keeps its type, text around it makes text",
        [{"id": "log", "action": "debug:log", "input": {"message": "m"}}],
        THINGS,
        output={
            **{name: f"${{{{ parameters.{name} }}}}" for name in THINGS},
            "spaced": " ${{ parameters.number }}",
            "object": "${{ parameters.map }} and more",
            "missing": "${{ parameters.nothing }}",
        },
    ),
    Case(
        "a lone block is read as JSON, an empty text drops the key",
        [
            LOG,
            _write("no.txt", "n", **{"if": "{% if parameters.on %}false{% endif %}"}),
            _write("zero.txt", "n", **{"if": "{% if parameters.on %}0{% else %}1{% endif %}"}),
            _write("yes.txt", "y", **{"if": "{% if parameters.on %} true {% endif %}"}),
            _write("empty.txt", "${{ '' }}"),
            _write("${{ each.key }}.txt", "e", each='{% if parameters.on %}["a"]{% endif %}'),
        ],
        THINGS,
        ONE,
        {
            "count": "{% if parameters.on %}5{% endif %}",
            "map": "{% if parameters.on %}${{ parameters.map }}{% endif %}",
            "word": "{% if parameters.on %}${{ parameters.word }}{% endif %}",
            "list": "{% for x in parameters.list %}{% if loop.first %}[1]{% endif %}{% endfor %}",
            "dropped": "",
            "dropped too": "${{ parameters.nothing }}${{ parameters.nothing }}",
            "null": "${{ 0 / 0 }}",
        },
    ),
    *(
        Case(f"pages with a condition: {reason}", [LOG], values, {}, SHOWN, CLOUD)
        for reason, values in (
            ("one of them is shown", {"cloud": "aws", "region": "eu"}),
            ("another is", {"cloud": "gcp", "project": "p", "zone": "z"}),
            ("values of hidden ones are removed", {"cloud": "x", "region": "r", "zone": "z"}),
            ("a hidden answer hides the next page", {"cloud": "x", "region": "r"}),
            ("a field of two pages", {"cloud": "aws", "region": "r", "zone": "z", "project": "p"}),
        )
    ),
    Case(
        "if: an empty list is false, an empty map is true, the text false is true",
        [
            _write(f"{name}.txt", name, **{"if": f"${{{{ parameters.{name} }}}}"})
            for name in (*THINGS, "nothing")
        ],
        {**THINGS, "map": {}},
        ONE,
    ),
    Case(
        "each: over a list and over a map, judged item by item",
        [
            _write(
                "${{ each.key }}-${{ each.value }}",
                "${{ each.value }}",
                each="${{ parameters.list }}",
            ),
            {
                **_write("m-${{ each.key }}", "${{ each.value }}", each="${{ parameters.map }}"),
                "id": "map",
                "if": "${{ each.value > 1 }}",
            },
        ],
        {"list": ["a", "b"], "map": {"x": 1, "y": 2}},
        ONE,
    ),
    Case(
        "JavaScript's operators: identity, value-returning and/or, plus on texts, inline if",
        [
            _write("same", "${{ parameters.n === 3 }}"),
            _write("word", "${{ parameters.n === 3 and 'yes' or 'no' }}"),
            _write("fall", "${{ parameters.empty or steps['same'].output.nothing or 'last' }}"),
            _write("plus", "${{ parameters.t + '/' + parameters.n }}"),
            _write("else", "${{ parameters.t if parameters.t else '.' }}"),
            _write("chain", "${{ user.entity.metadata.nothing.deep | default('unknown') }}"),
        ],
        {"n": 3, "t": "a", "empty": ""},
        ONE,
    ),
    Case(
        "Backstage's filters",
        [
            _write("owner", '${{ (parameters.url | parseRepoUrl)["owner"] }}'),
            _write("slug", "${{ parameters.url | projectSlug }}"),
            _write("ref", "${{ parameters.ref | parseEntityRef }}"),
            _write("pick", "${{ parameters.ref | parseEntityRef | pick('name') }}"),
            _write("user", "${{ user.ref }}"),
        ],
        {"url": "FORGE?owner=o&repo=r", "ref": "component:ns/thing"},
        ONE,
    ),
    Case(
        "templateFileExtension: only those files, and it is cut off",
        [_fetch(values={"n": "x"}, templateFileExtension=".tpl")],
        files={
            "skeleton/a.txt.tpl": "${{ values.n }}",
            "skeleton/b.txt": "${{ values.n }}",
            "skeleton/${{ values.n }}/c.txt": "${{ values.n }}",
        },
    ),
    Case(
        "cookiecutterCompat: other delimiters, jsonify",
        [_fetch(values={"n": "x", "l": [1, "ö"]}, cookiecutterCompat=True)],
        files={
            "skeleton/a.txt": "{{ cookiecutter.n }} ${{ cookiecutter.n }}\n",
            "skeleton/b.txt": "{{ cookiecutter.l | jsonify }}\n",
            "skeleton/{{ cookiecutter.n }}.txt": "{% if cookiecutter.n %}y{% endif %}\n",
        },
    ),
    Case(
        "trimBlocks and lstripBlocks",
        [_fetch(values={"l": [1, 2]}, trimBlocks=True, lstripBlocks=True)],
        files={"skeleton/a.txt": "a\n  {% for x in values.l %}\n  - ${{ x }}\n  {% endfor %}\nz\n"},
    ),
    Case(
        "an earlier step's file stays, unless replace is asked for",
        [
            _fetch("first", values={"n": 1}),
            _fetch("second", values={"n": 2}),
            _fetch("third", values={"n": 3}, targetPath="other"),
            _fetch("fourth", values={"n": 4}, targetPath="other", replace=True),
        ],
        files={"skeleton/a.txt": "${{ values.n }}\n"},
    ),
    Case(
        "names that become empty, and folders that are left out",
        [_fetch(values={"on": False, "sub": "x/y"})],
        files={
            "skeleton/{% if values.on %}dir{% endif %}/a.txt": "a",
            "skeleton/deep/{% if values.on %}dir{% endif %}/a.txt": "a",
            "skeleton/${{ values.sub }}.txt": "in a folder",
            "skeleton/kept.txt": "k",
        },
    ),
    Case(
        "fetch:plain copies, fs:rename moves, fs:delete removes, fs:readdir lists",
        [
            {
                "id": "plain",
                "action": "fetch:plain",
                "input": {"url": "./skeleton", "targetPath": "a"},
            },
            {
                "id": "rename",
                "action": "fs:rename",
                "input": {"files": [{"from": "a/x.txt", "to": "b/y.txt"}]},
            },
            {"id": "delete", "action": "fs:delete", "input": {"files": ["a/z.txt"]}},
            {
                "id": "file",
                "action": "fetch:plain:file",
                "input": {"url": "./one.txt", "targetPath": "b/one.txt"},
            },
            {"id": "read", "action": "fs:readdir", "input": {"paths": ["."], "recursive": True}},
        ],
        files={"skeleton/x.txt": "${{ x }}", "skeleton/z.txt": "z", "skeleton/w.txt": "w", **ONE},
    ),
    Case(
        "catalog:write writes an entity",
        [
            {
                "id": "write",
                "action": "catalog:write",
                "input": {
                    "filePath": "info/catalog-info.yaml",
                    "entity": {
                        "apiVersion": "backstage.io/v1alpha1",
                        "kind": "Component",
                        "metadata": {"name": "${{ parameters.n }}", "annotations": {"a": "1e3"}},
                        "spec": {"type": "x", "lifecycle": "y", "owner": "yes"},
                    },
                },
            }
        ],
        {"n": "cart"},
    ),
    Case(
        "links and texts are shown by their if",
        [{"id": "log", "action": "debug:log", "input": {"message": "m"}}],
        {"on": True, "off": False},
        output={
            "links": [
                {
                    "title": "a",
                    "url": "http://a.example/${{ parameters.on }}",
                    "if": "${{ parameters.on }}",
                },
                {"title": "b", "url": "http://b.example", "if": "${{ parameters.off }}"},
            ],
            "text": [
                {"title": "c", "content": "c", "if": True},
                {"title": "d", "content": "d", "if": "${{ parameters.off }}"},
            ],
        },
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_both_engines_come_to_the_same(case: Case, scaffolder: Scaffolder, up: Up) -> None:
    host = up.settings.forge.url.partition("://")[2]
    values = {
        name: value.replace("FORGE", host) if isinstance(value, str) else value
        for name, value in case.values.items()
    }
    files = {PurePosixPath(path): text.encode() for path, text in case.files.items()}

    theirs = scaffolder.dry_run(case.template, values, files)
    ours = _ours(case, values, files, up)

    assert {path: file.data for path, file in ours.workspace.items()} == {
        path: file.data for path, file in theirs.files.items()
    }
    assert dict(ours.outputs) == dict(theirs.output)


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        ({"cloud": "aws"}, "region"),
        ({"cloud": "gcp", "region": "r", "zone": "z"}, "project"),
        ({"region": "r"}, "cloud"),
    ],
)
def test_both_engines_require_the_fields_of_shown_pages_only(
    values: dict[str, str], missing: str, scaffolder: Scaffolder, up: Up
) -> None:
    case = Case("required", [LOG], values, pages=CLOUD)

    theirs = scaffolder.try_dry_run(case.template, values, {})

    assert theirs.status == HTTPStatus.BAD_REQUEST
    assert [error["message"] for error in theirs.body["errors"]] == [
        f'requires property "{missing}"'
    ]
    with pytest.raises(InvalidInputError, match=f"^{missing} is missing: the form requires it$"):
        _ours(case, values, {}, up)


PARSED = "${{ values.url | parseRepoUrl | pick('host') }}\n"


PARSING = Case("parseRepoUrl", [_fetch(values={"url": "${{ parameters.url }}"})], {"url": ""})
SKELETON = {PurePosixPath("skeleton/a.txt"): PARSED.encode()}


def _on(host: str) -> dict[str, str]:
    return {"url": f"{host}?owner=o&repo=r&workspace=w&project=p"}


@pytest.mark.parametrize("host", [*sorted(BUILT_IN), "FORGE"])
def test_both_engines_know_the_platforms_forge_and_the_built_in_ones(
    host: str, scaffolder: Scaffolder, up: Up
) -> None:
    values = _on(host.replace("FORGE", up.settings.forge.url.partition("://")[2]))

    theirs = scaffolder.dry_run(PARSING.template, values, SKELETON).files
    ours = _ours(PARSING, values, SKELETON, up).workspace

    path = PurePosixPath("a.txt")
    assert ours[path].data == theirs[path].data == f"{values['url'].partition('?')[0]}\n".encode()


@pytest.mark.parametrize("host", ["git.elsewhere.example", "127.0.0.1:1", "gitlab.com.example"])
def test_both_engines_fail_on_any_other_host(host: str, scaffolder: Scaffolder, up: Up) -> None:
    theirs = scaffolder.try_dry_run(PARSING.template, _on(host), SKELETON)

    assert theirs.status >= 400
    assert "No matching integration configuration" in str(theirs.body)
    with pytest.raises(RenderError, match="no integration for host"):
        _ours(PARSING, _on(host), SKELETON, up)


def _ours(
    case: Case, values: Mapping[str, Any], files: Mapping[PurePosixPath, bytes], up: Up
) -> scaffolding.TaskResult:
    return scaffolding.run(
        parse_template(json.dumps(case.template).encode(), name="case"),
        values,
        files=files,
        services=scaffolding.Services(
            forge=up.platform.forge,
            catalog=up.platform.catalog,
            cluster=up.platform.cluster,
            portal=up.platform.portal,
            publish=_never,
            confined=judge_confined,
        ),
        user=scaffolding.User(GUEST),
        task_id="case",
        on_step=lambda _event: None,
    )


def _never(request: scaffolding.PublishRequest) -> CommitSha:
    raise AssertionError(f"nothing is published here: {request.repo}")
