"""
Other tools that change a value in a YAML text, as peers of ``orderkit edit``.

ruamel in two settings (as it comes; told to keep quotes and long lines), yaml-edit (a lossless
tree in Rust), and sed with a pattern that day-2 jobs use. Each takes an edit as a person writes it
and returns the new text or raises. Called by ``bench.edit`` and ``scripts/editing_docs.py``.
"""

from __future__ import annotations

import io
import re
import subprocess
from collections.abc import Callable
from typing import Any

from yamlfiles.assignments import Assignment, parse
from yamlfiles.edit import Op

Editor = Callable[[str, str], str]


class CannotError(Exception):
    """The tool has no means for such an edit."""


def ruamel_default(text: str, edit: str) -> str:
    """Load, set and dump with ruamel's round-trip defaults."""
    return _ruamel(text, edit, tuned=False)


def ruamel_tuned(text: str, edit: str) -> str:
    """Do the same with quotes preserved, no line width, and lists indented by two."""
    return _ruamel(text, edit, tuned=True)


def _ruamel(text: str, edit: str, *, tuned: bool) -> str:
    import ruamel.yaml

    yaml = ruamel.yaml.YAML()
    if tuned:
        yaml.preserve_quotes = True
        yaml.width = 1_000_000
        yaml.indent(mapping=2, sequence=4, offset=2)
    documents = list(yaml.load_all(text))
    wish = parse(edit)
    _change(documents[0], wish)
    out = io.StringIO(newline="")
    if len(documents) == 1:
        yaml.dump(documents[0], out)
    else:
        yaml.dump_all(documents, out)
    return out.getvalue()


def _change(data: Any, wish: Assignment) -> None:
    *above, last = wish.path
    for step in above:
        data = data[step]
    if wish.op is Op.SET:
        data[last] = wish.value
    elif wish.op is Op.UNSET:
        del data[last]
    elif wish.op is Op.ADD:
        data[last].append(wish.value)
    else:
        data[last].remove(wish.value)


def yaml_edit(text: str, edit: str) -> str:
    """Set the value in yaml-edit's tree of the stream."""
    from yaml_edit import YamlFile

    stream = YamlFile.parse(text)
    document = stream.document()
    if document is None:
        raise CannotError
    wish = parse(edit)
    *above, last = wish.path
    node: Any = document.root()
    for step in above:
        node = _inside(node)[step]
    place = _inside(node)
    if wish.op is Op.SET:
        place[last] = wish.value
    elif wish.op is Op.UNSET:
        del place[last]
    elif wish.op is Op.ADD:
        _inside(place[last]).append(wish.value)
    else:
        _inside(place[last]).remove(wish.value)
    return str(stream)


def _inside(node: Any) -> Any:
    found = node.as_mapping()
    return node.as_sequence() if found is None else found


def sed(text: str, edit: str) -> str:
    """Replace what stands behind the last key of the path, on every line that begins with it."""
    wish = parse(edit)
    key = wish.path[-1]
    if wish.op is not Op.SET or isinstance(key, int):
        raise CannotError
    value = edit.partition("=")[2]
    replacement = re.sub(r"([\\/&])", r"\\\1", value)
    done = subprocess.run(
        ["sed", "-E", f"s/^( *{key}: *)[^ #]*/\\1{replacement}/"],
        input=text.encode(),
        capture_output=True,
        check=True,
    )
    return done.stdout.decode()


EDITORS: dict[str, Editor] = {
    "ruamel": ruamel_default,
    "ruamel, tuned": ruamel_tuned,
    "yaml-edit": yaml_edit,
    "sed": sed,
}
