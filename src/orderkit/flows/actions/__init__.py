"""
The scaffolder actions Orderkit runs itself, by id. One module per family.

Inputs and outputs are Backstage's; where an action of Backstage or CNOE *creates*, ours makes
*sure*, so that an interrupted task is finished by running it again.
"""

from orderkit.flows.actions.argocd import CNOE_CREATE_ARGOCD_APP
from orderkit.flows.actions.cataloging import CATALOG_FETCH, CATALOG_REGISTER, CATALOG_WRITE
from orderkit.flows.actions.context import Action
from orderkit.flows.actions.debugging import DEBUG_LOG, DEBUG_WAIT
from orderkit.flows.actions.fetchfile import FETCH_PLAIN_FILE, FETCH_TEMPLATE_FILE
from orderkit.flows.actions.fetching import FETCH_PLAIN, FETCH_TEMPLATE
from orderkit.flows.actions.kubernetes import CNOE_KUBERNETES_APPLY, CNOE_UTILS_SANITIZE
from orderkit.flows.actions.publishing import PUBLISH_GITEA
from orderkit.flows.actions.requesting import HTTP_BACKSTAGE_REQUEST
from orderkit.flows.actions.workspace import FS_DELETE, FS_READDIR, FS_RENAME

ACTIONS: dict[str, Action] = {
    action.id: action
    for action in (
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
        HTTP_BACKSTAGE_REQUEST,
        PUBLISH_GITEA,
    )
}
