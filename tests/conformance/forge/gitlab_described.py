"""
Small schemas of the calls that the GitLab client uses, written down from GitLab's description.

Each line of ``gitlab_operations.txt`` is one operation: method and address, the page below
``doc/api`` that describes it, what a request may hold (``!``: must), the statuses of its answers,
and the fields of a success that the client reads. A ``[`` before the fields: a list of them. Types:
s text, i number, b boolean, o object, l list; ``?``: may be null or absent. `Judge` refuses what no
line allows.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from orderkit.adapters.forges.answers import ForgeResponse

COMMON = frozenset({401, 403, 404, 429, 500, 502, 503})
"""Statuses that any call may have: rest/troubleshooting.md, "Status codes"."""
SHAPES = {
    "user": "id:i username:s",
    "commit": "id:s message:s parent_ids:l author_name:s author_email:s authored_date:s",
    "project": (
        "id:i path:s path_with_namespace:s visibility:s archived:b empty_repo:b "
        "default_branch:s? description:s? squash_option:s permissions:o? namespace:o "
        "marked_for_deletion_on:s? only_allow_merge_if_pipeline_succeeds:b "
        "allow_merge_on_skipped_pipeline:b?"
    ),
    "merge": (
        "iid:i source_project_id:i? target_project_id:i title:s description:s? state:s draft:b "
        "source_branch:s target_branch:s "
        "sha:s detailed_merge_status:s merge_commit_sha:s? squash_commit_sha:s? author:o "
        "created_at:s updated_at:s references:o diff_refs:o?"
    ),
    "hook": (
        "id:i url:s push_events:b issues_events:b merge_requests_events:b "
        "signing_token_present:b? alert_status:s?"
    ),
    "hook_body": (
        "url:s push_events:b issues_events:b merge_requests_events:b "
        "enable_ssl_verification:b signing_token:s token:s"
    ),
    "member": "id:i username:s access_level:i state:s",
}
"""Fields that several operations share."""
TABLE = Path(__file__).with_name("gitlab_operations.txt").read_text().format(**SHAPES)
_TYPES: dict[str, type | tuple[type, ...]] = {"s": str, "i": int, "b": bool, "o": dict, "l": list}
_PAGING = {"page": "s", "per_page": "i"}


@dataclass(frozen=True)
class Operation:
    """One line of the table."""

    line: str
    method: str
    segments: tuple[str, ...]
    asked: dict[str, str]
    required: frozenset[str]
    statuses: frozenset[int]
    is_list: bool
    answered: dict[str, str]

    @classmethod
    def read(cls, line: str) -> Operation:
        """Read a line."""
        call, source, asked, statuses, answered = (part.strip() for part in line.split("|"))
        assert re.fullmatch(r"[a-z_]+\.md", source), line
        method, path = call.split()
        fields = dict(field.rstrip("!").split(":") for field in asked.split())
        required = frozenset(f.split(":")[0] for f in asked.split() if f.endswith("!"))
        shape = dict(field.split(":") for field in answered.lstrip("[").split())
        codes = frozenset(map(int, statuses.split())) | COMMON
        is_list = answered.startswith("[")
        segments = tuple(path.split("/"))
        return cls(call, method, segments, fields, required, codes, is_list, shape)

    def matches(self, method: str, segments: list[str]) -> bool:
        """Say whether a request is of this operation."""
        pairs = list(zip(self.segments, segments, strict=False))
        same = all(mine.startswith(":") or mine == theirs for mine, theirs in pairs)
        return method == self.method and len(segments) == len(self.segments) and same


OPERATIONS = tuple(map(Operation.read, filter(None, TABLE.strip().splitlines())))


class Judge:
    """Compares requests and answers with the table, and counts them by operation."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def check(
        self,
        method: str,
        path: str,
        body: object,
        query: dict[str, Any],
        answer: ForgeResponse,
    ) -> None:
        """Fail for what no line of the table allows."""
        segments = [unquote(part) for part in path.strip("/").split("/")]
        found = [each for each in OPERATIONS if each.matches(method, segments)]
        exact = [each for each in found if not each.segments[-1].startswith(":")] or found
        assert exact, f"{method} {path} is in no line of the table"
        operation = exact[0]
        self.seen[operation.line] += 1
        sent = {**query, **(body if isinstance(body, dict) else {})}
        allowed = {**operation.asked, **(_PAGING if operation.is_list else {})}
        for key, value in sent.items():
            assert key in allowed, f"{operation.line}: {key} is not described"
            assert _is(value, allowed[key]), f"{operation.line}: {key} is {value!r}"
        assert operation.required <= sent.keys(), f"{operation.line}: {sent}"
        assert answer.status in operation.statuses, f"{operation.line}: {answer.status}"
        if answer.ok and operation.answered:
            self._check_answer(operation, answer)

    def _check_answer(self, operation: Operation, answer: ForgeResponse) -> None:
        document = answer.json()
        assert isinstance(document, list) is operation.is_list, operation.line
        for item in document if operation.is_list else [document]:
            for key, kind in operation.answered.items():
                value = item.get(key)
                is_absent = value is None and kind.endswith("?")
                assert is_absent or _is(value, kind[0]), f"{operation.line}: {key} is {value!r}"


def _is(value: object, kind: str) -> bool:
    expected = _TYPES[kind[0]]
    return isinstance(value, expected) and not (kind[0] == "i" and isinstance(value, bool))
