"""``orderkit kit new`` and ``kit import``: a kit that works at once, or an untouched pack."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from commands import Done

from orderkit.cli.main import run

Orderkit = Callable[..., Done]
XRD = """\
# Our databases.
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  name: xdatabases.db.example.org
spec:
  scope: Cluster
  group: db.example.org
  names: {kind: XDatabase, plural: xdatabases}
  defaultCompositionRef: {name: databases}
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
              required: [version, storage]
              properties:
                version: {type: string, enum: ['15', '16']}
                storage:
                  type: object
                  required: [sizeGb]
                  properties:
                    sizeGb: {type: integer, minimum: 10}
                    class: {type: string, default: fast}
"""
FOREIGN = """\
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: databases}
spec:
  compositeTypeRef: {apiVersion: db.example.org/v1, kind: XDatabase}
  mode: Pipeline
  pipeline:
    - step: make
      functionRef: {name: function-kcl}
      input: {apiVersion: krm.kcl.dev/v1alpha1, kind: KCLInput}
    - step: ready
      functionRef: {name: function-auto-ready}
"""


@pytest.fixture(scope="module")
def empty_pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packs") / "mine"
    assert run(["init", str(folder), "--no-git"]) == 0
    return folder


@pytest.fixture(scope="module")
def pack_with_a_kit(empty_pack: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(shutil.copytree(empty_pack, tmp_path_factory.mktemp("packs") / "mine"))
    assert run(["kit", "new", "first", "--no-input", "--pack", str(folder)]) == 0
    return folder


@pytest.fixture
def pack(empty_pack: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(empty_pack, tmp_path / "mine"))


@pytest.fixture
def orderkit(pack: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Orderkit]:
    """Run ``orderkit ARGUMENTS`` in the pack."""
    before = Path.cwd()
    os.chdir(pack)

    def command(*arguments: str) -> Done:
        capsys.readouterr()
        code = run(list(arguments))
        return Done(code, *capsys.readouterr())

    yield command
    os.chdir(before)


def content(pack: Path) -> dict[str, bytes]:
    files = (path for path in pack.rglob("*") if path.is_file())
    return {str(path.relative_to(pack)): path.read_bytes() for path in files}


@dataclass(frozen=True)
class Kit:
    reason: str
    name: str
    options: tuple[str, ...] = ()


KITS = [
    Kit("no field but who orders", "plain"),
    Kit(
        "every type, with defaults, enums and optional fields",
        "stage-kit",
        (
            "--field=size:string:enum=small|large:default=small",
            "--field=nodes:integer",
            "--field=share:number:default=1.5",
            "--field=public:boolean:default=false",
            "--field=note:string:optional",
            "--field=mode:string:enum=yes|no",
        ),
    ),
    Kit(
        "an XR in a namespace, named by its own fields",
        "agent",
        ("--scope=namespaced", "--field=name", "--field=teamName", "--group=ai.example.org"),
    ),
]


@pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.reason)
def test_a_new_kit_passes_check_and_test_at_once(kit: Kit, orderkit: Orderkit, pack: Path) -> None:
    made = orderkit("kit", "new", kit.name, "--no-input", *kit.options)

    assert made.code == 0, made.err
    assert "2 scenarios pass" in made.out
    checked, tested = orderkit("kit", "check"), orderkit("kit", "test", "--json")
    assert checked.code == 0, checked.out
    assert tested.json["counts"]["passed"] == 2
    assert orderkit("kit", "generate", "--check").code == 0
    outcome = yaml.safe_load(
        (pack / f"tests/kits/{kit.name}/first-order/expected/outcome.yaml").read_text()
    )
    assert outcome["ready"] == {"status": "True", "reason": "Available"}


def test_the_tests_of_its_stations_pass_and_its_yaml_is_in_style(
    orderkit: Orderkit, pack: Path
) -> None:
    for kit in KITS:
        assert orderkit("kit", "new", kit.name, "--no-input", *kit.options).code == 0

    for module in (["pytest", "-q", "-p", "no:cacheprovider"], ["yamllint", "--strict", "."]):
        done = subprocess.run(
            [sys.executable, "-m", *module], cwd=pack, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert {path.name for path in (pack / "tests/stations").glob("*.py")} == {
        "test_plain.py",
        "test_stage_kit.py",
        "test_agent.py",
    }


def test_a_kit_is_added_to_lists_without_touching_anything_else_in_them(
    orderkit: Orderkit, pack: Path
) -> None:
    told = (
        (pack / "pack.yaml").read_text().replace("kits: []", "kits:   # ours\n    - first  # old")
    )
    assert orderkit("kit", "new", "first", "--no-input").code == 0
    (pack / "pack.yaml").write_text(told)
    settings = (pack / "gitops/argocd/argocd-cm.yaml").read_bytes()

    made = orderkit("kit", "new", "second", "--no-input", "--json")

    assert made.json["changed"] == [
        "gitops/apis/orders.yaml",
        "gitops/argocd/argocd-cm.yaml",
        "gitops/kinds.yaml",
        "pack.yaml",
    ]
    wanted = told.replace("- first  # old\n", "- first  # old\n    - second\n")
    assert (pack / "pack.yaml").read_text() == wanted
    assert (pack / "gitops/argocd/argocd-cm.yaml").read_bytes().startswith(settings)


def test_it_asks_on_a_terminal_for_what_is_not_given(pack: Path) -> None:
    answers = ["XThing", "", "namespaced", "size:text", "size:integer:default=3", ""]
    main, side = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "orderkit", "kit", "new", "thing"],
        cwd=pack,
        stdin=side,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.write(main, "".join(f"{answer}\n" for answer in answers).encode())
        out, err = process.communicate(timeout=60)
    os.close(main)
    os.close(side)

    assert process.returncode == 0, err
    assert "size" in err, "the wrong type is told, and asked for again"
    assert "API group [mine.example.org]" in out + err
    xrd = yaml.safe_load((pack / "gitops/apis/thing/definition.yaml").read_text())
    assert (xrd["spec"]["names"]["kind"], xrd["spec"]["scope"]) == ("XThing", "Namespaced")
    fields = xrd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert fields["properties"]["size"] == {"type": "integer", "description": "Size.", "default": 3}


@dataclass(frozen=True)
class Refused:
    reason: str
    arguments: tuple[str, ...]
    code: int
    says: str


REFUSED = [
    Refused("the kit is there", ("new", "first", "--no-input"), 4, "has a kit 'first'"),
    Refused("files are in its place", ("new", "stray", "--no-input"), 4, "stations/stray exists"),
    Refused("no name", ("new", "My_Kit", "--no-input"), 2, "'My_Kit'"),
    Refused("a field of no type", ("new", "a", "--field=b:c", "--no-input"), 2, "is none of"),
    Refused(
        "a kit defines the kind",
        ("import", "gitops/apis/first/definition.yaml", "--name=second"),
        2,
        "'XFirst.mine.example.org' is defined by kit first already",
    ),
    Refused(
        "no XRD", ("import", "composition.yaml"), 2, "must hold one XRD, and holds 1 Composition"
    ),
    Refused("no file", ("import", "nowhere.yaml"), 1, "nowhere.yaml cannot be read"),
    Refused("nothing to import", ("import",), 2, "give XRD.yaml"),
    Refused("an XRD that no server takes", ("import", "broken.yaml"), 2, "would be refused"),
    Refused("an XRD in pieces", ("import", "pieces.yaml"), 2, "is no whole XRD: spec.names"),
    Refused(
        "a field that is none",
        ("import", "whole.yaml", "--not-secret=storage.size"),
        2,
        "--not-secret: 'storage.size' is not a field of the XRD",
    ),
    Refused("a file where a folder goes", ("new", "third", "--no-input"), 1, "docs/kits"),
    Refused("no cluster", ("import", "--from-cluster=x", "--kubeconfig=none"), 2, "none"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.reason)
def test_what_is_refused_leaves_the_pack_as_it_was(
    case: Refused, orderkit: Orderkit, pack: Path, pack_with_a_kit: Path
) -> None:
    shutil.copytree(pack_with_a_kit, pack, dirs_exist_ok=True)
    (pack / "stations/stray").mkdir()
    (pack / "stations/stray/station.py").write_text("")
    (pack / "composition.yaml").write_text(FOREIGN)
    (pack / "broken.yaml").write_text(XRD.replace("type: integer", "type: number2"))
    (pack / "pieces.yaml").write_text(XRD.replace("names: {kind", "named: {kind"))
    (pack / "whole.yaml").write_text(XRD)
    if case.reason == "a file where a folder goes":
        shutil.rmtree(pack / "docs" / "kits")
        (pack / "docs" / "kits").write_text("")
    before = content(pack)

    refused = orderkit("kit", *case.arguments)

    assert case.says in refused.err
    assert refused.code == case.code
    assert content(pack) == before


def test_an_xrd_becomes_a_kit_with_a_station_to_start_from(orderkit: Orderkit, pack: Path) -> None:
    (pack.parent / "xrd.yaml").write_text(XRD)

    made = orderkit("kit", "import", "../xrd.yaml")

    assert made.code == 0, made.err
    assert "write what the kit is made of in stations/database/station.py" in made.out
    assert orderkit("kit", "check").code == 0
    text = (pack / "gitops/apis/database/definition.yaml").read_text()
    assert text.startswith("# Our databases.\n")
    assert "name: databases" in (pack / "gitops/apis/database/composition.yaml").read_text()
    expected = pack / "tests/kits/database/first-order/expected"
    resources = yaml.safe_load((expected / "resources.yaml").read_text())
    assert resources["settings"]["object"]["data"] == {
        "version": "15",
        "storage": '{"class": "fast", "sizeGb": 10}',
    }


def test_a_pipeline_of_others_is_delivered_and_formed_and_told(
    orderkit: Orderkit, pack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = (
        "apiVersion: pkg.crossplane.io/v1\nkind: Function\nmetadata: {name: function-kcl}\n"
        "spec: {package: registry.example.org/kcl:v0.1.0}\nstatus: {}\n"
    )
    (pack.parent / "all.yaml").write_text(f"{XRD}---\n{FOREIGN}---\n{function}")
    with (pack.parent / "all.yaml").open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        made = orderkit("kit", "import", "-", "--name", "db", "--json")

    assert made.code == 0, made.err
    assert any("step 'make' is function-kcl's" in line for line in made.json["next"])
    assert "gitops/functions/function-kcl.yaml" in made.json["written"]
    assert not (pack / "stations/db").exists()
    assert yaml.safe_load((pack / "gitops/functions/function-kcl.yaml").read_text())["spec"]
    assert orderkit("kit", "check").code == 0
    tested = orderkit("kit", "test")
    assert 'step "make": function-kcl runs in a cluster only' in tested.out
    assert (pack / "tests/kits/db/first-order/expected/files/manifests/xdatabase.yaml").is_file()


RULED = XRD.replace(
    "              required: [version, storage]",
    "              x-kubernetes-validations: [{rule: 'self.storage.sizeGb > 99'}]\n"
    "              required: [version, storage]",
)


def test_an_order_among_the_files_is_the_example(orderkit: Orderkit, pack: Path) -> None:
    spec = {"version": "15", "storage": {"class": "fast", "sizeGb": 120}}
    api = f"{yaml.safe_load(RULED)['spec']['group']}/v1"
    order = {"apiVersion": api, "kind": "XDatabase", "metadata": {"name": "a"}, "spec": spec}
    (pack.parent / "xrd.yaml").write_text(f"{RULED}---\n{yaml.safe_dump(order)}")

    made = orderkit("kit", "import", "../xrd.yaml", "--json")

    assert (made.code, made.json["scenarios"]) == (0, 1), made.err
    expected = pack / "tests/kits/database/first-order/expected"
    assert "sizeGb: 120" in (expected / "files/manifests/xdatabase.yaml").read_text()


def test_an_example_that_cannot_be_guessed_is_left_to_a_person(
    orderkit: Orderkit, pack: Path
) -> None:
    (pack.parent / "xrd.yaml").write_text(RULED)

    made = orderkit("kit", "import", "../xrd.yaml", "--json")

    assert made.code == 0, made.err
    assert made.json["scenarios"] == 0
    (line,) = [line for line in made.json["next"] if "scenario.yaml by hand" in line]
    assert "self.storage.sizeGb > 99" in line
    assert "examples" not in (pack / "templates/database/kit.yaml").read_text()
