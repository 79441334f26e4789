"""
``cnoe:create-argocd-app``: an Application, as the CNOE reference implementation makes it.

It writes no ledger entry, so our templates do not use it; other packs may. The Application is
applied, not posted, so a second run with the same inputs changes nothing. The defaults are CNOE's:
no target revision, prune, self-heal and allowEmpty, ten retries, ``CreateNamespace=false``.
"""

from __future__ import annotations

from ground.names import check_label
from ground.objects.kube_objects import APPLICATION, ARGOCD_NAMESPACE, Manifest
from orderkit.flows.template.actions.action_context import (
    TEXT,
    ActionContext,
    Inputs,
    Outputs,
    TemplateAction,
    inputs_schema,
)

FIELD_OWNER = "orderkit"
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


def _create(context: ActionContext, inputs: Inputs) -> Outputs:
    manifest = application(inputs)
    context.services.cluster.apply(manifest, owner=FIELD_OWNER)
    context.log(f"Application {manifest['metadata']['name']} in {ARGOCD_NAMESPACE}")
    return {}


_REQUIRED = ("repoUrl", "projectName", "appName", "argoInstance", "path", "appNamespace")
CNOE_CREATE_ARGOCD_APP = TemplateAction(
    "cnoe:create-argocd-app",
    inputs_schema(_REQUIRED, **dict.fromkeys((*_REQUIRED, "labelValue"), TEXT)),
    _create,
    remote=True,
)
