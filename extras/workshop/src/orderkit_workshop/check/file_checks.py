"""Rules about a kit's files: generated files are up to date, and YAML passes yamllint."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ground.errors import InvalidInputError, OrderkitError
from ground.names import Files
from kubeschema.validate import Finding
from kubeschema.validate.findings import Located
from orderkit.core.kit.generated_mark import is_generated
from orderkit.core.kit.model import Kit
from orderkit.core.plan.price_table import PRICES, read_prices
from orderkit_workshop.check.kit_under_check import KitUnderCheck
from orderkit_workshop.check.rule_codes import KitRule
from orderkit_workshop.generate.kit_files import is_hand_written, leftovers, projected

DEFAULT_STYLE = """\
extends: default
rules:
  line-length: {max: 120}
  document-start: disable
  braces: {max-spaces-inside: 1}
  comments: {min-spaces-from-content: 1}
  truthy: {check-keys: false}
"""
"""The configuration for packs without a .yamllint file."""
_YAML = {".yaml", ".yml"}
_ROOMS = ("templates", "day2", "gitops/apis")


def check_generated(subject: KitUnderCheck, kit: Kit) -> Iterator[Located]:
    """Compare the generated files with what their sources generate."""
    try:
        expected_files = projected(kit)
    except OrderkitError as error:
        yield subject.in_kit(KitRule.KIT_SCHEMA, "spec", str(error), hint=error.hint)
        return
    files = subject.pack.files
    for path, data in sorted(expected_files.items()):
        if path not in files:
            yield subject.in_file(KitRule.DRIFT, path, "is missing")
        elif is_hand_written(files, path, data):
            yield subject.in_file(KitRule.HAND_WRITTEN, path, "is written by hand")
        elif files[path] != data:
            line = _first_difference(files[path], data)
            yield subject.in_file(KitRule.DRIFT, path, "differs from its sources", line=line)
    for path in leftovers(files, subject.name, expected_files):
        yield subject.in_file(
            KitRule.DRIFT, path, "was generated before and is no longer generated"
        )


def check_pack_files(files: Files, expected_files: Files) -> Iterator[Located]:
    """Compare the pack's files that are generated from all kits together."""
    for path, data in sorted(expected_files.items()):
        if files.get(path) != data:
            message = "differs from its sources" if path in files else "is missing"
            rule = KitRule.DRIFT
            about = Finding("", rule, message, hint=rule.advice, severity=rule.severity)
            yield Located(path, None, None, "the pack", about)


def check_prices(subject: KitUnderCheck) -> Iterator[Located]:
    """Check the price table of the kit's pack, if it has one."""
    data = subject.pack.files.get(PRICES)
    if data is None:
        return
    try:
        read_prices(data, name=str(PRICES))
    except InvalidInputError as error:
        message = " ".join(str(error).split())
        match = re.search(r":([0-9]+): |, line ([0-9]+), ", message)
        line = int(match[1] or match[2]) if match else 1
        message = message.removeprefix(f"{PRICES}:{line}: ")  # the report has it
        yield subject.in_file(KitRule.PRICES, PRICES, message, line=line, hint=error.hint)


def _first_difference(before: bytes, after: bytes) -> int:
    old, new = before.splitlines(), after.splitlines()
    pairs = zip(old, new, strict=False)
    return next((n for n, (a, b) in enumerate(pairs, 1) if a != b), min(len(old), len(new)) + 1)


def check_style(subject: KitUnderCheck, style: str) -> Iterator[Located]:
    """
    Run yamllint over the hand-written YAML files of the kit.

    Args:
        style: A yamllint configuration.

    Raises:
        ValueError: It is not a valid configuration.
    """
    lint = _linter(style)
    broken = {entry.file for entry in (*subject.pack.unreadable, *subject.kit_docs[1])}
    rooms = _rooms(subject.name)
    for path, data in subject.pack.files.items():
        if path.suffix not in _YAML or not str(path).startswith(rooms) or path in broken:
            continue
        # a skeleton is YAML only once rendered
        if "skeleton" in path.parts or is_generated(data):
            continue
        for problem in lint(data, str(path)):
            warns = problem.level == "warning"
            rule = KitRule.YAML_STYLE_WARNING if warns else KitRule.YAML_STYLE
            message = f"{problem.desc} ({problem.rule})" if problem.rule else problem.desc
            about = Finding("", rule, message, hint=rule.advice, severity=rule.severity)
            kit = f"kit {subject.name}"
            yield Located(path, problem.line, problem.column, kit, about)


def _linter(style: str) -> Callable[[bytes, str], Sequence[Any]]:
    from yamllint import linter  # lazy: only this check needs it
    from yamllint.config import YamlLintConfig, YamlLintConfigError

    try:
        config = YamlLintConfig(style)
    except YamlLintConfigError as error:
        raise ValueError(str(error)) from error

    def lint(data: bytes, path: str) -> Sequence[Any]:
        if config.is_file_ignored(path):
            return ()
        return tuple(linter.run(data.decode(errors="replace"), config, path))

    return lint


def in_style(texts: Iterable[bytes], style: str) -> bytes:
    """
    Return the first text that breaks no rule that layout alone can keep; if all do, the last.

    Its first line disables the rules that its long texts and blocks break.

    Raises:
        ValueError: The style is not a valid configuration.
    """
    data, broken = b"", set[str]()
    for data in texts:
        broken = {problem.rule for problem in _linter(style)(data, "") if problem.level == "error"}
        if broken <= _CONTENT_RULES:
            break
    excused = sorted(broken & _CONTENT_RULES)
    if not excused:
        return data
    return f"# yamllint disable {' '.join(f'rule:{rule}' for rule in excused)}\n".encode() + data


_CONTENT_RULES = {"line-length", "trailing-spaces", "empty-lines"}
"""Rules that a text may break which must not be changed: patterns, scripts, templates."""


def _rooms(kit: str) -> tuple[str, ...]:
    return tuple(f"{room}/{kit}/" for room in _ROOMS)
