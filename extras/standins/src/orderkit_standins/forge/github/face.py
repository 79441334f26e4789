"""All endpoints of GitHub's dialect, as routes of the embedded forge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from orderkit_standins.forge.accounts import ANONYMOUS, Actor
from orderkit_standins.forge.api.access import Access
from orderkit_standins.forge.api.branch_updates import BranchRules
from orderkit_standins.forge.api.calls import Call, Endpoint
from orderkit_standins.forge.api.content_routes import StatusRoutes
from orderkit_standins.forge.api.merging import MergeQueues
from orderkit_standins.forge.api.pull_routes import IssueRoutes, PullRoutes, ReviewRoutes
from orderkit_standins.forge.api.repository_routes import RepositoryRoutes
from orderkit_standins.forge.api.routes import Dispatcher, unknown_address
from orderkit_standins.forge.api.webhook_events import WebhookRoutes
from orderkit_standins.forge.deploy_keys import DeployKey
from orderkit_standins.forge.github.answers import API, Answers, Limits, tagged
from orderkit_standins.forge.github.apps import Apps
from orderkit_standins.forge.github.git_routes import GitHubGit
from orderkit_standins.forge.github.graphql_routes import GitHubGraphql
from orderkit_standins.forge.github.people_routes import GitHubPeople, GitHubTeams
from orderkit_standins.forge.github.pull_routes import (
    GitHubNotes,
    GitHubPullRoutes,
    GitHubReviewRoutes,
)
from orderkit_standins.forge.github.repository_routes import GitHubRepositories, GitHubWorkflows
from orderkit_standins.forge.github.rule_routes import GitHubHookRoutes, GitHubRules
from orderkit_standins.forge.github.shapes import GitHubShapes
from orderkit_standins.forge.protections import Protections

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_GRAPHQL = "/api/graphql"


class _ByApp(Access):
    """Lets endpoints of Apps find out themselves who calls: by the App's signed token."""

    def authenticate(self, request: Request) -> Actor:  # noqa: ARG002  as the others
        """Return nobody."""
        return ANONYMOUS


class GitHubFace:
    """GitHub's dialect of one forge. `limits` can be set; `apps` are known to whoever starts it."""

    def __init__(
        self,
        rules: BranchRules,
        *,
        repositories: RepositoryRoutes,
        pulls: PullRoutes,
        reviews: ReviewRoutes,
        issues: IssueRoutes,
        statuses: StatusRoutes,
        webhooks: WebhookRoutes,
        protections: Protections,
        shapes: GitHubShapes,
        deploy_keys: Mapping[str, Sequence[DeployKey]],
    ) -> None:
        access, stores, teams = rules.access, repositories.repositories, repositories.teams
        self.limits: Limits = Limits()
        self.apps: Apps = shapes.apps
        self._answers = Answers(stores, self.limits)
        updates = pulls.merging.updates
        git = GitHubGit(access, stores, rules, updates, shapes, self.limits)
        self.workflows = GitHubWorkflows(access, protections, shapes)
        self.queues = MergeQueues(pulls.merging)
        self._endpoints = (
            self.workflows,
            GitHubPeople(access, access.accounts, teams, self.apps, shapes),
            GitHubTeams(access, teams, stores, shapes),
            GitHubRepositories(access, stores, teams, repositories, shapes),
            GitHubRules(access, teams, rules, protections, deploy_keys, shapes, self.queues),
            git,
            GitHubPullRoutes(access, pulls, shapes, self.queues),
            GitHubReviewRoutes(access, reviews, shapes),
            GitHubNotes(access, issues, statuses, shapes, self.limits),
            GitHubHookRoutes(webhooks, shapes),
            GitHubGraphql(git, pulls.issues, pulls.pulls, self.queues),
        )

    def routes(self, dispatcher: Dispatcher) -> Iterator[BaseRoute]:
        """Yield the routes: reads with a tag, what creates content counted."""
        refuse = self._answers.refuse
        access = dispatcher.access
        stores = (access.accounts, access.teams, access.repositories)
        by_app = replace(dispatcher, access=_ByApp(*stores))
        for part in self._endpoints:
            for name, function in vars(type(part)).items():
                for method, path, scope in getattr(function, "routes", ()):
                    endpoint: Endpoint = getattr(part, name)
                    if method == "GET":
                        endpoint = _with_tag(endpoint)
                    elif path != _GRAPHQL and "/app/" not in path:
                        endpoint = self._answers.counted(endpoint)
                    resource = "graphql" if path == _GRAPHQL else "core"
                    endpoint = self._answers.admitted(endpoint, resource)
                    is_app = path.startswith(f"{API}/app") or path.endswith("/installation")
                    chosen = by_app if is_app else dispatcher
                    yield chosen.route(method, path, scope, endpoint, refuse)
        for method in _METHODS:
            yield dispatcher.route(method, f"{API}/{{rest:path}}", "", unknown_address, refuse)


def _with_tag(endpoint: Endpoint) -> Endpoint:
    def serve(call: Call) -> Response:
        return tagged(call, endpoint(call))

    return serve
