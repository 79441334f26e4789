"""
Change values in a YAML text and leave every other byte unchanged.

``edit`` locates the node through parser events, splices text between the parser's marks, parses the
result again and compares the two event streams. If anything but the intended node differs, or if
YAML 1.1, YAML 1.2 or Kubernetes would read another type than intended, it refuses with a reason
code. It never dumps a document, does no I/O and knows nothing about git.

docs/editing.md lists what is refused, and why.
"""

from yamlfiles.edit.edit_operations import Edit, EditRefusal, EditRefusedError, Op, Step, Value
from yamlfiles.edit.editing import edit, read_value
from yamlfiles.edit.stream import LIMITS, YamlLimits

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
