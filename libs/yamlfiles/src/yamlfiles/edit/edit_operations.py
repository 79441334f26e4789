"""
The operations of the editor, and the reasons for which it refuses them.

The codes are an interface: scripts and the service's clients read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ground.errors import RefusedError

__all__ = ["HINTS"]

Step = str | int
Value = str | int | float | bool | None | list["Value"] | dict[str, "Value"]


class Op(StrEnum):
    """The operation at a path."""

    SET = "set"
    """Set the value. A missing key (and the maps above it) is added."""
    ADD = "add"
    """Append the value to the list. A missing list is created."""
    REMOVE = "remove"
    """Remove the item that equals the value from the list."""
    UNSET = "unset"
    """Remove the key or item at the path."""
    MOVE = "move"
    """Move the value to the path in `value`, a list of steps, with the comment behind it."""
    COMMENT = "comment"
    """Write the comment in `value`, which begins with #, behind the value on its line."""


@dataclass(frozen=True, slots=True)
class Edit:
    """
    One edit: an operation at a path.

    A step of the path is a key or a list index (negative: from the end; digits in a string work
    too). `document` counts from 0 and is required if the file has several documents.
    """

    path: tuple[Step, ...]
    op: Op = Op.SET
    value: Value = None
    document: int | None = None


class EditRefusal(StrEnum):
    """Why an edit was refused: stable codes."""

    ALIAS = "alias"
    AMBIGUOUS_KEY = "ambiguous-key"
    ANCHOR_IN_USE = "anchor-in-use"
    BLOCK_SCALAR = "block-scalar"
    COMMENT = "comment"
    DOCUMENT = "document"
    DUPLICATE_KEY = "duplicate-key"
    EMPTY = "empty"
    ENCODING = "encoding"
    LIMITS = "limits"
    LINE_BREAK = "line-break"
    MERGE_KEY = "merge-key"
    MISSING = "missing"
    NOT_UNIQUE = "not-unique"
    NOT_YAML = "not-yaml"
    PAIR = "pair"
    TABS = "tabs"
    TAG = "tag"
    UNPROVED = "unproved"
    VALUE = "value"
    WRONG_KIND = "wrong-kind"


HINTS: dict[EditRefusal, str] = {
    EditRefusal.ALIAS: "write the value out where the alias (*name) is",
    EditRefusal.AMBIGUOUS_KEY: "put the key in quotes; readers take it for different things",
    EditRefusal.ANCHOR_IN_USE: "other places repeat this value by *name: write it there by hand",
    EditRefusal.BLOCK_SCALAR: "the text does not fit the block's style (| or >); edit it by hand",
    EditRefusal.COMMENT: "a comment stands between the parts; move it, or edit by hand",
    EditRefusal.DOCUMENT: "say which document is meant: --document N, counted from 0",
    EditRefusal.DUPLICATE_KEY: "remove one: readers disagree about which one counts",
    EditRefusal.EMPTY: "the document holds nothing; write its first key by hand",
    EditRefusal.ENCODING: "convert the file to UTF-8",
    EditRefusal.LIMITS: "files of this size or depth are not edited; split it",
    EditRefusal.LINE_BREAK: "end lines with a line feed; escape U+0085, U+2028, U+2029 in quotes",
    EditRefusal.MERGE_KEY: "the map inherits through '<<'; write the keys out first",
    EditRefusal.MISSING: "check the path; set adds a key to a map, add an item to a list",
    EditRefusal.NOT_UNIQUE: "name the item by its index: path[N] with unset",
    EditRefusal.NOT_YAML: "correct the file first",
    EditRefusal.PAIR: "write the pair in braces: [{key: value}]",
    EditRefusal.TABS: "indent with spaces",
    EditRefusal.TAG: "a tag (!…) gives the value its own meaning; edit it by hand",
    EditRefusal.UNPROVED: "nothing was changed; edit it by hand, and please report the file",
    EditRefusal.VALUE: "give text, a number that JSON can hold, true, false, null, a list or a map",
    EditRefusal.WRONG_KIND: "check the path: keys lead into maps, indexes into lists",
}


class EditRefusedError(RefusedError):
    """
    The edit cannot be made, or cannot be proved exact. Nothing was changed.

    `code` is stable. The message names file, line where known, path and reason.
    """

    def __init__(
        self, code: EditRefusal, message: str, *, name: str = "", line: int | None = None
    ) -> None:
        location = f"{name}:{line}" if name and line else name
        super().__init__(f"{location}: {message}" if location else message, hint=HINTS[code])
        self.code, self.reason, self.name, self.line = code, message, name, line

    def named(self, name: str) -> EditRefusedError:
        """Return the same refusal with the file's name."""
        return EditRefusedError(self.code, self.reason, name=name, line=self.line)
