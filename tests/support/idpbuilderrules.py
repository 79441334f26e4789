"""
What idpbuilder makes of a folder, by its own rules (read from its source, release 0.10).

`packages` says which Applications it creates and which repositories it pushes; `custom_objects`
what ``-c argocd:FILE`` replaces. Both refuse what idpbuilder would pass over in silence. It is not
idpbuilder: that needs Docker.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_KINDS = {("argoproj.io", "Application"), ("argoproj.io", "ApplicationSet")}
_SCHEME = "cnoe://"


class RuleError(AssertionError):
    """A rule of idpbuilder's that the folder breaks."""


@dataclass(frozen=True)
class Package:
    """An Application as idpbuilder creates it, and what it pushed for it."""

    application: dict[str, Any]
    pushed: dict[str, Path]
    """Folders by the clone URL they are found at."""


def packages(folder: Path, *, gitea: str, cluster: str = "localdev") -> Iterator[Package]:
    """Yield what ``idpbuilder create -p folder`` creates."""
    for path in sorted(folder.iterdir()):  # not recursive
        if path.suffix not in {".yaml", ".yml"} or path.is_dir():
            continue
        documents = [found for found in yaml.safe_load_all(path.read_text()) if found]
        if len(documents) != 1:
            raise RuleError(f"{path.name}: only the first of {len(documents)} documents is read")
        kind = (documents[0]["apiVersion"].partition("/")[0], documents[0]["kind"])
        if kind not in _KINDS:
            raise RuleError(f"{path.name}: {kind[1]} is passed over")
        yield _package(documents[0], path.parent, gitea, cluster)


def _package(document: dict[str, Any], folder: Path, gitea: str, cluster: str) -> Package:
    application, pushed = copy.deepcopy(document), dict[str, Path]()
    spec = application["spec"]
    for source in [spec.get("source"), *spec.get("sources", ())]:
        url = str((source or {}).get("repoURL", ""))
        if not url.startswith(_SCHEME):
            continue
        target = folder / url.removeprefix(_SCHEME)
        if not target.is_dir():
            raise RuleError(f"{url}: no folder beside the package's file")
        name = application["metadata"]["name"]
        clone = f"{gitea}/giteaAdmin/idpbuilder-{cluster}-{name}-{target.name}.git"
        if clone in pushed:
            raise RuleError(f"{url}: two folders of this name go to one repository")
        pushed[clone] = target
        source["repoURL"] = clone
    return Package(application, pushed)


_BRACES = "{{`{{`}}"
"""How a Go template writes two braces."""


def custom_objects(file: Path, *, ships: set[tuple[str, str]] | None) -> list[dict[str, Any]]:
    """
    Return the objects of a file for ``-c``, which replace those that idpbuilder ships.

    Args:
        ships: Kind and name of the objects it ships; they carry no namespace. None: objects that
            replace none are wanted, too; idpbuilder adds them.
    """
    text = file.read_text()
    if ":" in str(file.name) or "{{" in text.replace(_BRACES, ""):
        raise RuleError("a colon in the name, or a Go template in the text")
    found = [each for each in yaml.safe_load_all(text.replace(_BRACES, "{{")) if each]
    for each in found:
        if "namespace" in each["metadata"]:
            raise RuleError("an object with a namespace replaces none: there would be two")
        if ships is not None and (each["kind"], each["metadata"]["name"]) not in ships:
            raise RuleError(f"{each['kind']} {each['metadata']['name']} is not shipped")
    return found
