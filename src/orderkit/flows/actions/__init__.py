"""
The scaffolder actions Orderkit runs itself, by id. One module per family.

Inputs and outputs are Backstage's; where an action of Backstage or CNOE *creates*, ours makes
*sure*, so that an interrupted task is finished by running it again.
"""

from orderkit.flows.actions.argocd import CNOE_CREATE_ARGOCD_APP
from orderkit.flows.actions.cataloging import CATALOG_REGISTER
from orderkit.flows.actions.context import Action
from orderkit.flows.actions.fetching import FETCH_PLAIN, FETCH_TEMPLATE
from orderkit.flows.actions.publishing import PUBLISH_GITEA
from orderkit.flows.actions.requesting import HTTP_BACKSTAGE_REQUEST
from orderkit.flows.actions.workspace import DEBUG_LOG, FS_DELETE, FS_RENAME

ACTIONS: dict[str, Action] = {
    action.id: action
    for action in (
        CATALOG_REGISTER,
        CNOE_CREATE_ARGOCD_APP,
        DEBUG_LOG,
        FETCH_PLAIN,
        FETCH_TEMPLATE,
        FS_DELETE,
        FS_RENAME,
        HTTP_BACKSTAGE_REQUEST,
        PUBLISH_GITEA,
    )
}
