"""
Rewrite a template for the portal, and copy one for a portal that cannot reach the service.

New values for keys of ``spec`` replace the old ones in the text, and the form stays byte for byte.
Then the text is parsed again and must equal the intended result.

For a portal that cannot reach the service, a step that calls it (``http:backstage:request`` to its
proxy) becomes a step that applies a Job (``cnoe:kubernetes:apply``). The Job runs the same
operation as a command: register, change, destroy, lease extend. Steps that only read from the
service are left out. The other steps stay. Outputs that quote the service's answer are replaced by
the Job's name, because the portal does not wait for the Job. Job and operation are named after the
portal's task, so that a restarted task results in one Job. In this profile nobody proves who makes
the request: the requester comes from the portal's template and is recorded as a claim.

`refusal_step` lets a task of the portal fail with the service's own sentence. Backstage's request
action fails with the fixed text "Unable to complete request" (observed on Roadie's http-request
5.8.0), and no action of an unmodified Backstage fails with a text of one's choice. The same action
quotes a header value that HTTP does not allow, before it sends anything. So requests continue on a
refusal, and the next step has the sentence as such a header.

Pure. Works on the pack before it is baked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from ground.errors import InvalidInputError
from ground.objects.kube_objects import dig
from orderkit.core.portal import runner_job
from softwaretemplates.template import parse_template
from yamlfiles import yaml11, yaml12


def rewritten(data: bytes, new_values: Mapping[str, Any], *, name: str, head: str) -> bytes:
    """
    Return the template with new values for keys of ``spec``. Deterministic.

    Args:
        new_values: By key of ``spec``. The keys must exist.
        name: The file's name in messages.
        head: Text of a comment at its top, line by line.

    Raises:
        InvalidInputError: It cannot be rewritten safely; the message says why.
    """
    document = yaml12.load(data, name=name)
    text = _spliced(data.decode("utf-8-sig"), new_values, name, head)
    _prove(text, {**document, "spec": {**document["spec"], **new_values}}, name)
    return text.encode()


def _spliced(text: str, new_values: Mapping[str, Any], name: str, head: str) -> str:
    """Put new values for keys of ``spec`` into the text; every other line stays unchanged."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    spec = _block(
        _block(yaml.compose("\n".join(lines) + "\n", yaml.SafeLoader), name), name, "spec"
    )
    starts = [key.start_mark for key, _ in spec.value] + [spec.end_mark]
    column, wide = starts[0].column, False
    for at in reversed(range(len(spec.value))):
        key = spec.value[at][0].value
        if key in new_values:
            last = _last_line(lines, starts[at].line, starts[at + 1].line, column)
            new_lines = _lines({key: new_values[key]}, column)
            wide = wide or any(len(line) > LINE_MAX for line in new_lines)
            lines[starts[at].line : last] = new_lines
    broken = {"line-length": wide, "indentation": column != len("  ")}
    rules = [rule for rule, is_broken in broken.items() if is_broken]
    return newline.join([*_headed(lines, rules, head), ""])


def _block(node: Any, name: str, key: str = "") -> Any:
    """Return a block-style map: the document itself, or the map below a key of it."""
    if key:
        node = next(value for key_node, value in node.value if key_node.value == key)
    if node.flow_style:
        raise InvalidInputError(
            f"{name}: {key}", None, "is written in braces", hint="write one key a line"
        )
    return node


def _last_line(lines: list[str], first: int, end: int, column: int) -> int:
    """Return the last line of a value, leaving blank lines and comments before the next key."""
    while end > first + 1:
        line = lines[end - 1]
        indent = len(line) - len(line.lstrip())
        if line.strip() and not (line.lstrip().startswith("#") and indent <= column):
            return end
        end -= 1
    return end


def _lines(value: dict[str, Any], column: int) -> list[str]:
    """Write a key and its value, indented."""
    lines = yaml11.dump_block(value).removesuffix("\n").split("\n")
    return [" " * column + line if line else line for line in lines]


LINE_MAX = 120
"""Lines that are longer and cannot be broken get a yamllint exception."""


def _headed(lines: list[str], rules: list[str], head: str) -> list[str]:
    comments = [f"# {line}" for line in head.splitlines()]
    at = next((at + 1 for at, line in enumerate(lines) if line.rstrip() == "---"), 0)
    excuse = [" ".join(["# yamllint disable", *(f"rule:{rule}" for rule in rules)])]
    return [*lines[:at], *comments, *(excuse if rules else []), *lines[at:]]


def _prove(text: str, expected: Mapping[str, Any], name: str) -> None:
    """Parse the copy again: it must equal the intended result, including the form."""
    try:
        copy = yaml12.load(text.encode(), name=name)
    except InvalidInputError as error:
        raise InvalidInputError(name, None, f"cannot be rewritten safely: {error}") from error
    if json.dumps(copy) != json.dumps(expected):
        raise InvalidInputError(
            name,
            None,
            "cannot be rewritten safely: the form would change",
            hint="write spec in block style, without anchors that steps and form share",
        )
    parse_template(text.encode(), name=name)


REFUSED = "refused"
"""The step's id."""
_BAD = 400


def refusal_step(*steps: str) -> dict[str, Any]:
    """
    Return the step that fails if one of these requests was refused; otherwise it is skipped.

    Args:
        steps: Ids of requests that continue on a bad response.
    """
    output = f"({' or '.join(f'steps.{step}' for step in steps)}).output"
    error = f"{output}.body.error"
    message = f"{error}.message or {output}.body.message or 'the service did not say why'"
    hint = f"(' (' ~ {error}.hint ~ ')') if {error}.hint else ''"
    return {
        "id": REFUSED,
        "name": "Was it accepted?",
        "if": f"${{{{ {output}.code >= {_BAD} }}}}",
        "action": "http:backstage:request",
        "input": {
            "method": "GET",
            "path": "/proxy/orderkit/healthz",
            "logRequestPath": False,
            # The dash is not a character of a header, which makes the action fail and quote it.
            "headers": {"sentence": f"${{{{ ({message}) ~ ({hint}) ~ ' — This' }}}}"},
        },
    }


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
