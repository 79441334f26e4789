"""The portal's copy of a template where Jobs do what the service does elsewhere."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from yamllint import linter
from yamllint.config import YamlLintConfig

from ground.errors import InvalidInputError
from orderkit.core.portal.job_copy import IMAGE, job_copy
from orderkit.core.portal.profile import NATURAL_FILE, Profile, apply_profile
from orderkit.core.portal.runner_job import RunnerJob, manifest
from orderkit.flows.template.actions import ACTIONS
from softwaretemplates.render.engine import render_data
from yamlfiles import yaml12

ROOT = Path(__file__).parents[3]
GARAGE = (ROOT / "templates/garage/template.yaml").read_bytes()
CHANGE = """\
apiVersion: scaffolder.backstage.io/v1beta3
kind: Template
metadata: {name: garage.stage}
spec:
  type: change
  parameters: []
  steps:
    - id: ask
      name: Change the order
      action: http:backstage:request
      input:
        method: POST
        path: /proxy/orderkit/v1/orders/${{ parameters.order_id }}/changes
        body:
          change: stage
          values: {stage: "${{ parameters.stage }}", pit: {bays: "${{ parameters.pit.bays }}"}}
          base: ${{ parameters.base_commit }}
          whole: true
          reason: ${{ parameters.change_reason }}
          requester: ${{ user.ref }}
  output:
    links:
      - {title: See it in Git, url: "${{ steps.ask.output.body.url }}"}
      - {title: The order, entityRef: "component:default/${{ parameters.order_id }}"}
    text:
      - {title: Done, content: "${{ steps.ask.output.body.message }}"}
"""


def spec_of(data: bytes | str) -> dict[str, Any]:
    raw = data.encode() if isinstance(data, str) else data
    copy = job_copy(raw, name="t.yaml")
    found: dict[str, Any] = yaml12.load(copy, name="copy")["spec"]
    return found


def arguments(step: dict[str, Any]) -> list[str]:
    (container,) = step["input"]["manifestObject"]["spec"]["template"]["spec"]["containers"]
    found: list[str] = container["args"]
    return found


def test_the_garage_keeps_its_natural_steps_and_registers_by_a_job() -> None:
    natural, copy = yaml12.load(GARAGE, name="t")["spec"], spec_of(GARAGE)

    steps = {step["id"]: step for step in copy["steps"]}
    assert list(steps) == [step["id"] for step in natural["steps"]]
    (order,) = [step for step in copy["steps"] if step["action"] == "cnoe:kubernetes:apply"]
    assert order["id"] == "order"
    assert arguments(order)[0] == "register"
    assert "--kit=garage" in arguments(order)
    assert [s for s in copy["steps"] if s != order] == [
        s for s in natural["steps"] if s["id"] != "order"
    ]
    assert copy["parameters"] == natural["parameters"]


def test_a_change_becomes_the_same_command_with_values_as_one_argument() -> None:
    (step,) = spec_of(CHANGE)["steps"]

    assert arguments(step) == [
        "change",
        "--change=stage",
        "--base=${{ parameters.base_commit }}",
        '--reason=${{ (parameters.change_reason) | default("", true) | replace("$", "$$") }}',
        "--requester=${{ user.ref }}",
        "--whole",
        "--values",
        (
            '${{ { "stage": parameters.stage, "pit": { "bays": parameters.pit.bays } }'
            ' | dump | replace("$", "$$") }}'
        ),
        "--operation",
        "job-${{ context.task.id }}",
        "--no-wait",
        "--",
        "${{ parameters.order_id }}",
    ]


@pytest.mark.parametrize(
    ("parameters", "values", "reason"),
    [
        ({"stage": "stage2", "pit": {"bays": 3}}, {"stage": "stage2", "pit": {"bays": 3}}, "types"),
        ({"stage": 'a"b\n--direct é', "pit": {"bays": 0}}, None, "any text is one argument"),
        ({"pit": {}}, {"pit": {}}, "what the form leaves out is left out"),
    ],
)
def test_the_values_arrive_exactly(
    parameters: dict[str, Any], values: dict[str, Any] | None, reason: str
) -> None:
    (step,) = spec_of(CHANGE)["steps"]
    told = arguments(step)
    source = told[told.index("--values") + 1]

    rendered = render_data(source, {"parameters": parameters}, name="t")

    assert isinstance(rendered, str), "arguments are texts"
    assert json.loads(rendered) == (parameters if values is None else values), reason


def test_outputs_that_quote_the_service_name_the_job_instead() -> None:
    output = spec_of(CHANGE)["output"]

    assert [link["title"] for link in output["links"]] == ["The order"]
    (told,) = output["text"]
    assert "orderkit-${{ context.task.id }}" in told["content"]


def test_a_generated_form_keeps_one_step_and_what_it_says_without_an_order() -> None:
    data = (ROOT / "day2/garage/stage.yaml").read_bytes()

    spec = spec_of(data)

    (step,) = spec["steps"]
    assert arguments(step)[0] == "change"
    assert step["if"] == "${{ parameters.base_commit is defined }}"
    texts = {text["title"]: text["if"] for text in spec["output"]["text"]}
    assert texts == {
        "Nothing was changed yet": "${{ parameters.base_commit is not defined }}",
        "What happens now": "${{ parameters.base_commit is defined }}",
    }
    assert [link["title"] for link in spec["output"]["links"]] == [
        "Continue: Change the stage",
        "The order in the catalog",
    ]


def test_a_template_that_asks_nothing_stays_as_it_is() -> None:
    plain = CHANGE.replace("/proxy/orderkit/", "/proxy/other/").encode()

    assert job_copy(plain, name="t.yaml") == plain


@pytest.mark.parametrize("path", ["tasks", "orders/x/history", "orders/x/changes?y=1"])
def test_what_no_job_can_do_is_refused(path: str) -> None:
    strange = CHANGE.replace("orders/${{ parameters.order_id }}/changes", path)

    with pytest.raises(InvalidInputError, match="is nothing that a Job can do") as error:
        job_copy(strange.encode(), name="t.yaml")

    assert "steps.ask" in error.value.field


def test_publishing_writes_the_copies_and_keeps_the_natural_templates() -> None:
    template = PurePosixPath("templates/garage/template.yaml")
    change = PurePosixPath("day2/garage/stage.yaml")
    other = PurePosixPath("day2/job/account.yaml")
    files = {template: GARAGE, change: CHANGE.encode(), other: b"kind: Namespace\n"}
    config = YamlLintConfig((ROOT / ".yamllint.yaml").read_text())

    found = apply_profile(files, Profile.JOB, actions=ACTIONS)

    assert found[template.with_name(NATURAL_FILE)] == GARAGE
    assert found[template] == job_copy(GARAGE, name="t")
    assert found[change] == job_copy(CHANGE.encode(), name="t")
    assert found[other] == files[other]
    assert not list(linter.run(found[template].decode(), config, "t"))


def test_an_extension_becomes_the_same_command() -> None:
    step = spec_of((ROOT / "day2/garage/lease.yaml").read_bytes())["steps"][0]

    assert arguments(step)[:2] == ["lease", "extend"]
    assert "--operation=job-${{ context.task.id }}" in arguments(step)
    dashes, order, extension = arguments(step)[-3:]
    assert (dashes, extension) == ("--", "${{ parameters.extension }}")
    assert "parameters.order_ref" in order


def test_the_cron_job_of_sweeps_is_hardened_like_every_other_job() -> None:
    text = (ROOT / "day2/job/leases/sweep.yaml").read_text()
    documents = list(yaml.safe_load_all(text))
    (cron,) = (one for one in documents if one["kind"] == "CronJob")

    job = manifest(RunnerJob("x", IMAGE, ["lease", "sweep"]))
    job["spec"]["template"]["spec"]["serviceAccountName"] = "orderkit-lease"
    assert cron["spec"]["jobTemplate"]["spec"] == job["spec"]
    assert cron["spec"]["concurrencyPolicy"] == "Forbid"
