"""
The service's operations, in the order in which the document shows them.

Routes (``service``), checks of requests (``request_pipeline``) and the OpenAPI document
(``openapi_schemas``) are made from it.
"""

from __future__ import annotations

from ground.shapes import json_schema
from orderkit.core.platform.webhook_key import PATH
from orderkit.web import (
    approval_handlers,
    change_handlers,
    end_handlers,
    health_handlers,
    messages,
    metrics,
    order_handlers,
    view_handlers,
)
from orderkit.web.approval_handlers import GateHandlers
from orderkit.web.end_handlers import EndRuns, get_preview
from orderkit.web.event_stream import MEDIA
from orderkit.web.openapi_schemas import (
    ACTIVITY_QUERY,
    DELIVERY,
    LABEL,
    LIMIT,
    ORDER_QUERY,
    POSITION,
    STATEMENT_QUERY,
    TEXT,
    named,
)
from orderkit.web.operations import ServiceOperation
from orderkit.web.webhook_handlers import PullPlans

_ORDER = "/v1/orders/{order}"


def operations() -> tuple[ServiceOperation, ...]:
    """Return every operation of a new service."""
    return (
        *_placing(),
        *_asking_before(),
        *_looking(),
        *_viewing(),
        *_changing(change_handlers.ChangeHandler()),
        *_deciding(),
        *approval_handlers.operations(_ORDER),
        *view_handlers.operations(),
        *_forms(),
        *end_handlers.operations(_ORDER),
        *_ending(EndRuns()),
        *_gates(GateHandlers()),
        *_hooks(PullPlans()),
        *_watching(),
    )


def _placing() -> tuple[ServiceOperation, ...]:
    return (
        ServiceOperation(
            "runTask",
            "POST",
            "/v1/tasks",
            "Run a template of the platform's pack for a portal; idempotent.",
            order_handlers.post_task,
            {
                200: ("The same order existed already.", named("TaskDone")),
                201: ("It is new.", named("TaskDone")),
                404: ("No such template or team.", named("Error")),
                409: ("The order exists with other values.", named("Error")),
            },
            "order",
            body=json_schema(messages.RunTask),
            slow=True,
            person=True,
        ),
        ServiceOperation(
            "registerOrder",
            "POST",
            "/v1/orders",
            "Register an order whose repository is published; idempotent.",
            order_handlers.post_order,
            {
                200: ("It was registered.", named("Registered")),
                201: ("It is new.", named("Registered")),
                404: ("No such team or repository.", named("Error")),
                409: ("The id belongs to another order.", named("Error")),
            },
            "order",
            body=json_schema(messages.Register),
        ),
        ServiceOperation(
            "readSettings",
            "POST",
            "/v1/kits/{kit}/settings",
            "Read the YAML of an order form for the template's steps. Nothing is written.",
            order_handlers.post_settings,
            {
                200: ("The part of the XR's spec that it sets.", named("Settings")),
                404: ("No such kit.", named("Error")),
            },
            "order",
            body=json_schema(messages.Settings),
        ),
    )


def _asking_before() -> tuple[ServiceOperation, ...]:
    return (
        ServiceOperation(
            "planOrder",
            "POST",
            "/v1/kits/{kit}/plan",
            "Return what an order of a kit would compose and cost. Nothing is written.",
            order_handlers.post_new_plan,
            {
                200: ("The plan.", named("Planned")),
                404: ("No such kit or team.", named("Error")),
                409: ("The order exists already.", named("Error")),
            },
            "order",
            body=json_schema(messages.PlanOrder),
            slow=True,
        ),
    )


def _looking() -> tuple[ServiceOperation, ...]:
    missing = {404: ("No such order.", named("Error"))}
    return (
        ServiceOperation(
            "listOrders",
            "GET",
            "/v1/orders",
            "List the orders of the caller's teams: all, or page by page.",
            order_handlers.list_orders,
            {
                200: ("The orders, by team and id unless sorted otherwise.", named("Orders")),
                404: ("No page begins at that cursor.", named("Error")),
            },
            "read",
            query=ORDER_QUERY,
        ),
        ServiceOperation(
            "streamOrders",
            "GET",
            "/v1/stream",
            "Stream changes of orders as Server-Sent Events: ready, order, gone, reload.",
            view_handlers.get_stream,
            {200: ("The events, until the stream ends: then connect again.", named("Event"))},
            "read",
            query={"team": LABEL, "kit": LABEL, "order": LABEL, "after": POSITION},
            resumes=True,
            media=MEDIA,
        ),
        ServiceOperation(
            "getOrder",
            "GET",
            _ORDER,
            "Show the state of one order, its commit and the reason.",
            order_handlers.get_order,
            {200: ("The order.", named("ListedOrder")), **missing},
            "read",
        ),
        ServiceOperation(
            "traceOrder",
            "GET",
            f"{_ORDER}/trace",
            "Show an order's tree and what fails first.",
            order_handlers.get_trace,
            {200: ("The tree.", named("Trace")), **missing},
            "read",
        ),
        ServiceOperation(
            "orderEvents",
            "GET",
            f"{_ORDER}/events",
            "List the cluster's events about an order and its parts, newest first.",
            order_handlers.get_events,
            {200: ("Its events.", named("Events")), **missing},
            "read",
            query={"limit": LIMIT},
        ),
    )


def _viewing() -> tuple[ServiceOperation, ...]:
    missing = {404: ("No such order.", named("Error"))}
    return (
        ServiceOperation(
            "viewOrder",
            "GET",
            f"{_ORDER}/view",
            "Show everything people want to see of an order, and what the caller may change.",
            view_handlers.get_view,
            {200: ("The order's view.", named("OrderView")), **missing},
            "read",
            slow=True,
        ),
        ServiceOperation(
            "revealOutputs",
            "POST",
            f"{_ORDER}/outputs",
            "Reveal secret outputs of an order to somebody who may change it.",
            view_handlers.post_outputs,
            {200: ("Their values; null: not there yet.", named("Revealed")), **missing},
            "change",
            body=json_schema(messages.Reveal),
            person=True,
        ),
        *view_handlers.kit_operations(),
        ServiceOperation(
            "listActivity",
            "GET",
            "/v1/activity",
            "Tell who did what to the orders of the caller's teams, and why, newest first.",
            view_handlers.get_activity,
            {200: ("By pages.", named("Activity")), 404: ("No such team.", named("Error"))},
            "read",
            query=ACTIVITY_QUERY,
            slow=True,
        ),
        ServiceOperation(
            "getTeam",
            "GET",
            "/v1/teams/{team}",
            "Show a team: members, limits, and its orders, those that fail first.",
            view_handlers.get_team,
            {200: ("The team.", named("Team")), 404: ("No such team.", named("Error"))},
            "read",
        ),
        ServiceOperation(
            "teamStatement",
            "GET",
            "/v1/teams/{team}/statement",
            "Compute what a team's orders cost in a period, from Git's history.",
            view_handlers.get_statement,
            {
                200: ("What each order cost.", named("Statement")),
                404: ("No such team or kit.", named("Error")),
            },
            "read",
            query=STATEMENT_QUERY,
            slow=True,
        ),
    )


def _changing(changes: change_handlers.ChangeHandler) -> tuple[ServiceOperation, ...]:
    missing = {404: ("No such order.", named("Error"))}
    return (
        ServiceOperation(
            "planChange",
            "POST",
            f"{_ORDER}/plan",
            "Return the plan of a change, down to composed resources. Nothing is written.",
            change_handlers.post_plan,
            {200: ("The plan.", named("Planned")), **missing},
            "read",
            body=json_schema(messages.PlanChange),
            slow=True,
        ),
        ServiceOperation(
            "orderHistory",
            "GET",
            f"{_ORDER}/history",
            "Show who changed what in an order, when and why, newest first.",
            change_handlers.get_history,
            {200: ("Its commits.", named("History")), **missing},
            "read",
            query={"limit": LIMIT},
        ),
        ServiceOperation(
            "changeOrder",
            "POST",
            f"{_ORDER}/changes",
            "Change fields of a live order through Git, as far as its kit allows.",
            changes.post,
            {
                200: ("Nothing was written: unchanged, planned, or done before.", named("Changed")),
                201: ("Committed, or proposed as a pull request.", named("Changed")),
                409: ("Somebody else changed a field; the answer has both values.", named("Error")),
                **missing,
            },
            "change",
            body=json_schema(messages.Change),
            slow=True,
            person=True,
            keyed=True,
        ),
    )


def _deciding() -> tuple[ServiceOperation, ...]:
    missing = {404: ("No such order.", named("Error"))}
    return (
        ServiceOperation(
            "revertCommit",
            "POST",
            f"{_ORDER}/reverts",
            "Take back what one commit did to an order, by another change.",
            change_handlers.post_revert,
            {
                200: ("Nothing was written: unchanged, planned, or done before.", named("Changed")),
                201: ("Committed, or proposed as a pull request.", named("Changed")),
                409: ("Somebody changed a field again since; the answer has it.", named("Error")),
                **missing,
            },
            "change",
            body=json_schema(messages.Revert),
            slow=True,
            person=True,
            keyed=True,
        ),
        ServiceOperation(
            "mergePull",
            "POST",
            f"{_ORDER}/pulls/{{number}}/merge",
            "Merge a pull request that somebody else has approved on the forge; idempotent.",
            change_handlers.post_merge,
            {
                200: ("It is merged.", named("Merged")),
                409: ("Somebody pushed to it meanwhile, or it was closed.", named("Error")),
                **missing,
            },
            "change",
            body=json_schema(messages.Body),
            slow=True,
            person=True,
        ),
    )


def _forms() -> tuple[ServiceOperation, ...]:
    answers = {
        302: ("The portal's form, filled in.", None),
        404: ("No such order or change, or it needs authentication.", named("Error")),
        410: ("The order has ended.", named("Error")),
    }
    return (
        ServiceOperation(
            "changeForm",
            "GET",
            f"{_ORDER}/changes/{{change}}/form",
            "Redirect a browser to the portal's form of a change, filled in from Git.",
            change_handlers.get_change_form,
            answers,
            None,
            optional=True,
            link=True,
        ),
        ServiceOperation(
            "endForm",
            "GET",
            f"{_ORDER}/end/form",
            "Redirect a browser to the portal's form of the order's end.",
            change_handlers.get_end_form,
            answers,
            None,
            optional=True,
            link=True,
        ),
    )


def _ending(ends: EndRuns) -> tuple[ServiceOperation, ...]:
    missing = {404: ("No such order, or it is not ending.", named("Error"))}
    return (
        ServiceOperation(
            "endOrder",
            "POST",
            f"{_ORDER}/end",
            "End an order and verify that it is gone; a repetition continues an interrupted end.",
            ends.post,
            {
                200: ("It has ended.", named("End")),
                202: ("It is ending, or proposed; `status` says where to look.", named("End")),
                **missing,
            },
            "end",
            body=json_schema(messages.EndOrder),
            slow=True,
            person=True,
        ),
        ServiceOperation(
            "orderEnd",
            "GET",
            f"{_ORDER}/end",
            "Report the progress of an order's end.",
            ends.get,
            {200: ("How far it is.", named("End")), **missing},
            "read",
        ),
        ServiceOperation(
            "endPreview",
            "GET",
            f"{_ORDER}/end/preview",
            "Say what an order's end would leave, and what it may take along; nothing is written.",
            get_preview,
            {200: ("What stays.", named("EndPreview")), 404: missing[404]},
            "read",
        ),
    )


def _gates(desk: GateHandlers) -> tuple[ServiceOperation, ...]:
    return (
        ServiceOperation(
            "gate",
            "GET",
            "/v1/gates/{kit}/{name}",
            "Say whether the user of an XR may continue; only an exhausted budget is 402.",
            desk.get,
            {
                200: ("Yes.", named("Gate")),
                402: ("No: the budget is used up.", named("Gate")),
                404: ("No such kit, or it has no gate.", named("Error")),
                503: (
                    "The answer cannot be determined now, or the XR is paused for another reason.",
                    named("Error"),
                ),
            },
            "read",
            query={"namespace": LABEL},
        ),
    )


def _hooks(pulls: PullPlans) -> tuple[ServiceOperation, ...]:
    return (
        ServiceOperation(
            "giteaWebhook",
            "POST",
            PATH,
            "Accept a delivery of the forge's webhook; plan pull requests in the background.",
            pulls.post,
            {
                200: ("There is nothing to plan.", named("Taken")),
                202: ("It is planned.", named("Taken")),
                401: (
                    "The signature (X-Gitea-Signature, X-Hub-Signature-256) is missing or wrong.",
                    named("Error"),
                ),
            },
            None,
            body=DELIVERY,
            hook=True,
        ),
    )


def _watching() -> tuple[ServiceOperation, ...]:
    return (
        ServiceOperation(
            "alive",
            "GET",
            "/healthz",
            "Report that the process answers.",
            health_handlers.get_healthz,
            {200: ("It does.", TEXT)},
            None,
            inline=True,
            media="text/plain",
        ),
        ServiceOperation(
            "ready",
            "GET",
            "/readyz",
            "Report whether forge, cluster and signers answer, and the live model is complete.",
            health_handlers.Readiness(),
            {200: ("They do.", named("Ready")), 503: ("One does not.", named("Ready"))},
            None,
        ),
        ServiceOperation(
            "metrics",
            "GET",
            "/metrics",
            "Return the metrics in Prometheus' text format.",
            health_handlers.get_metrics,
            {200: ("The figures.", TEXT)},
            "observe",
            media=metrics.MEDIA,
        ),
    )
