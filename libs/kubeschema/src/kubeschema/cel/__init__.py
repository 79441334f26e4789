"""
CEL rules in schemas (``x-kubernetes-validations``), judged as the Kubernetes API server does.

`rules_of` returns the rules of a schema, which check objects. Google's CEL library
(``cel-expr-python``) evaluates the expressions. This package types ``self`` and ``oldSelf`` as
Kubernetes does, adds Kubernetes' functions, finds the old values for transition rules and writes
the server's messages. A rule that cannot be evaluated exactly becomes a `Gap`; it never counts as
passed. A rule that costs too much with the values of an object counts as broken (``evaluation``).

Not covered: what a rule might cost with the largest values of its schema, and the rules of
admission policies. The library is imported when the first rule is compiled. Where it has no build
(Linux on processors other than x86-64), every rule is a gap.
"""

from kubeschema.cel.type_check import BLOCKING, Broken, Gap, RuleSet, Verdicts, has_rules, rules_of

__all__ = ["BLOCKING", "Broken", "Gap", "RuleSet", "Verdicts", "has_rules", "rules_of"]
