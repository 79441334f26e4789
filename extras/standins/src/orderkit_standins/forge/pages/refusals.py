"""
Error pages: what happened, and what the reader can do now.

Programs that do not ask for HTML get one line of text, as from Gitea.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from starlette.responses import PlainTextResponse, Response

from orderkit_standins.forge.api.calls import ApiError, Call
from orderkit_standins.forge.pages import site

CHALLENGE = {"WWW-Authenticate": 'Basic realm="Orderkit forge", charset="UTF-8"'}


@dataclass(frozen=True, slots=True)
class Advice:
    """Title of an error page and what it says."""

    title: str
    text: str


_ADVICE = {
    401: Advice(
        "These credentials are not known",
        "The user name, password or token is wrong, or the token was deleted. "
        "Reload the page to enter them again.",
    ),
    403: Advice(
        "Not allowed",
        "You are signed in, but may not see this. Ask an owner of the organisation for access, "
        "or use credentials (a token with scope read:repository) that have it.",
    ),
    404: Advice(
        "Nothing here",
        "The address is wrong, or it was moved or deleted, or it is private and you may not see "
        "it. Check the spelling of owner, repository, branch and path.",
    ),
}
_REFUSED = Advice(
    "Nothing was changed",
    "What was asked for does not fit the present state. Go back and load the page again.",
)
_ADVICE |= dict.fromkeys((405, 409, 422, 423), _REFUSED)
_OTHER = Advice(
    "The forge failed",
    "This is a fault of the forge, not yours. Try again; if it stays, read the log of the "
    "process that runs `orderkit up`.",
)


def refuse_with_page(call: Call, refusal: ApiError) -> Response:
    """Return the page of a refusal; one that leads elsewhere needs none."""
    if HTTPStatus.MULTIPLE_CHOICES <= refusal.status < HTTPStatus.BAD_REQUEST:
        return Response(status_code=refusal.status, headers=refusal.headers)
    headers = {**refusal.headers}
    if refusal.status == HTTPStatus.UNAUTHORIZED:
        headers |= CHALLENGE
    if "text/html" not in call.request.headers.get("accept", ""):
        text = refusal.message or HTTPStatus(refusal.status).phrase
        return PlainTextResponse(f"{text}\n", refusal.status, headers)
    advice = _ADVICE.get(refusal.status, _OTHER)
    return site.page(
        call,
        "refusal.html",
        advice.title,
        status=refusal.status,
        headers=headers,
        advice=advice,
        code=refusal.status,
        detail=refusal.message,
    )
