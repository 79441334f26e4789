"""
Write the portal's copy of a template for a platform whose portal cannot reach the service.

A step that calls Orderkit's service (``http:backstage:request`` to its proxy) becomes a step that
applies a Job (``cnoe:kubernetes:apply``). The Job runs the same operation as a command: register,
change, destroy, lease extend. Steps that only read from the service are left out. The other steps
stay. Outputs that quote the service's answer are replaced by the Job's name, because the portal
does not wait for the Job. Job and operation are named after the portal's task, so that a restarted
task results in one Job.

In this profile nobody proves who makes the request: the requester comes from the portal's template
and is recorded as a claim. Pure; called by ``core.portal.profile``, before the pack is baked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ground.errors import InvalidInputError
from ground.objects.kube_objects import dig
from orderkit.core.portal import runner_job
from orderkit.core.portal.template_copy import rewritten
from softwaretemplates.template import parse_template
from yamlfiles import yaml12

PROXY_ROOT = "/proxy/orderkit/"
PROXY = f"{PROXY_ROOT}v1/"
"""Where templates reach the service."""
IMAGE = runner_job.image_of("__ORDERKIT_REGISTRY__")
NEXT_TITLE = "What happens now"
"""The title of the text that a generated template shows at the end."""
CLUSTER = "__ORDERKIT_CLUSTER_NAME__"
"""The portal's name for the cluster to which it applies Jobs."""
_APPLY, REQUEST = "cnoe:kubernetes:apply", "http:backstage:request"
_TASK = "${{ context.task.id }}"
_HEAD = (
    "Written when the pack was published (portal profile 'job'); what is edited here is lost.\n"
    "Jobs in the cluster do what the service does elsewhere."
)
ORDER_PATH = re.compile(r"orders/(?P<order>.+)/(?P<what>changes|end|lease)")
_DOLLARS = ' | replace("$", "$$")'
"""A kubelet expands ``$(NAME)`` in arguments and turns two dollars into one."""
_EXPRESSION = re.compile(r"\$\{\{(?P<inner>((?!\$\{\{).)*)\}\}", re.DOTALL)

Body = Mapping[str, Any]


def job_copy(data: bytes, *, name: str) -> bytes:
    """
    Return the copy of a template, or the template unchanged if no step calls the service.

    Raises:
        InvalidInputError: It is not a template, or a step asks the service for an operation that
            Jobs do not support.
    """
    parse_template(data, name=name)
    spec = yaml12.load(data, name=name)["spec"]
    natural = [step for step in spec["steps"] if not _only_reads(step)]
    steps = [_step(step, name) for step in natural]
    if steps == spec["steps"]:
        return data
    changed = [step for step in spec["steps"] if step not in steps]
    new_spec: dict[str, Any] = {"steps": steps}
    if "output" in spec:
        new_spec["output"] = _output(spec["output"], changed)
    return rewritten(data, new_spec, name=name, head=_HEAD)


def _only_reads(step: Mapping[str, Any]) -> bool:
    path = str(dig(step, "input", "path", default=""))
    return path.startswith(PROXY_ROOT) and dig(step, "input", "method") == "GET"


def _step(step: dict[str, Any], name: str) -> dict[str, Any]:
    path = str(dig(step, "input", "path", default=""))
    if step.get("action") != REQUEST or not path.startswith(PROXY):
        return step
    arguments = _arguments(path.removeprefix(PROXY), dig(step, "input", "body", default={}))
    if arguments is None or dig(step, "input", "method") != "POST":
        raise InvalidInputError(
            f"{name}: steps.{step.get('id')}.input.path",
            path,
            "is nothing that a Job can do",
            hint="choose the portal's profile 'service'",
        )
    job = runner_job.RunnerJob(f"orderkit-{_TASK}", IMAGE, arguments)
    kept: dict[str, Any] = {key: step[key] for key in ("id", "name", "if", "each") if key in step}
    inputs = {
        "namespaced": True,
        "clusterName": CLUSTER,
        "manifestObject": runner_job.manifest(job),
    }
    return {**kept, "action": _APPLY, "input": inputs}


def _arguments(path: str, body: Body) -> list[str] | None:
    if path == "orders":
        return _register(body)
    match = ORDER_PATH.fullmatch(path)
    if match is None:
        return None
    commands: dict[str, Callable[[str, Body], list[str]]] = {
        "changes": _change,
        "end": _end,
        "lease": _extend,
    }
    return commands[match["what"]](match["order"], body)


def _register(body: Body) -> list[str]:
    options = _options(body, "kit", "team", "requester")
    # After "--" a value that begins with a dash is not read as an option.
    return ["register", *options, "--", str(body["order"])]


def _change(order: str, body: Body) -> list[str]:
    values = ["--values", _json_of(body["values"])]
    whole_option = ["--whole"] if body.get("whole") else []
    options = _options(body, "change", "base", "reason", "requester")
    # The id comes from the portal's task, so a repeated Job changes nothing twice.
    operation = ["--operation", f"job-{_TASK}"]
    return ["change", *options, *whole_option, *values, *operation, "--no-wait", "--", order]


def _end(order: str, body: Body) -> list[str]:
    take = [f"--take={name}={value}" for name, value in body.get("take", {}).items()]
    return ["destroy", *_options(body, "confirm", "reason", "requester"), *take, "--", order]


def _extend(order: str, body: Body) -> list[str]:
    operation = f"--operation=job-{_TASK}"
    options = _options(body, "reason", "requester")
    return ["lease", "extend", *options, operation, "--", order, str(body["by"])]


def _options(body: Body, *names: str) -> list[str]:
    """Write options with their values. Each value is one argument, whatever it contains."""
    values = {name: body[name] for name in names if name in body}
    if "reason" in values:
        values["reason"] = _free_text(values["reason"])
    return [f"--{name}={value}" for name, value in values.items()]


def _free_text(value: str) -> str:
    """Write the expression for a text that may contain anything, or be empty."""
    match = _EXPRESSION.fullmatch(value)
    if match is None:
        return value
    return f'${{{{ ({match["inner"].strip()}) | default("", true){_DOLLARS} }}}}'


def _json_of(value: Any) -> str:
    """Write one expression that renders to the JSON of a value that contains expressions."""
    return f"${{{{ {_literal(value)} | dump{_DOLLARS} }}}}"


def _literal(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{json.dumps(key)}: {_literal(entry)}" for key, entry in value.items())
        return f"{{ {inner} }}"  # blanks, because two adjacent braces would end the expression
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, str) and (match := _EXPRESSION.fullmatch(value)):
        return match["inner"].strip()
    return json.dumps(value)


def _output(output: dict[str, Any], changed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Remove outputs that quote the answer of a step that no longer has one."""
    asks = re.compile("|".join(rf"steps\.{re.escape(step['id'])}\b" for step in changed))
    conditions = {step.get("if") for step in changed if not _only_reads(step)}

    def stays(entry: Any) -> bool:
        return not asks.search(json.dumps(entry))

    notice = {
        "title": NEXT_TITLE,
        "content": f"The Job `orderkit-{_TASK}` in namespace `{runner_job.NAMESPACE}` does it "
        "within a minute; its log says how it went.",
        **({"if": conditions.pop()} if len(conditions) == 1 and None not in conditions else {}),
    }
    links = [link for link in output.get("links", ()) if stays(link)]
    texts = [text for text in output.get("text", ()) if stays(text)]
    other_output = {k: v for k, v in output.items() if k not in ("links", "text") and stays(v)}
    return {**other_output, **({"links": links} if links else {}), "text": [*texts, notice]}
