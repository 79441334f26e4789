"""
The rules of ``orderkit kit check``: code, weight, what it says, what to do. One table.

Codes are stable: scripts and dashboards may use them. ``docs/kit-check.md`` is written from
this table; a rule of a finding is a member of `KitRule`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from orderkit.core.schema.validate.findings import FindingSeverity

_E, _W, _N = FindingSeverity.ERROR, FindingSeverity.WARNING, FindingSeverity.NOTE


class Coded(StrEnum):
    """A table of rules: the code is the value."""

    severity: FindingSeverity
    says: str
    advice: str

    def __new__(cls, code: str, severity: FindingSeverity, says: str, advice: str) -> Self:
        member = str.__new__(cls, code)
        member._value_ = code
        member.severity, member.says, member.advice = severity, says, advice
        return member


class KitRule(Coded):
    """Rules about a kit as it is."""

    # files
    UNREADABLE = (
        "unreadable",
        _E,
        "A file of the kit cannot be read as YAML of Kubernetes objects.",
        "fix the file",
    )
    YAML_STYLE = (
        "yaml-style",
        _E,
        "yamllint finds an error in a YAML file of the kit.",
        "fix it, or change the rule in the pack's .yamllint",
    )
    YAML_STYLE_WARNING = (
        "yaml-style-warning",
        _W,
        "yamllint finds something doubtful in a YAML file of the kit.",
        "fix it, or change the rule in the pack's .yamllint",
    )
    DRIFT = (
        "drift",
        _E,
        "A generated file differs from what its sources give.",
        "run 'orderkit kit generate' and commit the result",
    )
    HAND_WRITTEN = (
        "hand-written",
        _N,
        "A file that could be generated was written by hand; its form is checked as it is.",
        "move its content into kit.yaml, delete it and run 'orderkit kit generate'",
    )

    # kit.yaml and the form
    KIT_SCHEMA = (
        "kit-schema",
        _E,
        "kit.yaml does not fit its schema.",
        "see docs/schemas/kit.schema.json",
    )
    KIT_FIELD = (
        "kit-field",
        _E,
        "kit.yaml names a field that the XRD lacks.",
        "name a property below spec, dotted",
    )
    KIT_CONSISTENCY = (
        "kit-consistency",
        _E,
        "Something in kit.yaml cannot work with this XRD.",
        "see what the message names",
    )
    CHANGE_FIELDS = (
        "change-fields",
        _E,
        "A change names no field that a form could show.",
        "name fields of the XRD that are not hidden",
    )
    CHANGE_NAMES = (
        "change-names",
        _E,
        "A change may touch a field that names the order or its team.",
        "orders cannot be renamed: take the field out, or order anew",
    )
    CHANGE_DIRECTION = (
        "change-direction",
        _E,
        "A change has a direction that its field does not support.",
        "grow and step need numbers or enums (grow: lists too)",
    )
    CHANGE_CONFLICT = (
        "change-conflict",
        _E,
        "A field that never changes is in another change too.",
        "take it out of one of them",
    )
    FORM_FIELD_UNKNOWN = (
        "form-field-unknown",
        _E,
        "The form asks for something that the XRD lacks: the answer is ignored.",
        "add the field to the XRD, or take it out of the form",
    )
    FORM_FIELD_MISSING = (
        "form-field-missing",
        _E,
        "The form never asks for a field that the XRD requires.",
        "add it to the form, hide it with a platform's value, or give it a default",
    )
    MANY_FIELDS = (
        "many-fields",
        _W,
        "The form shows more than five fields.",
        "give defaults, or hide what the platform knows",
    )
    EXAMPLE = (
        "example",
        _E,
        "An example of the kit gives an XR that the XRD refuses.",
        "give values that the form would accept",
    )
    NO_EXAMPLE = (
        "no-example",
        _W,
        "kit.yaml has no example, and no order could be made up to try the pipeline.",
        "add spec.examples to kit.yaml",
    )

    # the XRD
    XRD_REFUSED = (
        "xrd-refused",
        _E,
        "The API server would refuse the XRD's CRD; Crossplane says so in an event only.",
        "fix the schema",
    )
    XRD_RULE = (
        "xrd-rule",
        _E,
        "A CEL rule of the XRD does not compile.",
        "fix the rule",
    )
    XRD_FORM = (
        "xrd-form",
        _E,
        "The XRD has something that a form cannot ask for, or reads differently.",
        "see what the message names",
    )
    XRD_CUT = (
        "xrd-cut",
        _E,
        "Crossplane drops this part of the schema without a word.",
        "write it where Crossplane keeps it",
    )
    XRD_SCOPE = (
        "xrd-scope",
        _W,
        "The XRD does not write its scope; tools that read the file take it for a legacy one.",
        "write spec.scope: Namespaced or Cluster",
    )
    XRD_LEGACY = (
        "xrd-legacy",
        _W,
        "The XRD is written for Crossplane 1: claims, connection secrets or apiVersion v1.",
        "write apiVersion: apiextensions.crossplane.io/v2 with scope Namespaced or Cluster",
    )
    XRD_UNMEANT = (
        "xrd-unmeant",
        _W,
        (
            "The XRD says something that is accepted and hardly meant: a default that never "
            "applies, an object that keeps nothing, a column of a field that is not there."
        ),
        "see what the message names",
    )
    XRD_REMARK = (
        "xrd-remark",
        _N,
        "Something in the XRD reaches no cluster, or is left to a default.",
        "see what the message names",
    )
    XRD_PRUNABLE = (
        "xrd-prunable",
        _W,
        "Argo CD may delete the XRD or the Composition, and with an XRD all its orders.",
        "annotate it with argocd.argoproj.io/sync-options: Prune=false,Delete=false",
    )
    NAME_LENGTH = (
        "name-length",
        _E,
        "An order's name can become longer than 63 characters.",
        "bound the fields that name it with maxLength or a bounded pattern",
    )

    # the Composition
    COMPOSITION_MISSING = (
        "composition-missing",
        _E,
        "No Composition for the XRD.",
        "add gitops/apis/<kit>/composition.yaml",
    )
    COMPOSITION_TYPE = (
        "composition-type",
        _E,
        "The Composition's compositeTypeRef is not the XRD's referenceable version.",
        "write the XRD's kind, and group and name of its referenceable version",
    )
    COMPOSITION_CHOICE = (
        "composition-choice",
        _E,
        "The XRD does not say which Composition an order gets, or names one that is not there.",
        "set spec.defaultCompositionRef to a Composition of this kit",
    )
    COMPOSITION_MODE = (
        "composition-mode",
        _E,
        "The Composition has no pipeline; other modes and fields were removed.",
        "write mode: Pipeline and spec.pipeline",
    )
    COMPOSITION_STEPS = (
        "composition-steps",
        _E,
        "Step names are missing or repeated, or there are no steps, or more than 99.",
        "give every step its own name",
    )
    FUNCTION_UNDECLARED = (
        "function-undeclared",
        _E,
        "A step names a function that the pack does not deliver. Crossplane does not check it.",
        "declare the Function in gitops/functions",
    )
    FUNCTION_PACKAGE = (
        "function-package",
        _E,
        "A function's package has no registry host, or neither tag nor digest.",
        "write <registry>/<name>:<version>",
    )
    FUNCTION_MOVING = (
        "function-moving",
        _W,
        "A function's package has a tag that moves.",
        "pin a version or a digest",
    )
    FOREIGN_STEP = (
        "foreign-step",
        _N,
        (
            "A step's function runs in a cluster only: embedded platforms refuse it, plans pass it "
            "by and claim nothing of it, and the pipeline is not tried here."
        ),
        "write a station, or give plans the function's process (docs/plans.md)",
    )
    STATION_INPUT = (
        "station-input",
        _E,
        "A step of function-orderkit names no station in its input.",
        "write input: {apiVersion: stations.orderkit.dev/v1alpha1, kind: Station, name: ...}",
    )
    STATION_MISSING = (
        "station-missing",
        _E,
        "A step names a station that the pack lacks.",
        "add stations/<name>/station.py",
    )
    STATION_BROKEN = (
        "station-broken",
        _E,
        "A station cannot be imported.",
        "fix stations/<name>/station.py",
    )
    STATION_IMPORTS = (
        "station-imports",
        _W,
        "A station imports a module for I/O, time or chance: its answers may differ each time.",
        "take facts from required resources; derive values from the XR",
    )
    STATION_DELETION = (
        "station-deletion",
        _W,
        "A station looks at deletionTimestamp; functions never run for an XR being deleted.",
        "take the branch out",
    )
    AUTO_READY_LAST = (
        "auto-ready-last",
        _E,
        "function-auto-ready is not the last step: nobody judges what comes after it.",
        "end the pipeline with a step of function-auto-ready",
    )

    # what the pipeline does
    PIPELINE_FAILS = (
        "pipeline-fails",
        _E,
        "The pipeline fails for an order that the XRD accepts.",
        "fix the station, or refuse such orders in the XRD",
    )
    NEEDS_FACTS = (
        "needs-facts",
        _W,
        (
            "The pipeline refuses an order because something it requires is not delivered by "
            "the pack; it was not tried further."
        ),
        "deliver the object in gitops/config, or let the station go on without it",
    )
    NEVER_SETTLES = (
        "never-settles",
        _E,
        "The pipeline never comes to rest: the XR is reconciled until its circuit breaker opens.",
        "no counter, time or random value in status; never want what was just seen to be gone",
    )
    NOT_DETERMINISTIC = (
        "not-deterministic",
        _E,
        "The same order gives another result when the pipeline runs again.",
        "sort what comes from sets; no clock, no random value, no global state",
    )
    NEVER_READY = (
        "never-ready",
        _E,
        "The XR never gets Ready although everything it composes is as it should be.",
        "call response.set_ready for kinds that function-auto-ready never judges",
    )
    COMPOSES_NOTHING = (
        "composes-nothing",
        _W,
        "The pipeline composes nothing for an example; Crossplane calls that Ready.",
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
        "take it out of spec.composes, or add an example that composes it",
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
        "take it out of spec.requires, or add an example that requires it",
    )
    RIGHTS = (
        "rights",
        _E,
        "Crossplane has no right to compose or read a kind: every round fails as forbidden.",
        "grant it in a ClusterRole labelled rbac.crossplane.io/aggregate-to-crossplane",
    )
    RIGHTS_ESCALATION = (
        "rights-escalation",
        _W,
        (
            "Roles and bindings can be composed only with the verbs bind or escalate, or with the "
            "granted rights themselves."
        ),
        "add bind and escalate to the rule, if you mean it",
    )
    GATE_NAMESPACE = (
        "gate-namespace",
        _E,
        (
            "Something is wanted inside a Namespace before that Namespace is observed: Crossplane "
            "gives up whole rounds, for seconds to minutes."
        ),
        "want the Namespace alone until request.observed_resource(...) has it",
    )
    GATE_DEFINITION = (
        "gate-definition",
        _E,
        "An object is wanted before its CRD is observed: Crossplane gives up the whole round.",
        "want the CRD alone until request.observed_resource(...) has it",
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
        "make the XRD's scope Cluster, or wrap the object",
    )
    EARLY_RETURN = (
        "early-return",
        _E,
        (
            "The pipeline leaves out resources when a fact or a field is missing: that deletes "
            "them, and the XR says Ready."
        ),
        "refuse with response.fatal, or render from the last known facts in observed status",
    )
    DROPS_WHEN_UNREADY = (
        "drops-when-unready",
        _E,
        "A resource is left out as soon as another one is not ready: a hiccup deletes it.",
        "once a resource is observed, want it always",
    )
    DROPS_EARLIER_STEPS = (
        "drops-earlier-steps",
        _E,
        "A step leaves out what the steps before it wanted: that deletes it.",
        "begin with StationResponse.to(request)",
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
        "A composed resource is given a status, which has no effect.",
        "leave it out",
    )
    COMPOSED_NAME = (
        "composed-name",
        _E,
        "A composed Namespace or Service has a name longer than 63 characters.",
        "cut it, or leave the name to Crossplane",
    )
    SYSTEM_CONDITION = (
        "system-condition",
        _W,
        "A station sets a condition that belongs to Crossplane; it is ignored.",
        "give the condition a type of its own, or set readiness of resources",
    )
    CONDITION_VANISHES = (
        "condition-vanishes",
        _W,
        "A station stops returning one of its conditions, which then stays for ever.",
        "return every condition in every call",
    )
    FACT_SOURCE = (
        "fact-source",
        _W,
        (
            "A station reads a kind that is neither an EnvironmentConfig nor an XR of the pack: it "
            "needs rights, and Crossplane up to 2.3 sees its changes only at the next tick."
        ),
        "keep facts of the platform in an EnvironmentConfig",
    )
    ENVIRONMENT_VERSION = (
        "environment-version",
        _E,
        "EnvironmentConfig is served as v1beta1 alone.",
        "write apiextensions.crossplane.io/v1beta1",
    )
