"""
``POST /v1/tasks``: run a template of the platform's pack for a portal.

    {"template": "garage", "values": {…}, "id": "<the portal's task>", "requester": "<claim>"}

201 if the order is new, 200 if it was there with the same values, 409 if it was there with
others. Where the platform names the Backstage that signs for its users, an order needs a person
proved by it; else the requester is recorded as claimed. Answers within `ANSWER_S`, before the
portal's own time limit: what takes longer is not stopped, and the same request finds it.
"""

from __future__ import annotations

from typing import Any

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from orderkit.core.errors import OrderkitError
from orderkit.flows.platform import Platform
from orderkit.flows.tasks import TaskDone, TaskRequest, run_task
from orderkit.ports.requesters import Requester, Requesters, UnprovedError
from orderkit.web.exchange import error_answer, read_json, refusal, requester_of

ANSWER_S = 50.0
AT_ONCE = 8
"""Tasks at a time; each may call the service again, so they have threads of their own."""
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["template", "values"],
    "properties": {
        "template": {"type": "string", "minLength": 1, "maxLength": 253},
        "values": {"type": "object"},
        "id": {"type": "string", "pattern": r"^[A-Za-z0-9._-]{1,100}$"},
        "requester": {"type": "string", "minLength": 1, "maxLength": 253},
    },
}


class Tasks:
    """The endpoint's handler; one per service."""

    def __init__(
        self, platform: Platform, requesters: Requesters | None, *, answer_s: float = ANSWER_S
    ) -> None:
        self._platform, self._requesters, self._answer_s = platform, requesters, answer_s
        self._limit: anyio.CapacityLimiter | None = None

    async def __call__(self, request: Request) -> Response:
        found = await read_json(request, _SCHEMA)
        if self._limit is None:
            self._limit = anyio.CapacityLimiter(AT_ONCE)
        with anyio.move_on_after(self._answer_s):
            return await anyio.to_thread.run_sync(
                self._answer, request, found, abandon_on_cancel=True, limiter=self._limit
            )
        return error_answer(
            503,
            f"not finished after {self._answer_s:g} s",
            "start the task again: it finds what is done and does the rest",
        )

    def _answer(self, request: Request, found: dict[str, Any]) -> Response:
        try:
            requester = self._requester(request, found.get("requester"))
            wanted = TaskRequest(
                template=found["template"],
                values=found["values"],
                requester=requester,
                id=found.get("id", ""),
                authorization=request.headers.get("authorization", ""),
            )
            done = run_task(self._platform, wanted)
        except OrderkitError as error:
            return refusal(error)
        return JSONResponse(_shown(done, requester), status_code=201 if done.created else 200)

    def _requester(self, request: Request, claimed: str | None) -> Requester:
        if self._requesters is not None and "authorization" not in request.headers:
            raise UnprovedError(
                "who asks is not proved: no token of the portal came with the request",
                hint="the portal's proxy must let Authorization pass (allowedHeaders)",
            )
        return requester_of(request, self._requesters, claimed)


def _shown(done: TaskDone, requester: Requester) -> dict[str, Any]:
    return {
        "template": done.template,
        "order": done.order,
        "created": done.created,
        "requester": requester.ref,
        "requesterProof": requester.proof,
        "steps": {step: {"output": dict(output)} for step, output in done.steps.items()},
        "output": dict(done.outputs),
    }
