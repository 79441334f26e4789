"""
Sign in, with a provider or a one-time link, and sign out.

The provider's answer is believed only in the browser that began: its cookie holds state, nonce and
the verifier of PKCE.
"""

from __future__ import annotations

import ipaddress

from ground.errors import RefusedError
from orderkit.ports.requesters import Requester, SignIn, UnprovedError
from orderkit.web.console.api_calls import page, redirect
from orderkit.web.console.page_exchange import SIGN_IN, cookie, own_path
from orderkit.web.console.sessions import ATTEMPT_S, SessionCaller, Sessions
from orderkit.web.operations import ConsoleOptions, Service, ServiceRequest, ServiceResponse

CALLBACK = f"{SIGN_IN}/callback"


class SignInPages:
    """The ways into one console."""

    def __init__(self, options: ConsoleOptions, sessions: Sessions) -> None:
        self._options, self._sessions = options, sessions

    def show(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Show how to sign in."""
        del service
        provider = self._options.sign_in
        return page(
            call,
            "sign_in.html",
            "Sign in",
            provider=provider.name if provider else "",
            links=self._options.links,
            onward=own_path(call.query.get("onward", "/")),
            is_over=bool(call.headers["session"]),
        )

    def begin(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Lead to the provider."""
        del service
        url, attempt = self._provider().begin(self._callback)
        onward = own_path(call.query.get("onward", "/"))
        kept = self._cookie(call, "attempt", self._sessions.attempt_cookie(attempt, onward))
        return redirect(url, **kept)

    def finish(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Redeem the provider's code and begin a session."""
        del service
        if "error" in call.query:
            raise UnprovedError(
                f"the provider did not sign you in: {call.query['error'][:100]}",
                hint=f"try again: {SIGN_IN}",
            )
        state, code = call.query.get("state", ""), call.query.get("code", "")
        attempt, onward = self._sessions.attempt(call.headers["attempt"], state)
        person = self._provider().finish(code, attempt, self._callback)
        return self._begin_session(call, person, onward)

    def follow_link(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Begin a session with a one-time link, in a browser on this machine."""
        del service
        if not self._options.links or not _is_loopback(call.headers["address"]):
            raise RefusedError(
                "one-time links sign in on the machine of an embedded platform only",
                hint=f"sign in: {SIGN_IN}",
            )
        person = self._sessions.redeem(call.query.get("token", ""))
        return self._begin_session(call, person, own_path(call.query.get("onward", "/")))

    def leave(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """End the session."""
        del service
        if isinstance(call.caller, SessionCaller):
            self._sessions.end(call.caller.session)
        return redirect(SIGN_IN, **self._cookie(call, "session", ""))

    def _begin_session(
        self, call: ServiceRequest, person: Requester, onward: str
    ) -> ServiceResponse:
        call.audit_fields.update(caller=person.ref, via=person.proof)
        kept = self._cookie(call, "session", self._sessions.cookie(person))["Set-Cookie"]
        over = self._cookie(call, "attempt", "")["Set-Cookie"]
        return redirect(onward, **{"Set-Cookie": f"{kept}\n{over}"})

    def _cookie(self, call: ServiceRequest, kind: str, value: str) -> dict[str, str]:
        max_age_s = ATTEMPT_S if kind == "attempt" else self._options.session_s
        name, secure = call.headers[f"{kind}-name"], bool(call.headers["secure"])
        return {"Set-Cookie": cookie(name, value, secure=secure, max_age_s=max_age_s)}

    def _provider(self) -> SignIn:
        if self._options.sign_in is None:
            raise RefusedError(
                "this platform has no provider for signing in",
                hint="service.access.signIn in platform.yaml names one (docs/console.md)",
            )
        return self._options.sign_in

    @property
    def _callback(self) -> str:
        return f"{self._options.address}{CALLBACK}"


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
