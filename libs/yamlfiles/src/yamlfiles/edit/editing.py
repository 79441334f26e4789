"""
Apply edits to the bytes of a file: locate, splice, prove, one edit after the other.

All edits or none: the returned bytes contain every edit. Called through the package.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from yamlfiles.edit import locating, writing
from yamlfiles.edit.draft import Proposal, draft_change, missing
from yamlfiles.edit.edit_operations import Edit, EditRefusal, EditRefusedError, Step, Value
from yamlfiles.edit.proving import prove
from yamlfiles.edit.site import EditSite, Splicing
from yamlfiles.edit.stream import LIMITS, Stream, YamlLimits, check, decode, read, scan

_BOM = b"\xef\xbb\xbf"
_CHANGES_MAX = 500


def edit(
    data: bytes, edits: Sequence[Edit], *, name: str = "", limits: YamlLimits = LIMITS
) -> bytes:
    """
    Return the bytes with all edits applied and everything else unchanged.

    Each change is proved: to a parser nothing but the intended node differs, and readers of YAML
    1.1, YAML 1.2 and Kubernetes read the intended value. A value that all of them already read
    stays as it is written. Comments inside a removed value are removed with it.

    Args:
        name: The file's name in messages.

    Raises:
        EditRefusedError: One of the edits cannot be made or cannot be proved. Nothing was changed.
    """
    try:
        text = decode(data, limits)
        stream = read(text, limits)
        for change in edits:
            stream = _edited(stream, change, limits)
    except EditRefusedError as error:
        raise error.named(name) from error
    bom = _BOM if data.startswith(_BOM) else b""
    return bom + stream.text.encode()


def read_value(data: bytes, path: Sequence[Step], *, document: int | None = None) -> Value:
    """
    Return the plain data at a path as YAML 1.2 reads it.

    Raises:
        EditRefusedError: The path does not exist, or an edit there would be refused too.
    """
    stream = read(decode(data, LIMITS), LIMITS)
    target = locating.locate(stream, locating.root(stream, document), path)
    if target.missing:
        raise missing(stream, target, path)
    value: Value = locating.data(stream, target.node)
    return value


def _edited(stream: Stream, edit_: Edit, limits: YamlLimits) -> Stream:
    """Apply one edit. Replacing a map or list takes several changes."""
    writing.check(edit_.value)
    todo, changes = deque([edit_]), 0
    while todo:
        changes += 1
        if changes > _CHANGES_MAX:
            raise EditRefusedError(EditRefusal.LIMITS, f"more than {_CHANGES_MAX} changes at once")
        # `_proved` only scans its result. It is checked here if another change follows; after the
        # last change the proof suffices.
        if not stream.documents:
            check(stream, limits)
        step = draft_change(stream, todo.popleft())
        if isinstance(step, Proposal):
            stream = _carried_out(stream, step, limits)
        else:
            # The smaller edits come before the remaining ones, in their order.
            todo.extendleft(reversed(step))
    return stream


def _carried_out(stream: Stream, proposal: Proposal, limits: YamlLimits) -> Stream:
    """Make a change that can be proved. Multi-line strings can be written in two ways."""
    first = EditSite(stream, proposal.target)
    try:
        return _proved(stream, proposal.act(first), limits)
    except EditRefusedError as error:
        if error.code is not EditRefusal.UNPROVED:
            raise
    # A literal block may absorb the lines after it, which only the proof detects. Quotes may not.
    second = EditSite(stream, proposal.target, literal=False)
    return _proved(stream, proposal.act(second), limits)


def _proved(stream: Stream, change: Splicing, limits: YamlLimits) -> Stream:
    text = change.apply(stream.text)
    if len(text) > limits.size_bytes:
        raise EditRefusedError(
            EditRefusal.LIMITS, f"would be larger than {limits.size_bytes} bytes"
        )
    try:
        after = scan(text, limits)
    except EditRefusedError as error:
        if error.code is EditRefusal.LIMITS:
            raise
        message = f"the result would be no good YAML ({error.reason})"
        raise EditRefusedError(EditRefusal.UNPROVED, message) from error
    prove(stream, after, change.expected)
    return after
