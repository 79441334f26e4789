"""
Rules about the source of stations: what they import, and branches that never run.

The source is parsed, never run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from kubeschema.validate.findings import Located
from orderkit_workshop.check.kit_under_check import KitUnderCheck, steps_in
from orderkit_workshop.check.rule_codes import KitRule

_IMPURE = {
    *("asyncio", "glob", "http", "httpx", "importlib", "io", "os", "pathlib"),
    *("random", "requests", "secrets", "shutil", "socket", "sqlite3", "subprocess", "tempfile"),
    *("threading", "time", "urllib", "uuid", "kubernetes", "pygit2", "click"),
}
"""Modules for I/O and time. uuid also has pure parts, but those are rarely needed."""
_CLOCK = {"now", "utcnow", "today"}
"""Methods of datetime and date that read the clock; the others are pure."""
_OURS = {
    *("orderkit", "orderkit_standins", "orderkit_workshop"),
    *("compositions", "ground", "kubeschema", "softwaretemplates", "yamlfiles"),
}
_PUBLIC = "orderkit.stations"


def check_station_sources(subject: KitUnderCheck) -> Iterator[Located]:
    """Check the sources of the stations that the kit's Compositions name."""
    names = {
        str(step.input.get("name")) for doc in subject.compositions for step in steps_in(doc) or ()
    }
    for name in sorted(names):
        folder = PurePosixPath("stations", name.partition("/")[0])
        for path in sorted(subject.pack.files):
            if path.is_relative_to(folder) and path.suffix == ".py":
                yield from _source(subject, path, subject.pack.files[path])


def _source(subject: KitUnderCheck, path: PurePosixPath, data: bytes) -> Iterator[Located]:
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return  # reported already: the station cannot be imported
    nodes = list(ast.walk(tree))
    dated = any("datetime" in _imported(node) for node in nodes)
    for node in nodes:
        if dated and isinstance(node, ast.Attribute) and node.attr in _CLOCK:
            message = f"reads the clock: {node.attr}()"
            yield subject.in_file(KitRule.STATION_IMPORTS, path, message, line=node.lineno)
        for module in _imported(node):
            message = _doubt(module)
            if message:
                line = getattr(node, "lineno", None)
                yield subject.in_file(KitRule.STATION_IMPORTS, path, message, line=line)
        if isinstance(node, ast.Constant) and node.value == "deletionTimestamp":
            message = "reads deletionTimestamp"
            yield subject.in_file(KitRule.STATION_DELETION, path, message, line=node.lineno)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level and node.module:
        return [node.module]
    return []


def _doubt(module: str) -> str:
    if module.partition(".")[0] in _IMPURE:
        return f"imports {module}"
    if module.partition(".")[0] in _OURS and module != _PUBLIC:
        return f"imports {module}: of Orderkit, a station may import {_PUBLIC} only"
    return ""


_SETS = {"set", "frozenset", "hash", "id"}
_SET_METHODS = {"union", "intersection", "difference", "symmetric_difference"}
_KNOWN = {
    *("__future__", "base64", "collections", "copy", "dataclasses", "datetime", "decimal", "enum"),
    *("fractions", "functools", "hashlib", "ipaddress", "itertools", "json", "math", "operator"),
    *("orderkit", "re", "string", "textwrap", "typing"),
}


def may_depend_on_hashing(data: bytes) -> bool:
    """
    Say whether a station's output could depend on Python's randomised string hashes.

    True for sets, and for foreign modules, where it is unknown. A cautious guess from the source.
    """
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return False
    return any(_uses_hashes(node) for node in ast.walk(tree))


def _uses_hashes(node: ast.AST) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Name):
        return node.id in _SETS
    if isinstance(node, ast.Attribute):
        return node.attr in _SET_METHODS
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.BitXor):
        return isinstance(node.left, ast.Call) or isinstance(node.right, ast.Call)
    return any(module.partition(".")[0] not in _KNOWN for module in _imported(node))
