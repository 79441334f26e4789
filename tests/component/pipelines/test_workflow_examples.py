"""Each example in docs/pipelines does what it says, run as its CI system runs it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import yaml
from cirunners import Runner

from ground.names import RepoId
from orderkit_standins.serve_platform import Running
from yamlfiles import yaml11

EXAMPLES = Path(__file__).parents[3] / "docs" / "pipelines"
WHO = {"github.actor": "eve", "github.repository": "ae86/site", "github.sha": "c0ffee"}
GITLAB = {"GITLAB_USER_LOGIN": "eve", "CI_PROJECT_PATH": "ae86/site", "CI_COMMIT_SHA": "c0ffee"}


@pytest.fixture
def runner(platform: Running, tmp_path: Path) -> Runner:
    """A runner of the platform, with a checked-out repository."""
    file = str(platform.embedded.state.folder / "platform.yaml")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    repository = tmp_path / "repository"
    repository.mkdir()
    context = {**WHO, **GITLAB, "vars.ORDERKIT_PLATFORM": file, "ORDERKIT_PLATFORM": file}
    return Runner(repository, {"PATH": path, "HOME": str(tmp_path)}, context)


def example(name: str, runner: Runner, team: str) -> Path:
    """Return a copy of an example for a team's order."""
    file = runner.folder / name
    text = (EXAMPLES / name).read_text()
    file.write_text(text.replace("garage-ae86", f"garage-{team}"))
    assert text != file.read_text()
    return file


def write_env(runner: Runner, team: str, stage: str) -> None:
    xr = {"apiVersion": "blog.opsbogus.dev/v1alpha1", "kind": "XGarage"}
    manifest = {**xr, "spec": {"teamName": team, "stage": stage}}
    (runner.folder / "env.yaml").write_text(yaml11.dump(manifest))


def logs(runner: Runner) -> str:
    return "\n".join(f"--- {step.name}: {step.code}\n{step.log}" for step in runner.done)


def test_github_orders_waits_and_passes_outputs_to_the_next_job(
    platform: Running, runner: Runner, team: str
) -> None:
    file, repo = example("github.yaml", runner, team), RepoId(team, f"garage-{team}")
    write_env(runner, team, "stage1")

    assert runner.github(file), logs(runner)
    assert runner.done[-1].log == f"deploying into garage-{team}\n"

    write_env(runner, team, "stage2")
    assert runner.github(file), logs(runner)
    head = platform.platform.forge.head(repo)
    (newest, *_) = platform.platform.forge.commits(repo, limit=1)
    assert newest.requester == "user:default/eve"
    assert "ae86/site at c0ffee" in newest.message

    assert runner.github(file), logs(runner)
    assert platform.platform.forge.head(repo) == head

    write_env(runner, team, "stage9")
    assert not runner.github(file)
    assert "stage: 'stage9' is refused" in runner.done[-1].log
    assert platform.platform.forge.head(repo) == head


def test_gitea_uses_the_outputs_in_the_same_job_and_says_what_fails(
    runner: Runner, team: str
) -> None:
    file = example("gitea.yaml", runner, team)
    write_env(runner, team, "stage1")

    assert runner.github(file), logs(runner)
    assert runner.done[-1].log.endswith(f"deploying into garage-{team}\n")

    write_env(runner, "squad-zero", "stage1")
    assert not runner.github(file)
    assert [step.name for step in runner.done[-2:]] == [
        "Order, or change what is there",
        "Say why it is not there",
    ]
    assert "team 'squad-zero' is not in the ledger" in runner.done[-2].log


def test_gitlab_passes_outputs_in_a_dotenv_report(runner: Runner, team: str) -> None:
    file = example("gitlab.yaml", runner, team)
    write_env(runner, team, "stage1")

    assert runner.gitlab(file), logs(runner)
    assert runner.done[-1].log == f"deploying into garage-{team}\n"


def test_examples_ask_for_no_rights_and_hold_no_credentials() -> None:
    texts = {file.name: file.read_text() for file in EXAMPLES.glob("*.yaml")}

    assert texts.keys() == {"gitea.yaml", "github.yaml", "gitlab.yaml"}
    assert not [name for name, text in texts.items() if "${{ secrets." in text]
    assert yaml.safe_load(texts["github.yaml"])["permissions"] == {"contents": "read"}
