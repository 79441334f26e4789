"""
Rule about the patterns of a kit's forms: JavaScript must not need exponential time for them.

Orderkit itself matches patterns in linear time; the browser and the portal's backend do not. The
forms are checked, so that patterns from the XRD, its rules and kit.yaml are all found. Called by
``check``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from ground.js_backtracking import backtracks
from kubeschema.validate.findings import Located
from orderkit.core.kit.generated_mark import is_generated
from orderkit_workshop.check.kit_under_check import KitUnderCheck, finding_at, read_docs
from orderkit_workshop.check.rule_codes import KitRule


def check_form_patterns(subject: KitUnderCheck) -> Iterator[Located]:
    """Check every pattern of the kit's template and of its day-2 forms."""
    folders = {PurePosixPath(folder, subject.name) for folder in ("templates", "day2")}
    for path in sorted(subject.pack.files):
        if path.parent not in folders or path.suffix != ".yaml":
            continue
        data = subject.pack.files[path]
        advice = KitRule.PATTERN_BACKTRACKS.advice
        hint = f"change it in the XRD or kit.yaml: {advice}" if is_generated(data) else advice
        for doc in read_docs(path, data)[0]:
            for at, pattern in _patterns(doc.manifest.get("spec"), "spec"):
                if _is_slow(pattern):
                    message = f"{pattern!r} can read a short text in too many ways"
                    rule = KitRule.PATTERN_BACKTRACKS
                    yield finding_at(rule, doc, at, message, hint=hint)


def _is_slow(pattern: str) -> bool:
    try:
        return backtracks(pattern)
    except ValueError:
        return False  # no pattern of JavaScript: the template's own check refuses it


def _patterns(node: Any, at: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each pattern below a node."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from _patterns(item, f"{at}[{index}]")
    elif isinstance(node, Mapping):
        for key, inner in node.items():
            if key == "pattern" and isinstance(inner, str):
                yield f"{at}.{key}", inner
            elif key == "patternProperties" and isinstance(inner, Mapping):
                yield from ((f"{at}.{key}", str(pattern)) for pattern in inner)
            yield from _patterns(inner, f"{at}.{key}")
