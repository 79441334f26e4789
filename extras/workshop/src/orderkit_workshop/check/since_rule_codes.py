"""
The rules of ``orderkit kit check --since``: how a change of a kit affects live orders.

One table, like ``rules``; the codes are stable.
"""

from __future__ import annotations

from kubeschema.validate.findings import FindingSeverity
from orderkit_workshop.check.rule_codes import Coded

_E, _W = FindingSeverity.ERROR, FindingSeverity.WARNING


class SinceRule(Coded):
    """Rules about a kit compared with the one that orders were placed with."""

    KIT = (
        "since-kit",
        _E,
        "A kit was removed or renamed: its orders can no longer be changed or ended.",
        "keep the kit, and offer a new one beside it",
    )
    IDENTITY = (
        "since-identity",
        _E,
        (
            "Group, kind or plural of the XRD changed: that is another API, and the old one is "
            "deleted with all its orders."
        ),
        "keep them; make a new kit for a new API",
    )
    NAMES = (
        "since-names",
        _E,
        "spec.names changed; Crossplane refuses any change of it, including short names.",
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
        "A version was removed or is no longer served: orders that use it are refused.",
        "keep serving it, and mark it deprecated",
    )
    REFERENCEABLE = (
        "since-referenceable",
        _E,
        "Another version is referenceable: Compositions cannot follow, as their type is immutable.",
        "first add a Composition with a new name for the new version",
    )
    COMPOSITION = (
        "since-composition",
        _E,
        "A Composition was removed, or its compositeTypeRef changed: live XRs refer to it.",
        "keep it until no XR refers to it",
    )
    ORDER_NAME = (
        "since-order-name",
        _E,
        "Orders are named differently: the form of a live order now names another order.",
        "keep nameFrom and xrName",
    )
    TEAM = (
        "since-team",
        _E,
        "The team comes from another field: live orders would move to another team.",
        "keep teamFrom",
    )
    PARAMETER = (
        "since-parameter",
        _E,
        "A field has another form parameter: saved forms and scripts use the old one.",
        "keep the alias",
    )
    FIELD_GONE = (
        "since-field-gone",
        _E,
        "A field was removed: the API server drops it from live orders, and Argo CD fails on it.",
        "keep the field, and document that it has no effect",
    )
    TYPE = (
        "since-type",
        _E,
        "A field has another type: live orders are refused.",
        "add a field with another name",
    )
    ENUM = (
        "since-enum",
        _E,
        "A value is no longer allowed: orders with that value are refused at their next change.",
        "keep the value until no order uses it",
    )
    PATTERN = (
        "since-pattern",
        _E,
        "A pattern or format is new or changed: values that were allowed may be refused.",
        "keep it, or allow more: replace the pattern by a rule with oldSelf",
    )
    BOUNDS = (
        "since-bounds",
        _E,
        "A bound became narrower: values that were allowed are refused.",
        "keep it, or write a rule that accepts old values: self == oldSelf || ...",
    )
    REQUIRED = (
        "since-required",
        _E,
        "A field is now required without a default: live orders lack it.",
        "give it a default",
    )
    CLOSED = (
        "since-closed",
        _E,
        "A field accepts less than before: null, unknown fields or other keys are refused.",
        "keep accepting them",
    )
    LOGIC = (
        "since-logic",
        _W,
        (
            "oneOf, anyOf, allOf, not, or the merging of a list changed; whether live orders are "
            "still valid is unknown."
        ),
        "check existing orders with 'orderkit validate'",
    )
    CEL = (
        "since-cel",
        _W,
        "A rule is new or changed and does not use oldSelf: it also applies to live orders.",
        "accept old values: self == oldSelf || ...; with optionalOldSelf for new orders",
    )
    DEFAULT = (
        "since-default",
        _W,
        "A default changed: orders that omit the field change without a commit.",
        "keep it, or announce it in the release notes",
    )
    ORDER_REFUSED = (
        "since-order-refused",
        _E,
        "An order that the kit accepted is now refused.",
        "keep accepting it",
    )
    RESOURCE_GONE = (
        "since-resource-gone",
        _E,
        "A composed resource was renamed or removed: the live object is deleted.",
        "keep the logical name; users do not see it",
    )
    RESOURCE_KIND = (
        "since-resource-kind",
        _E,
        "A logical name has another kind: Crossplane no longer tracks the live object.",
        "give the new kind its own logical name",
    )
    RESOURCE_NAME = (
        "since-resource-name",
        _W,
        "A composed resource has another name: the live object keeps its old name.",
        "keep the name, or use a new logical name and move the data",
    )
