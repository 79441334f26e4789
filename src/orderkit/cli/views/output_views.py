"""
Write an order's outputs as a program reads them: shell, JSON, YAML, and files of CI systems.

Values come from stations and providers, so each is quoted or refused by the rules of its format; a
value is never changed on the way, and never cut.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import click
import yaml

from ground.errors import InvalidInputError, RefusedError, UsageError, every
from ground.visible_text import visible
from orderkit.cli.output import say
from orderkit.flows.order.order_outputs import OrderOutputs, OutputValue

SCHEMA = "orderkit.outputs/v1"
_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_RESERVED = re.compile(
    r"PATH|HOME|IFS|ENV|BASH\w*|SHELL|SHELLOPTS|CDPATH|GLOBIGNORE|POSIXLY_CORRECT|PS\d|PWD|OLDPWD"
    r"|PROMPT_COMMAND|OPTARG|OPTIND|OPTERR|TMPDIR|LANG|CI|KUBECONFIG|(LD|DYLD|LC|CI|GITHUB|GITEA"
    r"|GITLAB|RUNNER|ACTIONS|ORDERKIT|SSH_A|NPM_CONFIG|GIT_SSH|GIT_CONFIG)_?\w+|GIT_(DIR|WORK_TREE"
    r"|EXEC_PATH|ASKPASS|EDITOR|PAGER)|PYTHON[A-Z]\w*|PERL5?(LIB|OPT)|RUBY(LIB|OPT)"
    r"|NODE_(OPTIONS|PATH|EXTRA_CA_CERTS)"
)
"""Names that shells, loaders, runners and usual tools obey."""
_GITLAB_MAX = 5_000
"""Bytes of a dotenv report; GitLab refuses 5 KB."""
_AS_JSON = "read it with --format json, which can hold every text"


def show_outputs(outputs: OrderOutputs, format_: str, *, prefix: str) -> None:
    """
    Print outputs in a format.

    Raises:
        InvalidInputError, SeveralProblemsError: A name or a value that the format cannot hold.
        RefusedError: Secrets in a format that does not keep them.
    """
    values = [value for value in outputs.values if value.value is not None]
    lines = _FORMATS[format_](outputs, values, prefix)
    _mask([value for value in values if value.is_secret], format_)
    for line in lines:
        _print(line)
    for value in outputs.values:
        if value.value is None:
            say(f"note: output '{value.name}' has no value and is left out", err=True)
    if outputs.withheld:
        names = ", ".join(outputs.withheld)
        say(f"note: secret outputs are left out without --secrets: {names}", err=True)


def _print(line: str) -> None:
    """Print data exactly."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        # a character that stdout lacks would be escaped, which is another text
        line.encode(encoding)
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            "output", encoding, "is an encoding that lacks a character of an output",
            hint="set PYTHONUTF8=1, or read it with --format json",
        ) from error  # fmt: skip
    click.echo(line, color=True)


def _mask(values: Sequence[OutputValue], format_: str) -> None:
    """Have a runner of GitHub or Gitea mask secrets in what any later step prints."""
    if format_ != "github" and not os.environ.get("GITHUB_ACTIONS"):
        return
    for value in values:
        for line in filter(None, map(str.strip, text_of(value).splitlines())):
            # the runner reads these back
            escaped = line.replace("%", "%25").replace("\r", "%0D")
            click.echo(f"::add-mask::{escaped}", err=True)
    sys.stderr.flush()


def _json(outputs: OrderOutputs, values: Sequence[OutputValue], _prefix: str) -> list[str]:
    return [json.dumps({"schema": SCHEMA, **_object(outputs, values)}, indent=2)]


def _yaml(outputs: OrderOutputs, values: Sequence[OutputValue], _prefix: str) -> list[str]:
    text = yaml.safe_dump({"schema": SCHEMA, **_object(outputs, values)}, sort_keys=False)
    return [text.rstrip("\n")]


def _object(outputs: OrderOutputs, values: Sequence[OutputValue]) -> dict[str, Any]:
    report = outputs.report
    return {
        "order": str(report.entry.order),
        "kit": report.kit,
        "phase": report.state.phase,
        "commit": report.state.head,
        "outputs": {value.name: value.value for value in values},
        "secret": [value.name for value in values if value.is_secret],
    }


def _env(_outputs: OrderOutputs, values: Sequence[OutputValue], prefix: str) -> list[str]:
    by_name = _variables(values, prefix)
    texts = every(partial(_checked, value, "\n\t") for value in by_name.values())
    return [f"{name}={shlex.quote(text)}" for name, text in zip(by_name, texts, strict=True)]


def _github(_outputs: OrderOutputs, values: Sequence[OutputValue], _prefix: str) -> list[str]:
    texts = every(partial(_checked, value, "\n\t") for value in values)
    return [
        line
        for value, text in zip(values, texts, strict=True)
        for line in _heredoc(value.name, text)
    ]


def _heredoc(name: str, text: str) -> Iterator[str]:
    """Yield a value between lines that nobody can guess, and so no value can contain."""
    end = f"orderkit-{secrets.token_hex(16)}"
    yield from (f"{name}<<{end}", text, end)


def _gitlab(_outputs: OrderOutputs, values: Sequence[OutputValue], prefix: str) -> list[str]:
    secret = [value.name for value in values if value.is_secret]
    if secret:
        raise RefusedError(
            f"secret outputs ({', '.join(secret)}) do not go into a dotenv report: GitLab masks"
            " none of its variables, and whoever may see the pipeline can download it",
            hint='read them in the job that needs them: eval "$(orderkit outputs ORDER --secrets'
            ' --format env)"',
        )
    by_name = _variables(values, prefix)
    texts = every(partial(_checked_for_gitlab, value) for value in by_name.values())
    lines = [f"{name}={text}" for name, text in zip(by_name, texts, strict=True)]
    size = len("\n".join(lines).encode())
    if size > _GITLAB_MAX:
        raise InvalidInputError(
            "--format", "gitlab", f"takes {_GITLAB_MAX} bytes, and the outputs have {size}",
            hint="read them in each job that needs them, with --format env",
        )  # fmt: skip
    return lines


_FORMATS: Mapping[str, Callable[[OrderOutputs, Sequence[OutputValue], str], list[str]]] = {
    "env": _env,
    "json": _json,
    "yaml": _yaml,
    "github": _github,
    "gitlab": _gitlab,
}


def _checked_for_gitlab(value: OutputValue) -> str:
    """Return a text that GitLab neither strips nor expands nor cuts at its first line."""
    text = _checked(value, "")
    if text != text.strip() or "$" in text:
        raise InvalidInputError(
            "output", value.name, "has blanks around it, or a '$', which GitLab would change",
            hint=_AS_JSON,
        )  # fmt: skip
    return text


def _checked(value: OutputValue, allowed_characters: str) -> str:
    """Return a value's text; raise if it has characters that shells, logs or readers obey."""
    text = text_of(value)
    plain = text.translate(dict.fromkeys(map(ord, allowed_characters)))
    if plain != visible(plain) or "\n" in plain or "\t" in plain:
        raise InvalidInputError(
            "output", value.name, "has line breaks or control characters that this format lacks",
            hint=_AS_JSON,
        )  # fmt: skip
    return text


def text_of(value: OutputValue) -> str:
    """Return a value as a text: as it is, or as JSON if it is not a text."""
    if isinstance(value.value, str):
        return value.value
    return json.dumps(value.value, separators=(",", ":"), default=str)


def _variables(values: Sequence[OutputValue], prefix: str) -> dict[str, OutputValue]:
    """
    Return outputs by the names of their variables: ``bucketName`` is ``BUCKET_NAME``.

    Raises:
        UsageError: Two have the same name. InvalidInputError: A name that something else obeys.
    """
    variables: dict[str, OutputValue] = {}
    for value in values:
        name = prefix + _WORD_STARTS.sub("_", value.name).replace("-", "_").upper()
        if _RESERVED.fullmatch(name):
            raise InvalidInputError(
                "output", value.name, f"would set {name}, which shells and tools obey",
                hint="put something before each name: --prefix ORDER_",
            )  # fmt: skip
        if name in variables:
            raise UsageError(
                f"outputs '{variables[name].name}' and '{value.name}' are both {name}",
                hint="read them with --format json",
            )
        variables[name] = value
    return variables
