"""
Handler for the forge's webhooks: plan a pull request again after it was opened or pushed to.

What it still lacks to be merged is said by the status of its review, also after an approval.

A new commit on main is checked, which sets its commit status. It also changes what merging would
do, so all open pull requests of the repository are planned again. A delivery is answered at once: a
few threads plan from a bounded queue that has each pull request at most once; one that is pushed to
while it is planned is planned once more. Teams take turns, so nobody's pull requests keep those of
others waiting. The queue is lost when the process ends; the next push or ``orderkit platform
webhook --missed`` plans the missing ones.

One `PullPlans` per service.

`read_delivery` (and its like for GitHub and GitLab) reads from a delivery which pull requests to
plan again. It takes only repository and number from it; everything else is read from the forge
again.
"""

from __future__ import annotations

import itertools
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal

from ground.errors import (
    InProgressError,
    InvalidInputError,
    NotFoundError,
    OrderkitError,
    RefusedError,
    shorten,
)
from ground.names import MAIN, RepoId
from orderkit.core.platform.webhook_key import (
    GITHUB_HEADER,
    GITHUB_PREFIX,
    HEADER,
    SIGNATURE,
    hook_key,
    is_from_gitlab,
    is_signed,
)
from orderkit.flows.approval.settling import settle_pull, settle_touched
from orderkit.flows.change.reviewing import keep_judged
from orderkit.flows.order.commit_status import keep_checked
from orderkit.flows.plan.pull_requests import keep_planned, say_failed
from orderkit.flows.platform import RepositorySnapshot
from orderkit.ports.requesters import UnprovedError
from orderkit.web.messages import Taken
from orderkit.web.operations import Service, ServiceRequest, ServiceResponse

_EVENTS = frozenset({"pull_request", "pull_request_approved", "pull_request_rejected", "push"})
_ACTIONS = frozenset({"opened", "reopened", "synchronized", "edited", "reviewed", "closed"})
_NUMBER_MAX = 10**9
GITEA_EVENT, GITHUB_EVENT, GITLAB_EVENT = "x-gitea-event", "x-github-event", "x-gitlab-event"
"""The header with which each forge names an event, in lower case."""
_GITHUB_ACTIONS = frozenset(
    {"opened", "reopened", "synchronize", "edited", "closed", "ready_for_review"}
    | {"submitted", "dismissed"}
)
_GITLAB_MERGE_ACTIONS = frozenset(
    {"open", "reopen", "update", "close", "merge"}
    | {"approval", "approved", "unapproval", "unapproved"}
)

Asked = tuple[RepoId, int | None]
"""A repository and the number of a pull request; None: all open ones."""


def read_delivery(event: str, body: bytes) -> Asked | str:
    """
    Return what to plan, or why there is nothing to plan.

    Args:
        event: As the forge names it in its header ``X-Gitea-Event``.

    Raises:
        InvalidInputError: The body is not what the forge sends with that event.
    """
    if event not in _EVENTS:
        return _no_plan("event", event)
    payload = _payload(body)
    if event == "push":
        if payload.get("ref") != f"refs/heads/{MAIN}":
            return _no_plan("push to", payload.get("ref"))
        return _repository(payload), None
    if payload.get("action") not in _ACTIONS:
        return _no_plan("action", payload.get("action"))
    return _repository(payload), _number(payload)


def read_github_delivery(event: str, body: bytes) -> Asked | str:
    """
    Return what to plan, or why there is nothing to plan, for a delivery of GitHub.

    Args:
        event: As GitHub names it in its header ``X-GitHub-Event``.

    Raises:
        InvalidInputError: The body is not what GitHub sends with that event.
    """
    if event == "push":
        return read_delivery(event, body)
    if event not in ("pull_request", "pull_request_review"):
        return _no_plan("event", event)
    payload = _payload(body)
    if payload.get("action") not in _GITHUB_ACTIONS:
        return _no_plan("action", payload.get("action"))
    pull = payload.get("pull_request")
    return _repository(payload), _number(pull if isinstance(pull, dict) else {})


def read_gitlab_delivery(
    event: str, body: bytes, named: Callable[[str], RepoId | None]
) -> Asked | str:
    """
    Return what to plan, or why there is nothing to plan, for a delivery of GitLab.

    Args:
        event: As GitLab names it in its header ``X-Gitlab-Event``.
        named: Returns the repository of a project's full path; None: it is none of ours.

    Raises:
        InvalidInputError: The body is not what GitLab sends with that event.
    """
    if event not in ("Push Hook", "Merge Request Hook"):
        return _no_plan("event", event)
    payload = _payload(body)
    project = payload.get("project")
    name = project.get("path_with_namespace") if isinstance(project, dict) else None
    repo = named(name) if isinstance(name, str) else None
    if repo is None:
        raise InvalidInputError("project.path_with_namespace", name, "is no repository of ours")
    if event == "Push Hook":
        if payload.get("ref") != f"refs/heads/{MAIN}":
            return _no_plan("push to", payload.get("ref"))
        return repo, None
    attributes = payload.get("object_attributes")
    fields = attributes if isinstance(attributes, dict) else {}
    if fields.get("action") not in _GITLAB_MERGE_ACTIONS:
        return _no_plan("action", fields.get("action"))
    return repo, _number({"number": fields.get("iid")})


def _no_plan(subject: str, value: object) -> str:
    return f"{subject} '{shorten(str(value), limit=40)}' changes no plan"


def _payload(data: bytes) -> dict[str, Any]:
    try:
        payload = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError("body", data[:80], f"is not JSON: {error}") from error
    if not isinstance(payload, dict):
        raise InvalidInputError("body", data[:80], "is not an object")
    return payload


def _repository(payload: dict[str, Any]) -> RepoId:
    repository = payload.get("repository")
    name = repository.get("full_name") if isinstance(repository, dict) else None
    repo = RepoId.parse(name) if isinstance(name, str) else None
    if repo is None:
        raise InvalidInputError("repository.full_name", name, "names no repository")
    return repo


def _number(payload: dict[str, Any]) -> int:
    number = payload.get("number")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < _NUMBER_MAX:
        raise InvalidInputError("number", number, "is not a number of a pull request")
    return number


WAITING_MAX, TEAM_MAX, WORKERS = 200, 50, 2
"""Bounds of the queue, for all and for the repositories of one organisation."""
LIMIT_S = 300.0
"""Time after which a run is given up and its thread replaced; a thread cannot be killed."""
_STUCK_MAX = 4
"""Bound on the number of threads that are given up."""
_TRIES, _PAUSE_S = 3, 2.0
_DONE = "done"
_LEFT_OUT = "ignored"

logger = logging.getLogger(__name__)


class PullPlans:
    """The pull requests that wait for their plan, and those being planned."""

    def __init__(
        self, *, waiting_max: int = WAITING_MAX, workers: int = WORKERS, limit_s: float = LIMIT_S
    ) -> None:
        self._lock = threading.Lock()
        self._waiting: OrderedDict[Asked, None] = OrderedDict()
        self._running: dict[Asked, object] = {}
        """By pull request: a token of its run, which distinguishes a given-up run from the next."""
        self._again: set[Asked] = set()
        self._turns: dict[str, int] = {}
        """By organisation: when one of its repositories had its turn, counted."""
        self._count = itertools.count(1)
        self._ledger: RepositorySnapshot | None = None
        """The ledger whose orders that wait were settled last."""
        self._threads = self._stuck = 0
        self._waiting_max, self._workers, self._limit_s = waiting_max, workers, limit_s

    def post(self, service: Service, call: ServiceRequest) -> ServiceResponse:
        """Take a delivery. 202 if a pull request is planned, 200 if there is nothing to plan."""
        delivery = _delivery(service, call)
        call.audit_fields.update(caller="forge", via="the webhook's signature")
        if isinstance(delivery, str):
            return ServiceResponse(200, Taken(state="ignored", reason=delivery).to_json())
        repo, number = delivery
        if repo in (service.platform.ledger, service.platform.pack_repo):
            service.model.reread()
        elif number is None:
            service.model.look_at(repo)
        call.audit_fields.update(repository=str(repo), pull=number or "all")
        state = self._add(service, delivery)
        taken = Taken(state=state, repository=str(repo), number=number)
        return ServiceResponse(202, taken.to_json())

    def under_way(self) -> tuple[int, int]:
        """Return how many pull requests wait, and how many are being planned."""
        with self._lock:
            return len(self._waiting), len(self._running)

    def _add(self, service: Service, key: Asked) -> Literal["waiting", "queued"]:
        """
        Queue a pull request.

        Raises:
            BusyError: Too many wait.
        """
        with self._lock:
            if key in self._waiting or key in self._again:
                return "waiting"
            # what is being planned now may have been read before this push: once more afterwards
            if key in self._running:
                self._again.add(key)
                return "waiting"
            of_team = sum(repo.owner == key[0].owner for repo, _ in self._waiting)
            if len(self._waiting) >= self._waiting_max or of_team >= TEAM_MAX:
                raise InProgressError(
                    f"{max(of_team, len(self._waiting))} pull requests wait for their plan",
                    hint="deliver it again later, or run 'orderkit plan --pull-request'",
                )
            self._waiting[key] = None
            self._start(service)
            return "queued"

    def _start(self, service: Service) -> None:
        """Start a thread if a pull request waits; the caller holds the lock."""
        if self._waiting and self._threads < self._workers:
            self._threads += 1
            threading.Thread(
                target=self._work, args=(service,), name="pull-plans", daemon=True
            ).start()

    def _work(self, service: Service) -> None:
        while (next_pull := self._next()) is not None:
            key, token = next_pull
            limit = threading.Timer(self._limit_s, self._give_up, (service, key, token))
            limit.daemon = True
            limit.start()
            try:
                self._serve(service, key)
            finally:
                limit.cancel()
            if not self._finish_run(key, token):
                return

    def _serve(self, service: Service, key: Asked) -> None:
        repo, number = key
        if repo == service.platform.ledger:
            _run_safely(service, f"approvals in {repo}", lambda: self._settle(service, number))
            return
        if number is not None:
            _plan(service, repo, number)
            return
        state = _run_safely(service, str(repo), lambda: self._add_open(service, repo))
        if state != _DONE:
            service.metrics.plan(state)
        check = lambda: self._check(service, repo)  # noqa: E731
        service.metrics.push(_run_safely(service, f"main of {repo}", check))

    @staticmethod
    def _check(service: Service, repo: RepoId) -> str:
        check = keep_checked(service.platform, repo)
        service.model.note_check(repo, check)
        return str(check.state)

    def _settle(self, service: Service, number: int | None) -> str:
        """Bring the orders that a delivery of the ledger is about as far as they may go."""
        if number is not None:
            settle_pull(service.platform, number)
        else:
            self._ledger = settle_touched(service.platform, self._ledger)
        service.model.reread()
        return _DONE

    def _add_open(self, service: Service, repo: RepoId) -> str:
        """Queue all open pull requests into main; what was queued before stays so."""
        for pull in tuple(service.platform.forge.pulls(repo, base=MAIN)):
            self._add(service, (repo, pull.number))
        return _DONE

    def _next(self) -> tuple[Asked, object] | None:
        with self._lock:
            if not self._waiting:
                self._threads -= 1
                return None
            # teams take turns: nobody's pull requests keep those of others waiting
            key = min(self._waiting, key=lambda asked: self._turns.get(asked[0].owner, 0))
            del self._waiting[key]
            self._turns[key[0].owner] = next(self._count)
            token = self._running[key] = object()
            return key, token

    def _finish_run(self, key: Asked, token: object) -> bool:
        """Note the end of a run; False if it was given up, and another thread has its place."""
        with self._lock:
            if self._running.get(key) is not token:
                return False
            del self._running[key]
            if key in self._again:
                self._again.discard(key)
                self._waiting[key] = None
            return True

    def _give_up(self, service: Service, key: Asked, token: object) -> None:
        """Give up a run that does not return, and start another thread in its place."""
        with self._lock:
            if self._running.get(key) is not token or self._stuck >= _STUCK_MAX:
                return
            del self._running[key]
            self._again.discard(key)
            self._stuck += 1
            self._threads -= 1
            self._start(service)
        repo, number = key
        why = f"it was not done within {self._limit_s:g} s"
        logger.error("%s#%s has no plan: %s", repo, number or "all", why)
        service.metrics.plan("stuck")
        if number is not None:
            _say_failed(service, repo, number, why)


def _delivery(service: Service, call: ServiceRequest) -> Asked | str:
    """
    Return what a delivery asks for, once it is proved to be the forge's.

    Raises:
        UnprovedError: It is not signed with our key, or too old.
    """
    key, headers = hook_key(service.options.access.secret), call.headers
    if GITLAB_EVENT in headers:
        name = SIGNATURE
        is_proved = is_from_gitlab(key, call.raw, headers, service.platform.clock.now().timestamp())
    else:
        # a Gitea sends both kinds of headers, and its own payload
        is_github = GITHUB_EVENT in headers and GITEA_EVENT not in headers
        name = GITHUB_HEADER if is_github else HEADER
        claimed = headers.get(name.lower(), "")
        is_proved = is_signed(key, call.raw, claimed.removeprefix(GITHUB_PREFIX))
    if not is_proved:
        raise UnprovedError(
            f"{name} is missing or wrong",
            hint="register the webhook with 'orderkit platform webhook'",
        )
    if GITLAB_EVENT in headers:
        named = service.platform.forge.repository_named
        return read_gitlab_delivery(headers[GITLAB_EVENT], call.raw, named)
    if name == GITHUB_HEADER:
        return read_github_delivery(headers[GITHUB_EVENT], call.raw)
    return read_delivery(headers.get(GITEA_EVENT, ""), call.raw)


def _plan(service: Service, repo: RepoId, number: int) -> None:
    state = _run_safely(
        service,
        f"{repo}#{number}",
        lambda: str(keep_planned(service.platform, repo, number).judged.state),
    )
    service.metrics.plan(state)
    if state != _LEFT_OUT:
        name = f"the review of {repo}#{number}"
        _run_safely(service, name, lambda: keep_judged(service.platform, repo, number))
        service.model.reread_changes()
    if state in {"lost", "bug"}:
        why = "the platform failed; it is planned again with the next push"
        _say_failed(service, repo, number, why)


def _run_safely(service: Service, name: str, act: Callable[[], str]) -> str:
    """Act and never raise: there is no caller, so errors go to the log and the metrics."""
    for tries_left in reversed(range(_TRIES)):
        try:
            return act()
        except (NotFoundError, RefusedError) as error:
            logger.info("%s is left out: %s", name, error)
            return _LEFT_OUT
        except OrderkitError as error:
            logger.warning("%s failed: %s", name, error)
            if not (tries_left and error.retryable):
                break
            service.platform.clock.sleep(_PAUSE_S)
        except Exception:
            logger.exception("%s failed", name)
            return "bug"
    return "lost"


def _say_failed(service: Service, repo: RepoId, number: int, why: str) -> None:
    try:
        say_failed(service.platform.forge, repo, number, why)
    except OrderkitError as error:
        logger.warning("%s#%d: its status cannot be set: %s", repo, number, error)
