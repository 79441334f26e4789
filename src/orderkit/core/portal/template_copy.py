"""
Rewrite steps and outputs in a template's text and leave its form unchanged, byte for byte.

New values for keys of ``spec`` replace the old ones in the text. Then the text is parsed again and
must equal the intended result. Pure; called by the modules that write a portal's copies of
templates (``core.portal.service_copy``, ``core.portal.job_copy``).

The step by which a task of the portal fails with the service's own sentence.

Backstage's request action fails with the fixed text "Unable to complete request" (observed on
Roadie's http-request 5.8.0), and no action of an unmodified Backstage fails with a text of one's
choice. The same action quotes a header value that HTTP does not allow, before it sends anything.
So requests continue on a refusal, and the next step has the sentence as such a header.

Pure; called by ``orderkit_workshop.generate.day2_forms`` and ``core.portal.service_copy``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from ground.errors import InvalidInputError
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
