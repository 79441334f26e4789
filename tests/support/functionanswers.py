"""
What real functions answered, recorded by hand; and how it is recorded.

    python tests/support/functionanswers.py function-patch-and-transform v0.10.8

asks the process at the address in FUNCTION_PATCH_AND_TRANSFORM (HOST:PORT, plain text) every case
and writes its answers beside the cases, with the release they came from.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from functioncases import CASES, answer_of, cases_of

from compositions.function_processes import FunctionProcess
from orderkit.adapters.functions.remote_function import RemoteFunction


def address_of(function: str) -> str:
    """Return where the real function runs, if the environment says so."""
    return os.environ.get(function.upper().replace("-", "_"), "")


def recorded_answers(function: str) -> dict[str, Any]:
    """Return the recorded answers by the reason of their case."""
    found: dict[str, Any] = json.loads(_file(function).read_text(encoding="utf-8"))["answers"]
    return found


def _file(function: str) -> Path:
    return CASES / f"{function}.json"


def asked(function: str, address: str) -> dict[str, Any]:
    """Ask a real function every case."""
    remote = RemoteFunction(FunctionProcess(function, address))
    try:
        return {
            case.reason: answer_of(remote(case.request()))
            for case in cases_of(function)
            if not case.crash
        }
    finally:
        remote.close()


def record(function: str, release: str) -> None:
    """Write the answers of the real function at the address that the environment names."""
    answers = asked(function, address_of(function))
    rows = (f"{json.dumps(reason)}: {json.dumps(found)}" for reason, found in answers.items())
    head = f'{{"function": "{function}", "release": "{release}", "answers": {{\n'
    _file(function).write_text(head + ",\n".join(rows) + "\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    record(*sys.argv[1:3])
