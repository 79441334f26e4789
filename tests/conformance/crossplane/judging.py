"""
What a real core did, kept as data, and how others are compared with it.

One file per scene lies in ``recorded/``: the first step whole, later ones as what changed. They are
recorded by hand, where a core runs (`cores` says what it needs):

    ORDERKIT_TEST_CROSSPLANE=KUBECONFIG ORDERKIT_RECORD_CROSSPLANE=1 \
        scripts/test.sh tests/conformance/crossplane -k real_core
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from tests.conformance.crossplane.differences import DIFFERENCES, EMBEDDED
from tests.conformance.crossplane.playing import Outcome
from tests.conformance.crossplane.seeing import Account

RECORDED = Path(__file__).parent / "recorded"
RECORD_VARIABLE = "ORDERKIT_RECORD_CROSSPLANE"
Accounts = dict[str, Account]
_THEN = " → "


def record(scene: str, outcome: Outcome) -> None:
    """Keep what a real core did."""
    RECORDED.mkdir(exist_ok=True)
    steps, before = {}, Account()
    for name, account in outcome.accounts.items():
        steps[name] = {
            "seen": {k: v for k, v in account.items() if before.get(k) != v},
            "gone": sorted(before.keys() - account.keys()),
        }
        before = account
    content = {"steps": steps, "events": sorted(outcome.events)}
    text = json.dumps(content, indent=1, ensure_ascii=False)
    (RECORDED / f"{scene}.json").write_text(f"{text}\n")


def recorded(scene: str) -> tuple[Accounts, frozenset[str]]:
    """Return the accounts of a scene by step, and what was said; nothing if it is not recorded."""
    path = RECORDED / f"{scene}.json"
    if not path.exists():
        return {}, frozenset()
    content: dict[str, Any] = json.loads(path.read_text())
    accounts: Accounts = {}
    account: Account = {}
    for name, step in content["steps"].items():
        kept = {k: v for k, v in account.items() if k not in step["gone"]}
        account = {**kept, **step["seen"]}
        accounts[name] = _with_spending(account)
    return accounts, frozenset(content["events"])


def _with_spending(account: Account) -> Account:
    """
    Copy into an agent's status what its budget says.

    The agent's station does so since the scenes were recorded; a new record has it already.
    """
    spending = ("spentUsd", "paused", "cause")
    copied = copy.deepcopy(account)
    for subject, agent in copied.items():
        kind, _, name = subject.partition(" ")
        budget = account.get(f"XAgentBudget {name}/budget", {}).get("status", {})
        if kind == "XDatasetAgent" and agent["status"]:
            agent["status"] |= {key: budget[key] for key in spending if key in budget}
    return copied


def expected(scene: str, step: str) -> Account | None:
    """Return what a step should show on the embedded platform."""
    account = recorded(scene)[0].get(step)
    return None if account is None else amended(account, scene, step, EMBEDDED)


def amended(account: Account, scene: str, step: str, who: str) -> Account:
    """Return an account of a real core as somebody else's should be, by the listed differences."""
    found = copy.deepcopy(account)
    for one in DIFFERENCES:
        meant = one.scene == scene and one.step in ("", step) and who in one.who
        if meant and one.subject in found:
            _replace(found[one.subject], one.place.split(_THEN), one.real, one.ours)
    return found


def _replace(value: Any, path: list[str], real: Any, ours: Any) -> None:
    for part in path[:-1]:
        value = value[int(part) if isinstance(value, list) else part]
    assert value[path[-1]] == real, f"recorded is {value[path[-1]]!r}, listed {real!r}"
    value[path[-1]] = ours


def unlike(real: Any, seen: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    """Return where two accounts differ, by the smallest paths, with both values."""
    if isinstance(real, dict) and isinstance(seen, dict):
        found: dict[str, tuple[Any, Any]] = {}
        for key in {**real, **seen}:
            below = f"{path}{_THEN}{key}" if path else str(key)
            found |= unlike(real.get(key), seen.get(key), below)
        return found
    if isinstance(real, list) and isinstance(seen, list) and len(real) == len(seen):
        parts = enumerate(zip(real, seen, strict=True))
        return {p: d for n, (a, b) in parts for p, d in unlike(a, b, f"{path}{_THEN}{n}").items()}
    return {} if real == seen and type(real) is type(seen) else {path: (real, seen)}
