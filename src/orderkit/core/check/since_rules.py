"""
The rules of ``orderkit kit check --since``: what a change of a kit would do to living orders.

One table, like ``rules``; codes are stable.
"""

from __future__ import annotations

from orderkit.core.check.rules import Coded
from orderkit.core.schema.validate.findings import FindingSeverity

_E, _W = FindingSeverity.ERROR, FindingSeverity.WARNING


class SinceRule(Coded):
    """Rules about a kit compared with the one that orders were placed with."""

    KIT = (
        "since-kit",
        _E,
        "A kit is gone or renamed: nobody can change or end its orders any more.",
        "keep the kit; offer a new one beside it",
    )
    IDENTITY = (
        "since-identity",
        _E,
        (
            "Group, kind or plural of the XRD changed: that is another API, and the old one goes "
            "with all its orders."
        ),
        "keep them; a new API is a new kit",
    )
    NAMES = (
        "since-names",
        _E,
        "spec.names changed; Crossplane refuses any change of it, short names too.",
        "leave spec.names as it was",
    )
    SCOPE = (
        "since-scope",
        _E,
        "The XRD's scope changed, which Crossplane refuses.",
        "leave spec.scope as it was",
    )
    VERSION = (
        "since-version",
        _E,
        "A version is gone or no longer served: orders written in it are refused.",
        "keep it served; mark it deprecated",
    )
    REFERENCEABLE = (
        "since-referenceable",
        _E,
        "Another version is referenceable: Compositions cannot follow, their type is immutable.",
        "add a Composition of a new name for the new version first",
    )
    COMPOSITION = (
        "since-composition",
        _E,
        "A Composition is gone, or its compositeTypeRef changed: living XRs name it.",
        "keep it until no XR names it",
    )
    ORDER_NAME = (
        "since-order-name",
        _E,
        "Orders are named in another way: a form opened for a living order means another one.",
        "keep nameFrom and xrName",
    )
    TEAM = (
        "since-team",
        _E,
        "The team comes from another field: living orders would belong to another one.",
        "keep teamFrom",
    )
    PARAMETER = (
        "since-parameter",
        _E,
        "A field has another form parameter: saved forms and scripts name the old one.",
        "keep the alias",
    )
    FIELD_GONE = (
        "since-field-gone",
        _E,
        "A field is gone: the API server drops it from living orders, Argo CD refuses theirs.",
        "keep the field; say in its description that it has no effect any more",
    )
    TYPE = (
        "since-type",
        _E,
        "A field has another type: living orders are refused.",
        "add a field of another name",
    )
    ENUM = (
        "since-enum",
        _E,
        "A value is no longer allowed: orders that have it are refused at their next change.",
        "keep the value until no order has it",
    )
    PATTERN = (
        "since-pattern",
        _E,
        "A pattern or format is new or another one: values that were allowed may not be now.",
        "keep it, or allow more: leave the pattern out, and write a rule with oldSelf",
    )
    BOUNDS = (
        "since-bounds",
        _E,
        "Bounds became narrower: values that were allowed are not now.",
        "keep them, or write a rule that lets old values stay: self == oldSelf || ...",
    )
    REQUIRED = (
        "since-required",
        _E,
        "A field is required now and has no default: living orders lack it.",
        "give it a default",
    )
    CLOSED = (
        "since-closed",
        _E,
        "A field takes less than before: null, unknown fields or other keys are not allowed now.",
        "keep what was allowed",
    )
    LOGIC = (
        "since-logic",
        _W,
        (
            "oneOf, anyOf, allOf, not, or how a list is merged changed; whether living orders fit "
            "is not known."
        ),
        "try the orders you have with 'orderkit validate'",
    )
    CEL = (
        "since-cel",
        _W,
        "A rule is new or another one and does not look at oldSelf: it judges living orders too.",
        "let what was there stay: self == oldSelf || ...; with optionalOldSelf for new ones",
    )
    DEFAULT = (
        "since-default",
        _W,
        "A default changed: orders that leave the field out change without a commit of theirs.",
        "leave it, or say it in the release notes",
    )
    ORDER_REFUSED = (
        "since-order-refused",
        _E,
        "An order that the kit accepted is refused now.",
        "accept it still",
    )
    RESOURCE_GONE = (
        "since-resource-gone",
        _E,
        "A composed resource has another logical name or is left out: living ones are deleted.",
        "keep the logical name; it is no name that people see",
    )
    RESOURCE_KIND = (
        "since-resource-kind",
        _E,
        "A logical name stands for another kind: Crossplane forgets the living object.",
        "give the new kind a logical name of its own",
    )
    RESOURCE_NAME = (
        "since-resource-name",
        _W,
        "A composed resource is called otherwise: living ones keep their old name.",
        "keep the name, or use a new logical name and move what it holds",
    )
