"""Templates and skeletons of other packs: their actions, forges, folders, globs and options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command
from templates import step, template

from orderkit.cli.main import run
from orderkit_standins.serve_platform import Running
from softwaretemplates.render import TreeOptions

FORM = {"properties": {"name": {"type": "string"}, "repository": {"type": "string"}}}
FETCH = step("fetch", "fetch:template", url="./skeleton", values={"name": "${{ parameters.name }}"})
PUBLISH = step(
    "publish",
    "publish:azure",
    repoUrl="${{ parameters.repository }}",
    description="for ${{ parameters.name }}",
)
LIMITS = TreeOptions()
ELSEWHERE = "repository=github.com?owner=acme&repo=cart"


def _write(folder: Path, *steps: object, **files: str | bytes) -> str:
    (folder / "skeleton").mkdir(parents=True, exist_ok=True)
    (folder / "template.yaml").write_text(template(*steps, parameters=FORM))  # type: ignore[arg-type]
    for name, data in (files or {"README.md": "# ${{ values.name }}\n"}).items():
        (folder / "skeleton" / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return str(folder)


def test_all_problems_of_a_template_are_reported_at_once(orderkit: Command, tmp_path: Path) -> None:
    folder = _write(
        tmp_path,
        PUBLISH,
        step("log", "debug:log", message="${{ parameters.name | }}"),
        {**step("say", "debug:log", message="x"), "if": "${{ secrets.token }}"},
        step("merge", "roadiehq:utils:merge", path="a.json"),
    )

    done = orderkit("run", folder, "-p", "name=cart")

    assert done.code == 2
    assert "4 problems:" in done.err
    for problem in (
        "steps.publish.action: 'publish:azure' is not an action that Orderkit knows",
        "steps.merge.action: 'roadiehq:utils:merge' is not an action that Orderkit knows",
        "steps.log.input.message",
        "steps.say.if: '${{ secrets.token }}' uses secrets",
    ):
        assert problem in done.err


def test_a_dry_run_plans_actions_that_orderkit_does_not_know(
    orderkit: Command, platform: Running, tmp_path: Path
) -> None:
    url = "${{ steps['publish'].output.remoteUrl }}"
    owner = "${{ steps.publish.output.team.name }}"
    folder = _write(
        tmp_path / "template",
        PUBLISH,
        step("fetch", "fetch:template", url="./skeleton", values={"url": url, "owner": owner}),
        step("register", "catalog:register", catalogInfoUrl="${{ steps.publish.output.url }}/x"),
        **{"README.md": "${{ values.url }} of ${{ values.owner | upper }}\n"},
    )
    out = tmp_path / "out"

    done = orderkit(
        "run", folder, "-p", "name=cart", "-p", ELSEWHERE, "--dry-run", "--out", str(out)
    )
    as_json = orderkit("run", folder, "-p", "name=cart", "-p", ELSEWHERE, "--dry-run", "--json")

    assert done.code == 0, done.err
    assert "publish  publish:azure  cannot run here" in done.out
    assert "Orderkit has no such action. did you mean 'publish:gitea'?" in done.out
    forge = platform.platform.forge.base_url.partition("://")[2]
    assert f"github.com is not this platform's forge, {forge}" in done.out
    assert 'description: "for cart"' in done.out
    assert (out / "README.md").read_text() == (
        "<unknown: steps.publish.output.remoteUrl> of <UNKNOWN: STEPS.PUBLISH.OUTPUT.TEAM.NAME>\n"
    )
    steps = json.loads(as_json.out)["steps"]
    assert [item["state"] for item in steps] == ["unknown", "done", "planned"]
    assert steps[2]["inputs"] == [{"catalogInfoUrl": "<unknown: steps.publish.output.url>/x"}]


def test_a_dry_run_reports_all_problems_of_the_steps_and_the_field_with_the_forge(
    orderkit: Command, platform: Running, tmp_path: Path
) -> None:
    folder = _write(
        tmp_path,
        step("fetch", "fetch:template", url="./skeleton", copyVerbatim=["*.md"], values={}),
        {**PUBLISH, "action": "publish:gitea"},
        step("later", "fs:rename", files=[{"from": "README.md", "to": "a.md"}]),
        step("log", "debug:log", mesage="typo"),
    )

    done = orderkit("run", folder, "-p", "name=cart", "-p", ELSEWHERE, "--dry-run")

    forge = platform.platform.forge.base_url.partition("://")[2]
    assert done.code == 2
    assert "3 problems:" in done.err
    assert "inputs of fetch:template: url, targetPath" in done.err
    assert (
        "steps.publish.input.repoUrl: 'github.com?owner=acme&repo=cart' is not on this platform's "
        f"forge, {forge} (it comes from the form's field 'repository'; write {forge}?owner="
    ) in done.err
    assert "'mesage' was unexpected" in done.err


SKELETON = (
    "${{ values.owner }} ${{ values.slug }} ${{ values.host }} ${{ values.names }} "
    "{% for region in values.regions %}${{ region.name }}{% endfor %}\n"
)


def test_what_a_dry_run_cannot_know_goes_through_filters_loops_and_file_actions(
    orderkit: Command, tmp_path: Path
) -> None:
    repo = "${{ steps.made.output.repoUrl | parseRepoUrl }}"
    values = {
        "owner": "${{ user.entity.metadata.name }}",
        "slug": "${{ steps['made'].output.repoUrl | projectSlug }}",
        "host": f"{repo[:-3]} | pick('host') }}}}",
        "names": "${{ (user.entity.spec.memberOf | parseEntityRef).name | list }}",
        "regions": "${{ environment.parameters.regions }}",
    }
    _write(
        tmp_path,
        step("made", "acme:make", repo="${{ environment.parameters.org.name }}"),
        step("fetch", "fetch:template", url="./skeleton", values=values),
        step("more", "fetch:plain", url="./${{ steps.made.output.folder }}", targetPath="m"),
        step("move", "fs:rename", files=[{"from": "m/a", "to": "b"}]),
        {
            **step("each", "debug:log", message="${{ each.value.name }}"),
            "each": "${{ user.entity.relations }}",
        },
        **{"README.md": SKELETON},
    )

    done = orderkit(
        "run", str(tmp_path), "-p", "name=cart", "--dry-run", "--out", str(tmp_path / "out")
    )

    assert done.code == 0, done.err
    assert (tmp_path / "out" / "README.md").read_text() == (
        "<unknown: user.entity.metadata.name> <unknown: steps.made.output.repoUrl> "
        "<unknown: steps.made.output.repoUrl.host> <unknown: user.entity.spec.memberOf.name> "
        "<unknown: environment.parameters.regions.item.name>\n"
    )
    assert "move  fs:rename  cannot run here" in done.out
    assert 'repo: "<unknown: environment.parameters.org.name>"' in done.out
    assert 'message: "<unknown: user.entity.relations.item.name>"' in done.out


def test_a_dry_run_plans_filters_that_orderkit_does_not_know(
    orderkit: Command, tmp_path: Path
) -> None:
    text = "${{ values.name | csharp('namespace') | upper }} ${{ '' | now }}\n"
    branch = "${{ parameters.name | githubRepoUrl | projectSlug }}"
    fetch = step("fetch", "fetch:template", url="./skeleton", values={"name": "cart"})
    folder = _write(tmp_path, fetch, step("say", "debug:log", message=branch), **{"a.txt": text})
    command = ("run", folder, "-p", "name=cart")

    planned = orderkit(*command, "--dry-run", "--out", str(tmp_path / "out"))
    run_for_real = orderkit(*command)

    assert planned.code == 0, planned.err
    assert (tmp_path / "out" / "a.txt").read_text() == (
        "<UNKNOWN: FILTER CSHARP> <unknown: filter now>\n"
    )
    assert 'message: "<unknown: filter githubRepoUrl>"' in planned.out
    assert "there is no filter 'githubRepoUrl'" in run_for_real.err


@pytest.mark.parametrize("action", ["fetch:template", "fetch:template:file"])
def test_a_value_that_nobody_passed_prints_nothing_if_the_user_says_so(
    action: str, orderkit: Command, tmp_path: Path
) -> None:
    text = "a${{ values.missing }}b${{ secrets.TOKEN }}c${{ values.name }}\n"
    place = {"url": "./skeleton/a.txt", "targetPath": "a.txt"}
    given = {"url": "./skeleton"} if action == "fetch:template" else place
    folder = _write(
        tmp_path / "t", step("fetch", action, **given, values={"name": "n"}), **{"a.txt": text}
    )
    command = ("run", folder, "-p", "name=x", "--out", str(tmp_path / "out"))

    strict = orderkit(*command)
    lenient = orderkit(*command, "--lenient")

    assert strict.code == 2
    assert "values.missing is used" in strict.err
    assert lenient.code == 0, lenient.err
    assert (tmp_path / "out" / "a.txt").read_text() == "abcn\n"


def test_a_run_that_is_no_dry_run_knows_or_refuses(orderkit: Command, tmp_path: Path) -> None:
    message = "${{ user.entity.metadata.name | projectSlug }}"
    folder = _write(tmp_path, step("say", "debug:log", message=message))

    done = orderkit("run", folder, "-p", "name=cart")

    assert done.code != 0
    assert "filter 'parseRepoUrl' needs" in done.err


def test_what_backstage_ignores_is_a_note(orderkit: Command, tmp_path: Path) -> None:
    extra = {"continueOnFailure": True}
    copied = step(
        "fetch", "fetch:template", url="./skeleton", copyWithoutRender=["*.md"], values={}
    )
    folder = _write(
        tmp_path,
        {**copied, **extra},
        {**step("say", "debug:log", message="a"), "if": "${{ parameters.name === 'x' }}"},
        {**step("say", "debug:log", message="b"), "if": "${{ parameters.name !== 'x' }}"},
    )

    done = orderkit("run", folder, "-p", "name=cart", "--out", str(tmp_path / "out"))
    mistaken = orderkit("run", _write(tmp_path / "b", {**copied, "inputs": {}}), "-p", "name=cart")

    assert done.code == 0, done.err
    assert (tmp_path / "out" / "README.md").read_text() == "# ${{ values.name }}\n"
    assert "spec.steps[0].continueOnFailure: is ignored, as by Backstage" in done.err
    assert "steps.fetch.input.copyWithoutRender: is called 'copyWithoutTemplating' now" in done.err
    assert mistaken.code == 2
    assert "spec.steps[0].inputs" in mistaken.err
    assert "did you mean 'input'?" in mistaken.err


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("../../skeleton", "1 files in the workspace"),
        ("/skeleton", "1 files in the workspace"),
        ("../../../skeleton", "leaves the template's repository"),
        ("../../.git", "is in git's own folder"),
    ],
)
def test_urls_lead_out_of_the_folder_inside_the_repository_only(
    url: str, message: str, orderkit: Command, tmp_path: Path
) -> None:
    checkout = tmp_path / "checkout"
    _write(checkout, FETCH)
    (checkout / ".git").mkdir()
    (checkout / ".git" / "config").write_text("[credential]\n")
    fetch = step("fetch", "fetch:template", url=url, values={"name": "${{ parameters.name }}"})
    folder = _write(checkout / "templates" / "cart", fetch)
    command = ("run", folder, "-p", "name=c", "--dry-run")

    inside = orderkit(*command, "--repository", str(checkout))
    alone = orderkit(*command)

    assert message in inside.err
    assert f"steps.fetch.input.url: '{url}' leaves the folder of template.yaml" in alone.err
    assert "registered by URL: to run it so, name its checkout with --repository DIR" in alone.err


SHARED = "id: log\naction: debug:log\ninput: {message: 'for ${{ parameters.name }}'}\n"


@pytest.mark.parametrize(
    ("target", "in_repository", "alone"),
    [
        ("./log.yaml", "for cart", "for cart"),
        ("../shared/log.yaml", "for cart", "leaves the folder of template.yaml"),
        ("/shared/log.yaml", "for cart", "leaves the folder of template.yaml"),
        ("../../secret.yaml", "leaves the template's repository", "leaves the folder"),
        ("/.git/config", "is in git's own folder", "leaves the folder"),
        ("./link.yaml", "is a symbolic link", "is a symbolic link"),
        ("https://example.org/log.yaml", "is not a path in the template's own repository",
         "is not a path in the template's own repository"),
    ],
)  # fmt: skip
def test_placeholders_bring_files_of_the_template_s_repository(
    target: str, in_repository: str, alone: str, orderkit: Command, tmp_path: Path
) -> None:
    checkout = tmp_path / "checkout"
    folder = _write(checkout / "cart", {"$yaml": target})
    (tmp_path / "secret.yaml").write_text("action: debug:log\n")
    for place in ("cart", "shared"):
        (checkout / place).mkdir(exist_ok=True)
        (checkout / place / "log.yaml").write_text(SHARED)
    (checkout / "cart" / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    command = ("run", folder, "-p", "name=cart", "--dry-run")

    for done, message in (
        (orderkit(*command, "--repository", str(checkout)), in_repository),
        (orderkit(*command), alone),
    ):
        assert message in done.out + done.err


def _rendered(folder: Path, *options: str, values: object = None) -> tuple[int, Path]:
    (folder / "values.json").write_text(json.dumps(values or {"name": "cart"}))
    arguments = ("--values", str(folder / "values.json"), "--out", str(folder / "out"))
    code = run(["render", str(folder / "skeleton"), *arguments, *options])
    return code, folder / "out"


@pytest.mark.parametrize("extension", ["njk", ".njk"])
def test_the_extension_of_templates_needs_no_dot(extension: str, tmp_path: Path) -> None:
    _write(tmp_path, FETCH, **{"a.txt.njk": "${{ values.name }}", "b.txt": "${{ values.name }}"})

    code, out = _rendered(tmp_path, "--template-file-extension", extension)

    assert code == 0
    assert (out / "a.txt").read_text() == "cart"
    assert (out / "b.txt").read_text() == "${{ values.name }}"


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({"${{ values.dot }}": "x"}, [], "renders to '.', which is the folder itself"),
        (
            {"a": "{% set x = values.missing %}${{ x }}"},
            [],
            "values.missing is used, but no value of that name was passed",
        ),
        (
            {"a": "{% set x = values.dot.b %}${{ x }}"},
            [],
            "'x' is used, but it was set to a value that is undefined",
        ),
        ({"a": r"${{ 'a\\b' | escape }}"}, [], "Backstage up to 4.0.2 leaves it"),
        (
            {"a": ("r\xe9" + "a" * 40).encode("latin-1")},
            ["--copy-without-templating", "a"],
            "byte 1 cannot be read",
        ),
        ({"a": "x"}, ["--copy-without-templating", "./a"], "finds no file by './a'; write 'a'"),
        ({"a": "x"}, ["--copy-without-templating", "a/"], "'a' is a file and no folder"),
        (
            {"a": "{# #}" + "x" * LIMITS.file_max},
            [],
            f"a: has 4194309 bytes to render; one file may have at most {LIMITS.file_max}",
        ),
        (
            {f"f{n}": b"x" * (LIMITS.file_max - 5) + b"{# #}" for n in range(5)},
            [],
            "f4: has 4194304 bytes, with which 20971520 bytes are rendered",
        ),
    ],
    ids=["dot", "undefined", "undefined member", "escape", "latin", "glob", "folder", "file",
         "bytes"],
)  # fmt: skip
def test_what_backstage_would_treat_otherwise_is_refused(
    files: dict[str, str | bytes],
    options: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _write(tmp_path, FETCH, **files)

    code, _ = _rendered(tmp_path, *options, values={"name": "cart", "dot": "."})

    assert code != 0
    assert message in capsys.readouterr().err
