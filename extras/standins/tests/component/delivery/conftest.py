"""
A small platform for delivery: an embedded cluster, real bare repositories, and Delivery itself.

Nothing assembles here: tests set the status of composite objects by hand, so that they decide when
a wave may go on. Polling is off unless a test turns it on, so that pushes are seen by `notify`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pygit2
import pytest
import yaml

from ground.names import RepoId
from ground.objects.kube_objects import (
    APP_PROJECT,
    APPLICATION,
    ARGOCD_NAMESPACE,
    CONFIG_MAP,
    XRD,
    Kind,
    Manifest,
    ObjectKey,
    dig,
)
from orderkit_standins.argocd import BareRepositories, EmbeddedArgoCD, argocd_crds
from orderkit_standins.cluster import EmbeddedCluster

FORGE = "http://127.0.0.1:7300"
DEADLINE_S = 90.0
NEVER_S = 3600.0
WIDGET = Kind("shop.example.org", "v1", "Widget")
"""Cluster-scoped, judged by conditions as composite resources are."""
ANYTHING = {
    "sourceRepos": ["*"],
    "destinations": [{"server": "*", "namespace": "*"}],
    "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
}
"""What an AppProject says that permits everything."""

T = TypeVar("T")


def crd(kind: Kind, *, scope: str = "Cluster") -> Manifest:
    """A definition that keeps every field and has a status subresource."""
    plural = f"{kind.kind.lower()}s"
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                        "properties": {"size": {"type": "integer", "maximum": 100}},
                    },
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.kind.lower(), "kind": kind.kind},
            "versions": [version],
        },
    }


def xrd(kind: Kind) -> Manifest:
    """Says that a kind is composite; nobody acts on it here."""
    return {
        "apiVersion": XRD.api_version,
        "kind": XRD.kind,
        "metadata": {"name": f"{kind.kind.lower()}s.{kind.group}"},
        "spec": {"group": kind.group, "names": {"kind": kind.kind}},
    }


def dump(*manifests: Manifest) -> str:
    """Write manifests as one YAML stream."""
    return yaml.safe_dump_all(manifests, sort_keys=False)


def config_map(name: str, *, wave: int | None = None, **data: str) -> Manifest:
    """A ConfigMap without namespace: it lands in the Application's destination."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **_annotated(wave)},
        "data": data,
    }


def widget(name: str, *, wave: int | None = None, **spec: Any) -> Manifest:
    """A custom object whose health the tests decide."""
    return {
        "apiVersion": WIDGET.api_version,
        "kind": WIDGET.kind,
        "metadata": {"name": name, **_annotated(wave)},
        "spec": spec,
    }


def _annotated(wave: int | None) -> dict[str, Any]:
    if wave is None:
        return {}
    return {"annotations": {"argocd.argoproj.io/sync-wave": str(wave)}}


def application(name: str, repo: str, path: str = "manifests", **changes: Any) -> Manifest:
    """
    An Application with automated prune and self-heal.

    `changes` replace parts: automated, options, retry, finalizers, annotations, recurse, project,
    destination, wave.
    """
    policy: dict[str, Any] = {
        "automated": changes.get("automated", {"prune": True, "selfHeal": True}),
        "syncOptions": changes.get("options", []),
    }
    if policy["automated"] is None:
        del policy["automated"]
    if "retry" in changes:
        policy["retry"] = changes["retry"]
    annotations = dict(changes.get("annotations", {}))
    if "wave" in changes:
        annotations["argocd.argoproj.io/sync-wave"] = str(changes["wave"])
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": name,
            "namespace": ARGOCD_NAMESPACE,
            "annotations": annotations,
            "finalizers": changes.get("finalizers", []),
        },
        "spec": {
            "project": changes.get("project", "default"),
            "source": {
                "repoURL": f"{FORGE}/{repo}.git",
                "targetRevision": changes.get("revision", "main"),
                "path": path,
                "directory": {"recurse": changes.get("recurse", False)},
            },
            "destination": {
                "server": "https://kubernetes.default.svc",
                "namespace": changes.get("destination", "default"),
            },
            "syncPolicy": policy,
        },
    }


def project(name: str, **rules: Any) -> Manifest:
    """An AppProject that permits everything but what `rules` say of it."""
    return {
        "apiVersion": APP_PROJECT.api_version,
        "kind": APP_PROJECT.kind,
        "metadata": {"name": name, "namespace": ARGOCD_NAMESPACE},
        "spec": {**ANYTHING, **rules},
    }


@dataclass
class Lab:
    """The platform of one test and what one does with it. Builders hang here, too."""

    widget_kind: ClassVar[Kind] = WIDGET
    application = staticmethod(application)
    project = staticmethod(project)
    config_map = staticmethod(config_map)
    widget = staticmethod(widget)
    dump = staticmethod(dump)
    crd = staticmethod(crd)

    root: Path
    cluster: EmbeddedCluster
    poll_s: float = NEVER_S
    delivery: EmbeddedArgoCD = field(init=False)
    sources: BareRepositories = field(init=False)

    def __post_init__(self) -> None:
        self.sources = BareRepositories(FORGE, self.root)
        self.delivery = self._made(self.poll_s)

    def restart(self, *, poll_s: float = NEVER_S) -> None:
        """Stop delivery and start a new one that knows nothing."""
        self.delivery.stop()
        self.delivery = self._made(poll_s)
        self.delivery.start()

    def _made(self, poll_s: float) -> EmbeddedArgoCD:
        return EmbeddedArgoCD(self.cluster, self.sources, look=self.cluster.shared, poll_s=poll_s)

    def push(
        self, repo: str, files: Mapping[str, str | None], *, tell: bool = True, branch: str = "main"
    ) -> str:
        """Commit files (None removes one) on top of the branch and report the push."""
        folder = self.root / f"{repo}.git"
        if not folder.exists():
            pygit2.init_repository(str(folder), bare=True, initial_head="main")
        repository = pygit2.Repository(str(folder))
        reference = f"refs/heads/{branch}"
        parents = []
        index = pygit2.Index()
        if reference in repository.references:
            parents = [repository.references[reference].target]
            index.read_tree(repository[parents[0]].peel(pygit2.Tree))
        for path, text in files.items():
            if text is None:
                index.remove(path)
            else:
                blob = repository.create_blob(text.encode())
                index.add(pygit2.IndexEntry(path, blob, pygit2.enums.FileMode.BLOB))
        tree = index.write_tree(repository)
        who = pygit2.Signature("a", "a@example.org")
        commit = repository.create_commit(reference, who, who, "change", tree, parents)
        repository.free()
        if tell:
            owner, name = repo.split("/")
            self.delivery.notify(RepoId(owner, name))
        return str(commit)

    def apply(self, *manifests: Manifest) -> None:
        """Apply objects as a person would."""
        for manifest in manifests:
            self.cluster.apply(manifest, owner="kubectl")

    def app(self, name: str) -> Manifest:
        """Return an Application, or an empty object when it is gone."""
        return self.cluster.get(app_key(name)) or {}

    def patch_app(self, name: str, patch: Manifest) -> None:
        """Merge a patch into an Application as a person would."""
        self.cluster.patch(app_key(name), patch, owner="kubectl")

    def refresh(self, name: str, kind: str = "normal") -> None:
        """Ask for a refresh and wait until it is done."""
        annotation = "argocd.argoproj.io/refresh"
        self.patch_app(name, {"metadata": {"annotations": {annotation: kind}}})
        self.wait(
            f"refresh of {name}",
            lambda: annotation not in (dig(self.app(name), "metadata", "annotations") or {}),
        )

    def get(self, kind: Kind, name: str, namespace: str = "") -> Manifest | None:
        """Return an object or None."""
        return self.cluster.get(ObjectKey(kind, name, namespace))

    @staticmethod
    def key(kind: Kind, name: str, namespace: str = "default") -> ObjectKey:
        """Return the key of an object in namespace default."""
        return ObjectKey(kind, name, namespace)

    def map_data(self, name: str, namespace: str = "default") -> dict[str, str] | None:
        """Return the data of a ConfigMap, or None when it is not there."""
        found = self.get(CONFIG_MAP, name, namespace)
        return None if found is None else found.get("data", {})

    def has_data(self, config_map_name: str, **data: str) -> bool:
        """Say whether a ConfigMap in namespace default holds exactly this."""
        return self.map_data(config_map_name) == data

    def set_conditions(self, kind: Kind, name: str, **states: str) -> None:
        """Give an object Crossplane's conditions, all of its current generation."""
        live = self.get(kind, name)
        assert live is not None
        generation = live["metadata"]["generation"]
        conditions = [
            {"type": type_, "status": state, "observedGeneration": generation, "message": "told so"}
            for type_, state in states.items()
        ]
        key = ObjectKey.of(live)
        self.cluster.patch(key, {"status": {"conditions": conditions}}, owner="test", status=True)

    def wait(self, what: str, look: Callable[[], T]) -> T:
        """Wait until `look` returns something true and return it."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            found = look()
            if found:
                return found
            time.sleep(0.005)
        apps = self.cluster.list(APPLICATION).items
        state = {app["metadata"]["name"]: app.get("status", {}) for app in apps}
        raise AssertionError(f"not within {DEADLINE_S} s: {what}\n{yaml.safe_dump(state)}")

    def wait_synced(self, name: str, commit: str) -> Manifest:
        """Wait until an Application is delivered at a commit, as flows understand it."""
        return (
            self.wait(
                f"{name} delivered at {commit[:8]}",
                lambda: app if is_delivered(app := self.app(name), commit) else None,
            )
            or {}
        )

    def wait_condition(self, name: str, type_: str, text: str = "") -> str:
        """Wait for a condition whose message holds `text`; return the message."""
        return self.wait(f"{type_} of {name}", lambda: self._message(name, type_, text))

    def _message(self, name: str, type_: str, text: str) -> str:
        for one in dig(self.app(name), "status", "conditions", default=()):
            if one["type"] == type_ and text in one["message"]:
                return str(one["message"])
        return ""

    def operation(self, name: str) -> dict[str, Any]:
        """Return the operation's state."""
        found: dict[str, Any] = dig(self.app(name), "status", "operationState", default={})
        return found


def is_delivered(app: Manifest, commit: str) -> bool:
    """Synced at the commit by a succeeded operation that is over."""
    status = dig(app, "status", default={})
    return (
        dig(status, "sync", "status") == "Synced"
        and dig(status, "sync", "revision") == commit
        and dig(status, "operationState", "phase") == "Succeeded"
        and dig(status, "operationState", "syncResult", "revision") == commit
        and "operation" not in app
    )


def app_key(name: str) -> ObjectKey:
    return ObjectKey(APPLICATION, name, ARGOCD_NAMESPACE)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A running platform with namespaces default and argocd, AppProject default and Widgets."""
    cluster = EmbeddedCluster(tmp_path / "cluster" / "cluster.sqlite")
    lab = Lab(tmp_path / "repos", cluster)
    lab.apply(*argocd_crds(), crd(WIDGET), crd(XRD), xrd(WIDGET))
    lab.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ARGOCD_NAMESPACE}})
    lab.apply(project("default"))
    lab.delivery.start()
    yield lab
    cluster.close()  # first: it ends the watches that a stop would wait for
    lab.delivery.stop()
