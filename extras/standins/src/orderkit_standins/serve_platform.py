"""Run the embedded platform and the service, bootstrapped and ready."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from socket import socket

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from ground.errors import InvalidInputError, NotFoundError, RefusedError
from ground.names import Files, TeamName, check_label
from orderkit.adapters.folders.pack_folder import pack_commit, read_folder
from orderkit.adapters.state_folder import PLATFORM_FILE
from orderkit.cli.connecting import connect, load_settings, service_options
from orderkit.cli.options import default_requester
from orderkit.core.platform.forge_kinds import ForgeKind
from orderkit.core.platform.notification_settings import NotificationSettings
from orderkit.core.platform.settings import PlatformSettings
from orderkit.flows.install.bootstrapping import BootstrapRequest, bootstrap
from orderkit.flows.install.bootstrapping.platform_repositories import pack_replacement
from orderkit.flows.install.bootstrapping.steps import StepDone
from orderkit.flows.install.pack_rendering import values_of
from orderkit.flows.platform import Platform, ledger_snapshot
from orderkit.flows.team.limit_check import team_of
from orderkit.flows.team.teams import TeamChange, add_team, list_teams
from orderkit.ports.forge import TeamRight
from orderkit.web.auditing import AuditLog
from orderkit.web.service import service_app
from orderkit.web.serving import HttpServer, bind
from orderkit_standins.forked_part import ForkedPart
from orderkit_standins.platform import EmbeddedPlatform, PortalOptions, Ports

FIRST_TEAM = "ae86"
FIRST_FORGE: ForgeKind = "gitea"
"""Whose dialect the forge speaks if nobody says which."""
AUDIT_FILE = "audit.jsonl"
"""In the state folder: who called the service."""


@dataclass(frozen=True, slots=True)
class Running:
    """A platform that runs: its addresses, its ports, and the object that runs it."""

    settings: PlatformSettings
    platform: Platform
    embedded: EmbeddedPlatform
    docs: str = ""
    """The address of the site of the documentation; empty: it is not built."""
    held_back: tuple[StepDone, ...] = ()
    """Steps of the bootstrap that somebody else's access to the forge makes unsafe."""


@dataclass(frozen=True, slots=True)
class Person:
    """A person of the embedded forge; `place` is a team, `PLATFORM`, or empty."""

    login: str
    place: str = ""

    @classmethod
    def of(cls, text: str) -> Person:
        """
        Read ``NAME``, ``NAME=TEAM`` or ``NAME=platform``.

        Raises:
            InvalidInputError: Name or team is no label.
        """
        login, has_place, place = text.partition("=")
        check_label("--user", login)
        return cls(login, check_label("--user", place) if has_place else "")


PLATFORM = "platform"
"""The place of those who may approve for the platform: they may write to the ledger."""
_PEOPLE_TEAM = "people"
"""Their team in the platform's organisation."""


@dataclass(frozen=True, slots=True)
class EmbeddedRunRequest:
    """Where and with what to run."""

    state: Path
    pack: Path
    ports: Ports
    teams: tuple[str, ...]
    """Empty: those of the last start that the ledger still has, at first `FIRST_TEAM`."""
    portal: PortalOptions = field(default_factory=PortalOptions)
    values: Mapping[str, str] = field(default_factory=dict)
    notifications: NotificationSettings = field(default_factory=NotificationSettings)
    twins: tuple[str, ...] = ()
    """Twins of providers, beside those that the pack asks for."""
    people: tuple[Person, ...] = ()
    """People to add to the forge, to try approvals with."""
    forge: ForgeKind | None = None
    """Whose dialect the forge speaks; None: that of the last start, at first Gitea's."""
    docs: Path | None = None
    """The folder of the documentation's site, if it is built."""


@contextlib.contextmanager
def running(
    run_request: EmbeddedRunRequest,
    *,
    on_step: Callable[[str, str], None],
    on_lost: Callable[[str], None] | None = None,
) -> Iterator[Running]:
    """
    Start everything, bootstrap, hand out, stop everything.

    Somebody else's access to the forge holds back the steps that it makes unsafe. The rest starts,
    because nobody can remove that access from a forge that does not run.

    Args:
        run_request: What runs.
        on_step: Called with each step that is done, and what came of it.
        on_lost: Run forge and service in processes of their own, forks of this one, which has no
            threads yet, and call this with a sentence if one of them ends by itself. None: all in
            this process.

    Raises:
        PortInUseError: A port is taken. RefusedError, ConflictError: the state folder, also one
            that another pack has.
        InvalidInputError: The pack is broken. IncompleteError: a layer is not healthy in time.
    """
    files = read_folder(run_request.pack)
    commit = pack_commit(run_request.pack, files)
    before = _settings_before(run_request.state)
    embedded = EmbeddedPlatform(
        run_request.state,
        pack=run_request.pack,
        ports=run_request.ports,
        teams=run_request.teams or (tuple(before.teams) if before else (FIRST_TEAM,)),
        portal=run_request.portal,
        values=run_request.values,
        notifications=run_request.notifications,
        twins=run_request.twins,
        adopted=_adopted(before, run_request.people),
        people=tuple(person.login for person in run_request.people),
        forge=_forge_kind(before, run_request.forge),
        on_lost=on_lost,
    )
    with contextlib.ExitStack() as undo:
        undo.callback(embedded.stop)
        start_service = _service_starter(run_request, embedded, undo, on_lost)
        settings = embedded.start()
        on_step("platform", f"forge {settings.forge.address}, cluster {embedded.url('cluster')}")
        platform = _without_removed_teams(connect(settings), run_request)
        _refuse_mixed_packs(platform, files)
        docs = _serve_docs(run_request.docs, undo)
        start_service(_ServiceNeeds(settings, tuple(platform.teams), docs))
        values = values_of(settings, commit)
        backstage = run_request.portal.catalog
        elsewhere = f"{backstage} starts later and names its own" if backstage else ""
        request = BootstrapRequest(
            files, values, default_requester(), holds_back=True, portal_problem=elsewhere
        )
        done = bootstrap(platform, request, on_step=on_step)
        _place(platform, run_request.people)
        yield Running(settings, platform, embedded, docs, done.held_back)


@dataclass(frozen=True, slots=True)
class _ServiceNeeds:
    """What the service gets to know when the rest runs."""

    settings: PlatformSettings
    teams: tuple[str, ...]
    docs: str


def _service_starter(
    run_request: EmbeddedRunRequest,
    embedded: EmbeddedPlatform,
    undo: contextlib.ExitStack,
    on_lost: Callable[[str], None] | None,
) -> Callable[[_ServiceNeeds], object]:
    """Return what starts the service; if that is a process of its own, it is forked already."""
    serving = partial(_serving, run_request.state / AUDIT_FILE, embedded.service_socket)
    if on_lost is None:
        return lambda needs: undo.enter_context(serving(needs))
    closes = embedded.held_for_others("service")
    part = ForkedPart("service", lambda needs, _: serving(needs), closes=closes)
    undo.callback(part.stop)

    def start(needs: _ServiceNeeds) -> None:
        part.start(needs, lambda _: None, on_lost)
        embedded.service_socket.close()

    return start


@contextlib.contextmanager
def _serving(audit_file: Path, sock: socket, needs: _ServiceNeeds) -> Iterator[None]:
    options = service_options(needs.settings, audit=AuditLog(audit_file), links=True)
    options = replace(options, console=replace(options.console, docs=needs.docs))
    platform = replace(connect(needs.settings), teams=needs.teams)
    service = HttpServer(service_app(platform, options), sock)
    service.start()
    try:
        yield
    finally:
        service.stop()


def _refuse_mixed_packs(platform: Platform, files: Files) -> None:
    """Refuse another pack that lacks kits of the published one."""
    published = platform.forge.head(platform.pack_repo)
    if published is None:
        return
    with contextlib.suppress(InvalidInputError):  # a broken pack is replaced
        replacement = pack_replacement(platform, published, files)
        # their XRDs stay, because deleting one deletes its orders: the layer would never be ready
        if replacement.is_other and replacement.lost_kits:
            hint = (
                "a state folder is for one pack: set another XDG_STATE_HOME in each of your"
                " terminals, or name a folder: orderkit up --pack DIR --state FOLDER"
            )
            raise replacement.refusal(hint=hint)


def _serve_docs(folder: Path | None, undo: contextlib.ExitStack) -> str:
    """Serve the site of the documentation; return its address, empty if it is not built."""
    if folder is None or not (folder / "index.html").is_file():
        return ""
    # a port of its own, so that its scripts are of another origin than the console
    sock = bind("documentation", 0)
    server = HttpServer(
        Starlette(routes=[Mount("/", StaticFiles(directory=folder, html=True))]), sock
    )
    server.start()
    undo.callback(server.stop)
    return f"http://127.0.0.1:{sock.getsockname()[1]}/"


def _adopted(before: PlatformSettings | None, people: Sequence[Person]) -> tuple[str, ...]:
    """Return who may write to the platform's repositories besides the platform."""
    known = before.forge.adopted if before else ()
    return tuple(dict.fromkeys((*known, *(p.login for p in people if p.place == PLATFORM))))


def _place(platform: Platform, people: Sequence[Person]) -> None:
    """Make people members of their teams, in addition to those who are. Idempotent."""
    for place in dict.fromkeys(person.place for person in people if person.place):
        logins = [person.login for person in people if person.place == place]
        if place == PLATFORM:
            ledger = platform.ledger
            logins += [user.login for user in platform.forge.members(ledger.owner, _PEOPLE_TEAM)]
            platform.forge.ensure_access(
                ledger.owner,
                _PEOPLE_TEAM,
                right=TeamRight.WRITE,
                members=tuple(dict.fromkeys(logins)),
                repositories=(ledger.name,),
            )
            continue
        known = team_of(platform, TeamName(place), ledger_snapshot(platform)).members or ()
        members = tuple(dict.fromkeys((*known, *logins)))
        change = TeamChange(members=members)
        add_team(platform, place, requester=default_requester(), change=change)


def _forge_kind(before: PlatformSettings | None, wanted: ForgeKind | None) -> ForgeKind:
    """
    Return whose dialect the forge speaks.

    Raises:
        RefusedError: Another than before: every order's Application names the old addresses.
    """
    known = before.forge.kind if before else None
    if known and wanted not in (None, known):
        raise RefusedError(
            f"the orders in this state folder are on a forge that speaks as {known}, not {wanted}",
            hint=f"start without --forge, or with --forge {known}, or in another state folder",
        )
    return known or wanted or FIRST_FORGE


def _settings_before(state: Path) -> PlatformSettings | None:
    file = state / PLATFORM_FILE
    return load_settings(str(file)) if file.is_file() else None


def _without_removed_teams(platform: Platform, run_request: EmbeddedRunRequest) -> Platform:
    """Return the platform without the teams that somebody removed since the last start."""
    if run_request.teams:
        return platform
    with contextlib.suppress(NotFoundError):  # at the first start there is no ledger
        remaining = set(list_teams(platform))
        return replace(platform, teams=tuple(team for team in platform.teams if team in remaining))
    return platform
