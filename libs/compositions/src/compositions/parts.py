"""
Name, label, order and protect the parts of an order, and say when they are ready.

`Parts` wraps a station's request and response. Its one list of dependencies (``uses``) decides
when a part is first created and, by Usages, in which order an end deletes.

`auto_ready` is a reimplementation ("twin") of function-auto-ready v0.7.0: it derives readiness from
the resources. It looks at every existing desired resource without a readiness and sets READY_TRUE
or nothing, never READY_FALSE. Not implemented: the CEL customisations behind the function's alpha
gate. It runs as a step's function, usually as the last one.

Stations import `Parts` from ``orderkit.stations``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from compositions.resource_builders import ProviderConfigRef
from compositions.station import Ready, StationRequest, StationResponse
from ground.names import LABEL_MAX
from ground.objects.kube_objects import Kind, Manifest, condition, dig, labels_of, metadata

__all__ = ["Parts", "Phase"]


Check = Callable[[Manifest], bool]


def auto_ready(request: StationRequest) -> StationResponse:
    """Mark ready resources; keep the readiness that earlier steps set."""
    response = StationResponse.to(request)
    for name, desired in response.desired.resources.items():
        observed = request.observed_resource(name)
        if desired.ready is Ready.UNSPECIFIED and observed is not None and is_ready(observed):
            desired.ready = Ready.TRUE
    return response


def is_ready(observed: Manifest) -> bool:
    """Judge an existing object by the check for its kind, otherwise by its condition Ready."""
    kind = Kind.of(observed)
    check = _CHECKS.get((kind.api_version, kind.kind))
    return check(observed) if check else _is_true(observed, "Ready")


def _is_true(manifest: Manifest, type_: str) -> bool:
    return (condition(manifest, type_) or {}).get("status") == "True"


def _status(manifest: Manifest, *path: str) -> Any:
    return dig(manifest, "status", *path)


def _exists(_: Manifest) -> bool:
    return True


def _service(manifest: Manifest) -> bool:
    if dig(manifest, "spec", "type") != "LoadBalancer":
        return True
    return bool(_status(manifest, "loadBalancer", "ingress"))


def _claim(manifest: Manifest) -> bool:
    return bool(_status(manifest, "phase") == "Bound")


def _pod(manifest: Manifest) -> bool:
    phase = _status(manifest, "phase")
    if phase == "Succeeded":
        return True
    always = dig(manifest, "spec", "restartPolicy", default="Always") == "Always"
    return bool(phase == "Running" and always and _is_true(manifest, "Ready"))


def _all_equal(manifest: Manifest, expected: Any, *fields: str) -> bool:
    """Return whether all status fields exist and equal `expected`."""
    status: Mapping[str, Any] = manifest.get("status") or {}
    # Kubernetes omits zeros, so zero is never ready
    return all(field in status and status[field] == expected for field in fields)


def _replicas(manifest: Manifest) -> Any:
    return dig(manifest, "spec", "replicas", default=1)


def _deployment(manifest: Manifest) -> bool:
    counts = _all_equal(manifest, _replicas(manifest), "updatedReplicas", "availableReplicas")
    return counts and _is_true(manifest, "Available")


def _stateful_set(manifest: Manifest) -> bool:
    counts = _all_equal(manifest, _replicas(manifest), "readyReplicas", "currentReplicas")
    return counts and _status(manifest, "currentRevision") == _status(manifest, "updateRevision")


def _daemon_set(manifest: Manifest) -> bool:
    scheduled = _status(manifest, "desiredNumberScheduled")
    return scheduled is not None and _all_equal(
        manifest, scheduled, "numberReady", "updatedNumberScheduled", "numberAvailable"
    )


def _replica_set(manifest: Manifest) -> bool:
    observed = _status(manifest, "observedGeneration") or 0
    current = observed >= dig(manifest, "metadata", "generation", default=0)
    available = _status(manifest, "availableReplicas") or 0
    failed = _is_true(manifest, "ReplicaFailure")
    return bool(current and not failed and available >= _replicas(manifest))


def _job(manifest: Manifest) -> bool:
    stopped = _is_true(manifest, "Failed") or _is_true(manifest, "Suspended")
    return _is_true(manifest, "Complete") and not stopped


def _cron_job(manifest: Manifest) -> bool:
    if dig(manifest, "spec", "suspend"):
        return True
    scheduled = _status(manifest, "lastScheduleTime")
    if not scheduled:
        return False
    if _status(manifest, "active"):
        return True
    succeeded = _status(manifest, "lastSuccessfulTime")
    return bool(succeeded) and _time(succeeded) >= _time(scheduled)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _autoscaler(manifest: Manifest) -> bool:
    return _is_true(manifest, "ScalingActive") or _is_true(manifest, "ScalingLimited")


def _ingress(manifest: Manifest) -> bool:
    return bool(_status(manifest, "loadBalancer", "ingress"))


_CHECKS: Mapping[tuple[str, str], Check] = {
    ("v1", "Namespace"): _exists,
    ("v1", "ConfigMap"): _exists,
    ("v1", "Secret"): _exists,
    ("v1", "ServiceAccount"): _exists,
    ("v1", "Service"): _service,
    ("v1", "PersistentVolumeClaim"): _claim,
    ("v1", "Pod"): _pod,
    ("apps/v1", "Deployment"): _deployment,
    ("apps/v1", "StatefulSet"): _stateful_set,
    ("apps/v1", "DaemonSet"): _daemon_set,
    ("apps/v1", "ReplicaSet"): _replica_set,
    ("batch/v1", "Job"): _job,
    ("batch/v1", "CronJob"): _cron_job,
    ("autoscaling/v1", "HorizontalPodAutoscaler"): _autoscaler,
    ("autoscaling/v2", "HorizontalPodAutoscaler"): _autoscaler,
    ("networking.k8s.io/v1", "Ingress"): _ingress,
}
"""Kinds with a check of their own. All others are judged by their condition Ready."""


Phase = Literal["Provisioning", "Ready", "Failed"]

WAITING = "orderkit.dev/waiting-parts"
"""Key of the context: the parts that wait, with what they wait for."""

USAGE_API = "protection.crossplane.io/v1beta1"
MESSAGE_MAX = 300

_READY_AS_SOON_AS_THEY_EXIST = {
    *("NetworkPolicy.networking.k8s.io", "ResourceQuota", "LimitRange"),
    *(f"{kind}.rbac.authorization.k8s.io" for kind in ("Role", "RoleBinding")),
    *(f"{kind}.rbac.authorization.k8s.io" for kind in ("ClusterRole", "ClusterRoleBinding")),
}
"""Kinds that function-auto-ready never judges."""


@dataclass(slots=True)
class Parts:
    """
    The parts of one order, in one station.

    Guaranteed: a part that exists is never dropped because something it depends on is missing or
    not ready. Nothing here is random; the same request gives the same parts.
    """

    request: StationRequest
    response: StationResponse
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of every part."""
    namespace: str = ""
    """The order's own Namespace, if its XR is cluster-scoped and these parts live in it."""
    after: Sequence[str] = ()
    """Parts that must exist before any of these is created; a later step may want them."""

    def name(self, part: str) -> str:
        """
        Return the name of a part's object.

        An existing object keeps its name. Else it is the part's own in the order's own Namespace,
        and ``<XR>-<part>`` everywhere else, at most 63 characters long.
        """
        observed_name = self.observed(part, "metadata", "name")
        if observed_name:
            return str(observed_name)
        text = part if self.namespace else f"{self.request.xr['metadata']['name']}-{part}"
        if len(text) <= LABEL_MAX:
            return text
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        return f"{text[: LABEL_MAX - 9].rstrip('-.')}-{digest}"

    def reference(self, part: str) -> dict[str, str]:
        """Return a reference to a part, for fields such as ``networkRef``."""
        return {"name": self.name(part)}

    def provider_config(self, part: str) -> ProviderConfigRef:
        """Return a reference to a part that is a namespaced ProviderConfig."""
        return ProviderConfigRef(self.name(part), "ProviderConfig")

    def want(
        self,
        part: str,
        manifest: Manifest,
        *,
        uses: Sequence[str] = (),
        needs: Sequence[str] = (),
        after: Sequence[str] = (),
        ready: bool | None = None,
    ) -> None:
        """
        Want a part, under its name and with the labels, as soon as what it depends on allows that.

        Name, namespace and labels that `manifest` has stay. An existing part is always wanted.

        Args:
            uses: Parts that must be ready before this one is created, and that an end must not
                delete while this one exists: a Usage protects each. Want them first.
            needs: Parts that must be ready before this one is created, without a Usage: an end may
                delete them first.
            after: Parts that must exist before this one is created, without a Usage.
            ready: None: function-auto-ready decides. It cannot judge every kind; those of
                Kubernetes without a status, ProviderConfigs and Usages count as ready here as soon
                as they exist.

        Raises:
            ValueError: Nobody wants one of these parts, or a Usage cannot protect it
                because one of the two is cluster-scoped and the other is not.
        """
        missing = [p for p in after if not self.exists(p)]
        missing += [p for p in (*uses, *needs) if not self.is_ready(p)]
        # one that exists is wanted whatever is missing: else Crossplane would delete it
        if not self.exists(part):
            self._check_wanted(part, missing)
            missing += [p for p in self.after if not self.exists(p)]
            if missing:
                context = {**self.response.context, WAITING: {**self.waiting, part: missing}}
                self.response.context = context
                return
        full_manifest = self._named(part, manifest)
        if ready is None and _needs_no_judge(full_manifest):
            ready = self.exists(part)
        self.response.want(part, full_manifest, ready=_READINESS[ready])
        for used_part in uses:
            self._protect(used_part, part, full_manifest)

    def _check_wanted(self, part: str, names: Sequence[str]) -> None:
        for name in names:
            if not self.exists(name) and name not in self.response.desired.resources | self.waiting:
                raise ValueError(f'part "{part}" depends on "{name}", which no station wants')

    def _named(self, part: str, manifest: Manifest) -> Manifest:
        meta = metadata(manifest)
        if not (meta.get("name") or meta.get("generateName")):
            meta = {"name": self.name(part), **meta}
        home = self.namespace or metadata(self.request.xr).get("namespace")
        if home and not meta.get("namespace"):
            meta = {**meta, "namespace": home}
        labels = {**self.labels, **labels_of(manifest)}
        return {**manifest, "metadata": {**meta, **({"labels": labels} if labels else {})}}

    def _protect(self, used_part: str, part: str, user: Manifest) -> None:
        """Want the Usage of a part by another, once both have names."""
        desired = self.response.desired.resources.get(used_part)
        used_object = self.request.observed_resource(used_part) or (
            desired.resource if desired else {}
        )
        name = self.observed(part, "metadata", "name") or metadata(user).get("name")
        if not metadata(used_object).get("name") or not name:
            return
        usage_part = f"usage-{used_part}-by-{part}"
        xr_namespace = metadata(self.request.xr).get("namespace") or ""
        used_namespace, user_namespace = (
            xr_namespace or metadata(object_).get("namespace") or ""
            for object_ in (used_object, user)
        )
        if bool(used_namespace) != bool(user_namespace):
            raise ValueError(
                f'part "{part}" uses "{used_part}", but only one of them has a namespace, and no '
                "Usage can protect that; write after=, and let the Namespace's end delete both"
            )
        of = {"name": metadata(used_object)["name"]}
        if used_namespace != user_namespace:
            of["namespace"] = used_namespace
        usage = {
            "apiVersion": USAGE_API,
            "kind": "Usage" if user_namespace else "ClusterUsage",
            "metadata": {"namespace": user_namespace} if user_namespace else {},
            "spec": {
                "of": {**_type_of(used_object), "resourceRef": of},
                "by": {**_type_of(user), "resourceRef": {"name": name}},
                "replayDeletion": True,
            },
        }
        full_manifest = self._named(usage_part, usage)
        self.response.want(usage_part, full_manifest, ready=_READINESS[self.exists(usage_part)])

    def observed(self, part: str, *path: str, default: Any = None) -> Any:
        """Return a value of an existing part, or `default` as soon as something is missing."""
        return dig(self.request.observed_resource(part), *path, default=default)

    def exists(self, part: str) -> bool:
        """Return whether a part exists."""
        return self.request.observed_resource(part) is not None

    def has_condition(self, part: str, *types: str) -> bool:
        """Return whether one of these conditions of an existing part is True."""
        manifest = self.request.observed_resource(part) or {}
        return any((condition(manifest, type_) or {}).get("status") == "True" for type_ in types)

    def is_ready(self, part: str) -> bool:
        """Return whether a part exists and is ready, by what stations or auto-ready say."""
        manifest = self.request.observed_resource(part)
        desired = self.response.desired.resources.get(part)
        if manifest is None:
            return False
        if desired and desired.ready is not Ready.UNSPECIFIED:
            return desired.ready is Ready.TRUE
        return is_ready(manifest)

    def connection(self, part: str, key: str) -> str:
        """Return a connection detail of an existing part; empty while the provider gave none."""
        resource = self.request.observed.resources.get(part)
        details = resource.connection_details if resource else {}
        return details.get(key, b"").decode()

    @property
    def waiting(self) -> dict[str, list[str]]:
        """The parts that wait, with the parts they wait for; of earlier steps, too."""
        return dict(self.response.context.get(WAITING) or {})

    def problems(self) -> dict[str, str]:
        """Return what providers report of wanted parts that they cannot bring about, by part."""
        texts = {part: self._problem(part) for part in sorted(self.response.desired.resources)}
        return {part: text for part, text in texts.items() if text}

    def _problem(self, part: str) -> str:
        manifest = self.request.observed_resource(part) or {}
        for type_ in ("Synced", "LastAsyncOperation"):
            state = condition(manifest, type_) or {}
            if state.get("status") == "False" and state.get("reason") != "ReconcilePaused":
                return str(state.get("message") or state.get("reason") or type_)[:MESSAGE_MAX]
        return ""

    def phase(self) -> Phase:
        """
        Return how far the order is, by what all steps up to now want.

        ``Failed``: a provider reports a problem. ``Ready``: every part is ready and none waits.
        """
        if self.problems():
            return "Failed"
        ready = all(self.is_ready(part) for part in self.response.desired.resources)
        return "Ready" if ready and not self.waiting else "Provisioning"


_READINESS = {None: Ready.UNSPECIFIED, True: Ready.TRUE, False: Ready.FALSE}


def _type_of(manifest: Manifest) -> dict[str, str]:
    return {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"]}


def _needs_no_judge(manifest: Manifest) -> bool:
    """Return whether an object is ready as soon as it exists, though auto-ready cannot see that."""
    group, _, _ = str(manifest["apiVersion"]).rpartition("/")
    kind = str(manifest["kind"])
    is_config = kind in {"ProviderConfig", "ClusterProviderConfig"}
    return is_config or f"{kind}.{group}".removesuffix(".") in _READY_AS_SOON_AS_THEY_EXIST
