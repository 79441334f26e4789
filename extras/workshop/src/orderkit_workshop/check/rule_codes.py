"""
The rules of ``orderkit kit check`` in one table: code, severity, meaning, advice.

Codes are stable: scripts and dashboards may use them. ``docs/kit-check.md`` is generated from this
table; the rule of a finding is a member of `KitRule`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from kubeschema.validate.findings import FindingSeverity

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
        "A file of the kit is not readable as YAML with Kubernetes objects.",
        "correct the file",
    )
    YAML_STYLE = (
        "yaml-style",
        _E,
        "yamllint reports an error in a YAML file of the kit.",
        "correct it, or change the rule in the pack's .yamllint",
    )
    YAML_STYLE_WARNING = (
        "yaml-style-warning",
        _W,
        "yamllint reports a warning for a YAML file of the kit.",
        "correct it, or change the rule in the pack's .yamllint",
    )
    DRIFT = (
        "drift",
        _E,
        "A generated file differs from what its sources generate.",
        "run 'orderkit kit generate' and commit the result",
    )
    HAND_WRITTEN = (
        "hand-written",
        _N,
        "A file that could be generated was written by hand; it is checked as it is.",
        "move its content into kit.yaml, delete it and run 'orderkit kit generate'",
    )

    SCHEMA_CHANGED = (
        "schema-changed",
        _W,
        "A file that 'orderkit kit schemas add' wrote was edited, or is missing.",
        "delete it and copy it again; to keep it, take it out of schemas/sources.yaml",
    )
    SCHEMA_VERSION = (
        "schema-version",
        _W,
        "The schemas of a provider are of another version than the one that pack.yaml pins.",
        "run 'orderkit kit schemas add' with the pinned version",
    )
    SCHEMA_SOURCES = (
        "schema-sources",
        _E,
        "schemas/sources.yaml cannot be read.",
        "restore it from Git; 'orderkit kit schemas add' writes it",
    )

    # kit.yaml and the form
    KIT_SCHEMA = (
        "kit-schema",
        _E,
        "kit.yaml does not match its schema.",
        "'orderkit schema kit' prints the schema",
    )
    KIT_FIELD = (
        "kit-field",
        _E,
        "kit.yaml names a field that the XRD does not have.",
        "name a property below spec, with dots between the levels",
    )
    KIT_CONSISTENCY = (
        "kit-consistency",
        _E,
        "An entry of kit.yaml cannot work with this XRD.",
        "correct what the message names",
    )
    CHANGE_FIELDS = (
        "change-fields",
        _E,
        "A change names no field that a form can show.",
        "name fields of the XRD that are not hidden",
    )
    CHANGE_NAMES = (
        "change-names",
        _E,
        "A change may touch a field that names the order or its team.",
        "orders cannot be renamed: remove the field from the change, or place a new order",
    )
    CHANGE_DIRECTION = (
        "change-direction",
        _E,
        "A change has a direction that its field does not support.",
        "grow and step need numbers or enums; grow also works for lists",
    )
    CHANGE_CONFLICT = (
        "change-conflict",
        _E,
        "A field that never changes is also part of another change.",
        "remove it from one of them",
    )
    IMPORT_AGREEMENT = (
        "import-agreement",
        _W,
        "A team alone can take over what exists in the cloud, and it may be somebody else's.",
        "add a rule of approval with by: [platform] for when the name is set (docs/importing.md)",
    )
    FORM_FIELD_UNKNOWN = (
        "form-field-unknown",
        _E,
        "The form asks for a field that the XRD does not have: the answer is ignored.",
        "add the field to the XRD, or remove it from the form",
    )
    FORM_FIELD_MISSING = (
        "form-field-missing",
        _E,
        "The form never asks for a field that the XRD requires.",
        "add it to the form, hide it with a value of the platform, or give it a default",
    )
    FIELD_UNREACHABLE = (
        "field-unreachable",
        _W,
        "Neither the form nor a change offers a field: no order can ever set it.",
        "add it to a change, ask for it in the form, or hide it with a value of the platform",
    )
    MANY_FIELDS = (
        "many-fields",
        _W,
        "The form shows more than five fields.",
        "set defaults, or hide fields that the platform knows",
    )
    SECRET_FIELD = (
        "secret-field",
        _E,
        "An order needs a secret in plain text; orders are files in Git.",
        "take a reference to a Secret, or write secret: false below fields in kit.yaml",
    )
    SECRET_WITHHELD = (
        "secret-withheld",
        _W,
        "A field looks like a secret, so no form asks for it and no change sets it.",
        "take a reference to a Secret, or write secret: false below fields in kit.yaml",
    )
    PUBLIC_KEY = (
        "public-key",
        _W,
        "kit.yaml declares a key of Secrets public, and its name or a value looks like a secret.",
        "remove it from secrets.public, or give what is public a key of its own",
    )
    EXAMPLE = (
        "example",
        _E,
        "An example of the kit produces an XR that the XRD refuses.",
        "use values that the form accepts",
    )
    NO_EXAMPLE = (
        "no-example",
        _W,
        "kit.yaml has no example, and no valid order could be generated to test the pipeline.",
        "add spec.examples to kit.yaml",
    )

    # the XRD
    XRD_REFUSED = (
        "xrd-refused",
        _E,
        "The API server would refuse the XRD's CRD; Crossplane reports that only in an event.",
        "correct the schema",
    )
    KIND_TWICE = (
        "kind-twice",
        _E,
        "Another kit of the pack defines the same kind; the cluster holds one definition of it.",
        "give the XRD another kind or group, or remove one of the kits",
    )
    XRD_RULE = (
        "xrd-rule",
        _E,
        "A CEL rule of the XRD does not compile.",
        "correct the rule",
    )
    XRD_FORM = (
        "xrd-form",
        _E,
        "The XRD has a construct that a form cannot ask for, or interprets differently.",
        "correct what the message names",
    )
    XRD_CUT = (
        "xrd-cut",
        _E,
        "Crossplane silently drops this part of the schema.",
        "move it to where Crossplane keeps it",
    )
    XRD_SCOPE = (
        "xrd-scope",
        _W,
        "The XRD does not set its scope; tools that read the file take it for a legacy XRD.",
        "set spec.scope to Namespaced or Cluster",
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
            "The XRD has a valid construct that is probably a mistake: a default that never "
            "applies, an object that keeps nothing, a column of a field that does not exist."
        ),
        "correct what the message names",
    )
    PRINTER_COLUMN = (
        "printer-column",
        _N,
        "kit.yaml declares a value worth seeing, and 'kubectl get' has no column for it.",
        "add the column that the message shows to the XRD; Orderkit does not write in it",
    )
    XRD_REMARK = (
        "xrd-remark",
        _N,
        "A part of the XRD reaches no cluster, or relies on a default.",
        "correct what the message names",
    )
    XRD_PRUNABLE = (
        "xrd-prunable",
        _W,
        "Argo CD may delete the XRD or the Composition; deleting an XRD deletes all its orders.",
        "annotate it with argocd.argoproj.io/sync-options: Prune=false,Delete=false",
    )
    PATTERN_BACKTRACKS = (
        "pattern-backtracks",
        _E,
        "JavaScript backtracks on a form's pattern: a short value hangs browser and portal.",
        "let each character be read in one way only: ^[a-z0-9]+(-[a-z0-9]+)*$ for ^([a-z0-9]+-?)+$",
    )
    NAME_LENGTH = (
        "name-length",
        _E,
        "An order's name can become longer than 63 characters.",
        "limit the naming fields with maxLength or a bounded pattern",
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
        "The Composition's compositeTypeRef does not name the XRD's referenceable version.",
        "use the XRD's kind, group and referenceable version",
    )
    COMPOSITION_CHOICE = (
        "composition-choice",
        _E,
        "The XRD does not say which Composition orders get, or names one that does not exist.",
        "set spec.enforcedCompositionRef to a Composition of this kit",
    )
    COMPOSITION_OPEN = (
        "composition-open",
        _W,
        "The XRD does not enforce a Composition: whoever may push may name another one.",
        "set spec.enforcedCompositionRef to the Composition that orders get",
    )
    COMPOSITION_MODE = (
        "composition-mode",
        _E,
        "The Composition has no pipeline; Crossplane removed other modes and fields.",
        "write mode: Pipeline and spec.pipeline",
    )
    COMPOSITION_STEPS = (
        "composition-steps",
        _E,
        (
            "Step names are missing or repeated, there are no steps or more than 99, or an input "
            "has no apiVersion or kind."
        ),
        "give every step a unique name",
    )
    FUNCTION_UNDECLARED = (
        "function-undeclared",
        _E,
        "A step names a function that the pack does not deliver. Crossplane does not check this.",
        "declare the Function in gitops/functions",
    )
    FUNCTION_PACKAGE = (
        "function-package",
        _E,
        "A function's package lacks a registry host, or both tag and digest.",
        "write <registry>/<name>:<version>",
    )
    FUNCTION_TAG = (
        "function-tag",
        _N,
        "A function's package is pinned by its tag only: the registry may replace it.",
        "'orderkit kit digests --registry HOST' writes v1.2.3@sha256:... into pack.yaml",
    )
    FUNCTION_MOVING = (
        "function-moving",
        _W,
        "A function's package has a moving tag.",
        "pin a version or a digest",
    )
    FOREIGN_STEP = (
        "foreign-step",
        _N,
        (
            "A step's function runs only in a cluster: on the embedded platform the kit's orders "
            "fail, elsewhere plans skip the step, and this check does not run the pipeline."
        ),
        "bring its program: orderkit functions add FUNCTION (docs/functions.md)",
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
        "A step names a station that the pack does not have.",
        "add stations/<name>/station.py",
    )
    STATION_BROKEN = (
        "station-broken",
        _E,
        "A station cannot be imported.",
        "correct stations/<name>/station.py",
    )
    STATION_IMPORTS = (
        "station-imports",
        _W,
        "A station imports a module for I/O or randomness, or reads the clock: answers may vary.",
        "read facts from required resources, and derive values from the XR",
    )
    STATION_DELETION = (
        "station-deletion",
        _W,
        "A station reads deletionTimestamp; functions never run for an XR being deleted.",
        "remove the branch",
    )
    AUTO_READY_LAST = (
        "auto-ready-last",
        _E,
        "Nobody judges the readiness of what a step composes: no function-auto-ready follows it.",
        "end the pipeline with a step of function-auto-ready",
    )
    PRICES = (
        "prices",
        _E,
        "gitops/prices.yaml is not a price table: no order of the platform has a cost.",
        "write it as docs/cost.md shows",
    )
    AUTO_READY_UNKNOWN = (
        "auto-ready-unknown",
        _N,
        (
            "Whether a function judges the readiness of what it composes is not known here, and no "
            "function-auto-ready follows it."
        ),
        "if it does not, end the pipeline with a step of function-auto-ready",
    )
