"""Actions that reach the platform: publish, request, register, Application; over real HTTP."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from ground.errors import (
    AlreadyOrderedError,
    InvalidInputError,
    RemoteError,
    SeveralProblemsError,
    UsageError,
)
from ground.names import RepoId
from ground.objects.kube_objects import APPLICATION, ObjectKey
from orderkit.flows.template import scaffolder
from softwaretemplates.render import RenderError, UndefinedValueError
from softwaretemplates.template import parse_template
from yamlfiles.manifests import parse_manifests

if TYPE_CHECKING:
    from collections.abc import Mapping

GARAGE = Path(__file__).parents[3] / "templates" / "garage"


def garage(world: Any) -> tuple[bytes, dict[str, bytes]]:
    """Return the garage kit's template as the platform bakes it, and the files beside it."""
    files = {str(p.relative_to(GARAGE)): p.read_bytes() for p in GARAGE.rglob("*") if p.is_file()}
    host = world.forge.base_url.removeprefix("http://").encode()
    baked = files["template.yaml"].replace(b"__ORDERKIT_FORGE_HOST__", host)
    return baked.replace(b"__ORDERKIT_PACK_COMMIT__", b"a" * 40), files


def step(action: str, **inputs: Any) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "scaffolder.backstage.io/v1beta3",
            "kind": "Template",
            "metadata": {"name": "t"},
            "spec": {
                "type": "service",
                "steps": [{"id": "one", "action": action, "input": inputs}],
                "output": {"one": "${{ steps.one.output }}"},
            },
        },
        sort_keys=False,
    )


def test_the_garage_template_orders_a_garage(world: Any) -> None:
    world.forge.ensure_org("yes")
    template, files = garage(world)

    done = world.run(template, {"team_name": "yes", "stage": "stage2"}, files)

    repo = RepoId("yes", "garage-yes")
    manifest = world.forge.read(repo, PurePosixPath("manifests/xgarage.yaml"), "main")
    (xr,) = parse_manifests("xgarage.yaml", manifest.data)
    assert xr["metadata"]["name"] == "garage-yes"
    assert xr["spec"] == {"teamName": "yes", "stage": "stage2"}
    entity = world.catalog.entity("component:default/garage-yes")
    assert entity["spec"]["owner"] == "group:default/yes"
    assert done.outputs["links"][0]["url"] == f"{world.forge.base_url}/yes/garage-yes.git"
    assert done.outputs["links"][1]["entityRef"] == "component:default/garage-yes"


def test_the_garage_template_registers_with_the_service(world: Any) -> None:
    world.forge.ensure_org("ae86")
    template, files = garage(world)

    world.run(template, {"team_name": "ae86", "stage": "stage1"}, files)

    method, path, headers, _ = world.service.seen[-1]
    assert (method, path) == ("POST", "/v1/orders")
    assert headers["idempotency-key"] == "task-1"
    assert headers["x-platform-secret"]
    assert "authorization" not in headers
    assert world.service.body() == {
        "order": "garage-ae86",
        "kit": "garage",
        "team": "ae86",
        "repository": "ae86/garage-ae86",
        "requester": "user:default/tester",
    }


def test_the_same_order_twice_is_one_commit_and_other_values_are_a_conflict(world: Any) -> None:
    world.forge.ensure_org("ae86")
    template, files = garage(world)

    for _ in range(2):
        world.run(template, {"team_name": "ae86", "stage": "stage1"}, files)
    with pytest.raises(AlreadyOrderedError, match="stage was 'stage1', asked for") as caught:
        world.run(template, {"team_name": "ae86", "stage": "stage2"}, files)

    assert caught.value.hint == "orderkit change garage-ae86 stage=stage2"

    assert len(world.forge.commits(RepoId("ae86", "garage-ae86"))) == 1


def test_a_pack_that_was_never_baked_is_refused(world: Any) -> None:
    _, files = garage(world)

    with pytest.raises(SeveralProblemsError) as refused:
        world.run(files["template.yaml"], {"team_name": "ae86", "stage": "stage1"}, files)

    problems = [p for p in refused.value.problems if isinstance(p, InvalidInputError)]
    fields = {problem.field: problem.hint for problem in problems}
    assert fields.keys() == {"forge_host", "pack_commit"}
    assert all("not published to a platform" in hint for hint in fields.values())


def test_a_skeleton_that_uses_an_undefined_value_publishes_nothing(world: Any) -> None:
    world.forge.ensure_org("ae86")
    template, files = garage(world)
    files["skeleton/README.md"] = b"# ${{ values.nobody }}\n"

    with pytest.raises(UndefinedValueError, match=r"README\.md:1:3"):
        world.run(template, {"team_name": "ae86", "stage": "stage1"}, files)

    assert world.forge.repo(RepoId("ae86", "garage-ae86")) is None


@pytest.mark.parametrize(
    ("inputs", "field"),
    [
        ({"repoUrl": "elsewhere?owner=a&repo=b"}, "repoUrl"),
        ({"repoUrl": "HOST?repo=b"}, "repoUrl"),
        ({"defaultBranch": "trunk"}, "defaultBranch"),
        ({"sourcePath": "none"}, "sourcePath"),
    ],
)
def test_publish_refuses(world: Any, inputs: Mapping[str, str], field: str) -> None:
    host = world.forge.base_url.removeprefix("http://")
    wanted = {"repoUrl": "HOST?owner=a&repo=b", "description": "d", **inputs}
    spec = yaml.safe_load(step("publish:gitea", **wanted).replace("HOST", host))
    fetch = {"id": "fetch", "action": "fetch:plain", "input": {"url": "s"}}
    spec["spec"]["steps"].insert(0, fetch)

    with pytest.raises(InvalidInputError, match=field):
        world.run(yaml.safe_dump(spec), {}, {"s/f": b"x"})


REQUEST = {"method": "POST", "path": "/proxy/orderkit/v1/x"}
JSON_HEADER = {"Content-Type": "application/json"}


def test_a_request_sends_compact_json_and_returns_code_and_body(world: Any) -> None:
    world.service.answer = {"id": 7}
    template = step(
        "http:backstage:request",
        **REQUEST,
        headers={**JSON_HEADER, "X-Platform-Secret": "forged"},
        body={"b": 1, "a": ["é"]},
        params={"q": "a b"},
    )

    done = world.run(template, {})

    assert done.outputs["one"]["code"] == 201
    assert done.outputs["one"]["body"] == {"id": 7}
    _, path, headers, body = world.service.seen[-1]
    assert path == "/v1/x?q=a+b"
    assert body == '{"b":1,"a":["é"]}'.encode()
    assert headers["x-platform-secret"] != "forged"


def test_a_refused_request_shows_status_and_the_services_own_message(world: Any) -> None:
    world.service.status = 409
    world.service.answer = {"error": {"message": "garage-x exists", "hint": "choose another"}}

    with pytest.raises(RemoteError, match="409: garage-x exists") as refused:
        world.run(step("http:backstage:request", **REQUEST), {})

    assert refused.value.hint == "choose another"


def test_continue_on_bad_response_goes_on_with_the_code(world: Any) -> None:
    world.service.status, world.service.answer = 500, "broken"

    done = world.run(step("http:backstage:request", **REQUEST, continueOnBadResponse=True), {})

    assert done.outputs["one"] == {"code": 500, "headers": {}, "body": {"message": "broken"}}


def test_a_body_without_a_json_content_type_is_refused(world: Any) -> None:
    with pytest.raises(InvalidInputError, match="content type"):
        world.run(step("http:backstage:request", **REQUEST, body={"a": 1}), {})


def test_a_service_that_announces_json_and_sends_none_is_not_believed(world: Any) -> None:
    world.service.answer = b"<html>"

    with pytest.raises(RemoteError, match="announced JSON and sent"):
        world.run(step("http:backstage:request", **REQUEST), {})


def test_a_header_of_several_lines_is_not_sent(world: Any) -> None:
    with pytest.raises(RemoteError, match="is not a legal HTTP header value"):
        world.run(step("http:backstage:request", **REQUEST, headers={"X-Note": "a\nX-Y: b"}), {})

    assert world.service.seen == []


@pytest.mark.parametrize("both", [False, True])
def test_a_registration_names_one_place(world: Any, *, both: bool) -> None:
    url = f"{world.forge.base_url}/a/b/src/branch/main/catalog-info.yaml"
    places = {"catalogInfoUrl": url, "repoContentsUrl": url} if both else {}

    with pytest.raises(InvalidInputError, match="is needed, or repoContentsUrl with"):
        world.run(step("catalog:register", **places), {})


@pytest.mark.parametrize(
    "path", ["/proxy/unknown/x", "/proxy/orderkit/../x", "/proxy/orderkit/%2e%2e/x"]
)
def test_a_path_outside_the_endpoints_is_refused(world: Any, path: str) -> None:
    with pytest.raises(InvalidInputError, match="path"):
        world.run(step("http:backstage:request", method="GET", path=path), {})


def test_other_paths_go_to_the_portal_with_its_token(world: Any) -> None:
    done = world.run(step("http:backstage:request", method="GET", path="/catalog/locations"), {})

    assert done.outputs["one"] == {
        "code": 200,
        "headers": done.outputs["one"]["headers"],
        "body": [],
    }


def test_an_application_is_made_once_and_again(world: Any) -> None:
    template = step(
        "cnoe:create-argocd-app",
        repoUrl="http://forge.example/a/b",
        projectName="default",
        appName="demo",
        argoInstance="in-cluster",
        path="manifests",
        appNamespace="demo",
        labelValue="demo",
    )

    world.run(template, {})
    key = ObjectKey(APPLICATION, "demo", "argocd")
    first = world.cluster.get(key)
    world.run(template, {})

    assert world.cluster.get(key) == first
    assert first["spec"]["syncPolicy"]["syncOptions"] == [
        "CreateNamespace=false",
        "FailOnSharedResource=true",
        "ServerSideApply=true",
    ]
    assert "targetRevision" not in first["spec"]["source"]
    assert first["metadata"]["labels"] == {"backstage-name": "demo"}


def test_a_step_that_finds_out_that_it_needs_a_platform_says_so() -> None:
    """Where its files come from is known only while it runs."""
    text = step("fetch:plain", url="https://forge.example/o/r/src/branch/main/x")

    with pytest.raises(UsageError, match="needs a platform") as refused:
        scaffolder.run(
            parse_template(text.encode(), name="template.yaml"),
            {},
            files={},
            services=None,
            user=scaffolder.User("user:default/tester"),
            task_id="task-1",
            on_step=lambda _: None,
        )

    assert "--platform FILE" in refused.value.hint


def test_a_catalog_path_with_a_slash_is_refused_with_the_way_out(world: Any) -> None:
    url = f"{world.forge.base_url}/a/b/src/branch/main/"

    with pytest.raises(InvalidInputError, match="branch would be lost") as refused:
        world.run(step("catalog:register", repoContentsUrl=url), {})

    assert "'catalog-info.yaml'" in refused.value.hint


def test_an_optional_registration_goes_on(world: Any) -> None:
    url = f"{world.forge.base_url}/a/b/src/branch/main/none.yaml"

    done = world.run(step("catalog:register", catalogInfoUrl=url, optional=True), {})

    assert done.outputs["one"] == {"catalogInfoUrl": url}
    assert "not registered" in done.log[0]


def test_a_skeleton_is_fetched_from_a_repository_of_the_forge(world: Any) -> None:
    repo = RepoId("platform", "pack")
    world.forge.ensure_org("platform")
    world.forge.ensure_repo(repo, description="")
    world.push(repo, {"kit/skeleton/a.txt": "from the forge", "other": "x"})
    spec = yaml.safe_load(step("fetch:plain", url=world.url(repo, "kit/skeleton")))
    spec["spec"]["steps"].append(
        {"id": "show", "action": "debug:log", "input": {"listWorkspace": "with-contents"}}
    )

    done = world.run(json.dumps(spec), {})

    assert done.log[-1] == "a.txt\nfrom the forge"


PARSING = """apiVersion: scaffolder.backstage.io/v1beta3
kind: Template
metadata: {name: t}
spec:
  type: service
  parameters: {properties: {url: {type: string}}}
  steps:
    - id: fetch
      action: fetch:template
      input: {url: SOURCE, values: {url: '${{ parameters.url }}'}}
    - id: say
      action: debug:log
      input: {message: 'on ${{ (parameters.url | parseRepoUrl).host }}'}
"""


@pytest.mark.parametrize("host", ["FORGE", "github.com"])
def test_an_address_on_a_forge_the_portal_knows_is_parsed(world: Any, host: str) -> None:
    url = f"{host.replace('FORGE', world.forge.base_url.partition('://')[2])}?owner=o&repo=r"

    done = world.run(
        PARSING.replace("SOURCE", "./skeleton"),
        {"url": url},
        {"skeleton/a.txt": b"${{ (values.url | parseRepoUrl).repo }}"},
    )

    assert done.log[-1] == f"on {url.partition('?')[0]}"


@pytest.mark.parametrize("where", ["beside the template", "in another repository"])
def test_an_address_on_any_other_host_fails_as_in_the_portal(world: Any, where: str) -> None:
    """In this process and in the confined child."""
    source = "./skeleton"
    text = "${{ (values.url | parseRepoUrl).repo }}"
    if where == "in another repository":
        repo = RepoId("others", "skeletons")
        world.forge.ensure_org(repo.owner)
        world.forge.ensure_repo(repo, description="")
        world.push(repo, {"skeleton/a.txt": text})
        source = f"{world.forge.base_url}/{repo}/src/branch/main/skeleton"

    with pytest.raises(RenderError, match="no integration for host"):
        world.run(
            PARSING.replace("SOURCE", source),
            {"url": "git.elsewhere.example?owner=o&repo=r"},
            {"skeleton/a.txt": text.encode()},
        )


def test_a_step_that_parses_an_unknown_host_fails_instead_of_passing_its_source_on(
    world: Any,
) -> None:
    text = PARSING.replace("SOURCE", "./skeleton")

    with pytest.raises(RenderError, match="no integration") as error:
        world.run(text, {"url": "x.example?owner=o&repo=r"}, {"skeleton/a.txt": b"plain"})
    assert "Backstage would pass the text on" in error.value.hint
