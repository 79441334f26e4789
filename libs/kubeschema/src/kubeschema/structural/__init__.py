"""
Structural OpenAPI v3 schemas, as the Kubernetes API server treats them.

`problems` judges a value in the server's words, `type_problems` makes the narrower checks of
server-side apply, and `check_schema` reports whether a schema is structural at all. Defaults and
pruning are in ``pruning``. The ``jsonschema`` library decides, extended for what OpenAPI and
Kubernetes add; only the wording is ours.

Not covered: CEL rules (see ``cel``), the rules of ``metadata`` itself, and ratcheting (the server
tolerates old faults in fields that an update leaves alone). Patterns have RE2's syntax; the few
that Python cannot read with the same meaning are refused.

Stricter than the server in one respect: the server accepts a list where a string with a format
belongs.
"""

from kubeschema.structural.api_messages import SchemaProblem, problems, type_problems
from kubeschema.structural.structural_rules import check_schema

__all__ = [
    "SchemaProblem",
    "check_schema",
    "problems",
    "type_problems",
]
