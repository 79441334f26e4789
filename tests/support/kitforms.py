"""Kits made of small XRDs, and what a filled-in form of theirs renders to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import yaml

from orderkit.core.kit.checked_kits import checked_kit
from orderkit.core.kit.form_values import read_settings, yaml_roots
from orderkit.core.kit.literals import YAML_PARAMETER
from orderkit.core.kit.model import Kit
from orderkit_workshop.generate.kit_files import generate
from softwaretemplates.render import SkeletonFile, render_data, render_tree
from softwaretemplates.template import Template, parse_template
from yamlfiles.manifests import parse_manifests

BAKED = {"forge_host": "forge.example.org", "pack_commit": "a" * 40}


def xrd_of(spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return an XRD of kind XThing with this schema of ``spec``."""
    return {
        "apiVersion": "apiextensions.crossplane.io/v2",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": "xthings.example.org", **more},
        "spec": {
            "scope": "Cluster",
            "group": "example.org",
            "names": {"kind": "XThing", "plural": "xthings"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "referenceable": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {"spec": {"type": "object", **spec}},
                        }
                    },
                }
            ],
        },
    }


def kit_files(
    spec: dict[str, Any], kit: Mapping[str, Any] | str | None = None, **more: Any
) -> dict[PurePosixPath, bytes]:
    """Return the sources of a kit ``thing``: its XRD and, if given, its kit.yaml."""
    xrd = yaml.safe_dump(xrd_of(spec, **more), sort_keys=False)
    files = {PurePosixPath("gitops/apis/thing/definition.yaml"): xrd.encode()}
    if kit is not None:
        head = "apiVersion: orderkit.dev/v1alpha1\nkind: Kit\nmetadata: {name: thing}\n"
        text = (
            kit
            if isinstance(kit, str)
            else head + yaml.safe_dump({"spec": dict(kit)}, sort_keys=False)
        )
        files[PurePosixPath("templates/thing/kit.yaml")] = text.encode()
    return files


class Made:
    """A kit with its generated files."""

    def __init__(
        self, spec: dict[str, Any], kit: Mapping[str, Any] | None = None, **more: Any
    ) -> None:
        files = kit_files(spec, kit, **more)
        self.kit: Kit = checked_kit("thing", files)
        self.files = generate(files, self.kit)

    @property
    def template(self) -> Template:
        data = self.files[PurePosixPath("templates/thing/template.yaml")]
        return parse_template(data, name="template.yaml")

    @property
    def properties(self) -> dict[str, Any]:
        """The form's properties, by parameter."""
        return self.template.properties

    def answered(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values with what every form asks for."""
        own: dict[str, Any] = {
            name: "n1" if "name" in name else "ae86"
            for name in ("name", "order_name", "team", "order_team")
            if name in self.properties and name not in values
        }
        return {**BAKED, **own, **values}

    def skeleton(self) -> dict[str, bytes]:
        """Return the skeleton's files by their path in it."""
        root = PurePosixPath("templates/thing/skeleton")
        return {
            str(path.relative_to(root)): data
            for path, data in self.files.items()
            if path.is_relative_to(root)
        }

    def render(self, values: Mapping[str, Any]) -> dict[str, bytes]:
        """Fill the form in, write the order as the template does, and return its files."""
        template = self.template
        parameters = template.validate(self.answered(values))
        text = parameters.get(YAML_PARAMETER)
        read = {"spec": read_settings(self.kit, text, yaml_roots(self.kit))} if text else {}
        steps = {"settings": {"output": {"body": read}}} if text else {}
        scope = {"parameters": parameters, "user": {"ref": "user:default/eve"}, "steps": steps}
        fetch = next(step for step in template.steps if step.id == "fetch")
        found: Any = render_data(fetch.input["values"], scope, name="values")
        tree = {PurePosixPath(path): SkeletonFile(data) for path, data in self.skeleton().items()}
        return {str(path): file.data for path, file in render_tree(tree, found).items()}

    def xr(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the order's XR."""
        (found,) = parse_manifests("x.yaml", self.render(values)["manifests/xthing.yaml"])
        return found
