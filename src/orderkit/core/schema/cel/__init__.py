"""
CEL rules of schemas (``x-kubernetes-validations``), as the Kubernetes API server judges them.

`RuleSet` compiles a schema's rules and checks objects against them. The verdicts are those of
Google's CEL library (``cel-expr-python``); this package types ``self`` and ``oldSelf`` as
Kubernetes does, adds its functions, finds the old values of transition rules and speaks in the
server's words. A rule that cannot be evaluated exactly is a `Gap`, never passed.

Not here: cost limits, and rules of admission policies. Imports the library when the first rule is
compiled; where it has no build (Linux on other processors than x86-64) every rule is a gap.

Called by ``core.schema.validate``, by the embedded cluster and by checks of XRDs.
"""

from orderkit.core.schema.cel.type_check import BLOCKING, Broken, Gap, RuleSet, Verdicts, has_rules

__all__ = ["BLOCKING", "Broken", "Gap", "RuleSet", "Verdicts", "has_rules"]
