"""Other people's kits that compose XRs: ``scripts/wild_kits.py`` measures or names them."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.wild_kits import Row, Walk, read_repository

from orderkit.adapters.folders.pack_folder import read_folder
from orderkit.cli.main import run
from orderkit.core.kit.pack import read_pack

KIND = """\
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {{name: x{name}s.example.org}}
spec:
  group: example.org
  names: {{kind: X{kind}, plural: x{name}s}}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      referenceable: true
      schema:
        openAPIV3Schema: {{type: object, properties: {{spec: {{type: object}}}}}}
---
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {{name: x{name}s}}
spec:
  compositeTypeRef: {{apiVersion: example.org/v1, kind: X{kind}}}
  mode: Pipeline
  pipeline:
    - step: make
      functionRef: {{name: function-patch-and-transform}}
      input:
        apiVersion: pt.fn.crossplane.io/v1beta1
        kind: Resources
        resources: [{{name: part, base: {base}}}]
    - step: ready
      functionRef: {{name: {judge}}}
---
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata: {{name: function-patch-and-transform}}
spec: {{package: xpkg.crossplane.io/crossplane-contrib/function-patch-and-transform:v0.9.0}}
"""
NET = "{apiVersion: example.org/v1, kind: XNet, spec: {}}"
MAP = "{apiVersion: v1, kind: ConfigMap, data: {a: b}}"
READY, UNKNOWN = "function-auto-ready", "function-of-nobody"


@pytest.mark.parametrize(
    ("judge", "row"), [(READY, {"nested": ["XNet"]}), (UNKNOWN, {"nested_failed": ["XNet"]})]
)
def test_a_composed_kind_is_imported_or_named_and_the_pack_stays_whole(
    tmp_path: Path, judge: str, row: Row
) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    work = tmp_path / "walk"
    work.mkdir()
    for name, base, last in (("app", NET, READY), ("net", MAP, judge)):
        text = KIND.format(name=name, kind=name.capitalize(), base=base, judge=last)
        (folder / f"{name}.yaml").write_text(text)
    assert run(["init", str(work / "pack"), "--no-git"]) == 0
    found = read_repository(folder)
    xrd = found.xrds[0]
    walk = Walk(found, xrd, found.compositions_of(xrd)[0], work, {})
    assert walk._imported(xrd, walk.composition, "thing", walk.row)  # noqa: SLF001 - a step of it

    walk._import_nested(read_pack(read_folder(walk.pack)).kit("thing"))  # noqa: SLF001 - as above

    kits = [kit.name for kit in read_pack(read_folder(walk.pack)).kits()]
    assert kits == ["thing", *(["part-2"] if judge == READY else [])]
    failed = [kind for kind, _ in walk.row.get("nested_failed", ())]
    assert (walk.row.get("nested", []), failed) == (
        row.get("nested", []),
        row.get("nested_failed", []),
    )
