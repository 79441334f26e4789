"""
What a real Argo CD says of an object with our checks: one table for all who judge.

``ground.argocd.health`` judges them for the embedded platform, the Lua of ``health_lua`` beside it
for Argo CD.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ground.argocd.health_lua import LAYER_LABEL
from ground.objects.kube_objects import Manifest

XR = "blog.opsbogus.dev/v1alpha1 XGarage"
XRD = "apiextensions.crossplane.io/v2 CompositeResourceDefinition"
REVISION = "apiextensions.crossplane.io/v1 CompositionRevision"
FUNCTION = "pkg.crossplane.io/v1 Function"
PROVIDER = "pkg.crossplane.io/v1 Provider"
OBJECT = "kubernetes.m.crossplane.io/v1alpha1 Object"
APPLICATION = "argoproj.io/v1alpha1 Application"
OLD, NEW = "registry.example.org/p:v1", "registry.example.org/p:v2"
RAN = {"syncResult": {"revision": "c1"}}


def live(kind: str, *conditions: str, generation: int = 2, **status: Any) -> Manifest:
    """An object with conditions written ``Type=Status[/Reason][@observedGeneration]``."""
    api_version, plain = kind.split()
    found = []
    for text in conditions:
        head, _, observed = text.partition("@")
        type_, _, state = head.partition("=")
        state, _, reason = state.partition("/")
        entry = {"type": type_, "status": state, "message": f"{type_} says {state}"}
        if reason:
            entry["reason"] = reason
        found.append({**entry, "observedGeneration": int(observed)} if observed else entry)
    body: dict[str, Any] = {"conditions": found, **status} if conditions or status else {}
    manifest = {
        "apiVersion": api_version,
        "kind": plain,
        "metadata": {"name": "x", "generation": generation},
    }
    return {**manifest, "status": body} if body else manifest


def package(*conditions: str, installed: str | None) -> Manifest:
    """A provider of which version 2 is wanted."""
    status: dict[str, Any] = {} if installed is None else {"currentIdentifier": installed}
    return {**live(PROVIDER, *conditions, **status), "spec": {"package": NEW}}


def layer(
    sync: str | None, phase: str | None = None, health: str = "Healthy", **more: Any
) -> Manifest:
    """An Application that others wait for, at commit c1."""
    status: dict[str, Any] = {"health": {"status": health}, **more}
    if sync:
        status["sync"] = {"status": sync, "revision": "c1"}
    if phase:
        status.setdefault("operationState", {**RAN, "message": f"op {phase}"})["phase"] = phase
    found = live(APPLICATION, **status)
    found["metadata"]["labels"] = {LAYER_LABEL: "apis"}
    return found


@dataclass(frozen=True)
class Case:
    reason: str
    manifest: Manifest
    status: str | None
    message: str = ""


CASES = [
    Case("a ConfigMap has no check", live("v1 ConfigMap"), None),
    Case("a Composition has no check", live("apiextensions.crossplane.io/v1 Composition"), None),
    Case("an Application without status is not assessed", live(APPLICATION), "Progressing"),
    Case(
        "an Application says itself how it is",
        live(APPLICATION, health={"status": "Degraded", "message": "bad"}),
        "Degraded",
        "bad",
    ),
    Case(
        "an Application with an unknown word",
        live(APPLICATION, health={"status": "Great"}),
        "Unknown",
        "Lua returned an invalid health status",
    ),
    Case(
        "an order's Application that cannot be read worsens nobody else",
        live(APPLICATION, sync={"status": "Unknown"}, health={"status": "Healthy"}),
        "Healthy",
    ),
    Case("a layer that was not looked at", layer(None), "Progressing", "not compared yet"),
    Case(
        "a layer whose files cannot be read calls itself healthy",
        layer("Unknown", conditions=[{"type": "ComparisonError", "message": "bad YAML"}]),
        "Progressing",
        "bad YAML",
    ),
    Case("a layer before its first sync", layer("OutOfSync"), "Progressing", "not applied yet"),
    Case("a layer that needs no sync", layer("Synced"), "Healthy"),
    Case("a layer that is being applied", layer("Synced", "Running"), "Progressing", "op Running"),
    Case("a layer that was applied", layer("Synced", "Succeeded"), "Healthy"),
    Case("a layer whose objects start", layer("Synced", "Succeeded", "Progressing"), "Progressing"),
    Case(
        "a layer from which something may not be pruned",
        layer("OutOfSync", "Succeeded"),
        "Healthy",
    ),
    Case(
        "a layer that Argo CD gave up on until the next commit",
        layer("OutOfSync", "Failed"),
        "Degraded",
        "op Failed",
    ),
    Case(
        "a layer whose newest commit is not begun",
        layer(
            "OutOfSync", "Failed", operationState={"syncResult": {"revision": "c0"}, "message": "m"}
        ),
        "Progressing",
        "a newer commit is not applied yet",
    ),
    Case("a failure that mended itself", layer("Synced", "Failed"), "Healthy"),
    Case("an XRD before Crossplane saw it", live(XRD), "Progressing"),
    Case("an established XRD", live(XRD, "Established=True@2"), "Healthy"),
    Case("an XRD whose CRD is still the old one", live(XRD, "Established=True@1"), "Progressing"),
    Case(
        "an XRD that is refused",
        live(XRD, "Established=False@2"),
        "Degraded",
        "Established says False",
    ),
    Case("a revision before Crossplane saw it", live(REVISION), "Progressing"),
    Case("a revision whose functions can", live(REVISION, "ValidPipeline=True"), "Healthy"),
    Case("a revision whose functions cannot", live(REVISION, "ValidPipeline=False"), "Degraded"),
    Case("a function before Crossplane saw it", live(FUNCTION), "Progressing"),
    Case("a function that is only installed", live(FUNCTION, "Installed=True"), "Progressing"),
    Case("a function that runs", live(FUNCTION, "Installed=True", "Healthy=True"), "Healthy"),
    Case(
        "a function that does not run may yet",
        live(FUNCTION, "Installed=True", "Healthy=False"),
        "Progressing",
        "Healthy says False",
    ),
    Case(
        "a provider that cannot be pulled is tried again",
        live(PROVIDER, "Installed=False/UnpackingPackage", "Healthy=False"),
        "Progressing",
        "Installed says False",
    ),
    Case(
        "a revision that waits for a person",
        live(PROVIDER, "Installed=False/InactivePackageRevision", "Healthy=True"),
        "Suspended",
    ),
    Case(
        "a package that somebody paused",
        live(PROVIDER, "Synced=False/ReconcilePaused", "Installed=True", "Healthy=True"),
        "Suspended",
        "Synced says False",
    ),
    Case(
        "a provider's new version is installed",
        package("Installed=True@2", "Healthy=True@2", installed=NEW),
        "Healthy",
    ),
    Case(
        "the version before is still healthy",
        package("Installed=True", "Healthy=True", installed=OLD),
        "Progressing",
        f"still installed: {OLD}",
    ),
    Case(
        "the conditions are of the version before",
        package("Installed=True@1", "Healthy=True@1", installed=NEW),
        "Progressing",
        "condition Installed is of an older generation",
    ),
    Case(
        "a provider config has no conditions",
        live("kubernetes.m.crossplane.io/v1alpha1 ClusterProviderConfig"),
        "Healthy",
    ),
    Case(
        "a provider config whose status only counts",
        live("gcp.m.upbound.io/v1beta1 ProviderConfig", users=3),
        "Healthy",
    ),
    Case("an Object before its provider saw it", live(OBJECT), "Progressing"),
    Case("an Object that is there", live(OBJECT, "Synced=True", "Ready=True"), "Healthy"),
    Case(
        "an Object of the older group",
        live("kubernetes.crossplane.io/v1alpha2 Object", "Synced=False"),
        "Degraded",
    ),
    Case("an order before Crossplane saw it", live(XR), "Progressing"),
    Case("an order with a status but no conditions", live(XR, stage="x"), "Progressing"),
    Case("an order that is ready", live(XR, "Synced=True@2", "Ready=True@2"), "Healthy"),
    Case(
        "an order that is being made",
        live(XR, "Synced=True@2", "Ready=False@2"),
        "Progressing",
        "Ready says False",
    ),
    Case(
        "an order whose pipeline fails",
        live(XR, "Synced=False@2", "Ready=True@1"),
        "Degraded",
        "Synced says False",
    ),
    Case(
        "an order that somebody paused",
        live(XR, "Synced=False/ReconcilePaused@2", "Ready=True@2"),
        "Suspended",
    ),
    Case(
        "a failure of an older generation is not a verdict yet",
        live(XR, "Synced=False@1"),
        "Progressing",
    ),
    Case("Ready keeps its last value", live(XR, "Synced=True@2", "Ready=True@1"), "Progressing"),
    Case(
        "a round that began before the change speaks for the change",
        live(XR, "Responsive=True@1", "Synced=True@2", "Ready=True@2"),
        "Progressing",
        "a round with the newest values has not begun yet",
    ),
    Case(
        "a round that began after the change",
        live(XR, "Responsive=True@2", "Synced=True@2", "Ready=True@2"),
        "Healthy",
    ),
    Case(
        "conditions without observedGeneration count",
        live(XR, "Synced=True", "Ready=True"),
        "Healthy",
    ),
]
