"""
Ways in which Argo CD does not deliver: how to bring each about, and when it shows.

``tests/e2e/test_delivery_reasons.py`` brings them about on a real Argo CD and writes down, when
asked to, the Applications that ``tests/unit/argocd/test_application_state.py`` judges without one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from deliveries import Delivery

from ground.objects.kube_objects import APP_PROJECT, ARGOCD_NAMESPACE, Manifest, dig

RECORDED = Path(__file__).parents[1] / "unit" / "argocd" / "applications"
OWNER = "test"
RETRY = {"limit": 1, "backoff": {"duration": "1s", "factor": 1, "maxDuration": "1s"}}
LONG_RETRY = {"limit": 5, "backoff": {"duration": "10m", "factor": 1, "maxDuration": "10m"}}
AUTOMATED = {"automated": {"prune": True, "selfHeal": True}}

Settled = Callable[[Manifest], object]


@dataclass(frozen=True)
class Fault:
    """One way; `arrange` gets the delivery and a namespace that exists."""

    name: str
    arrange: Callable[[Delivery, str], None]
    settled: Settled
    says: str = ""
    """Part of the reason we give; empty: nothing hinders the delivery."""
    advises: str = ""
    failing: bool = True


def config_map(name: str, value: Any = "1", **metadata: Any) -> str:
    """Return a ConfigMap as a file."""
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return yaml.safe_dump(manifest | {"data": {"value": value}})


def deployment(name: str, **metadata: Any) -> str:
    """Return a Deployment as a file: without its controller it is never healthy."""
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "none"}]}}
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, **metadata},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }
    return yaml.safe_dump(manifest)


def wave(number: int) -> dict[str, Any]:
    """Return metadata that puts an object into a wave."""
    return {"annotations": {"argocd.argoproj.io/sync-wave": str(number)}}


def hook(phase: str) -> dict[str, Any]:
    """Return metadata that makes an object a hook."""
    return {"annotations": {"argocd.argoproj.io/hook": phase}}


def has_condition(type_: str) -> Settled:
    """Wait until there is a condition of this type."""
    return lambda found: any(
        entry["type"] == type_ for entry in dig(found, "status", "conditions", default=())
    )


def operation(phase: str, words: str = "", *, retried: int = 0) -> Settled:
    """Wait for a phase of the operation, words of its message, and so many retries."""

    def holds(found: Manifest) -> bool:
        state = dig(found, "status", "operationState", default={})
        return (
            state.get("phase") == phase
            and words in state.get("message", "")
            and state.get("retryCount", 0) >= retried
        )

    return holds


def recorded(name: str) -> Manifest:
    """Return the Application that a fault left on a real Argo CD."""
    found: Manifest = json.loads((RECORDED / f"{name}.json").read_text())
    return found


def record(name: str, application: Manifest) -> None:
    """Write an Application down without what changes with every run."""
    RECORDED.mkdir(exist_ok=True)
    text = json.dumps(trimmed(application), indent=2, sort_keys=True) + "\n"
    (RECORDED / f"{name}.json").write_text(text)


def trimmed(application: Manifest) -> Manifest:
    """Return what a judge looks at, and a little more."""
    dropped = {"managedFields", "uid", "resourceVersion", "creationTimestamp", "generation"}
    metadata = {k: v for k, v in application["metadata"].items() if k not in dropped}
    left_out = {"controllerNamespace", "sourceType", "summary", "history", "resourceHealthSource"}
    status = {k: v for k, v in application["status"].items() if k not in left_out}
    if "comparedTo" in status.get("sync", {}):
        status["sync"] = {k: v for k, v in status["sync"].items() if k != "comparedTo"}
    kept = {
        k: v for k, v in application.items() if k in {"apiVersion", "kind", "spec", "operation"}
    }
    return {**kept, "metadata": metadata, "status": status}


def _plain(files: Mapping[str, str | None], **more: Any) -> Callable[[Delivery, str], None]:
    """Push files and deliver them, with `more` in the Application's spec."""

    def arrange(delivery: Delivery, namespace: str) -> None:
        delivery.push(files)
        delivery.deliver(namespace, **more)

    return arrange


def _source(**changed: str) -> Callable[[Delivery, str], None]:
    def arrange(delivery: Delivery, namespace: str) -> None:
        delivery.push({"a.yaml": config_map("a")})
        url = f"{delivery.forge.base_url}/{delivery.repository}.git"
        source = {"repoURL": url, "path": "manifests", "targetRevision": "main", **changed}
        delivery.deliver(namespace, source=source)

    return arrange


def _unlent(delivery: Delivery, namespace: str) -> None:
    """The same forge under a name for which Argo CD has no credentials."""
    url = f"{delivery.forge.base_url}/{delivery.repository}.git".replace("127.0.0.1", "localhost")
    _source(repoURL=url)(delivery, namespace)


def _missing_repository(delivery: Delivery, namespace: str) -> None:
    _source(repoURL=f"{delivery.forge.base_url}/{delivery.repository}-gone.git")(
        delivery, namespace
    )


def _project(**spec: Any) -> Callable[[Delivery, str], None]:
    """Deliver a Namespace and a ConfigMap in a project of its own that allows all but `spec`."""

    def arrange(delivery: Delivery, namespace: str) -> None:
        project = {
            "apiVersion": APP_PROJECT.api_version,
            "kind": APP_PROJECT.kind,
            "metadata": {"name": delivery.name, "namespace": ARGOCD_NAMESPACE},
            "spec": {
                "sourceRepos": ["*"],
                "destinations": [{"namespace": namespace, "server": "*"}],
                **spec,
            },
        }
        delivery.cluster.apply(project, owner=OWNER)
        extra = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{namespace}-x"}}
        delivery.push({"a.yaml": config_map("a"), "b.yaml": yaml.safe_dump(extra)})
        policy = {**AUTOMATED, "retry": LONG_RETRY}
        delivery.deliver(namespace, project=delivery.name, syncPolicy=policy)

    return arrange


def _emptied(delivery: Delivery, namespace: str) -> None:
    delivery.push({"a.yaml": config_map("a")})
    delivery.deliver(namespace)
    delivery.await_application(operation("Succeeded"))
    delivery.push({"a.yaml": None, ".gitkeep": ""})
    delivery.refresh()


def _shared(delivery: Delivery, namespace: str) -> None:
    """Two Applications deliver one object, and their repositories do not agree about it."""
    other = Delivery(delivery.forge, delivery.cluster, organisation=delivery.repository.owner)
    delivery.beside.append(other)
    other.push({"a.yaml": config_map("a", "other")})
    other.deliver(namespace)
    other.await_application(operation("Succeeded"))
    delivery.push({"a.yaml": config_map("a")})
    delivery.deliver(namespace, syncPolicy={})


def _denied(delivery: Delivery, namespace: str) -> None:
    """An admission policy refuses what is pushed."""
    policy = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": delivery.name}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    matching = {
        "resourceRules": [rule | {"resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }
    validation = {"expression": "object.data.value != '1'", "message": "no such team"}
    spec = {"matchConstraints": matching, "validations": [validation]}
    bound = {"policyName": delivery.name, "validationActions": ["Deny"]}
    kind = "ValidatingAdmissionPolicy"
    for manifest in ({"kind": kind, "spec": spec}, {"kind": f"{kind}Binding", "spec": bound}):
        delivery.cluster.apply({**policy, **manifest}, owner=OWNER)
    delivery.push({"a.yaml": config_map("a")})
    delivery.deliver(namespace, syncPolicy={**AUTOMATED, "retry": LONG_RETRY})


def _pinned(delivery: Delivery, namespace: str) -> None:
    """A bad commit is being retried when a good one comes."""
    delivery.push({"a.yaml": config_map("a", 1)})
    delivery.deliver(namespace, syncPolicy={**AUTOMATED, "retry": LONG_RETRY})
    delivery.await_application(operation("Running", retried=1))
    delivery.push({"a.yaml": config_map("a", "good")})
    delivery.refresh()


def _pinned_settled(found: Manifest) -> bool:
    state = dig(found, "status", "operationState", default={})
    pinned = dig(state, "operation", "sync", "revision")
    seen = dig(found, "status", "sync", "revision")
    return bool(pinned and seen and pinned != seen and state.get("phase") == "Running")


def _synced(found: Manifest) -> bool:
    return bool(dig(found, "status", "sync", "status") == "Synced")


_BROKEN = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n b: [\n"
_WIDGET = yaml.safe_dump(
    {"apiVersion": "lab.example.org/v1", "kind": "Widget", "metadata": {"name": "w"}}
)
TERMINATE = '{"status":{"operationState":{"phase":"Terminating"}}}'
AGAIN = '{"operation":{"sync":{"prune":true,'
_UNREADABLE = has_condition("ComparisonError")
_RETRIED, _SUCCEEDED = operation("Running", retried=1), operation("Succeeded")
_LONG = {"syncPolicy": {**AUTOMATED, "retry": LONG_RETRY}}
_SHORT = {"syncPolicy": {**AUTOMATED, "retry": RETRY}}
_TWO_WAVES = {"d.yaml": deployment("d", **wave(0)), "a.yaml": config_map("a", **wave(1))}
_HOOKED = {"a.yaml": config_map("a"), "h.yaml": deployment("h", **hook("PreSync"))}
_GOOD, _BAD = {"a.yaml": config_map("a")}, {"a.yaml": config_map("a", 1)}
_ELSEWHERE = {"a.yaml": config_map("a", namespace="nowhere")}
FAULTS = [
    Fault(
        "bad-yaml",
        _plain({"a.yaml": _BROKEN}),
        _UNREADABLE,
        "a.yaml is not valid YAML: ",
        "correct the file",
    ),
    Fault(
        "missing-path",
        _source(path="nowhere"),
        _UNREADABLE,
        "the repository has no folder nowhere",
        ".gitkeep",
    ),
    Fault(
        "missing-branch",
        _source(targetRevision="nope"),
        _UNREADABLE,
        "the repository has no branch or commit nope",
        "targetRevision",
    ),
    Fault(
        "missing-repository",
        _missing_repository,
        _UNREADABLE,
        "the repository does not exist, or",
        "repository secrets",
    ),
    Fault(
        "no-credentials",
        _unlent,
        _UNREADABLE,
        "private and Argo CD has no credentials",
        "repo-creds",
    ),
    Fault(
        "forge-down",
        _source(repoURL="http://127.0.0.1:1/lab/none.git"),
        _UNREADABLE,
        "the forge cannot be reached at http://127.0.0.1:1/",
        "whether the forge runs",
    ),
    Fault(
        "unknown-project",
        _plain(_GOOD, project="nobodys"),
        has_condition("InvalidSpecError"),
        "its AppProject nobodys does not exist",
        "the team's file",
    ),
    Fault(
        "forbidden-repository",
        _project(sourceRepos=["http://127.0.0.1:1/*"]),
        has_condition("InvalidSpecError"),
        "does not allow the repository http://",
        "organisation",
    ),
    Fault(
        "forbidden-namespace",
        _project(destinations=[{"namespace": "elsewhere", "server": "*"}]),
        has_condition("InvalidSpecError"),
        "does not allow the namespace lab-",
        "destinations",
    ),
    Fault(
        "forbidden-kind",
        _project(),
        _RETRIED,
        "does not allow objects of kind :Namespace (retry 1 of 5 of ",
        "take it out",
    ),
    Fault(
        "missing-crd",
        _plain({"w.yaml": _WIDGET}, **_LONG),
        _RETRIED,
        "the cluster does not know the kind Widget of lab.example.org",
        "kubectl get crd",
    ),
    Fault(
        "missing-namespace",
        _plain(_ELSEWHERE, **_LONG),
        _RETRIED,
        "the namespace nowhere does not exist (retry 1",
        "what makes it",
    ),
    Fault(
        "invalid-object",
        _plain(_BAD, **_LONG),
        _RETRIED,
        "cannot unmarshal number into Go struct field",
        "correct the file",
    ),
    Fault("denied", _denied, _RETRIED, "no such team", "as the message says"),
    Fault("exhausted", _plain(_BAD, **_SHORT), has_condition("SyncError"), "gave up on ", AGAIN),
    Fault("pinned", _pinned, _pinned_settled, " has to wait", TERMINATE),
    Fault(
        "waiting-wave",
        _plain(_TWO_WAVES),
        operation("Running", "healthy state of apps/Deployment/d"),
        "/d to become healthy, since 20",
        "without limit",
        failing=False,
    ),
    Fault(
        "waiting-hook",
        _plain(_HOOKED),
        operation("Running", "completion of hook"),
        "/h to complete, since 20",
        "without limit",
        failing=False,
    ),
    Fault(
        "emptied",
        _emptied,
        has_condition("SyncError"),
        "refuses to remove everything",
        "orderkit destroy",
    ),
    Fault(
        "by-hand",
        _plain(_GOOD, syncPolicy={}),
        lambda found: dig(found, "status", "sync", "status") == "OutOfSync",
        "auto-sync is off",
        AGAIN,
    ),
    Fault(
        "shared",
        _shared,
        has_condition("SharedResourceWarning"),
        "is delivered by more than one Application: ",
        "all of them but one",
    ),
    Fault("unrecognised", _plain({"a.yaml": "a: [\n  b: c\n"}), _synced),
    Fault("delivered", _plain(_GOOD), lambda found: _synced(found) and _SUCCEEDED(found)),
]
REPO_SERVER_DOWN = Fault(
    "repo-server-down",
    lambda delivery, _: delivery.refresh(),
    _UNREADABLE,
    "Argo CD's repo-server does not answer",
    "a refresh is needed",
)
"""Disturbs all others, so it is brought about alone, on an Application that was delivered."""
