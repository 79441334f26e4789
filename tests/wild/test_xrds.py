"""
XRDs as other people write them become kits: traits of public XRDs, on XRDs of our own.

Each case states its trait and what becomes of it: the order that its generated example places, what
``kit check`` reports, or why the import is refused and what to do about it.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
import yaml

from orderkit.cli.main import run

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}
FLAG: dict[str, Any] = {"type": "boolean"}


class Shape(Enum):
    """What kind of XRD it is: API version and scope."""

    CLUSTER = ("v2", "Cluster")
    NAMESPACED = ("v2", "Namespaced")
    LEGACY = ("v1", None)


@dataclass(frozen=True, kw_only=True)
class Xrd:
    """A case: the trait, how to write it, and what is expected."""

    trait: str
    fields: Mapping[str, Any] = field(default_factory=lambda: {"size": TEXT})
    required: tuple[str, ...] = ()
    spec: Mapping[str, Any] = field(default_factory=dict)
    """More of the schema of ``spec``."""
    status: Mapping[str, Any] | None = None
    xrd: Mapping[str, Any] = field(default_factory=dict)
    """More of the XRD's own ``spec``."""
    shape: Shape = Shape.CLUSTER
    text: Callable[[str], str] = str
    """What its author did to the text."""
    order: Mapping[str, Any] | None = None
    """The ``spec`` of the order that the generated example places; None: there is no example."""
    finding: str = ""
    """An error of ``kit check``; without it there is none."""
    refused: str = ""
    hint: str = ""
    note: str = ""


def in_group(schema: Mapping[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": dict(schema), **more}


def xrd_text(case: Xrd) -> str:
    version, scope = case.shape.value
    spec = {"type": "object", "properties": dict(case.fields), **case.spec}
    if case.required:
        spec["required"] = list(case.required)
    parts = {"spec": spec}
    if case.status is not None:
        parts["status"] = {"type": "object", "properties": dict(case.status)}
    schema = {"type": "object", "properties": parts}
    claims = {"claimNames": {"kind": "Thing", "plural": "things"}} if version == "v1" else {}
    manifest = {
        "apiVersion": f"apiextensions.crossplane.io/{version}",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xthings.wild.example.org"},
        "spec": {
            "group": "wild.example.org",
            "names": {"kind": "XThing", "plural": "xthings"},
            **({"scope": scope} if scope else claims),
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "referenceable": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
            **case.xrd,
        },
    }
    return case.text(yaml.safe_dump(manifest, sort_keys=False, width=10_000))


SCHEMAS = [
    Xrd(trait="no field is required", order={}),
    Xrd(trait="a required text", required=("size",), order={"size": "example"}),
    Xrd(trait="everything below one group parameters", order={"parameters": {"size": "example"}},
        fields={"parameters": in_group({"size": TEXT}, "size")}, required=("parameters",)),
    Xrd(trait="required groups in groups", required=("a",), order={"a": {"b": {"c": "example"}}},
        fields={"a": in_group({"b": in_group({"c": TEXT}, "c")}, "b")}),
    Xrd(trait="a group whose default lacks what it requires", refused="default.id: Required value",
        fields={"net": in_group({"id": TEXT, "port": NUMBER}, "id", default={"port": 5432})},
        hint="write a default that the field's own schema accepts"),
    Xrd(trait="a default inside an optional group", order={},
        fields={"net": in_group({"id": TEXT, "port": {**NUMBER, "default": 5432}}, "id")}),
    Xrd(trait="a list with a default inside an optional group", order={}, fields={"group": in_group(
        {"policies": {"type": "array", "items": TEXT, "default": ["*"]}, "size": TEXT})}),
    Xrd(trait="a list with a default", order={"policies": ["*"]},
        fields={"policies": {"type": "array", "items": TEXT, "default": ["*"]}}),
    Xrd(trait="a list of at least two", required=("zones",), order={"zones": ["example"] * 2},
        fields={"zones": {"type": "array", "items": TEXT, "minItems": 2}}),
    Xrd(trait="a required list of groups", required=("subnets",),
        fields={"subnets": {"type": "array", "minItems": 1, "items": in_group(
            {"zone": TEXT, "type": {**TEXT, "enum": ["public", "private"]}}, "type", "zone")}},
        order={"subnets": [{"zone": "example", "type": "public"}]}),
    Xrd(trait="a map of texts", required=("tags",), order={"tags": {}},
        fields={"tags": {"type": "object", "additionalProperties": TEXT}}),
    Xrd(trait="a group of unknown fields", required=("values",), order={"values": {}},
        fields={"values": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}),
    Xrd(trait="number or text", required=("port",), order={"port": 1},
        fields={"port": {"x-kubernetes-int-or-string": True}}),
    Xrd(trait="a float with bounds", required=("share",), order={"share": 2},
        fields={"share": {"type": "number", "minimum": 2, "maximum": 3}}),
    Xrd(trait="bounds of a machine integer", required=("count",),
        order={"count": -2147483648},
        fields={"count": {**NUMBER, "minimum": -2147483648, "maximum": 2147483647}}),
    Xrd(trait="a required boolean", required=("on",), order={"on": False}, fields={"on": FLAG}),
    Xrd(trait="an enum with a default", order={"size": "m"},
        fields={"size": {**TEXT, "enum": ["s", "m"], "default": "m"}}),
    Xrd(trait="a CIDR by pattern", required=("cidr",), order={"cidr": "10.0.0.0/16"},
        fields={"cidr": {**TEXT, "pattern": r"^([0-9]{1,3}\.){3}[0-9]{1,3}/[0-9]{1,2}$"}}),
    Xrd(trait="a pattern of alternatives", required=("day",), order={"day": "monday"},
        fields={"day": {**TEXT, "pattern": "^(monday|tuesday)$"}}),
    Xrd(trait="(?i) inside a group of a pattern", required=("day",), order={"day": "monday"},
        fields={"day": {**TEXT, "pattern": "^((?i)monday|tuesday)$"}}),
    Xrd(trait="(?i) before a pattern", order={}, fields={"day": {**TEXT, "pattern": "(?i)^mon$"}}),
    Xrd(trait="(?i:...) in a pattern", order={}, fields={"d": {**TEXT, "pattern": "^(?i:x)[a-f]"}}),
    Xrd(trait="a choice of patterns by oneOf", required=("location",), order={"location": "EU"},
        fields={"location": {**TEXT, "oneOf": [{"pattern": "^EU$"}, {"pattern": "^US$"}]}}),
    Xrd(trait="a pattern for which no text is known",
        required=("id",), fields={"id": {**TEXT, "pattern": "^zz([0-9]{9}|[a-f]{9})q$"}},
        order=None, note="no example value could be guessed"),
    Xrd(trait="a pattern that is spelled", required=("id",), order={"id": "zz999999999q"},
        fields={"id": {**TEXT, "pattern": "^zz[0-9]{9}q$"}}),
    Xrd(trait="a field name that is not required", order={}, fields={"name": TEXT, "size": TEXT}),
    Xrd(trait="a field name too long for an order's name", required=("name",),
        fields={"name": {**TEXT, "maxLength": 253}}, order={"name": "first"}),
    Xrd(trait="a required group of optional fields", required=("parameters",),
        fields={"parameters": in_group({"size": TEXT, "deep": in_group({"a": TEXT})} )},
        order={"parameters": {}}),
    Xrd(trait="a short field name", required=("name",), order={"name": "first"},
        fields={"name": {**TEXT, "maxLength": 20, "pattern": "^[a-z0-9-]+$"}}),
    Xrd(trait="a field team that is a group", order={}, fields={"team": in_group({"id": TEXT})}),
    Xrd(trait="a rule: one of two fields must be set", order={"a": "example"},
        fields={"a": TEXT, "b": TEXT}, spec={"x-kubernetes-validations": [
            {"rule": "has(self.a) || has(self.b)", "message": "either a or b must be set"}]}),
    Xrd(trait="a rule: both or neither, and one of three",
        fields={"name": TEXT, "helm": TEXT, "kube": TEXT}, order={"name": "first"},
        spec={"x-kubernetes-validations": [
            {"rule": "has(self.name) || has(self.helm) && has(self.kube)", "message": "set one"}]}),
    Xrd(trait="a rule: a group that belongs to a type", required=("engine",),
        fields={"engine": in_group({"type": {**TEXT, "enum": ["a", "b"]}}, "type"),
                "a": in_group({"of": {**TEXT, "default": "plain"}})},
        spec={"x-kubernetes-validations": [{"rule": "self.engine.type != 'a' || has(self.a)"}]},
        order={"engine": {"type": "b"}}),
    Xrd(trait="oneOf of required fields", fields={"a": TEXT, "b": TEXT}, order={"a": "example"},
        spec={"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
    Xrd(trait="Crossplane's reference fields, declared by the author", order={},
        fields={"size": TEXT, "compositionRef": in_group({"name": TEXT})}, shape=Shape.LEGACY,
        note="left out of the XRD: Crossplane replaces spec.compositionRef with its own"),
    Xrd(trait="spec.crossplane, declared by the author", order={},
        fields={"size": TEXT, "crossplane": in_group({"compositionRef": in_group({"name": TEXT})})},
        note="left out of the XRD: Crossplane replaces spec.crossplane"),
    Xrd(trait="status.conditions, declared by the author", order={}, status={
        "url": TEXT, "conditions": {"type": "array", "items": in_group({"type": TEXT})}},
        note="left out of the XRD: Crossplane replaces status.conditions"),
    Xrd(trait="writeConnectionSecretToRef, declared by the author", order={}, shape=Shape.LEGACY,
        fields={"size": TEXT, "writeConnectionSecretToRef": in_group({"name": TEXT})},
        note="spec.writeConnectionSecretToRef"),
    Xrd(trait="a description that ends in a colon", order={},
        fields={"size": {**TEXT, "description": "One of: 's', \"m\" # or l:"}}),
    Xrd(trait="a keyword of JSON Schema that Crossplane drops",
        note="left out of the XRD: Crossplane drops const",
        fields={"size": {**TEXT, "const": "x"}}, order={}),
    Xrd(trait="a property written beside properties", order={},
        note="left out of the XRD: Crossplane drops name",
        fields={"group": {"type": "object", "name": {"type": "string"}}}),
    Xrd(trait="a default of the whole spec",
        note="left out of the XRD: Crossplane drops default of spec",
        spec={"default": {"size": "m"}}, order={}),
]  # fmt: skip

DEFINITIONS = [
    Xrd(trait="claims, in v1", shape=Shape.LEGACY, required=("size",), order={"size": "example"}),
    Xrd(trait="connection secret keys, in v1", shape=Shape.LEGACY, order={},
        xrd={"connectionSecretKeys": ["username", "password"]}),
    Xrd(trait="a namespaced XR", shape=Shape.NAMESPACED, required=("size",),
        order={"size": "example"}),
    Xrd(trait="claims, in v2", xrd={"claimNames": {"kind": "Thing", "plural": "things"}}, order={},
        finding="Claims aren't supported in apiextensions.crossplane.io/v2: remove spec.claim"),
    Xrd(trait="connection secret keys, in v2", xrd={"connectionSecretKeys": ["password"]}, order={},
        finding="aren't supported in apiextensions.crossplane.io/v2: remove spec.connectionSecret"),
    Xrd(trait="a default Composition that is not there", order={},
        xrd={"defaultCompositionRef": {"name": "elsewhere"}}),
    Xrd(trait="short names and categories", order={}, xrd={"names": {
        "kind": "XThing", "plural": "xthings", "shortNames": ["xt"], "categories": ["wild"]}}),
    Xrd(trait="a kind of capitals", order={},
        xrd={"names": {"kind": "XVMPool", "plural": "xthings"}}),
    Xrd(trait="a name that is not plural and group", refused="metadata.name: Invalid value",
        xrd={"group": "other.example.org"}, hint="name the XRD <plural>.<group>"),
    Xrd(trait="no referenceable version", refused="exactly one version marked",
        text=lambda text: text.replace("referenceable: true", "referenceable: false")),
    Xrd(trait="two XRDs in one file", refused="must hold one XRD",
        text=lambda text: f"{text}---\n{text.replace('xthings', 'xothers').replace('XTh', 'XOt')}"),
    Xrd(trait="a CRD instead of an XRD", refused="must hold one XRD", hint="this is a CRD",
        text=lambda text: text.replace("apiextensions.crossplane.io/v2", "apiextensions.k8s.io/v1")
        .replace("CompositeResourceDefinition", "CustomResourceDefinition")),
    Xrd(trait="OFF in an enum without quotes", refused="enum[1]: Invalid value: false",
        hint="quote it if it is meant as text: unquoted, YAML reads OFF, N, NO",
        fields={"level": {**TEXT, "enum": ["INFO", "OFF"]}},
        text=lambda text: text.replace("'OFF'", "OFF")),
    Xrd(trait="N in an enum without quotes", refused="enum[1]: Invalid value: false", hint="quote",
        fields={"type": {**TEXT, "enum": ["S", "N"]}},
        text=lambda text: text.replace("'N'", "N")),
    Xrd(trait="int-or-string with a type", refused="must be empty if x-kubernetes-int-or-string",
        hint="remove type", fields={"n": {**NUMBER, "x-kubernetes-int-or-string": True}}),
    Xrd(trait="a pattern that Go refuses", refused="pattern", hint="no look-around",
        fields={"size": {**TEXT, "pattern": "^(?!x)a$"}}),
    Xrd(trait="a rule of a missing field", refused="undefined field", hint="has(self.x)",
        spec={"x-kubernetes-validations": [{"rule": "self.gone == 'x'"}]}),
    Xrd(trait="tabs as indentation", refused="line 4",
        text=lambda text: text.replace("  name:", "\tname:")),
]  # fmt: skip


def described(text: str, description: str) -> str:
    return re.sub(r"( +)size:\n", rf"\g<0>\1  description: '{description}'\n", text)


COMMENT = "# what it is for"
STYLES: list[tuple[str, Callable[[str], str]]] = [
    ("four blanks of indentation", lambda text: yaml.safe_dump(yaml.safe_load(text), indent=4)),
    ("Windows line ends", lambda text: text.replace("\n", "\r\n")),
    ("a byte order mark", lambda text: "\ufeff" + text),
    ("trailing blanks and no last line end", lambda t: t.replace(":\n", ":  \n").rstrip("\n")),
    ("many blank lines", lambda text: text.replace("spec:\n", "spec:\n\n\n\n\n\n", 1)),
    ("comments at odd columns", lambda text: text.replace("spec:\n", f"spec:\n   {COMMENT}\n", 1)),
    ("lines of 300 characters", lambda text: described(text, "word " * 60)),
    ("a word of 300 characters", lambda text: described(text, "w" * 300)),
    ("JSON", lambda text: json.dumps(yaml.safe_load(text))),
    ("a document marker and an end", lambda text: f"---\n{text}...\n"),
    ("an anchor", lambda text: text.replace("type: string", "type: &text string")),
]  # fmt: skip
STYLED = [
    Xrd(trait=f"written with {name}", required=("size",), order={"size": "example"}, text=text)
    for name, text in STYLES
]


SCRIPT = "#!/bin/sh\n\tif true; then\n\t\techo 'a: {b}'   \n\tfi\n\n\n\n\nexit 0\n"
THEIR_COMPOSITION = f"""\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {{name: xthing-default, labels: {{a: b}}}}
spec:
  compositeTypeRef: {{apiVersion: wild.example.org/v1alpha1, kind: XThing}}
  mode: Pipeline
  pipeline:
  - step: patches   # theirs
    functionRef: {{name: function-patch-and-transform}}
    input:
        apiVersion: pt.fn.crossplane.io/v1beta1
        kind: Resources
        resources:
        - name: bucket
          base: &base {{apiVersion: s3.example.org/v1, kind: Bucket, spec: {{forProvider: {{}}}}}}
          patches:
          - fromFieldPath: spec.size
            toFieldPath: spec.forProvider.size
            transforms: [{{type: map, map: {{small: s, large: l}}}}]
          - {{fromFieldPath: spec.size, toFieldPath: 'spec.forProvider.class', transforms: [
              {{type: map, map: {{large: "l"}}}}]}}
        - name: script
          base:
            apiVersion: v1
            kind: ConfigMap
            metadata: {{namespace: default}}
            data: {{run: {json.dumps(SCRIPT)}}}
  - {{step: ready, functionRef: {{name: function-auto-ready}}}}
"""
LAYOUTS: list[tuple[str, Callable[[str], str]]] = [
    ("as they wrote it", lambda text: text),
    *(entry for entry in STYLES if "characters" not in entry[0] and "anchor" not in entry[0]),
    ("braces", lambda t: yaml.safe_dump(yaml.safe_load(t), default_flow_style=True, width=500)),
    ("double quotes", lambda text: yaml.safe_dump(yaml.safe_load(text), default_style='"')),
    ("single quotes", lambda text: yaml.safe_dump(yaml.safe_load(text), default_style="'")),
    ("an alias", lambda text: text.replace("  - {step: ready", "  - &ready {step: ready")),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda entry: entry[0])
def test_an_import_passes_kit_check_however_it_is_laid_out(
    layout: tuple[str, Callable[[str], str]],
    empty_pack: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pack = Path(shutil.copytree(empty_pack, tmp_path / "mine"))
    case = Xrd(trait="", required=("size",), order={}, fields={"size": TEXT})
    for name, text in (("xrd", xrd_text(case)), ("composition", THEIR_COMPOSITION)):
        (tmp_path / f"{name}.yaml").write_bytes(layout[1](text).encode())
    files = [str(tmp_path / f"{name}.yaml") for name in ("xrd", "composition")]
    capsys.readouterr()

    code = run(["kit", "import", *files, "--name", "thing", "--pack", str(pack), "--json"])

    added = json.loads(capsys.readouterr().out)
    assert code == 0
    assert [finding for finding in added["findings"] if " error: " in finding] == []
    assert placed_order(pack) == {"size": "large"}, "the key that both maps have"
    written = yaml.safe_load((pack / "gitops/apis/thing/composition.yaml").read_text())
    made = written["spec"]["pipeline"][0]["input"]["resources"][1]["base"]
    assert made["data"]["run"] == SCRIPT


SECOND = THEIR_COMPOSITION.replace("xthing-default", "xthing-large")


@pytest.mark.parametrize(
    "named",
    [
        ({}, ("--composition", "xthing-large"), "xthing-large"),
        ({"defaultCompositionRef": {"name": "xthing-large"}}, (), "xthing-large"),
        (
            {"defaultCompositionRef": {"name": "xthing-large"}},
            ("--composition", "xthing-default"),
            "xthing-default",
        ),
    ],
    ids=["the XRD names none", "the XRD names one", "another is named"],
)
def test_every_composition_of_a_kind_comes_with_the_kit(
    named: tuple[dict[str, Any], tuple[str, ...], str],
    empty_pack: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    xrd, given, default = named
    pack = Path(shutil.copytree(empty_pack, tmp_path / "mine"))
    case = Xrd(trait="", required=("size",), xrd=xrd)
    facts = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: facts}\n"
    texts = {"xrd": xrd_text(case), "a": THEIR_COMPOSITION, "b": SECOND, "facts": facts}
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    files = [str(tmp_path / f"{name}.yaml") for name in texts]
    capsys.readouterr()

    code = run(["kit", "import", *files, *given, "--name", "thing", "--pack", str(pack), "--json"])

    added = json.loads(capsys.readouterr().out)
    apis = pack / "gitops" / "apis" / "thing"
    (other,) = {"xthing-default", "xthing-large"} - {default}
    assert (code, [f for f in added["findings"] if " error: " in f]) == (0, [])
    assert yaml.safe_load((apis / "definition.yaml").read_text())["spec"][
        "defaultCompositionRef"
    ] == {"name": default}
    assert yaml.safe_load((apis / "composition.yaml").read_text())["metadata"]["name"] == default
    assert (apis / f"composition-{other}.yaml").exists()
    told = "\n".join(added["next"])
    assert f"orders get Composition {default}; their form also offers {other}" in told
    assert f"left out: ConfigMap 'facts' of {tmp_path / 'facts.yaml'}" in told


def test_what_is_no_whole_xrd_is_told(
    empty_pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "theirs.yaml"
    source.write_text(
        "apiVersion: apiextensions.crossplane.io/v1\nkind: CompositeResourceDefinition\n"
    )

    code = run(["kit", "import", str(source), "--name", "thing", "--pack", str(empty_pack)])

    assert code == 2
    assert "is no whole XRD: spec.group is missing" in capsys.readouterr().err


@pytest.fixture(scope="module")
def empty_pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packs") / "mine"
    assert run(["init", str(folder), "--no-git"]) == 0
    return folder


@pytest.mark.parametrize("case", [*SCHEMAS, *DEFINITIONS, *STYLED], ids=lambda case: case.trait)
def test_an_xrd_becomes_a_kit(
    case: Xrd, empty_pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pack = Path(shutil.copytree(empty_pack, tmp_path / "mine"))
    source = tmp_path / "theirs.yaml"
    source.write_bytes(xrd_text(case).encode())
    capsys.readouterr()

    code = run(["kit", "import", str(source), "--name", "thing", "--pack", str(pack), "--json"])

    output = capsys.readouterr()
    if case.refused:
        assert code in (1, 2), output
        assert case.refused in output.err
        assert case.hint in output.err
        return
    assert code == 0, output.err
    added = json.loads(output.out)
    errors = [finding for finding in added["findings"] if " error: " in finding]
    assert any(case.finding in error for error in errors) if case.finding else not errors, errors
    assert any(case.note in line for line in added["next"])
    assert placed_order(pack) == case.order


def placed_order(pack: Path) -> dict[str, Any] | None:
    """Return the spec of the order that the kit's own test places, without the team."""
    manifests = list(pack.glob("tests/kits/thing/*/expected/files/manifests/*.yaml"))
    if not manifests:
        return None
    spec: dict[str, Any] = yaml.safe_load(manifests[0].read_text())["spec"]
    return spec


def test_the_table_has_the_traits_of_public_xrds() -> None:
    cases = [*SCHEMAS, *DEFINITIONS, *STYLED]

    assert len({case.trait for case in cases}) == len(cases) >= 60


def test_comments_of_the_author_stay(empty_pack: Path, tmp_path: Path) -> None:
    pack = Path(shutil.copytree(empty_pack, tmp_path / "mine"))
    source = tmp_path / "theirs.yaml"
    text = xrd_text(Xrd(trait="", status={"conditions": {"type": "array", "items": TEXT}}))
    source.write_text(f"# ours\n{text}".replace("  versions:", f"     {COMMENT}\n  versions:"))

    assert run(["kit", "import", str(source), "--name", "thing", "--pack", str(pack)]) == 0

    written = (pack / "gitops/apis/thing/definition.yaml").read_text()
    assert written.startswith("# ours\n")
    assert f"\n  {COMMENT}\n  versions:\n    - name: v1alpha1\n" in written
    assert "conditions" not in written
