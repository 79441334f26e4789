"""
Policy rules on what belongs to Crossplane: the choice of a Composition, references, and owners.

A push could name another Composition, or pin a revision of another one, which Crossplane never
compares with ``compositionRef`` (crossplane#7220). It could also drop or make up references to
composed resources, and with a legacy XR have its connection Secret written into any namespace.
"""

from __future__ import annotations

import re

from kubeschema.xrd import default_composition, machinery_path, scope_of, update_policy_of
from kubeschema.xrd.crossplane_fields import spec_fields
from orderkit.core.kit.model import Kit
from orderkit_workshop.generate.cel_text import Expression, either, literal, lookup, optional
from orderkit_workshop.generate.policy_parts import BY_CROSSPLANE, PolicyRule, Variables, quoted


def only_crossplane_chooses(kit: Kit, variables: Variables) -> PolicyRule:
    """Return the rule that nobody but Crossplane sets or changes these fields."""
    path, policy = machinery_path(kit.xrd), update_policy_of(kit.xrd)
    fields = spec_fields(scope_of(kit.xrd), policy)
    names = sorted(fields["crossplane"]["properties"] if "crossplane" in fields else fields)
    offered = f"== {literal(default_composition(kit.xrd))}"
    if kit.compositions:
        offered = f"in {literal(list(kit.offered))}"
    expressions = variables.expressions
    expressions["machinery"] = lookup("object", path).replace("null", "{}")
    expressions["machinery_before"] = lookup("variables.before", path).replace("null", "{}")
    now, was = "variables.machinery", "variables.machinery_before"
    expressions["chosen"] = (
        f"{literal(names)}.filter(f, f in {now} &&\n"
        f"!(f in {was} && {now}[f] == {was}[f]) &&\n"
        f"{_pins(kit, now)}"
        f"!(f == 'compositionUpdatePolicy' && {now}[f] == {literal(policy)}) &&\n"
        f"!(f == 'compositionRef' && {now}[f].name {offered}))"
    )
    return PolicyRule(
        either(BY_CROSSPLANE, "variables.chosen.size() == 0"),
        (
            f"{'.'.join(path)}.",
            Expression("variables.chosen[0]"),
            ": only Crossplane sets it, so orders get the kit's Composition; take it out",
        ),
        f"{'.'.join(path)}: only Crossplane chooses the Composition",
    )


def _pins(kit: Kit, now: str) -> str:
    """
    Return what lets a push pin a revision of the kit's own Composition, if the kit allows that.

    Crossplane names revisions after their Composition, with seven digits of a hash.
    """
    composition = default_composition(kit.xrd)
    if not kit.pins or not composition:
        return ""
    pattern = literal(f"^{re.escape(composition)}-[0-9a-f]{{7}}$")
    return (
        f"!(f == 'compositionUpdatePolicy' && {now}[f] in ['Automatic', 'Manual']) &&\n"
        f"!(f == 'compositionRevisionRef' && {now}[f].name.matches({pattern})) &&\n"
    )


def only_crossplane_owns(variables: Variables) -> PolicyRule:
    """
    Return the rule that nobody but Crossplane adds an owner.

    The garbage collector deletes an object whose owners do not exist: a made-up owner would end the
    order, and all that it composed, past the guards of its end.
    """
    expressions, path = variables.expressions, ("metadata", "ownerReferences")
    expressions["owners_before"] = f"{optional('variables.before', path)}.orValue([])"
    expressions["new_owners"] = (
        f"{optional('object', path)}.orValue([]).filter(o,\n"
        "!variables.owners_before.exists(b, b.uid == o.uid))"
    )
    return PolicyRule(
        either(BY_CROSSPLANE, "variables.new_owners.size() == 0"),
        (
            "metadata.ownerReferences: ",
            Expression("variables.new_owners[0].kind"),
            " ",
            *quoted("variables.new_owners[0].name"),
            " would own the order, and only Crossplane makes an XR a part of another; take it out",
        ),
        "metadata.ownerReferences: only Crossplane makes an XR a part of another",
    )
