"""Other people's Compositions: legacy ones become pipelines, pipelines bring their functions."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import Done

from compositions.function_twins.choice import RELEASES
from compositions.function_twins.patch_and_transform import patch_and_transform
from compositions.parts import auto_ready
from compositions.station import Ready, Resource, State, StationRequest
from ground.errors import RefusedError
from orderkit.cli.main import run
from orderkit_workshop.generate.converted_composition import converted

BUCKET = {"apiVersion": "s3.example.org/v1", "kind": "Bucket", "spec": {"forProvider": {}}}


def legacy(*resources: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": "things"},
        "spec": {
            "compositeTypeRef": {"apiVersion": "wild.example.org/v1", "kind": "XThing"},
            "resources": [{"name": "main", "base": BUCKET, **resource} for resource in resources],
            **spec,
        },
    }


def patched(patch: dict[str, Any]) -> dict[str, Any]:
    """Return what a patch becomes."""
    spec = converted(legacy({"patches": [patch]})).manifest["spec"]
    became: dict[str, Any] = spec["pipeline"][0]["input"]["resources"][0]["patches"][0]
    return became


FROM = {"fromFieldPath": "spec.size", "toFieldPath": "spec.forProvider.size"}
TYPED = {"type": "FromCompositeFieldPath", **FROM}


@dataclass(frozen=True)
class Patch:
    reason: str
    before: dict[str, Any]
    after: dict[str, Any] = field(default_factory=dict)
    """Empty: as before."""


def transforms(*entries: dict[str, Any]) -> dict[str, Any]:
    return {**TYPED, "transforms": list(entries)}


def merging(**options: bool) -> dict[str, Any]:
    return {**TYPED, "policy": {"fromFieldPath": "Required", "mergeOptions": options}}


def policy(name: str) -> dict[str, Any]:
    return {**TYPED, "policy": {"fromFieldPath": "Required", "toFieldPath": name}}


COMBINE = {
    "combine": {
        "strategy": "string",
        "variables": [{"fromFieldPath": "spec.a"}, {"fromFieldPath": "spec.b"}],
        "string": {"fmt": "%s-%s"},
    },
    "toFieldPath": "spec.forProvider.name",
}
PATCHES = [
    Patch("the type that a patch has without one", FROM, TYPED),
    Patch("to the XR", {**FROM, "type": "ToCompositeFieldPath"}),
    Patch("from the environment", {**FROM, "type": "FromEnvironmentFieldPath"}),
    Patch("to the environment", {**FROM, "type": "ToEnvironmentFieldPath"}),
    Patch("combined from the XR", {"type": "CombineFromComposite", **COMBINE}),
    Patch("combined to the XR", {"type": "CombineToComposite", **COMBINE}),
    Patch("combined from the environment", {"type": "CombineFromEnvironment", **COMBINE}),
    Patch("combined to the environment", {"type": "CombineToEnvironment", **COMBINE}),
    Patch("mergeOptions: nothing said", merging(), policy("ForceMergeObjects")),
    Patch("mergeOptions: keep", merging(keepMapValues=True), policy("MergeObjects")),
    Patch("mergeOptions: append", merging(appendSlice=True),
          policy("ForceMergeObjectsAppendArrays")),
    Patch("mergeOptions: both", merging(appendSlice=True, keepMapValues=True),
          policy("MergeObjectsAppendArrays")),
    Patch("an empty policy", {**TYPED, "policy": {}}, TYPED),
    Patch("a map", transforms({"type": "map", "map": {"s": "small"}})),
    Patch("a match", transforms({"type": "match", "match": {
        "patterns": [{"literal": "s", "result": 1}], "fallbackTo": "Input"}})),
    Patch("a convert", transforms({"type": "convert", "convert": {"toType": "int"}})),
    Patch("a format without its type", transforms({"type": "string", "string": {"fmt": "%s"}}),
          transforms({"type": "string", "string": {"type": "Format", "fmt": "%s"}})),
    Patch("a regexp without its type",
          transforms({"type": "string", "string": {"regexp": {"match": "a"}}}),
          transforms({"type": "string", "string": {"type": "Regexp", "regexp": {"match": "a"}}})),
    Patch("a string convert without its type",
          transforms({"type": "string", "string": {"convert": "ToUpper"}}),
          transforms({"type": "string", "string": {"type": "Convert", "convert": "ToUpper"}})),
    Patch("a trim", transforms({"type": "string", "string": {"type": "TrimPrefix", "trim": "a"}})),
    Patch("a multiplication without its type",
          transforms({"type": "math", "math": {"multiply": 2}}),
          transforms({"type": "math", "math": {"type": "Multiply", "multiply": 2}})),
    Patch("a clamp without its type", transforms({"type": "math", "math": {"clampMin": 2}}),
          transforms({"type": "math", "math": {"type": "ClampMin", "clampMin": 2}})),
    Patch("a transform without a type", transforms({"map": {"s": "small"}}),
          transforms({"type": "map", "map": {"s": "small"}})),
]  # fmt: skip


@pytest.mark.parametrize("case", PATCHES, ids=lambda case: case.reason)
def test_a_patch_is_written_as_the_function_wants_it(case: Patch) -> None:
    assert patched(case.before) == (case.after or case.before)


PARTS = [
    ("connectionDetails", {"fromConnectionSecretKey": "user"},
     {"name": "user", "type": "FromConnectionSecretKey", "fromConnectionSecretKey": "user"}),
    ("connectionDetails", {"name": "port", "value": "5432"},
     {"name": "port", "type": "FromValue", "value": "5432"}),
    ("connectionDetails", {"name": "host", "fromFieldPath": "status.host"},
     {"name": "host", "type": "FromFieldPath", "fromFieldPath": "status.host"}),
    ("readinessChecks", {"type": "None"}, {"type": "None"}),
    ("readinessChecks", {"type": "MatchCondition"},
     {"type": "MatchCondition", "matchCondition": {"type": "Ready", "status": "True"}}),
    ("readinessChecks", {"type": "NonEmpty", "fieldPath": "status.id"},
     {"type": "NonEmpty", "fieldPath": "status.id"}),
]  # fmt: skip


@pytest.mark.parametrize(("key", "before", "after"), PARTS, ids=lambda part: str(part)[:40])
def test_details_and_checks_get_what_the_server_once_filled_in(
    key: str, before: dict[str, Any], after: dict[str, Any]
) -> None:
    spec = converted(legacy({key: [before]})).manifest["spec"]

    assert spec["pipeline"][0]["input"]["resources"][0][key] == [after]


def test_everything_else_of_a_legacy_composition_finds_its_place() -> None:
    environment = {
        "defaultData": {"zone": "a"},
        "environmentConfigs": [{"type": "Reference", "ref": {"name": "shared"}}],
        "policy": {"resolution": "Required"},
        "patches": [FROM],
    }
    composition = legacy(
        {"patches": [{"type": "PatchSet", "patchSetName": "common"}], "unknown": 1},
        patchSets=[{"name": "common", "patches": [FROM]}],
        environment=environment,
        mode="Resources",
        writeConnectionSecretsToNamespace="secrets",
        publishConnectionDetailsWithStoreConfigRef={"name": "default"},
    )
    del composition["spec"]["resources"][0]["name"]

    conversion = converted(composition)

    spec = conversion.manifest["spec"]
    first, second = spec.pop("pipeline")
    assert spec == {
        "compositeTypeRef": composition["spec"]["compositeTypeRef"],
        "mode": "Pipeline",
        "writeConnectionSecretsToNamespace": "secrets",
    }
    assert first["functionRef"] == {"name": "function-environment-configs"}
    assert first["input"]["spec"] == {k: v for k, v in environment.items() if k != "patches"}
    assert second["functionRef"] == {"name": "function-patch-and-transform"}
    assert second["input"]["environment"] == {"patches": [TYPED]}
    assert second["input"]["patchSets"] == [{"name": "common", "patches": [TYPED]}]
    assert second["input"]["resources"][0]["name"] == "resource-0"
    notes = "\n".join(conversion.notes)
    for part in ("resource-0", "unknown was removed", "publishConnectionDetails", "v1beta1"):
        assert part in notes


REFUSED = [
    ("container functions", legacy({}, functions=[{"name": "f"}]), "spec.functions"),
    ("no resources", legacy(), "resources or environment patches are required"),
    ("a patch without a source", legacy({"patches": [{"toFieldPath": "a"}]}), "fromFieldPath"),
    ("a patch of unknown type", legacy({"patches": [{**FROM, "type": "Magic"}]}), "Magic"),
]


@pytest.mark.parametrize(
    ("reason", "composition", "says"), REFUSED, ids=lambda part: str(part)[:30]
)
def test_what_no_pipeline_can_do_is_refused(
    reason: str, composition: dict[str, Any], says: str
) -> None:
    with pytest.raises(RefusedError, match="Composition things cannot be converted") as caught:
        converted(composition)
    assert says in str(caught.value), reason


def test_a_failing_check_stays_failing_and_auto_ready_would_hide_it() -> None:
    """The mode Resources called a resource ready only if its own checks passed."""
    check = {"type": "MatchString", "fieldPath": "status.state", "matchString": "ACTIVE"}
    manifest = converted(legacy({"readinessChecks": [check]})).manifest
    (step,) = manifest["spec"]["pipeline"]
    conditions = [{"type": "Ready", "status": "True"}]
    observed = {**BUCKET, "status": {"state": "CREATING", "conditions": conditions}}
    xr = {"apiVersion": "wild.example.org/v1", "kind": "XThing", "metadata": {"name": "a"}}
    request = StationRequest(
        input=step["input"],
        observed=State(composite=Resource(xr), resources={"main": Resource(observed)}),
    )

    response = patch_and_transform(request)

    assert response.desired.resources["main"].ready is Ready.UNSPECIFIED
    after = auto_ready(StationRequest(observed=request.observed, desired=response.desired))
    assert after.desired.resources["main"].ready is Ready.TRUE


XRD = """\
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata:
  name: xthings.wild.example.org
spec:
  group: wild.example.org
  names: {kind: XThing, plural: xthings}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: string, enum: [s, l]}
"""
LEGACY = """\
# ours
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
    name: things
spec:
    compositeTypeRef:
        apiVersion: wild.example.org/v1
        kind: XThing
    patchSets:
    # for all
    - name: common
      patches:
      - fromFieldPath: metadata.name
        toFieldPath: spec.forProvider.owner
    resources:
    # the bucket
    - name: bucket
      base:
          apiVersion: s3.example.org/v1beta1
          kind: Bucket
          spec: {forProvider: {region: eu}}
      patches:
      - type: PatchSet
        patchSetName: common
      - fromFieldPath: spec.size   # s or l
        toFieldPath: spec.forProvider.class
        transforms:
        - type: map
          map: {s: STANDARD, l: LARGE}
"""
PIPELINE = """\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: things}
spec:
  compositeTypeRef: {apiVersion: wild.example.org/v1, kind: XThing}
  mode: Pipeline
  pipeline:
  - step: environment
    functionRef: {name: crossplane-contrib-function-environment-configs}
    input:
      apiVersion: environmentconfigs.fn.crossplane.io/v1beta1
      kind: Input
      spec: {environmentConfigs: [{type: Reference, ref: {name: shared}}]}
  - step: render
    functionRef: {name: function-go-templating}
    input:
      apiVersion: gotemplating.fn.crossplane.io/v1beta1
      kind: GoTemplate
      source: Inline
      inline:
        template: |
          apiVersion: s3.example.org/v1beta1
          kind: Bucket
          metadata:
            annotations: {gotemplating.fn.crossplane.io/composition-resource-name: a}
          ---
          apiVersion: {{ $version }}
          kind: Unknown
          ---
          apiVersion: meta.gotemplating.fn.crossplane.io/v1alpha1
          kind: Context
  - step: more
    functionRef: {name: function-mystery}
  - step: ready
    functionRef: {name: crossplane-contrib-function-auto-ready}
"""
CONFIGURATION = """\
apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: theirs}
spec:
  dependsOn:
  - provider: registry.example.org/provider-aws
    version: ">=v1"
  - function: registry.example.org/crossplane-contrib/function-go-templating
    version: ">=v0.9.2"
  - apiVersion: pkg.crossplane.io/v1
    kind: Function
    package: registry.example.org/crossplane-contrib/function-environment-configs
    version: v0.7.1
"""


@pytest.fixture(scope="module")
def empty_pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packs") / "mine"
    assert run(["init", str(folder), "--no-git"]) == 0
    return folder


Import = Callable[..., Done]


@pytest.fixture
def kit_import(
    empty_pack: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[Path, Import]:
    """Return a pack, and what imports an XRD with a Composition into it."""
    pack = Path(shutil.copytree(empty_pack, tmp_path / "mine"))
    apis = tmp_path / "theirs" / "apis"
    apis.mkdir(parents=True)
    (apis / "xrd.yaml").write_text(XRD)

    def imports(composition: str, *options: str) -> Done:
        (apis / "composition.yaml").write_text(composition)
        files = [str(apis / name) for name in ("xrd.yaml", "composition.yaml")]
        capsys.readouterr()
        code = run(["kit", "import", *files, "--pack", str(pack), "--json", *options])
        return Done(code, *capsys.readouterr())

    return pack, imports


def test_a_legacy_composition_is_refused_with_the_option_that_converts_it(
    kit_import: tuple[Path, Import],
) -> None:
    refused = kit_import[1](LEGACY)

    assert refused.code == 4
    assert "Composition things has no pipeline" in refused.err
    assert "--convert" in refused.err


def test_a_converted_composition_runs_in_plans_and_keeps_its_comments(
    kit_import: tuple[Path, Import],
) -> None:
    pack, imports = kit_import

    added = imports(LEGACY, "--convert")

    assert added.code == 0, added.err
    assert added.json["scenarios"] == 1
    assert not [finding for finding in added.json["findings"] if " error: " in finding]
    text = (pack / "gitops/apis/thing/composition.yaml").read_text()
    for comment in ("# ours", "# for all", "# the bucket", "# s or l"):
        assert comment in text
    kit = yaml.safe_load((pack / "templates/thing/kit.yaml").read_text())
    assert kit["spec"]["composes"] == [{"apiVersion": "s3.example.org/v1beta1", "kind": "Bucket"}]
    function = (pack / "gitops/functions/function-patch-and-transform.yaml").read_text()
    assert "crossplane-contrib/function-patch-and-transform:v0.10.8" in function
    resources = (pack / "tests/kits/thing/first-order/expected/resources.yaml").read_text()
    assert "class: STANDARD" in resources
    assert "owner: thing-first" in resources


STATUS = """\
      - type: ToCompositeFieldPath
        fromFieldPath: status.atProvider.arn
        toFieldPath: status.arn
        policy: {fromFieldPath: Required}
      readinessChecks:
      - {type: NonEmpty, fieldPath: status.atProvider.arn}
"""


def test_what_a_provider_reports_is_not_known_to_a_check(kit_import: tuple[Path, Import]) -> None:
    """It is a warning with the path: a real Crossplane gets the order Ready."""
    added = kit_import[1](LEGACY + STATUS, "--convert")

    findings = added.json["findings"]
    assert added.code == 0, added.err
    assert not [finding for finding in findings if " error: " in finding], findings
    (told,) = (finding for finding in findings if "not ready" in finding)
    assert " warning: " in told
    assert "not ready without values of status.atProvider.arn: bucket" in told


def test_a_pipeline_brings_its_functions_and_kinds(
    kit_import: tuple[Path, Import], tmp_path: Path
) -> None:
    pack, imports = kit_import
    (tmp_path / "theirs" / "crossplane.yaml").write_text(CONFIGURATION)

    added = imports(PIPELINE)

    assert added.code == 0, added.err
    functions = {
        path.stem: yaml.safe_load(path.read_text())["spec"]["package"]
        for path in (pack / "gitops" / "functions").glob("*-function-*.yaml")
    }
    registry = "registry.example.org/crossplane-contrib"
    name = "crossplane-contrib-function-environment-configs"
    assert functions == {name: f"{registry}/function-environment-configs:v0.7.1"}
    templating = (pack / "gitops/functions/function-go-templating.yaml").read_text()
    assert f"{registry}/function-go-templating:v0.9.2" in templating
    kit = yaml.safe_load((pack / "templates/thing/kit.yaml").read_text())["spec"]
    assert kit["composes"] == [{"apiVersion": "s3.example.org/v1beta1", "kind": "Bucket"}]
    assert [kind["kind"] for kind in kit["requires"]] == ["EnvironmentConfig"]
    notes = "\n".join(added.json["next"])
    assert "declare Function function-mystery in gitops/functions" in notes
    assert "steps of crossplane-contrib-function-auto-ready call function-auto-ready now" in notes
    findings = "\n".join(added.json["findings"])
    assert "no Function 'function-mystery' in the pack" in findings
    assert "no step of function-auto-ready" not in findings


ORDER = """\
apiVersion: wild.example.org/v1
kind: XThing
metadata: {name: theirs}
spec:
  size: l
  compositionRef: {name: things}
"""


def test_an_order_among_the_files_is_the_example(
    kit_import: tuple[Path, Import], tmp_path: Path
) -> None:
    """What only Crossplane reads is no value of the example."""
    pack, imports = kit_import
    (tmp_path / "order.yaml").write_text(ORDER)

    added = imports(LEGACY, "--convert", str(tmp_path / "order.yaml"))

    assert added.code == 0, added.err
    (example,) = yaml.safe_load((pack / "templates/thing/kit.yaml").read_text())["spec"]["examples"]
    assert example["values"]["size"] == "l"
    assert "compositionRef" not in example["values"]
    assert not [text for text in added.json["next"] if "left out: XThing" in text]


def test_an_order_that_the_xrd_refuses_is_no_example(
    kit_import: tuple[Path, Import], tmp_path: Path
) -> None:
    pack, imports = kit_import
    (tmp_path / "order.yaml").write_text(ORDER.replace("size: l", "size: xxl"))

    added = imports(LEGACY, "--convert", str(tmp_path / "order.yaml"))

    assert added.code == 0, added.err
    (example,) = yaml.safe_load((pack / "templates/thing/kit.yaml").read_text())["spec"]["examples"]
    assert example["values"]["size"] == "s"


FOREIGN = """\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: things}
spec:
  compositeTypeRef: {apiVersion: wild.example.org/v1, kind: XThing}
  mode: Pipeline
  pipeline:
  - step: make
    functionRef: {name: crossplane-contrib-function-kcl}
  - step: more
    functionRef: {name: function-mystery}
  - step: ready
    functionRef: {name: function-auto-ready}
"""


def test_a_published_function_is_declared_although_no_file_names_its_package(
    kit_import: tuple[Path, Import],
) -> None:
    """Each command that brings a program is whole, but for what only the reader knows."""
    pack, imports = kit_import

    added = imports(FOREIGN)

    assert added.code == 0, added.err
    path = pack / "gitops/functions/crossplane-contrib-function-kcl.yaml"
    package = yaml.safe_load(path.read_text())["spec"]["package"]
    name = f"crossplane-contrib/function-kcl:{RELEASES['function-kcl']}"
    assert package == f"__ORDERKIT_REGISTRY__/{name}"
    texts = "\n".join([*added.json["next"], *added.json["findings"]])
    assert f"'orderkit functions add HOST/{name}' brings its program" in texts
    assert "'orderkit functions add HOST/PATH/function-mystery:VERSION' brings" in texts
    assert "no Function 'crossplane-contrib-function-kcl'" not in texts
    assert "no Function 'function-mystery' in the pack" in texts


def test_readiness_that_nobody_judges_is_reported(kit_import: tuple[Path, Import]) -> None:
    unjudged = PIPELINE[: PIPELINE.index("  - step: ready")]

    added = kit_import[1](unjudged)

    findings = "\n".join(added.json["findings"])
    assert "no step of function-auto-ready follows step 'render' of" in findings


def test_a_plan_for_a_v1_xrd_takes_its_stored_policy_for_no_danger(
    kit_import: tuple[Path, Import], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The API server stores compositionUpdatePolicy: Automatic in every XR of a v1 XRD."""
    pack, imports = kit_import
    assert imports(LEGACY, "--convert").code == 0
    commit(pack)
    composition = pack / "gitops/apis/thing/composition.yaml"
    composition.write_text(composition.read_text().replace("STANDARD", "COLD"))
    xr = {"apiVersion": "wild.example.org/v1", "kind": "XThing", "metadata": {"name": "thing-a"}}
    xrs = tmp_path / "xrs"
    xrs.mkdir()
    (xrs / "a.yaml").write_text(yaml.safe_dump({**xr, "spec": {"size": "s"}}))
    capsys.readouterr()

    run(["plan", "--kit", "thing", "--pack", str(pack), "--xrs", str(xrs)])

    planned = capsys.readouterr().out
    assert "spec.forProvider.class STANDARD → COLD" in planned
    assert "compositionUpdatePolicy" not in planned


def commit(folder: Path) -> None:
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "Start"]):
        subprocess.run([*git, *command], check=True)
