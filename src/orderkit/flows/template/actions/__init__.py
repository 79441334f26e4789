"""
The scaffolder actions Orderkit runs itself, by id. One module per family.

Inputs and outputs are the same as in Backstage. Where an action of Backstage or CNOE *creates*,
ours *ensures*, so that running an interrupted task again finishes it.
"""

from orderkit.flows.template.actions.action_context import TemplateAction
from orderkit.flows.template.actions.cluster_actions import (
    ARGOCD_CREATE_RESOURCES,
    CNOE_CREATE_ARGOCD_APP,
    CNOE_KUBERNETES_APPLY,
    CNOE_UTILS_SANITIZE,
)
from orderkit.flows.template.actions.github_actions import (
    GITHUB_ACTIONS_DISPATCH,
    GITHUB_WEBHOOK,
)
from orderkit.flows.template.actions.portal_actions import (
    CATALOG_FETCH,
    CATALOG_REGISTER,
    CATALOG_WRITE,
    HTTP_BACKSTAGE_REQUEST,
)
from orderkit.flows.template.actions.propose_files import (
    PUBLISH_GITHUB_PULL_REQUEST,
    PUBLISH_GITLAB_MERGE_REQUEST,
)
from orderkit.flows.template.actions.publish_repository import (
    PUBLISH_GITEA,
    PUBLISH_GITHUB,
    PUBLISH_GITLAB,
)
from orderkit.flows.template.actions.workspace_actions import (
    DEBUG_LOG,
    DEBUG_WAIT,
    FETCH_PLAIN,
    FETCH_PLAIN_FILE,
    FETCH_TEMPLATE,
    FETCH_TEMPLATE_FILE,
    FS_DELETE,
    FS_READDIR,
    FS_RENAME,
)

ACTIONS: dict[str, TemplateAction] = {
    action.id: action
    for action in (
        ARGOCD_CREATE_RESOURCES,
        CATALOG_FETCH,
        CATALOG_REGISTER,
        CATALOG_WRITE,
        CNOE_CREATE_ARGOCD_APP,
        CNOE_KUBERNETES_APPLY,
        CNOE_UTILS_SANITIZE,
        DEBUG_LOG,
        DEBUG_WAIT,
        FETCH_PLAIN,
        FETCH_PLAIN_FILE,
        FETCH_TEMPLATE,
        FETCH_TEMPLATE_FILE,
        FS_DELETE,
        FS_READDIR,
        FS_RENAME,
        GITHUB_ACTIONS_DISPATCH,
        GITHUB_WEBHOOK,
        HTTP_BACKSTAGE_REQUEST,
        PUBLISH_GITEA,
        PUBLISH_GITHUB,
        PUBLISH_GITHUB_PULL_REQUEST,
        PUBLISH_GITLAB,
        PUBLISH_GITLAB_MERGE_REQUEST,
    )
}
