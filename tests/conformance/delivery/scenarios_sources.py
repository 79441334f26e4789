"""Scenarios: which files of a folder are read, and which of them could choose another tool."""

from __future__ import annotations

from tests.conformance.delivery.builders import config_map
from tests.conformance.delivery.playing import scenario
from tests.conformance.delivery.stage import Content, Stage

PLAIN = {"include": "*.{yaml,yml,json}"}
TOOL_FILES: dict[str, Content] = {
    "manifests/kustomization.yaml": "namePrefix: x-\nresources: [a.yaml]\n",
    "manifests/Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n",
    "manifests/templates/b.yaml": config_map("b"),
    "manifests/c.jsonnet": "{apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: 'c'}}",
}


@scenario
def an_included_pattern(stage: Stage) -> None:
    """With a pattern, files of Kustomize, Helm and Jsonnet choose no tool and do nothing."""
    stage.push({"manifests/a.yaml": config_map("a", v="1"), **TOOL_FILES})
    stage.deliver(directory=PLAIN)
    stage.delivered()
    stage.holds("a", v="1")
    assert [stage.data(name) for name in ("b", "c", "x-a")] == [None, None, None]


@scenario
def an_excluded_pattern(stage: Stage) -> None:
    """``exclude`` wins over ``include``; a star matches slashes too."""
    stage.push(
        {
            "manifests/a.yaml": config_map("a", v="1"),
            "manifests/deep/b.yaml": config_map("b", v="1"),
            "manifests/deep/c.yml": config_map("c", v="1"),
        }
    )
    stage.deliver(directory={"recurse": True, "include": "*.yaml", "exclude": "d*/b.yaml"})
    stage.delivered()
    assert [stage.data(name) for name in ("a", "b", "c")] == [{"v": "1"}, None, None]


@scenario
def an_override_of_the_tool(stage: Stage) -> None:
    """Overrides in the folder cannot replace the tool that the Application names."""
    stage.push({"manifests/a.yaml": config_map("a", v="1")})
    stage.deliver(directory=PLAIN)
    stage.delivered()
    stage.step("Kustomize")
    override = "directory: null\nkustomize: {namePrefix: x-}\n"
    stage.push_and_refresh({"manifests/.argocd-source.yaml": override})
    stage.until(sync="Unknown", fault="multiple application sources", at="main")
    stage.holds("a", v="1")
    assert stage.data("x-a") is None
