"""
The embedded forge as one object: its state folder, its stores, its app.

The only module that knows all parts and connects them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from ground.errors import NotFoundError
from ground.names import RepoId
from orderkit_standins.forge.accounts import Accounts
from orderkit_standins.forge.api.access import Access
from orderkit_standins.forge.api.branch_routes import BranchRoutes, ProtectionRoutes
from orderkit_standins.forge.api.branch_updates import BranchRules, BranchUpdates, PushListener
from orderkit_standins.forge.api.calls import RootUrl
from orderkit_standins.forge.api.content_routes import ContentRoutes, GitRoutes, StatusRoutes
from orderkit_standins.forge.api.merging import Merging
from orderkit_standins.forge.api.organisation_routes import OrganisationRoutes, UserRoutes
from orderkit_standins.forge.api.pull_routes import IssueRoutes, PullRoutes, ReviewRoutes
from orderkit_standins.forge.api.repository_routes import RepositoryRoutes
from orderkit_standins.forge.api.routes import API, Dispatcher, unknown_address
from orderkit_standins.forge.api.shapes import Shapes
from orderkit_standins.forge.api.smart_http import SmartHttp
from orderkit_standins.forge.api.webhook_events import WebhookEvents, WebhookRoutes
from orderkit_standins.forge.deploy_keys import DeployKey
from orderkit_standins.forge.git_program import GitProgram, find_git
from orderkit_standins.forge.github.apps import Apps
from orderkit_standins.forge.github.face import GitHubFace
from orderkit_standins.forge.github.payloads import GitHubPayloads
from orderkit_standins.forge.github.shapes import GitHubShapes
from orderkit_standins.forge.gitlab.face import BelowGroup, FaceSettings, GitLabFace
from orderkit_standins.forge.gitlab.groups import GroupEndpoints
from orderkit_standins.forge.gitlab.guards import GuardEndpoints, headers_and_body
from orderkit_standins.forge.gitlab.merge_requests import MergeRequestEndpoints
from orderkit_standins.forge.gitlab.places import Places
from orderkit_standins.forge.gitlab.repository import RepositoryEndpoints
from orderkit_standins.forge.issues import Issues
from orderkit_standins.forge.pages.overview import OverviewPages, refuse_with_page
from orderkit_standins.forge.pages.pulls import PullPages
from orderkit_standins.forge.pages.repository_pages import HistoryPages, TreePages
from orderkit_standins.forge.protections import Protections
from orderkit_standins.forge.pull_requests import DELAY_S, Checks, MergeJournal, Pulls
from orderkit_standins.forge.repositories import FolderLock, Repositories
from orderkit_standins.forge.reviews import Reviews
from orderkit_standins.forge.statuses import Statuses
from orderkit_standins.forge.store import Store
from orderkit_standins.forge.teams import Teams
from orderkit_standins.forge.webhooks import Deliveries, Maker, Webhooks

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class EmbeddedForge:
    """
    A forge that lives in one folder, for one process at a time.

    Opening it repairs the state that a killed forge left. The caller serves `app`; until
    `set_base_url` is called, links in answers begin with ``http://127.0.0.1``.
    """

    def __init__(
        self,
        root: Path,
        *,
        check_delay_s: float = DELAY_S,
        webhook_ports: AbstractSet[int] | None = None,
        gitlab: FaceSettings | None = None,
    ) -> None:
        """
        Open or create the forge in `root`.

        Args:
            root: Its state folder.
            check_delay_s: How long a pull request is being checked after a push
                (``pull_requests``).
            webhook_ports: Ports of the loopback that webhooks may call. None: any.
            gitlab: Speak GitLab's dialect too, below ``/api/v4``. None: Gitea's alone.

        Raises:
            FolderInUseError: Another process has it open.
            NewerStateError: A later release wrote the state.
            OrderkitError: There is no git program.
        """
        self.root, self._gitlab = root, gitlab
        program = find_git()
        self.repos_root.mkdir(parents=True, exist_ok=True)
        self._root_url = RootUrl()
        self._closing = threading.Lock()
        self.deploy_keys: dict[str, Sequence[DeployKey]] = {}
        """By full names of repositories, on the faces of GitHub and GitLab; not kept."""
        with ExitStack() as undo:
            self._lock = FolderLock(root)
            undo.callback(self._lock.release)
            self._store = Store(root / "forge.sqlite")
            undo.callback(self._store.close)
            self._open_stores(check_delay_s)
            self.deliveries = Deliveries(webhook_ports)
            self.repositories.repair()
            for repo in self.repositories.all():
                self.merge_journal.repair(repo)
            undo.pop_all()
        # its processes inherit the lock: no second forge opens the folder while one of them writes
        self._git = GitProgram(program, self._lock.fd)
        self.app = self._app()

    def _open_stores(self, check_delay_s: float) -> None:
        store = self._store
        self.teams = Teams(store)
        self.accounts = Accounts(store, self.teams)
        self.repositories = Repositories(store, self.repos_root)
        self.issues = Issues(store)
        self.pulls = Pulls(store, self.issues, Checks(check_delay_s))
        self.merge_journal = MergeJournal(self.pulls)
        self.statuses = Statuses(store)
        self.protections = Protections(store)
        self.reviews = Reviews(store)
        self.webhooks = Webhooks(store)

    def _app(self) -> ASGIApp:
        """Return the ASGI app."""
        accounts, repositories, pulls = self.accounts, self.repositories, self.pulls
        self._access = access = Access(accounts, self.teams, repositories)
        shapes = Shapes(self._root_url, accounts, self.issues, pulls)
        github = GitHubShapes(self._root_url, accounts, self.issues, pulls, Apps())
        makers: dict[str, Maker] = {
            "github": GitHubPayloads(github, self.reviews).headers_and_body,
            "gitlab": headers_and_body,
        }
        events = WebhookEvents(self.webhooks, self.deliveries, shapes, makers)
        self._updates = updates = BranchUpdates(pulls, events, self.reviews)
        rules = BranchRules(access, self.protections, self.statuses, self.reviews)
        merging = Merging(accounts, pulls, self.merge_journal, rules, updates)
        pull_routes = PullRoutes(
            access, self.issues, pulls, self.merge_journal, merging, events, shapes, self.reviews
        )
        review_routes = ReviewRoutes(access, pulls, self.reviews, shapes, events)
        smart_http = SmartHttp(access, repositories, updates, rules, self._git)
        repository_routes = RepositoryRoutes(access, repositories, self.teams, shapes)
        issue_routes = IssueRoutes(access, self.issues, events, shapes)
        webhook_routes = WebhookRoutes(access, self.webhooks)
        status_routes = StatusRoutes(access, self.statuses, shapes)
        endpoints = (
            UserRoutes(access, accounts, shapes),
            OrganisationRoutes(access, accounts, self.teams, repositories, shapes),
            repository_routes,
            ContentRoutes(access, repositories, rules, updates, shapes),
            GitRoutes(access, shapes),
            BranchRoutes(access, rules, updates, shapes),
            review_routes,
            pull_routes,
            issue_routes,
            webhook_routes,
            ProtectionRoutes(access, accounts, self.teams, self.protections, pulls),
            status_routes,
        )
        self.github = GitHubFace(
            rules,
            repositories=repository_routes,
            pulls=pull_routes,
            reviews=review_routes,
            issues=issue_routes,
            statuses=status_routes,
            webhooks=webhook_routes,
            protections=self.protections,
            shapes=github,
            deploy_keys=self.deploy_keys,
        )
        pages = (
            OverviewPages(access, accounts, repositories),
            TreePages(access),
            HistoryPages(access, self.statuses),
            PullPages(access, accounts, self.statuses, pull_routes, review_routes),
        )
        routes = list(self._routes(endpoints, smart_http, pages))
        if self._gitlab is not None:
            routes = [*self._gitlab_routes(self._gitlab, rules), *routes]
        app = Starlette(routes=routes)
        app.router.redirect_slashes = False
        return BelowGroup(app, self._gitlab.group) if self._gitlab else app

    def _gitlab_routes(self, settings: FaceSettings, rules: BranchRules) -> list[Route]:
        """Return the routes of the GitLab face; call after `_routes`."""
        accounts, teams, repositories = self.accounts, self.teams, self.repositories
        places = Places(
            self._access,
            accounts,
            teams,
            repositories,
            self._store,
            self.protections,
            settings.group,
        )
        repository = RepositoryEndpoints(places, rules, self.statuses)
        endpoints: list[object] = [
            GroupEndpoints(places, settings.removes_at_once, self.deploy_keys),
            repository,
            MergeRequestEndpoints(
                places,
                self.issues,
                self.pulls,
                self.merge_journal,
                self.reviews,
                repository,
                self.github.queues,
            ),
            GuardEndpoints(places, self.protections, self.webhooks, settings.premium),
        ]
        return GitLabFace(self._access, self._dispatcher, endpoints, settings).routes()

    def _routes(
        self, endpoints: Sequence[object], smart_http: SmartHttp, pages: Sequence[object]
    ) -> Iterator[BaseRoute]:
        """Yield all routes in the order in which they are tried."""
        self._dispatcher = dispatcher = Dispatcher(self._access, self._root_url)
        for api in endpoints:
            yield from dispatcher.routes_of(api)
        yield from self.github.routes(dispatcher)
        for method in _METHODS:
            yield dispatcher.route(method, f"{API}/{{rest:path}}", "", unknown_address)
        yield from smart_http.routes()
        for page in pages:
            yield from dispatcher.routes_of(page, refuse_with_page)
        for method in _METHODS:
            path = "/{rest:path}"
            yield dispatcher.route(method, path, "", unknown_address, refuse_with_page)

    @property
    def repos_root(self) -> Path:
        """Where the bare repositories are: ``<owner>/<name>.git``."""
        return self.root / "repos"

    @property
    def base_url(self) -> str:
        """The address that links in answers begin with (Gitea's ROOT_URL)."""
        return self._root_url.text

    def set_base_url(self, url: str) -> None:
        """Set that address."""
        self._root_url.text = url.rstrip("/")

    def ensure_user(
        self, name: str, password: str, *, admin: bool = False, read_only: bool = False
    ) -> None:
        """
        Make sure a user exists with this password and role. Idempotent.

        Raises:
            InvalidInputError: A name the forge refuses.
        """
        self.accounts.ensure_user(name, password, admin=admin, read_only=read_only)

    def ensure_token(self, user: str, name: str, token_value: str, scopes: Sequence[str]) -> None:
        """
        Make sure a user has a token with this secret and these scopes. Idempotent.

        Raises:
            NotFoundError: No such user.
            InvalidInputError: No scope, or an unknown one.
            ConflictError: Another token has this secret.
        """
        account = self.accounts.find_user(user)
        if account is None:
            raise NotFoundError(f"no user {user}")
        self.accounts.ensure_token(account, name, token_value, tuple(scopes))

    def repository_path(self, repo: RepoId) -> Path | None:
        """Return the folder of a repository, or None if it does not exist."""
        repository = self.repositories.find(repo.owner, repo.name)
        return repository.path if repository else None

    def on_push(self, listener: PushListener) -> None:
        """
        Call `listener` after every change of a branch, by API or by git push.

        It runs in the thread that serves the request, after the branch moved and before the
        answer, so it should only queue work. Its exceptions are logged.
        """
        self._updates.listeners.append(listener)

    def close(self) -> None:
        """Close files and let another process open the folder. Idempotent."""
        self.deliveries.close()
        with self._closing:
            self._store.close()
            self._lock.release()
