"""
What a scenario can say: push, deliver, refresh, wait until, look, take the next step.

A scenario's objects live in a namespace of its own and its Applications carry its name, so that
many run at once on one cluster. Waits are the statements of a scenario: each names the state it
expects and fails with what was there instead.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import yaml
from tests.conformance.delivery import builders
from tests.conformance.delivery.account import Facts, Step, Vocabulary, account
from tests.conformance.delivery.builders import HOLD
from tests.conformance.delivery.eventlog import EventLog
from tests.conformance.delivery.repositories import Repositories

from ground.errors import ConflictError
from ground.names import RepoId
from ground.objects.kube_objects import (
    APP_PROJECT,
    APPLICATION,
    ARGOCD_NAMESPACE,
    CONFIG_MAP,
    NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
    annotations_of,
    dig,
    metadata,
)
from orderkit.ports.cluster import Cluster

REFRESH = "argocd.argoproj.io/refresh"
PERSON = "kubectl"
UNFINISHED = ("Running", "Terminating")
_NOT_OURS = frozenset({"kube-root-ca.crt"})
T = TypeVar("T")
Content = Manifest | str | None | Iterable[Manifest]


@dataclass(frozen=True, slots=True)
class Platform:
    """A deliverer on a cluster, and the watch that judges it."""

    name: str
    cluster: Cluster
    repositories: Repositories
    log: EventLog
    deadline_s: float
    look_s: float
    at_once: int
    """How many scenarios may run at the same time."""
    run: str = field(default_factory=lambda: f"x{secrets.token_hex(2)}")
    """Ends the name of whatever belongs to this run; never part of a word."""

    def again(self) -> Platform:
        """Return the same platform for another run; its names only begin as those of this one."""
        return replace(self, run=f"{self.run}a")


@dataclass(slots=True)
class Stage:
    """One scenario on one platform."""

    platform: Platform
    id: str
    steps: list[Step] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)
    _repos: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.apply(builders.namespace(self.id))
        self.step("begin")

    @property
    def cluster(self) -> Cluster:
        return self.platform.cluster

    def step(self, title: str) -> None:
        """Begin the next part of the account; call it when everything is quiet."""
        self.steps.append(Step(title, self.platform.log.version()))

    def account(self) -> Facts:
        """Tell what an independent watch saw of this scenario."""
        words = {commit: f"c{n}" for n, commit in enumerate(self.commits, 1)}
        base = f"{self.platform.repositories.url}/{self.platform.name}/{self.id}-"
        words |= {
            self.platform.run: "",
            base: "<forge>/",
            f"{self.id}-": "",
            self.id: "<namespace>",
        }
        return account(self.steps, self.platform.log.of(self._belongs), Vocabulary(words))

    def _belongs(self, manifest: Manifest) -> bool:
        meta = metadata(manifest)
        name, namespace = str(meta["name"]), meta.get("namespace", "")
        if name in _NOT_OURS or (Kind.of(manifest) == NAMESPACE and name == self.id):
            return False
        return self.id == namespace or name.startswith(f"{self.id}-")

    # Names ------------------------------------------------------------------------------------

    def own(self, name: str) -> str:
        """Return the full name of something that lives in no namespace of the scenario's."""
        return f"{self.id}-{name}"

    def url(self, repo: str) -> str:
        """Return the address of a repository of this scenario, there or not."""
        return f"{self.platform.repositories.url}/{self._repo(repo)}.git"

    def _repo(self, name: str) -> RepoId:
        return RepoId(self.platform.name, self.own(name))

    # Acts -------------------------------------------------------------------------------------

    def push(
        self, files: Mapping[str, Content], *, repo: str = "shop", branch: str = "main"
    ) -> str:
        """Commit files (None removes one) and return the commit."""
        if repo not in self._repos:
            self.platform.repositories.make(self._repo(repo))
            self._repos.add(repo)
        texts = {path: _text(content) for path, content in files.items()}
        commit = self.platform.repositories.commit(self._repo(repo), texts, branch=branch)
        self.commits.append(commit)
        return commit

    def tag(self, name: str, commit: str, *, repo: str = "shop") -> None:
        """Put a tag on a commit, or move it there."""
        self.platform.repositories.tag(self._repo(repo), name, commit)

    def application(self, name: str = "shop", *, repo: str = "shop", **changes: Any) -> Manifest:
        """Return an Application of this scenario (`builders.application`)."""
        destination = changes.pop("destination", self.id)
        return builders.application(self.own(name), self.url(repo), destination, **changes)

    def deliver(self, name: str = "shop", **changes: Any) -> None:
        """Apply an Application as a person would."""
        self.apply(self.application(name, **changes))

    def project(self, name: str, **spec: Any) -> str:
        """Apply an AppProject and return its full name."""
        self.apply(builders.project(self.own(name), **spec))
        return self.own(name)

    def apply(self, *manifests: Manifest) -> None:
        """Apply objects as a person would."""
        for manifest in manifests:
            self.cluster.apply(manifest, owner=PERSON)

    def push_and_refresh(self, files: Mapping[str, Content], *apps: str, repo: str = "shop") -> str:
        """Commit files and ask for a look at some Applications (``shop`` if none is named)."""
        commit = self.push(files, repo=repo)
        self.refresh(*(apps or ("shop",)))
        return commit

    def refresh(self, *names: str, kind: str = "normal") -> None:
        """Ask for a refresh and wait until it is done."""
        for name in names:
            self.patch_app(name, {"metadata": {"annotations": {REFRESH: kind}}})
        for name in names:
            self.wait(
                f"refresh of {name}",
                lambda name=name: REFRESH not in annotations_of(self.app(name)),  # type: ignore[misc]  # a default binds the loop variable
            )

    def patch_app(self, name: str, patch: Manifest) -> None:
        """Merge a patch into an Application as a person would."""
        self.cluster.patch(self.app_key(name), patch, owner=PERSON)

    def terminate(self, name: str = "shop") -> None:
        """
        End the running operation: ask until it is over or another one has begun.

        A controller that is just writing the next retry overwrites the wish (observed on
        Argo CD 3.2.11): one patch alone is lost now and then. The next operation can begin within
        the same second, which is all that ``startedAt`` tells: the wish names what it read.
        """
        begun = _identity(self.app(name))

        def over() -> bool:
            app = self.app(name)
            state = dig(app, "status", "operationState") or {}
            if _identity(app) != begun or state.get("phase") not in UNFINISHED:
                return True
            if state["phase"] == "Running":
                wish: Manifest = {"status": {"operationState": {"phase": "Terminating"}}}
                wish["metadata"] = {"resourceVersion": metadata(app)["resourceVersion"]}
                with suppress(ConflictError):  # the controller wrote: look again
                    self.patch_app(name, wish)
            return False

        self.wait(f"the end of {name}'s operation", over)

    def delete_app(self, name: str = "shop") -> None:
        """Delete an Application as a person would."""
        self.cluster.delete(self.app_key(name))

    def patch(self, kind: Kind, name: str, patch: Manifest, namespace: str | None = None) -> None:
        """Merge a patch into an object as a person would."""
        self.cluster.patch(self.key(kind, name, namespace), patch, owner=PERSON)

    def delete(self, kind: Kind, name: str, namespace: str | None = None) -> None:
        """Delete an object as a person would."""
        self.cluster.delete(self.key(kind, name, namespace))

    def release(self, kind: Kind, name: str) -> None:
        """Let an object go that was `builders.held`."""
        self.wait(f"{name} released", lambda: self._try_release(self.key(kind, name)))

    def _try_release(self, key: ObjectKey) -> bool:
        meta = metadata(self.cluster.get(key) or {})
        if HOLD not in meta.get("finalizers", ()):
            return True
        kept = [one for one in meta["finalizers"] if one != HOLD]
        patch = {"metadata": {"finalizers": kept, "resourceVersion": meta["resourceVersion"]}}
        with suppress(ConflictError):  # the garbage collector removes its own at the same time
            self.cluster.patch(key, patch, owner=PERSON)
        return False

    def conditions(
        self, kind: Kind, name: str, namespace: str | None = None, **states: str
    ) -> None:
        """Give an object Crossplane's conditions, all of its current generation."""
        live = self.get(kind, name, namespace)
        assert live is not None, f"{kind}/{name} is not there"
        found = [
            {
                "type": type_,
                "status": state,
                "observedGeneration": metadata(live)["generation"],
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "reason": "Told",
                "message": "told so",
            }
            for type_, state in states.items()
        ]
        self.cluster.patch(
            ObjectKey.of(live), {"status": {"conditions": found}}, owner="suite", status=True
        )

    def ready(self, kind: Kind, name: str, namespace: str | None = None) -> None:
        """Wait for an object and make it healthy."""
        self.there(kind, name, namespace)
        self.conditions(kind, name, namespace, Synced="True", Ready="True")

    # Looks ------------------------------------------------------------------------------------

    def key(self, kind: Kind, name: str, namespace: str | None = None) -> ObjectKey:
        """Return the key of an object in the scenario's namespace (cluster-scoped: ``""``)."""
        return ObjectKey(kind, name, self.id if namespace is None else namespace)

    def app_key(self, name: str) -> ObjectKey:
        return ObjectKey(APPLICATION, self.own(name), ARGOCD_NAMESPACE)

    def project_key(self, name: str) -> ObjectKey:
        return ObjectKey(APP_PROJECT, self.own(name), ARGOCD_NAMESPACE)

    def app(self, name: str = "shop") -> Manifest:
        """Return an Application, or an empty object when it is gone."""
        return self.cluster.get(self.app_key(name)) or {}

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> Manifest | None:
        return self.cluster.get(self.key(kind, name, namespace))

    def data(self, name: str, namespace: str | None = None) -> dict[str, str] | None:
        """Return the data of a ConfigMap, or None when it is not there."""
        found = self.get(CONFIG_MAP, name, namespace)
        return None if found is None else found.get("data") or {}

    def operation(self, name: str = "shop") -> dict[str, Any]:
        """Return the state of an Application's operation."""
        found: dict[str, Any] = dig(self.app(name), "status", "operationState") or {}
        return found

    def resource_states(self, name: str = "shop") -> dict[str, str]:
        """Return what an Application says of its objects, by their names."""
        found = dig(self.app(name), "status", "resources") or ()
        return {one["name"]: one.get("status", "") for one in found}

    # Waits ------------------------------------------------------------------------------------

    def wait(self, what: str, look: Callable[[], T]) -> T:
        """Wait until `look` returns something true and return it."""
        deadline = time.monotonic() + self.platform.deadline_s
        while not (found := look()):
            assert time.monotonic() < deadline, self._in_vain(what)
            time.sleep(self.platform.look_s)
        return found

    def _in_vain(self, what: str) -> str:
        apps = self.cluster.list(APPLICATION).items
        mine = [app for app in apps if metadata(app)["name"].startswith(f"{self.id}-")]
        state = {app["metadata"]["name"]: _short(app) for app in mine}
        return f"{self.platform.name}: not in time: {what}\n{yaml.safe_dump(state)}"

    def there(self, kind: Kind, name: str, namespace: str | None = None) -> None:
        self.wait(f"{kind.kind}/{name}", lambda: self.get(kind, name, namespace) is not None)

    def gone(self, kind: Kind, name: str, namespace: str | None = None) -> None:
        self.wait(f"{kind.kind}/{name} gone", lambda: self.get(kind, name, namespace) is None)

    def app_gone(self, name: str = "shop") -> None:
        self.wait(f"{name} gone", lambda: not self.app(name))

    def holds(self, name: str, **data: str) -> None:
        """Wait until a ConfigMap has exactly this data."""
        self.wait(f"ConfigMap/{name} {data}", lambda: self.data(name) == data)

    def until(self, name: str = "shop", **wanted: Any) -> Manifest:
        """
        Wait until an Application is as wanted and return it.

        Args:
            wanted: sync, health, phase: the words. at: the compared revision. done: the revision
                the last operation worked at. says: in the operation's message. fault: in
                ``type: message`` of a condition; None: no condition. refused: in a result.
        """
        last: list[Manifest] = [{}]

        def look() -> bool:
            last[0] = self.app(name)
            return not _unmet(last[0], wanted)

        self.wait(f"{name} {wanted}", look)
        return last[0]

    def retried(self, name: str = "shop") -> None:
        """Wait until an operation was tried twice more and waits for the next attempt."""
        before = int(self.operation(name).get("retryCount", 0))

        def look() -> bool:
            state = self.operation(name)
            waits = "Retrying attempt" in str(state.get("message"))
            return waits and int(state.get("retryCount", 0)) >= before + 2

        self.wait(f"{name} retried", look)

    def delivered(self, name: str = "shop", commit: str = "", **wanted: Any) -> Manifest:
        """Wait until an Application is synced at a commit by an operation that is over."""
        at = commit or self.commits[-1]
        usual = {"sync": "Synced", "at": at, "done": at, "phase": "Succeeded", "health": "Healthy"}
        return self.until(name, **{**usual, "fault": None, **wanted})


def _text(content: Content) -> str | None:
    if content is None or isinstance(content, str):
        return content
    many = [content] if isinstance(content, dict) else list(content)
    return yaml.safe_dump_all(many, sort_keys=False)


def _identity(app: Manifest) -> tuple[str | None, str | None]:
    """Return what tells one operation from the next: its start, to the second, and its revision."""
    state = dig(app, "status", "operationState") or {}
    return state.get("startedAt"), dig(state, "operation", "sync", "revision")


def _short(app: Manifest) -> Any:
    status = dict(app.get("status") or {})
    for noise in ("history", "controllerNamespace", "sourceHydrator", "summary"):
        status.pop(noise, None)
    return {"operation": app.get("operation"), "status": status}


def _unmet(app: Manifest, wanted: Mapping[str, Any]) -> list[str]:
    status = dig(app, "status") or {}
    state = dig(status, "operationState") or {}
    conditions = [f"{one['type']}: {one['message']}" for one in status.get("conditions") or ()]
    results = [one.get("message", "") for one in dig(state, "syncResult", "resources") or ()]
    plain = {
        "sync": dig(status, "sync", "status"),
        "health": dig(status, "health", "status"),
        "at": dig(status, "sync", "revision"),
        "phase": state.get("phase"),
        "done": dig(state, "syncResult", "revision"),
        "retries": state.get("retryCount", 0),
    }
    texts = {"says": [state.get("message", "")], "fault": conditions, "refused": results}
    unmet = [key for key, value in wanted.items() if key in plain and plain[key] != value]
    for key, found in texts.items():
        if key not in wanted:
            continue
        text = wanted[key]
        if (text is None and found) or (text is not None and not any(text in one for one in found)):
            unmet.append(key)
    if wanted.get("phase") in ("Succeeded", "Failed", "Error") and app.get("operation"):
        unmet.append("operation")
    return unmet
