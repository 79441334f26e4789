"""
Write other people's YAML anew in a pack's style, with their comments.

ruamel keeps comments, anchors, quotes and block texts, and changes indentation, blanks and line
breaks. The result is read again as Kubernetes reads it: if it is not exactly the object that was
asked for, the object is written without comments.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import yaml

from ground.errors import OrderkitError
from ground.objects.kube_objects import Manifest
from yamlfiles import yaml11
from yamlfiles.manifests import parse_documents

__all__ = ["rewritten"]

_WIDTH = 100
"""Where long texts are broken; yamllint's limit in a pack is 120."""
_BLANKS = re.compile(r"\n{4,}")

Tree = Any
"""A document as ruamel reads it: maps and lists that carry comments."""


def rewritten(
    text: bytes,
    manifest: Manifest,
    *,
    prepare: Callable[[Tree], None] = lambda _: None,
    in_blocks: bool = False,
) -> bytes:
    """
    Return a manifest as a file, with the comments of the text that it came from.

    Args:
        text: A file with one document.
        manifest: What the result must be read as; it may differ from what the text holds.
        prepare: Moves parts of the document to where the manifest has them, with their comments.
        in_blocks: Maps and lists in braces and brackets are written with a line for each entry.
    """
    if text.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return yaml11.dump(manifest).encode()  # JSON has no comments
    try:
        plain = text.decode("utf-8-sig").replace("\r\n", "\n")
        written = _written(plain, manifest, prepare, in_blocks=in_blocks)
    except (OrderkitError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        written = ""
    except Exception as error:
        # ruamel's errors have no name here: it is heavy, and imported only where it is used
        if not isinstance(error, _yaml_errors()):
            raise
        written = ""
    if _reads_as(written, manifest):
        # blank lines may be part of a block text
        compact = _BLANKS.sub("\n\n\n", written.strip("\n")) + "\n"
        return (compact if _reads_as(compact, manifest) else written).encode()
    return yaml11.dump(manifest).encode()


def _yaml_errors() -> tuple[type[Exception], ...]:
    from ruamel.yaml.error import YAMLError  # lazy: heavy

    return (YAMLError, yaml.YAMLError)


def _reads_as(text: str, manifest: Manifest) -> bool:
    try:
        documents = [entry for entry, _ in parse_documents("", text.encode()) if entry is not None]
    except OrderkitError:
        return False
    return documents == [manifest]


def _written(
    text: str, manifest: Manifest, prepare: Callable[[Tree], None], *, in_blocks: bool
) -> str:
    from ruamel.yaml import YAML  # lazy: heavy

    writer = YAML()
    writer.preserve_quotes = True
    writer.width = _WIDTH
    writer.indent(mapping=2, sequence=4, offset=2)
    tree = writer.load(text)
    prepare(tree)
    _align(tree, manifest)
    if in_blocks:
        _unfold(tree)
    stream = io.StringIO()
    writer.dump(tree, stream)
    return _tidied(stream.getvalue())


def _unfold(tree: Tree) -> None:
    """Give each entry of maps and lists a line of its own."""
    layout = getattr(tree, "fa", None)  # ruamel's maps and lists have it
    if layout is None:
        return
    if tree:
        layout.set_block_style()
    for inner in tree.values() if isinstance(tree, dict) else tree:
        _unfold(inner)


def _align(tree: Tree, target: Any) -> None:
    """Change a map or list to `target`; what is equal stays with its comments."""
    if isinstance(target, dict):
        for key in [key for key in tree if key not in target]:
            del tree[key]
        entries: Any = target.items()
    else:
        del tree[len(target) :]
        entries = enumerate(target)
    for key, value in entries:
        present = key in tree if isinstance(target, dict) else key < len(tree)
        if present and isinstance(value, dict | list) and isinstance(tree[key], type(value)):
            _align(tree[key], value)
        elif not present and isinstance(target, list):
            tree.append(value)
        elif not present or tree[key] != value or type(tree[key]) is bool is not type(value):
            tree[key] = value


def _tidied(text: str) -> str:
    """Indent full-line comments like the line that follows them, and remove trailing blanks."""
    lines = text.split("\n")
    scalars = [
        (event.style in ("|", ">"), event.start_mark.line + 1, event.end_mark.line)
        for event in yaml.parse(text, Loader=yaml.CSafeLoader)
        if isinstance(event, yaml.ScalarEvent) and event.start_mark and event.end_mark
    ]
    blocks = {n for block, first, end in scalars if block for n in range(first, end)}
    texts = {n for block, first, end in scalars if not block for n in range(first, end + 1)}
    indent = ""
    for number in range(len(lines) - 1, -1, -1):
        stripped = lines[number].strip()
        if number in blocks or not stripped:
            continue
        lines[number] = lines[number].rstrip()
        if stripped.startswith("#") and number not in texts:
            lines[number] = indent + stripped
        else:
            indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
    return "\n".join(lines)
