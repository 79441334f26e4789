"""
The rules about what a kit does when it runs or changes, and all rules as a table.

`PipelineRule` has the rules of ``orderkit kit check`` about runs of a pipeline, `SinceRule` those
of ``--since``: how a change of a kit affects live orders. Tables like ``rule_codes``; the codes are
stable.

All rules are one table for people and for SARIF: ``scripts/kit_check_docs.py`` writes
``docs/kit-check.md`` from it; ``make check`` fails if it is stale.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubeschema.validate.findings import FindingSeverity
from orderkit_workshop.check.rule_codes import Coded, KitRule

_E, _W, _N = FindingSeverity.ERROR, FindingSeverity.WARNING, FindingSeverity.NOTE


class PipelineRule(Coded):
    """Rules about what stations and other functions return."""

    PIPELINE_FAILS = (
        "pipeline-fails",
        _E,
        "The pipeline fails for an order that the XRD accepts.",
        "correct the station or the step's input, or refuse such orders in the XRD",
    )
    NEEDS_FACTS = (
        "needs-facts",
        _W,
        (
            "The pipeline refuses an order because the pack does not deliver an object it "
            "requires; the check stopped there."
        ),
        "deliver the object in gitops/config, or let the station continue without it",
    )
    NEVER_SETTLES = (
        "never-settles",
        _E,
        "The pipeline never settles: Crossplane reconciles the XR until its circuit breaker opens.",
        "write no counter, time or random value into the status; do not compose resources in turns",
    )
    NOT_DETERMINISTIC = (
        "not-deterministic",
        _E,
        "A second run of the pipeline gives another result for the same order.",
        "sort values that come from sets; use no clock, random value or global state",
    )
    NEVER_READY = (
        "never-ready",
        _E,
        "The XR never becomes Ready although all composed resources are healthy.",
        "call response.set_ready for kinds that function-auto-ready does not judge",
    )
    NEEDS_STATUS = (
        "needs-status",
        _W,
        (
            "The XR is not Ready in this check, because the pipeline reads what providers write "
            "into the status of composed resources."
        ),
        "give these values to a scenario that ends Ready: statuses (tests/kits/README.md)",
    )
    COMPOSES_NOTHING = (
        "composes-nothing",
        _W,
        (
            "The pipeline composes nothing for an example, or for an order whose map of parts is "
            "empty; Crossplane calls that Ready."
        ),
        "compose something, or refuse with response.fatal",
    )
    COMPOSES_UNDECLARED = (
        "composes-undeclared",
        _E,
        "The pipeline composes a kind that kit.yaml does not name.",
        "add it to spec.composes",
    )
    COMPOSES_UNUSED = (
        "composes-unused",
        _W,
        "kit.yaml names a composed kind that no example composes.",
        "remove it from spec.composes, or add an example that composes it",
    )
    REQUIRES_UNDECLARED = (
        "requires-undeclared",
        _E,
        "The pipeline requires a kind that kit.yaml does not name.",
        "add it to spec.requires",
    )
    REQUIRES_UNUSED = (
        "requires-unused",
        _W,
        "kit.yaml names a required kind that no example requires.",
        "remove it from spec.requires, or add an example that requires it",
    )
    RIGHTS = (
        "rights",
        _E,
        "Crossplane has no right to compose or read a kind: every reconcile fails as forbidden.",
        "grant it in a ClusterRole labelled rbac.crossplane.io/aggregate-to-crossplane",
    )
    RIGHTS_ANY_ROLE = (
        "rights-any-role",
        _W,
        "Crossplane may bind any role for the kit, cluster-admin among them.",
        "name the roles: binds: [...] at the binding in spec.composes",
    )
    RIGHTS_ESCALATION = (
        "rights-escalation",
        _W,
        (
            "Composing roles and bindings needs the verbs bind or escalate, or the granted rights "
            "themselves."
        ),
        "add bind and escalate to the rule if that is intended",
    )
    COMPOSED_SCHEMA = (
        "composed-schema",
        _E,
        "A composed object does not fit the schema of its kind: the API server refuses it.",
        "correct the field; 'orderkit plan' shows the same fault",
    )
    NO_SCHEMA = (
        "no-schema",
        _N,
        "The pack has no schema of a kind that it composes: a misspelled field is not noticed.",
        "orderkit kit schemas add PROVIDER@VERSION copies the kind's CRD into schemas/",
    )
    NOT_EMBEDDED = (
        "not-embedded",
        _N,
        "The embedded cluster does not serve a kind of Kubernetes that the kit composes.",
        "try the kit on a cluster; on the embedded platform its orders fail",
    )
    PROVIDER_CONFIG = (
        "provider-config",
        _W,
        "A composed resource names a ProviderConfig that neither the pack nor the order makes.",
        "deliver it in gitops/config, or make it on every cluster of the platform",
    )
    IMPORT_POLICY = (
        "import-policy",
        _E,
        "What an order takes over is not first observed and then managed, under its external name.",
        "compose it with policies=OBSERVE and its external name until the field 'manage' is true",
    )
    GATE_NAMESPACE = (
        "gate-namespace",
        _E,
        (
            "A resource is composed inside a Namespace before that Namespace is observed: "
            "Crossplane aborts whole reconciles, for seconds to minutes."
        ),
        "compose only the Namespace until request.observed_resource(...) returns it",
    )
    GATE_DEFINITION = (
        "gate-definition",
        _E,
        "An object is composed before its CRD is observed: Crossplane aborts the reconcile.",
        "compose only the CRD until request.observed_resource(...) returns it",
    )
    NO_NAMESPACE = (
        "no-namespace",
        _E,
        "A cluster-scoped XR composes a namespaced kind without a namespace.",
        "set metadata.namespace",
    )
    CLUSTER_SCOPED = (
        "cluster-scoped",
        _E,
        "A namespaced XR composes a cluster-scoped kind, which Crossplane refuses.",
        "change the XRD's scope to Cluster, or wrap the object",
    )
    EARLY_RETURN = (
        "early-return",
        _E,
        (
            "The pipeline omits resources when a fact or a field is missing: that deletes them, "
            "and the XR reports Ready."
        ),
        "refuse with response.fatal, or use the last known facts from the observed status",
    )
    DROPS_WHEN_UNREADY = (
        "drops-when-unready",
        _E,
        "A resource is omitted while another one is not ready: a short outage deletes it.",
        "once a resource is observed, always compose it",
    )
    DROPS_EARLIER_STEPS = (
        "drops-earlier-steps",
        _E,
        "A step omits resources that earlier steps composed: that deletes them.",
        "start from StationResponse.to(request)",
    )
    STATUS_FIELD = (
        "status-field",
        _E,
        "The pipeline writes a status that the XRD does not allow.",
        "declare the field below status in the XRD",
    )
    COMPOSED_STATUS = (
        "composed-status",
        _W,
        "A composed resource has a status, which has no effect.",
        "remove it",
    )
    COMPOSED_NAME = (
        "composed-name",
        _E,
        "A composed Namespace or Service has a name longer than 63 characters.",
        "truncate it, or let Crossplane choose the name",
    )
    SYSTEM_CONDITION = (
        "system-condition",
        _W,
        "A station sets a condition that Crossplane owns; it is ignored.",
        "use another condition type, or set the readiness of resources",
    )
    CONDITION_VANISHES = (
        "condition-vanishes",
        _W,
        "A station stops returning one of its conditions, which then stays forever.",
        "return every condition in every call",
    )
    FACT_SOURCE = (
        "fact-source",
        _W,
        (
            "A station reads a kind that is neither an EnvironmentConfig nor an XR of the pack: "
            "that needs rights, and Crossplane up to 2.3 notices changes only at the next poll."
        ),
        "keep platform facts in an EnvironmentConfig",
    )
    ENVIRONMENT_VERSION = (
        "environment-version",
        _E,
        "EnvironmentConfig is served only as v1beta1.",
        "use apiextensions.crossplane.io/v1beta1",
    )
    LAYERS = (
        "layers",
        _E,
        (
            "The layers of settings do not fit: a wrong declaration, an order for which a layer "
            "has no EnvironmentConfig or several, or values that break the schema."
        ),
        "give every layer exactly one EnvironmentConfig for every order",
    )
    SETTING_MISSING = (
        "setting-missing",
        _E,
        "A station reads a setting that no layer gives, or as another type than it has.",
        "add it to the baseline, and to the schema's required",
    )


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


def descriptions() -> dict[str, str]:
    """Return what each rule says, by code."""
    return {str(rule): rule.says for rule in rules()}


def rules() -> tuple[Coded, ...]:
    """Return every rule, in the order of the table."""
    return (*KitRule, *PipelineRule, *SinceRule)


def markdown(table: Iterable[Coded]) -> str:
    """Return rules as a Markdown table."""
    rows = [
        f"| `{rule}` | {rule.severity} | {_cell(rule.says)} | {_cell(rule.advice)} |"
        for rule in table
    ]
    return "\n".join(["| Code | Weight | What it says | What to do |", "|---|---|---|---|", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace(">", "&gt;")
