"""
Actions on the cluster: ``cnoe:kubernetes:apply``, ``argocd:create-resources`` and others.

``cnoe:kubernetes:apply`` and ``cnoe:utils:sanitize`` have the inputs of CNOE's actions. Applying is
server-side, with our own field manager and without force: repeating a step makes no second object,
and a field with another owner is a conflict. Without ``clusterName`` CNOE's action silently does
nothing; this one fails. A platform has one cluster, so the name is not looked up. An object without
a fixed name is refused, because every run would create another one.

``argocd:create-resources`` makes an AppProject and an Application in it, as Roadie's action does.
Roadie posts both to Argo CD's API, which keeps an object that says the same and refuses another
one. Here both are created in the cluster by the same rule, so a second run changes nothing, and
nothing that somebody else made is overwritten. The project allows one repository and one namespace.

``cnoe:create-argocd-app`` makes an Application as the CNOE reference implementation does. It writes
no ledger entry, so our templates do not use it; other packs may. The Application is applied, not
posted, so a second run with the same inputs changes nothing. The defaults are CNOE's: no target
revision, prune, self-heal and allowEmpty, ten retries, ``CreateNamespace=false``.
"""

from __future__ import annotations

from typing import Any

from ground.errors import AlreadyOrderedError, ConflictError, InvalidInputError, NotFoundError
from ground.names import check_label
from ground.objects.kube_objects import (
    APP_PROJECT,
    APPLICATION,
    ARGOCD_NAMESPACE,
    Kind,
    Manifest,
    ObjectKey,
)
from orderkit.flows.template.actions.action_context import (
    FLAG,
    MAP,
    TEXT,
    ActionContext,
    Inputs,
    Outputs,
    TemplateAction,
    inputs_schema,
    outputs_schema,
)
from orderkit.flows.template.actions.workspace_actions import target_path
from orderkit.ports.cluster import Cluster
from softwaretemplates.npm_yaml import dump
from yamlfiles.manifests import ManifestError, parse_manifests

FIELD_OWNER = "orderkit-scaffolder"
_SOURCES = ("manifestString", "manifestObject", "manifestPath")


def _apply(context: ActionContext, inputs: Inputs) -> Outputs:
    if not inputs.get("clusterName"):
        raise InvalidInputError(
            "clusterName",
            inputs.get("clusterName"),
            "is missing; CNOE's action would apply nothing and say so nowhere",
            hint="write clusterName: local",
        )
    manifests = [_checked(manifest, inputs) for manifest in _manifests(context, inputs)]
    for manifest in manifests:
        context.services.cluster.apply(manifest, owner=FIELD_OWNER, force=False)
        context.log(f"applied {_label(manifest)}")
    return {}


def _manifests(context: ActionContext, inputs: Inputs) -> tuple[Manifest, ...]:
    inputs_given = [name for name in _SOURCES if name in inputs]
    if len(inputs_given) != 1:
        raise InvalidInputError(
            "manifestString",
            inputs_given,
            "is not exactly one of the three inputs",
            hint=f"give one of {', '.join(_SOURCES)}",
        )
    if "manifestObject" in inputs:
        return (dict(inputs["manifestObject"]),)
    name, data = "manifestString", str(inputs.get("manifestString", "")).encode()
    if "manifestPath" in inputs:
        path = target_path(inputs["manifestPath"])
        if path not in context.workspace:
            raise NotFoundError(f"manifestPath: {path} is not in the workspace")
        name, data = str(path), context.workspace[path].data
    manifests = parse_manifests(name, data)
    if not manifests:
        raise InvalidInputError(inputs_given[0], "", "holds no object")
    return manifests


def _checked(manifest: Manifest, inputs: Inputs) -> Manifest:
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise InvalidInputError(
            "metadata.name",
            None,
            f"is missing in an object of kind {manifest.get('kind')}",
            hint="give it a name: with generateName every run would make another object",
        )
    try:
        Kind.of(manifest)
    except ValueError as error:
        raise ManifestError("manifestObject", str(error)) from error
    if inputs.get("namespaced") and not metadata.get("namespace"):
        return {**manifest, "metadata": {**metadata, "namespace": "default"}}
    return manifest


def _label(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    prefix = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{manifest['kind']} {prefix}{metadata['name']}"


def _sanitize(context: ActionContext, inputs: Inputs) -> Outputs:
    from yamlfiles import yaml12

    document = yaml12.load(inputs["document"].encode(), name="document")
    context.log("removed what is empty")
    return {"sanitized": dump(_cleaned(document))}


def _cleaned(value: Any) -> Any:
    """Drop null, empty maps and empty lists, including those that this makes empty."""
    if isinstance(value, dict):
        cleaned = {key: _cleaned(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if item not in (None, {}, [])}
    if isinstance(value, list):
        return [item for item in map(_cleaned, value) if item not in (None, {}, [])]
    return value


CNOE_KUBERNETES_APPLY = TemplateAction(
    "cnoe:kubernetes:apply",
    inputs_schema(
        ("namespaced",),
        manifestString=TEXT,
        manifestObject=MAP,
        manifestPath=TEXT,
        namespaced=FLAG,
        clusterName=TEXT,
    ),
    _apply,
    remote=True,
)
CNOE_UTILS_SANITIZE = TemplateAction(
    "cnoe:utils:sanitize",
    inputs_schema(("document",), document=TEXT),
    _sanitize,
    outputs_schema(sanitized=TEXT),
    dry_run=True,
)


ARGOCD_FIELD_OWNER = "orderkit"
FINALIZERS = ["resources-finalizer.argocd.argoproj.io"]
SERVER = "https://kubernetes.default.svc"
SYNC_POLICY: Manifest = {
    "automated": {"prune": True, "selfHeal": True, "allowEmpty": True},
    "retry": {"limit": 10, "backoff": {"duration": "5s", "factor": 2, "maxDuration": "5m"}},
    "syncOptions": ["CreateNamespace=false", "FailOnSharedResource=true", "ServerSideApply=true"],
}
"""CNOE's and Roadie's."""


def application(inputs: Inputs) -> Manifest:
    """Return the Application for checked inputs; ``appNamespace`` is the destination's."""
    name = check_label("appName", inputs["appName"])
    metadata: Manifest = {
        "name": name,
        "namespace": ARGOCD_NAMESPACE,
        "finalizers": FINALIZERS,
    }
    if inputs.get("labelValue"):
        metadata["labels"] = {"backstage-name": inputs["labelValue"]}
    return {
        "apiVersion": APPLICATION.api_version,
        "kind": APPLICATION.kind,
        "metadata": metadata,
        "spec": {
            "project": inputs["projectName"],
            "source": {"repoURL": inputs["repoUrl"], "path": inputs["path"]},
            "destination": {
                "server": SERVER,
                "namespace": inputs["appNamespace"],
            },
            "syncPolicy": SYNC_POLICY,
        },
    }


def _create_app(context: ActionContext, inputs: Inputs) -> Outputs:
    manifest = application(inputs)
    context.services.cluster.apply(manifest, owner=ARGOCD_FIELD_OWNER)
    context.log(f"Application {manifest['metadata']['name']} in {ARGOCD_NAMESPACE}")
    return {}


_APP_REQUIRED = ("repoUrl", "projectName", "appName", "argoInstance", "path", "appNamespace")
CNOE_CREATE_ARGOCD_APP = TemplateAction(
    "cnoe:create-argocd-app",
    inputs_schema(_APP_REQUIRED, **dict.fromkeys((*_APP_REQUIRED, "labelValue"), TEXT)),
    _create_app,
    remote=True,
)


def resources(inputs: Inputs) -> tuple[Manifest, Manifest]:
    """Return the AppProject and the Application for checked inputs."""
    name = check_label("appName", inputs["appName"])
    project = check_label("projectName", inputs.get("projectName") or name)
    namespace, repo_url = inputs["namespace"], inputs["repoUrl"]
    if namespace == ARGOCD_NAMESPACE:
        raise InvalidInputError(
            "namespace",
            namespace,
            "is Argo CD's own: whoever may push to the repository could make Applications of any"
            " project there",
            hint="choose the namespace of the workload",
        )
    destination = {"server": SERVER, "namespace": namespace}
    project_spec = {"destinations": [{"name": "local", **destination}], "sourceRepos": [repo_url]}
    application_spec = {
        "project": project,
        "destination": destination,
        "source": {"repoURL": repo_url, "path": inputs["path"]},
        "revisionHistoryLimit": 10,
        "syncPolicy": SYNC_POLICY,
    }
    labels = {"backstage-name": inputs.get("labelValue") or name}
    return (
        _manifest(APP_PROJECT, project, {}, project_spec),
        _manifest(APPLICATION, name, labels, application_spec),
    )


def _manifest(kind: Kind, name: str, labels: dict[str, str], spec: Manifest) -> Manifest:
    metadata: Manifest = {"name": name, "namespace": ARGOCD_NAMESPACE, "finalizers": FINALIZERS}
    metadata |= {"labels": labels} if labels else {}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
        "spec": spec,
    }


def _create(context: ActionContext, inputs: Inputs) -> Outputs:
    made = resources(inputs)
    for manifest in made:
        _check_other(context.services.cluster, manifest)  # both, before one is made
    for manifest in made:
        _ensure(context.services.cluster, manifest)
        context.log(f"{_shown(manifest)} in {ARGOCD_NAMESPACE}")
    return {}


def _ensure(cluster: Cluster, manifest: Manifest) -> None:
    if _check_other(cluster, manifest):
        return
    try:
        cluster.create(manifest, owner=FIELD_OWNER)
    except ConflictError:
        # somebody was faster, which is good if it says the same
        if not _check_other(cluster, manifest):
            raise


def _check_other(cluster: Cluster, manifest: Manifest) -> bool:
    """
    Say whether the object is there already.

    Raises:
        AlreadyOrderedError: There is one of that name which says something else.
    """
    metadata = manifest["metadata"]
    found = cluster.get(ObjectKey(Kind.of(manifest), metadata["name"], metadata["namespace"]))
    if found is None:
        return False
    if found.get("spec") == manifest["spec"]:
        return True
    raise AlreadyOrderedError(
        f"{_shown(manifest)} exists in {ARGOCD_NAMESPACE} and says something else",
        hint="choose another appName or projectName; Argo CD would refuse it too",
    )


def _shown(manifest: Manifest) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"


_REQUIRED = ("appName", "argoInstance", "namespace", "repoUrl", "path")
ARGOCD_CREATE_RESOURCES = TemplateAction(
    "argocd:create-resources",
    inputs_schema(_REQUIRED, **dict.fromkeys((*_REQUIRED, "labelValue", "projectName"), TEXT)),
    _create,
    remote=True,
)
