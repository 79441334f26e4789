"""
Structural OpenAPI v3 schemas, as the Kubernetes API server treats them.

`default` and `prune` shape a value, `problems` judges it in the server's own words,
`type_problems` is the narrower judgement of server-side apply, and `check_schema` says
whether a schema is structural at all. Verdicts come from the ``jsonschema`` library, extended
for what OpenAPI and Kubernetes add; only the wording is ours.

Not here: CEL rules (``core.schema.cel`` has them), the rules of ``metadata`` itself, and
ratcheting (the server forgives old faults in fields that an update does not touch). A pattern
is RE2's; the few that Python cannot read with the same meaning are refused.

Stricter than the server in one point: it lets a list pass where a text with a format belongs.

Called by ``core.schema.validate``, ``core.schema.cel``, plans and the embedded cluster.
"""

from orderkit.core.schema.structural.api_messages import SchemaProblem, problems
from orderkit.core.schema.structural.apply_errors import type_problems
from orderkit.core.schema.structural.pruning import default, prune
from orderkit.core.schema.structural.re2_patterns import PatternError
from orderkit.core.schema.structural.structural_rules import check_schema

__all__ = [
    "PatternError",
    "SchemaProblem",
    "check_schema",
    "default",
    "problems",
    "prune",
    "type_problems",
]
