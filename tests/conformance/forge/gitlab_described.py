"""
Small schemas of the calls that the GitLab client uses, written down from GitLab's description.

Each line of ``gitlab_operations.txt`` is one operation: method and address, the page below
``doc/api`` that describes it, what a request may hold (``!``: must), the statuses of its answers,
and the fields of a success that the client reads. A ``[`` before the fields: a list of them. Types:
s text, i number, b boolean, o object, l list; ``?``: may be null or absent. `Judge` refuses what no
line allows.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from tests.conformance.forge.exchanges import Exchange

API = "/api/v4"
COMMON = frozenset({401, 403, 404, 429, 500, 502, 503})
"""Statuses that any call may have: rest/troubleshooting.md, "Status codes"."""
SHAPES = {
    "user": "id:i username:s",
    "commit": "id:s message:s parent_ids:l author_name:s author_email:s authored_date:s",
    "project": (
        "id:i path:s path_with_namespace:s visibility:s archived:b empty_repo:b "
        "default_branch:s? description:s? squash_option:s permissions:o? namespace:o "
        "marked_for_deletion_on:s? only_allow_merge_if_pipeline_succeeds:b "
        "allow_merge_on_skipped_pipeline:b? merge_trains_enabled:b?"
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
DELIVERIES = {
    "Push Hook": (
        "object_kind:s event_name:s before:s after:s ref:s checkout_sha:s? user_id:i user_name:s "
        "user_username:s project_id:i commits:l total_commits_count:i project.id:i project.name:s "
        "project.web_url:s project.namespace:s project.path_with_namespace:s "
        "project.default_branch:s"
    ),
    "Merge Request Hook": (
        "object_kind:s event_type:s user.id:i user.name:s user.username:s project.id:i "
        "project.path_with_namespace:s project.default_branch:s object_attributes.id:i "
        "object_attributes.iid:i object_attributes.title:s object_attributes.description:s? "
        "object_attributes.state:s object_attributes.action:s object_attributes.draft:b "
        "object_attributes.source_branch:s object_attributes.target_branch:s "
        "object_attributes.source_project_id:i object_attributes.target_project_id:i "
        "object_attributes.last_commit.id:s object_attributes.last_commit.message:s "
        "object_attributes.url:s changes:o"
    ),
}
"""By ``X-Gitlab-Event``: fields of ``user/project/integrations/webhook_events.md``."""
_REFUSED = 300
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
        self.problems: list[str] = []

    def judge(self, exchange: Exchange) -> None:
        """Note what no line of the table allows."""
        self.problems += self._problems(exchange)

    def _problems(self, exchange: Exchange) -> Iterator[str]:
        method, path = exchange.method, exchange.path.removeprefix(API)
        segments = [unquote(part) for part in path.strip("/").split("/")]
        found = [each for each in OPERATIONS if each.matches(method, segments)]
        exact = [each for each in found if not each.segments[-1].startswith(":")] or found
        if not exact:
            yield f"{method} {path} is in no line of the table"
            return
        operation = exact[0]
        self.seen[operation.line] += 1
        yield from (f"{operation.line}: {each}" for each in _asked_wrongly(operation, exchange))
        if exchange.status not in operation.statuses:
            yield f"{operation.line}: the status {exchange.status} is not described"
        elif exchange.status < _REFUSED and operation.answered:
            yield from (f"{operation.line}: {each}" for each in _misfits(operation, exchange))

    def delivered(self, headers: Mapping[str, str], body: bytes) -> None:
        """Note what the description does not say of a delivery."""
        fields = DELIVERIES.get(headers.get("X-Gitlab-Event", ""))
        if fields is None:
            self.problems.append(f"delivery: {headers} names no event")
            return
        self.seen[f"delivery {headers['X-Gitlab-Event']}"] += 1
        for field in fields.split():
            name, kind = field.split(":")
            value: Any = json.loads(body)
            for step in name.split("."):
                value = value.get(step) if isinstance(value, dict) else None
            if not _fits(value, kind):
                self.problems.append(f"delivery: {name} is {value!r}")


def _asked_wrongly(operation: Operation, exchange: Exchange) -> Iterator[str]:
    allowed = {**operation.asked, **(_PAGING if operation.is_list else {})}
    asked = dict(parse_qsl(exchange.query, keep_blank_values=True))
    sent = {**{key: _typed(value, allowed.get(key, "s")) for key, value in asked.items()}}
    sent |= json.loads(exchange.sent or b"{}")
    for key, value in sent.items():
        if key not in allowed:
            yield f"{key} is not described"
        elif not _is(value, allowed[key]):
            yield f"{key} is {value!r}"
    if not operation.required <= sent.keys():
        yield f"{sorted(operation.required - sent.keys())} must be sent"


def _typed(text: str, kind: str) -> object:
    """Return a value of a query as the kind it is meant to be."""
    if kind == "b":
        return {"true": True, "false": False}.get(text, text)
    return int(text) if kind == "i" and text.isdigit() else text


def _misfits(operation: Operation, exchange: Exchange) -> Iterator[str]:
    document = json.loads(exchange.received)
    if isinstance(document, list) is not operation.is_list:
        yield "a list" if operation.is_list else "no list"
        return
    for item in document if operation.is_list else [document]:
        for key, kind in operation.answered.items():
            if not _fits(item.get(key), kind):
                yield f"{key} is {item.get(key)!r}"


def _fits(value: object, kind: str) -> bool:
    return (value is None and kind.endswith("?")) or _is(value, kind[0])


def _is(value: object, kind: str) -> bool:
    expected = _TYPES[kind[0]]
    return isinstance(value, expected) and not (kind[0] == "i" and isinstance(value, bool))
