"""Bad XRDs are told with line, reason and advice."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest
from corpuspack import definition, definition_path, kit_names

from kubeschema.field_paths import steps_of
from kubeschema.validate import Finding, FindingSeverity, Reason
from kubeschema.validate.findings import Located
from kubeschema.validate.xrd_check import definition_findings, judge_definition, path_of

NAME = PurePosixPath("definition.yaml")
HEAD = """\
apiVersion: apiextensions.crossplane.io/{api}
kind: CompositeResourceDefinition
metadata: {{name: apps.lab.example.org}}
spec:
  scope: {scope}
  group: lab.example.org
  names: {{kind: App, plural: apps}}
  {extra}
  versions:
    {again}
    - name: v1
      served: true
      referenceable: true
      {version}
      schema:
        openAPIV3Schema:
          type: object
          {top}
          properties:
            spec:
              type: object
              {spec}
              properties:
                team: {{type: string}}
"""
FIELD_LINE, SPEC_LINE, VERSION_LINE, EXTRA_LINE = 25, 22, 14, 8


def judged(
    field: str = "",
    *,
    again: str = "",
    api: str = "v2",
    scope: str = "Cluster",
    extra: str = "",
    version: str = "",
    top: str = "",
    spec: str = "",
) -> tuple[Located, ...]:
    parts = {"again": again, "extra": extra, "version": version, "top": top, "spec": spec}
    head = HEAD.format(api=api, scope=scope, **parts)
    lines = [f"                {line}" for line in field.splitlines()]
    return judge_definition(NAME, (head + "\n".join(lines)).encode())


@dataclass(frozen=True)
class Case:
    reason: str
    told: tuple[Located, ...]
    line: int
    code: Reason
    message: str
    hint: str
    severity: FindingSeverity = FindingSeverity.ERROR


CASES = [
    Case(
        "a rule that Crossplane cuts",
        judged(spec="minProperties: 1"),
        SPEC_LINE,
        Reason.CUT,
        "Crossplane drops minProperties of spec",
        "has(self.a) || has(self.b)",
    ),
    Case(
        "a keyword that Kubernetes lacks",
        judged("a: {type: string, const: x}"),
        FIELD_LINE,
        Reason.CUT,
        "Crossplane drops const: Kubernetes' schemas have no such keyword",
        "write enum with one value",
    ),
    Case(
        "a hint for another tool",
        judged("a: {type: string, x-ui-widget: textarea}"),
        FIELD_LINE,
        Reason.CUT,
        "Crossplane drops x-ui-widget",
        "tools that read the XRD do",
        FindingSeverity.NOTE,
    ),
    Case(
        "a default of spec itself",
        judged(spec="default: {team: a}"),
        SPEC_LINE,
        Reason.CUT,
        "Crossplane drops default of spec",
        "write the defaults at the fields inside",
    ),
    Case(
        "a default without parent",
        judged(
            "a:\n  type: object\n  properties:\n    b:\n      type: object\n"
            "      properties: {c: {type: integer, default: 1}}\n  default: {}"
        ),
        FIELD_LINE + 3,
        Reason.UNMEANT,
        "the defaults inside spec.a.b do not apply where an XR leaves spec.a.b out",
        "write default: {} at spec.a.b",
        FindingSeverity.WARNING,
    ),
    Case(
        "two referenceable versions",
        judged(
            again="- {name: v2, served: true, referenceable: true, schema: {openAPIV3Schema: {}}}"
        ),
        VERSION_LINE - 1,
        Reason.BROKEN_SCHEMA,
        "version v2 is marked too",
        "set referenceable: true there and false elsewhere",
    ),
    Case(
        "a pattern that RE2 does not have",
        judged("a: {type: string, pattern: '^(?=a)[a-z]+$'}"),
        FIELD_LINE,
        Reason.BROKEN_SCHEMA,
        "must be a valid regular expression",
        "patterns are RE2",
    ),
    Case(
        "a pattern that the two engines read differently",
        judged("a: {type: string, pattern: '^[[:alpha:]]+$'}"),
        FIELD_LINE,
        Reason.UNMEANT,
        "the API server (RE2) and forms (JavaScript) do not read '^[[:alpha:]]+$' alike",
        "[a-zA-Z] for [[:alpha:]]",
        FindingSeverity.WARNING,
    ),
    Case(
        "a pattern that differs for odd spaces",
        judged(r"a: {type: string, pattern: '^[a-z]+\s$'}"),
        FIELD_LINE,
        Reason.UNMEANT,
        r"\s means other characters",
        "list the characters",
        FindingSeverity.NOTE,
    ),
    Case(
        "a default that is not in the enum",
        judged("a: {type: string, enum: [low, high], default: mid}"),
        FIELD_LINE,
        Reason.BROKEN_SCHEMA,
        'Unsupported value: "mid": supported values: "low", "high"',
        "write one of the enum's values as default",
    ),
    Case(
        "an enum of another type",
        judged("a: {type: string, enum: [1.0, x]}"),
        FIELD_LINE,
        Reason.BROKEN_SCHEMA,
        "must be of type string",
        "quote it",
    ),
    Case(
        "a rule that does not compile",
        judged(
            "a:\n  type: integer\n  x-kubernetes-validations:\n    - rule: self > 1\n"
            "    - rule: self.size > 1"
        ),
        FIELD_LINE + 4,
        Reason.BROKEN_SCHEMA,
        "compilation failed",
        "rules are CEL: self is the value at this level",
    ),
    Case(
        "a rule that names no field",
        judged(spec="x-kubernetes-validations: [{rule: self.taem != ''}]"),
        SPEC_LINE,
        Reason.BROKEN_SCHEMA,
        "undefined field 'taem'",
        "name a field declared at this level",
    ),
    Case(
        "a column of a field that is not there",
        judged(version="additionalPrinterColumns: [{name: T, type: string, jsonPath: .spec.taem}]"),
        VERSION_LINE,
        Reason.UNMEANT,
        "the column T shows .spec.taem, which the schema lacks",
        "declare it",
        FindingSeverity.WARNING,
    ),
    Case(
        "an object that keeps nothing",
        judged("a: {type: object}"),
        FIELD_LINE,
        Reason.UNMEANT,
        "spec.a is an object without fields: whatever is written into it is dropped",
        "x-kubernetes-preserve-unknown-fields: true",
        FindingSeverity.WARNING,
    ),
    Case(
        "a field without a type",
        judged("a: {description: none}"),
        FIELD_LINE,
        Reason.BROKEN_SCHEMA,
        "must not be empty for specified object fields",
        "give the field a type",
    ),
    Case(
        "an argument of another type",
        judged("a: {type: string, maxLength: '5'}"),
        FIELD_LINE,
        Reason.BROKEN_SCHEMA,
        "cannot parse validation schema: maxLength is not a number",
        "write a number there",
    ),
    Case(
        "claims of a v2 XRD",
        judged(extra="claimNames: {kind: AppClaim, plural: appclaims}"),
        EXTRA_LINE,
        Reason.RULE,
        "Claims aren't supported",
        "",
    ),
    Case(
        "a claim with the composite's name",
        judged(api="v1", scope="LegacyCluster", extra="claimNames: {kind: App, plural: appclaims}"),
        EXTRA_LINE,
        Reason.BROKEN_SCHEMA,
        '"App" conflicts with composite resource name',
        "give the claim another name",
    ),
    Case(
        "a misspelt key of the XRD",
        judged(extra="defaultCompositonRef: {name: a}"),
        EXTRA_LINE,
        Reason.UNKNOWN_FIELD,
        'unknown field "spec.defaultCompositonRef"',
        "did you mean 'defaultCompositionRef'?",
    ),
    Case(
        "a keyword in another case",
        judged("a: {type: string, maxlength: 5}"),
        FIELD_LINE,
        Reason.CUT,
        "Crossplane reads maxlength as maxLength",
        "write maxLength",
    ),
    Case(
        "parts of whole numbers",
        judged("a: {type: number, multipleOf: 0.5}"),
        FIELD_LINE,
        Reason.UNMEANT,
        "the API server rounds 0.5 down where spec.a is a whole number",
        "count in a smaller unit",
        FindingSeverity.WARNING,
    ),
    Case(
        "no YAML",
        judge_definition(NAME, b"a: [\n"),
        2,
        Reason.UNREADABLE,
        "",
        "",
    ),
    Case(
        "an unknown version of the kind",
        judged(api="v3"),
        1,
        Reason.UNKNOWN_VERSION,
        'in version "apiextensions.crossplane.io/v3"',
        "write apiVersion: apiextensions.crossplane.io/v2",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.reason)
def test_a_bad_xrd_is_told_with_line_and_advice(case: Case) -> None:
    (told,) = case.told

    assert isinstance(told.about, Finding)
    assert told.line == case.line
    assert told.about.reason is case.code
    assert case.message in told.about.message
    assert case.hint in told.about.hint
    assert told.about.severity is case.severity


def test_an_xrd_without_scope_is_asked_for_one() -> None:
    text = definition_path("cache").read_bytes()

    (told,) = judge_definition(NAME, text)

    assert isinstance(told.about, Finding)
    assert told.about.severity is FindingSeverity.NOTE
    assert told.about.hint == "write scope: LegacyCluster"


@pytest.mark.parametrize("kit", kit_names())
def test_the_corpus_has_no_errors(kit: str) -> None:
    found = definition_findings(definition(kit))

    assert [f for f in found if f.severity is FindingSeverity.ERROR] == []


def test_paths_are_written_as_the_server_writes_them() -> None:
    steps = ("spec", "versions", "0", "schema", "properties", "a.b", "items", "enum", "1")

    assert path_of(steps) == "spec.versions[0].schema.properties[a.b].items.enum[1]"
    assert tuple(steps_of(path_of(steps))) == steps
