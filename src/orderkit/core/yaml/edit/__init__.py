"""
Change values in a YAML text and leave every other byte alone.

``edit`` finds the place through parser events, splices the text between the parser's marks, parses
the result again and compares both streams of events: if anything but the intended node differs, or
if a reader of YAML 1.1, of YAML 1.2 or Kubernetes would see another type than the intended one, it
refuses with a reason code. It never dumps a document. It does no I/O and knows nothing of git.

Called by ``flows.change`` and by ``orderkit edit``. What is refused, and why: docs/editing.md.
"""

from orderkit.core.yaml.edit.editing import edit, read_value
from orderkit.core.yaml.edit.edits import Edit, EditRefusal, EditRefusedError, Op, Step, Value
from orderkit.core.yaml.edit.stream import LIMITS, YamlLimits

__all__ = [
    "LIMITS",
    "Edit",
    "EditRefusal",
    "EditRefusedError",
    "Op",
    "Step",
    "Value",
    "YamlLimits",
    "edit",
    "read_value",
]
