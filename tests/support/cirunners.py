"""
What runners of GitHub, Gitea and GitLab do with the jobs of a workflow file, as documented.

Only what our examples use: steps and scripts in bash, outputs of steps and jobs, dotenv reports,
``if``, expressions that name a value. Anything else in a file is an error of the test.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_EXPRESSION = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")
_COMPARISON = re.compile(r"([\w.-]+) == '([^']*)'")
_STEP_S = 240


def step_outputs(text: str) -> dict[str, str]:
    """Return what a runner reads from the file ``$GITHUB_OUTPUT``."""
    outputs, lines = {}, iter(text.split("\n"))
    for line in lines:
        name, heredoc, end = line.partition("<<")
        if heredoc and "=" not in name:
            value = []
            for inner in lines:
                if inner == end:
                    break
                value.append(inner)
            else:
                raise AssertionError(f"no line ends {name}")
            outputs[name] = "\n".join(value)
        elif line:
            name, equals, value_text = line.partition("=")
            assert equals, line
            outputs[name] = value_text
    return outputs


def dotenv_report(text: str) -> dict[str, str]:
    """Return the variables that GitLab makes of a dotenv report: no quotes, blanks are cut."""
    assert len(text.encode()) <= 5_000
    variables = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        assert equals
        assert re.fullmatch(r"[A-Za-z0-9_]{1,255}", name), line
        variables[name] = value.strip()
    return variables


@dataclass(frozen=True)
class StepDone:
    """A step that was run."""

    name: str
    code: int
    log: str


@dataclass
class Runner:
    """Runs the jobs of a file one after the other, each in bash, with what its runner sets."""

    folder: Path
    """The repository, checked out."""
    environment: Mapping[str, str]
    """What the machine has: PATH, HOME."""
    context: Mapping[str, str]
    """Values of expressions: ``secrets.FORGE_TOKEN``, ``github.sha``, ``github.event_name``."""
    done: list[StepDone] = field(default_factory=list)

    def _bash(self, name: str, flags: str, script: str, variables: Mapping[str, str]) -> int:
        file = self.folder / ".script.sh"
        file.write_text(script)
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", *flags.split(), str(file)],
            cwd=self.folder,
            env={**self.environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_STEP_S,
        )
        self.done.append(StepDone(name, done.returncode, done.stdout))
        return done.returncode

    def github(self, file: Path) -> bool:
        """Run a workflow of GitHub or Gitea Actions; say whether all its jobs passed."""
        workflow = yaml.safe_load(file.read_text())
        assert workflow.keys() <= {"name", True, "permissions", "env", "jobs", "concurrency"}
        values = dict(self.context)
        shared = self._variables(workflow.get("env"), values)
        return all(
            self._github_job(job, values, shared) for job in _in_order(workflow["jobs"]).values()
        )

    def _github_job(
        self, job: Mapping[str, Any], values: dict[str, str], shared: Mapping[str, str]
    ) -> bool:
        variables, is_well = {**shared, **self._variables(job.get("env"), values)}, True
        if not _holds(job.get("if", "success()"), values, is_well=True):
            return True
        for number, step in enumerate(job["steps"]):
            if "uses" in step:
                assert re.fullmatch(r"actions/checkout@v\d", step["uses"]), step
                continue
            if not _holds(step.get("if", "success()"), values, is_well=is_well):
                continue
            assert "${{" not in step["run"], "a value in a script is code: pass it by env"
            output = self.folder / f".github-output-{number}"
            output.write_text("")
            runner = {"CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(output)}
            assert not {"working-directory", "with"} & step.keys()
            own = self._variables(step.get("env"), values)
            code = self._bash(
                step.get("name", step["run"]),
                "-eo pipefail" if step.get("shell") == "bash" else "-e",
                step["run"],
                {**variables, **runner, **own},
            )
            is_well = is_well and code == 0
            for name, value in step_outputs(output.read_text()).items():
                values[f"steps.{step.get('id')}.outputs.{name}"] = value
        for name, text in (job.get("outputs") or {}).items():
            values[f"needs.{job['id']}.outputs.{name}"] = _filled(text, values)
        return is_well

    def _variables(
        self, texts: Mapping[str, Any] | None, values: Mapping[str, str]
    ) -> dict[str, str]:
        return {name: _filled(str(text), values) for name, text in (texts or {}).items()}

    def gitlab(self, file: Path) -> bool:
        """Run the jobs of a ``.gitlab-ci.yml``, stage by stage."""
        pipeline = yaml.safe_load(file.read_text())
        stages, shared = pipeline.pop("stages"), pipeline.pop("variables", {})
        default = pipeline.pop("default", {})
        inherited: dict[str, str] = {}
        for stage in stages:
            for name, job in pipeline.items():
                if job["stage"] != stage or name.startswith("."):
                    continue
                script = [*default.get("before_script", ()), *job["script"]]
                variables = {"CI": "true", "GITLAB_CI": "true", **self.context, **shared}
                variables |= {**job.get("variables", {}), **inherited}
                code = self._bash(name, "-eo pipefail", "\n".join(script), variables)
                if code in job.get("allow_failure", {}).get("exit_codes", ()):
                    continue
                if code:
                    return False
                report = job.get("artifacts", {}).get("reports", {}).get("dotenv")
                if report:
                    inherited |= dotenv_report((self.folder / report).read_text())
        return True


def _holds(condition: str, values: Mapping[str, str], *, is_well: bool) -> bool:
    """Evaluate an ``if``. One without a function of the state has ``success()`` before it."""
    functions = {"success()": is_well, "failure()": not is_well, "always()": True}
    if condition in functions:
        return functions[condition]
    compared = _COMPARISON.fullmatch(condition)
    assert compared, condition
    return is_well and values.get(compared[1], "") == compared[2]


def _in_order(jobs: Mapping[str, Any]) -> dict[str, Any]:
    """Return jobs after those that they need."""
    ordered: dict[str, Any] = {}
    while len(ordered) < len(jobs):
        name = next(
            name
            for name, job in jobs.items()
            if name not in ordered and set(_list(job.get("needs"))) <= ordered.keys()
        )
        ordered[name] = {**jobs[name], "id": name}
    return ordered


def _list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Replace expressions that name a value; an unknown value is empty, as on the real runners."""
    filled = _EXPRESSION.sub(lambda match: values.get(match[1], ""), text)
    assert "${{" not in filled, filled
    return filled
